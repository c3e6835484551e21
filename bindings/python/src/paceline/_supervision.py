"""What becomes of handlers of a hub that fail, and of their messages.

The rules are those of native handlers. A message that a handler fails at is tried again as its retries have it,
and then given up: it becomes a dead letter, or is dropped. An ``Exception`` is how a handler fails at its message,
and nothing else happens. What it raises that is none (SystemExit, KeyboardInterrupt, or a class of one's own that is
derived from BaseException) is a *crash*: the handler is *restarted*, and its ``on_restart`` is told. With a factory, or if
``on_restart`` returns one, another handler takes its place before the next message. Too many restarts
in a while suspend it for a time: what waits, and what comes, becomes dead letters until then; what is replayed stays
in the history. Each suspension lasts for twice as long as the one before, until the handler was sound for as long as
that.

A suspension has no timer here: whoever looks at it finds that its time is over. The hub is told of restarts and
suspensions, and suspends the subscription, for the same time, so that whatever language a handler is written in they are
among its counts, errors and notices.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _layout as layout
from ._arguments import MOST_SECONDS, instance, one_of, seconds, some_plain
from ._arguments import within as between
from ._contain import report
from ._policy import Retry, retry_of
from ._task import PermanentFailure, RetryAfter

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
        self._all = bool(one_of("strategy", strategy, _STRATEGIES))
        self._restarts = None if restarts is None else between("restarts", restarts, 0, 100_000)
        self._within = seconds("within", within, 1e-9)
        self._longest = seconds("longest_suspension", longest_suspension, 0.001)
        self._first = suspension
        if suspension is not None:
            self._first = seconds("suspension", suspension, 0.001, self._longest)
        #: How long the last suspension lasts, when it is over, and when it was.
        self._lasts, self._until, self._resumed = 0.0, math.inf, -math.inf
        # Collecting garbage, or a signal's handler, may come back here at any place.
        self._lock = threading.RLock()
        self._times: deque[float] = deque()
        self._suspended = False
        #: How many restarts of all there were.
        self._epoch = 0
        self._members: weakref.WeakSet[Care] = weakref.WeakSet()

    @property
    def suspended(self) -> bool:
        """Whether its handlers are suspended."""
        self._look()
        return self._suspended

    def _look(self) -> None:
        """Ends a suspension whose time is over."""
        if self._suspended and time.monotonic() >= self._until:
            self._resume()

    def _left(self) -> float:
        """How many seconds a suspension lasts still."""
        return max(0.001, self._until - time.monotonic())

    def _suspend(self, now: float) -> None:
        """There were too many restarts. Under the lock."""
        self._suspended, self._until = True, math.inf
        if self._first is not None:
            sound = now - self._resumed > max(self._lasts, self._within)
            anew = sound or not self._lasts
            self._lasts = self._first if anew else min(2 * self._lasts, self._longest)
            self._until = now + self._lasts
        lasts = None if self._first is None else self._lasts
        for each in list(self._members):
            each.suspend(lasts)

    def _join(self, care: Care) -> None:
        with self._lock:
            self._members.add(care)
            care.seen = self._epoch
            if self._suspended:
                care.suspend(None if self._first is None else self._left())

    def _restart(self, care: Care) -> bool:
        """One of its handlers has crashed. False: that was once too often."""
        with self._lock:
            if self._suspended:
                return False
            now = time.monotonic()
            while self._times and self._times[0] < now - self._within:
                self._times.popleft()
            if self._restarts is not None:
                if len(self._times) >= self._restarts:
                    self._suspend(now)
                    care.found_out = True
                    return False
                self._times.append(now)
            if self._all:
                self._epoch += 1
                care.seen = self._epoch
                for each in list(self._members):
                    each.alarm = True
            return True

    def _resume(self) -> bool:
        with self._lock:
            resumed, self._suspended = self._suspended, False
            if resumed:
                self._resumed = time.monotonic()
            self._times.clear()
            members = list(self._members)
            for each in members:
                if each._suspended:
                    each._suspended, each.seen = False, -1
        for each in members:
            on_resume = each.on_resume()
            if on_resume is not None:
                on_resume()
        return resumed

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Supervisor: it belongs to this process")


@dataclass(frozen=True)
class Terms:
    """What a subscription is given to deal with failures."""

    on_exhausted: int
    retry: Optional[Retry]
    supervisor: Supervisor
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
    return Terms(on_exhausted, retry, own, on_restart, factory)


#: What is to be done about a failure: tried again after so many seconds, or one of these.
DISCARD, DEAD, SUSPEND = -1.0, -2.0, -3.0


class Care:
    """The handler of one subscription, as its supervisor knows it. One thread at a time."""

    def __init__(
        self,
        terms: Terms,
        on_restart: Callable[[Optional[BaseException]], object],
        on_suspend: Callable[[Optional[float]], object],
        on_resume: Callable[[], object],
    ) -> None:
        self.terms = terms
        # They are of somebody who has this, and who goes as soon as nobody needs it.
        self.on_restart = weakref.WeakMethod(on_restart)
        self.on_suspend = weakref.WeakMethod(on_suspend)
        self.on_resume = weakref.WeakMethod(on_resume)
        self._suspended = False
        #: Its crash was the one too many, which is told.
        self.found_out = False
        #: Something has changed that is looked at before each message: set after it, and cleared before the look.
        self.alarm = False
        #: The supervisor's epoch that the handler knows.
        self.seen = 0
        self.restarts = 0
        #: The handler is to be replaced before its next message: by this one, or by one of the factory's making.
        self.stale = False
        self.successor: Any = None
        #: The replacement has not come about: what was raised is a failed restart.
        self.unmade = False
        #: Of the message that is being tried; none: it is dealt with, or given up.
        self.attempts = 0
        self._first = 0.0
        terms.supervisor._join(self)

    @property
    def suspended(self) -> bool:
        if self._suspended:
            self.terms.supervisor._look()
        return self._suspended

    def suspend(self, lasts: Optional[float]) -> None:
        """Its supervisor suspends all of its handlers: for so many seconds; None: until it is resumed."""
        self._suspended = True
        self.alarm = True
        on_suspend = self.on_suspend()
        if on_suspend is not None:
            on_suspend(lasts)

    def is_usual(self) -> bool:
        """Whether first attempts may begin without ``begin`` until there is an ``alarm``."""
        self.alarm = False
        terms = self.terms
        timed = terms.retry is not None and terms.retry.within is not None
        late = self.suspended or self.stale or self.attempts or self.seen != terms.supervisor._epoch
        return not (timed or late)

    def begin(self) -> int:
        """An attempt begins: which one it is. Handlers of the same supervisor may have failed before."""
        terms = self.terms
        epoch = terms.supervisor._epoch
        if self.seen != epoch:
            self.seen = epoch
            self._restarted(None)
        self.attempts = attempt = self.attempts + 1
        if attempt == 1 and terms.retry is not None:
            self._first = time.monotonic()
        return attempt

    def judge(self, raised: BaseException) -> float:
        """What comes after an attempt that has raised this."""
        unmade, self.unmade = self.unmade, False
        if unmade or is_crash(raised):
            if not self.terms.supervisor._restart(self):
                return SUSPEND
            self._restarted(raised)
        delay = self._delay(raised)
        if delay is not None:
            return delay
        return DISCARD if self.terms.on_exhausted == layout.ON_EXHAUSTED_DISCARD else DEAD

    def _delay(self, raised: BaseException) -> Optional[float]:
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
        late = time.monotonic() + delay - self._first
        return None if retry.within is not None and late > retry.within else delay

    def _restarted(self, raised: Optional[BaseException]) -> None:
        self.restarts += 1
        on_restart = self.on_restart()
        if on_restart is not None:
            on_restart(raised)
        terms = self.terms
        self.stale = terms.factory is not None
        if terms.on_restart is None:
            return
        try:
            successor = terms.on_restart(raised, self.restarts)
        except BaseException as failed:
            report("the hook of a handler that was restarted has failed", raised=failed)
            return
        if callable(successor):
            self.successor, self.stale = successor, True
        elif successor is not None:
            report("on_restart has returned %s, which is no handler", successor)


def is_crash(raised: BaseException) -> bool:
    """Whether a handler that has raised this is broken, and has not just failed at its message."""
    # That what it has awaited was cancelled is a failure like others.
    return not issubclass(type(raised), (Exception, asyncio.CancelledError))


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
