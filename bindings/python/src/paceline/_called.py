"""Handlers of a hub that native code calls: in the publisher's thread, one at a time with all others on the hub's strand,
or several at once on the threads of the pool.

They are subscriptions as those of C: native code keeps their mailboxes, tries messages again, restarts and suspends. The
functions that it calls are few and are never freed; by a number they find the handler, which is forgotten when native code
says that nothing runs and will run.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Optional, cast

from . import _layout as layout
from ._arguments import seconds, text, whole
from ._contain import LEAVING, Failures, failure_of, guarded, here, report
from ._errors import DeadlockError, StaleError
from ._library import check, lib, nanoseconds, quick
from ._mailbox import WAYS, Settings, SubscriptionStats, latency_of
from ._message import MESSAGE, message_of
from ._policy import Retry
from ._supervision import Handlers, Terms, failed_at, is_crash
from ._task import PermanentFailure, RetryAfter

if TYPE_CHECKING:
    from ._subscriptions import Core
else:
    Core = Any

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))
_DROP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RESTART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, layout.Text, ctypes.c_uint64)

EXECUTIONS = {
    "serial": layout.EXECUTION_SERIAL,
    "inline": layout.EXECUTION_INLINE,
    "concurrent": layout.EXECUTION_CONCURRENT,
    "strand": layout.EXECUTION_STRAND,
}


class _Inside(threading.local):
    """The handlers that this thread is in, the innermost last."""

    called: tuple[Called, ...] = ()


_inside = _Inside()


class Called:
    """A subscription whose handler native code calls. It knows nothing of the Hub and the Subscription before it."""

    def __init__(
        self,
        core: Core,
        pattern: str,
        handler: Callable[..., Any],
        settings: Settings,
        execution: str,
        threads: int,
        on_error: Optional[Callable[..., Any]],
        terms: Terms,
    ) -> None:
        self.core = core
        self.pattern = pattern
        self.handlers = Handlers(terms, handler)
        self.on_error = on_error
        self.terms = terms
        self.measured = settings.measured
        self.handled = 0
        self.errors = 0
        #: Failures after which there is no other attempt.
        self.given_up = 0
        self.last_error: Optional[BaseException] = None
        self.failures = Failures()
        self.over = threading.Event()
        #: What native code hears of a crash, by thread, until it restarts the handler there.
        self.crashes: dict[int, BaseException] = {}
        #: Once it was unsubscribed: its counts before, of which what was handled and given up since is none, and
        #: whether what waited is handled still.
        self.final: Optional[tuple[SubscriptionStats, int, int, bool]] = None
        options = settings.native()
        options.execution = EXECUTIONS[execution]
        options.threads = whole("threads", threads)
        _fill(options, terms)
        options.on_restart = ctypes.cast(_restart, ctypes.c_void_p)
        core.keep_filter(settings.filter)
        if execution == "inline":
            # Publishing calls it back.
            core.calls_back = True
        self.number = next(_numbers)
        self.name = ctypes.c_uint64()
        _called[self.number] = self
        try:
            check(
                lib.pace_hub_subscribe(
                    core.pointer(),
                    text("pattern", pattern),
                    ctypes.byref(options),
                    _handle,
                    self.number,
                    _drop,
                    ctypes.byref(self.name),
                )
            )
        except BaseException:
            _called.pop(self.number, None)
            raise
        core.add_called(self)

    # --- by native code ------------------------------------------------------------------------------

    def run(self, at: int, outcome: Any) -> None:
        outer = _inside.called
        _inside.called = (*outer, self)
        try:
            message = message_of(ctypes.string_at(at, MESSAGE.size))
            handler = None
            try:
                handler = self.handlers.renewed() if self.handlers.stale else self.handler
                handler(message)
            except BaseException as raised:
                # Without a handler it is a failed restart.
                crashed = handler is None or is_crash(raised)
                outcome[0] = layout.EPANIC if crashed else layout.EFAILED
                self.fail(message, raised, crashed)
            else:
                outcome[0] = layout.OK
                self.handled += 1
        finally:
            _inside.called = outer

    def fail(self, message: Any, raised: BaseException, crashed: bool) -> None:
        self.last_error = raised
        self.errors += 1
        if self.on_error is not None:
            try:
                self.on_error(message, raised)
            except BaseException as failed:
                report("the hook of a handler that has failed has failed", raised=failed)
        quick.pace_message_fail(failure_of(raised).replace("\0", "").encode("utf-8", "replace"))
        after = _advice(self.terms.retry, message.attempt, raised)
        if self.on_error is None:
            # Natively no attempt may follow when the time for retries is over.
            is_final = after is None or self.terms.retry is None or self.terms.retry.within is not None
            failed_at(self.failures, message.key, raised, is_final)
        if after is None:
            self.given_up += 1
            quick.pace_message_permanent()
        elif after > 0:
            quick.pace_message_retry_after(nanoseconds(after))
        if crashed:
            # Native code decides after this what becomes of it, and of others of its supervisor: see `restarted`.
            self.crashes[threading.get_ident()] = raised
            calls = here()
            if calls is not None and issubclass(type(raised), LEAVING):
                # The publisher's thread is the user's.
                calls.leave(raised)

    @property
    def handler(self) -> Callable[..., Any]:
        handler: Callable[..., Any] = self.handlers.handler
        return handler

    def restarted(self, failed: bool, count: int) -> None:
        crash = self.crashes.pop(threading.get_ident(), None)
        if failed:
            self.terms.supervisor._alarm()
        self.handlers.restarted(crash if failed else None, count)

    def dropped(self) -> None:
        """It has ended, and nothing runs."""
        _called.pop(self.number, None)
        self.core.forget_called(self)
        self.failures.end()
        self.over.set()

    # --- by whoever has it -----------------------------------------------------------------------------

    def stats(self) -> SubscriptionStats:
        """Its counts."""
        final = self.final
        if final is not None:
            return self._after_the_end(*final)
        raw = layout.SubscriptionStats()
        raw.struct_size = ctypes.sizeof(raw)
        native = self.core.native.pointer
        check(quick.pace_subscription_stats(native, self.name, ctypes.byref(raw)))
        names = list(SubscriptionStats.__dataclass_fields__)[:-2]
        latency = latency_of(raw) if self.measured else None
        values = (getattr(raw, name) for name in names)
        return SubscriptionStats(*values, latency=latency, suspended=bool(raw.suspended))

    def _after_the_end(
        self, before: SubscriptionStats, handled: int, given_up: int, drains: bool
    ) -> SubscriptionStats:
        """Its name is gone: what has come of what was there is known here."""
        handled, given_up = self.handled - handled, self.given_up - given_up
        is_over = self.over.is_set()
        left = max(0, before.running - handled - given_up + (before.waiting if drains else 0))
        discards = self.terms.on_exhausted == layout.ON_EXHAUSTED_DISCARD
        return replace(
            before,
            delivered=before.delivered + handled,
            failed=before.failed + (given_up if discards else 0),
            dead_lettered=before.dead_lettered + (0 if discards else given_up),
            discarded=before.discarded + (0 if drains else before.waiting) + (left if is_over else 0),
            waiting=0,
            running=0 if is_over else left,
            suspended=False,
        )

    def is_suspended(self) -> bool:
        return self.stats().suspended

    def resume(self) -> bool:
        resumed = ctypes.c_bool()
        check(lib.pace_hub_resume(self.core.native.pointer, self.name, ctypes.byref(resumed)))
        return resumed.value

    def unsubscribe(self, how: str) -> bool:
        """Ends it; with "sync" it waits until the handler does not run, but not inside one."""
        ended, native = ctypes.c_bool(), self.core.native.pointer
        try:
            before = (self.stats(), self.handled, self.given_up, how == "drain")
            check(lib.pace_hub_unsubscribe(native, self.name, WAYS[how], ctypes.byref(ended)))
            self.final = before
        except StaleError:
            # It was before.
            pass
        if how == "sync" and not _inside.called:
            self.core._awaited(self.over.wait)
        return self.over.is_set()

    def drain(self, within: Optional[float]) -> int:
        discarded = ctypes.c_uint64()
        if _inside.called:
            raise DeadlockError("a subscription is drained by others than its handler's thread")
        native, time_left = self.core.native.pointer, nanoseconds(within)
        before = (self.stats(), self.handled, self.given_up, True)
        at = ctypes.byref(discarded)
        self.core._awaited(lambda: check(lib.pace_subscription_drain(native, self.name, time_left, at)))
        self.final = before
        return discarded.value


def _fill(options: layout.SubscriptionOptions, terms: Terms) -> None:
    """Has native code deal with failures as the terms say."""
    options.on_exhausted = terms.on_exhausted
    if terms.retry is not None:
        terms.retry.fill(options.retry)


def _advice(retry: Optional[Retry], attempt: int, raised: BaseException) -> Optional[float]:
    """For how many seconds at least another attempt waits; None: there is none."""
    kind, own = type(raised), cast(Any, raised)
    # By their types: what an exception says of its own class is code of the user's.
    if retry is None or issubclass(kind, PermanentFailure) or attempt > retry.retries:
        return None
    try:
        if issubclass(kind, RetryAfter):
            return seconds("delay", own.seconds)
        return 0.0 if retry.delay is None else seconds("delay", retry.delay(attempt))
    except BaseException as refused:
        report("no delay could be had for another attempt, so there is none", raised=refused)
        return None


def is_inside(core: Core) -> bool:
    """Whether this thread is in a handler of this hub that native code has called."""
    return any(each.core is core for each in _inside.called)


def _run(number: int, at: int, outcome: Any) -> None:
    _called[number].run(at, outcome)


def _restarted(number: int, failure: Any, count: int) -> None:
    _called[number].restarted(bool(failure.text), count)


def _dropped(number: int) -> None:
    _called[number].dropped()


#: By number, what native code may call.
_called: dict[int, Called] = {}
_numbers = itertools.count(1)
_handle, _restart, _drop = (
    _HANDLER(guarded(_run)),
    _RESTART(guarded(_restarted)),
    _DROP(guarded(_dropped)),
)
