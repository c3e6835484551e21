"""Ways to hand a pool tasks: ``pool.lane(...)`` and ``pool.strand()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future as StandardFuture
from itertools import repeat
from typing import Any

from ._arguments import function
from ._future import Future, new_batch
from ._members import Members
from ._runner import Posted, Task
from ._lane import Lane
from ._sources import Lanes, Serial
from ._scope import Scope
from ._typing import P, T


class Way:
    """A pool's methods for tasks, by another way in."""

    def __init__(self, pool: object, runner: Members) -> None:
        # While there is a way in the pool is not lost.
        self._pool = pool
        self._runner = runner

    def _add(self, tasks: list[Task], waits: bool = True) -> None:
        raise NotImplementedError

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> StandardFuture[T]:
        """Lets a thread call ``fn(*args, **kwargs)``; the future has what comes of it. Waits for room, or raises Full,
        as ``Pool.submit``.

        Raises Full, ShutDownError, ForkedError.
        """
        future: Future[T] = Future()
        self._add([(future, function("fn", fn), args, kwargs)])
        return future

    def post(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """As ``submit``, when nobody waits for it. What it raises goes to ``on_unhandled``."""
        self._add([(Posted(self._runner.unhandled_in), function("fn", fn), args, kwargs)])

    def try_submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> StandardFuture[T]:
        """As ``submit``, and never waits. Raises Full, ShutDownError, ForkedError."""
        future: Future[T] = Future()
        self._add([(future, function("fn", fn), args, kwargs)], waits=False)
        return future

    def try_post(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """As ``post``, and never waits. Raises Full, ShutDownError, ForkedError."""
        posted = Posted(self._runner.unhandled_in)
        self._add([(posted, function("fn", fn), args, kwargs)], waits=False)

    def submit_batch(
        self, fn: Callable[..., T], /, *iterables: Iterable[Any]
    ) -> list[StandardFuture[T]]:
        """A future for each call of ``fn`` with the iterables' items side by side. As far as there is room at once, no
        other task comes in between; what there is no room for waits, or raises Full, as in ``Pool.submit_batch``."""
        function("fn", fn)
        calls = list(zip(*iterables))
        futures: list[StandardFuture[T]] = new_batch(len(calls))
        self._add(list(zip(futures, repeat(fn), calls, repeat({}))))
        return futures

    def post_batch(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> None:
        """As ``submit_batch``, when nobody waits for it."""
        function("fn", fn)
        report = self._runner.unhandled_in
        self._add([(Posted(report), fn, args, {}) for args in zip(*iterables)])

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle a paceline.{type(self).__name__}: it belongs to this process")


class LaneRef(Way):
    """A pool's tasks in one lane; what ``Pool.lane`` gives. Any thread."""

    def __init__(self, pool: object, lanes: Lanes, lane: Lane) -> None:
        super().__init__(pool, lanes.runner)
        self._lanes = lanes
        self._lane = lane

    def scope(self) -> Scope:
        """As ``Pool.scope``, with tasks of this lane."""
        return Scope(self)

    def _add(self, tasks: list[Task], waits: bool = True) -> None:
        self._lanes.add_to(self._lane, tasks, waits)


class Strand(Way):
    """Runs tasks one at a time, in the order in which they were accepted, on whatever thread of the
    pool is free; no thread waits for another. What ``Pool.strand`` gives. Any thread.

    A task that raises is reported as the pool's others are, and the strand goes on. After 32 tasks
    other work has its turn. A strand that is dropped still runs what it has accepted. It has room for as many
    tasks as the pool's ``strand_capacity`` says.
    """

    def __init__(self, pool: object, runner: Members) -> None:
        super().__init__(pool, runner)
        self._serial = Serial(runner)

    def _add(self, tasks: list[Task], waits: bool = True) -> None:
        self._serial.add(tasks, self._serial.line, waits)
