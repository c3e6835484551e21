"""Where a server listens, and the settings of the connections that come there."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional, Protocol, TypedDict, Union

from . import _layout as layout
from ._arguments import data, real, text, whole, wrong
from ._errors import InvalidError
from ._library import check, nanoseconds, quick


class HasFileno(Protocol):
    """A socket that listens."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


@dataclass(frozen=True)
class Listen:
    """A listener and its settings; None is the default. Times are seconds, sizes bytes.

    ``address`` is "127.0.0.1:80", "[::1]:80", "*:80" (all of IPv6 and IPv4), "unix:/run/socket",
    "unix:@name" in the abstract namespace, or a socket that listens already. Port 0 is a free port,
    which ``addresses`` tells.
    """

    address: Union[str, HasFileno]
    #: Connections at once; more are sent ``refusal`` and closed. Default 2^20.
    max_connections: Optional[int] = None
    refusal: Optional[bytes] = None
    #: Requests in work at once (``Conn.admit``), over all connections of the listener; beyond it
    #: ``busy`` is written instead. Default: any number. Of an Http they are its own ``max_requests``.
    max_requests: Optional[int] = None
    busy: Optional[bytes] = None
    #: Bytes that a handler may leave unconsumed; with more its connection is closed. Default 2^20.
    max_unconsumed: Optional[int] = None
    #: Low and high mark of a connection's output, and its maximum. Default 2^16, 2^18, 2^24.
    output_marks: Optional[tuple[int, int, int]] = None
    #: Nothing was sent or received for so long, and no request is in work. Default: never. A handler that answers
    #: later has to admit the request (``Conn.admit``): otherwise this time runs while the answer is worked on, and the
    #: connection may be closed before it is written.
    idle_timeout: Optional[float] = None
    #: The rest of a message of which a part was not consumed must come within this. Default: never.
    read_timeout: Optional[float] = None
    #: A peer that takes nothing of what is queued for it for so long has stalled. Default 30.
    stall_timeout: Optional[float] = None
    #: How long a peer that was told the end may take to end too. Default 2; 0: none.
    linger: Optional[float] = None
    #: TCP asks silent peers whether they are there, first after this time: 1 to 32767, rounded up to
    #: whole seconds. Default 0: it does not.
    keep_alive: Optional[float] = None
    #: Bytes that the kernel buffers (it doubles them). Default: the system's.
    send_buffer: Optional[int] = None
    receive_buffer: Optional[int] = None
    #: Mode of the file of a Unix socket. Default: 0o777 less the umask.
    socket_mode: Optional[int] = None
    #: Connections that may wait to be accepted. Default 4096.
    backlog: Optional[int] = None
    #: TCP sends small writes at once. Default True.
    no_delay: Optional[bool] = None
    #: An IPv6 listener takes no IPv4.
    v6_only: Optional[bool] = None
    #: Several processes may listen on the same port.
    reuse_port: Optional[bool] = None
    #: What happens when the peer has finished: it sends no more, and may still read. By default such a connection is
    #: closed by itself, when its admitted requests have ended and everything is sent. With True it stays open until its
    #: handler closes it: for protocols in which one direction ends before the other, as with a proxy.
    allow_half_open: Optional[bool] = None


class ListenSettings(TypedDict, total=False):
    """The settings of a ``Listen``, as keywords of what listens."""

    max_connections: Optional[int]
    refusal: Optional[bytes]
    max_requests: Optional[int]
    busy: Optional[bytes]
    max_unconsumed: Optional[int]
    output_marks: Optional[tuple[int, int, int]]
    idle_timeout: Optional[float]
    read_timeout: Optional[float]
    stall_timeout: Optional[float]
    linger: Optional[float]
    keep_alive: Optional[float]
    send_buffer: Optional[int]
    receive_buffer: Optional[int]
    socket_mode: Optional[int]
    backlog: Optional[int]
    no_delay: Optional[bool]
    v6_only: Optional[bool]
    reuse_port: Optional[bool]
    allow_half_open: Optional[bool]


