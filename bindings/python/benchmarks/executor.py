"""What a task costs, beside ThreadPoolExecutor.

    python bindings/python/benchmarks/executor.py [--workers N] [--tasks N] [--rounds N]

Each round runs every case on one executor after the other, in turns; a ratio is taken within a round
and the median of the ratios is printed, so that what else the machine does meets both alike. "Rate"
is tasks per second from the first submission to the last result; "submit only" until the last
submission has returned.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import paceline


def empty(_: Any = None) -> None:
    """The empty task."""


def submit(executor: Executor, tasks: int) -> tuple[float, float]:
    start = time.perf_counter()
    futures = [executor.submit(empty) for _ in range(tasks)]
    submitted = time.perf_counter()
    for future in futures:
        future.result()
    return submitted - start, time.perf_counter() - start


def map_all(executor: Executor, tasks: int) -> tuple[float, float]:
    start = time.perf_counter()
    results = executor.map(empty, range(tasks))
    submitted = time.perf_counter()
    for _ in results:
        pass
    return submitted - start, time.perf_counter() - start


def batch(executor: Executor, tasks: int) -> tuple[float, float]:
    """The standard executor has no batches: a list of submissions is what one writes instead."""
    start = time.perf_counter()
    if isinstance(executor, paceline.Executor):
        futures = executor.submit_batch(empty, range(tasks))
    else:
        futures = [executor.submit(empty, item) for item in range(tasks)]
    submitted = time.perf_counter()
    for future in futures:
        future.result()
    return submitted - start, time.perf_counter() - start


def one_by_one(executor: Executor, tasks: int) -> tuple[float, float]:
    """There and back: nothing else is under way."""
    start = time.perf_counter()
    for _ in range(tasks // 20):
        executor.submit(empty).result()
    elapsed = (time.perf_counter() - start) * 20
    return elapsed, elapsed


CASES: dict[str, Callable[[Executor, int], tuple[float, float]]] = {
    "submit": submit,
    "map": map_all,
    "submit_batch": batch,
    "one by one": one_by_one,
}


def measure(make: Callable[[], Executor], case: Any, tasks: int) -> tuple[float, float]:
    with make() as executor:
        case(executor, min(tasks, 1000))
        return case(executor, tasks)  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    makers: dict[str, Callable[[], Executor]] = {
        "standard": lambda: ThreadPoolExecutor(options.workers),
        "paceline": lambda: paceline.Executor(options.workers),
    }
    print(f"{options.tasks} empty tasks, {options.workers} workers, {options.rounds} rounds, medians")
    print(f"{'case':<14}{'standard/s':>12}{'paceline/s':>12}{'ratio':>8}{'submit only':>13}")
    for name, case in CASES.items():
        taken: dict[str, list[tuple[float, float]]] = {maker: [] for maker in makers}
        for turn in range(options.rounds):
            order = list(makers) if turn % 2 else list(makers)[::-1]
            for maker in order:
                taken[maker].append(measure(makers[maker], case, options.tasks))
        pairs = list(zip(taken["standard"], taken["paceline"]))
        rates = [
            statistics.median(options.tasks / total for _, total in taken[maker]) for maker in makers
        ]
        ratio = statistics.median(theirs[1] / ours[1] for theirs, ours in pairs)
        only = statistics.median(theirs[0] / ours[0] for theirs, ours in pairs)
        print(f"{name:<14}{rates[0]:>12,.0f}{rates[1]:>12,.0f}{ratio:>8.1f}{only:>13.1f}")


if __name__ == "__main__":
    main()
