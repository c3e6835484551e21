"""The options of a Pool: what code gives, what a file or the environment says, and the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Optional

from . import _layout as layout
from ._arguments import one_of, real, seconds, text, whole, within, wrong
from ._errors import InvalidError
from ._lane import Lane, lane_of
from ._library import lib
from ._lifetime import usable_cpus
from ._native import pool_config
from ._placement import Pin, planned
from ._settings_files import Given, load

_SOURCES = {"epoll": layout.SOURCE_EPOLL, "ring": layout.SOURCE_RING}
_PROMOTIONS = {"deferred": layout.PROMOTION_DEFERRED, "eager": layout.PROMOTION_EAGER}

#: Settings that a pool of Python's threads cannot have, the value that says they were not given, and why.
_NOT_HERE = (
    (
        "leaders",
        layout.DEFAULT,
        "1: its threads leave the native pool to run Python, so a second handle set could have none",
    ),
    ("stack_size", 0, "none: threading.stack_size() says how large stacks of Python's threads are"),
)


class Options:
    """What is made of them."""

    def __init__(self, settings: Given = None, environment: bool = False) -> None:
        self.config = config = pool_config()
        before = {name: getattr(config, name) for name, _, _ in _NOT_HERE}
        for name, absent, _ in _NOT_HERE:
            setattr(config, name, absent)
        load(config, lib.pace_pool_config_load, settings, environment)
        for name, absent, allowed in _NOT_HERE:
            value = getattr(config, name)
            if value != absent and (name, value) != ("leaders", 1):
                raise InvalidError(
                    f"the setting pool.{name} is {value}; allowed for a pool of Python: {allowed}"
                )
            setattr(config, name, before[name])
        self.name = "paceline" if config.name is None else config.name.decode()
        self.pin: Pin = "none" if config.pin is None else config.pin.decode()
        self.pin_strict: bool = config.pin_strict
        self.threads = min(4, usable_cpus()) if config.threads == layout.DEFAULT else config.threads
        self.max_joined: int = config.max_joined
        #: How long a handler may run before others take over what waits behind it. None: the default.
        self.patience: Optional[int] = None
        #: How many threads run nothing but tasks of a lane.
        self.reserve: dict[Lane, int] = {}
        #: Seconds; endless: never.
        self.ageing = 1.0
        if config.watch_period_ns != pool_config().watch_period_ns:
            self.patience = config.watch_period_ns

    def take(
        self,
        threads: Optional[int],
        name: Optional[str],
        max_handles: Optional[int],
        max_joined: Optional[int],
        pin: Optional[Pin],
        pin_strict: Optional[bool],
        source: Optional[str],
        promotion: Optional[str],
        spin: Optional[float],
        max_turn: Optional[float],
        watch_period: Optional[float],
        lane_capacity: Optional[int],
        strand_capacity: Optional[int],
        reserve: Optional[Mapping[Lane, int]],
        ageing: Optional[float],
    ) -> list[int]:
        """Takes what code has given, which wins. The CPUs that the threads are pinned to. Raises InvalidError, TypeError."""
        config = self.config
        self.threads = within("threads", self.threads if threads is None else threads, 0, 1000)
        self.max_joined = within(
            "max_joined", self.max_joined if max_joined is None else max_joined, 1, 16
        )
        self.name = self.name if name is None else name
        config.name = text("name", self.name)
        if max_handles is not None:
            config.max_handles = whole("max_handles", max_handles)
        if pin_strict is not None:
            self.pin_strict = bool(pin_strict)
        config.pin_strict = False
        if source is not None:
            config.source = one_of("source", source, _SOURCES)
        if promotion is not None:
            config.promotion = one_of("promotion", promotion, _PROMOTIONS)
        if spin is not None:
            config.spin_ns = int(seconds("spin", spin, 0, 0.1) * 1e9)
        if max_turn is not None:
            config.max_turn_ns = int(seconds("max_turn", max_turn, 1e-5, 1) * 1e9)
        if watch_period is not None:
            self.patience = config.watch_period_ns = int(
                seconds("watch_period", watch_period, 1e-5, 1) * 1e9
            )
        if lane_capacity is not None:
            config.lane_capacity = within("lane_capacity", lane_capacity, 2, 1 << 24)
        if strand_capacity is not None:
            config.strand_capacity = within("strand_capacity", strand_capacity, 2, 1 << 24)
        self.reserve = self._reserved(reserve)
        if ageing is not None:
            never = real("ageing", ageing, "seconds, or inf for never") == inf
            self.ageing = inf if never else seconds("ageing", ageing, 0.001, 3600)
            config.ageing_ns = layout.FOREVER if never else int(self.ageing * 1e9)
        return planned(self.pin if pin is None else pin)

    def limit(self, on_slow: object, slow_limit: Optional[float]) -> float:
        """How many seconds a handler may take before the hook is told."""
        if (on_slow is None) is not (slow_limit is None):
            if slow_limit is None:
                raise wrong("slow_limit", None, "seconds, as there is an on_slow")
            raise wrong("on_slow", None, "something to call, as there is a slow_limit")
        return 0.0 if slow_limit is None else seconds("slow_limit", slow_limit, 1e-5, 86_400)

    def _reserved(self, reserve: Optional[Mapping[Lane, int]]) -> dict[Lane, int]:
        """How many threads are asked for, by lane."""
        if reserve is None:
            return {}
        allowed = "threads by lane, as {Lane.CRITICAL: 1}"
        if not isinstance(reserve, Mapping):
            raise wrong("reserve", reserve, allowed)
        found = {}
        for key, threads in list(reserve.items()):
            lane = lane_of("a lane of reserve", key)
            found[lane] = within(f"reserve of {lane.name}", threads, 0, 48)
        if self.threads == 0 and any(found.values()):
            raise InvalidError(
                f"reserve is {sum(found.values())}; allowed: 0 for a pool without threads"
            )
        return {lane: threads for lane, threads in found.items() if threads}
