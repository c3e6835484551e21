"""``Http``: an HTTP/1.1 server whose handlers are Python's.

Heads are judged, routed and limited natively; a request comes to a host thread as one block of bytes,
which is taken apart as far as a handler looks at it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import json
import re
import select
import struct
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MappingView
from dataclasses import dataclass
from threading import get_ident
from types import CoroutineType
from typing import Any, Optional, TypeVar, Union
from urllib.parse import parse_qsl

from . import _layout as layout
from ._arguments import (
    keywords,
    BytesLike,
    defined_again,
    function,
    instance,
    items,
    one_of,
    plain,
    text,
    whole,
    wrong,
)
from ._arguments import data as data_of
from ._contain import LEAVING, report
from ._errors import Full, InvalidError, ShutDownError, StaleError
from ._hosts import (
    queue_of,
    ANSWERS,
    Hosts,
    Source,
    base_of,
)
from ._native import NOT_AT_ALL, Puller, entries_of, freed_on_failure
from ._library import check, error, lib, quick
from ._listen import ListenSettings, Listeners, Places, listeners, seconds
from ._typing import Unpack
from ._log import Log
from ._pool import Pool
from ._server import Conn, Factory, Serving, _wanted
from ._server import Core as StreamCore

#: So many pieces of a body are written before a host thread turns to others.
PUMPED = 16

_TEXT = b"Content-Type: text/plain; charset=utf-8\r\n"
_JSON = b"Content-Type: application/json\r\n"

#: What stands in front of a request's block, and a query that is not there.
_FRONT = struct.Struct("=8I")
_NONE = 0xFFFF_FFFF


class Headers(Mapping[str, str]):
    """A request's headers: the first of a name, upper or lower case. ``pairs`` are all, in order. What
    is not ASCII is read as Latin-1."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._first: dict[str, str] = {}
        for name, value in pairs:
            self._first.setdefault(name.lower(), value)

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __repr__(self) -> str:
        return f"Headers({self.pairs!r})"


class Response:
    """An answer. ``body`` is bytes, or text (UTF-8, and said to be plain text unless ``headers`` say
    something else), or an iterable of bytes: then it is sent in chunks, or as ``length`` bytes, as fast
    as the peer takes it. Names of headers are tokens, and values are Latin-1 without CR, LF and NUL.
    ``Content-Length``, ``Transfer-Encoding``, ``Connection`` and ``Date`` are the library's own. With ``close``
    no more requests follow on the connection.

    An iterable is not iterated where no body is sent: for HEAD, and with a status of 1xx, 204, 205 or 304. If it
    has a method ``close``, as a generator or a file has, that is called once, when the body was sent or never will
    be, on whatever thread. A piece that is no bytes, and a body that is shorter or longer than ``length``, is
    logged: the peer gets a 500 if that is seen before the head is sent, as it is of lists, tuples, sets and
    mappings, and else sees the body break off."""

    __slots__ = ("status", "headers", "body", "length", "close", "_lines", "_flags")

    def __init__(
        self,
        body: Union[BytesLike, str, Iterable[bytes]] = b"",
        status: int = 200,
        headers: Union[Fields, None] = None,
        *,
        length: Optional[int] = None,
        close: bool = False,
    ) -> None:
        if not isinstance(body, (str, bytes, bytearray, memoryview, Iterable)):
            raise wrong("body", body, "bytes, text, or an iterable of bytes")
        self.status = whole("status", status)
        self.headers = headers if headers is None or isinstance(headers, Mapping) else _pairs(headers)
        self.body = body
        self.length = length if length is None else whole("length", length, 63)
        self.close = close
        self._lines = b""
        self._flags = 0

    @classmethod
    def error(cls, status: int, headers: Union[Fields, None] = None) -> Response:
        """A short page about a status, as the server's own errors have it, in the form that the request's Accept
        wants most: text ("404 Not Found"), JSON (``{"title":"Not Found","status":404}``, as RFC 9457 has it) or
        HTML."""
        response = cls(b"", status, headers)
        response._flags = layout.CQ_ERROR_PAGE
        return response

    def header(self, name: str, value: str) -> Response:
        """Adds a header to those that it has. Returns the response."""
        text("name", name)
        text("value", value)
        pairs = [] if self.headers is None else _pairs(self.headers)
        self.headers = _pairs([*pairs, (name, value)])
        return self

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Response:
        """A value as JSON, compact and in UTF-8, with a Content-Type unless ``header`` says another one. Raises ValueError: there is a number
        in it that JSON has not (NaN, infinity); TypeError."""
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        response = cls(text.encode(), status)
        response._lines = _JSON
        return response

    def _head(self) -> bytes:
        """The lines of its headers."""
        if self.headers is None:
            return _TEXT if isinstance(self.body, str) else self._lines
        pairs = _pairs(self.headers)
        lines = _lines(pairs)
        if any(name.lower() == "content-type" for name, _ in pairs):
            return lines
        return self._lines + lines + (_TEXT if isinstance(self.body, str) else b"")


Fields = Union[Mapping[str, str], Iterable[tuple[str, str]]]


#: What they may be, in words.
_FIELDS = "pairs of text, or a mapping of text to text"


def _pairs(headers: Fields) -> list[tuple[str, str]]:
    pairs: list[Any] = items(
        "headers", headers.items() if isinstance(headers, Mapping) else headers, _FIELDS
    )
    try:
        found = [(name, value) for name, value in pairs]
    except (TypeError, ValueError):
        raise wrong("headers", headers, _FIELDS) from None
    if not all(isinstance(each, str) for pair in found for each in pair):
        raise wrong("headers", headers, _FIELDS)
    return found


# What the library would take for the end of a name, or of a line. It looks at the rest itself.
_ends_name, _ends_line = re.compile("[:\r\n\0]").search, re.compile("[\r\n\0]").search


def _lines(pairs: Iterable[tuple[str, str]]) -> bytes:
    lines = []
    for name, value in pairs:
        if _ends_name(name):
            raise InvalidError(f"the name of a header is {name!r}; allowed: a token (RFC 9110, 5.6.2)")
        if _ends_line(value):
            raise InvalidError(f"header is {name!r}: {value!r}; allowed: a value without CR, LF and NUL")
        try:
            # Of a member of an enum, say, ``format`` makes another text than was looked at.
            lines.append("".join((name, ": ", value, "\r\n")).encode("latin-1"))
        except UnicodeEncodeError:
            raise InvalidError(f"header is {name!r}: {value!r}; allowed: Latin-1") from None
    return b"".join(lines)


