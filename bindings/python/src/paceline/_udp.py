"""``Udp``: datagrams whose handler is Python's.

Threads of the pool receive batches without the interpreter's lock; what has come lies in a native
completion queue, bounded in bytes, until a host thread takes a batch of it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Optional, TypedDict, Union

from . import _layout as layout
from ._arguments import (
    keywords,
    BytesLike,
    items,
    patience,
    plain,
    some_plain,
    some_text,
    text,
    whole,
    wrong,
)
from ._arguments import data as data_of
from ._hosts import Hosts, Source, base_of, queue_of
from ._native import Puller, entries_of, freed_on_failure
from ._library import check, lib, nanoseconds, quick
from ._listen import HasFileno, fd_of
from ._typing import Unpack
from ._pool import Pool
from ._server import Hosted

#: ``pace_ip_t``: version, reserved, port, scope, bytes.
_IP = struct.Struct("=BBHI16s")
#: Of ``pace_cq_datagram_t``: length, peer, os_error.
_ENTRY = entries_of("Q24si")
#: ``pace_datagram_t``: bytes, size, length, peer.
_DATAGRAM = struct.Struct("=QQQ24s")


class Peer:
    """Whom datagrams come from and go to: an IP address and a port. It can be compared, and be a key.
    ``Peer("127.0.0.1:80")``, ``Peer("[::1]:80")``."""

    __slots__ = ("_raw",)

    def __init__(self, address: str) -> None:
        ip = layout.Ip()
        check(quick.pace_ip_read(text("address", address), ctypes.byref(ip)))
        self._raw = bytes(ip)

    @classmethod
    def _of(cls, raw: bytes) -> Peer:
        peer = cls.__new__(cls)
        peer._raw = raw
        return peer

    @property
    def host(self) -> str:
        """The address, without the port: "127.0.0.1", "::1"."""
        version, _, _, scope, data = _IP.unpack(self._raw)
        if version == 4:
            return socket.inet_ntop(socket.AF_INET, data[:4])
        text = socket.inet_ntop(socket.AF_INET6, data)
        return f"{text}%{scope}" if scope else text

    @property
    def port(self) -> int:
        """The number of the peer's port."""
        return int(_IP.unpack(self._raw)[2])

    def __str__(self) -> str:
        buffer = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
        check(quick.pace_ip_text(self._raw, buffer, len(buffer)))
        return buffer.value.decode()

    def __repr__(self) -> str:
        return f"Peer({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peer) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)


class Datagram:
    """A datagram that has arrived."""

    __slots__ = ("data", "peer", "length")

    def __init__(self, data: bytes, peer: Peer, length: int) -> None:
        #: Its bytes, up to ``max_datagram``.
        self.data = data
        #: Who has sent it. An IPv4 address looks like ::ffff:… on a socket that takes both.
        self.peer = peer
        #: How long it was.
        self.length = length

    @property
    def is_truncated(self) -> bool:
        """Whether its end is lost."""
        return self.length > len(self.data)

    def __repr__(self) -> str:
        return f"Datagram({self.data!r}, {self.peer!r})"


@dataclass(frozen=True)
class UdpStats:
    """What a datagram socket has done so far. The counts add up exactly while no datagram is being handled."""

    #: Datagrams that the kernel has given, their bytes with those that were cut off, and how many were.
    received: int
    received_bytes: int
    truncated: int
    #: Errors that came instead of datagrams.
    errors: int
    #: Datagrams that the kernel has taken, and their bytes.
    sent: int
    sent_bytes: int
    #: Calls of which the kernel took nothing, since it had no room; and for another reason.
    refused: int
    failed: int
    #: Of those received: dropped, since more than ``max_waiting`` bytes waited for the host.
    dropped: int


