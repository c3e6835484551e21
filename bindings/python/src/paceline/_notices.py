"""What a hub tells of itself: errors, figures, and thresholds of figures.

Its notices are messages under ``$SYS.``, for any mailbox or handler of the hub.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from . import _layout as layout
from ._arguments import finite, instance, items, nanos, one_of, text, whole, wrong
from ._errors import InvalidError
from ._hosts import Native
from ._library import check, lib, quick
from ._metrics import figures

SEVERITIES = {
    "info": layout.SEVERITY_INFO,
    "warning": layout.SEVERITY_WARNING,
    "error": layout.SEVERITY_ERROR,
}
_NAMES = {number: name for name, number in SEVERITIES.items()}
_FORMATS = {
    "json": layout.METRICS_JSON,
    "prometheus": layout.METRICS_PROMETHEUS,
    "openmetrics": layout.METRICS_OPENMETRICS,
    "hub": layout.METRICS_HUB,
}

EACH_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(layout.HubError))


class HubError(NamedTuple):
    """Something that went wrong in a hub."""

    #: Its number: 1 for the hub's first.
    number: int
    #: When it was recorded: nanoseconds since 1970.
    time_ns: int
    #: How serious the error is: "warning" or "error".
    severity: str
    #: The key of its notice without ``$SYS.``.
    event: str
    #: Where: "subscription 7 (orders.>)", say.
    origin: str
    #: What there is to say.
    message: str


def error_filter(
    severity: str, event: str, origin: str, since_ns: int, after: int, limit: Optional[int]
) -> layout.ErrorFilter:
    """As C wants it."""
    raw = layout.ErrorFilter()
    raw.struct_size = ctypes.sizeof(raw)
    raw.severity = one_of("severity", severity, SEVERITIES)
    raw.event, raw.origin = text("event", event), text("origin", origin)
    raw.since_ns = whole("since_ns", since_ns, 64)
    raw.after = whole("after", after, 64)
    raw.limit = whole("limit", limit or 0, 64)
    return raw


def error_of(pointer: Any) -> HubError:
    """A copy of what C shows."""
    raw = pointer.contents

    def copied(each: Any) -> str:
        return ctypes.string_at(each.text, each.size).decode() if each.size else ""

    severity = _NAMES.get(raw.severity, str(raw.severity))
    event, origin, message = copied(raw.event), copied(raw.origin), copied(raw.message)
    return HubError(raw.number, raw.time_ns, severity, event, origin, message)


def metrics_of(hub: Native, format: str) -> str:
    """Figures of a hub as text."""
    number = one_of("format", format, _FORMATS)
    return figures(number, lambda *room: lib.pace_hub_metrics(hub.pointer, *room))


@dataclass(frozen=True)
class Threshold:
    """A limit for a figure, of which ``metric`` and ``labels`` are as ``Hub.metrics`` has them: crossed when
    the figure is ``above`` it, or ``below``. Just one of the two is given."""

    metric: str
    above: Optional[float] = None
    below: Optional[float] = None
    #: Back when the figure is not beyond this, which lies before the limit. None: the limit itself.
    back_at: Optional[float] = None
    #: Of the first figure that has all of these.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Looks at how much the figure grows in a second.
    rate: bool = False
    #: Looks at this quantile of a distribution, 0 to 1.
    quantile: Optional[float] = None
    #: How serious a crossing is: "info", "warning" or "error".
    severity: str = "warning"

    def fill(self, raw: layout.Threshold) -> Any:
        """Fills C's; what is given back must live as long."""
        check(quick.pace_threshold_init(ctypes.byref(raw), ctypes.sizeof(raw)))
        if (self.above is None) == (self.below is None):
            raise InvalidError(f"{self!r}; allowed: either above or below")
        if self.rate and self.quantile is not None:
            raise InvalidError(f"{self!r}; allowed: either rate or quantile")
        raw.metric = text("metric", self.metric)
        raw.severity = one_of("severity", self.severity, SEVERITIES)
        raw.below = self.below is not None
        if self.above is not None:
            raw.limit = finite("above", self.above)
        if self.below is not None:
            raw.limit = finite("below", self.below)
        if self.back_at is not None:
            raw.back_at = finite("back_at", self.back_at)
        if self.rate:
            raw.part = layout.THRESHOLD_RATE
        if self.quantile is not None:
            raw.part, raw.quantile = layout.THRESHOLD_QUANTILE, finite("quantile", self.quantile)
        if not isinstance(self.labels, Mapping):
            raise wrong("labels", self.labels, "a mapping of texts")
        rows = (layout.Label * len(self.labels))()
        for row, (name, value) in zip(rows, self.labels.items()):
            row.name, row.value = text("labels", name), text("labels", value)
        raw.labels, raw.label_count = ctypes.addressof(rows), len(rows)
        return rows


class Watch:
    """Thresholds that are watched, until ``close``, or until this is lost. Crossings come to who subscribes to
    ``$SYS.threshold.>``."""

    def __init__(
        self, hub: Native, workers: Optional[Native], every: float, thresholds: Iterable[Threshold]
    ) -> None:
        given = items("thresholds", thresholds, "an iterable of paceline.Threshold")
        for threshold in given:
            instance("thresholds", threshold, Threshold)
        rows = (layout.Threshold * len(given))()
        kept = [threshold.fill(row) for threshold, row in zip(given, rows)]
        pointer = ctypes.c_void_p()
        inside = None if workers is None else workers.pointer
        check(
            lib.pace_hub_watch(
                hub.pointer,
                inside,
                nanos("every", every),
                rows,
                len(rows),
                None,
                None,
                None,
                ctypes.byref(pointer),
            )
        )
        del kept
        self._native: Optional[Native] = Native(pointer, lib.pace_watch_free)

    def _stats(self) -> layout.WatchStats:
        stats = layout.WatchStats()
        stats.struct_size = ctypes.sizeof(stats)
        if self._native is not None:
            check(quick.pace_watch_stats(self._native.pointer, ctypes.byref(stats)))
        return stats

    @property
    def looks(self) -> int:
        """How often it has looked; 0 when it is closed."""
        return int(self._stats().looks)

    @property
    def crossed(self) -> int:
        """How many thresholds are crossed now; 0 when it is closed."""
        return int(self._stats().crossed)

    def close(self) -> None:
        """Ends it. Calling it again is allowed."""
        self._native = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Watch: it belongs to this process")
