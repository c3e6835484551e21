"""A standard future that pays for a lock only when somebody looks before it is over.

The standard ``Future`` makes a Condition for every task, which is most of what it costs. Here the
thread that runs the task stores what came of it in ``_outcome`` and looks whether anybody cares; only
who waits, cancels, or adds a callback *attaches*: it makes the lock and the standard fields, and from
then on all transitions happen under that lock, as in the standard library. So
``concurrent.futures.wait``, ``as_completed`` and ``asyncio.wrap_future``, which go through
``_condition``, meet what they expect.

    thread:    _outcome = a Mark                  attaching:  _lock = a lock, if there is none
               _lock there? claim under it                   look at _outcome, fill the fields
               run
               _outcome = what came of it
               _lock there? finish under it

Invariants
1. Each side writes first and then looks at what the other writes. So either the thread sees the lock
   and acts under it, or who attaches sees how far the thread was; if both, the second finds done what
   it would do.
2. ``_lock`` and then the first ``_state`` are stored once, each by one operation on the instance's dict, and no
   lock is held meanwhile. So all who attach, a finalizer or a signal handler in the midst of another's attaching
   included, find what is there and make what is missing. Who makes ``_state`` has looked at ``_outcome``
   after ``_lock`` was there.
3. From then on ``_state`` changes under the lock only, and ``_condition`` is a Condition over it.
   ``_result`` or ``_exception`` is stored before ``_state`` becomes FINISHED, and neither changes
   afterwards: who has seen FINISHED needs no lock. Who waits has the Condition before it takes the lock.
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
from typing import Any, Optional, TypeVar

from ._arguments import function, patience
from ._contain import report
from ._errors import DeadlockError

T = TypeVar("T")

_DONE = frozenset((CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED))


class Mark:
    """In the place of an outcome: there is none yet. ``thread`` is the one that runs the task; 0: none does yet."""

    __slots__ = ("thread",)

    def __init__(self, thread: int = 0) -> None:
        self.thread = thread


WAITS = Mark()


class Raised:
    """In the place of an outcome: what was raised instead."""

    __slots__ = ("exception",)

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception


class Future(StandardFuture[T]):
    """What ``submit`` returns: a ``concurrent.futures.Future`` in every respect. Any thread."""

    _outcome: Any = WAITS
    _lock: Any = None
    _state: str
    _result: Any = None
    _exception: Optional[BaseException] = None
    _made: Optional[threading.Condition] = None
    # Made with the Condition, and with the first callback.
    _waiters: Any = ()
    _done_callbacks: Any = ()

    def __init__(self) -> None:
        """All is as the class says, until somebody attaches."""

    def _attach(self) -> Any:
        """The lock. From here on the standard fields are there."""
        fields = self.__dict__
        lock = self._lock
        if lock is None:
            lock = fields.setdefault("_lock", threading.RLock())
        if "_state" not in fields:
            fields.setdefault("_state", self._state_from(self._outcome))
        return lock

    def _state_from(self, outcome: Any) -> str:
        if type(outcome) is Mark:
            return RUNNING if outcome.thread else PENDING
        if type(outcome) is Raised:
            self._exception = outcome.exception
        else:
            self._result = outcome
        return FINISHED

    def __getattr__(self, name: str) -> Any:
        """Only ``_state`` is not there before somebody attaches."""
        if name != "_state":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with self._attach():
            return self.__dict__["_state"]

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        lock, made = self._attach(), self._made
        if made is None:
            fields = self.__dict__
            fields.setdefault("_waiters", [])
            made = fields.setdefault("_made", threading.Condition(lock))
        return made

    def cancel(self) -> bool:
        """Cancels it unless it runs or is done; says whether it is cancelled."""
        with self._attach():
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
        """Whether the call was cancelled before it began."""
        return self._lock is not None and self._state in (CANCELLED, CANCELLED_AND_NOTIFIED)

    def running(self) -> bool:
        """Whether it is being executed."""
        if self._lock is None:
            outcome = self._outcome
            return type(outcome) is Mark and outcome.thread != 0
        return self._state == RUNNING

    def done(self) -> bool:
        """Whether it was cancelled or has finished."""
        if self._lock is None:
            return type(self._outcome) is not Mark
        return self._state in _DONE

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Calls ``fn(self)`` when it is done: on the thread that ends it, or here if it is done."""
        function("fn", fn)
        with self._attach():
            if self._state not in _DONE:
                if not self._done_callbacks:
                    self._done_callbacks = []
                self._done_callbacks.append(fn)
                return
        try:
            fn(self)
        except Exception as raised:
            self._report_callback(raised)

    def result(self, timeout: Optional[float] = None) -> T:
        """What the call returned, or raises what it raised; waits up to ``timeout`` seconds."""
        timeout = patience("timeout", timeout)
        outcome: Any = self._outcome
        kind = type(outcome)
        if kind is not Mark and kind is not Raised and self._lock is None:
            finished: T = outcome
            return finished
        del outcome
        if timeout != 0:
            self._check_thread()
        # Not the standard ``result``, which takes an exception that is false for none.
        raised = super().exception(timeout)
        if raised is None:
            result: T = self._result
            return result
        try:
            raise raised
        finally:
            # The exception's traceback holds this frame.
            del raised, self

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What the call raised, or None; waits up to ``timeout`` seconds."""
        timeout = patience("timeout", timeout)
        if self._state == FINISHED:
            return self._exception
        if timeout != 0:
            self._check_thread()
        return super().exception(timeout)

    def _check_thread(self) -> None:
        """Raises DeadlockError: this thread is inside the task, which would never end."""
        outcome: Any = self._outcome
        if type(outcome) is Mark and outcome.thread == threading.get_ident() and not self.done():
            raise DeadlockError("a task waits for its own result, and would never end")

    def _invoke_callbacks(self) -> None:
        """Calls all of them. What is no Exception the caller has afterwards: the first one, the others are
        logged."""
        first = None
        for callback in self._done_callbacks:
            try:
                callback(self)
            except Exception as raised:
                self._report_callback(raised)
            except BaseException as raised:
                if first is None:
                    first = raised
                else:
                    self._report_callback(raised)
        if first is not None:
            try:
                raise first
            finally:
                # The exception's traceback holds this frame.
                del first

    def _report_callback(self, raised: BaseException) -> None:
        report("exception calling callback for %s", self, raised=raised, logger=LOGGER)

    def set_running_or_notify_cancel(self) -> bool:
        """For executors: claims it for running; False if it was cancelled."""
        with self._attach():
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
        with self._attach():
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

    def set_exception(self, exception: Optional[BaseException]) -> None:
        """For executors: ends it with an exception."""
        with self._attach():
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

    # --- by the thread that runs the task ----------------------------------------------------------

    def claim_attached(self) -> bool:
        """Somebody has attached before it ran: False, if only to cancel it."""
        with self._lock:
            if self._state not in (PENDING, RUNNING):
                return False
            self._state = RUNNING
            return True

    def succeed_attached(self, result: Any) -> None:
        """Somebody has attached: tells those who wait, unless it found the result there."""
        with self._lock:
            running = self._state == RUNNING
        if running:
            self.set_result(result)

    def fail(self, exception: BaseException) -> None:
        """Ends the future with the exception that its function has raised."""
        self._outcome = Raised(exception)
        if self._lock is not None:
            with self._lock:
                running = self._state == RUNNING
            if running:
                self.set_exception(exception)


def new_batch(count: int) -> list[Any]:
    """As many futures, for less than one by one."""
    return list(map(Future.__new__, repeat(Future, count)))