class RequestBody:
    """What takes the body of a request as it comes: what the handler of a ``route_streaming`` returns. Its
    hooks never run at the same time; they run on the server's host threads. One that raises is logged
    and counted, and closes its connection, after a 500. When the request has been answered none is called any more."""

    def data(self, data: bytes) -> Optional[bool]:
        """A part has come. False: no more of it before ``Request.read``; until then the peer waits."""
        raise NotImplementedError

    def end(self, is_whole: bool) -> None:
        """The last call: it was whole, or it never will be."""


#: What a handler may return. None: it has answered, or somebody will. A dictionary is sent as JSON.
Result = Union[Response, BytesLike, str, dict[str, Any], RequestBody, None]
Handler = Callable[["Request"], Result]
H = TypeVar("H", bound=Callable[..., Any])


def _response(result: Any) -> Response:
    """What a handler returns, or somebody answers with, as a response. Raises TypeError."""
    if isinstance(result, Response):
        return result
    if isinstance(result, dict):
        return Response.json(result)
    if not isinstance(result, (str, bytes, bytearray, memoryview, Iterable)):
        allowed = "a Response, bytes, text, a dictionary, or an iterable of bytes"
        raise wrong("response", result, allowed)
    return Response(result)


def _seen(result: Any) -> Any:
    """What middleware sees of what a handler has returned."""
    is_kept = result is None or isinstance(result, (RequestBody, CoroutineType))
    return result if is_kept else _response(result)


