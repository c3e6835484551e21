"""The log of outcomes: what became of tasks, told to ``logging``, to a function, and to a file.

The file is written by a native thread, without the interpreter's lock; the others are told by the host
thread that learns of the end.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional, Union

from . import _layout as layout
from ._arguments import path, patience, some_plain, whole
from ._contain import report, shown
from ._hosts import Native
from ._library import check, lib, nanoseconds, quick
from ._task import TaskStatus

#: Where outcomes are logged.
LOGGER = logging.getLogger("paceline.task")

_LEVELS = {
    TaskStatus.COMPLETED: logging.DEBUG,
    TaskStatus.RETRYING: logging.INFO,
    TaskStatus.CANCELLED: logging.INFO,
}


@dataclass(frozen=True)
class Outcome:
    """Something that happened to a task."""

    #: The task's number, and the name under which it was registered.
    id: int
    name: str
    #: RETRYING: an attempt has failed, and another one comes. All others are ends.
    status: TaskStatus
    #: The number of the last attempt; 0 if none was seen.
    attempts: int
    #: What the last attempt raised.
    error: Optional[BaseException]
    #: It has ended, but its function runs still, and nobody can stop it: its time is over, and it takes no
    #: notice.
    stuck: bool = False

    def __str__(self) -> str:
        told = f"{self.name} {self.id} {self.status.name} after {self.attempts} attempts"
        if self.stuck:
            told += ", and its function runs still"
        return told if self.error is None else f"{told}: {shown(self.error)}"


@dataclass(frozen=True)
class OutcomeLogStats:
    """What the file of an OutcomeLog has taken."""

    #: Outcomes that its thread has taken.
    told: int
    #: Those that found no room, because more than ``capacity`` waited.
    dropped: int
    #: Lines that could not be written, and the last reason.
    errors: int
    last_error: Optional[str]


class OutcomeLog:
    """Tells what becomes of tasks; give it to one or several ``WorkerPool``.

    ``logger``: as log records of "paceline.task", completed tasks as debug, retries and cancellations as
    info, the rest as warnings. ``callback``: called with an Outcome, on the thread that ran the task; what
    it raises is logged. ``file``: as lines of JSON, appended; at ``max_size`` bytes (1 KiB to 1 TiB, default
    64 MiB) it is renamed to file.1, that to file.2, and ``files`` (1 to 1000, default 4) are kept; several logs may
    write one file, and it may be a device, as for ``Log``;
    ``capacity`` (1 to 2**20, default 8192) may wait for the disk before others are dropped and counted.

    ``settings``, a file (JSON or YAML) whose section ``outcomes`` says what is not given here, and
    ``environment``: variables PACELINE_OUTCOMES_… win over that. Raises InvalidError, which names what is wrong.
    """

    def __init__(
        self,
        file: Union[str, os.PathLike[str], None] = None,
        *,
        callback: Optional[Callable[[Outcome], object]] = None,
        logger: bool = True,
        max_size: Optional[int] = None,
        files: Optional[int] = None,
        capacity: Optional[int] = None,
        settings: Union[str, os.PathLike[str], None] = None,
        environment: bool = False,
    ) -> None:
        some_plain("callback", callback)
        config = layout.OutcomeLogConfig()
        check(quick.pace_outcome_log_config_init(ctypes.byref(config), ctypes.sizeof(config)))
        if settings is not None or environment:
            where = None if settings is None else path("settings", settings)
            check(lib.pace_outcome_log_config_load(ctypes.byref(config), where, environment))
        if file is not None:
            config.file = path("file", file)
        if max_size is not None:
            config.max_size = whole("max_size", max_size, 64)
        if files is not None:
            config.files = whole("files", files)
        if capacity is not None:
            config.capacity = whole("capacity", capacity)
        self.callback = callback
        self.logger = logger
        #: The native log, if there is a file.
        self.native: Optional[Native] = None
        pointer = ctypes.c_void_p()
        if config.file is not None:
            check(lib.pace_outcome_log_new(ctypes.byref(config), ctypes.byref(pointer)))
            self.native = Native(pointer, lib.pace_outcome_log_free)

    def tell(self, outcome: Outcome) -> None:
        """To the logger and the function."""
        if self.logger:
            level = _LEVELS.get(outcome.status, logging.WARNING)
            report("%s", str(outcome), level=level, logger=LOGGER)
        if self.callback is not None:
            try:
                self.callback(outcome)
            except Exception as raised:
                report("the callback of a log of outcomes has failed", raised=raised)

    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits until the file has everything that happened before. Raises TimeoutError."""
        left = nanoseconds(patience("timeout", timeout))
        if self.native is not None:
            check(lib.pace_outcome_log_flush(self.native.pointer, left))

    def stats(self) -> OutcomeLogStats:
        """What the file has taken so far."""
        stats = layout.OutcomeLogStats()
        stats.struct_size = ctypes.sizeof(stats)
        if self.native is not None:
            check(quick.pace_outcome_log_stats(self.native.pointer, ctypes.byref(stats)))
        error = stats.last_error
        told = None if error is None else error.decode("utf-8", "replace")
        return OutcomeLogStats(stats.told, stats.dropped, stats.errors, told)
