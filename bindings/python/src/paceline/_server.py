"""``Server``: TCP and Unix connections whose handlers are Python's."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import struct
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from threading import get_ident
from types import TracebackType
from typing import Any, Optional

from . import _layout as layout
from ._arguments import BytesLike, function, items, keywords, number, patience, text, whole
from ._arguments import data as data_of
from ._contain import report
from ._errors import ForkedError, StaleError
from ._hosts import (
    queue_of,
    ANSWERS,
    Hosts,
    Source,
    addresses,
    base_of,
)
from ._native import Puller, entries_of, freed_on_failure
from ._library import check, lib, quick
from ._listen import ListenSettings, Listeners, Places, listeners, outgoing, seconds
from ._typing import Unpack
from ._pool import Pool


#: So much is gathered before it is sent.
GATHER = 1 << 16


class WriteStatus(IntEnum):
    """What has become of bytes that were written."""

    #: All of them are with the kernel.
    SENT = 0
    #: Some wait in the queue. Inside a hook they always do.
    QUEUED = 1
    #: The same, and the queue is above its high mark: nothing is read from this connection before it
    #: has fallen to the low mark. Whoever can should write no more until ``writable``.
    ABOVE_HIGH_MARK = 2
    #: None of them: the body of an HTTP answer that is not sent.
    UNWANTED = 3


class Timeout(IntEnum):
    """Which of a connection's times is over."""

    CONNECT = 0
    IDLE = 1
    READ = 2
    STALL = 3


class Reason(IntEnum):
    """Why a connection has ended."""

    #: The peer had finished, and everything was sent.
    PEER = 0
    #: It was closed here, and everything was sent.
    LOCAL = 1
    #: It was aborted: what was queued is lost.
    ABORTED = 2
    #: ``open`` did not want it.
    REFUSED = 3
    #: A time was over; the detail is a Timeout.
    TIMED_OUT = 4
    #: The socket failed; the detail is an errno.
    FAILED = 5
    #: More than ``max_unconsumed`` bytes were not consumed.
    UNCONSUMED = 6
    #: A hook has raised an exception.
    PANICKED = 7
    #: The server drained, and everything was sent.
    DRAINED = 8
    #: The drain's time was over, or the server was closed.
    CUT_OFF = 9
    #: The pool has shut down.
    POOL_ENDED = 10


class ConnHandler:
    """What a connection does. The server makes one for each connection, by calling its ``handler``
    with the Conn. Hooks of one connection never run at the same time; they run on the server's host
    threads. One that raises is logged and counted, and its connection closed.
    """

    def __init__(self, conn: Conn) -> None:
        pass

    def open(self, conn: Conn) -> Optional[BytesLike]:
        """The connection is there. Anything but None refuses it: it is sent that, and closed."""

    def data(self, conn: Conn, data: bytes) -> Optional[int]:
        """Bytes have arrived. Answers how many of them it has consumed, from the front; None: all.
        The rest is shown again, followed by more, when more has come."""
        raise NotImplementedError

    def finished(self, conn: Conn) -> None:
        """The peer sends no more; it may still read. Afterwards the connection is closed by itself, when its
        admitted requests have ended and everything is sent, unless ``allow_half_open`` is set."""

    def writable(self, conn: Conn) -> None:
        """The output was above its high mark (WriteStatus.ABOVE_HIGH_MARK), and has fallen to the low mark."""

    def written(self, conn: Conn, token: int) -> None:
        """All bytes up to a ``write_tracked`` with this token have been given to the kernel."""

    def timeout(self, conn: Conn, kind: Timeout) -> Optional[bool]:
        """A time is over. True: go on, the time begins anew. Otherwise the connection is closed."""

    def draining(self, conn: Conn) -> None:
        """The server drains: the connection is closed when all that has arrived was answered."""

    def error(self, conn: Conn, os_error: int) -> None:
        """The socket has failed; ``os_error`` is an errno. ``close`` follows."""

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        """The end, once. ``detail`` is a Timeout or an errno, where the reason says so. After ``conn.close()`` it is called
        when the peer has closed, too, or after ``linger`` (2 seconds by default)."""


