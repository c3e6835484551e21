"""``Bridge``: keys of a hub, between processes and hosts, over a NATS broker.

    hub ──► export ──► subject, or stream, of the broker ──► import ──► another hub ──► its handlers

A native thread speaks with the broker. It calls no Python but inline handlers: who wants to know when a message is stored
asks for it, and in an event loop one thread of the executor waits for all that the loop has asked of a bridge.
"""

from __future__ import annotations

import asyncio
import ctypes
import weakref
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, TypeVar, Union

from . import _layout as layout
from . import _lifetime
from ._arguments import (
    BytesLike,
    data,
    instance,
    items,
    nanos,
    one_of,
    patience,
    some_text,
    text,
    whole,
    within,
    wrong,
)
from ._errors import Error, InvalidError, ShutDownError, refuse_in_loop
from ._hosts import Native
from ._hub import Hub, Key
from ._library import SLICE, check, error, in_slices, lib, nanoseconds, quick
from ._mailbox import OVERFLOWS
from ._message import HeadersLike, new_receipt, publication_of
from ._native import freed_on_failure
from ._policy import Retry, retry_of
from ._settings_files import Files, Given, files_of

#: Seconds in which what is left open is closed: when the interpreter ends, and when it is lost.
_AT_EXIT = 2.0
#: The most messages of a buffer.
_MOST = 1 << 24


@dataclass(frozen=True, repr=False)
class NatsSettings:
    """How a NATS broker is reached. An address as text is one, too. Secrets are neither in its ``repr`` nor in errors,
    statistics and logs. Times are seconds."""

    #: Addresses, separated by commas: "nats://host:port" or "tls://host:port", each maybe with ``user:password@`` or
    #: ``token@`` before the host. Of several servers, one cluster, any one is used.
    servers: str
    #: What the broker's own tools call the connection. None: "paceline".
    name: Optional[str] = None
    #: Logs in by this name and ``password`` or ``password_file``. Of it, ``token``, ``token_file``, ``nkey_file`` and
    #: ``credentials_file`` one is given.
    user: Optional[str] = None
    #: The password of ``user``. None: an empty one, or that of ``password_file``.
    password: Optional[str] = None
    #: The password of ``user`` is the text of this file, which is read at each connection.
    password_file: Optional[str] = None
    #: Logs in by a token, in place of a user.
    token: Optional[str] = None
    #: Logs in by the token that is the text of this file, which is read at each connection.
    token_file: Optional[str] = None
    #: Logs in by the nkey whose seed is the text of this file, which is read at each connection.
    nkey_file: Optional[str] = None
    #: Logs in by the JWT and nkey in this file of the broker's tools (.creds), which is read at each connection.
    credentials_file: Optional[str] = None
    #: Trusts the certificates in this PEM file. None: those that the system trusts.
    root_certificates: Optional[str] = None
    #: Shows the broker this certificate, a PEM file of its chain; with ``client_key``, the PEM file of its key.
    client_certificate: Optional[str] = None
    client_key: Optional[str] = None
    #: Refuses a connection without TLS. Otherwise TLS is used where the address is tls:// or the broker asks for it.
    require_tls: bool = False
    #: How long an attempt to connect may take, 0.01 to 86400 seconds.
    connect_timeout: float = 5.0
    #: How often the broker is asked for a sign of life, 0.01 to 86400 seconds. A connection without one for twice as long
    #: is given up.
    ping_interval: float = 10.0
    #: How long it waits before the first attempt to connect again; twice as long each time, half of it by chance.
    reconnect_first: float = 0.05
    #: How long it waits at most before an attempt to connect again.
    reconnect_cap: float = 10.0

    def fill(self, options: layout.BridgeOptions) -> None:
        """Writes it where C reads it. Raises InvalidError."""
        options.servers = text("servers", self.servers)
        options.connection_name = some_text("name", self.name)
        for name in (
            *("user", "password", "password_file", "token", "token_file", "nkey_file"),
            *("credentials_file", "root_certificates", "client_certificate", "client_key"),
        ):
            # A value that is refused may be a secret.
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or "\0" in given):
                kind = f"a {type(given).__name__}" if not isinstance(given, str) else "text with NUL"
                refused = TypeError if not isinstance(given, str) else InvalidError
                raise refused(f"{name} is {kind}; allowed: text without NUL, or None")
            setattr(options, name, some_text(name, given))
        options.require_tls = bool(self.require_tls)
        for name in ("connect_timeout", "ping_interval", "reconnect_first", "reconnect_cap"):
            setattr(options, f"{name}_ns", nanos(name, getattr(self, name)))

    def __repr__(self) -> str:
        bare = []
        for address in str(self.servers).split(","):
            scheme, slashes, rest = address.strip().rpartition("://")
            bare.append(scheme + slashes + rest.rpartition("@")[2])
        return f"<paceline.NatsSettings {','.join(bare)!r}>"


