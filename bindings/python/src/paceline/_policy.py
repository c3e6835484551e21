"""What a worker pool's tasks are told beforehand: retries, budgets, rates, times, keys."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

from . import _layout as layout
from ._arguments import finite, instance, nanos, number, plain, real, some_text, whole, within
from ._errors import InvalidError
from ._keys import Key, keys
from ._library import check, quick
from ._lane import Lane

#: A lane, its number, or its name in any case.
Priority = Union[Lane, int, str]

#: Seconds that mean "no limit" where None means "as the name has it".
NO_LIMIT = float("inf")

_JITTERS = {
    None: layout.JITTER_DEFAULT,
    "none": layout.JITTER_NONE,
    "full": layout.JITTER_FULL,
    "equal": layout.JITTER_EQUAL,
}


@dataclass(frozen=True)
class Retry:
    """How failed attempts are followed by others; made by ``exponential``, ``linear``, ``fixed``,
    ``random``, ``custom`` or ``none``. Times are seconds, from 0 to 3e9; ``retries`` is one less than
    attempts. ``jitter`` is "none", "full" (anything from nothing to the delay), "equal" (from half of it
    to all), or None: "full" for exponential delays, else "none".
    """

    shape: int
    retries: int
    first: float = 0.0
    cap: float = 0.0
    jitter: Optional[str] = None
    #: No attempt begins later than this after the submission. None: no limit.
    within: Optional[float] = None
    #: For ``custom``: the delay in seconds, of the number of the attempt.
    delay: Optional[Callable[[int], float]] = None

    @classmethod
    def none(cls) -> Retry:
        """No retries: the first failure is the last."""
        return cls(layout.RETRY_NONE, 0)

    @classmethod
    def exponential(
        cls, retries: int, first: float = 0.1, cap: float = 30.0, jitter: Optional[str] = None
    ) -> Retry:
        """``first`` seconds after the first failure, and twice as long after each other."""
        _check(first=first, cap=cap)
        return cls(layout.RETRY_EXPONENTIAL, retries, first, cap, jitter)

    @classmethod
    def linear(cls, retries: int, first: float, cap: float = 0.0, jitter: Optional[str] = None) -> Retry:
        """``first`` seconds after the first failure, twice that after the second, then three times."""
        _check(first=first, cap=cap)
        return cls(layout.RETRY_LINEAR, retries, first, cap, jitter)

    @classmethod
    def fixed(cls, retries: int, delay: float, jitter: Optional[str] = None) -> Retry:
        """The same after each failure."""
        _check(delay=delay)
        return cls(layout.RETRY_FIXED, retries, delay, 0.0, jitter)

    @classmethod
    def random(cls, retries: int, least: float, most: float) -> Retry:
        """Anything in between after each failure, evenly."""
        _check(least=least, most=most)
        return cls(layout.RETRY_RANDOM, retries, least, most)

    @classmethod
    def custom(cls, retries: int, delay: Callable[[int], float]) -> Retry:
        """``delay(1)`` seconds after the first failure, ``delay(2)`` after the second. It is called by
        the thread that ran the attempt. If it raises, or returns what is no time from 0 to 3e9 seconds, that is
        logged and there is no other attempt."""
        return cls(layout.RETRY_FIXED, retries, delay=plain("delay", delay))

    def limited(self, within: float) -> Retry:
        """The same, but no attempt begins later than ``within`` seconds after the submission."""
        return replace(self, within=within)

    def fill(self, target: layout.Retry) -> None:
        """Writes it where C reads it. Raises InvalidError."""
        some_text("jitter", self.jitter)
        if self.jitter not in _JITTERS:
            raise InvalidError(f"jitter is {self.jitter!r}; allowed: 'none', 'full', 'equal' or None")
        target.shape = self.shape
        target.jitter = _JITTERS[self.jitter]
        target.retries = whole("retries", self.retries)
        target.first_ns = nanos("first", self.first)
        target.cap_ns = nanos("cap", self.cap)
        target.within_ns = 0 if self.within is None else limit("within", self.within)


def _check(**times: float) -> None:
    # Their range is looked at where they are used.
    for name, value in times.items():
        real(name, value, "seconds")


@dataclass(frozen=True)
class RetryBudget:
    """Bounds all retries of a name together, so that a backend that fails is not stormed: so many each
    second, and ``ratio`` for each first attempt besides; up to ``burst`` are saved up."""

    ratio: float = 0.2
    per_second: int = 10
    burst: int = 100


@dataclass(frozen=True)
class Rate:
    """So many attempts of a name may start in each ``per`` seconds, ``burst`` of them at once."""

    starts: int
    per: float = 1.0
    burst: int = 1


#: What is done when there is no room: its name, or how many seconds to wait.
OverloadPolicy = Union[str, float]

_POLICIES = ("reject", "wait", "run_here", "drop_oldest")


def full_of(full: Optional[OverloadPolicy]) -> Optional[OverloadPolicy]:
    """A policy that is one. Raises InvalidError."""
    if full is None:
        return full
    if isinstance(full, str):
        if full in _POLICIES:
            return full
        allowed = ", ".join(repr(each) for each in _POLICIES)
        raise InvalidError(f"full is {full!r}; allowed: {allowed}, or seconds to wait")
    nanos("full", full)
    return full


def lane_of(priority: Priority) -> Lane:
    """The lane that is meant. Raises InvalidError."""
    allowed = "a Lane, or 'critical', 'high', 'normal', 'low'"
    try:
        if isinstance(priority, str):
            return Lane[priority.upper()]
        return Lane(number("priority", priority, allowed))
    except (KeyError, ValueError):
        raise InvalidError(f"priority is {priority!r}; allowed: {allowed}") from None


def retry_of(retries: Union[int, Retry, None]) -> Optional[Retry]:
    """What ``retries`` means: a number is exponential."""
    if retries is None or isinstance(retries, Retry):
        return retries
    number("retries", retries, "a whole number, a paceline.Retry, or None")
    return Retry.exponential(retries) if whole("retries", retries) else Retry.none()


def rate_of(name: str, rate: Rate) -> tuple[int, int, int]:
    """As C wants it: starts, in so many nanoseconds, and the burst."""
    instance(name, rate, Rate)
    starts = within(f"{name}.starts", rate.starts, 1, (1 << 32) - 1)
    return starts, nanos(f"{name}.per", rate.per), whole(f"{name}.burst", rate.burst)


def limit(name: str, time: Optional[float]) -> int:
    """A time that a task may take. 0 in C: there is nothing to say."""
    if time is None:
        return 0
    own = real(name, time, "seconds, inf or None")
    if own == NO_LIMIT:
        return layout.FOREVER
    if not 0 < own <= 3e9:
        raise InvalidError(f"{name} is {time}; allowed: above 0, up to 3e9 seconds; or inf")
    return max(1, int(own * 1e9))


def kind_config(
    *,
    priority: Priority,
    retry: Optional[Retry],
    timeout: Optional[float],
    queue_timeout: Optional[float],
    deadline: Optional[float],
    soft_timeout: Optional[float],
    grace: Optional[float],
    budget: Optional[RetryBudget],
    rate: Optional[Rate],
    max_running: Optional[int],
    overlap_retries: bool,
    lease: Optional[float],
) -> layout.TaskTypeConfig:
    """What all tasks of a name have. Raises InvalidError."""
    config = layout.TaskTypeConfig()
    check(quick.pace_task_type_config_init(ctypes.byref(config), ctypes.sizeof(config)))
    config.lane = lane_of(priority)
    if retry is not None:
        retry.fill(config.retry)
    _fill_times(config, timeout, queue_timeout, deadline)
    if budget is not None:
        instance("budget", budget, RetryBudget)
        config.retry_budget = True
        config.budget_ratio = finite("budget.ratio", budget.ratio)
        config.budget_per_second = whole("budget.per_second", budget.per_second)
        config.budget_burst = whole("budget.burst", budget.burst)
    if rate is not None:
        config.rate_starts, config.rate_per_ns, config.rate_burst = rate_of("rate", rate)
    config.soft_timeout_ns = limit("soft_timeout", soft_timeout)
    config.grace_ns = limit("grace", grace)
    if max_running is not None:
        config.max_running = whole("max_running", max_running)
        if max_running == 0:
            raise InvalidError("max_running is 0; allowed: at least 1")
    config.overlap_retries = bool(overlap_retries)
    config.lease_ns = limit("lease", lease)
    for unlimited in ("timeout_ns", "queue_timeout_ns", "deadline_ns", "soft_timeout_ns", "lease_ns"):
        if getattr(config, unlimited) == layout.FOREVER:
            # A name has no limit unless it is given one; of single tasks it is said.
            setattr(config, unlimited, 0)
    return config


def _fill_times(
    target: Any,
    timeout: Optional[float],
    queue_timeout: Optional[float],
    deadline: Optional[float],
) -> None:
    target.timeout_ns = limit("timeout", timeout)
    target.queue_timeout_ns = limit("queue_timeout", queue_timeout)
    target.deadline_ns = limit("deadline", deadline)


class TaskOptions(layout.TaskOptions):
    """As C has them, and what keeps their key's number."""

    held: Optional[Key] = None


