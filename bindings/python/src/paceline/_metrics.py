"""A program's own figures, beside those of a worker pool."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

from . import _layout as layout
from ._native import Native
from ._library import check, lib, quick
from ._arguments import nanos, one_of, real, text, whole

_HISTOGRAMS = {
    "seconds": layout.METRIC_TIMES,
    "bytes": layout.METRIC_BYTES,
    "numbers": layout.METRIC_NUMBERS,
}


#: Of the figures of a worker pool.
FORMATS = {
    "prometheus": layout.METRICS_PROMETHEUS,
    "openmetrics": layout.METRICS_OPENMETRICS,
    "json": layout.METRICS_JSON,
}
_NAMES = {number: name for name, number in FORMATS.items()}


def metrics_format(accept: Optional[str] = None) -> tuple[str, str]:
    """The text format of metrics that a request with this ``Accept`` header wants most, for
    ``WorkerPool.metrics`` and ``Hub.metrics``, and its media type, which is to be sent as ``Content-Type``: a
    collector may take the text for another format without.

    "prometheus" is version 0.0.4 of Prometheus's format, and the answer without a header; "openmetrics" is
    OpenMetrics 1.0::

        @http.get("/metrics")
        def metrics(request):
            format, media_type = paceline.metrics_format(request.header("accept"))
            return Response(workers.metrics(format), headers={"Content-Type": media_type})
    """
    raw = None if accept is None else text("accept", accept)
    number, media_type = ctypes.c_uint32(), ctypes.c_char_p()
    check(lib.pace_metrics_format(raw, ctypes.byref(number), ctypes.byref(media_type)))
    return _NAMES[number.value], (media_type.value or b"").decode()


def figures(wanted: int, call: Callable[[int, Any, int, Any], int]) -> str:
    """What ``call(wanted, text, size, needed)`` writes."""
    needed = ctypes.c_size_t(1 << 13)
    while True:
        # They may take more digits by then.
        room = needed.value + needed.value // 8
        found = ctypes.create_string_buffer(room)
        status = call(wanted, found, room, ctypes.byref(needed))
        if status != layout.EFULL:
            check(status)
            return found.value.decode()


class Counter:
    """A number that only grows. Any thread."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def inc(self, count: int = 1) -> None:
        """So many more. Raises InvalidError."""
        check(quick.pace_metric_count(self._native.pointer, whole("count", count, 64)))


class Gauge:
    """A number that goes up and down. Any thread."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def set(self, value: float) -> None:
        """Sets the value of the gauge."""
        check(quick.pace_metric_set(self._native.pointer, real("value", value)))

    def add(self, difference: float) -> None:
        """So much more; less, if it is negative."""
        check(quick.pace_metric_change(self._native.pointer, real("difference", difference)))


class Histogram:
    """How values are distributed. Any thread."""

    def __init__(self, native: Native, unit: str) -> None:
        self._native = native
        self._is_time = unit == "seconds"

    def record(self, value: float) -> None:
        """One value: seconds, or a whole number. Raises InvalidError."""
        raw = nanos("value", value) if self._is_time else whole("value", value, 64)  # type: ignore[arg-type]
        check(quick.pace_metric_record(self._native.pointer, raw))


def kind_of(unit: str) -> int:
    """Of a histogram. Raises InvalidError."""
    return one_of("unit", unit, _HISTOGRAMS)


def make(workers: Native, kind: int, name: str, help: str, labels: dict[str, str]) -> Native:
    """A figure in the registry of a worker pool. Raises InvalidError, Full."""
    raw = (layout.Label * len(labels))()
    for place, (label, value) in zip(raw, labels.items()):
        place.name, place.value = text("label", label), text(label, str(value))
    pointer, texts = ctypes.c_void_p(), (text("name", name), text("help", help))
    at = ctypes.byref(pointer)
    check(lib.pace_workers_metric(workers.pointer, kind, *texts, raw, len(raw), at))
    return Native(pointer, lib.pace_metric_free)
