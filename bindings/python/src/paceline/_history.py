"""What a hub keeps of its messages, to be asked for and replayed."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from . import _layout as layout
from ._arguments import nanos, some_text, text, whole
from ._errors import InvalidError
from ._library import check, lib, quick
from ._mailbox import Pulled, supervisor_of
from ._supervision import Supervisor

if TYPE_CHECKING:
    from ._subscriptions import Core
else:
    Core = Any

EACH_RECORD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(layout.Message))
EACH_HISTORY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(layout.HistoryStats))


@dataclass(frozen=True)
class History:
    """What a hub keeps of the messages that a pattern matches. Each limit applies by itself, and what is oldest
    goes first; None is no limit. Times are seconds."""

    pattern: str = ">"
    #: In memory; bytes are those of payloads and headers, and 96 for each message.
    keep_count: Optional[int] = 1024
    keep_bytes: Optional[int] = None
    keep_age: Optional[float] = None
    #: A file of SQLite that keeps them, too, and not ":memory:"; the hub's sequences go on where it ends.
    #: UnsupportedError if the library was built without archives.
    archive: Optional[str] = None
    archive_count: Optional[int] = None
    archive_bytes: Optional[int] = None
    archive_age: Optional[float] = None
    #: A file that lines of JSON are appended to, and how large it becomes before it is renamed to ``.1``. Several
    #: histories may write one file. It may be a device, as for ``Log``, and is no pipe.
    lines: Optional[str] = None
    lines_max_size: int = 64 << 20
    lines_files: int = 4
    #: What waits is written after so long, or when it is so many messages.
    commit_delay: float = 0.01
    commit_messages: int = 1024
    #: Where there is no room publishers write to the disk themselves, or wait for so long, and publishing raises
    #: Full then; on threads of the pool at once if the disk fails. None: publishers never wait, and the archive
    #: goes without what has waited longest: ``Hub.flush`` raises GivenUpError then.
    disk_wait: Optional[float] = 10.0
    #: A commit counts when the file was written, and not only when the disk has it.
    process_only: bool = False

    @property
    def waits(self) -> bool:
        """Whether publishers may write it, or wait for it."""
        return self.disk_wait is not None and (self.archive is not None or self.lines is not None)

    def fill(self, options: layout.HistoryOptions) -> None:
        """Writes it where C reads it."""
        check(quick.pace_history_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.pattern = text("pattern", self.pattern)
        options.keep_count = _limit("keep_count", self.keep_count)
        options.keep_bytes = _limit("keep_bytes", self.keep_bytes)
        options.keep_age_ns = _age("keep_age", self.keep_age)
        options.archive = some_text("archive", self.archive)
        options.archive_count = _limit("archive_count", self.archive_count)
        options.archive_bytes = _limit("archive_bytes", self.archive_bytes)
        options.archive_age_ns = _age("archive_age", self.archive_age)
        options.lines = some_text("lines", self.lines)
        options.lines_max_size = whole("lines_max_size", self.lines_max_size, 64)
        options.lines_files = whole("lines_files", self.lines_files)
        options.commit_delay_ns = nanos("commit_delay", self.commit_delay)
        options.commit_messages = whole("commit_messages", self.commit_messages)
        options.when_full = layout.DISK_GIVE_UP if self.disk_wait is None else layout.DISK_WAIT
        options.disk_wait_ns = 0 if self.disk_wait is None else nanos("disk_wait", self.disk_wait)
        options.process_only = self.process_only


def _limit(name: str, value: Optional[int]) -> int:
    return layout.UNLIMITED if value is None else whole(name, value, 64)


def _age(name: str, value: Optional[float]) -> int:
    return layout.UNLIMITED if value is None else nanos(name, value)


@dataclass(frozen=True)
class HistoryStats:
    """What a history has done."""

    pattern: str
    #: Messages that it took; those that are in memory; how many bytes those count for.
    recorded: int
    in_memory: int
    memory_bytes: int
    #: Those that wait to be written.
    waiting: int
    commits: int
    #: Messages that are on no disk and never will be. Without an archive those of `lines_lost` are among them.
    given_up: int
    #: Commits that failed, to be tried again, and reads of replays that failed.
    errors: int
    read_errors: int
    #: Every message of this run of the hub with a sequence up to this is in the archive. Messages that were given up
    #: are not, so it stays below the first of them. 0: there is none.
    durable: int
    lines_lost: int
    #: The last of these errors; "": none.
    last_error: str
    last_read_error: str
    last_lines_error: str


def stats_of(pointer: Any) -> HistoryStats:
    """A copy of what C shows."""
    raw, found = pointer.contents, {}
    for name in HistoryStats.__dataclass_fields__:
        value = getattr(raw, name)
        if isinstance(value, layout.Text):
            value = ctypes.string_at(value.text, value.size).decode() if value.size else ""
        found[name] = value
    return HistoryStats(**found)


def query_of(
    pattern: str, first: int, last: int, since_ns: int, until_ns: int, limit: Optional[int], newest: bool
) -> layout.Query:
    """As C wants it."""
    query = layout.Query()
    query.struct_size = ctypes.sizeof(query)
    query.newest = newest
    query.pattern = text("pattern", pattern)
    query.first, query.last = whole("first", first, 64), whole("last", last, 64)
    query.since_ns, query.until_ns = whole("since_ns", since_ns, 64), whole("until_ns", until_ns, 64)
    query.limit = 0 if limit is None else whole("limit", limit, 64)
    return query


@dataclass(frozen=True)
class ReplayStats:
    """What a replay has done. Exact while nothing is under way."""

    #: Messages that were read for it, and dead letters that were delivered to it again.
    matched: int
    #: Those that were pulled and not buried, or that its handler has dealt with.
    delivered: int
    #: Those that its handler has failed at for good, and that are no dead letters.
    failed: int
    dead_lettered: int
    #: Those that were read and had not begun when it ended.
    discarded: int
    #: Those that its handler's thread has taken, and that wait to be delivered again.
    waiting: int
    running: int
    #: Those that were no longer kept when their turn came.
    lost: int
    #: The greatest sequence that was pulled, or that the handler was done with; 0 for none.
    last: int
    #: How often its handler was restarted.
    restarts: int
    #: Its number, which no subscription and no other replay of its hub has or had; dead letters tell it.
    number: int
    #: Of ``matched``, dead letters that were delivered again.
    redelivered: int

    @property
    def balances(self) -> bool:
        """Whether every message that matched is in exactly one of the others."""
        ended = self.delivered + self.failed + self.dead_lettered + self.discarded
        return self.matched == ended + self.waiting + self.running


class ReplayMailbox(Pulled):
    """What a history has kept, and then what is published, each message once: ``pull``, ``for``, ``async for``.
    Any thread; each message goes to one of those who pull. It lasts until ``close``, or until it or its hub is
    lost or closed."""

    def __init__(
        self,
        core: Core,
        pattern: str,
        start: tuple[int, int],
        acknowledged: bool = False,
        supervisor: Optional[Supervisor] = None,
    ) -> None:
        options, pointer = layout.ReplayOptions(), ctypes.c_void_p()
        check(quick.pace_replay_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        setattr(options, "from", start[0])
        options.at, options.acknowledged = start[1], acknowledged
        options.supervisor = supervisor_of(supervisor)
        inside, encoded = core.pointer(), text("pattern", pattern)
        at = ctypes.byref(pointer)
        check(lib.pace_hub_replay_mailbox(inside, encoded, ctypes.byref(options), at))
        super().__init__(core, pattern, pointer)

    def stats(self) -> ReplayStats:
        """Its counts. What is in the history and was not pulled is not counted."""
        raw = layout.ReplayStats()
        raw.struct_size = ctypes.sizeof(raw)
        check(quick.pace_replay_mailbox_stats(self._native.pointer, ctypes.byref(raw)))
        return ReplayStats(*(getattr(raw, name) for name in ReplayStats.__dataclass_fields__))


def start_of(
    sequence: Optional[int], since_ns: Optional[int], last: Optional[int], now: bool
) -> tuple[int, int]:
    """Where a replay begins, as C has it."""
    given = [
        (kind, name, value)
        for kind, name, value in (
            (layout.REPLAY_SEQUENCE, "sequence", sequence),
            (layout.REPLAY_TIME, "since_ns", since_ns),
            (layout.REPLAY_LAST, "last", last),
            (layout.REPLAY_NOW, "now", 0 if now else None),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise InvalidError("more than one of sequence, since_ns, last and now is given; allowed: one")
    if not given:
        return layout.REPLAY_BEGINNING, 0
    kind, name, value = given[0]
    return kind, whole(name, value, 64)
