"""``Task``: what has been submitted to a worker pool, and how it ended.

A Task is a future that is not cancelled, or run, by itself: how it stands is known natively, under its
id, and only its end is stored here, by the thread that learns of it.

    submit ──► native: waits, runs, is retried, …  ──► its thread: the value or exception ──► waiters
                  ▲ cancel, status, report (by id)

Invariants
1. ``_outcome`` is WAITS until the end, and is written once, by the thread that has completed the last
   attempt or taken the end: natively a task ends once, and tells that thread alone.
   An end otherwise than by an attempt may be seen by a thread that waits, too: ``_told`` says which of
   them stores it.
2. That thread writes ``_outcome`` and then looks at ``_lock``; who attaches makes ``_lock`` and then
   looks at ``_outcome`` (see ``_future``). So one of them stores it where waiters find it.
3. The id is given back once: by the first ``report``, or when the Task is lost.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Generator
from concurrent.futures import CancelledError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, Optional, Protocol, TypeVar

from . import _layout as layout
from ._arguments import patience
from ._clock import monotonic
from ._attempt import here
from ._errors import DeadlockError, Error, Full, TimeoutError, refuse_in_loop
from ._future import Future, Mark, Raised
from ._hosts import Native
from ._library import check, quick

T = TypeVar("T")

#: Ends that come as events, and how often who waits looks for one. Seconds.
_TOLD = frozenset((layout.TASK_CANCELLED, layout.TASK_TIMED_OUT, layout.TASK_REJECTED))
_LOOK = 0.05

_OVER = frozenset((CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED))


class PermanentFailure(Exception):
    """Raised by a task: no other attempt will help."""


class RetryAfter(Exception):
    """Raised by a task, or by a handler of a hub: another attempt may help, if there is one left, not earlier than
    ``seconds`` from now, 0 to 3e9. With anything else as ``seconds`` there is no other attempt, which is logged."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"to be retried after {seconds} s")
        self.seconds = seconds


class TaskStatus(IntEnum):
    """How a task stands. COMPLETED and each one with a greater number (FAILED, CANCELLED, TIMED_OUT, REJECTED) is final."""

    #: It waits for its first attempt.
    PENDING = layout.TASK_PENDING
    #: An attempt of the task runs now.
    RUNNING = layout.TASK_RUNNING
    #: An attempt has failed, and the next one is to come.
    RETRYING = layout.TASK_RETRYING
    #: The task's function has returned a value.
    COMPLETED = layout.TASK_COMPLETED
    #: Its last attempt has raised.
    FAILED = layout.TASK_FAILED
    #: It was cancelled, or the pool stopped.
    CANCELLED = layout.TASK_CANCELLED
    #: One of its times was over.
    TIMED_OUT = layout.TASK_TIMED_OUT
    #: It had been taken in, and was dropped for the sake of others.
    REJECTED = layout.TASK_REJECTED

    @property
    def is_end(self) -> bool:
        """Whether nothing more comes after it."""
        return self >= TaskStatus.COMPLETED


@dataclass(frozen=True)
class TaskReport(Generic[T]):
    """How a task of a worker pool has ended."""

    status: TaskStatus
    #: The task's number, which no other task of this process has or had.
    id: int
    #: The name under which it was registered.
    name: str
    #: What it returned, if it is COMPLETED.
    value: Optional[T]
    #: What ``result`` raises, if it is not. CancelledError if it was cancelled.
    error: Optional[BaseException]
    #: How many attempts were begun.
    attempts: int
    #: Seconds from its submission, or from when it was due, to its first attempt; or to its end.
    queue_time: float
    #: Seconds that its attempts took together.
    run_time: float
    #: The name of the Python thread that ran the last attempt, as in ``WorkerPool.worker_stats``. None: no attempt
    #: was begun.
    worker: Optional[str] = None


class Home(Protocol):
    """The worker pool of a task."""

    native: Native

    def give_back(self, id: int) -> None:
        """Nobody asks for the task any more."""


