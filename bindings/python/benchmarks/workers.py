"""What a task of a WorkerPool costs, beside ThreadPoolExecutor.

    python bindings/python/benchmarks/workers.py [--workers N] [--tasks N] [--rounds N]

The tasks are calls of a decorated function, with a name, a Task each, and all the pool's books. Each
round runs every case on one pool after the other, in turns; a ratio is taken within a round and the
median of the ratios is printed, so that what else the machine does meets both alike. "Submit" is
submissions per second, until the last submission has returned; "all" until the last result is there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import paceline


def empty(_: Any = None) -> None:
    """The empty task."""


#: Seconds until the last submission, and until the last result.
Taken = tuple[float, float]


def standard(workers: int, tasks: int) -> Taken:
    """It has no batches: a list of submissions is what one writes instead."""
    with ThreadPoolExecutor(workers) as executor:
        for future in [executor.submit(empty, item) for item in range(100)]:
            future.result()
        start = time.perf_counter()
        futures = [executor.submit(empty, item) for item in range(tasks)]
        submitted = time.perf_counter()
        for future in futures:
            future.result()
        return submitted - start, time.perf_counter() - start


def plain(calls: Any, tasks: int) -> list[Any]:
    return [calls.submit(item) for item in range(tasks)]


def bulk(calls: Any, tasks: int) -> list[Any]:
    made: list[Any] = calls.submit_batch(range(tasks))
    return made


def on_pool(submit: Callable[[Any, int], list[Any]], workers: int, tasks: int, **settings: Any) -> Taken:
    pool = paceline.Pool(1)
    with paceline.WorkerPool(pool, threads=workers) as own:
        calls = own.task(name="empty", **settings)(empty)
        for task in submit(calls, 100):
            task.result()
        start = time.perf_counter()
        made = submit(calls, tasks)
        submitted = time.perf_counter()
        for task in made:
            task.result()
        taken = submitted - start, time.perf_counter() - start
        del made
    pool.shutdown()
    return taken


CASES: dict[str, Callable[[int, int], Taken]] = {
    "submit": lambda workers, tasks: on_pool(plain, workers, tasks),
    "submit_batch": lambda workers, tasks: on_pool(bulk, workers, tasks),
    "submit_batch, with retries and a timeout": lambda workers, tasks: on_pool(
        bulk, workers, tasks, retries=3, timeout=60.0, priority="high"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    workers, tasks = options.workers, options.tasks
    print(f"{tasks} empty tasks, {workers} threads, {options.rounds} rounds, medians")
    heads = ("standard/s", "paceline/s", "ratio") * 2
    print(f"{'case':<42}" + "".join(f"{head:>12}" for head in heads))
    for name, case in CASES.items():
        pairs = []
        for turn in range(options.rounds):
            if turn % 2:
                theirs, ours = standard(workers, tasks), case(workers, tasks)
            else:
                ours, theirs = case(workers, tasks), standard(workers, tasks)
            pairs.append((theirs, ours))
        line = f"{name:<42}"
        for which in (0, 1):
            line += f"{statistics.median(tasks / theirs[which] for theirs, _ in pairs):>12,.0f}"
            line += f"{statistics.median(tasks / ours[which] for _, ours in pairs):>12,.0f}"
            line += f"{statistics.median(t[which] / o[which] for t, o in pairs):>12.1f}"
        print(line)


if __name__ == "__main__":
    main()