class UdpRef:
    """A datagram socket, to send by. Any thread may, and nothing of it waits."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def send(self, data: BytesLike, to: Union[Peer, str, None] = None) -> None:
        """Sends a datagram, to whom the socket is connected to if ``to`` is None. Nothing is queued.
        Raises Full: the kernel has no room, and it is not sent; OSError; StaleError when the socket is
        closed; InvalidError."""
        data, udp = data_of("data", data), self._core.udp
        if to is None:
            check(quick.pace_udp_send(udp, data, len(data)))
        else:
            check(quick.pace_udp_send_to(udp, data, len(data), _peer("to", to)._raw))

    def send_batch(self, datagrams: Iterable[tuple[BytesLike, Union[Peer, str]]]) -> int:
        """Sends datagrams to their peers in order, up to 64 in one system call. How many the kernel has
        taken; raises what ``send`` does if it did not take the first."""
        allowed = "an iterable of pairs: bytes, and a Peer or an address"
        pairs: list[Any] = items("datagrams", datagrams, allowed)
        try:
            given = [(data, to) for data, to in pairs]
        except (TypeError, ValueError):
            raise wrong("datagrams", datagrams, allowed) from None
        all = [(data_of("datagrams", data), _peer("datagrams", to)._raw) for data, to in given]
        data = b"".join([each[0] for each in all])
        place, sent = base_of(data) if data else 0, ctypes.c_size_t()
        parts = []
        for each, raw in all:
            size = len(each)
            parts.append(_DATAGRAM.pack(place if size else 0, size, 0, raw))
            place += size
        check(lib.pace_udp_send_batch(self._core.udp, b"".join(parts), len(all), ctypes.byref(sent)))
        return sent.value

    @property
    def address(self) -> str:
        """Where it receives, with the port that it got."""
        buffer = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
        check(quick.pace_udp_address(self._core.udp, buffer, len(buffer)))
        return buffer.value.decode()

    def join_multicast(self, group: str, interface: int = 0) -> None:
        """Receives what is sent to this group, "239.1.2.3" or "ff02::1", on the interface of this index;
        0: the system's choice. Raises OSError, InvalidError, StaleError."""
        check(
            quick.pace_udp_join_multicast(
                self._core.udp, text("group", group), whole("interface", interface)
            )
        )

    def leave_multicast(self, group: str, interface: int = 0) -> None:
        """Leaves a group that join_multicast() has joined."""
        check(
            quick.pace_udp_leave_multicast(
                self._core.udp, text("group", group), whole("interface", interface)
            )
        )

    @property
    def is_open(self) -> bool:
        """Whether it is not closed."""
        is_open = ctypes.c_bool()
        check(quick.pace_udp_is_open(self._core.udp, ctypes.byref(is_open)))
        return is_open.value

    def stats(self) -> UdpStats:
        """The counters of the socket, until now."""
        stats = layout.UdpStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_udp_stats(self._core.udp, ctypes.byref(stats)))
        return UdpStats(*(getattr(stats, name) for name in UdpStats.__dataclass_fields__))

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle a paceline.{type(self).__name__}: it belongs to this process")


def _peer(name: str, to: Union[Peer, str]) -> Peer:
    if isinstance(to, Peer):
        return to
    if not isinstance(to, str):
        raise wrong(name, to, "a paceline.Peer, or an address")
    return Peer(to)


#: Called with datagrams that have come together, in their order: at least one.
DatagramHandler = Callable[[UdpRef, "list[Datagram]"], object]
#: Called with an error that came instead.
UdpErrorHandler = Callable[[UdpRef, OSError], object]

_FLAGS = ("v6_only", "reuse_port", "broadcast", "multicast_loop")


class UdpSettings(TypedDict, total=False):
    """Settings of a ``Udp``, as its keywords; None is the default."""

    batch: Optional[int]
    max_datagram: Optional[int]
    send_buffer: Optional[int]
    receive_buffer: Optional[int]
    multicast_ttl: Optional[int]
    multicast_loop: Optional[bool]
    v6_only: Optional[bool]
    reuse_port: Optional[bool]
    broadcast: Optional[bool]


