"""What becomes of handlers of a hub that fail, and of their messages.

The rules are those of native handlers. A message that a handler fails at is tried again as its retries have it,
and then given up: it becomes a dead letter, or is dropped. An ``Exception`` is how a handler fails at its message,
and nothing else happens. What it raises that is none (SystemExit, KeyboardInterrupt, or a class of one's own that is
derived from BaseException) is a *crash*: the handler is *restarted*, and its ``on_restart`` is told. With a factory, or if
``on_restart`` returns one, another handler takes its place before the next message. Too many restarts
in a while suspend it for a time: what waits, and what comes, becomes dead letters until then; what is replayed stays
in the history. Each suspension lasts for twice as long as the one before, until the handler was sound for as long as
that.

Supervisors are native, and count handlers together whoever calls them: Python's threads and loops, which pull acknowledged
mailboxes and tell of crashes, or native code. So whatever language a handler is written in, its restarts and suspensions
are among the hub's counts, errors and notices. Python's own threads learn by an ``alarm`` that there is something to be
looked at before the next message.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import random
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _layout as layout
from ._arguments import (
    MOST_SECONDS,
    function,
    instance,
    is_coroutine_function,
    one_of,
    seconds,
    some_plain,
    wrong,
)
from ._arguments import within as between
from ._clock import monotonic
from ._contain import Failures, failure_of, report
from ._library import check, lib, nanoseconds, quick
from ._native import Native
from ._policy import Retry, retry_of
from ._task import PermanentFailure, RetryAfter

if TYPE_CHECKING:
    from ._mailbox import Pulled
else:
    Pulled = Any

_ON_EXHAUSTED = {"dead-letter": layout.ON_EXHAUSTED_DEAD_LETTER, "discard": layout.ON_EXHAUSTED_DISCARD}
_STRATEGIES = {"one-for-one": 0, "one-for-all": 1}


class Supervisor:
    """Counts the restarts of one or more handlers, and suspends all of them when there are more than ``restarts``
    (0 to 100 000; None: no number is too many) in a span of ``within`` seconds. With "one-for-all" a crash
    restarts all of them, each before its next message. The first suspension lasts ``suspension`` seconds (0.001 or
    more; None: until ``resume``), and each twice as long as the one before, up to ``longest_suspension``. Any
    thread."""

    def __init__(
        self,
        strategy: str = "one-for-one",
        *,
        restarts: Optional[int] = 3,
        within: float = 5.0,
        suspension: Optional[float] = 1.0,
        longest_suspension: float = 60.0,
    ) -> None:
        way = one_of("strategy", strategy, _STRATEGIES)
        most = layout.UNLIMITED32 if restarts is None else between("restarts", restarts, 0, 100_000)
        span = seconds("within", within, 1e-9)
        longest = first = seconds("longest_suspension", longest_suspension, 0.001)
        if suspension is not None:
            first = seconds("suspension", suspension, 0.001, longest)
        lasts = layout.FOREVER if suspension is None else nanoseconds(first)
        pointer, times = ctypes.c_void_p(), (max(1, nanoseconds(span)), lasts, nanoseconds(longest))
        check(quick.pace_supervisor_new(way, most, *times, ctypes.byref(pointer)))
        self._native = Native(pointer, lib.pace_supervisor_free)
        # Collecting garbage, or a signal's handler, may come back here at any place.
        self._lock = threading.RLock()
        self._members: weakref.WeakSet[Care] = weakref.WeakSet()

    @property
    def suspended(self) -> bool:
        """Whether its handlers are suspended."""
        suspended = ctypes.c_bool()
        check(quick.pace_supervisor_is_suspended(self._native.pointer, ctypes.byref(suspended)))
        return suspended.value

    def _join(self, care: Care) -> None:
        with self._lock:
            self._members.add(care)

    def _alarm(self) -> None:
        """One of its handlers has crashed: all look what that means for them, before their next message."""
        with self._lock:
            for each in list(self._members):
                each.alarm = True

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Supervisor: it belongs to this process")


@dataclass(frozen=True)
class Terms:
    """What a subscription is given to deal with failures."""

    on_exhausted: int
    retry: Optional[Retry]
    supervisor: Supervisor
    #: The supervisor has others, too.
    shared: bool
    on_restart: Any
    factory: Any


def terms_of(
    retries: Union[int, Retry, None],
    on_failure: str,
    on_restart: Any,
    restarts: Optional[int],
    within: float,
    suspension: Optional[float],
    longest_suspension: float,
    supervisor: Optional[Supervisor],
    factory: Any = None,
) -> Terms:
    """As those who subscribe give them."""
    some_plain("on_restart", on_restart)
    some_plain("factory", factory)
    times = {"suspension": suspension, "longest_suspension": longest_suspension}
    own = Supervisor(restarts=restarts, within=within, **times)
    if supervisor is not None:
        own = instance("supervisor", supervisor, Supervisor)
    on_exhausted, retry = one_of("on_failure", on_failure, _ON_EXHAUSTED), retry_of(retries)
    if retry is not None:
        # Raises InvalidError for what no retries can be.
        retry.fill(layout.Retry())
    return Terms(on_exhausted, retry, own, supervisor is not None, on_restart, factory)


#: What is to be done about a failure: tried again after so many seconds, or one of these.
DISCARD, DEAD, SUSPEND = -1.0, -2.0, -3.0


class Handlers:
    """The handler of a subscription, and those that take its place when it is restarted."""

    def __init__(self, terms: Terms, handler: Any) -> None:
        self._terms = terms
        self.handler = handler
        #: It is to be replaced before its next message: by this one, or by one of the factory's making.
        self.stale = False
        self._successor: Any = None
        self._lock = threading.RLock()

    def restarted(self, raised: Optional[BaseException], count: int) -> None:
        """It was restarted for this, or for what others have done; so often by now."""
        terms = self._terms
        self.stale = terms.factory is not None
        if terms.on_restart is None:
            return
        try:
            successor = terms.on_restart(raised, count)
        except BaseException as failed:
            report("the hook of a handler that was restarted has failed", raised=failed)
            return
        if callable(successor):
            self._successor, self.stale = successor, True
        elif successor is not None:
            report("on_restart has returned %s, which is no handler", successor)

    def renewed(self) -> Any:
        """Another one in its place. Raises what the factory raises, InvalidError."""
        with self._lock:
            if self.stale:
                successor, self._successor = self._successor, None
                made = self._terms.factory() if successor is None else successor
                self.handler = made_of(made, is_coroutine_function(self.handler))
                self.stale = False
            return self.handler


def made_of(handler: Any, is_coroutine: bool) -> Any:
    """A handler in the place of another, which was a coroutine function or was not. Raises InvalidError."""
    function("handler", handler)
    if is_coroutine_function(handler) != is_coroutine:
        allowed = "a coroutine function" if is_coroutine else "no coroutine function"
        raise wrong("handler", handler, f"{allowed}, as the one before")
    return handler


class Care:
    """The handler of one mailbox, as its supervisor knows it. One thread at a time."""

    def __init__(self, terms: Terms, mailbox: Pulled, handlers: Handlers) -> None:
        self.terms = terms
        self.mailbox = mailbox
        self.handlers = handlers
        #: Its crash was the one too many, which is told: for how many seconds it is suspended.
        self.found_out: Optional[float] = None
        #: Something may have changed that is looked at before each message: set after it, and cleared before the look.
        self.alarm = False
        self.restarts = 0
        #: The replacement has not come about: what was raised is a failed restart.
        self.unmade = False
        #: Of the message that is being tried; none: it is dealt with, or given up.
        self.attempts = 0
        self._first = 0.0
        terms.supervisor._join(self)

    @property
    def suspended(self) -> bool:
        # Alone, it is suspended only after an alarm of its own.
        return (self.alarm or self.terms.shared) and self.mailbox.suspended

    def _look(self) -> None:
        """Restarts the handler, if others of its supervisor have crashed, or a suspension has ended."""
        if self.alarm or self.terms.shared:
            self.alarm = False
            restarts, suspended = self.mailbox._catch_up()
            if suspended:
                self.alarm = True
            if restarts:
                self._restarted(None)

    def is_usual(self) -> bool:
        """Whether first attempts may begin without ``begin`` until there is an ``alarm``."""
        self._look()
        timed = self.terms.retry is not None and self.terms.retry.within is not None
        return not (timed or self.alarm or self.handlers.stale or self.attempts)

    def begin(self) -> int:
        """An attempt begins: which one it is. Handlers of the same supervisor may have failed before."""
        self._look()
        self.attempts = attempt = self.attempts + 1
        if attempt == 1 and self.terms.retry is not None:
            self._first = monotonic()
        return attempt

    def has_crashed(self, raised: BaseException) -> bool:
        """Whether an attempt that has raised this has the handler restarted."""
        return self.unmade or is_crash(raised)

    def judge(self, raised: BaseException, delay: Optional[float]) -> float:
        """What comes after an attempt that has raised this; ``delay`` is that of its retry."""
        crashed, self.unmade = self.has_crashed(raised), False
        if crashed and not self._goes_on(raised):
            return SUSPEND
        if delay is not None:
            return delay
        return DISCARD if self.terms.on_exhausted == layout.ON_EXHAUSTED_DISCARD else DEAD

    def _goes_on(self, raised: BaseException) -> bool:
        """It has crashed. False: that was once too often."""
        supervisor = self.terms.supervisor
        was_suspended = supervisor.suspended
        lasts = self.mailbox._crashed(failure_of(raised))
        supervisor._alarm()
        if lasts is None:
            self._restarted(raised)
        elif not was_suspended:
            self.found_out = lasts
        return lasts is None

    def delay(self, raised: BaseException) -> Optional[float]:
        """For how many seconds another attempt waits; None: there is none."""
        retry, kind = self.terms.retry, type(raised)
        own: Any = raised
        # By their types: what an exception says of its own class is code of the user's.
        if retry is None or issubclass(kind, PermanentFailure) or self.attempts > retry.retries:
            return None
        try:
            after = own.seconds if issubclass(kind, RetryAfter) else delay_of(retry, self.attempts)
            delay = seconds("delay", after)
        except BaseException as refused:
            report("no delay could be had for another attempt, so there is none", raised=refused)
            return None
        late = monotonic() + delay - self._first
        return None if retry.within is not None and late > retry.within else delay

    def _restarted(self, raised: Optional[BaseException]) -> None:
        self.restarts += 1
        self.handlers.restarted(raised, self.restarts)


def is_crash(raised: BaseException) -> bool:
    """Whether a handler that has raised this is broken, and has not just failed at its message."""
    # That what it has awaited was cancelled is a failure like others.
    return not issubclass(type(raised), (Exception, asyncio.CancelledError))


def failed_at(failures: Failures, key: str, raised: BaseException, is_final: bool) -> None:
    """Reports that a handler has failed at a message, or at a batch of messages that a pattern matches."""
    level = logging.ERROR if is_final else logging.WARNING
    ending = "" if is_final else ", which is tried again"
    failures.report(
        f"a handler has failed at a message of %s{ending}", repr(key), raised=raised, level=level
    )


def delay_of(retry: Retry, attempt: int) -> float:
    """The seconds before the attempt that follows this one. Raises what a function for delays raises."""
    if retry.delay is not None:
        return retry.delay(attempt)
    if retry.shape == layout.RETRY_RANDOM:
        return random.uniform(retry.first, retry.cap)
    delay, jitter = retry.first, retry.jitter
    if retry.shape == layout.RETRY_LINEAR:
        delay *= attempt
    elif retry.shape == layout.RETRY_EXPONENTIAL:
        delay *= 2.0 ** min(attempt - 1, 60)
        jitter = jitter or "full"
    if retry.cap > 0:
        delay = min(delay, retry.cap)
    delay = min(delay, MOST_SECONDS)
    if jitter == "full":
        return random.uniform(0, delay)
    return random.uniform(delay / 2, delay) if jitter == "equal" else delay