@dataclass(frozen=True)
class Export:
    """Keys that go from a hub to the broker, and how. A pattern as text is one, too: at most once."""

    #: Messages whose key it matches go out.
    pattern: str
    #: What is put before the key, to make the broker's subject of it: whole tokens with a dot behind each, "eu.shop.".
    prefix: Optional[str] = None
    #: At least once: the stream of the broker's JetStream that stores each message, made if there is none of this name. A
    #: message is sent again until the broker says that it is stored. Requests are not stored. None: at most once.
    stream: Optional[str] = None
    #: How many messages wait for the broker, 1 to 2^24.
    buffer: int = 65536
    #: What becomes of a message for a full buffer, as of a mailbox: "reject", "drop-newest", "drop-oldest", "conflate" or
    #: "block". Local subscribers get it in any case. None: "drop-oldest"; with a stream, "block" for up to 10 seconds.
    overflow: Optional[str] = None
    #: For "block": how many seconds a publisher waits at most, where it may. None: without a limit.
    block: Optional[float] = None
    #: At least once: how many messages may be under way to the broker at the same time, 1 to 65536. With 1 each is stored
    #: before the next is sent.
    in_flight: int = 256
    #: At least once: messages wait for the broker in the archive of the hub's history instead of memory, and are sent though
    #: the process ends or dies meanwhile. The hub needs a history with an archive of all keys of the pattern. This file,
    #: made if it is not there, is where the bridge keeps how far the broker has stored them; it belongs to that archive,
    #: and to one bridge at a time. ``buffer`` means nothing then, and ``overflow`` is to be None; requests are not
    #: carried. None: they wait in memory.
    spool: Optional[str] = None

    def _as_c(self) -> tuple[bytes, layout.BridgeExportOptions]:
        options = layout.BridgeExportOptions()
        check(quick.pace_bridge_export_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.prefix = some_text("prefix", self.prefix)
        options.stream = some_text("stream", self.stream)
        options.buffer = within("buffer", self.buffer, 1, _MOST)
        if self.overflow is not None:
            options.overflow = one_of("overflow", self.overflow, OVERFLOWS)
        if self.block is not None:
            options.block_ns = nanos("block", self.block)
        options.in_flight = within("in_flight", self.in_flight, 1, 65536)
        options.spool = some_text("spool", self.spool)
        return text("pattern", self.pattern), options


@dataclass(frozen=True)
class StartAt:
    """Where an import from a stream begins, if the broker does not know its ``durable`` name yet; made by ``first``,
    ``new``, ``sequence`` or ``time_ns``."""

    kind: int
    number: int = 0

    @classmethod
    def first(cls) -> StartAt:
        """With the first message that the stream has."""
        return cls(layout.START_AT_FIRST)

    @classmethod
    def new(cls) -> StartAt:
        """With what is stored from now on."""
        return cls(layout.START_AT_NEW)

    @classmethod
    def sequence(cls, number: int) -> StartAt:
        """With the message of this number in the stream, or the next that there is."""
        return cls(layout.START_AT_SEQUENCE, whole("number", number, 64))

    @classmethod
    def time_ns(cls, time: int) -> StartAt:
        """With the first message that was stored then or later: nanoseconds since 1970, as of ``time.time_ns()``."""
        return cls(layout.START_AT_TIME, whole("time", time, 64))


@dataclass(frozen=True)
class Import:
    """Keys that come from the broker to a hub, and how. A pattern as text is one, too: at most once, to each process that
    imports it. Times are seconds."""

    #: Messages whose key it matches come in, as if a local publisher published them.
    pattern: str
    #: What is taken off the front of the broker's subject to make the key of it: that which the exporter puts there.
    prefix: Optional[str] = None
    #: At most once: shares the messages with all processes that import the same with this group, so that one of them gets
    #: each. None: each process gets all.
    group: Optional[str] = None
    #: At least once: the stream of the broker's JetStream that messages are taken from, made if there is none of this name,
    #: and the name that all processes share that take turns at the same messages. A message is acknowledged when all
    #: subscriptions that got it have dealt with it. If a handler fails at it for good, or nobody subscribes, it comes again.
    stream: Optional[str] = None
    durable: Optional[str] = None
    #: How many messages from the broker wait for the hub, 1 to 2^24; what comes while so many wait is lost, and counted.
    buffer: int = 65536
    #: How long a request from elsewhere waits for the reply of this hub.
    request_timeout: float = 30.0
    #: At least once: where it begins if the broker does not know ``durable`` yet. None: with the first of the stream.
    start: Optional[StartAt] = None
    #: At least once: how often, and after which delays, the broker is to send a message again that a handler has failed
    #: at; past the last attempt it becomes a dead letter of the hub, and one that the broker keeps in the stream
    #: ``paceline_dead``, and comes no more; so does one that has ended its process in its last attempt. Retries of the
    #: subscription come before that, and count as one attempt. None: 9 times, after half a second and then twice as long,
    #: up to 30 s.
    retries: Union[int, Retry, None] = None
    #: At least once: how many messages may be in the hub and not acknowledged, 1 to 65536.
    in_flight: int = 256
    #: At least once: after how long the broker sends a message again of which it has not heard, 0.1 to 86400 seconds. While
    #: a handler works the bridge tells the broker so three times as often.
    ack_wait: float = 30.0
    #: At least once: for how long it tells that at most. Then the broker sends the message again, though a handler may be
    #: at it still.
    handle_timeout: float = 3600.0

    def _as_c(self) -> tuple[bytes, layout.BridgeImportOptions]:
        options = layout.BridgeImportOptions()
        check(quick.pace_bridge_import_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        for name in ("prefix", "group", "stream", "durable"):
            setattr(options, name, some_text(name, getattr(self, name)))
        options.buffer = within("buffer", self.buffer, 1, _MOST)
        options.request_timeout_ns = nanos("request_timeout", self.request_timeout)
        if self.start is not None:
            start = instance("start", self.start, StartAt)
            options.start = start.kind
            options.start_sequence = options.start_time_ns = start.number
        retry = retry_of(self.retries)
        if retry is not None:
            if retry.delay is not None:
                raise InvalidError(
                    "retries is a Retry.custom; allowed: one that the broker's delays can follow"
                )
            retry.fill(options.retry)
        options.in_flight = within("in_flight", self.in_flight, 1, 65536)
        options.ack_wait_ns = nanos("ack_wait", self.ack_wait)
        options.handle_timeout_ns = nanos("handle_timeout", self.handle_timeout)
        return text("pattern", self.pattern), options


class ExportStats(NamedTuple):
    """What became of the messages of one export."""

    pattern: str
    #: The stream that stores its messages; None: at most once.
    stream: Optional[str]
    #: Messages that wait for the broker, with a spool those of other keys in its history included; and those that were
    #: handed to the connection.
    waiting: int
    sent: int
    #: At least once: those that the broker has stored, and those that were sent and of which it has not said so.
    stored: int
    in_flight: int
    #: At least once: how often one was sent again.
    sent_again: int
    #: Messages that a full buffer has dropped or refused.
    dropped: int
    #: Messages that the broker does not take: too large for it, or refused by the stream for good.
    refused: int
    #: Requests that nobody waited for any more when their turn came.
    late: int
    #: Messages that another process has published: they do not go out again.
    turned_back: int


class ImportStats(NamedTuple):
    """What became of the messages of one import."""

    pattern: str
    #: The stream that its messages are taken from; None: at most once.
    stream: Optional[str]
    #: Messages that were published in the hub.
    published: int
    #: At least once: those that were acknowledged, and those that the hub has still.
    acknowledged: int
    in_flight: int
    #: At least once: how often the broker was asked to send one again.
    again: int
    #: At least once: those that have become dead letters past the last attempt.
    dead: int
    #: At least once: those that the stream has for it still, when last heard of.
    lag: int
    #: Messages that came before within the window.
    duplicates: int
    #: Messages that this hub has published itself.
    turned_back: int
    #: Messages that the hub does not take: too large, too many headers, a subject that is no key.
    refused: int


class BridgeStats(NamedTuple):
    """How a bridge is, and what it has carried. Exact while nothing is under way."""

    #: Whether it is connected to a broker now.
    connected: bool
    #: The name of the server that it is connected to, or was last; empty before it has connected.
    server: str
    #: Why it is not connected, or what the broker has refused last; None: all is well.
    reason: Optional[str]
    #: How often it has connected to a broker.
    connects: int
    #: Requests that wait for a reply from elsewhere, and those from elsewhere that wait for one of this hub.
    requests_out: int
    requests_in: int
    #: Messages from the broker that came while the buffer of their import was full.
    lost: int
    #: Of each rule, in the order in which they were given.
    exports: tuple[ExportStats, ...]
    imports: tuple[ImportStats, ...]


class PendingStore:
    """A message that was published, and that the broker is to store: ``wait`` for it, or ``await`` it in an event loop,
    any number of times. If nobody does, it is stored all the same. Any thread."""

    def __init__(self, bridge: Bridge, pointer: ctypes.c_void_p) -> None:
        self._native = Native(pointer, lib.pace_pending_store_free)
        self._bridge = bridge
        self._end: Optional[Error] = None
        self._is_done = False

    def done(self) -> bool:
        """Whether the broker has stored it, or never will: then ``wait`` does not wait, and says so."""
        return self._look(quick, 0)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits up to ``timeout`` seconds (None: for ever) until the broker has stored it. Not in an event loop, nor in
        handlers and tasks: a thread stands still for as long.

        Raises TimeoutError: it is not stored yet, and will be; InvalidError: the stream does not take it; ShutDownError:
        the bridge has ended before."""
        seconds = patience("timeout", timeout)
        if seconds != 0 and not self.done():
            refuse_in_loop("wait()", "the PendingStore itself")
        slices = lambda left: layout.OK if self._look(lib, left) else layout.ETIMEDOUT
        if in_slices(slices, seconds) == layout.ETIMEDOUT:
            raise error(layout.ETIMEDOUT)
        self._tell()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done():
            yield from self._bridge._stores().add(self).__await__()
        self._tell()

    def _look(self, view: Any, left: int) -> bool:
        # Whether it is done, within so many nanoseconds.
        if not self._is_done:
            status = view.pace_pending_store_wait(self._native.pointer, left)
            if status == layout.ETIMEDOUT:
                return False
            if status != layout.OK:
                self._end = error(status)
            self._is_done = True
        return True

    def _tell(self) -> None:
        if self._end is not None:
            # Its own traceback each time.
            raise self._end.with_traceback(None)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.PendingStore: it belongs to this process")


class _Stores:
    """What one loop awaits of a bridge: one thread of its executor waits for the first of it, for a slice at a time.
    They are stored in about the order in which they were published. In the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)
        self._open: deque[tuple[PendingStore, asyncio.Future[None]]] = deque()
        self._waits = False

    def add(self, pending: PendingStore) -> asyncio.Future[None]:
        """What is over when it is done."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.append((pending, future))
        self._wait()
        return future

    def _wait(self) -> None:
        if not self._waits and self._open:
            first, loop = self._open[0][0], asyncio.get_running_loop()
            self._waits = True
            waits = loop.run_in_executor(None, first._look, lib, nanoseconds(SLICE))
            waits.add_done_callback(self._looked)

    def _looked(self, waited: asyncio.Future[bool]) -> None:
        self._waits = False
        if waited.cancelled() or waited.exception() is not None or not waited.result():
            # The first is late: others may be done.
            self._open = deque(each for each in self._open if not _is_over(*each))
        while self._open and _is_over(*self._open[0]):
            self._open.popleft()
        if not waited.cancelled():
            self._wait()


def _is_over(pending: PendingStore, future: asyncio.Future[None]) -> bool:
    """Whether nobody waits any more."""
    if not future.done() and pending.done():
        future.set_result(None)
    return future.done()


class Bridge:
    """Carries keys between the hubs of several processes and hosts, over a NATS broker that people run already. It is
    open from the beginning, and does not wait for the broker, which may come later. Any thread, also in handlers.

        bridge = paceline.Bridge(
            hub,
            "nats://broker:4222",
            exports=["position.*", paceline.Export("orders.>", stream="ORDERS")],
            imports=["prices.>", paceline.Import("jobs.>", stream="JOBS", durable="billing")],
        )

    ``exports`` go to the broker, each message to every other process that imports its key; ``imports`` come from it. With
    a stream a message is stored by the broker, and acknowledged when the handlers of this hub have succeeded. Rules of
    which the keys are not all matched by a pattern of ``permitted`` are refused (None: all are permitted, but for the
    hub's own and inboxes, which never cross). Of messages from the broker ids are kept for ``window`` seconds, up to
    ``window_count`` of them: what comes twice in that time is dropped. ``name`` is what health, figures and notices call
    it.

    Left open at the interpreter's end, or lost, it is closed as by ``close(2)``. In a child made by fork it raises
    ForkedError. Raises InvalidError, OsError, ShutDownError; UnsupportedError if the library was built without it.
    """

    def __init__(
        self,
        hub: Hub,
        nats: Union[NatsSettings, str],
        *,
        exports: Iterable[Union[Export, str]] = (),
        imports: Iterable[Union[Import, str]] = (),
        name: str = "nats",
        permitted: Optional[Iterable[str]] = None,
        window: float = 120.0,
        window_count: int = 100_000,
    ) -> None:
        core = instance("hub", hub, Hub)._core
        options = layout.BridgeOptions()
        check(quick.pace_bridge_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        if isinstance(nats, str):
            nats = NatsSettings(nats)
        instance("nats", nats, NatsSettings, "text, or a paceline.NatsSettings").fill(options)
        options.name = text("name", name)
        options.window_ns = nanos("window", window)
        options.window_count = whole("window_count", window_count, 64)
        out = [each._as_c() for each in _rules("exports", exports, Export)]
        into = [each._as_c() for each in _rules("imports", imports, Import)]
        allowed = (
            () if permitted is None else items("permitted", permitted, "an iterable of text, or None")
        )
        patterns = [text("permitted", each) for each in allowed]
        if permitted is not None and not patterns:
            raise InvalidError("permitted is empty; allowed: patterns, or None for all keys")
        pointer = ctypes.c_void_p()
        check(quick.pace_bridge_new(core.pointer(), ctypes.byref(options), ctypes.byref(pointer)))
        self._begin(hub, pointer, out, into, patterns)

    @classmethod
    def from_settings(
        cls,
        hub: Hub,
        settings: Given = None,
        *,
        environment: bool = False,
        exports: Iterable[Union[Export, str]] = (),
        imports: Iterable[Union[Import, str]] = (),
    ) -> Bridge:
        """A bridge as the section ``bridge`` of a file says, JSON or YAML by its name, of several, or of Settings; with
        ``environment`` variables PACELINE_BRIDGE_… win over it. The rules that are given here are added to those. What is
        wrong in the settings is named by an InvalidError, all at once, also that they name no broker."""
        core = instance("hub", hub, Hub)._core
        files = files_of(settings)
        paths = (ctypes.c_char_p * len(files))(*files)
        out = [each._as_c() for each in _rules("exports", exports, Export)]
        into = [each._as_c() for each in _rules("imports", imports, Import)]
        wins = bool(environment) or (isinstance(settings, Files) and settings.environment)
        pointer = ctypes.c_void_p()
        check(lib.pace_bridge_load(core.pointer(), paths, len(files), wins, ctypes.byref(pointer)))
        self = cls.__new__(cls)
        self._begin(hub, pointer, out, into, [])
        return self

    def _begin(
        self,
        hub: Hub,
        pointer: ctypes.c_void_p,
        out: list[tuple[bytes, layout.BridgeExportOptions]],
        into: list[tuple[bytes, layout.BridgeImportOptions]],
        patterns: list[bytes],
    ) -> None:
        self._native = native = Native(pointer, lib.pace_bridge_free)
        with freed_on_failure(native):
            for pattern, rule in out:
                check(quick.pace_bridge_export(pointer, pattern, ctypes.byref(rule)))
            for pattern, rule in into:
                check(quick.pace_bridge_import(pointer, pattern, ctypes.byref(rule)))
            for pattern in patterns:
                check(quick.pace_bridge_permit(pointer, pattern))
            check(lib.pace_bridge_open(pointer))
        # While there is a bridge its hub is not lost.
        self._hub = hub
        self._closed = False
        #: What event loops await, by identity of the loop.
        self._awaited: weakref.WeakValueDictionary[int, _Stores] = weakref.WeakValueDictionary()
        self._at_exit = _lifetime.AtExit(self._exit)
        if not _lifetime.enlist(self._at_exit):
            self.close(0)
            raise ShutDownError("the interpreter ends")

    def publish(
        self,
        key: Union[Key, str],
        payload: BytesLike = b"",
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
        no_wait: bool = False,
    ) -> PendingStore:
        """Publishes a message in the hub, as ``Hub.publish``, and says when the broker has stored it: ``wait``, or await,
        what this returns. Local subscribers do not wait for that. The key needs an export with a stream.

        Raises InvalidError as ``Hub.publish``, for a key without such an export, and for one that drops what waits; Full:
        the buffer of the export, or a mailbox of the hub, was full and has refused it; ShutDownError, ForkedError."""
        core, sent = self._hub._core, data("payload", payload)
        own = self._hub._own(key)
        publication, kept = publication_of(headers, priority)
        self._check_open()
        core.check_draining()
        pointer, terms = ctypes.c_void_p(), ctypes.byref(publication)
        encoded, at, native = text("key", own.text), ctypes.byref(pointer), self._native.pointer

        def publish(flags: int) -> int:
            return int(lib.pace_bridge_publish(native, encoded, terms, sent, len(sent), flags, at))

        with core.publishing():
            core.publish(own._native.pointer, publish, new_receipt(), no_wait)
        del kept
        return PendingStore(self, pointer)

    def wait_connected(self, timeout: Optional[float] = None) -> bool:
        """Waits up to ``timeout`` seconds (None: for ever) until it is connected; False: it is not in that time. Nothing
        needs that: what is published before waits. Raises ShutDownError."""
        return self._waited(lib.pace_bridge_wait_connected, timeout)

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits up to ``timeout`` seconds (None: for ever) until all that was published before is handed to the connection,
        and, where there is a stream, stored; False: it is not in that time. Raises ShutDownError."""
        return self._waited(lib.pace_bridge_flush, timeout)

    def _waited(self, call: Any, timeout: Optional[float]) -> bool:
        left, pointer = nanoseconds(patience("timeout", timeout)), self._native.pointer
        came: list[bool] = []

        def wait() -> None:
            # On the thread that waits, which has the last error.
            status = int(call(pointer, left))
            if status != layout.ETIMEDOUT:
                check(status)
            came.append(status == layout.OK)

        self._hub._core._awaited(wait)
        return came[0]

    @property
    def connected(self) -> bool:
        """Whether it is connected to a broker now."""
        return bool(self._stats().connected)

    @property
    def closed(self) -> bool:
        """Whether it was closed: it carries nothing any more."""
        return self._closed

    def stats(self) -> BridgeStats:
        """How it is, and what it has carried."""
        raw, pointer = self._stats(), self._native.pointer
        out = (
            _filled(layout.BridgeExportStats, quick.pace_bridge_export_stats, pointer, index)
            for index in range(raw.exports)
        )
        into = (
            _filled(layout.BridgeImportStats, quick.pace_bridge_import_stats, pointer, index)
            for index in range(raw.imports)
        )
        return BridgeStats(
            bool(raw.connected),
            _text_of(quick.pace_bridge_server, pointer),
            _text_of(quick.pace_bridge_reason, pointer) or None,
            raw.connects,
            raw.requests_out,
            raw.requests_in,
            raw.lost,
            tuple(_row(ExportStats, each) for each in out),
            tuple(_row(ImportStats, each) for each in into),
        )

    def _stats(self) -> layout.BridgeStats:
        return _filled(layout.BridgeStats, quick.pace_bridge_stats, self._native.pointer)

    def close(self, timeout: float = 10.0) -> int:
        """Ends it: it takes nothing more from the broker, sends what waits, waits until the hub's handlers have dealt with
        what it has taken, and acknowledges that; for up to ``timeout`` seconds. What is not acknowledged then comes again,
        to any process of the same durable name; what waits to be sent is lost, and the answer says how many messages that
        are: 0 as a rule. Calling it again is allowed. Before ``Hub.close``, and not in handlers of the hub."""
        nanoseconds_left = nanos("timeout", timeout)
        left = ctypes.c_uint64()
        self._closed = True

        def close() -> None:
            check(lib.pace_bridge_close(self._native.pointer, nanoseconds_left, ctypes.byref(left)))

        self._hub._core._awaited(close)
        return left.value

    def _check_open(self) -> None:
        if self._closed:
            # A child made by fork gets ForkedError of the library.
            self._stats()
            raise ShutDownError("the bridge is closed")

    def _stores(self) -> _Stores:
        loop = asyncio.get_running_loop()
        found = self._awaited.get(id(loop))
        if found is None or found.loop() is not loop:
            found = self._awaited[id(loop)] = _Stores(loop)
        return found

    def _exit(self) -> None:
        if not self._closed:
            self.close(_AT_EXIT)

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Bridge: it belongs to this process")


R = TypeVar("R", Export, Import)


def _rules(name: str, given: Iterable[Union[R, str]], kind: type[R]) -> list[R]:
    allowed = f"an iterable of text and of paceline.{kind.__name__}"
    rules: list[R] = []
    for each in items(name, given, allowed):
        if isinstance(each, str):
            rules.append(kind(each))
        elif isinstance(each, kind):
            rules.append(each)
        else:
            raise wrong(name, each, allowed)
    return rules


def _filled(kind: Any, call: Any, *before: Any) -> Any:
    """A struct that the call has filled."""
    raw = kind()
    raw.struct_size = ctypes.sizeof(raw)
    check(call(*before, ctypes.byref(raw)))
    return raw


def _row(kind: Any, raw: Any) -> Any:
    texts = (_copied(raw.pattern) or "", _copied(raw.stream))
    return kind(*texts, *(getattr(raw, name) for name in kind._fields[2:]))


def _copied(raw: layout.Text) -> Optional[str]:
    return ctypes.string_at(raw.text, raw.size).decode() if raw.text else None


def _text_of(call: Any, pointer: ctypes.c_void_p) -> str:
    room, needed = ctypes.create_string_buffer(256), ctypes.c_size_t()
    while True:
        status = call(pointer, room, len(room), ctypes.byref(needed))
        if status != layout.EFULL:
            break
        room = ctypes.create_string_buffer(needed.value + 256)
    check(status)
    return room.value.decode("utf-8", "replace")
