"""The structured log: what happens in pools, and in all that stands on them.

The file is written by a native thread, without the interpreter's lock. For ``logging`` and functions a thread of
Python's takes records in batches out of a completion queue: no thread of a pool ever calls into the interpreter.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _layout as layout
from . import _lifetime
from ._arguments import path, patience, some_plain, text, whole
from ._clock import monotonic
from ._contain import report
from ._errors import ShutDownError
from ._library import check, error, in_slices, lib, quick
from ._native import Native, freed_on_failure
from ._settings_files import Given, load

#: Below ``logging.DEBUG``.
TRACE = 5

_LEVELS = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE,
}

#: Records that are taken at once, and that may wait for that.
_BATCH, _CAPACITY = 64, 8192


@dataclass(frozen=True)
class LogRecord:
    """Something that a component tells."""

    #: When it was written: seconds since 1970.
    time: float
    #: "error", "warn", "info", "debug" or "trace".
    level: str
    #: Who tells it: "pool", "net", "http", "task", "hub", "history", "webhook", "service" or "log".
    component: str
    #: What happened: a name that stays, as "accept.paused".
    event: str
    #: The name of the pool that it happened in.
    pool: str
    #: What has happened, as a sentence for people.
    message: str
    #: What belongs to it, in order. Times end in ``_ns``.
    fields: dict[str, Union[int, float, str]]

    def __str__(self) -> str:
        fields = "".join(f" {name}={value}" for name, value in self.fields.items())
        return f"{self.event}: {self.message}{fields}"


@dataclass(frozen=True)
class LogStats:
    """What a Log has done."""

    #: Records that its thread has taken.
    told: int
    #: Those that found no room.
    dropped: int
    #: Lines that could not be written, and the last reason.
    errors: int
    last_error: Optional[str]


def quiet(silent: bool = True) -> None:
    """Whether the library keeps silent about faults that no ``Log`` is told of. By default it does not.

    What code of Python raises where nobody waits for it is told to ``logging``, under "paceline", whether there is a
    ``Log`` or not. Of any other fault of a pool without a ``Log`` (a subscription that is suspended, a server without
    descriptors, a log's file that cannot be written and the like) the library writes one line to the standard error
    stream: at most one in 10 seconds for each kind of fault, with the number of those that were not written. With a
    ``Log``, given to the pool or installed, such a fault is a record of it and no line. It holds for the process.
    """
    quick.pace_quiet(bool(silent))


def to_logging(record: LogRecord) -> None:
    """Tells the standard ``logging``, under "paceline.pool" and so on, with the record as ``paceline`` of its own
    record, and its time. A ``Log`` does so unless it is told not to."""
    logger = logging.getLogger("paceline." + record.component)
    level = _LEVELS[record.level]
    if logger.isEnabledFor(level):
        extra: dict[str, Any] = {"paceline": record}
        own = logger.makeRecord(logger.name, level, "", 0, "%s", (record,), None, extra=extra)
        own.created, own.msecs = record.time, record.time % 1 * 1000
        logger.handle(own)


def _value(field: Any) -> Union[int, float, str]:
    if field.kind == layout.LOG_TEXT:
        own: bytes = field.text
        return own.decode("utf-8", "replace")
    number: Union[int, float] = (field.u64, field.i64, field.f64)[field.kind]
    return number


def _record(raw: Any) -> LogRecord:
    fields = (layout.LogField * raw.field_count).from_address(raw.fields or 0)
    return LogRecord(
        raw.time_ns / 1e9,
        quick.pace_log_level_name(raw.level).decode(),
        quick.pace_log_component_name(raw.component).decode(),
        raw.event.decode(),
        raw.pool.decode("utf-8", "replace"),
        raw.message.decode("utf-8", "replace"),
        {field.name.decode(): _value(field) for field in fields},
    )


class _Reader:
    """The thread that takes records. It knows nothing of the Log, so that a lost one is collected."""

    def __init__(self, native: Native, sinks: list[Callable[[LogRecord], object]]) -> None:
        self._native = native
        queue = ctypes.c_void_p()
        check(lib.pace_cq_new(None, None, ctypes.byref(queue)))
        self._queue = Native(queue, lib.pace_cq_free)
        self._sinks = sinks
        self._told = threading.Condition()
        #: Records that all sinks were told, and whether no more will be.
        self._count = 0
        self._over = False
        self._thread = threading.Thread(name="paceline_log", target=self._run)
        # The log before its queue.
        with freed_on_failure(native, self._queue):
            _lifetime.check_threads()
            check(quick.pace_cq_log(queue, native.pointer, 0))
            if _lifetime.enlist(self):
                self._thread.start()
            else:
                self._over = True

    def _run(self) -> None:
        try:
            self._take()
        finally:
            with self._told:
                self._over = True
                self._told.notify_all()

    def _take(self) -> None:
        entries = (layout.CqEntry * _BATCH)()
        queue, got = self._queue.pointer, ctypes.c_size_t()
        wait, here = lib.pace_cq_wait, ctypes.byref(got)
        while True:
            status = wait(queue, entries, _BATCH, layout.FOREVER, here)
            if status != layout.OK:
                if status not in (layout.ESHUTDOWN, layout.EFORKED):
                    report("the log cannot be read: %s", str(error(status)))
                return
            count = got.value
            for entry in entries[:count]:
                if entry.kind == layout.CQ_ENDED:
                    count -= 1
                    quick.pace_cq_close(queue)
                    continue
                try:
                    self._tell(_record(entry.detail.record))
                except BaseException as raised:
                    report("a record of a log is lost", raised=raised)
            quick.pace_cq_done(queue, entries, got)
            with self._told:
                self._count += count
                self._told.notify_all()

    def _tell(self, record: LogRecord) -> None:
        for sink in self._sinks:
            try:
                sink(record)
            except BaseException as raised:
                report("a function of a log has failed", raised=raised)

    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def wait(self, count: int, end: Optional[float]) -> bool:
        """Whether so many have been told in time. Raises ShutDownError: the thread has ended before."""
        with self._told:
            left = None if end is None else max(0.0, end - monotonic())
            self._told.wait_for(lambda: self._count >= count or self._over, left)
            if self._count < count and self._over:
                raise ShutDownError("the log's thread has ended")
            return self._count >= count

    def exit(self) -> None:
        """The interpreter ends: what waits is told, and the thread ends."""
        lib.pace_log_close(self._native.pointer, 0)

    def join(self) -> object:
        if not self.is_here() and self._thread.ident is not None:
            self._thread.join()
        return None

    def forked(self) -> None:
        """There is no such thread here."""


class Log:
    """Tells what happens in pools, and in all that stands on them; give it to one or several ``Pool``, or
    ``install`` it.

    ``levels``: "info,net=debug,hub=off", a level for all components, then those that differ: error, warn, info,
    debug, trace, off; of pool, net, http, task, hub, history, webhook, service, log. Default: info.
    ``logger``: as records of ``logging``, see ``to_logging``. ``callback``: called with a LogRecord; what it raises
    is logged. Both on a thread of Python's that is the log's. ``file``: as lines of JSON, appended, by a native
    thread; at ``max_size`` bytes (1 KiB to 1 TiB, default 64 MiB) it is renamed to file.1, that to file.2, and
    ``files`` (1 to 1000, default 4) are kept. Several logs may write one file, in one process or in several. A
    character device, a pipe and what a link in /proc leads to, as /dev/stdout, are written and never renamed; a
    directory, a block device and a socket are refused. ``capacity`` (1 to 2**20, default 8192) records may wait before
    others are dropped and counted.

    ``settings``, a file (JSON or YAML) whose section ``log`` says what is not given here, and ``environment``:
    variables PACELINE_LOG_… win over that. Raises InvalidError, which names what is wrong.
    """

    def __init__(
        self,
        file: Union[str, os.PathLike[str], None] = None,
        *,
        levels: Optional[str] = None,
        callback: Optional[Callable[[LogRecord], object]] = None,
        logger: bool = True,
        max_size: Optional[int] = None,
        files: Optional[int] = None,
        capacity: Optional[int] = None,
        settings: Given = None,
        environment: bool = False,
    ) -> None:
        some_plain("callback", callback)
        config = layout.LogConfig()
        check(quick.pace_log_config_init(ctypes.byref(config), ctypes.sizeof(config)))
        load(config, lib.pace_log_config_load, settings, environment)
        if levels is not None:
            config.levels = text("levels", levels)
        if file is not None:
            config.file = path("file", file)
        if max_size is not None:
            config.max_size = whole("max_size", max_size, 64)
        if files is not None:
            config.files = whole("files", files)
        if capacity is not None:
            config.capacity = whole("capacity", capacity)
        sinks: list[Callable[[LogRecord], object]] = [to_logging] if logger else []
        if callback is not None:
            sinks.append(callback)
        if sinks:
            config.cq_capacity = max(_CAPACITY, config.capacity)
        pointer = ctypes.c_void_p()
        check(lib.pace_log_new(ctypes.byref(config), ctypes.byref(pointer)))
        #: The native log.
        self.native = native = Native(pointer, lib.pace_log_free)
        self._reader = reader = _Reader(native, sinks) if sinks else None
        if reader is not None:
            # A lost log, which no pool has either, ends by itself.
            self._lost = weakref.ref(self, lambda _: reader.exit())

    def install(self) -> None:
        """Makes it the log of all pools that are made from now on without one of their own, until the process
        ends: whoever writes the program may, libraries should not. Raises Full: there is one already."""
        check(quick.pace_log_install(self.native.pointer))
        _installed.append(self)

    def set_levels(self, levels: str) -> None:
        """Which records are made from now on. Raises InvalidError: it is no such text."""
        check(quick.pace_log_set_levels(self.native.pointer, text("levels", levels)))

    def levels(self) -> dict[str, str]:
        """The level of each component."""
        levels: dict[str, str] = {}
        level = ctypes.c_uint32()
        for component in range(9):
            check(quick.pace_log_level(self.native.pointer, component, ctypes.byref(level)))
            name = quick.pace_log_component_name(component).decode()
            levels[name] = quick.pace_log_level_name(level.value).decode()
        return levels

    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits until everything that happened before was told and written. Not in its own callback. Raises
        TimeoutError, ShutDownError: the thread that tells it has ended."""
        self._wait(lib.pace_log_flush, timeout)

    def close(self, timeout: Optional[float] = None) -> None:
        """Turns all levels off and waits until everything is told and written. Not in its own callback. Raises
        TimeoutError, ShutDownError: the thread that tells it has ended."""
        self._wait(lib.pace_log_close, timeout)

    def _wait(self, written: Callable[[Any, int], int], timeout: Optional[float]) -> None:
        timeout = patience("timeout", timeout)
        end = None if timeout is None else monotonic() + timeout
        check(in_slices(lambda left: written(self.native.pointer, left), timeout))
        reader = self._reader
        if reader is None:
            return
        if reader.is_here():
            raise error(layout.EDEADLOCK)
        if not reader.wait(self._stats().queued, end):
            raise error(layout.ETIMEDOUT)

    def _stats(self) -> layout.LogStats:
        stats = layout.LogStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_log_stats(self.native.pointer, ctypes.byref(stats)))
        return stats

    def stats(self) -> LogStats:
        """What it has done so far."""
        stats = self._stats()
        last = stats.last_error
        told = None if last is None else last.decode("utf-8", "replace")
        return LogStats(stats.told, stats.dropped, stats.errors, told)


#: It is used until the process ends.
_installed: list[Log] = []