@dataclass(frozen=True)
class Chosen:
    """What single tasks have in place of their name's settings. None: as the name has it."""

    priority: Optional[Priority] = None
    retries: Union[int, Retry, None] = None
    timeout: Optional[float] = None
    queue_timeout: Optional[float] = None
    deadline: Optional[float] = None
    delay: Optional[float] = None
    key: Optional[Hashable] = None
    soft_timeout: Optional[float] = None
    grace: Optional[float] = None
    full: Optional[OverloadPolicy] = None
    #: Of a name only.
    overlaps: bool = False
    leased: bool = False
    is_coroutine: bool = False

    def as_c(self) -> Optional[TaskOptions]:
        """None: nothing was chosen. Raises InvalidError."""
        # Of a key neither truth nor equality is asked.
        if self.key is None and replace(self, full=None) == _NOTHING:
            return None
        options = TaskOptions()
        check(quick.pace_task_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        if self.priority is not None:
            options.lane = lane_of(self.priority)
        retry = retry_of(self.retries)
        if retry is not None:
            retry.fill(options.retry)
        _fill_times(options, self.timeout, self.queue_timeout, self.deadline)
        options.soft_timeout_ns = limit("soft_timeout", self.soft_timeout)
        options.grace_ns = limit("grace", self.grace)
        if self.delay is not None:
            options.delay_ns = nanos("delay", self.delay)
        if self.key is not None:
            options.held = keys.of(self.key)
            options.key = options.held.number
            options.keyed = True
        return options


_NOTHING = Chosen()