#: Hooks that are not called for unless there are some.
_WANTED = {
    "open": layout.WANTED_OPENED,
    "finished": layout.WANTED_FINISHED,
    "writable": layout.WANTED_WRITABLE,
    "written": layout.WANTED_WRITTEN,
    "timeout": layout.WANTED_TIMED_OUT,
    "draining": layout.WANTED_DRAINING,
}


def _wanted(handler: object) -> int:
    """What is overridden; of a function that makes handlers nobody knows, so it is all."""
    wanted = layout.WANTED_CLOSED
    for name, bit in _WANTED.items():
        base = getattr(ConnHandler, name)
        if not isinstance(handler, type) or getattr(handler, name, base) is not base:
            wanted |= bit
    return wanted


class Admission:
    """A request in work; see ``Conn.admit``. Any thread may end it. One that is left by an exception,
    or lost, was not answered, nor was one that was begun in a hook that has raised."""

    __slots__ = ("_held",)

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        # A list gives its last to one thread only, with the interpreter's lock and without it.
        self._held = [pointer]

    def _take(self) -> Optional[ctypes.c_void_p]:
        try:
            return self._held.pop()
        except (AttributeError, IndexError):
            return None

    def answered(self) -> None:
        """The request was answered, by what has been written before. If its connection has ended
        meanwhile it counts as aborted. Once it has ended, nothing."""
        pointer = self._take()
        if pointer is not None:
            check(quick.pace_admission_answered(pointer))

    def close(self) -> None:
        """The request was not answered, and counts as aborted. Once it has ended, nothing."""
        pointer = self._take()
        if pointer is not None:
            quick.pace_admission_free(pointer)

    def __enter__(self) -> Admission:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.answered()
        else:
            self.close()

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Admission: it belongs to this process")


