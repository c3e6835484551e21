"""``Http``: requests whose handlers run on host threads."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import gc
import http.client
import itertools
import json
import logging
import queue
import random
import re
import socket
import struct
import threading
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import paceline
from paceline import Http, Pool, Request, Response
from support import Case, told


class Told:
    """A body that knows how often it was iterated and closed."""

    def __init__(
        self, pieces: Callable[[], Iterable[Any]], closing: Optional[BaseException] = None
    ) -> None:
        self.pieces, self.closing = pieces, closing
        self.iterated = self.closed = 0

    def __iter__(self) -> Any:
        self.iterated += 1
        return iter(self.pieces())

    def close(self) -> None:
        self.closed += 1
        if self.closing is not None:
            raise self.closing


def everything(client: socket.socket) -> bytes:
    with client.makefile("rb") as file:
        return file.read()


class Bodies(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)
        self.server = Http(self.pool)
        self.addCleanup(self.server.close)
        self.answer: Callable[[Request], Any] = lambda request: "well"
        for method in ("GET", "POST"):
            self.server.route(method, "/")(lambda request: self.answer(request))
        self.server.get("/well")(lambda request: "well")
        self.server.start()

    def ask(self, method: str = "GET", path: str = "/") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.server.addresses[0], timeout=60)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def breaks_off(self) -> None:
        with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
            self.ask()

    def told(self, logs: Any, text: str) -> None:
        """One record, which says this."""
        self.until(lambda: logs.output)
        self.assertEqual(self.ask(path="/well"), (200, b"well"))
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertIn(text, logs.output[0])

    def test_pieces_that_are_no_bytes(self) -> None:
        at_hand: list[Any] = [
            [3, 2],
            ["a"],
            ("a", "b"),
            {"a": 1},
            {1, 2},
            range(3),
            {"a": 1}.values(),
            [b"a", 1],
        ]
        at_hand += [[None], [[b"a"]]]
        for body in at_hand:
            for make in (lambda: body, lambda: Response(body), lambda: Response(body, length=1)):
                # A dictionary that is returned as it is is sent as JSON.
                if isinstance(make(), dict):
                    continue
                self.answer = lambda request: make()
                with self.assertLogs("paceline", logging.ERROR) as logs:
                    self.assertEqual(self.ask()[0], 500, body)
                    self.told(logs, "Response.json(value)")
        for piece in (3, "a", None, [b"a"], object()):
            for pieces in ([piece], [b"first", piece]):
                self.answer = lambda request: iter(pieces)
                with self.assertLogs("paceline", logging.ERROR) as logs:
                    self.breaks_off()
                    self.told(logs, "piece is ")

    def test_pieces_that_are_bytes(self) -> None:
        for body in (
            [b"a", b"b"],
            (b"a", bytearray(b"b")),
            {b"ab": 1}.keys(),
            Response({b"ab": 1}),
            {b"ab"},
            iter([b"", b"a", memoryview(b"b")]),
            [b"ab", b""],
        ):
            self.answer = lambda request: body
            self.assertEqual(self.ask(), (200, b"ab"))

    def test_a_body_that_has_another_length(self) -> None:
        for pieces, length, text in (
            ([b"abc"], 5, "ends 2 bytes before its length of 5"),
            ([], 1, "ends 1 bytes before its length of 1"),
            ([b"abc", b"def"], 5, "goes on beyond its length of 5"),
            ([b"a"], 0, "goes on beyond its length of 0"),
        ):
            for body in (pieces, iter(pieces)):
                kept = Told(lambda: body)
                self.answer = lambda request: Response(kept, length=length)
                with self.assertLogs("paceline", logging.ERROR) as logs:
                    try:
                        self.ask()
                    except (http.client.IncompleteRead, ConnectionResetError):
                        pass
                    self.told(logs, text)
                self.assertEqual(kept.closed, 1)

    def test_a_body_is_closed_once(self) -> None:
        def failing() -> Iterator[bytes]:
            yield b"a"
            raise KeyError("in between")

        def refused() -> Iterable[bytes]:
            raise KeyError("at once")

        def twice(request: Request) -> Any:
            request.respond("first")
            return Response(kept)

        def raises(request: Request) -> None:
            request.respond(Response(kept))
            raise KeyError("afterwards")

        def plainly(request: Request) -> Any:
            return Response(kept)

        few = [b"a", b"b"]
        for name, pieces, answer, method in (
            ("whole", lambda: few, plainly, "GET"),
            ("length", lambda: few, lambda _: Response(kept, length=2), "GET"),
            ("fails", failing, plainly, "GET"),
            ("refuses", refused, plainly, "GET"),
            ("head", lambda: few, plainly, "HEAD"),
            ("head with length", lambda: few, lambda _: Response(kept, length=2), "HEAD"),
            ("no content", lambda: few, lambda _: Response(kept, 204), "GET"),
            ("not modified", lambda: few, lambda _: Response(kept, 304), "GET"),
            ("status", lambda: few, lambda _: Response(kept, 99), "GET"),
            ("header", lambda: few, lambda _: Response(kept, headers={"a:b": "1"}), "GET"),
            ("own header", lambda: few, lambda _: Response(kept, headers={"Date": "1"}), "GET"),
            ("answered", lambda: few, twice, "GET"),
            ("raises", lambda: few, raises, "GET"),
        ):
            for closing in (None, KeyError("closing"), SystemExit("closing")):
                with self.subTest(name, closing=closing), self.quiet():
                    kept, self.answer = Told(pieces, closing), answer
                    try:
                        self.ask(method)
                    except (http.client.IncompleteRead, ConnectionResetError):
                        pass
                    self.until(lambda: kept.closed)
                    self.assertEqual(self.ask(path="/well"), (200, b"well"))
                    self.assertEqual(kept.closed, 1)
                    if name in ("head", "head with length", "no content", "not modified"):
                        self.assertEqual(kept.iterated, 0)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        with self.assertLogs("paceline", logging.ERROR):
            logging.getLogger("paceline").error("there is one")
            yield

    def endless(self) -> Iterator[bytes]:
        while True:
            yield bytes(1 << 16)

    def test_a_body_whose_peer_has_gone_is_closed(self) -> None:
        kept = Told(self.endless)
        self.answer = lambda request: Response(kept)
        connection = http.client.HTTPConnection(self.server.addresses[0], timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read(1)
        self.assertEqual(kept.closed, 0)
        answer.close()
        connection.close()
        self.until(lambda: kept.closed)
        self.assertEqual(self.ask(path="/well"), (200, b"well"))
        self.assertEqual((kept.iterated, kept.closed), (1, 1))

    def test_a_body_is_closed_with_its_server(self) -> None:
        kept = Told(self.endless)
        self.answer = lambda request: Response(kept)
        connection = http.client.HTTPConnection(self.server.addresses[0], timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/")
        answer = connection.getresponse()
        self.addCleanup(answer.close)
        self.server.close()
        self.assertEqual((kept.iterated, kept.closed), (1, 1))

    def test_a_body_that_is_not_sent_is_not_produced(self) -> None:
        """The thread is free for others, and a drain ends."""
        for method, status in (("HEAD", 200), ("GET", 204), ("GET", 205), ("GET", 304)):
            for length in (None, 1 << 40):
                kept = Told(self.endless)
                self.answer = lambda request: Response(kept, status, length=length)
                self.assertEqual(self.ask(method), (status, b""))
                self.until(lambda: kept.closed)
                self.assertEqual((kept.iterated, kept.closed), (0, 1))
        self.assertEqual(self.ask(path="/well"), (200, b"well"))
        self.assertTrue(self.server.drain(60).drained)
        stats = self.server.stats()
        self.assertEqual((stats.begun, stats.aborted["unfinished"], stats.balances), (9, 0, True))

    def test_a_body_without_an_end_leaves_others_their_turn(self) -> None:
        """Also one that never fills its peer."""
        for piece in (b"", b"x" * 100):
            going = threading.Event()
            self.addCleanup(going.set)

            def pieces() -> Iterator[bytes]:
                while not going.is_set():
                    yield piece

            kept = Told(pieces)
            self.answer = lambda request: Response(kept)
            connection = http.client.HTTPConnection(self.server.addresses[0], timeout=60)
            self.addCleanup(connection.close)
            connection.request("GET", "/")
            answer = connection.getresponse()
            reader = threading.Thread(target=answer.read)
            reader.start()
            for _ in range(3):
                self.assertEqual(self.ask(path="/well"), (200, b"well"))
            going.set()
            reader.join(60)
            self.until(lambda: kept.closed)
        self.assertEqual(kept.closed, 1)

    def test_names_and_values_of_headers(self) -> None:
        for name in ("Set-Cookie:admin", ":", "a:", "a\r\nb", "a\n", "a\0", "", "a b", "\u00e4"):
            self.answer = lambda request: Response("x", headers={name: "1"})
            with self.quiet():
                self.assertEqual(self.ask()[0], 500, name)
        for value in ("a\r\nb: c", "a\n", "\r", "a\0b"):
            self.answer = lambda request: Response("x", headers=[("a", value)])
            with self.quiet():
                self.assertEqual(self.ask()[0], 500, value)

    def test_names_and_values_that_are_shown_otherwise(self) -> None:
        """What is looked at is sent, and not what ``format`` makes of it."""

        class Name(str, enum.Enum):
            KIND = "X-Kind"
            GOOD = "good"

        class Shown(str):
            def __format__(self, _: str) -> str:
                return "1\r\nadmin: 1"

        headers = {Name.KIND: Name.GOOD, "shown": Shown("well")}
        self.answer = lambda request: Response("x", headers=headers)
        connection = http.client.HTTPConnection(self.server.addresses[0], timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/")
        answer = connection.getresponse()
        found = [answer.getheader(name) for name in ("x-kind", "shown", "admin")]
        self.assertEqual((found, answer.read()), (["good", "well", None], b"x"))

    def test_what_comes_back_to_a_body_on_its_own_thread(self) -> None:
        """As a handler of a signal or a destructor may, in the midst of a piece."""
        core = self.server._core

        def pieces() -> Iterator[bytes]:
            for number in range(3):
                for each in list(core.streams):
                    core.go_on(each, None)
                yield b"%d" % number

        self.answer = lambda request: Response(pieces())
        self.assertEqual(self.ask(), (200, b"012"))

    def test_a_hook_that_nobody_would_await_is_refused(self) -> None:
        async def hook(_: Any) -> None:
            pass

        with Pool(1) as pool, self.assertRaisesRegex(TypeError, "hook is .*coroutine"):
            Http(pool).on_end(hook)

    def test_json_has_one_type_and_only_what_json_has(self) -> None:
        self.assertEqual(Response.json(1)._head(), b"Content-Type: application/json\r\n")
        own = Response.json(1).header("content-type", "application/problem+json")
        self.assertEqual(own._head(), b"content-type: application/problem+json\r\n")
        both = Response.json(1).header("a", "b")._head()
        self.assertEqual(both, b"Content-Type: application/json\r\na: b\r\n")
        with self.assertRaises(ValueError):
            Response.json({"a": float("nan")})
        found: list[object] = []

        def nested(request: Request) -> str:
            try:
                request.json()
            except ValueError as raised:
                found.append(raised)
            return "ok"

        pool = Pool(1)
        server = Http(pool)
        server.post("/")(nested)
        with pool, server:
            client = http.client.HTTPConnection(server.addresses[0], timeout=60)
            client.request("POST", "/", b"[" * 500_000)
            self.assertEqual(client.getresponse().read(), b"ok")
            client.close()
        self.assertRegex(str(found), "nested too deeply")


class Https(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)

    def serve(self, routes: dict[str, Any], **settings: Any) -> Http:
        server = Http(self.pool, **settings)
        for route, handler in routes.items():
            server.route(*route.split())(handler)
        self.addCleanup(server.close)
        return server.start()

    def connect(self, server: Http) -> http.client.HTTPConnection:
        host, _, port = server.addresses[0].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), 60)
        self.addCleanup(connection.close)
        return connection

    def ask(
        self, server: Http, route: str, body: Optional[bytes] = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = self.connect(server)
        connection.request(*route.split(), body=body, headers=headers)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def end(self, server: Http) -> paceline.HttpStats:
        self.assertTrue(server.drain(30).drained)
        self.assertTrue(server.wait(30))
        stats = server.stats()
        self.assertTrue(stats.balances and stats.in_work == 0, stats)
        return stats

    def test_a_body_that_is_not_sent_is_not_produced(self) -> None:
        seen: list[str] = []

        def pieces() -> Iterator[bytes]:
            try:
                seen.append("begun")
                for _ in range(1000):
                    yield b"piece"
            finally:
                seen.append("closed")

        class Closed:
            def __iter__(self) -> Closed:
                return self

            def __next__(self) -> bytes:
                seen.append("begun")
                raise StopIteration

            def close(self) -> None:
                seen.append("closed")

        server = self.serve(
            {
                "GET /generator": lambda request: Response(pieces()),
                "GET /closed": lambda request: Response(Closed(), int(request.query or "200")),
            }
        )
        self.assertEqual(self.ask(server, "HEAD /generator")[:2], (200, b""))
        self.assertEqual(seen, [])
        self.assertEqual(self.ask(server, "HEAD /closed")[:2], (200, b""))
        self.assertEqual(self.ask(server, "GET /closed?204")[:2], (204, b""))
        self.assertEqual(self.ask(server, "GET /closed?304")[:2], (304, b""))
        self.until(lambda: seen == ["closed"] * 3)
        self.assertEqual(len(self.ask(server, "GET /generator")[1]), 5000)
        self.end(server)

    def test_a_client_that_goes_cancels_its_coroutine(self) -> None:
        async def main() -> None:
            begun, seen = asyncio.Event(), []
            http = Http(self.pool, threads=0)

            @http.get("/")
            async def waits(request: Request) -> str:
                self.assertFalse(request.is_client_gone)
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    seen.append(request.is_client_gone)
                return "never"

            http.start()
            http.attach()
            host, port = http.addresses[0].rsplit(":", 1)
            for kind in (0, 1):
                begun.clear()
                client = socket.create_connection((host, int(port)))
                client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 2)
                await asyncio.wait_for(begun.wait(), 60)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", kind, 0))
                client.close()
                while len(seen) <= kind or http.stats().in_work > 0:
                    await asyncio.sleep(0.001)
            stats = http.stats()
            self.assertEqual(seen, [True, True])
            self.assertEqual((stats.begun, stats.panics, sum(stats.aborted.values())), (2, 0, 2))
            http.close()

        with told() as texts:
            asyncio.run(asyncio.wait_for(main(), 60))
        self.assertEqual(texts, [])

    def test_a_close_cancels_coroutines_whose_clients_are_cut_off(self) -> None:
        async def main() -> list[str]:
            told: list[str] = []
            begun, over = asyncio.Event(), asyncio.Event()
            http = Http(self.pool, threads=0)

            @http.get("/")
            async def waits(request: Request) -> str:
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    told.append("cancelled")
                    raise
                finally:
                    over.set()
                return "never"

            http.start()
            http.attach()
            host, port = http.addresses[0].rsplit(":", 1)
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await begun.wait()
            http.close()
            await asyncio.wait_for(over.wait(), 60)
            writer.close()
            return told

        with told() as texts:
            self.assertEqual(asyncio.run(main()), ["cancelled"])
        self.assertEqual(texts, [])

    def test_a_server_without_handlers_ends_with_its_drain(self) -> None:
        http = Http(self.pool).start()
        self.addCleanup(http.close)
        self.assertTrue(http.drain(20).drained)
        self.assertTrue(http.wait(20))

    def test_parameters_are_decoded(self) -> None:
        server = self.serve({"GET /{one}/{*rest}": lambda request: repr((request.params, request.path))})
        status, body, _ = self.ask(server, "GET /a%2Fb/%C3%BC/%25+%2541")
        told = repr(({"one": "a/b", "rest": "ü/%+%41"}, "/a%2Fb/%C3%BC/%25+%2541"))
        self.assertEqual((status, body.decode()), (200, told))
        for path in ("/%zz/x", "/a/%ff", "/a/b%00", "/a/b%"):
            self.assertEqual(self.ask(server, f"GET {path}")[0], 400)
        status, body, headers = self.ask(server, "OPTIONS /a/b")
        self.assertEqual((status, body, headers["Allow"]), (204, b"", "GET, HEAD, OPTIONS"))
        self.end(server)

    def test_what_is_asked(self) -> None:
        def tell(request: Request) -> Response:
            told = {
                "method": request.method,
                "target": request.target,
                "path": request.path,
                "query": request.query,
                "version": request.version,
                "params": request.params,
                "x": request.headers["X-ONE"],
                "all": [value for name, value in request.headers.pairs if name.lower() == "x-two"],
                "none": request.header("x-none"),
                "body": request.body.decode(),
            }
            return Response.json(told)

        server = self.serve({"POST /a/{one}/{*rest}": tell, "GET /none": tell})
        status, body, headers = self.ask(
            server, "POST /a/b/c/d?e=f", b"the body", **{"x-one": "1", "x-two": "2"}
        )
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(
            json.loads(body),
            {
                "method": "POST",
                "target": "/a/b/c/d?e=f",
                "path": "/a/b/c/d",
                "query": "e=f",
                "version": [1, 1],
                "params": {"one": "b", "rest": "c/d"},
                "x": "1",
                "all": ["2"],
                "none": None,
                "body": "the body",
            },
        )
        self.assertIsNone(json.loads(self.ask(server, "GET /none", **{"x-one": "1"})[1])["query"])
        self.end(server)

    def test_what_is_answered(self) -> None:
        headers = [("X-A", "1"), ("x-a", "2"), ("Content-Type", "text/html")]
        server = self.serve(
            {
                "GET /text": lambda request: "täxt",
                "GET /bytes": lambda request: b"\0\1",
                "GET /response": lambda request: Response("<p>", 203, headers, close=True),
                "GET /empty": lambda request: Response(status=204),
                "GET /chunks": lambda request: Response(str(n).encode() for n in range(5)),
                "GET /length": lambda request: Response(iter([b"ab", b"c"]), length=3),
            }
        )
        status, body, told = self.ask(server, "GET /text")
        self.assertEqual((status, body.decode()), (200, "täxt"))
        self.assertEqual(told["Content-Type"], "text/plain; charset=utf-8")
        self.assertEqual(self.ask(server, "GET /bytes")[1], b"\0\1")
        status, body, told = self.ask(server, "GET /response")
        self.assertEqual((status, body, told.get_all("x-a")), (203, b"<p>", ["1", "2"]))
        self.assertEqual((told["Connection"], told.get_all("Content-Type")), ("close", ["text/html"]))
        self.assertEqual(self.ask(server, "GET /empty")[:2], (204, b""))
        status, body, told = self.ask(server, "GET /chunks")
        self.assertEqual((body, told["Transfer-Encoding"]), (b"01234", "chunked"))
        status, body, told = self.ask(server, "GET /length")
        self.assertEqual((body, told["Content-Length"]), (b"abc", "3"))
        status, body, told = self.ask(server, "HEAD /text")
        self.assertEqual((status, body, told["Content-Length"]), (200, b"", "5"))
        self.assertEqual(self.ask(server, "GET /nowhere")[0], 404)
        self.assertEqual(self.ask(server, "POST /text")[0], 405)
        stats = self.end(server)
        self.assertEqual((stats.answered["successful"], stats.begun), (7, 9))
        self.assertEqual((stats.refused["not_found"], stats.refused["method_not_allowed"]), (1, 1))

    def test_what_is_around_every_handler(self) -> None:
        ended: queue.Queue[paceline.RequestEnd] = queue.Queue()
        seen: list[Any] = []
        server = Http(self.pool, max_body=10)

        @server.around
        def outer(request: Request, go_on: Any) -> Any:
            seen.append((request.pattern, request.refusal))
            try:
                response = go_on(request)
            except KeyError:
                return Response.error(422)
            if response is not None:
                response.header("X-Outer", "1")
            return response

        @server.around
        def inner(request: Request, go_on: Any) -> Any:
            if request.query == "stop":
                return Response.error(403, {"X-Stopped": "1"})
            return go_on(request)

        @server.get("/hello/{name}")
        def hello(request: Request) -> Any:
            return {"hello": request.params["name"], "pairs": request.query_pairs}

        @server.get("/fails")
        def fails(request: Request) -> Any:
            raise ValueError("on purpose")

        @server.get("/caught")
        def caught(request: Request) -> Any:
            raise KeyError("on purpose")

        @server.post("/sum")
        def total(request: Request) -> Any:
            return Response.json(sum(request.json()))

        server.on_end(ended.put)
        self.addCleanup(server.close)
        server.start()

        def ends() -> tuple[str, str, Optional[int]]:
            end = ended.get(timeout=60)
            self.assertGreaterEqual(end.duration, 0)
            self.assertTrue(end.peer.startswith("127.0.0.1:"))
            self.assertEqual(end.lost, 0)
            return end.method, end.target, end.status

        browser = "text/html, */*;q=0.5"
        for route, accept, status, expected, pattern in (
            ("GET /hello/you?a=1&b=%20+&c", "", 200, None, "/hello/{name}"),
            ("GET /nowhere", "application/json", 404, b'{"title":"Not Found","status":404}\n', None),
            ("POST /hello/you", "", 405, b"405 Method Not Allowed\n", None),
            ("GET /nowhere", browser, 404, None, None),
            ("GET /hello/you?stop", "", 403, b"403 Forbidden\n", "/hello/{name}"),
            ("GET /caught", "", 422, b"422 Unprocessable Content\n", "/caught"),
            ("POST /sum", "", 200, b"42", "/sum"),
        ):
            body = b"[40, 2]" if route == "POST /sum" else None
            told, got, headers = self.ask(server, route, body, Accept=accept or "*/*")
            self.assertEqual((told, seen.pop()), (status, (pattern, None if pattern else status)), route)
            if expected is not None:
                self.assertEqual(got, expected)
            if "you?a" in route:
                pairs = [["a", "1"], ["b", "  "], ["c", ""]]
                self.assertEqual(json.loads(got), {"hello": "you", "pairs": pairs})
                self.assertEqual(headers["content-type"], "application/json")
            self.assertEqual(headers["x-outer"], None if status == 422 else "1")
            self.assertEqual(headers["x-stopped"], "1" if status == 403 else None)
            self.assertEqual(headers["allow"] is not None, status == 405)
            self.assertEqual(ends(), (*route.split(), status))
        with self.assertLogs("paceline", "ERROR"):
            self.assertEqual(self.ask(server, "GET /fails")[0], 500)
        self.assertEqual(ends(), ("GET", "/fails", 500))
        self.assertEqual(self.ask(server, "POST /sum", b"x" * 11)[0], 413)
        self.assertEqual(ends(), ("POST", "/sum", 413))
        self.assertEqual(seen, [("/fails", None)])
        for late in (server.around, server.fallback, server.on_end):
            self.assertRaises(paceline.InvalidError, late, inner)
        stats = self.end(server)
        self.assertEqual((stats.refused["not_found"], stats.refused["method_not_allowed"]), (2, 1))

    def test_an_access_log(self) -> None:
        for format, expected in (
            ("combined", '"GET /hello HTTP/1.1" 200 5 "-" "an \\"agent\\""'),
            ("json", ""),
        ):
            server, told = Http(self.pool), queue.Queue[paceline.LogRecord]()
            server.get("/hello")(lambda _: "hello")
            server.access_log(format)
            # The pool has no log.
            self.assertRaises(paceline.InvalidError, server.start)
            log = paceline.Log(callback=told.put, logger=False)
            server.access_log(format, log)
            self.addCleanup(server.close)
            server.start()
            self.assertRaises(paceline.InvalidError, server.access_log)
            self.assertEqual(self.ask(server, "GET /hello", **{"User-Agent": 'an "agent"'})[0], 200)
            record = told.get(timeout=60)
            self.assertEqual(
                (record.event, record.level, record.component), ("request.ended", "info", "http")
            )
            self.assertTrue(record.message.endswith(expected), record.message)
            if format == "json":
                known = {
                    name: record.fields[name] for name in ("method", "target", "status", "user_agent")
                }
                asked = {"method": "GET", "target": "/hello", "status": 200, "user_agent": 'an "agent"'}
                self.assertEqual(known, asked)
            self.end(server)
            log.close(60)

    def test_a_fallback(self) -> None:
        server = Http(self.pool)

        @server.fallback
        def lost(request: Request) -> Any:
            if request.path == "/page":
                return "a page"
            return Response.error(request.refusal or 0)

        self.addCleanup(server.close)
        server.start()
        self.assertEqual(self.ask(server, "GET /page")[:2], (200, b"a page"))
        self.assertEqual(self.ask(server, "GET /other")[:2], (404, b"404 Not Found\n"))
        stats = self.end(server)
        self.assertEqual((stats.refused["not_found"], stats.answered["successful"]), (1, 1))

    def test_middleware_in_a_loop(self) -> None:
        async def main() -> None:
            server = Http(self.pool, threads=0)
            seen = []

            @server.around
            async def around(request: Request, go_on: Any) -> Any:
                response = await go_on(request)
                seen.append((request.target, response.status))
                return response.header("X-Around", "1")

            @server.get("/later")
            async def later(request: Request) -> str:
                await asyncio.sleep(0)
                return "later"

            @server.get("/now")
            def now(request: Request) -> str:
                return "now"

            async with server:
                host, _, port = server.addresses[0].rpartition(":")
                for target, status in (("/later", 200), ("/now", 200), ("/nowhere", 404)):
                    reader, writer = await asyncio.open_connection(host, int(port))
                    writer.write(
                        f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
                    )
                    answer = await reader.read()
                    self.assertIn(f" {status} ".encode(), answer)
                    self.assertIn(b"X-Around: 1\r\n", answer)
                    self.assertEqual(seen.pop(), (target, status))
                    writer.close()

        asyncio.run(main())

    def test_handlers_that_fail(self) -> None:
        def fail(request: Request) -> None:
            raise KeyError("on purpose")

        def half(request: Request) -> Response:
            def pieces() -> Any:
                yield b"half"
                raise KeyError("in between")

            return Response(pieces())

        server = self.serve(
            {
                "GET /fail": fail,
                "GET /forgets": lambda request: None,
                "GET /status": lambda request: Response(status=99),
                "GET /header": lambda request: Response(headers={"no token": "x"}),
                "GET /lines": lambda request: Response(headers={"x": "a\r\nb"}),
                "GET /half": half,
                "GET /type": lambda request: 5,
            }
        )
        for name in ("fail", "status", "header", "lines", "type"):
            with self.assertLogs("paceline", logging.ERROR) as logs:
                self.assertEqual(self.ask(server, f"GET /{name}")[0], 500, name)
                # It is told after the answer.
                self.until(lambda: logs.output)
        self.assertEqual(self.ask(server, "GET /forgets")[0], 500)
        with self.assertLogs("paceline", logging.ERROR) as logs:
            with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
                self.ask(server, "GET /half")
        self.assertIn("in between", logs.output[0])
        stats = self.end(server)
        self.assertEqual((stats.refused["unanswered"], stats.aborted["unfinished"]), (3, 1))
        self.assertEqual((stats.refused["panicked"], stats.panics), (3, 4))

    def test_a_handler_that_raises_closes_its_connection_and_is_counted(self) -> None:
        def unanswered(request: Request) -> None:
            raise KeyError("on purpose")

        def answered(request: Request) -> None:
            # It lies with the thread that sends answers, so nothing was sent.
            request.respond("well")
            raise KeyError("on purpose")

        def answered_elsewhere(request: Request) -> None:
            other = threading.Thread(target=request.respond, args=["well"])
            other.start()
            other.join()
            raise KeyError("on purpose")

        def piece(request: Request) -> None:
            request.respond(Response(iter([b"one"])))
            raise KeyError("on purpose")

        server = self.serve(
            {
                "GET /unanswered": unanswered,
                "GET /answered": answered,
                "GET /elsewhere": answered_elsewhere,
                "GET /piece": piece,
                "GET /well": lambda request: "well",
            }
        )
        host, _, port = server.addresses[0].rpartition(":")
        other = self.connect(server)
        cases = [("unanswered", 500), ("answered", 500), ("elsewhere", 200), ("piece", 200)]
        for count, (name, status) in enumerate(cases, 1):
            with self.assertLogs("paceline", logging.ERROR) as logs:
                with socket.create_connection((host, int(port)), 60) as client:
                    asked = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
                    client.sendall(asked % name.encode())
                    got = b""
                    while more := client.recv(65536):
                        got += more
                self.assertEqual(got.split(b" ")[1], b"%d" % status, name)
                self.assertEqual(got.count(b"HTTP/1.1 "), 1)
                self.until(lambda: logs.output)
            self.assertIn("on purpose", logs.output[0])
            self.until(lambda: server.stats().panics == count)
            # It has touched no other.
            other.request("GET", "/well")
            self.assertEqual(other.getresponse().read(), b"well")
        stats = self.end(server)
        self.assertEqual((stats.refused["panicked"], stats.answered["successful"]), (2, 6))

    def test_answers_from_elsewhere(self) -> None:
        def later(request: Request) -> None:
            threading.Timer(0.01, request.respond, [f"late {request.query}"]).start()

        kept: list[Request] = []

        def twice(request: Request) -> None:
            kept.append(request)
            request.respond("once")
            with self.assertRaises(paceline.StaleError):
                request.respond("twice")

        server = self.serve({"GET /later": later, "GET /twice": twice, "GET /kept": kept.append})
        self.assertEqual(self.ask(server, "GET /later?1")[1], b"late 1")
        self.assertEqual(self.ask(server, "GET /twice")[1], b"once")
        self.assertTrue(kept.pop().answered)
        # The peer goes before it is answered, which a write finds out.
        connection = self.connect(server)
        connection.request("GET", "/kept")
        self.until(lambda: kept)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        time.sleep(0.01)
        try:
            kept.pop().respond("too late")
        except paceline.StaleError:
            pass
        self.until(lambda: server.connection_stats().open == 0)
        self.assertEqual(self.end(server).begun, 3)

    def test_pipelined_answers_are_in_order(self) -> None:
        server = self.serve({"GET /{number}": lambda request: request.params["number"] + ";"}, threads=3)
        host, _, port = server.addresses[0].rpartition(":")
        with socket.create_connection((host, int(port)), 60) as client:
            for number in range(200):
                client.sendall(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number)
            client.shutdown(socket.SHUT_WR)
            got = b""
            while True:
                more = client.recv(65536)
                if not more:
                    break
                got += more
        bodies = [part.split(b";")[0] for part in got.split(b"\r\n\r\n")[1:]]
        self.assertEqual(bodies, [b"%d" % number for number in range(200)])
        self.end(server)

    def test_a_slow_reader_holds_its_answer_back(self) -> None:
        produced = [0]
        size = 64 << 20

        def much(request: Request) -> Response:
            def pieces() -> Any:
                for _ in range(size >> 16):
                    produced[0] += 1 << 16
                    yield b"x" * (1 << 16)

            return Response(pieces(), length=size)

        server = self.serve({"GET /": much})
        connection = self.connect(server)
        connection.request("GET", "/")
        answer = connection.getresponse()
        last = -1
        while produced[0] != last:
            last = produced[0]
            time.sleep(0.05)
        self.assertLess(produced[0], size // 2)
        got = 0
        while True:
            more = answer.read(1 << 20)
            if not more:
                break
            got += len(more)
        self.assertEqual(got, size)
        # One who goes in between is noticed, and what produces is left.
        connection = self.connect(server)
        connection.request("GET", "/")
        connection.getresponse()
        connection.sock.close() if connection.sock else None
        connection.close()
        self.until_collected(lambda: not server._core.streams)
        self.end(server)

    def test_limits(self) -> None:
        server = self.serve({"POST /": lambda request: "ok"}, max_body=10, max_target=20)
        self.assertEqual(self.ask(server, "POST /", b"x" * 10)[0], 200)
        self.assertEqual(self.ask(server, "POST /", b"x" * 11)[0], 413)
        self.assertEqual(self.ask(server, "POST /" + "x" * 30)[0], 414)
        self.end(server)
        for wrong in (
            {"max_head": 1},
            {"max_headers": 1 << 33},
            {"head_timeout": -1},
            {"max_connections": 0},
        ):
            with self.assertRaises(paceline.InvalidError, msg=str(wrong)):
                self.serve({}, **wrong)
        narrow = "max_unconsumed is 1000, but must be 147456, which is max_head and 128 KiB, or more"
        for wrong in (
            {"max_unconsumed": 1000},
            {"listen": paceline.Listen("127.0.0.1:0", max_unconsumed=1000)},
        ):
            with self.assertRaisesRegex(paceline.InvalidError, narrow):
                self.serve({}, **wrong)
        self.assertRaises(TypeError, self.serve, {}, colour="red")
        self.assertRaises(paceline.InvalidError, self.serve, {"GET {": str})
        for route, told in (
            ("GET /items/:id", "a path whose parameters are written {id}, not :id"),
            ("GET /a/{x}/{x}", "{x} is there twice"),
            ("get /", 'method is "get", but must be "GET"'),
        ):
            with self.assertRaisesRegex(paceline.InvalidError, re.escape(told)):
                Http(self.pool).route(*route.split())(str)
        with self.assertRaisesRegex(
            paceline.InvalidError, "listen is empty, but must be an address or more"
        ):
            Http(self.pool, listen=()).start()
        self.assertRaises(TypeError, Http(self.pool).get("/"), 5)
        self.assertRaises(paceline.InvalidError, server.route("GET", "/late"), str)

    def test_asyncio(self) -> None:
        async def main() -> list[str]:
            loop = asyncio.get_running_loop()
            pool = Pool(0)
            server = Http(pool, threads=0)

            @server.get("/sleep/{name}")
            def sleep(request: Request) -> None:
                async def answer() -> None:
                    await asyncio.sleep(0.005)
                    request.respond(request.params["name"])

                loop.create_task(answer())

            server.start()
            loop.add_reader(pool.fileno(), pool.join, 0)
            loop.add_reader(server.fileno(), server.run)
            host, port = server.addresses[0].split(":")

            async def ask(name: str) -> str:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(f"GET /sleep/{name} HTTP/1.0\r\n\r\n".encode())
                answer = await reader.read()
                writer.close()
                return answer.decode().rpartition("\r\n")[2]

            answers = await asyncio.gather(*map(ask, "abc"))
            loop.remove_reader(pool.fileno())
            loop.remove_reader(server.fileno())
            self.assertTrue(server.drain(30).drained)
            self.assertTrue(server.stats().balances)
            server.close()
            pool.shutdown()
            return list(answers)

        self.assertEqual(asyncio.run(main()), ["a", "b", "c"])

    def test_many_clients(self) -> None:
        self.switch_often()
        later = paceline.Executor(2)
        self.addCleanup(later.shutdown)

        def echo(request: Request) -> Any:
            way = random.randrange(3)
            if way == 0:
                return request.body
            if way == 1:
                return Response(request.body[place : place + 999] for place in range(0, 9999, 999))
            later.submit(request.respond, request.body)
            return None

        for threads in (1, 3):
            server = self.serve({"POST /": echo}, threads=threads)

            def client(number: int) -> None:
                connection = self.connect(server)
                for round in range(30):
                    body = bytes([97 + number]) * random.randrange(5000)
                    connection.request("POST", "/", body)
                    assert connection.getresponse().read() == body
                connection.close()

            clients = [threading.Thread(target=client, args=(number,)) for number in range(6)]
            for each in clients:
                each.start()
            for each in clients:
                each.join()
            self.assertEqual(self.end(server).answered["successful"], 180)

    def test_a_drain_answers_what_has_arrived(self) -> None:
        kept: list[Request] = []
        server = self.serve({"GET /": kept.append})
        connection = self.connect(server)
        connection.request("GET", "/")
        self.until(lambda: kept)
        reports: list[Any] = []
        drain = threading.Thread(target=lambda: reports.append(server.drain(30)))
        drain.start()
        time.sleep(0.01)
        kept.pop().respond("the last")
        answer = connection.getresponse()
        self.assertEqual((answer.read(), answer.headers["Connection"]), (b"the last", "close"))
        drain.join()
        self.assertTrue(reports[0].drained)
        self.end(server)

    def test_lost_closed_and_forked(self) -> None:
        server = self.serve({"GET /": lambda request: "x"})
        threads = server._core.threads
        self._cleanups = [each for each in self._cleanups if each[0] != server.close]
        self.ask(server, "GET /")
        del server
        gc.collect()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        server = Http(self.pool)
        server.close()
        self.assertRaises(paceline.ShutDownError, server.start)
        self.pool.shutdown()
        self.assertRaises(paceline.ShutDownError, Http, self.pool)

    def test_the_end_of_the_pool_waits_for_answers(self) -> None:
        for answers, shut_down in itertools.product((True, False), ("shutdown", "in a handler")):
            pool, asked = Pool(2), queue.Queue()  # type: ignore[var-annotated]
            server = Http(pool)
            server.get("/")(asked.put)
            server.get("/end")(lambda request: str(pool.shutdown(30 if answers else 0.05).requested))
            server.start()
            where = server.addresses[0].rsplit(":", 1)
            address = (where[0], int(where[1]))
            connect = functools.partial(socket.create_connection, address, 60)
            with connect() as client, connect() as resting:
                client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                request = asked.get(timeout=60)
                ends: list[paceline.Report] = []
                if shut_down == "shutdown":
                    resting.close()
                    time_left = 30 if answers else 0.05
                    thread = threading.Thread(target=lambda: ends.append(pool.shutdown(time_left)))
                    thread.start()
                else:
                    resting.sendall(b"GET /end HTTP/1.1\r\nHost: h\r\n\r\n")
                    self.assertIn(b"True", everything(resting))
                    # One that lingers is not through.
                    resting.close()
                if answers:
                    time.sleep(0.05)
                    request.respond("at last")
                    self.assertIn(b"at last", everything(client))
                else:
                    with self.assertRaises(ConnectionResetError):
                        client.recv(1)
            if shut_down == "shutdown":
                thread.join(60)
                (report,) = ends
                self.assertEqual(
                    (report.drained, report.connections), (answers, 0 if answers else 1), report
                )
            self.assertTrue(server.wait(60))
            pool.stop_now()

    def test_the_pool_ends_first(self) -> None:
        server = self.serve({"GET /": lambda request: "x"})
        self.ask(server, "GET /")
        self.pool.shutdown()
        self.assertTrue(server.wait(30))


if __name__ == "__main__":
    unittest.main()