def _within(around: Callable[..., Any], go_on: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """A handler with a middleware around it."""
    if not inspect.iscoroutinefunction(around):
        return lambda request: _seen(around(request, go_on))

    async def later(request: Request) -> Any:
        result = go_on(request)
        return _seen(await result if isinstance(result, CoroutineType) else result)

    return lambda request: around(request, later)


class NotOffered(InvalidError):
    """A request does not offer the protocol that it was to be upgraded to. It was answered."""


class Request:
    """A request. It is answered by what its handler returns, or, if that is None, by ``respond``, on
    any thread and at any time. One that is lost unanswered gets a 500."""

    __slots__ = (
        "_core", "_number", "_name", "_conn", "_block", "_front", "_parts", "_hand", "_host", "_route",
    )  # fmt: skip

    def __init__(self, core: Core, number: int, conn: int, block: bytes, hand: Hand, route: int) -> None:
        self._core = core
        #: The token of its entry; 0: answered. Its name it keeps.
        self._number = self._name = number
        self._conn = conn
        self._block = block
        self._front: tuple[int, ...] = _FRONT.unpack_from(block)
        self._parts: Optional[tuple[dict[str, str], list[tuple[str, str]]]] = None
        # While its handler runs, the thread that sends answers in batches.
        self._hand: Optional[Hand] = hand
        self._host = get_ident()
        self._route = route

    # --- what is asked ---------------------------------------------------------------------------

    def _text(self, index: int) -> bytes:
        lengths = self._front
        start = _FRONT.size + 8 * (lengths[5] + lengths[6])
        for length in lengths[:index]:
            start += length
        return self._block[start : start + lengths[index]]

    @property
    def method(self) -> str:
        """As it was sent: GET."""
        return self._text(0).decode("ascii")

    @property
    def target(self) -> str:
        """As it was sent: /hello/you?loud=1."""
        return self._text(1).decode("latin-1")

    @property
    def path(self) -> str:
        """The target's path, as it was sent: percent-encoded, and with whatever dots it has."""
        return self._text(2).decode("latin-1")

    @property
    def query(self) -> Optional[str]:
        """What follows the first question mark of the target."""
        return None if self._front[3] == _NONE else self._text(3).decode("latin-1")

    @property
    def query_pairs(self) -> list[tuple[str, str]]:
        """The names and values of the query, decoded as a browser's form encodes them: ``+`` is a space, and what is
        percent-encoded is decoded. A pair without ``=`` has an empty value. What is not UTF-8 is replaced by
        U+FFFD. There are no more than the target has room for (``max_target``)."""
        return parse_qsl(self.query or "", keep_blank_values=True, errors="replace")

    @property
    def pattern(self) -> Optional[str]:
        """The pattern of the route that it came by: "/hello/{name}". None: no route has taken it."""
        return self._core.patterns[self._route]

    @property
    def refusal(self) -> Optional[int]:
        """The status that a request gets which no route has taken: 404, 405, 501, or 400 for a parameter that cannot
        be decoded. None: a route has it."""
        return self._front[4] >> 16 or None

    @property
    def version(self) -> tuple[int, int]:
        """(1, 1) or (1, 0)."""
        return 1, self._front[4] & 0xFFFF

    @property
    def params(self) -> dict[str, str]:
        """The parts of the path that stand for names in the route's pattern, percent-decoded. A slash that was
        encoded stays in its part, since routes are matched with the path as it was sent, which is ``path``.
        A request with a part that cannot be decoded (to UTF-8 without NUL) gets a 400, and has no handler."""
        return self._taken_apart()[0]

    @property
    def headers(self) -> Headers:
        """All headers of the request, in the order in which they came."""
        return Headers(self._taken_apart()[1])

    def header(self, name: str) -> Optional[str]:
        """The first header of this name, upper or lower case."""
        text("name", name)
        name = name.lower()
        for other, value in self._taken_apart()[1]:
            if other.lower() == name:
                return value
        return None

    def _taken_apart(self) -> tuple[dict[str, str], list[tuple[str, str]]]:
        if self._parts is None:
            front, block = self._front, self._block
            count = front[5] + front[6]
            lengths = struct.unpack_from(f"={2 * count}I", block, _FRONT.size)
            place = _FRONT.size + 8 * count + sum(front[:3]) + (front[3] if front[3] != _NONE else 0)
            pairs = []
            for index in range(0, 2 * count, 2):
                middle = place + lengths[index]
                end = middle + lengths[index + 1]
                coding = "utf-8" if index < 2 * front[5] else "latin-1"
                pairs.append((block[place:middle].decode(coding), block[middle:end].decode(coding)))
                place = end
            self._parts = dict(pairs[: front[5]]), pairs[front[5] :]
        return self._parts

    @property
    def body(self) -> bytes:
        """The whole body of the request, as bytes."""
        return self._block[self._front[7] :]

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the body is JSON that is nested too deeply") from None

    @property
    def peer(self) -> str:
        """The other end's address. Raises StaleError when the connection has ended."""
        buffer = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
        check(quick.pace_server_conn_peer(self._core.server, self._conn, buffer, len(buffer)))
        return buffer.value.decode()

    # --- a body that is streamed -----------------------------------------------------------------

    def read(self) -> None:
        """On a ``route_streaming``: asks for the next part of the body, after a RequestBody's ``data`` has
        said False. Raises StaleError when the request was answered, or the body has ended."""
        self._core.read(self._number)

    async def parts(self) -> AsyncIterator[bytes]:
        """On a ``route_streaming`` whose handler is a coroutine: the parts of the body. The peer waits
        until the next one is asked for. Raises StaleError if the body breaks off."""
        parts = _Parts()
        self._core.bodies[self._number] = parts, self._conn
        while True:
            parts.next = asyncio.get_running_loop().create_future()
            self.read()
            part = await parts.next
            if part is None:
                return
            yield part

    # --- another protocol ------------------------------------------------------------------------

    def upgrade(self, protocol: str, handler: Factory, headers: Union[Fields, None] = None) -> Conn:
        """Answers with 101, and makes the connection one of ``handler(conn)``, as a Server's are, for a
        protocol that the request offers ("websocket", in upper or lower case). Its ``open`` comes next. The HTTP server's
        limits stay in force. Raises InvalidError; if the request does not offer the protocol its client has got a 426,
        and a handler may let that pass. Raises StaleError as ``respond``."""
        lines = b"" if headers is None else _lines(_pairs(headers))
        function("handler", handler)
        text("protocol", protocol)
        offered = self._offered()
        if self._number and protocol.lower() not in map(str.lower, offered):
            self.respond(Response.error(426, {"Upgrade": protocol}))
            allowed = f"what its client offers: {', '.join(offered) or 'nothing'}"
            raise NotOffered(f"protocol is {protocol!r}; allowed for {self}: {allowed}")
        number, self._number = self._number, 0
        if not number:
            raise StaleError("the request has been answered")
        return self._core.upgrade(number, protocol, handler, lines)

    def _offered(self) -> list[str]:
        """The protocols that it may be upgraded to, as RFC 9110 (7.8) has it."""
        found: dict[str, list[str]] = {"connection": [], "upgrade": []}
        for name, value in self._taken_apart()[1]:
            if name.lower() in found:
                found[name.lower()] += [each.strip() for each in value.split(",") if each.strip()]
        is_wanted = "upgrade" in map(str.lower, found["connection"])
        return found["upgrade"] if is_wanted and self.version == (1, 1) else []

    # --- the answer ------------------------------------------------------------------------------

    @property
    def answered(self) -> bool:
        """Whether the request was answered, or its answer has begun."""
        return self._number == 0

    @property
    def is_client_gone(self) -> bool:
        """Whether nobody waits for the answer any more: the client has reset or closed its connection, or sends no more and
        its listener does not ``allow_half_open``; or the answer is complete. Whoever works for long looks here from time
        to time. A handler that is a coroutine is cancelled when its client goes."""
        gone = ctypes.c_bool()
        status = quick.pace_cq_is_client_gone(self._core.queue.pointer, self._name, ctypes.byref(gone))
        return status != layout.OK or gone.value

    def respond(self, response: Union[Response, BytesLike, str, dict[str, Any]]) -> None:
        """Answers; a dictionary is sent as JSON. Raises StaleError if it was answered before, or its connection has ended;
        InvalidError if the status or a header cannot be: then the peer gets a 500."""
        response = _response(response)
        body = response.body
        if isinstance(body, str):
            body = body.encode()
        elif not isinstance(body, (bytes, bytearray, memoryview)):
            return self._stream(response, _Stream(body, self._conn, response.length))
        head, number = response._head(), self._take()
        flags = response._flags | (layout.CQ_CLOSE if response.close else 0)
        answer = number, head, bytes(body), response.status, flags
        if self._hand is not None and self._host == get_ident():
            self._hand.answers.append(answer)
        else:
            status = self._core.answer([answer], _Buffer(1))
            if status != layout.OK:
                raise error(status)

    def _take(self) -> int:
        """Its number, which nobody else gets."""
        number, self._number = self._number, 0
        if not number:
            raise StaleError("the request has been answered")
        if self._core.bodies:
            self._core.bodies.pop(number, None)
        return number

    def _stream(self, response: Response, stream: _Stream) -> None:
        try:
            head, is_sent = (
                response._head(),
                not (_is_bodiless(response.status) or self.method == "HEAD"),
            )
            if is_sent:
                stream.begin()
            hand = self._hand if self._host == get_ident() else None
            self._core.begin(self._take(), response, head, stream, is_sent, hand)
        except BaseException:
            stream.close(self._core)
            raise

    def _give_up(self) -> None:
        number, self._number = self._number, 0
        if number and self._core.drop(number) == layout.OK:
            report(
                "%s was not answered: its handler returned None, and it is lost now; its client gets a 500",
                self,
            )

    def _abandon(self) -> None:
        """Nobody waits for its answer, or for the rest of it: the connection is closed."""
        self._number = 0
        self._core.end(self._name)
        self._core.complete_one(self._name, layout.CQ_ABORT)

    def _fail(self) -> None:
        """Its handler has raised. An answer that was not sent yet comes too late."""
        self._number = 0
        self._core.fail(self._name, self._conn)

    def __del__(self) -> None:
        if getattr(self, "_number", 0):
            self._give_up()

    def __repr__(self) -> str:
        return f"<paceline.Request {self.method} {self.target}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Request: it belongs to this process")


class _Parts(RequestBody):
    """What a coroutine waits for. On the loop's thread."""

    next: asyncio.Future[Optional[bytes]]

    def data(self, data: bytes) -> bool:
        if not self.next.done():
            self.next.set_result(data)
        return False

    def end(self, is_whole: bool) -> None:
        if self.next.done():
            return
        if is_whole:
            self.next.set_result(None)
        else:
            self.next.set_exception(StaleError("the body has broken off"))


@dataclass(frozen=True)
class RequestEnd:
    """What has become of a request."""

    #: As it was sent: GET. Empty if it is not known, as of a malformed request.
    method: str
    #: As it was sent: /hello/you?loud=1. Empty if it is not known; one that was refused for its length is cut.
    target: str
    #: Of the answer. None: no whole answer has left.
    status: Optional[int]
    #: Seconds from the head until the answer was complete. What the peer has not taken yet may still be queued.
    duration: float
    #: The address of the peer, as text.
    peer: str
    #: How many ends were not told before this one, since 65536 waited for the host threads already.
    lost: int = 0


