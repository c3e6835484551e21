"""How attempts of a worker pool's tasks are completed, natively and for who holds their Tasks."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import paceline

from . import _layout as layout
from ._arguments import nanos
from ._attempt import Attempt
from ._contain import interrupts, report, shown, told
from ._errors import Error
from ._hosts import base_of
from ._library import quick
from ._task import PermanentFailure, RetryAfter

if TYPE_CHECKING:
    from ._worker_pool import Core
else:
    Core = Any

#: Of ``pace_cq_completion_t``: token, flags, after_ns, message, error, status, result.
END = struct.Struct("=QI44xQQiIi4x")
TOKEN = struct.Struct("=Q")
ONE = ctypes.c_size_t(1)

#: What to call for a task, and by whose settings.
Job = tuple[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]


class Completer:
    """Runs attempts, one at a time, and completes them."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._complete = quick["pace_cq_complete"]
        self._end = ctypes.create_string_buffer(END.size)
        #: What runs now.
        self.job: Optional[Job] = None
        self.number = 0
        self.attempt = 0
        self.id = 0
        #: When it began, if it has a limit.
        self.began = 0.0
        #: The attempt that has failed last was no more.
        self.stale = False
        self._made: Optional[Attempt] = None

    def current(self, job: Job) -> Attempt:
        """What its function may ask and say."""
        made = self._made
        if made is None or made._token != self.attempt:
            made = self._made = Attempt(self, job)
        return made

    def let_out(self, raised: BaseException) -> None:
        """Raises what interrupts, if this is a thread of the user's."""
        core = self.core
        if interrupts(raised) and (core.most == 0 or not core.is_inside()):
            raise raised

    def fail(self, token: int, exception: Optional[BaseException], why: str) -> None:
        """Completes an attempt that has failed, or was never begun."""
        advice = after = 0
        job = self.core.jobs.get(token)
        if exception is not None and job is not None:
            why = _told(exception)
            advice, after = self._advice(exception, job[4])
        message = why.replace("\0", " ").encode("utf-8", "replace")
        place = base_of(message)
        END.pack_into(self._end, 0, self.attempt, layout.CQ_FAIL | advice, after, place, 0, 0, 0)
        result = self._complete(self.core.queue.pointer, self._end, ONE)
        status = END.unpack_from(self._end)[5]
        # Completed: see ``_recover``.
        self.job, self.stale = None, result == layout.ESTALE
        # As it is to be found.
        END.pack_into(self._end, 0, 0, 0, 0, 0, 0, 0, 0)
        if job is None:
            return
        task = job[0]
        # What one comes to that a retry has overtaken is not the task's.
        if exception is not None and not (result == layout.ESTALE and job[4].overlaps):
            task.last = exception
        if result != layout.OK:
            return
        if status != layout.TASK_RETRYING:
            self.core.jobs.pop(token, None)
            if status == layout.TASK_FAILED:
                task.fail_as(status, Error(why) if exception is None else exception)
            else:
                task.end_as(status)

    def _advice(self, exception: BaseException, calls: paceline.Calls[..., Any]) -> tuple[int, int]:
        # Not isinstance, which asks the exception itself.
        kind = type(exception)
        if issubclass(kind, PermanentFailure):
            return layout.CQ_PERMANENT, 0
        try:
            if issubclass(kind, RetryAfter):
                return layout.CQ_AFTER, nanos("seconds", exception.seconds)  # type: ignore[attr-defined]
            if calls.backoff is not None:
                return layout.CQ_AFTER, nanos("delay", calls.backoff(self.number))
        except BaseException as raised:
            what = "no delay could be had for the next attempt of %s"
            report(what, shown(calls.name), raised=raised)
            return layout.CQ_PERMANENT, 0
        return 0, 0


def _told(exception: BaseException) -> str:
    name, text = type(exception).__name__, told(exception)
    return f"{name}: {text}" if text else name
