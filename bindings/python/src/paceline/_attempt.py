"""What the function of a task of a worker pool may ask and say."""

from __future__ import annotations

import ctypes
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Optional

from . import _layout as layout
from ._clock import monotonic
from ._library import check, quick

if TYPE_CHECKING:
    from ._completer import Completer
    from ._coroutines import Run
else:
    Completer = Run = Any

#: What this thread runs.
here = threading.local()

#: The attempt whose coroutine this is called in.
coroutine: ContextVar[Optional[Run]] = ContextVar("paceline_coroutine", default=None)


class Attempt:
    """The attempt that runs: what ``current_attempt`` gives. For the thread that runs it, until it
    ends."""

    __slots__ = ("number", "id", "name", "_queue", "_token", "_began", "_timeout", "_deadline")

    def __init__(self, hand: Completer, job: tuple[Any, ...]) -> None:
        task, calls = job[0], job[4]
        #: 1 for the first attempt, 2 for the first retry.
        self.number: int = hand.number
        #: The task's number, as in its report.
        self.id: int = hand.id
        #: The name under which it was registered.
        self.name: str = calls.name
        self._queue = hand.core.queue
        self._token: int = hand.attempt
        self._began: float = hand.began
        self._timeout: Optional[float] = calls.timeout
        self._deadline: Optional[float] = None
        if calls.deadline is not None:
            self._deadline = task.due + calls.deadline

    @property
    def cancelled(self) -> bool:
        """Whether it should give up: its task was cancelled, its time is over, or the pool stops."""
        answer = ctypes.c_bool()
        reference = ctypes.byref(answer)
        status = quick.pace_cq_is_cancelled(self._queue.pointer, self._token, reference)
        if status == layout.ESTALE:
            return True
        check(status)
        return answer.value

    def heartbeat(self) -> None:
        """It still makes progress: the time of this attempt and its lease begin anew."""
        status = quick.pace_cq_renew(self._queue.pointer, self._token)
        if status != layout.ESTALE:
            check(status)
            self._began = monotonic()

    def time_left(self) -> Optional[float]:
        """How many seconds it has: until its time is over, or its task's. None: there is no limit."""
        ends = [] if self._deadline is None else [self._deadline]
        if self._timeout is not None:
            ends.append(self._began + self._timeout)
        return max(0.0, min(ends) - monotonic()) if ends else None

    def __repr__(self) -> str:
        return f"<paceline.Attempt {self.number} of {self.name!r}>"


def current_attempt() -> Attempt:
    """The attempt that this thread runs, or this coroutine is called in. Raises RuntimeError outside of tasks."""
    hand = getattr(here, "hand", None)
    job = None if hand is None else hand.job
    if job is None:
        hand = coroutine.get()
        job = None if hand is None else hand.job
    if job is None:
        raise RuntimeError("current_attempt() is for functions that run as tasks of a WorkerPool")
    return hand.current(job)  # type: ignore[no-any-return, union-attr]
