"""The options of a Pool: what code gives, what a file or the environment says, and the defaults."""

from __future__ import annotations

from typing import Optional

from . import _layout as layout
from ._arguments import one_of, seconds, text, whole, within
from ._errors import InvalidError
from ._library import lib
from ._lifetime import usable_cpus
from ._native import pool_config
from ._placement import Pin, planned
from ._settings_files import Given, load

_SOURCES = {"epoll": layout.SOURCE_EPOLL, "ring": layout.SOURCE_RING}
_PROMOTIONS = {"deferred": layout.PROMOTION_DEFERRED, "eager": layout.PROMOTION_EAGER}

#: Settings that a pool of Python's threads cannot have, the value that says they were not given, and why.
_NOT_HERE = (
    ("leaders", layout.DEFAULT, "1: it has one handle set"),
    ("lane_capacity", 0, "none: its tasks wait in Python, and lanes have no bound"),
    ("strand_capacity", 0, "none: its tasks wait in Python, and strands have no bound"),
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
        watch_period: Optional[float],
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
        if watch_period is not None:
            self.patience = config.watch_period_ns = int(
                seconds("watch_period", watch_period, 1e-5, 1) * 1e9
            )
        return planned(self.pin if pin is None else pin)
