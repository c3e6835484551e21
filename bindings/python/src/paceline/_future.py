"""A standard future that pays for waiting only when somebody waits.

The standard ``Future`` makes a Condition, which is most of what it costs, for every task. Here the
Condition is made around the future's own lock when it is asked for first. All transitions happen
under that lock, as they do in the standard library, so that ``concurrent.futures.wait``,
``as_completed`` and ``asyncio.wrap_future``, which go through ``_condition``, meet what they expect.

Invariants
1. ``_state`` changes under ``_lock`` only, and ``_condition`` is a Condition over ``_lock``.
2. ``_result`` or ``_exception`` is stored before ``_state`` becomes FINISHED, and neither changes
   afterwards: who has seen FINISHED needs no lock.
3. Whoever has the Condition made it (or saw it made) under ``_lock``, so whoever finishes the future
   under ``_lock`` either sees it or comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future as StandardFuture
from concurrent.futures import InvalidStateError
from concurrent.futures._base import (
    CANCELLED,
    CANCELLED_AND_NOTIFIED,
    FINISHED,
    LOGGER,
    PENDING,
    RUNNING,
)
from itertools import repeat
from typing import Any, TypeVar

T = TypeVar("T")

_DONE = frozenset((CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED))


class Future(StandardFuture[T]):
    """What ``submit`` returns: a ``concurrent.futures.Future`` in every respect. Any thread."""

    _state: str = PENDING
    _result: Any = None
    _exception: BaseException | None = None
    _made: threading.Condition | None = None
    # Made with the Condition, and with the first callback.
    _waiters: Any = ()
    _done_callbacks: Any = ()

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        with self._lock:
            if self._made is None:
                self._waiters = []
                self._made = threading.Condition(self._lock)
            return self._made

    def cancel(self) -> bool:
        """Cancels it unless it runs or is done; says whether it is cancelled."""
        with self._lock:
            if self._state in (RUNNING, FINISHED):
                return False
            if self._state != PENDING:
                return True
            self._state = CANCELLED
            if self._made is not None:
                self._made.notify_all()
        self._invoke_callbacks()
        return True

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def running(self) -> bool:
        """Whether it is being executed."""
        return self._state == RUNNING

    def done(self) -> bool:
        """Whether it was cancelled or has finished."""
        return self._state in _DONE

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Calls ``fn(self)`` when it is done: on the thread that ends it, or here if it is done."""
        with self._lock:
            if self._state not in _DONE:
                if not self._done_callbacks:
                    self._done_callbacks = []
                self._done_callbacks.append(fn)
                return
        try:
            fn(self)
        except Exception:
            LOGGER.exception("exception calling callback for %r", self)

    def result(self, timeout: float | None = None) -> T:
        """What the call returned, or raises what it raised; waits up to ``timeout`` seconds."""
        if self._state == FINISHED and self._exception is None:
            finished: T = self._result
            return finished
        try:
            result: T = super().result(timeout)
            return result
        finally:
            # The exception's traceback holds this frame.
            del self

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call raised, or None; waits up to ``timeout`` seconds."""
        if self._state == FINISHED:
            return self._exception
        return super().exception(timeout)

    def _invoke_callbacks(self) -> None:
        for callback in self._done_callbacks:
            try:
                callback(self)
            except Exception:
                LOGGER.exception("exception calling callback for %r", self)

    def set_running_or_notify_cancel(self) -> bool:
        """For executors: claims it for running; False if it was cancelled."""
        with self._lock:
            if self._state == PENDING:
                self._state = RUNNING
                return True
            if self._state == CANCELLED:
                self._state = CANCELLED_AND_NOTIFIED
                for waiter in self._waiters:
                    waiter.add_cancelled(self)
                return False
            LOGGER.critical("Future %s in unexpected state: %s", id(self), self._state)
            raise RuntimeError("Future in unexpected state")

    def set_result(self, result: T) -> None:
        """For executors: ends it with a result."""
        with self._lock:
            if self._state in _DONE:
                raise InvalidStateError(f"{self._state}: {self!r}")
            self._result = result
            self._state = FINISHED
            if self._made is not None:
                for waiter in self._waiters:
                    waiter.add_result(self)
                self._made.notify_all()
        if self._done_callbacks:
            self._invoke_callbacks()

    def set_exception(self, exception: BaseException | None) -> None:
        """For executors: ends it with an exception."""
        with self._lock:
            if self._state in _DONE:
                raise InvalidStateError(f"{self._state}: {self!r}")
            self._exception = exception
            self._state = FINISHED
            if self._made is not None:
                for waiter in self._waiters:
                    waiter.add_exception(self)
                self._made.notify_all()
        if self._done_callbacks:
            self._invoke_callbacks()


#: How many futures of a batch share a lock: few enough that threads seldom meet at one.
_SHARERS = 64


def new_batch(count: int) -> list[Any]:
    """As many futures, for less than one by one."""
    futures = list(map(Future.__new__, repeat(Future, count)))
    for first in range(0, count, _SHARERS):
        lock = threading.RLock()
        for future in futures[first : first + _SHARERS]:
            future._lock = lock
    return futures
