"""Runs the tasks of a durable queue, as a process of its own:

    python -m paceline.worker pictures:queue

``pictures`` is a module that can be imported from here, ``queue`` the name of its ``DurableQueue``. Any number of such
workers may run, on any hosts. SIGTERM and SIGINT end a worker: it takes no more tasks, and waits for those that it has begun for
up to ``--drain`` seconds. Tasks that are left are run again by another worker. A second signal ends it at once. The exit status is 0,
or 1 with one line that names what was left or what is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Optional

from . import _workers, ops
from ._bridge import Bridge
from ._clock import monotonic
from ._durable import DurableQueue
from ._errors import Error
from ._hub import Hub
from ._signals import Signals

_log = logging.getLogger("paceline.worker")

_LEVELS = ("debug", "info", "warning", "error", "critical")
#: Seconds between looks for a signal while the broker is away.
_LOOK = 0.1
#: Seconds that what runs has, once it is told to stop.
_STOP = 1.0


class _Wrong(Exception):
    """What keeps it from working, as one line."""


def _queue_at(place: str) -> DurableQueue:
    """What "module:name" says. Raises _Wrong; what the module raises."""
    module, _, path = place.partition(":")
    if not module or not path:
        raise _Wrong(f"{place!r} names no queue; allowed: module:name, as pictures:queue")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        # It may be one that the module imports.
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise
        raise _Wrong(f"there is no module {missing.name!r} in {os.getcwd()}, nor on the path") from None
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise _Wrong(f"{module} has no {path!r}; allowed: the name of its DurableQueue") from None
    if not isinstance(found, DurableQueue):
        kind = type(found).__name__
        raise _Wrong(f"{place} is of the type {kind}; allowed: a paceline.DurableQueue") from None
    return found


def _why(queue: DurableQueue) -> str:
    """Why it is not connected: what another connection with the same settings hears."""
    with Hub(queue._workers._core.pool) as hub:
        bridge = Bridge(hub, queue._nats, exports=["paceline.worker"])
        try:
            bridge.wait_connected(_STOP)
            return bridge.stats().reason or "it has not answered in time"
        finally:
            bridge.close(0)


def _connect(queue: DurableQueue, signals: Signals, seconds: float) -> bool:
    """False: a signal came before the broker. Raises _Wrong."""
    end = monotonic() + seconds
    while not queue.wait_connected(_LOOK):
        if signals.wait(0) is not None:
            return False
        if monotonic() >= end:
            raise _Wrong(f"the broker of the queue {queue.name!r} cannot be reached: {_why(queue)}")
    return True


def _left(held: Iterable[str], unstored: int) -> str:
    """What there is to be told of it; empty: nothing."""
    tasks, parts = Counter(held), []
    if tasks:
        names = ", ".join(f"{count} of {name}" for name, count in sorted(tasks.items()))
        parts.append(f"tasks that had not ended, and are run again: {names}")
    if unstored:
        parts.append(f"results and submissions that were not stored: {unstored}")
    return "; ".join(parts)


def _drain(queue: DurableQueue, seconds: float) -> tuple[str, bool]:
    """Ends it within this time. Returns what was left, and whether a thread is still in a task."""
    end, workers = monotonic() + seconds, queue._workers
    unstored, held = 0, queue._taker.held
    try:
        unstored = queue.close(seconds)
        # Otherwise all have ended, and the last may be about to be taken out.
        left = [*held.copy().values()] if monotonic() >= end else []
    except KeyboardInterrupt:
        left, end = [*held.copy().values()], 0.0
    report = workers.shutdown(drain=max(0.0, end - monotonic()), stop=_STOP)
    return _left(left, unstored), bool(report.stuck)


def _serve(given: argparse.Namespace) -> tuple[str, bool]:
    """Until a signal, and to the end of the drain. As ``_drain``."""
    queue = _queue_at(given.queue)
    logging.basicConfig(
        level=given.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    workers = queue._workers
    if given.threads is not None and workers._core.most != given.threads:
        raise _Wrong(
            f"--threads is {given.threads}, and the program has made a WorkerPool of {workers._core.most} threads; "
            "allowed: one that is made without threads=, or that number"
        )
    with ExitStack() as ended:
        with Signals() as signals:
            queue.open(work=True)
            if given.ops is not None:
                page = ended.enter_context(ops.serve(workers._core.pool, given.ops))
                _log.info("operations page: http://%s", page.address)
            if _connect(queue, signals, given.connect):
                names = ", ".join(sorted(queue._taker.functions))
                _log.info("queue %s: %d threads run %s", queue.name, workers._core.most, names)
                signals.wait()
        # From here on another signal ends the process.
        _log.info("queue %s: it takes no more tasks, and ends within %g s", queue.name, given.drain)
        return _drain(queue, given.drain)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 3e9:
        raise ValueError
    return seconds


def _threads(text: str) -> int:
    threads = int(text)
    if not 1 <= threads <= 1000:
        raise ValueError
    return threads


def main(arguments: Optional[list[str]] = None) -> int:
    """The command. Its status: 0 if it has drained, otherwise 1."""
    parser = argparse.ArgumentParser(
        prog="python -m paceline.worker",
        description="Runs the tasks of a durable queue until SIGTERM or SIGINT, and drains then.",
    )
    parser.add_argument("queue", help="module:name of a DurableQueue, as pictures:queue")
    parser.add_argument(
        "--threads",
        type=_threads,
        help="how many threads run tasks, 1 to 1000 (default: as the program says, or 4)",
    )
    parser.add_argument(
        "--drain",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long tasks may take still after the signal (default: 30)",
    )
    parser.add_argument(
        "--connect",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long the broker may be away at the start (default: 30); later it waits for it without end",
    )
    parser.add_argument(
        "--log-level",
        choices=_LEVELS,
        default="info",
        help="of what is written to stderr, unless the program sets its log up itself (default: info)",
    )
    parser.add_argument(
        "--ops", metavar="HOST:PORT", help="serves the operations page there, as 127.0.0.1:9090"
    )
    given = parser.parse_args(arguments)
    if given.threads is not None:
        _workers.usual_threads = given.threads
    stuck = False
    try:
        left, stuck = _serve(given)
    except (_Wrong, Error) as wrong:
        left = str(wrong)
    if left:
        print(f"paceline.worker: {left}", file=sys.stderr, flush=True)
    if stuck:
        # The interpreter's end would wait for what runs.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(1)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
