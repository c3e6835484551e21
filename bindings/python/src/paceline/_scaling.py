"""How many threads of a worker pool are active: as many as it takes for tasks not to wait long.

Submissions are stamped. As long as some were, a timer of the pool looks, once a period, at how long those
waited that have begun since, and at how long the others have waited by now:

    a wait above ``high`` at the percentile ──► one more, at once
    below ``low`` for ``patience`` periods in a row ──► one less
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ._arguments import number, real
from ._clock import monotonic
from ._errors import Error, InvalidError
from ._pool import Pool


@dataclass(frozen=True)
class Scaling:
    """Adapts the number of active threads to how long tasks wait, between ``min_active`` and all. Times are
    seconds: ``high`` and ``low`` are for the wait at ``percentile`` (1 to 100), ``low`` at most half of
    ``high``; ``period`` (0.001 to 3600) is how often it is looked at, and ``patience`` (at least 1) how many
    quiet periods in a row it takes for one thread less."""

    min_active: int = 1
    high: float = 0.002
    low: float = 0.0002
    period: float = 0.02
    percentile: int = 95
    patience: int = 10

    def check(self, threads: int) -> None:
        """Raises InvalidError if a setting is out of its range."""
        for name in ("min_active", "percentile", "patience"):
            number(name, getattr(self, name))
        for name in ("high", "low", "period"):
            real(name, getattr(self, name), "seconds")
        allowed = {
            "min_active": (1 <= self.min_active <= threads, f"1 to {threads}"),
            "high": (0 < self.high <= 3e9, "above 0, up to 3e9 seconds"),
            "low": (0 <= self.low <= self.high / 2, "0 to half of high"),
            "period": (0.001 <= self.period <= 3600, "0.001 to 3600 seconds"),
            "percentile": (1 <= self.percentile <= 100, "1 to 100"),
            "patience": (self.patience >= 1, "at least 1"),
        }
        for name, (is_good, range) in allowed.items():
            if not is_good:
                raise InvalidError(f"{name} is {getattr(self, name)}; allowed: {range}")


class Threads(Protocol):
    """Whose number follows."""

    pool: Pool
    active: int
    most: int
    closed: bool

    def set_active(self, threads: int) -> None: ...


class Scaler:
    """Of one worker pool. ``note`` and ``began`` are called by any thread."""

    #: Waits that are kept for the next look.
    KEPT = 1024

    def __init__(
        self, settings: Scaling, threads: Threads, clock: Callable[[], float] = monotonic
    ) -> None:
        self._settings = settings
        self._threads = threads
        self._clock = clock
        self._stamps: dict[int, float] = {}
        self._waits: deque[float] = deque(maxlen=self.KEPT)
        self._quiet = 0
        self._armed = False

    def note(self, token: int) -> None:
        """A task was submitted that may begin at once."""
        self._stamps[token] = self._clock()
        if not self._armed:
            self._arm()

    def began(self, token: int) -> None:
        """Its first attempt begins, or it has ended without one."""
        stamp = self._stamps.pop(token, None)
        if stamp is not None:
            self._waits.append(self._clock() - stamp)

    def look(self) -> bool:
        """Once a period; False: there is nothing to look at any more."""
        settings, threads, now = self._settings, self._threads, self._clock()
        waits = [self._waits.popleft() for _ in range(len(self._waits))]
        # dict and deque may be changed by other threads meanwhile, but not while a list is made of them.
        waits += [now - stamp for stamp in list(self._stamps.values())]
        waits.sort()
        wait = waits[min(len(waits) - 1, len(waits) * settings.percentile // 100)] if waits else 0.0
        if wait > settings.high:
            self._quiet = 0
            threads.set_active(min(threads.most, threads.active + 1))
        elif wait < settings.low:
            self._quiet += 1
            if self._quiet >= settings.patience:
                self._quiet = 0
                threads.set_active(max(settings.min_active, threads.active - 1))
        else:
            self._quiet = 0
        return bool(self._stamps) or threads.active > settings.min_active

    def _arm(self) -> None:
        self._armed = True
        try:
            self._threads.pool.after(self._settings.period, self._tick)
        except Error:
            # No handle is left, or the pool has ended: the next submission tries again.
            self._armed = False

    def _tick(self) -> None:
        self._armed = False
        if not self._threads.closed and (self.look() or self._stamps):
            self._arm()