class _Seen:
    """A handler as middleware sees it."""

    def __init__(self, handler: Callable[[Request], Any]) -> None:
        self._handler = handler

    def __call__(self, request: Request) -> Any:
        return _seen(self._handler(request))


#: The block of PACE_CQ_REQUEST_ENDED: time, lost, status, lengths of method, target and peer.
_END = struct.Struct("=QQIIII")
#: Of ``pace_cq_request_t``: conn, request.
_ENTRY = entries_of("QQ")
#: Of ``pace_cq_completion_t``: token, flags, answer, bytes, size, headers, their size, result.
_ANSWER = struct.Struct("=QIIQQQQ32xi4x")

#: Token, headers, body, status, flags.
Answer = tuple[int, bytes, bytes, int, int]


class _Buffer:
    """Room for a batch of answers. One thread at a time."""

    def __init__(self, answers: int) -> None:
        self.native = ctypes.create_string_buffer(_ANSWER.size * answers)
        self.view = memoryview(self.native).cast("B")


def _is_bodiless(status: int) -> bool:
    return status < 200 or status in (204, 205, 304)


#: Bodies whose pieces are all there.
_AT_HAND = (list, tuple, set, frozenset, range, Mapping, MappingView)
_NO_MORE = object()


class _Stream:
    """A body that goes on: what produces it, and how much of its length is left."""

    def __init__(self, body: Iterable[bytes], conn: int, length: Optional[int]) -> None:
        self.conn = conn
        self.length = self.left = length
        self._pieces: Iterator[Any] = iter(())
        # Whoever takes it out closes it.
        self._body: list[Any] = [body]
        # Two threads may come to it: the one that begins, and the one that hears it may go on. One of them may come
        # back to it: in a handler of a signal, or in a destructor.
        self.lock = threading.RLock()
        self.is_running = False
        #: Whoever runs shall look once more; and nobody any more.
        self.again = False
        self.over = False

    def begin(self) -> None:
        """It is iterated. Raises TypeError if it can be seen that a piece is no bytes."""
        (body,) = self._body
        if isinstance(body, _AT_HAND):
            try:
                for piece in iter(body):  # type: ignore[arg-type]
                    data_of("piece", piece)
            except TypeError:
                allowed = "bytes, text, or an iterable of bytes; Response.json(value) is JSON"
                raise wrong("body", body, allowed) from None
        self._pieces = iter(body)

    def next(self) -> Optional[bytes]:
        """The next piece; None: there is none. Raises what producing it raises; TypeError: it is no bytes;
        InvalidError: there is more, or less, than was announced."""
        piece, left = next(self._pieces, _NO_MORE), self.left
        if piece is _NO_MORE:
            if left:
                raise InvalidError(f"the body ends {left} bytes before its length of {self.length}")
            return None
        data = data_of("piece", piece)  # type: ignore[arg-type]
        if left is not None:
            if len(data) > left:
                raise InvalidError(f"the body goes on beyond its length of {self.length} bytes")
            self.left = left - len(data)
        return data

    def end(self, core: Core) -> None:
        """Nothing more is sent. Whoever runs it closes it, if somebody does."""
        self.over = True
        if self.lock.acquire(blocking=False):
            try:
                if not self.is_running:
                    self.close(core)
            finally:
                self.lock.release()

    def close(self, core: Core) -> None:
        """Closes the body, the first time."""
        try:
            body = self._body.pop()
        except IndexError:
            return
        try:
            close = getattr(body, "close", None)
            if close is not None:
                close()
        except BaseException as raised:
            core.contain(raised, "the body of an answer could not be closed")