class Task(Future[T]):
    """What has been submitted: a ``concurrent.futures.Future`` that can be retried, and awaited. Losing
    it changes nothing. Any thread.

    ``result`` gives what the function returned, or raises what its last attempt raised; TimeoutError if
    one of its times was over, CancelledError if it was cancelled, Full if it was dropped.
    """

    _end: int = layout.TASK_COMPLETED
    #: What its last attempt but this one has raised.
    last: Optional[BaseException] = None
    #: It ran, or was with a host, when it was cancelled.
    asked: bool = False
    #: It waits no more, if somebody watches for that.
    begun: bool = False
    #: The thread that runs it, or ran it last.
    worker: Optional[str] = None
    #: Its attempt that runs on an event loop.
    run: Any = None
    _told: bool = False
    #: From when its limits count, by ``monotonic``, if it has a deadline.
    due: float = 0.0
    _report: Optional[TaskReport[T]] = None
    #: Whose it is, and its id there. A task that was not accepted has none.
    at: tuple[Optional[Home], int] = (None, 0)

    def cancel(self) -> bool:
        """True: it has not begun, or waited for its next attempt, and is cancelled. False: it runs, and
        is asked to give up (``current_attempt().cancelled``), or it has ended."""
        home, id = self.at
        if self.done() or home is None:
            return self.cancelled()
        cancelled = ctypes.c_bool()
        check(quick.pace_workers_cancel(home.native.pointer, id, ctypes.byref(cancelled)))
        if cancelled.value:
            self._end = layout.TASK_CANCELLED
            return super().cancel()
        self.asked = True
        if self.run is not None:
            self.run.cancel()
        return self.cancelled()

    def drop(self) -> bool:
        """True: it waited, and has ended as REJECTED, so that others have room. False: it runs, or has
        ended."""
        home, id = self.at
        if self.done() or home is None or not id:
            return False
        dropped = ctypes.c_bool()
        check(quick.pace_workers_drop(home.native.pointer, id, ctypes.byref(dropped)))
        return dropped.value

    def result(self, timeout: Optional[float] = None) -> T:
        """What the function returned, or raises what its last attempt raised; waits up to ``timeout``
        seconds."""
        timeout = patience("timeout", timeout)
        if type(self._outcome) is Mark:
            self._wait(timeout)
            timeout = 0
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What ``result`` raises, or None; waits up to ``timeout`` seconds."""
        timeout = patience("timeout", timeout)
        if type(self._outcome) is Mark:
            self._wait(timeout)
            timeout = 0
        return super().exception(timeout)

    def _wait(self, timeout: Optional[float]) -> None:
        """Waits until it has ended, or the time is over. While all threads of its pool run what does not
        listen, nobody takes ends: so this looks for itself, now and then."""
        if timeout != 0 and not self.done():
            self._check_own(getattr(here, "hand", None))
            refuse_in_loop("a wait for a task", "the task itself")
        end = None if timeout is None else monotonic() + timeout
        while not self.done():
            left = _LOOK if end is None else min(_LOOK, end - monotonic())
            if left <= 0:
                return
            with self._condition:
                if self._state in _OVER or self._condition.wait(left):
                    continue
            self.look()

    def _check_own(self, hand: Any) -> None:
        """Raises DeadlockError: who waits is an attempt of this task."""
        job = None if hand is None else hand.job
        if job is not None and job[0] is self:
            raise DeadlockError(f"a task of {job[4].name!r} waits for itself, and would never end")

    def look(self) -> bool:
        """Ends it, if natively it has ended otherwise than by an attempt. Whether it has ended."""
        home, id = self.at
        status = ctypes.c_uint32()
        if home is None or quick.pace_workers_status(home.native.pointer, id, ctypes.byref(status)):
            return self.done()
        if status.value in _TOLD:
            self.end_as(status.value)
        return self.done()

    def running(self) -> bool:
        """Whether an attempt of the task runs now."""
        return self.status is TaskStatus.RUNNING

    @property
    def status(self) -> TaskStatus:
        """How it stands. It may be out of date at once, unless it is an end. One that has ended natively
        is still RUNNING here until its result is there."""
        if self.done():
            return TaskStatus(self._end)
        home, id = self.at
        status = ctypes.c_uint32()
        if home is None or quick.pace_workers_status(home.native.pointer, id, ctypes.byref(status)):
            return TaskStatus(self._end if self.done() else layout.TASK_RUNNING)
        if status.value >= layout.TASK_COMPLETED and not self.done():
            return TaskStatus.RUNNING
        return TaskStatus(status.value)

    def report(self, timeout: Optional[float] = None) -> TaskReport[T]:
        """How it ended; waits up to ``timeout`` seconds, and raises TimeoutError then. Raises nothing of
        the task's own."""
        try:
            error = self.exception(timeout)
        except CancelledError as cancelled:
            error = cancelled
        with self._attach():
            if self._report is None:
                self._report = self._make_report(error)
            return self._report

    def _make_report(self, error: Optional[BaseException]) -> TaskReport[T]:
        home, id = self.at
        assert home is not None
        told = layout.TaskReport()
        told.struct_size = ctypes.sizeof(told)
        self.at = (home, 0)
        # It has ended: this does not wait.
        check(quick.pace_workers_wait(home.native.pointer, id, 0, ctypes.byref(told)))
        return TaskReport(
            status=TaskStatus(told.status),
            id=told.id,
            name=told.name.decode("utf-8", "replace"),
            value=self._result if error is None else None,
            error=error,
            attempts=told.attempts,
            queue_time=told.queue_time_ns / 1e9,
            run_time=told.run_time_ns / 1e9,
            worker=self.worker,
        )

    def __await__(self) -> Generator[Any, None, T]:
        """In a coroutine: as ``result``, but a StopIteration of the task's arrives as a RuntimeError from it.
        Cancelling it cancels the task."""
        loop = asyncio.get_running_loop()
        if self.run is not None and not self.done() and self.run.is_here():
            self._check_own(self.run)
        ended: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell(_: object) -> None:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:
                # The loop is closed.
                pass

        self.add_done_callback(tell)
        try:
            yield from ended
        except asyncio.CancelledError:
            self.cancel()
            raise
        try:
            return self.result(0)
        except CancelledError:
            raise asyncio.CancelledError from None
        finally:
            # The exception's traceback holds this frame.
            del self

    def __del__(self) -> None:
        home, id = self.at
        if id and home is not None:
            home.give_back(id)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Task: it belongs to this process")

    # --- by the thread that learns of its end ------------------------------------------------------

    def succeed(self, value: T) -> None:
        """Ends the task with the value that its function has returned."""
        self._outcome = value
        if self._lock is not None:
            with self._lock:
                waits = self._state not in _OVER
            if waits:
                self.set_result(value)

    def fail_as(self, end: int, exception: BaseException) -> None:
        """Ends the task with this status and error."""
        self._end = end
        self._outcome = Raised(exception)
        if self._lock is not None:
            with self._lock:
                waits = self._state not in _OVER
            if waits:
                self.set_exception(exception)

    def end_as(self, end: int) -> None:
        """It has ended otherwise than by an attempt. Threads that wait may be the first to see it."""
        with self._attach():
            if self._told:
                return
            self._told = True
        if end == layout.TASK_CANCELLED:
            self._end = end
            try:
                super().cancel()
            finally:
                # Tells those who wait for several.
                with self._attach():
                    if self._state == CANCELLED:
                        self.set_running_or_notify_cancel()
            return
        if end == layout.TASK_TIMED_OUT:
            exception: BaseException = TimeoutError("the task's time is over")
        elif end == layout.TASK_FAILED:
            exception = Error("its attempt has given no sign of life for as long as its lease")
        else:
            exception = Full("the task was dropped for the sake of others")
        exception.__cause__ = self.last
        self.fail_as(end, exception)