#: What ``listen`` may be.
Places = Union[str, HasFileno, Listen, Iterable[Union[str, HasFileno, Listen]]]

_PLAIN = (
    "max_connections",
    "max_requests",
    "max_unconsumed",
    "send_buffer",
    "receive_buffer",
    "socket_mode",
)
_SMALL = ("socket_mode", "backlog")
_FLAGS = ("no_delay", "v6_only", "reuse_port", "allow_half_open")
#: About accepting: senseless for connections that are made here.
_ACCEPTING = ("refusal", "socket_mode", "backlog", "v6_only", "reuse_port")
_TIMES = ("idle_timeout", "read_timeout", "stall_timeout", "linger", "keep_alive")


def listeners(places: Places, settings: dict[str, Any]) -> list[Listen]:
    """All that is listened at. ``settings`` hold for what is no Listen."""
    if isinstance(places, (str, Listen)) or not isinstance(places, Iterable):
        places = [places]
    # Once: an iterator has each of them once.
    places = list(places)
    for each in places:
        if not isinstance(each, (str, Listen)) and not callable(getattr(each, "fileno", None)):
            raise wrong(
                "listen", each, "an address, a socket that listens, a Listen, or several of them"
            )
    return [each if isinstance(each, Listen) else Listen(each, **settings) for each in places]


class Listeners:
    """The native array, and what it points to."""

    def __init__(self, listeners: list[Listen]) -> None:
        self.array = (layout.ListenerOptions * max(1, len(listeners)))()
        self.count = len(listeners)
        for options, listener in zip(self.array, listeners):
            fill(options, listener)

    @property
    def pointer(self) -> int:
        """Of the first."""
        return ctypes.addressof(self.array)


def outgoing(settings: dict[str, Any]) -> layout.ListenerOptions:
    """Settings of connections that are made here: those of ``settings`` that are about connections."""
    options = layout.ListenerOptions()
    about = {name: value for name, value in settings.items() if name not in _ACCEPTING}
    fill(options, Listen("", **about))
    options.address = None
    return options


def fill(options: layout.ListenerOptions, listener: Listen) -> None:
    check(quick.pace_listener_options_init(ctypes.byref(options), ctypes.sizeof(options)))
    if isinstance(listener.address, str):
        options.address = text("address", listener.address)
    else:
        options.fd = fd_of("address", listener.address)
    for name in (*_PLAIN, "backlog"):
        value = getattr(listener, name)
        if value is not None:
            setattr(options, name, whole(name, value, 32 if name in _SMALL else 63))
    for name in _FLAGS:
        if getattr(listener, name) is not None:
            setattr(options, name, bool(getattr(listener, name)))
    for name in _TIMES:
        if getattr(listener, name) is not None:
            setattr(options, f"{name}_ns", seconds(name, getattr(listener, name)))
    if listener.refusal is not None:
        refusal = data("refusal", listener.refusal)
        options.refusal, options.refusal_size = refusal, len(refusal)
    if listener.busy is not None:
        busy = data("busy", listener.busy)
        options.busy, options.busy_size = busy, len(busy)
    if listener.output_marks is not None:
        try:
            low, high, most = (whole("output_marks", mark, 63) for mark in listener.output_marks)
        except (TypeError, ValueError) as refused:
            if isinstance(refused, InvalidError):
                raise
            allowed = "the low mark, the high mark and the maximum"
            raise wrong("output_marks", listener.output_marks, allowed) from None
        options.output_low, options.output_high, options.output_max = low, high, most


def seconds(name: str, value: float) -> int:
    """As nanoseconds."""
    own = real(name, value, "seconds")
    if not own >= 0:
        raise InvalidError(f"{name} is {value}; allowed: at least 0 seconds")
    return nanoseconds(own)


def fd_of(name: str, socket: HasFileno) -> int:
    """The descriptor of a socket that somebody has given."""
    if not callable(getattr(socket, "fileno", None)):
        raise wrong(name, socket, "an address, or a socket")
    return socket.fileno()