class Conn:
    """A connection. All methods may be called by any thread. What a hook writes to its own connection
    is gathered, and sent soon after it has returned."""

    __slots__ = (
        "id",
        "handler",
        "_core",
        "_factory",
        "_host",
        "_token",
        "_pieces",
        "_size",
        "_flags",
        "_resumed",
        "_admitted",
    )

    def __init__(self, core: Core, number: int, factory: Factory) -> None:
        #: Its name; no other connection of the server has had it.
        self.id = number
        #: What has its hooks.
        self.handler: Any = None
        self._core = core
        self._factory = factory
        # Inside a hook: its thread, its entry's token, what it has written, and how it has ended the connection.
        self._host = 0
        self._token = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._flags = 0
        # Resumed since the hook began.
        self._resumed = False
        # The requests that the hook has begun.
        self._admitted: list[Admission] = []

    def write(self, data: BytesLike) -> WriteStatus:
        """Writes, in order, without waiting. Raises StaleError if the connection has ended or is to
        be closed, Full if the queue would exceed its maximum: then nothing was taken. An answer whose request was
        not admitted (``admit``) comes too late if meanwhile the connection's idle time is over, its peer has
        finished, or the server drains."""
        if self._host != get_ident():
            return self._write(data_of("data", data))
        if self._flags:
            raise StaleError("the connection is to be closed")
        own = data_of("data", data)
        self._pieces.append(own)
        self._size += len(own)
        return WriteStatus.QUEUED if self._size < GATHER else self.flush()

    def flush(self) -> WriteStatus:
        """Sends what the running hook has written now. Elsewhere there is nothing to send."""
        if self._host != get_ident() or not self._size:
            return WriteStatus.SENT
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        return self._write(data)

    def _write(self, data: bytes) -> WriteStatus:
        wrote = ctypes.c_uint32()
        server, reference = self._core.server, ctypes.byref(wrote)
        check(lib.pace_server_conn_write(server, self.id, data, len(data), reference))
        return WriteStatus(wrote.value)

    def write_vectored(self, pieces: Iterable[BytesLike]) -> WriteStatus:
        """Writes several pieces as one, in one call and without joining them, behind what the running hook
        has written. Raises as ``write``: then none of them was taken."""
        own = [data_of("pieces", piece) for piece in items("pieces", pieces, "several bytes")]
        if self._host == get_ident():
            if self._flags:
                raise StaleError("the connection is to be closed")
            self.flush()
        array = (layout.Piece * len(own))()
        for place, piece in zip(array, own):
            place.bytes, place.size = base_of(piece), len(piece)
        wrote = ctypes.c_uint32()
        server, reference = self._core.server, ctypes.byref(wrote)
        check(lib.pace_server_conn_write_vectored(server, self.id, array, len(own), reference))
        return WriteStatus(wrote.value)

    def write_tracked(self, data: BytesLike, token: int) -> WriteStatus:
        """Writes, and has ``written`` called with the token when all of it has been sent."""
        data, token = data_of("data", data), whole("token", token, 64)
        self.flush()
        wrote = ctypes.c_uint32()
        server, reference = self._core.server, ctypes.byref(wrote)
        size = len(data)
        check(lib.pace_server_conn_write_tracked(server, self.id, data, size, token, reference))
        return WriteStatus(wrote.value)

    def admit(self) -> Optional[Admission]:
        """Inside a hook: begins a request that is answered later. It counts as in work until its Admission is
        answered or closed, by any thread and however late: meanwhile the connection is not idle, and neither a drain
        nor a peer that has finished closes it. None: as many are in work as ``max_requests`` allows, and ``busy``
        was written instead. Raises StaleError outside of hooks."""
        if self._host != get_ident():
            raise StaleError("a request is admitted inside a hook of its connection")
        if self._size:
            # The busy message comes behind it.
            self.flush()
        pointer = ctypes.c_void_p()
        status = lib.pace_cq_admit(self._core.queue.pointer, self._token, ctypes.byref(pointer))
        if status == layout.EFULL:
            return None
        check(status)
        admission = Admission(pointer)
        self._admitted.append(admission)
        return admission

    def shutdown_write(self) -> None:
        """After what is queued, tells the peer that no more is sent. Reading goes on."""
        self._end(layout.CQ_FINISH, lib.pace_server_conn_shutdown_write)

    def close(self) -> None:
        """Closes after what is queued has been sent, and waits up to ``linger`` for the peer to close, too: then the
        hook ``close`` is called. ``abort`` does not wait. Nothing more is read. Once it has ended, nothing."""
        self._end(layout.CQ_CLOSE, lib.pace_server_conn_close)

    def abort(self) -> None:
        """Closes at once. What is queued is lost; a TCP peer sees a reset."""
        self._end(layout.CQ_ABORT, lib.pace_server_conn_abort)

    def _end(self, flag: int, call: Callable[[ctypes.c_void_p, int], int]) -> None:
        if self._host == get_ident():
            self._flags |= flag
            return
        status = call(self._core.server, self.id)
        if status != layout.ESTALE:
            check(status)

    def pause(self) -> None:
        """Reads no more before ``resume``. What the peer has sent is not lost meanwhile, and that it has
        ended is seen behind that, or by a write that fails.

        Inside a hook of this connection a ``resume`` that comes while the hook runs ends the pause, also if it comes
        first. Elsewhere the last call of ``pause`` and ``resume`` counts, and a hook may still be given data once.
        Raises StaleError."""
        check(quick.pace_server_conn_pause(self._core.server, self.id))
        if self._resumed and self._host == get_ident():
            self.resume()

    def resume(self) -> None:
        """Ends a pause. What was not consumed is shown again, and before the hook has seen that, nothing is read. Without
        a pause there is nothing to end, and a later pause is not affected. Raises StaleError."""
        self._resumed = True
        check(quick.pace_server_conn_resume(self._core.server, self.id))

    @property
    def queued(self) -> int:
        """Bytes that wait to be sent, beside what the running hook has written."""
        queued = ctypes.c_size_t()
        check(quick.pace_server_conn_queued(self._core.server, self.id, ctypes.byref(queued)))
        return queued.value

    @property
    def peer(self) -> str:
        """The other end's address. Raises StaleError when the connection has ended."""
        return self._address(quick.pace_server_conn_peer)

    @property
    def local(self) -> str:
        """This end's address. Raises StaleError when the connection has ended."""
        return self._address(quick.pace_server_conn_local)

    def _address(self, ask: Callable[..., int]) -> str:
        buffer = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
        check(ask(self._core.server, self.id, buffer, len(buffer)))
        return buffer.value.decode()

    def __repr__(self) -> str:
        return f"<paceline.Conn {self.id:#x}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Conn: it belongs to this process")