class Upgraded(StreamCore):
    """The host threads of connections that speak another protocol now. They stay the HTTP server's."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.pool, (), _unknown, core.most, f"{core.name}_upgraded", None, {})
        # The connections are found there, as long as that lives.
        self.server, self._http = core.server, core.http

    def _drain(self, seconds: Optional[float], report: layout.DrainReport) -> None:
        raise NotImplementedError("the HTTP server is drained")


def _unknown(conn: Conn) -> Any:
    raise AssertionError("connections are entered when they are upgraded")


class Core(Hosts):
    """An HTTP server's host threads, routes, and bodies that go on."""

    def __init__(
        self, pool: Pool, places: Places, threads: int, name: str, options: dict[str, Any]
    ) -> None:
        settings = {key: options.pop(key) for key in list(options) if key not in _OWN}
        super().__init__(pool, name, threads)
        #: As they were given, and from the start on with what is around them.
        self.given: list[Callable[[Request], Any]] = []
        self.handlers: list[Callable[[Request], Any]] = []
        #: By method, pattern and whether it is streaming, the number of its handler.
        self.routes: dict[tuple[str, str, bool], int] = {}
        #: Of each handler; None: it is the fallback.
        self.patterns: list[Optional[str]] = []
        self.arounds: list[Callable[..., Any]] = []
        self.on_end: Optional[Callable[[RequestEnd], object]] = None
        self.streams: dict[int, _Stream] = {}
        #: Bodies of requests that are streamed, and their connections.
        self.bodies: dict[int, tuple[RequestBody, int]] = {}
        #: Coroutines that answer, by the numbers of their requests.
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.upgraded: Optional[Upgraded] = None
        # Collecting garbage, or a signal's handler, may come back here at any place.
        self.lock = threading.RLock()
        #: Those that may still call what takes a body.
        self.hands: list[Hand] = []
        #: Without host threads: readable when there is something for ``run``.
        self.poll: Optional[select.epoll] = None
        self.started = False
        self._places = listeners(places, settings)
        self._options = options
        self.queue = queue = queue_of(pool)
        http = ctypes.c_void_p()
        with freed_on_failure(queue.native):
            check(lib.pace_http_new(pool._runner.native.pointer, ctypes.byref(http)))
        self.http = Source(http, lib.pace_http_free, queue)
        self._complete = lib["pace_cq_complete"]
        self.count_in()

    def route(
        self, method: str, pattern: str, handler: Callable[[Request], Any], streaming: bool
    ) -> None:
        function("handler", handler)
        queue, http, number = self.queue.pointer, self.http.pointer, len(self.given)
        arguments, place = (
            (text("method", method), text("pattern", pattern)),
            (method, pattern, streaming),
        )
        known = self.routes.get(place)
        if known is not None and defined_again(self.given[known], handler):
            self.given[known] = handler
            if self.started:
                self.handlers[known] = self.wrapped(handler)
            return
        check(lib.pace_cq_route(queue, http, *arguments, streaming, number))
        self.routes[place] = number
        self.given.append(handler)
        self.patterns.append(pattern)

    def wrapped(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """With what is around it; the first is outermost."""
        for around in reversed(self.arounds):
            handler = _within(around, _Seen(handler))
        return handler

    def fallback(self, handler: Callable[[Request], Any]) -> None:
        function("handler", handler)
        number = len(self.given)
        check(lib.pace_cq_fallback(self.queue.pointer, self.http.pointer, number))
        self.given.append(handler)
        self.patterns.append(None)

    def end_hook(self, hook: Callable[[RequestEnd], object]) -> None:
        plain("hook", hook)
        check(lib.pace_cq_http_ends(self.queue.pointer, self.http.pointer, 0))
        self.on_end = hook

    def around(self, middleware: Callable[..., Any]) -> None:
        function("middleware", middleware)
        if self.started:
            raise InvalidError("http has been started already")
        self.arounds.append(middleware)

    def access_log(self, format: str, log: Optional[Log]) -> None:
        wanted = one_of("format", format, _ACCESS_FORMATS)
        given = None if log is None else instance("log", log, Log).native.pointer
        check(lib.pace_http_access_log(self.http.pointer, wanted, given))

    def start_native(self) -> None:
        if self.arounds and None not in self.patterns:
            self.fallback(lambda request: Response.error(request.refusal or 404))
        self.handlers = list(map(self.wrapped, self.given))
        if not self.given and self.on_end is None:
            # Something has to tell the host threads of the server's end.
            check(lib.pace_cq_http_ends(self.queue.pointer, self.http.pointer, 0))
        where = Listeners(self._places)
        options = layout.HttpOptions()
        check(quick.pace_http_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.listeners, options.listener_count = where.pointer, where.count
        for name, value in self._options.items():
            if value is None:
                continue
            if name.endswith("_timeout"):
                setattr(options, f"{name}_ns", seconds(name, value))
            else:
                setattr(options, name, whole(name, value, 32 if name in _SMALL else 63))
        check(lib.pace_http_start(self.http.pointer, ctypes.byref(options)))
        check(quick.pace_http_server(self.http.pointer, ctypes.byref(self.server)))
        self.http.inside.append(self.server)
        self.started = True

    def hand(self) -> Hand:
        hand = Hand(self)
        self.hands.append(hand)
        return hand

    def leave(self, hand: Hand) -> None:
        """This one pulls no more. The last one tells whoever waits for a part of a body."""
        if hand in self.hands:
            self.hands.remove(hand)
        while not self.hands and self.bodies:
            try:
                number, _ = next(iter(self.bodies.items()))
            except (RuntimeError, StopIteration):
                continue
            self.feed(number, layout.CQ_BODY_BROKEN, b"")

    def close_native(self) -> None:
        if self.started:
            lib.pace_server_cut_off(self.server)
        self.end_queue()
        for number in list(self.tasks):
            self.cancel(number)
        if self.upgraded is not None:
            self.upgraded.close()

    def end_queue(self) -> None:
        """Nothing more is brought: all threads end, and bodies that go on."""
        self.queue.close()
        for number in list(self.streams):
            self.end(number)

    # --- connections that speak another protocol -------------------------------------------------

    def upgrade(self, number: int, protocol: str, handler: Factory, lines: bytes) -> Conn:
        upgraded = self._upgraded()
        name, wanted = ctypes.c_uint64(), _wanted(handler)
        arguments = text("protocol", protocol), lines, len(lines), upgraded.own, wanted
        with upgraded.lock:
            check(lib.pace_cq_upgrade(self.queue.pointer, number, *arguments, ctypes.byref(name)))
            conn = upgraded.conns[name.value] = Conn(upgraded, name.value, handler)
        return conn

    def _upgraded(self) -> Upgraded:
        """Made when the first connection comes."""
        with self.lock:
            if self.closed:
                raise ShutDownError("the server is closed")
            if self.upgraded is None:
                upgraded = Upgraded(self)
                upgraded.start()
                if self.poll is not None:
                    self.poll.register(upgraded.queue.fileno(), select.EPOLLIN)
                self.upgraded = upgraded
            return self.upgraded

    def turn(self) -> int:
        count = super().turn()
        if self.upgraded is not None:
            count += max(0, self.upgraded.turn())
        return count

    def fileno(self) -> int:
        """Readable while ``turn`` would find something."""
        with self.lock:
            if self.most:
                return self.queue.fileno()
            if self.poll is None:
                self.poll = select.epoll()
                self.poll.register(self.queue.fileno(), select.EPOLLIN)
                if self.upgraded is not None:
                    self.poll.register(self.upgraded.queue.fileno(), select.EPOLLIN)
            return self.poll.fileno()

    def is_inside(self) -> bool:
        upgraded = self.upgraded
        return super().is_inside() or upgraded is not None and upgraded.is_inside()

    def join(self, timeout: Optional[float] = None) -> bool:
        upgraded = self.upgraded
        ended = super().join(timeout)
        return ended and (upgraded is None or not upgraded.closed or upgraded.join(timeout))

    # --- bodies that are streamed, and coroutines that answer ------------------------------------

    def read(self, number: int) -> None:
        """Asks for the next part of a body."""
        check(quick.pace_cq_read(self.queue.pointer, number))

    def feed(self, number: int, kind: int, data: bytes) -> None:
        """What has come of a body."""
        found = self.bodies.get(number)
        if found is None:
            # It was answered meanwhile.
            return
        body, conn = found
        try:
            if kind == layout.CQ_BODY:
                if body.data(data) is not False and number in self.bodies:
                    self.read(number)
            else:
                self.bodies.pop(number, None)
                body.end(kind == layout.CQ_BODY_END)
        except StaleError as raised:
            # Answered by another thread, or else the hook has met the end of something of its own.
            self.bodies.pop(number, None)
            if self.complete_one(number, layout.CQ_FAIL) != layout.ESTALE:
                self.contain(raised, "the body of a request has failed")
        except BaseException as raised:
            self.contain(raised, "the body of a request has failed")
            self.fail(number, conn)

    def tell_end(self, block: bytes) -> None:
        """Tells the hook of the end of a request."""
        duration, lost, status, *lengths = _END.unpack_from(block)
        place, texts = _END.size, []
        for length in lengths:
            texts.append(block[place : place + length].decode("latin-1"))
            place += length
        method, target, peer = texts
        end = RequestEnd(method, target, status or None, duration / 1e9, peer, lost)
        try:
            if self.on_end is not None:
                self.on_end(end)
        except BaseException as raised:
            self.contain(raised, "the hook of the end of %s %s has failed", method, target)

    def spawn(self, request: Request, coroutine: Any) -> None:
        """Has the loop run a handler to its end."""
        if self.loop is None:
            coroutine.close()
            raise InvalidError("a handler that is a coroutine needs an asyncio loop: attach")
        number = request._name
        task = self.loop.create_task(self._finish(request, coroutine))
        self.tasks[number] = task
        task.add_done_callback(lambda _: self.tasks.pop(number, None))
        # It may have answered before, in part or whole.
        quick.pace_cq_watch_client(self.queue.pointer, number)

    def cancel(self, number: int) -> None:
        """Its client has gone, or was cut off: nobody waits for what the coroutine would answer."""
        task = self.tasks.get(number)
        if task is not None:
            # A loop that is closed runs nothing.
            with contextlib.suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(task.cancel)

    def give(self, request: Request, result: Any) -> None:
        """Answers with what a handler has returned. A peer that is gone is none of its business."""
        answered = request.answered
        if answered and isinstance(result, Conn):
            # An upgrade gives it.
            return
        try:
            request.respond(result)
        except StaleError:
            if not request.answered:
                raise
            if answered:
                why = "it is dropped, as the request has been answered before"
                report(f"the handler of %s has returned an answer: {why}", request)

    async def _finish(self, request: Request, coroutine: Any) -> None:
        try:
            result = await coroutine
            if result is not None:
                self.give(request, result)
        except BaseException as raised:
            if issubclass(type(raised), (StaleError, NotOffered)) and request.answered:
                # The peer is gone, or was told.
                return
            is_cancelled = issubclass(type(raised), asyncio.CancelledError)
            if is_cancelled and request.is_client_gone:
                request._abandon()
            else:
                if not (self.closed and is_cancelled):
                    report("the handler of %s has failed", request, raised=raised)
                request._fail()
            if issubclass(type(raised), (asyncio.CancelledError, *LEAVING)):
                raise

    # --- answers ---------------------------------------------------------------------------------

    def answer(self, answers: list[Answer], buffer: _Buffer) -> int:
        """Gives them; the status of the first that failed."""
        data = b"".join([part for each in answers for part in (each[1], each[2])])
        place = base_of(data) if data else 0
        offset = 0
        for number, head, body, status, flags in answers:
            headers, size = len(head), len(body)
            bodies = place + headers
            fields = number, flags, status, bodies, size, place, headers, 0
            _ANSWER.pack_into(buffer.view, offset, *fields)
            place, offset = bodies + size, offset + _ANSWER.size
        count = ctypes.c_size_t(len(answers))
        return int(self._complete(self.queue.pointer, buffer.native, count))

    def complete_one(self, number: int, flags: int) -> int:
        """Completes a request without an answer."""
        row = layout.CqCompletion()
        row.token, row.flags = number, flags
        return int(quick.pace_cq_complete(self.queue.pointer, ctypes.byref(row), 1))

    def drop(self, number: int) -> int:
        """Nobody answers. OK: somebody waited for that."""
        return self.complete_one(number, 0)

    def fail(self, number: int, conn: int) -> None:
        """What was to answer has raised: a 500, if nothing was sent, and the end of the connection."""
        self.bodies.pop(number, None)
        self.end(number)
        if self.complete_one(number, layout.CQ_FAIL) == layout.ESTALE:
            # It was answered to the end. What has ended is none of anybody's business.
            quick.pace_http_fail(self.http.pointer, conn)

    # --- bodies that go on -----------------------------------------------------------------------

    def begin(
        self,
        number: int,
        response: Response,
        head: bytes,
        stream: _Stream,
        is_sent: bool,
        hand: Optional[Hand],
    ) -> None:
        """Sends the head, and as much of the body as the peer takes; or no body."""
        length = layout.CQ_UNKNOWN if response.length is None else response.length
        flags = layout.CQ_MORE | (layout.CQ_CLOSE if response.close else 0)
        with stream.lock:
            # The peer may be heard of before this returns.
            self.streams[number] = stream
            status, _ = self._piece(number, b"", head, response.status, flags, length)
            if status != layout.OK or not is_sent:
                self.streams.pop(number, None)
                if status != layout.OK:
                    raise error(status)
                self._piece(number, b"", b"", 0, 0, 0)
        if not is_sent:
            return stream.close(self)
        self.go_on(number, hand)
        # It may have been ended by others, who leave the rest to this thread, before it could go on.
        if stream.over:
            stream.end(self)

    def go_on(self, number: int, hand: Optional[Hand]) -> None:
        """Writes the next pieces of a body, until the peer is full or it ends. On a host thread it is somebody else's
        turn after some of them."""
        stream = self.streams.get(number)
        if stream is None:
            return
        with stream.lock:
            if stream.is_running:
                stream.again = True
                return
            stream.is_running, waits = True, False
            try:
                stream.again = waits = True
                while stream.again and waits:
                    stream.again = False
                    waits = self._write(number, stream, hand)
            except BaseException as raised:
                waits = False
                self.contain(raised, "the body of an answer has failed")
                self.fail(number, stream.conn)
            finally:
                stream.is_running = False
            if not waits:
                self.streams.pop(number, None)
                stream.close(self)
        # As in ``begin``.
        if stream.over:
            stream.end(self)

    def end(self, number: int) -> None:
        """The body is sent no more."""
        stream = self.streams.pop(number, None)
        if stream is not None:
            stream.end(self)

    def _write(self, number: int, stream: _Stream, hand: Optional[Hand]) -> bool:
        """True: the peer is full, and will be heard of; or the thread comes back to it."""
        written = 0
        while not stream.over:
            if written == PUMPED and hand is not None and self.most:
                hand.unfinished.append(number)
                return True
            written += 1
            piece = stream.next()
            if piece is None:
                self._piece(number, b"", b"", 0, 0, 0)
                return False
            status, wrote = self._piece(number, piece, b"", 0, layout.CQ_MORE, 0)
            if status == layout.EFULL:
                raise Full(f"a piece of {len(piece)} bytes is more than an output may have")
            if status != layout.OK:
                if status != layout.ESTALE:
                    raise error(status)
                # The peer is gone.
                return False
            if wrote == 2:
                return True
        return False

    def _piece(
        self, number: int, piece: bytes, head: bytes, status: int, flags: int, length: int
    ) -> tuple[int, int]:
        answer = layout.CqCompletion()
        answer.token, answer.length, answer.answer, answer.flags = number, length, status, flags
        answer.headers, answer.headers_size = base_of(head), len(head)
        answer.bytes, answer.size = base_of(piece), len(piece)
        told = lib.pace_cq_complete(self.queue.pointer, ctypes.byref(answer), 1)
        return told, answer.status


class Hand:
    """One host thread."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.puller = Puller(core.queue, _ENTRY, core.batch)
        #: What goes out with the next call.
        self.answers: list[Answer] = []
        #: Bodies that go on when others had their turn.
        self.unfinished: list[int] = []
        self._buffer = _Buffer(ANSWERS)

    def run(self, timeout: ctypes.c_uint64) -> int:
        """Takes a batch and handles it."""
        count = self.puller.pull(NOT_AT_ALL if self.unfinished else timeout)
        core, answers = self.core, self.answers
        if count < 0:
            core.leave(self)
            return count
        unfinished, self.unfinished = self.unfinished, []
        try:
            for entry in iter(self.puller.entries.popleft, None):
                try:
                    self.handle(*entry)
                except BaseException as raised:
                    # What follows is of others.
                    core.contain(raised, "a request could not be handled")
                    core.fail(entry[6] or entry[1], entry[5])
                if len(answers) >= ANSWERS:
                    self.send()
        except IndexError:
            # There are no more.
            pass
        if answers:
            self.send()
        for number in unfinished:
            core.go_on(number, self)
        return count

    def handle(
        self, kind: int, number: int, route: int, place: int, size: int, conn: int, whose: int
    ) -> None:
        """Calls the handler of a request, or what goes on with one."""
        core = self.core
        if kind != layout.CQ_REQUEST:
            return self.go_on(kind, number, place, size, whose)
        request = Request(core, number, conn, ctypes.string_at(place, size), self, route)
        try:
            result = core.handlers[route](request)
            if isinstance(result, CoroutineType):
                core.spawn(request, result)
            elif isinstance(result, RequestBody):
                if not request.answered:
                    core.bodies[number] = result, conn
                    request.read()
            elif result is not None:
                core.give(request, result)
        except BaseException as raised:
            if not (issubclass(type(raised), NotOffered) and request.answered):
                core.contain(raised, "the handler of %s has failed", request)
                request._fail()
        # One that nobody keeps and nobody has answered ends with this.
        request._hand = None

    def go_on(self, kind: int, token: int, place: int, size: int, whose: int) -> None:
        """With a body, or with what is no request."""
        core = self.core
        block = ctypes.string_at(place, size) if size else b""
        if token:
            # What it lends is copied.
            self.answers.append((token, b"", b"", 0, 0))
        if kind == layout.CQ_BODY_WRITABLE:
            core.go_on(whose, self)
        elif kind == layout.CQ_REQUEST_ENDED:
            core.tell_end(block)
        elif kind == layout.CQ_CLIENT_GONE:
            core.cancel(whose)
        elif kind == layout.CQ_ENDED:
            # It comes to one thread, which has the others end.
            core.end_queue()
        else:
            core.feed(whose, kind, block)

    def send(self) -> None:
        """All answers that were gathered."""
        answers, count = self.answers, len(self.answers)
        try:
            if self.core.answer(answers, self._buffer) != layout.OK:
                self._look(count)
        except BaseException as raised:
            self.core.contain(raised, "%s answers could not be sent", count)
            for number, *_ in answers:
                self.core.drop(number)
        finally:
            answers.clear()

    def _look(self, count: int) -> None:
        """At what has become of them. A peer that is gone is none of anybody's business."""
        view = self._buffer.view[: count * _ANSWER.size]
        for answer in _ANSWER.iter_unpack(view):
            result = answer[-1]
            if result not in (layout.OK, layout.ESTALE):
                status, size = answer[2], answer[4]
                why = "no room" if result == layout.EFULL else "its status or a header cannot be"
                told = f"an answer of {status} with {size} bytes became a 500: {why}"
                report("%s", told)


@dataclass(frozen=True)
class HttpStats:
    """The books of requests: begun = answered + refused + aborted + in work. The counts add up
    exactly while no request is being handled."""

    #: Whether everything that began has ended or is in work, connections included.
    balances: bool
    begun: int
    in_work: int
    #: By handlers: "successful", "redirected", "client_errors", "server_errors", "upgraded".
    answered: dict[str, int]
    #: By the library in a handler's place, by cause: "not_found", "unanswered", "timed_out" …
    refused: dict[str, int]
    #: Answers that did not leave, or not whole, by cause.
    aborted: dict[str, int]
    #: Handlers, bodies and coroutines that raised.
    panics: int


_ACCESS_FORMATS = {"combined": layout.ACCESS_COMBINED, "json": layout.ACCESS_JSON}
_SMALL = ("max_headers", "keep_alive_requests")


class HttpSettings(ListenSettings, total=False):
    """Settings of an ``Http``, as its keywords; None is the default. Those of a ``Listen`` are among them."""

    max_head: Optional[int]
    max_target: Optional[int]
    max_headers: Optional[int]
    max_body: Optional[int]
    keep_alive_requests: Optional[int]
    head_timeout: Optional[float]
    body_rate: Optional[int]
    body_timeout: Optional[float]
    keep_alive_timeout: Optional[float]


#: Those that are not a listener's.
_OWN = (HttpSettings.__optional_keys__ - ListenSettings.__optional_keys__) | {"max_requests"}


class Http(Serving):
    """An HTTP/1.1 server on a pool. Give it routes, then ``start`` it, or enter it.

    A handler is called with a Request, on one of ``threads`` host threads (default 4), and returns a Response, text
    or bytes, or None, if the request is answered elsewhere. One that raises is logged and counted
    (``HttpStats.panics``), and closes its own connection: after a 500, if nothing was sent. With ``threads=0`` you run them: ``run``, ``attach``; in an asyncio loop (``attach``,
    ``async with``) handlers may be coroutines, which are cancelled when the server is closed. ``listen`` is as for Server. Limits, all optional: ``max_head`` (bytes of a request's head;
    default 16384), ``max_target`` (bytes of its target; 8192), ``max_headers`` (100), ``max_body`` (bytes of a body that is
    not streamed; 1048576), ``max_requests`` (in work at once, over all connections; any number), ``keep_alive_requests``
    (on one connection; any number), ``head_timeout`` (how long a head may take from its first byte; 10 seconds),
    ``body_rate`` (bytes of a body that must come per second, 0 for any; 500), ``body_timeout`` (how often that is looked at;
    10 seconds), ``keep_alive_timeout`` (how long a connection may have no request; 60 seconds). Other keywords are those
    of Listen.

    Left open at the interpreter's end, or lost, it is closed. In a child made by fork it raises
    ForkedError.
    """

    def __init__(
        self,
        pool: Pool,
        listen: Places = "127.0.0.1:0",
        *,
        threads: int = 4,
        name: str = "paceline-http",
        **settings: Unpack[HttpSettings],
    ) -> None:
        keywords(Http, settings, HttpSettings)
        core = Core(pool, listen, threads, name, dict(settings))
        self._core: Core = core
        self._lost = weakref.ref(self, lambda _: core.close())

    # --- routes ----------------------------------------------------------------------------------

    def route(self, method: str, pattern: str) -> Callable[[H], H]:
        """Requests of this method whose path matches this pattern go to the decorated function. A
        pattern is a path with parameters: "/hello/{name}" for one segment, "/files/{*path}" for all
        that follows. GET serves HEAD too. Each method is routed by itself. OPTIONS without a route of its
        own is answered with 204 and ``Allow``. Raises InvalidError if there cannot be such a route. A function that is defined
        again, as by a notebook's cell, takes the place of the one before, also while the server runs."""

        def decorate(handler: H) -> H:
            self._core.route(method, pattern, handler, False)
            return handler

        return decorate

    def route_streaming(self, method: str, pattern: str) -> Callable[[H], H]:
        """The same for requests whose body is taken as it comes: the decorated function is called when the
        head is there, and returns a RequestBody, or an answer, if it wants no body. ``max_body`` does not
        hold for what is taken. A peer is never faster than what takes its body; one that waits for
        ``100 Continue`` is told so when the body is read first, or before an answer that is iterated. An
        answer before that is the final one, and the connection closes."""

        def decorate(handler: H) -> H:
            self._core.route(method, pattern, handler, True)
            return handler

        return decorate

    def get(self, pattern: str) -> Callable[[H], H]:
        """Decorates the handler of GET requests whose path matches: as ``route("GET", pattern)``."""
        return self.route("GET", pattern)

    def post(self, pattern: str) -> Callable[[H], H]:
        """Decorates the handler of POST requests whose path matches: as ``route("POST", pattern)``."""
        return self.route("POST", pattern)

    def put(self, pattern: str) -> Callable[[H], H]:
        """Decorates the handler of PUT requests whose path matches: as ``route("PUT", pattern)``."""
        return self.route("PUT", pattern)

    def patch(self, pattern: str) -> Callable[[H], H]:
        """Decorates the handler of PATCH requests whose path matches: as ``route("PATCH", pattern)``."""
        return self.route("PATCH", pattern)

    def delete(self, pattern: str) -> Callable[[H], H]:
        """Decorates the handler of DELETE requests whose path matches: as ``route("DELETE", pattern)``."""
        return self.route("DELETE", pattern)

    # --- around every handler --------------------------------------------------------------------

    def around(self, middleware: H) -> H:
        """The decorated function is called around the handler of every request that has a whole head: of all routes,
        and of requests that no route takes (404, 405). Several are called in the order in which they were told, each
        around all that follow::

            @http.around
            def allow(request, next):
                if request.header("authorization") is None:
                    return Response.error(401, {"WWW-Authenticate": "Basic"})
                response = next(request)
                if response is not None:
                    response.header("Access-Control-Allow-Origin", "*")
                return response

        ``next(request)`` calls the handler, and returns what that has returned: a Response, None if the request is
        answered elsewhere, a RequestBody, or a coroutine. It raises what the handler raises, which is a 500 where no
        middleware makes it another answer. What middleware returns is treated as if a handler had returned it. If it
        is a coroutine function, ``await next(request)`` gives the result. ``request.pattern`` says which route it is.

        A request that is refused for its head, its body's length or for want of room is not seen here, but by
        ``on_end``; nor is ``OPTIONS`` where no route has it, which the server answers by itself. Raises InvalidError
        when the server has been started."""
        self._core.around(middleware)
        return middleware

    def fallback(self, handler: H) -> H:
        """Requests that no route takes go to the decorated function, without their body. ``request.refusal`` is the
        status that they would get otherwise: ``return Response.error(request.refusal)`` answers as the server does.
        The last fallback that was told is the one. Raises InvalidError when the server has been started."""
        self._core.fallback(handler)
        return handler

    def on_end(self, hook: H) -> H:
        """The decorated function is called with a RequestEnd at the end of each request, once: answered by a handler or
        refused by the server (400, 404, 408, 413, 431 and others), or lost with its connection. An access log is
        ``access_log``. It runs on the server's host threads, soon after the end. One that raises is logged. The last
        function that was told is the one. Raises InvalidError when the server has been started."""
        self._core.end_hook(hook)
        return hook

    def access_log(self, format: str = "combined", log: Optional[Log] = None) -> None:
        """Tells ``log``, or the pool's log, of each request at its end: a record "request.ended" of the component http, at
        level info. With "combined" its message is a line in Apache's format, with "json" it has fields: peer, method,
        target, version, status, bytes, duration_ns, referer and user_agent, as far as they are known. What a client has
        sent is escaped, so that it can forge no line::

            lines = Log(callback=lambda record: print(record.message), logger=False)
            http.access_log("combined", lines)

        The last access log that was set is the one. Raises InvalidError when the server has been started; ``start`` does
        where there is no log."""
        self._core.access_log(format, log)

    # --- start and end ---------------------------------------------------------------------------

    def start(self) -> Http:
        """Listens, and makes the host threads. Raises InvalidError, OSError, ShutDownError."""
        core = self._core
        if core.closed:
            raise ShutDownError("the server is closed")
        core.start_native()
        core.start()
        return self

    def fileno(self) -> int:
        return self._core.fileno()

    def stats(self) -> HttpStats:
        """Its books. Raises InvalidError before the start."""
        stats = layout.HttpStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_http_stats(self._core.http.pointer, ctypes.byref(stats)))

        def those(kind: str) -> dict[str, int]:
            names = [field[0] for field in stats._fields_ if field[0].startswith(kind)]
            return {name[len(kind) :]: getattr(stats, name) for name in names}

        return HttpStats(
            balances=stats.balances,
            begun=stats.begun,
            in_work=stats.in_work,
            answered=those("answered_"),
            refused=those("refused_"),
            aborted=those("aborted_"),
            panics=stats.panics,
        )

    def __enter__(self) -> Http:
        return self if self._core.started else self.start()

    async def __aenter__(self) -> Http:
        self.__enter__()
        self.attach()
        return self
