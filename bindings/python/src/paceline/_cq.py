"""``CompletionQueue``: what happens on a pool as data, for a loop or threads of one's own.

The library puts what happens into a list, and a thread takes it when it likes; so no thread of a pool ever calls into the
interpreter. Entries are copied when they are taken. They are out until they are completed, which is what a handler's
return is elsewhere: a descriptor, a connection and a mailbox's message wait for that.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable
from enum import IntEnum, IntFlag
from types import TracebackType
from typing import Any, NamedTuple, Optional, Union

from . import _layout as layout
from ._arguments import (
    keywords,
    BytesLike,
    data as data_of,
    instance,
    items,
    nanos,
    number,
    patience,
    text,
    whole,
    within,
)
from ._hosts import Native, addresses, base_of
from ._library import check, error, in_slices, lib, quick
from ._listen import ListenSettings, Listeners, Places, fd_of, listeners
from ._typing import Unpack
from ._mailbox import Mailbox
from ._message import MESSAGE, Message, message_of
from ._native import NativePool, NativeQueue
from ._pool import Flow, HasFileno, Interest, Pool, Ready


class EntryKind(IntEnum):
    """What has happened, as an entry tells it."""

    #: A descriptor is ready: ``detail`` is a Ready.
    READY = layout.CQ_READY
    #: A periodic timer is due.
    TICK = layout.CQ_TICK
    #: A timer that runs once is due.
    TIMER = layout.CQ_TIMER
    #: A tag of the program's own was posted.
    TASK = layout.CQ_TASK
    #: Something happened to a connection: ``detail`` is a ConnDetail, ``data`` what has arrived.
    CONN = layout.CQ_CONN
    #: A message of a mailbox or replay: ``detail`` is the Message, ``data`` its payload.
    MESSAGE = layout.CQ_MESSAGE
    #: A signal of the process: ``detail`` is its number.
    SIGNAL = layout.CQ_SIGNAL
    #: The source of this tag brings nothing more.
    ENDED = layout.CQ_ENDED


class Complete(IntFlag):
    """What else is to be done when an entry is completed."""

    #: A connection whose time was over goes on.
    KEEP = layout.CQ_KEEP
    #: A connection that was opened is not wanted: it is sent ``data``, and closed.
    REFUSE = layout.CQ_REFUSE
    #: A connection: after what is queued, the peer is told that no more is sent.
    FINISH = layout.CQ_FINISH
    #: A connection is closed after what is queued.
    CLOSE = layout.CQ_CLOSE
    #: A connection is closed at once.
    ABORT = layout.CQ_ABORT
    #: A connection: only write and close; the entry stays out.
    HOLD = layout.CQ_HOLD
    #: What handles it has failed: a connection is closed at once, a message becomes a dead letter.
    FAIL = layout.CQ_FAIL
    #: A message is brought once more, as its next attempt.
    RETRY = layout.CQ_RETRY


class ConnEvent(IntEnum):
    """What happens to a connection."""

    #: The connection is there, and may be refused.
    OPENED = layout.CONN_EVENT_OPENED
    #: Bytes of the peer have arrived.
    DATA = layout.CONN_EVENT_DATA
    #: The peer sends no more.
    FINISHED = layout.CONN_EVENT_FINISHED
    #: The output was above its high mark, and has fallen to the low mark.
    WRITABLE = layout.CONN_EVENT_WRITABLE
    #: All bytes up to and including a tracked write have been given to the kernel.
    WRITTEN = layout.CONN_EVENT_WRITTEN
    #: A time is over: unless it is completed with ``Complete.KEEP``, the connection is closed at once.
    TIMED_OUT = layout.CONN_EVENT_TIMED_OUT
    #: The server drains, and this connection should come to its end.
    DRAINING = layout.CONN_EVENT_DRAINING
    #: The end, and the connection's last event.
    CLOSED = layout.CONN_EVENT_CLOSED


class ConnDetail(NamedTuple):
    """What happened to which connection."""

    #: The number of the connection.
    conn: int
    event: ConnEvent
    #: CLOSED: a Reason's number; TIMED_OUT: a Timeout's. Otherwise 0.
    detail: int
    #: CLOSED: the errno of what failed, or a Timeout's number. Otherwise 0.
    number: int


class CompletionEntry(NamedTuple):
    """One thing that happened. Its data are copies, and may be kept."""

    kind: EntryKind
    #: What was given with the source.
    tag: int
    #: What it is completed by; 0: there is nothing to complete.
    token: int
    #: The bytes that the kind speaks of.
    data: bytes
    #: More, as the kind has it; None: nothing.
    detail: Any
    #: It was brought before, and not completed within the lease.
    again: bool


class CompletionStats(NamedTuple):
    """What a completion queue has counted: brought = completed + withdrawn + out."""

    #: Entries with a token that were taken, each time.
    brought: int
    completed: int
    #: Those whose lease was over.
    withdrawn: int
    #: Those that are out now.
    out: int


_ENTRY = ctypes.sizeof(layout.CqEntry)
_MOST = 1024


class CompletionQueue:
    """A queue of what happens on a pool: descriptors, timers, tags, connections, messages, signals, each with the tag that
    it was attached with. Any thread may wait, several too; each entry goes to one of them.

    ``lease`` (seconds, at least 0.001; None: none): an entry that is neither completed nor renewed for so long is taken
    from whoever has it, and brought to another. Left open at the interpreter's end, or lost, it is closed. In a child
    made by fork it raises ForkedError.

        queue = paceline.CompletionQueue(pool)
        queue.after(0.1, tag=1)
        for entry in queue.wait():
            ...
            queue.done(entry)
    """

    def __init__(self, pool: Pool, *, lease: Optional[float] = None) -> None:
        instance("pool", pool, Pool)
        nanoseconds = 0 if lease is None else nanos("lease", lease, 0.001)
        runner = pool._runner
        runner.check_open()
        #: The pool lives as long as this.
        self.pool = pool
        self._handles = _Handles(runner.native)

        def free(queue: ctypes.c_void_p, handles: _Handles = self._handles) -> None:
            handles.close()
            lib.pace_cq_free(queue)

        # Threads of the pool serve it; without some, who waits does.
        self._queue = NativeQueue(runner.native.pointer, runner.most > 0, nanoseconds, free)
        self._native = self._queue.native
        self._leased = nanoseconds > 0
        #: What is attached, as long as it may be needed.
        self._kept: list[Any] = []

    def wait(self, most: int = 64, timeout: Optional[float] = None) -> list[CompletionEntry]:
        """Waits up to ``timeout`` seconds (None: for ever) for an entry, and takes up to ``most`` (1024 at most) of those
        that are there; sources take turns. Empty: none has come. If the pool has no threads, the caller takes part in it
        meanwhile, as by ``Pool.join``.

        Raises ShutDownError when the queue is closed, or its pool has stopped and all sources have ended;
        InvalidError, ForkedError; DeadlockError in a handler.
        """
        most, timeout = within("most", most, 1, _MOST), patience("timeout", timeout)
        rows, got = (layout.CqEntry * most)(), ctypes.c_size_t()
        pointer, at = self._native.pointer, ctypes.byref(got)
        status = in_slices(lambda left: lib.pace_cq_wait(pointer, rows, most, left, at), timeout)
        if status == layout.ETIMEDOUT:
            return []
        if status != layout.OK:
            raise error(status)
        entries = [_entry(rows[index]) for index in range(got.value)]
        if self._leased:
            # Not before all is copied: what an entry lends is gone with its lease.
            for token in dict.fromkeys(row.token & ~0xFF for row in rows[: got.value] if row.token):
                quick.pace_cq_renew(pointer, token)
        return entries

    def done(self, *entries: CompletionEntry) -> None:
        """Completes entries with nothing to say, as a handler does that returns at once. Raises StaleError if one of them
        is not out; the others are completed all the same."""
        rows = (layout.CqEntry * len(entries))()
        for row, entry in zip(rows, entries):
            row.token = instance("entries", entry, CompletionEntry).token
        check(lib.pace_cq_done(self._native.pointer, rows, len(entries)))

    def complete(
        self,
        entry: CompletionEntry,
        *,
        flow: Flow = Flow.WAIT,
        data: BytesLike = b"",
        left: int = 0,
        flags: Complete = Complete(0),
        message: Optional[str] = None,
    ) -> int:
        """Completes an entry: ``flow`` of a descriptor or tick; of a connection ``data``, which is written to it first,
        and ``left``, how many of the last bytes are not consumed and come again; ``message``, what went wrong with a
        message that fails. Returns a WriteStatus number for a connection that was written to, otherwise 0.

        Raises StaleError if it is not out or its connection has ended; Full if there was no room for ``data``: then it
        is out still; InvalidError.
        """
        sent, made = data_of("data", data), layout.CqCompletion()
        made.token = instance("entry", entry, CompletionEntry).token
        made.flags, made.answer = int(Complete(number("flags", flags))), int(Flow(number("flow", flow)))
        made.bytes, made.size = base_of(sent), len(sent)
        made.length = whole("left", left, 63)
        if message is not None:
            made.message = text("message", message)
        check(lib.pace_cq_complete(self._native.pointer, ctypes.byref(made), 1))
        return int(made.status)

    def renew(self, entry: CompletionEntry) -> None:
        """Says that this is still worked on: its lease begins anew. Raises StaleError if it is not out."""
        check(quick.pace_cq_renew(self._native.pointer, instance("entry", entry, CompletionEntry).token))

    def fileno(self) -> int:
        """A descriptor that is readable while ``wait(timeout=0)`` may find something, for a loop of one's own. It belongs
        to the pool: never read or close it."""
        return self._queue.fileno()

    def stats(self) -> CompletionStats:
        """What it has counted until now. Any thread."""
        raw = layout.CqStats()
        raw.struct_size = ctypes.sizeof(raw)
        check(quick.pace_cq_stats(self._native.pointer, ctypes.byref(raw)))
        return CompletionStats(*(getattr(raw, name) for name in CompletionStats._fields))

    # --- sources ---------------------------------------------------------------------------------

    def register(
        self,
        io: Union[HasFileno, int],
        tag: int,
        *,
        interest: Interest = Interest.READABLE,
        level: bool = True,
    ) -> None:
        """Entries tell whenever ``io``, a socket or descriptor, is ready; the next comes after one was completed, with
        ``Flow.DONE`` none. ``io`` must stay open until then, or until the queue is closed. Raises as ``Pool.register``."""
        fd = io if isinstance(io, int) else fd_of("io", io)
        wanted, tag = number("interest", interest), whole("tag", tag, 64)
        self._handles.add(self._queue.register(fd, wanted, bool(level), False, False, tag))

    def every(self, seconds: float, tag: int) -> None:
        """A tick comes every ``seconds``, until one is completed with ``Flow.DONE``; those that are due while one is out
        are skipped. Raises InvalidError, Full, ShutDownError."""
        period = nanos("seconds", seconds)
        self._handles.add(self._queue.every(period, whole("tag", tag, 64)))

    def after(self, seconds: float, tag: int) -> None:
        """An entry comes once, ``seconds`` from now. Raises InvalidError, Full, ShutDownError."""
        delay = nanos("seconds", seconds)
        self._queue.after(delay, whole("tag", tag, 64))

    def post(self, *tags: int) -> None:
        """Each tag comes as an entry, in order. Any thread; it never waits. Raises Full when a lane of the pool has no
        room for more: then those before it are taken; ShutDownError."""
        array = (ctypes.c_uint64 * len(tags))(*(whole("tags", tag, 64) for tag in tags))
        check(quick.pace_cq_post(self._native.pointer, array, len(tags), None))

    def wake(self, tag: int = 0) -> None:
        """Wakes one thread that waits, or the next that would: ``tag`` comes as an entry, as one that was posted. But it
        is no task: no drain waits for it. Any thread; it never waits. Raises ShutDownError."""
        check(quick.pace_cq_wake(self._native.pointer, whole("tag", tag, 64)))

    def mailbox(self, mailbox: Mailbox, tag: int) -> None:
        """Messages of a mailbox come as entries, in order, and count as delivered; ``Complete.FAIL`` makes one a dead
        letter. It is no more pulled by itself then. Raises InvalidError if it is attached already, or was pulled."""
        native = instance("mailbox", mailbox, Mailbox)._native.pointer
        check(lib.pace_cq_mailbox(self._native.pointer, native, whole("tag", tag, 64)))
        self._kept.append(mailbox)

    def signals(self, numbers: Iterable[int], tag: int) -> None:
        """Signals of these numbers come as entries, as long as this queue lives. They are blocked in the calling thread;
        another thread that does not block one would get it. Raises InvalidError if there is such a thread."""
        own = [number("numbers", each) for each in items("numbers", numbers, "an iterable of numbers")]
        array, pointer = (ctypes.c_int32 * len(own))(*own), ctypes.c_void_p()
        tag, at = whole("tag", tag, 64), ctypes.byref(pointer)
        check(lib.pace_cq_signals(self._native.pointer, array, len(own), tag, at))
        self._kept.append(Native(pointer, lib.pace_signals_free))

    def serve(
        self,
        listen: Places,
        tag: int,
        *,
        wanted: Iterable[ConnEvent] = (),
        **settings: Unpack[ListenSettings],
    ) -> list[str]:
        """Serves connections at ``listen``, as ``Server`` does with these settings, and what happens to them comes as
        entries: data, and the events that are ``wanted``. Returns the addresses. It ends with the queue. Raises as
        ``Server``."""
        keywords(CompletionQueue.serve, settings, ListenSettings)
        where, options = Listeners(listeners(listen, dict(settings))), layout.ServerOptions()
        check(quick.pace_server_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.listeners, options.listener_count = where.pointer, where.count
        events = items("wanted", wanted, "an iterable of ConnEvent")
        bits = sum({_WANTED[ConnEvent(number("wanted", event))] for event in events})
        pointer, tag = ctypes.c_void_p(), whole("tag", tag, 64)
        at = ctypes.byref(options)
        check(lib.pace_cq_server(self._native.pointer, at, bits, tag, ctypes.byref(pointer)))
        self._kept.append(Native(pointer, lib.pace_server_free))
        return addresses(pointer)

    def close(self) -> None:
        """Nothing is brought any more, and every thread that waits gets ShutDownError. Descriptors are free and ticks
        end, as soon as what is out of them is completed."""
        lib.pace_cq_close(self._native.pointer)
        self._handles.close()

    def __enter__(self) -> CompletionQueue:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        raised: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.CompletionQueue: it belongs to this process")


_WANTED = {
    ConnEvent.DATA: 0,
    ConnEvent.OPENED: layout.WANTED_OPENED,
    ConnEvent.FINISHED: layout.WANTED_FINISHED,
    ConnEvent.WRITABLE: layout.WANTED_WRITABLE,
    ConnEvent.WRITTEN: layout.WANTED_WRITTEN,
    ConnEvent.TIMED_OUT: layout.WANTED_TIMED_OUT,
    ConnEvent.DRAINING: layout.WANTED_DRAINING,
    ConnEvent.CLOSED: layout.WANTED_CLOSED,
}


class _Handles:
    """What is registered for a queue, and ends with it."""

    def __init__(self, native: NativePool) -> None:
        self._native = native
        self._all: deque[int] = deque()

    def add(self, handle: int) -> None:
        self._all.append(handle)

    def close(self) -> None:
        while True:
            try:
                handle = self._all.popleft()
            except IndexError:
                return
            # Stale: it was completed with DONE. Closing: it ends when what is out of it is completed.
            lib.pace_handle_deregister(self._native.pointer, handle)


def _entry(row: layout.CqEntry) -> CompletionEntry:
    kind, detail = EntryKind(row.kind), None
    sent = ctypes.string_at(row.bytes, row.size) if row.size else b""
    if kind is EntryKind.READY:
        detail = Ready(row.detail.ready.ready)
    elif kind is EntryKind.CONN:
        conn = row.detail.conn
        detail = ConnDetail(conn.conn, ConnEvent(conn.event), conn.detail, conn.number)
    elif kind is EntryKind.MESSAGE:
        detail = _message(row)
    elif kind is EntryKind.SIGNAL:
        detail = row.detail.signal
    return CompletionEntry(kind, row.tag, row.token, sent, detail, bool(row.flags & layout.CQ_AGAIN))


def _message(row: layout.CqEntry) -> Message:
    at = ctypes.addressof(row) + layout.CqEntry.detail.offset
    return message_of(ctypes.string_at(at, MESSAGE.size))