Factory = Callable[[Conn], Any]


def _peer_of(conn: Conn) -> str:
    try:
        return f"the peer {conn.peer}"
    except StaleError:
        return "a peer that is gone"


class _Nobody(ConnHandler):
    """In the place of a handler that could not be made."""

    def __init__(self) -> None:
        pass


_NOBODY = _Nobody()

#: Of ``pace_cq_conn_t``: conn, event, detail, number.
_ENTRY = entries_of("QIIQ")
#: Of ``pace_cq_completion_t``: token, flags, bytes, size, length, status, result.
_COMPLETION = struct.Struct("=QI4xQQ16xQ16x4xIi4x")

#: Token, flags, what is written, and how many of the last bytes are not consumed.
Completed = tuple[int, int, bytes, int]


class Core(Hosts):
    """A stream server's host threads, and its connections by their names."""

    def __init__(
        self,
        pool: Pool,
        places: Places,
        factory: Factory,
        threads: int,
        name: str,
        connect_timeout: Optional[float],
        settings: dict[str, Any],
    ) -> None:
        super().__init__(pool, name, threads)
        self.factory = factory
        self.conns: dict[int, Conn] = {}
        # Collecting garbage, or a signal's handler, may come back here at any place.
        self.lock = threading.RLock()
        where = Listeners(listeners(places, settings))
        options = layout.ServerOptions()
        check(quick.pace_server_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.listeners, options.listener_count = where.pointer, where.count
        others = outgoing(settings)
        options.outgoing = ctypes.addressof(others)
        if connect_timeout is not None:
            options.connect_timeout_ns = seconds("connect_timeout", connect_timeout)
        self.queue = queue = queue_of(pool)
        # Of connections that are upgraded the server is another one.
        self.own = self.server
        wanted, reference = _wanted(factory), ctypes.byref(self.own)
        with freed_on_failure(queue.native):
            check(lib.pace_cq_server(queue.pointer, ctypes.byref(options), wanted, 0, reference))
        self.native = Source(self.own, lib.pace_server_free, queue)
        self.count_in()

    def hand(self) -> Hand:
        return Hand(self)

    def close_native(self) -> None:
        lib.pace_server_cut_off(self.own)
        self.queue.close()

    def conn(self, number: int) -> Conn:
        """The connection that an entry is about."""
        conn = self.conns.get(number)
        if conn is None:
            # One that is made here is entered under the lock, before its first entry can be.
            with self.lock:
                conn = self.conns.get(number)
                if conn is None:
                    conn = self.conns[number] = Conn(self, number, self.factory)
        return conn

    def connect(self, address: str, factory: Factory) -> Conn:
        number, wanted = ctypes.c_uint64(), _wanted(factory)
        with self.lock:
            reference = ctypes.byref(number)
            check(lib.pace_cq_connect(self.own, text("address", address), wanted, reference))
            conn = self.conns[number.value] = Conn(self, number.value, factory)
        return conn


class Hand:
    """One host thread."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.puller = Puller(core.queue, _ENTRY, core.batch)
        self._completions = ctypes.create_string_buffer(_COMPLETION.size * ANSWERS)
        self._view = memoryview(self._completions).cast("B")
        self._complete = lib["pace_cq_complete"]
        #: What goes out with the next call.
        self._done: list[Completed] = []

    def run(self, timeout: ctypes.c_uint64) -> int:
        """Takes a batch and handles it."""
        count = self.puller.pull(timeout)
        done = self._done
        if count <= 0 and not done:
            return count
        ident = get_ident()
        try:
            for entry in iter(self.puller.entries.popleft, None):
                if entry[0] == layout.CQ_ENDED:
                    # It comes to one thread, which has the others end.
                    self.core.queue.close()
                    count -= 1
                    continue
                try:
                    done.append(self.handle(entry, ident))
                except BaseException as raised:
                    # What follows is of others.
                    self.core.contain(raised, "an entry of a connection could not be handled")
                    done.append((entry[1], layout.CQ_FAIL, b"", 0))
                if len(done) >= ANSWERS:
                    self.complete(done)
        except IndexError:
            # There are no more.
            pass
        if done:
            self.complete(done)
        return count

    def handle(self, entry: tuple[Any, ...], ident: int) -> Completed:
        """Calls the hook for an entry."""
        _, token, _, place, size, name, event, detail, number = entry
        conn = self.core.conn(name)
        conn._host, conn._token, conn._resumed = ident, token, False
        left = flags = 0
        try:
            handler = conn.handler
            if handler is None:
                # If it cannot be made, that is told once.
                conn.handler = _NOBODY
                handler = conn.handler = conn._factory(conn)
            if event == layout.CONN_EVENT_DATA:
                taken = handler.data(conn, ctypes.string_at(place, size))
                if taken is not None:
                    left = size - _checked(taken, size)
            else:
                flags = self.tell(conn, handler, event, detail, number)
        except BaseException as raised:
            self.core.contain(raised, "a hook of %s has failed, with %s", conn, _peer_of(conn))
            flags = layout.CQ_FAIL
            # Whoever has the traceback has them, too.
            for admission in conn._admitted:
                admission.close()
        conn._host = 0
        if conn._admitted:
            conn._admitted = []
        written = b""
        if conn._pieces:
            written = conn._pieces[0] if len(conn._pieces) == 1 else b"".join(conn._pieces)
            conn._pieces, conn._size = [], 0
        if conn._flags:
            flags |= conn._flags
            # What ends the connection is the last that is written; only a finish goes on.
            conn._flags = 0
        return token, flags, written, left

    def tell(self, conn: Conn, handler: Any, event: int, detail: int, number: int) -> int:
        """All hooks but ``data``. Says what flags the completion has."""
        if event == layout.CONN_EVENT_OPENED:
            refusal = handler.open(conn)
            if refusal is not None:
                conn._pieces.append(data_of("refusal", refusal))
                return layout.CQ_REFUSE
        elif event == layout.CONN_EVENT_FINISHED:
            handler.finished(conn)
        elif event == layout.CONN_EVENT_WRITABLE:
            handler.writable(conn)
        elif event == layout.CONN_EVENT_WRITTEN:
            handler.written(conn, number)
        elif event == layout.CONN_EVENT_TIMED_OUT:
            return layout.CQ_KEEP if handler.timeout(conn, Timeout(detail)) else 0
        elif event == layout.CONN_EVENT_DRAINING:
            handler.draining(conn)
        else:
            self.core.conns.pop(conn.id, None)
            reason = Reason(detail)
            number = Timeout(number) if reason is Reason.TIMED_OUT else number
            try:
                if reason is Reason.FAILED and hasattr(handler, "error"):
                    handler.error(conn, number)
            finally:
                handler.close(conn, reason, number)
        return 0

    def complete(self, done: list[Completed]) -> None:
        """Completes all of it, and has what comes next come."""
        data = b"".join([each[2] for each in done])
        place = base_of(data) if data else 0
        offset = 0
        for token, flags, written, left in done:
            size = len(written)
            _COMPLETION.pack_into(
                self._view, offset, token, flags, place if size else 0, size, left, 0, 0
            )
            place, offset = place + size, offset + _COMPLETION.size
        count = len(done)
        queue = self.core.queue.pointer
        status = self._complete(queue, self._completions, ctypes.c_size_t(count))
        # Not before: a handler of a signal may raise. What is completed twice is no more.
        done.clear()
        if status != layout.OK:
            self._look(count)

    def _look(self, count: int) -> None:
        """At what has become of the completions. A peer that is gone is none of anybody's business; what
        there was no room for is lost, and so is its connection."""
        view = self._view[: count * _COMPLETION.size]
        for token, _, _, size, _, _, result in list(_COMPLETION.iter_unpack(view)):
            if result == layout.EFULL:
                report("an output had no room for %s bytes: its connection is closed", str(size))
                _COMPLETION.pack_into(view, 0, token, layout.CQ_FAIL, 0, 0, 0, 0, 0)
                self._complete(self.core.queue.pointer, self._completions, ctypes.c_size_t(1))


def _checked(taken: int, size: int) -> int:
    own = number("consumed", taken)
    if not 0 <= own <= size:
        raise ValueError(f"data has consumed {own} of {size} bytes")
    return own


@dataclass(frozen=True)
class DrainReport:
    """Whether a drain went to its end, and what was cut off."""

    #: Everything ended within the time; nothing was cut off.
    drained: bool
    #: It was called on one of the server's own threads, so it was only a request.
    requested: bool
    #: Connections that have been cut off.
    cut_off: int


@dataclass(frozen=True)
class ServerStats:
    """What a server has done so far. The counts add up exactly while no connection begins or ends."""

    #: Whether everything that began has ended or is open.
    balances: bool
    accepted: int
    connected: int
    #: Beyond the maximum; not counted as accepted.
    turned_away: int
    open: int
    #: Connections that have ended, by reason.
    closed: dict[Reason, int]
    #: Times that accepting paused for want of descriptors or memory.
    exhausted: int
    #: Hooks ``close`` that raised, after whatever reason.
    panics_in_close: int
    #: Requests that were admitted: requests = answered + requests_aborted + in_work.
    requests: int
    answered: int
    #: Not answered, or their connection had ended.
    requests_aborted: int
    in_work: int
    #: Beyond ``max_requests``; not counted as admitted.
    busy: int


def stats_of(server: ctypes.c_void_p) -> ServerStats:
    """The books of a stream server."""
    stats = layout.ServerStats()
    stats.struct_size = ctypes.sizeof(stats)
    check(quick.pace_server_stats(server, ctypes.byref(stats)))
    closed = {reason: getattr(stats, f"closed_{reason.name.lower()}") for reason in Reason}
    return ServerStats(
        balances=stats.balances,
        accepted=stats.accepted,
        connected=stats.connected,
        turned_away=stats.turned_away,
        open=stats.open,
        closed=closed,
        exhausted=stats.exhausted,
        panics_in_close=stats.panics_in_close,
        requests=stats.requests,
        answered=stats.answered,
        requests_aborted=stats.requests_aborted,
        in_work=stats.in_work,
        busy=stats.busy,
    )


class Hosted:
    """What has host threads. All methods may be called by any thread, but for those of asyncio."""

    _core: Any  #: Its Hosts.

    def fileno(self) -> int:
        """Readable while ``run`` would find something, without host threads (``threads=0``)."""
        raise NotImplementedError

    def run(self) -> int:
        """Handles what is there; says how many events. For one without host threads, in any loop that can
        wait for ``fileno``. If a handler has raised KeyboardInterrupt or SystemExit, that is raised when the others
        have been called; anything else is logged."""
        return int(self._core.run())

    def attach(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        """Has an asyncio loop, by default the running one, do what host threads would do, until this is
        closed. For one without host threads. On the loop's thread. ``async with`` does it too, and
        drains at the end. KeyboardInterrupt and SystemExit out of handlers end the loop, as those of its
        callbacks do."""
        core = self._core
        core.check_idle()
        loop = core.loop = asyncio.get_running_loop() if loop is None else loop
        fd = self.fileno()

        def turn() -> None:
            # The loop keeps this, as it would a thread.
            try:
                over = self._core.turn() < 0
            except ForkedError:
                over = True
            if over:
                loop.remove_reader(fd)

        loop.add_reader(fd, turn)

    async def _adrain(self, seconds: Optional[float]) -> layout.DrainReport:
        loop = asyncio.get_running_loop()
        report, drained = layout.DrainReport(), loop.create_future()

        def over(raised: Optional[BaseException]) -> None:
            # Whoever waited for it may have been cancelled.
            if not drained.done():
                drained.set_result(None) if raised is None else drained.set_exception(raised)

        def drain() -> None:
            raised = None
            try:
                self._core._drain(seconds, report)
            except BaseException as failed:
                raised = failed
            # A loop that is closed waits for nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(over, raised)

        self._core._apart(drain)
        await drained
        while self._core.mine is not None and self._core.run():
            await asyncio.sleep(0)
        return report

    def close(self) -> None:
        """Stops at once. ``drain`` first for an orderly end."""
        self._core.close()
        if not self._core.is_inside():
            self._core.join()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended; False: it has not within ``timeout`` seconds."""
        return bool(self._core.join(patience("timeout", timeout)))

    def drain(self, seconds: float = 10) -> Any:
        """Has what has arrived handled, and ends."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and not self._core.closed and self._core.drain(10).drained:
                # What lies in the queue is handled before that is closed.
                self._core.join(10)
        finally:
            self.close()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None and not self._core.closed:
                await self._adrain(10)
        finally:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle a paceline.{type(self).__name__}: it belongs to this process")


class Serving(Hosted):
    """What Server and Http have in common."""

    @property
    def addresses(self) -> list[str]:
        """Where it listens, in order, with the ports that it got."""
        return addresses(self._core.server)

    def drain(self, seconds: float = 10) -> DrainReport:
        """Stops accepting, has what has arrived answered, and closes. What is not through after
        ``seconds`` is cut off. In a handler of its own it is only a request. What a handler of a signal raises
        ends the wait, and the drain goes on by itself."""
        report = self._core.drain_from(patience("seconds", seconds))
        return DrainReport(report.drained, report.requested, report.cut_off)

    async def adrain(self, seconds: float = 10) -> DrainReport:
        """As ``drain``, in an asyncio loop that goes on meanwhile."""
        report = await self._adrain(patience("seconds", seconds))
        return DrainReport(report.drained, report.requested, report.cut_off)

    def connection_stats(self) -> ServerStats:
        """The books of its connections."""
        return stats_of(self._core.server)


class Server(Serving):
    """Listeners and connections on a pool; what connections do is Python's.

    ``handler(conn)`` makes what has the hooks of a connection, a ConnHandler as a rule. ``listen`` is
    an address, a socket that listens, a Listen, or several of them; without, the server only connects.
    Other keywords are those of Listen, for what is listened at by plain addresses and for connections
    that are made here; a Listen has what it says, whatever they are. ``threads`` host threads (default 4) run the
    hooks, those of one connection one at a time; with 0 you do: ``run``, ``attach``.

    How to answer later: a hook that cannot answer at once admits the request (``request = conn.admit()``), and
    returns. Any thread then writes the answer (``conn.write``), and calls ``request.answered()``. While a request is in
    work its connection is not idle, it is not closed when its peer finishes, and a drain waits for it. Without the
    admission the connection may be closed before the answer comes: when its ``idle_timeout`` is over, its peer has
    finished, or the server drains; ``write`` then raises StaleError. To keep a Conn alone admits nothing: it may be kept
    to push to the connection at any time, and nobody could tell when such a request had ended.

    Left open at the interpreter's end, or lost, it is closed. In a child made by fork it raises
    ForkedError.
    """

    def __init__(
        self,
        pool: Pool,
        listen: Places = (),
        handler: Optional[Factory] = None,
        *,
        threads: int = 4,
        name: str = "paceline-server",
        connect_timeout: Optional[float] = None,
        **settings: Unpack[ListenSettings],
    ) -> None:
        keywords(Server, settings, ListenSettings)
        made = function("handler", handler)
        core = Core(pool, listen, made, threads, name, connect_timeout, dict(settings))
        self._core: Core = core
        # A lost server ends by itself.
        self._lost = weakref.ref(self, lambda _: core.close())
        core.start()

    def fileno(self) -> int:
        return self._core.queue.fileno()

    def connect(self, address: str, handler: Optional[Factory] = None) -> Conn:
        """Begins to connect; ``handler``, by default the server's, makes what has the hooks. What is
        written before the connection is there is sent then. If it cannot be made, ``close`` is the
        only hook that is called."""
        own = self._core.factory if handler is None else function("handler", handler)
        return self._core.connect(address, own)

    def stats(self) -> ServerStats:
        """The counters of the server, until now."""
        return stats_of(self._core.server)

    def __enter__(self) -> Server:
        return self

    async def __aenter__(self) -> Server:
        self.attach()
        return self