class Core(Hosts):
    """A datagram socket's host threads."""

    def __init__(
        self,
        pool: Pool,
        handler: DatagramHandler,
        on_error: Optional[UdpErrorHandler],
        bind: Union[str, HasFileno, None],
        connect: Optional[str],
        max_waiting: int,
        threads: int,
        name: str,
        settings: dict[str, Any],
    ) -> None:
        super().__init__(pool, name, threads)
        self.handler, self.on_error = handler, on_error
        options = layout.UdpOptions()
        check(quick.pace_udp_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        if isinstance(bind, str):
            options.bind = text("bind", bind)
        elif bind is not None:
            options.fd = fd_of("bind", bind)
        options.connect = some_text("connect", connect)
        for key, value in settings.items():
            if value is None:
                continue
            if key in _FLAGS:
                setattr(options, key, bool(value))
            else:
                setattr(options, key, whole(key, value, 63 if key.endswith("_buffer") else 32))
        self.queue = queue = queue_of(pool)
        self.udp = ctypes.c_void_p()
        most, reference = whole("max_waiting", max_waiting, 63), ctypes.byref(self.udp)
        with freed_on_failure(queue.native):
            check(lib.pace_cq_udp(queue.pointer, ctypes.byref(options), most, 0, reference))
        self.native = Source(self.udp, _free, queue)
        self.count_in()

    def hand(self) -> Hand:
        return Hand(self)

    def close_native(self) -> None:
        # It may be closed already, as it is when it was drained.
        lib.pace_udp_close(self.udp)
        self.queue.close()

    def _drain(self, seconds: Optional[float], report: layout.DrainReport) -> None:
        drained = ctypes.c_bool()
        check(lib.pace_udp_drain(self.udp, nanoseconds(seconds), ctypes.byref(drained)))
        report.drained = drained.value

    def drain(self, seconds: Optional[float]) -> layout.DrainReport:
        report = super().drain(seconds)
        if not report.requested:
            # What the native handler has put into the queue before it ended.
            if self.most == 0:
                while self.run():
                    pass
            elif not self.join(seconds):
                report.drained = False
        return report


def _free(udp: ctypes.c_void_p) -> None:
    # One that is closed is not waited for.
    lib.pace_udp_close(udp)
    lib.pace_udp_free(udp)


class Hand:
    """One host thread."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.puller = Puller(core.queue, _ENTRY, core.batch, is_done=True)
        self._ref = UdpRef(core)

    def run(self, timeout: ctypes.c_uint64) -> int:
        """Takes a batch and handles it."""
        if self.core.closed:
            return -1
        count = self.puller.pull(timeout)
        if count <= 0 or self.core.closed:
            return min(count, 0)
        came: list[Datagram] = []
        try:
            for kind, _, _, place, size, length, raw, os_error in iter(
                self.puller.entries.popleft, None
            ):
                if kind == layout.CQ_DATAGRAM:
                    data = ctypes.string_at(place, size) if size else b""
                    came.append(Datagram(data, Peer._of(raw), length))
                    continue
                self.show(came)
                came = []
                if kind == layout.CQ_ENDED:
                    # It comes to one thread, which has the others end.
                    self.core.queue.close()
                    count -= 1
                else:
                    self.tell(os_error)
        except IndexError:
            # There are no more.
            pass
        self.show(came)
        return count

    def show(self, came: list[Datagram]) -> None:
        if came:
            try:
                self.core.handler(self._ref, came)
            except BaseException as raised:
                self.core.contain(raised, "the handler of %s datagrams has failed", len(came))

    def tell(self, os_error: int) -> None:
        if self.core.on_error is not None:
            try:
                self.core.on_error(self._ref, OSError(os_error, os.strerror(os_error)))
            except BaseException as raised:
                self.core.contain(raised, "the handler of a socket's error has failed")


class Udp(UdpRef, Hosted):
    """A UDP socket on a pool; what is done with datagrams is Python's.

    ``handler(udp, datagrams)`` is called with lists of what has come together, by ``threads`` host
    threads; with several of them lists are handled at the same time and in any order. One that raises is
    logged, and the socket goes on. ``bind`` is where it receives, or a socket that is bound already;
    ``connect`` is whom it sends to, and whom alone it hears. Of what was not handled yet up to
    ``max_waiting`` bytes are kept, 128 for each datagram included; what comes beyond that is dropped,
    and counted. Other keywords, all optional: ``batch`` (datagrams in one system call, 1 to
    64; default 32), ``max_datagram`` (its bytes; default 65535), ``send_buffer`` and ``receive_buffer`` (bytes that the
    kernel buffers; default: the system's), ``multicast_ttl`` (hops; default 1), ``multicast_loop`` (what is sent to a group
    comes back to this host; default True), ``v6_only`` (default False), ``reuse_port`` (default False), ``broadcast``
    (default False).

    With ``threads=0`` you run the handler: ``run``, ``attach``. Left open at the interpreter's end, or
    lost, it is closed. In a child made by fork it raises ForkedError.
    """

    _core: Core

    def __init__(
        self,
        pool: Pool,
        handler: DatagramHandler,
        bind: Union[str, HasFileno, None] = None,
        *,
        connect: Optional[str] = None,
        on_error: Optional[UdpErrorHandler] = None,
        max_waiting: int = 1 << 22,
        threads: int = 1,
        name: str = "paceline-udp",
        **settings: Unpack[UdpSettings],
    ) -> None:
        keywords(Udp, settings, UdpSettings)
        plain("handler", handler)
        some_plain("on_error", on_error)
        core = Core(pool, handler, on_error, bind, connect, max_waiting, threads, name, dict(settings))
        super().__init__(core)
        # A lost socket ends by itself.
        self._lost = weakref.ref(self, lambda _: core.close())
        core.start()

    def fileno(self) -> int:
        return self._core.queue.fileno()

    def drain(self, seconds: float = 10) -> bool:
        """Has what has arrived handled, and closes; whether that was done within ``seconds``. In a handler
        of its own it is only a request, and says False."""
        return bool(self._core.drain_from(patience("seconds", seconds)).drained)

    async def adrain(self, seconds: float = 10) -> bool:
        """As ``drain``, in an asyncio loop that goes on meanwhile."""
        return bool((await self._adrain(patience("seconds", seconds))).drained)

    def __enter__(self) -> Udp:
        return self

    async def __aenter__(self) -> Udp:
        self.attach()
        return self
