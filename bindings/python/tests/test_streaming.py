"""Bodies of requests as they come, connections that change their protocol, and asyncio loops."""

from __future__ import annotations

import asyncio
import http.client
import logging
import os
import queue
import socket
import threading
import time
import unittest
from typing import Any, Optional

import paceline
from paceline import Conn, ConnHandler, Http, Pool, Request, RequestBody, Response, Server
from support import Case, told, run

WS = b"GET /ws HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"


class Echo(ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


class Counting(RequestBody):
    """Answers with how much has come."""

    def __init__(self, request: Request) -> None:
        self.request, self.size, self.parts = request, 0, 0

    def data(self, data: bytes) -> Optional[bool]:
        self.size += len(data)
        self.parts += 1
        return None

    def end(self, is_whole: bool) -> None:
        if is_whole:
            self.request.respond(f"{self.size}")


class Base(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)

    def serve(self, **settings: Any) -> Http:
        server = Http(self.pool, **settings)
        self.addCleanup(server.close)
        return server

    def dial(self, server: Any) -> socket.socket:
        host, _, port = server.addresses[0].rpartition(":")
        client = socket.create_connection((host, int(port)), 60)
        self.addCleanup(client.close)
        return client

    def connect(self, server: Http) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(server.addresses[0], timeout=60)
        self.addCleanup(connection.close)
        return connection

    def expect(self, client: socket.socket, wanted: bytes) -> bytes:
        got = b""
        while wanted not in got:
            more = client.recv(65536)
            self.assertTrue(more, got)
            got += more
        return got

    def end(self, server: Http) -> paceline.HttpStats:
        self.assertTrue(server.drain(30).drained)
        stats = server.stats()
        self.assertTrue(stats.balances and stats.in_work == 0, stats)
        return stats


class Bodies(Base):
    def test_a_body_is_taken_as_it_comes(self) -> None:
        server = self.serve(max_body=10)
        server.route_streaming("PUT", "/file")(Counting)
        server.start()
        connection = self.connect(server)
        for size in (0, 1, 3_000_000):
            connection.request("PUT", "/file", bytes(size))
            self.assertEqual(connection.getresponse().read(), b"%d" % size)
        connection.request(
            "PUT",
            "/file",
            iter([b"abc", b"defg"]),
            encode_chunked=True,
            headers={"Transfer-Encoding": "chunked"},
        )
        self.assertEqual(connection.getresponse().read(), b"7")
        self.assertEqual(self.end(server).answered["successful"], 4)

    def test_a_body_that_says_no_has_the_peer_wait(self) -> None:
        bodies: queue.Queue[Any] = queue.Queue()

        class Slow(Counting):
            def data(self, data: bytes) -> bool:
                super().data(data)
                bodies.put(self)
                return False

        server = self.serve()
        server.route_streaming("PUT", "/file")(Slow)
        server.start()
        client = self.dial(server)
        client.sendall(b"PUT /file HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nabcd")
        body = bodies.get(timeout=60)
        client.sendall(b"efgh")
        # What nobody asks for does not come; what would be wrong would be here soon.
        with self.assertRaises(queue.Empty):
            bodies.get(timeout=0.1)
        self.assertEqual(body.size, 4)
        body.request.read()
        self.assertIs(bodies.get(timeout=60), body)
        self.assertEqual(body.size, 8)
        body.request.read()
        self.expect(client, b"\r\n\r\n8")
        with self.assertRaises(paceline.StaleError):
            body.request.read()
        self.end(server)

    def test_a_handler_may_answer_without_the_body(self) -> None:
        server = self.serve()

        @server.route_streaming("PUT", "/no")
        def no(request: Request) -> Response:
            return Response("not now", 409)

        @server.route_streaming("PUT", "/early")
        def early(request: Request) -> RequestBody:
            request.respond("early")
            return Counting(request)

        server.start()
        connection = self.connect(server)
        for path, status in (("/no", 409), ("/early", 200), ("/no", 409)):
            connection.request("PUT", path, bytes(1000))
            answer = connection.getresponse()
            self.assertEqual(answer.status, status)
            answer.read()
        self.assertEqual(server._core.bodies, {})
        self.end(server)

    def test_a_body_is_asked_for_when_it_is_read(self) -> None:
        server = self.serve(body_timeout=0.1)
        later: list[Request] = []

        @server.route_streaming("PUT", "/no")
        def no(request: Request) -> Response:
            return Response("no", 409)

        @server.route_streaming("PUT", "/later")
        def wait(request: Request) -> None:
            later.append(request)

        @server.route_streaming("PUT", "/take")
        def take(request: Request) -> RequestBody:
            return Counting(request)

        @server.route_streaming("PUT", "/begin")
        def begin(request: Request) -> RequestBody:
            request.respond(Response(iter([b"begun"])))
            return Counting(request)

        server.start()

        def ask(path: str) -> socket.socket:
            client = self.dial(server)
            head = f"PUT {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
            client.sendall(head.encode())
            return client

        refused = self.expect(ask("/no"), b"\r\n\r\nno")
        self.assertTrue(refused.startswith(b"HTTP/1.1 409 "), refused)
        self.assertIn(b"Connection: close\r\n", refused)
        # It is not late, since it was not asked for.
        waits = ask("/later")
        self.until(lambda: bool(later))
        time.sleep(0.3)
        later.pop().respond(Response("no", 403))
        told = self.expect(waits, b"\r\n\r\nno")
        self.assertTrue(told.startswith(b"HTTP/1.1 403 "), told)
        for path in ("/take", "/begin"):
            client = ask(path)
            got = self.expect(client, b"\r\n\r\n")
            self.assertTrue(got.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"), got)
            client.sendall(b"body")
            if b"HTTP/1.1 200 " not in got:
                got = self.expect(client, b"HTTP/1.1 200 ")
            client.close()
        self.end(server)

    def test_what_raises_is_logged_and_gets_a_500(self) -> None:
        class Fails(Counting):
            def data(self, data: bytes) -> Optional[bool]:
                raise KeyError("on purpose")

        server = self.serve()
        server.route_streaming("PUT", "/fails")(Fails)
        server.start()
        connection = self.connect(server)
        with self.assertLogs("paceline", logging.ERROR) as logs:
            connection.request("PUT", "/fails", b"x")
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.getheader("Connection")), (500, "close"))
        self.assertIn("the body of a request has failed", logs.output[0])
        self.assertEqual(server._core.bodies, {})
        stats = self.end(server)
        self.assertEqual((stats.panics, stats.refused["panicked"]), (1, 1))

    def test_a_body_that_meets_the_end_of_something_else(self) -> None:
        class Fails(Counting):
            def data(self, data: bytes) -> Optional[bool]:
                raise paceline.StaleError("of another connection")

        server = self.serve()
        server.route_streaming("PUT", "/fails")(Fails)
        server.start()
        connection = self.connect(server)
        with self.assertLogs("paceline", logging.ERROR) as logs:
            connection.request("PUT", "/fails", b"x")
            self.assertEqual(connection.getresponse().status, 500)
            self.assertEqual(self.end(server).panics, 1)
            # The log is told after the peer, and maybe after the end of a drain.
            self.until(lambda: logs.output)
        self.assertIn("of another connection", logs.output[0])

    def test_a_body_that_breaks_off(self) -> None:
        ends: queue.Queue[bool] = queue.Queue()

        class Told(Counting):
            def end(self, is_whole: bool) -> None:
                ends.put(is_whole)
                with_error: Optional[Exception] = None
                try:
                    self.request.respond("late")
                except paceline.StaleError as error:
                    with_error = error
                ends.put(with_error is not None)

        server = self.serve()
        server.route_streaming("PUT", "/file")(Told)
        server.start()
        client = self.dial(server)
        client.sendall(b"PUT /file HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nabcd")
        client.close()
        self.assertEqual((ends.get(timeout=60), ends.get(timeout=60)), (False, True))
        self.end(server)

    def test_reading_where_there_is_nothing_to_read(self) -> None:
        told: queue.Queue[str] = queue.Queue()
        server = self.serve()

        @server.get("/")
        def plain(request: Request) -> str:
            try:
                request.read()
            except paceline.StaleError as error:
                told.put(str(error))
            return "ok"

        server.start()
        connection = self.connect(server)
        connection.request("GET", "/")
        self.assertEqual(connection.getresponse().read(), b"ok")
        self.assertIn("body", told.get(timeout=60))

    def test_many_at_once(self) -> None:
        self.switch_often()
        server = self.serve(threads=3)
        server.route_streaming("PUT", "/file")(Counting)
        server.start()
        wrong: list[Any] = []

        def use(number: int) -> None:
            connection = http.client.HTTPConnection(server.addresses[0], timeout=60)
            for each in range(10):
                size = number * 1000 * each
                connection.request("PUT", "/file", bytes(size))
                if connection.getresponse().read() != b"%d" % size:
                    wrong.append(size)
            connection.close()

        threads = [threading.Thread(target=use, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.end(server).answered["successful"], 100)


class Upgrades(Base):
    def start(self, handler: Any = Echo, **settings: Any) -> Http:
        server = self.serve(**settings)

        @server.get("/ws")
        def ws(request: Request) -> None:
            request.upgrade("echo", handler, {"X-Mine": "yes"})

        return server.start()

    def test_a_connection_changes_its_protocol(self) -> None:
        told: queue.Queue[Any] = queue.Queue()

        class Told(Echo):
            def open(self, conn: Conn) -> None:
                told.put(conn)

            def close(self, conn: Conn, reason: paceline.Reason, detail: int) -> None:
                told.put(reason)

        server = self.start(Told)
        client = self.dial(server)
        client.sendall(WS + b"early")
        got = self.expect(client, b"early")
        self.assertTrue(got.startswith(b"HTTP/1.1 101 "))
        self.assertIn(b"X-Mine: yes\r\n", got)
        client.sendall(b"hello")
        self.expect(client, b"hello")
        conn = told.get(timeout=60)
        conn.write(b"by name")
        self.expect(client, b"by name")
        self.assertEqual(conn.peer, "%s:%d" % client.getsockname())
        client.close()
        self.assertIs(told.get(timeout=60), paceline.Reason.PEER)
        with self.assertRaises(paceline.StaleError):
            conn.write(b"late")
        self.assertEqual(self.end(server).answered["upgraded"], 1)

    def test_a_drain_lets_it_end_and_a_close_cuts_it_off(self) -> None:
        for ends in (lambda server: self.end(server), lambda server: server.close()):
            server = self.start()
            client = self.dial(server)
            client.sendall(WS + b"x")
            self.expect(client, b"x")
            ends(server)
            try:
                self.assertEqual(client.recv(100), b"")
            except ConnectionResetError:
                pass
            server.close()
            self.assertTrue(server.wait(30))

    def test_what_cannot_be_upgraded(self) -> None:
        refused: queue.Queue[str] = queue.Queue()

        def tells(request: Request) -> None:
            try:
                request.upgrade("echo", Echo)
            except paceline.InvalidError as raised:
                refused.put(str(raised))

        server = self.serve()
        server.get("/ws")(lambda request: request.upgrade("echo", Echo) and None)
        server.get("/told")(tells)
        server.start()
        client = self.dial(server)
        with told() as texts:
            for path, head, offered in (
                ("/ws", "", ""),
                ("/told", "", "nothing"),
                ("/told", "Connection: upgrade\r\nUpgrade: h2c, other/1\r\n", "h2c, other/1"),
                ("/told", "Upgrade: echo\r\n", "nothing"),
                ("/ws", "Connection: upgrade\r\nUpgrade: h2c\r\n", ""),
            ):
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n{head}\r\n".encode())
                got = self.expect(client, b"Upgrade: echo\r\nConnection: upgrade\r\n")
                self.assertIn(b"426 Upgrade Required", got)
                if path == "/told":
                    said = refused.get(timeout=60)
                    self.assertIn(f"offers: {offered}", said)
                    self.assertIn("protocol is 'echo'", said)
            client.sendall(WS.replace(b": echo", b": h2c, ECHO") + b"hello")
            self.expect(client, b"hello")
        client.close()
        self.assertEqual((self.end(server).panics, texts), (0, []))

    def test_twice_and_after_the_end(self) -> None:
        requests: queue.Queue[Request] = queue.Queue()
        server = self.serve()
        server.get("/ws")(lambda request: requests.put(request))
        server.start()
        client = self.dial(server)
        client.sendall(WS)
        request = requests.get(timeout=60)
        with self.assertRaises(paceline.InvalidError):
            request.upgrade("echo", Echo, {"X": "two\r\nlines"})
        request.upgrade("echo", Echo)
        for again in (lambda: request.upgrade("echo", Echo), lambda: request.respond("late")):
            with self.assertRaises(paceline.StaleError):
                again()
        other = self.dial(server)
        other.sendall(WS)
        request = requests.get(timeout=60)
        server.close()
        with self.assertRaises(paceline.ShutDownError):
            request.upgrade("echo", Echo)

    def test_a_handler_that_raises_ends_its_connection(self) -> None:
        class Fails(Echo):
            def data(self, conn: Conn, data: bytes) -> None:
                raise KeyError("on purpose")

        server = self.start(Fails)
        client = self.dial(server)
        with self.assertLogs("paceline", logging.ERROR):
            client.sendall(WS + b"x")
            while True:
                try:
                    if not client.recv(1000):
                        break
                except ConnectionResetError:
                    break
        self.assertEqual(server.connection_stats().closed[paceline.Reason.PANICKED], 1)

    def test_without_host_threads(self) -> None:
        server = self.start(threads=0)
        client = self.dial(server)
        client.sendall(WS + b"here")
        client.setblocking(False)
        got = b""

        def has_it() -> bool:
            nonlocal got
            server.run()
            try:
                got += client.recv(1000)
            except BlockingIOError:
                pass
            return b"here" in got

        self.until(has_it)
        client.close()
        self.end(server)


class Cycles(Base):
    def test_what_is_lost_in_a_cycle(self) -> None:
        """A server, its requests, connections and pool, all garbage at once: whatever the collector ends
        first, what is ended after it must not touch what is gone."""
        told = run(
            """
            import gc, socket, time
            import paceline

            class Clings:
                def __init__(self, *calls):
                    self.calls = calls
                def __del__(self):
                    for call in self.calls:
                        try:
                            call()
                        except paceline.Error:
                            pass

            def once():
                pool = paceline.Pool(1)
                server = paceline.Http(pool)
                kept = []
                class Echo(paceline.ConnHandler):
                    def data(self, conn, data):
                        conn.write(data)
                        kept.append(Clings(conn.close, lambda: conn.write(b"x"), lambda: conn.peer))
                def keep(request):
                    kept.append(request)
                def upgrade(request):
                    kept.append(request.upgrade("echo", Echo))
                server.get("/keep")(keep)
                server.get("/ws")(upgrade)
                server.start()
                kept.append(Clings(server.stats, lambda: server.addresses, pool.stats))
                host, port = server.addresses[0].split(":")
                for path in ("keep", "ws"):
                    client = socket.create_connection((host, int(port)), 60)
                    head = "Host: a\\r\\nConnection: upgrade\\r\\nUpgrade: echo\\r\\n\\r\\nabc"
                    client.sendall(f"GET /{path} HTTP/1.1\\r\\n{head}".encode())
                    kept.append(client)
                while len(kept) < 6:
                    time.sleep(0.001)
                def handle(udp, datagrams):
                    kept.append(udp)
                udp = paceline.Udp(pool, handle, "127.0.0.1:0", threads=0)
                kept.append(Clings(udp.stats, udp.close, lambda: udp.address))
                kept.append(kept)
                server.close(), udp.close(), pool.shutdown()

            for _ in range(5):
                once()
                gc.collect()
            print("collected")
            """
        )
        self.assertEqual((told.returncode, told.stdout), (0, "collected\n"), told.stderr)


class Loops(Base):
    def test_handlers_are_coroutines(self) -> None:
        server = self.serve(threads=0)
        inside: list[int] = []

        @server.get("/slow/{name}")
        async def slow(request: Request) -> str:
            inside.append(threading.get_ident())
            await asyncio.sleep(0.01)
            return f"hello {request.params['name']}"

        @server.get("/plain")
        def plain(request: Request) -> str:
            return "plain"

        @server.route_streaming("PUT", "/size")
        async def size(request: Request) -> str:
            total = 0
            async for part in request.parts():
                total += len(part)
            return str(total)

        @server.get("/ws")
        async def ws(request: Request) -> None:
            await asyncio.sleep(0)
            request.upgrade("echo", Echo)

        @server.get("/fails")
        async def fails(request: Request) -> str:
            raise KeyError("on purpose")

        def clients() -> list[Any]:
            connection = self.connect(server)
            got: list[Any] = []
            for method, path, body in [
                ("GET", "/slow/you", None),
                ("GET", "/plain", None),
                ("PUT", "/size", bytes(1_000_000)),
                ("GET", "/fails", None),
            ]:
                connection.request(method, path, body)
                answer = connection.getresponse()
                got.append((answer.status, answer.read()))
            got.append(answer.getheader("Connection"))
            client = self.dial(server)
            client.sendall(WS + b"echo me")
            self.expect(client, b"echo me")
            client.close()
            return got

        async def main() -> list[Any]:
            async with server:
                got = await asyncio.get_running_loop().run_in_executor(None, clients)
                self.assertTrue((await server.adrain(30)).drained)
                return got

        with self.assertLogs("paceline", logging.ERROR):
            got = asyncio.run(main())
        self.assertEqual(got[:3], [(200, b"hello you"), (200, b"plain"), (200, b"1000000")])
        self.assertEqual((got[3][0], got[4], server.stats().panics), (500, "close", 1))
        self.assertEqual(inside, [threading.get_ident()])
        self.assertTrue(server.stats().balances)

    def test_a_body_that_breaks_off_in_a_coroutine(self) -> None:
        server = self.serve(threads=0)

        async def main() -> str:
            loop = asyncio.get_running_loop()
            told = loop.create_future()

            @server.route_streaming("PUT", "/file")
            async def file(request: Request) -> None:
                try:
                    async for _ in request.parts():
                        pass
                except paceline.StaleError as error:
                    told.set_result(str(error))

            async with server:
                client = self.dial(server)
                client.sendall(b"PUT /file HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nabcd")
                client.close()
                return await asyncio.wait_for(told, 60)

        self.assertIn("broken off", asyncio.run(main()))

    def test_a_coroutine_without_a_loop(self) -> None:
        server = self.serve()

        @server.get("/")
        async def never(request: Request) -> str:
            return "never"

        server.start()
        connection = self.connect(server)
        with self.assertLogs("paceline", logging.ERROR) as logs:
            connection.request("GET", "/")
            self.assertEqual(connection.getresponse().status, 500)
        self.assertIn("asyncio loop", logs.output[0])

    def test_a_server_in_a_loop(self) -> None:
        async def main() -> None:
            async with Server(self.pool, "127.0.0.1:0", Echo, threads=0) as server:
                host, _, port = server.addresses[0].rpartition(":")
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"hello")
                self.assertEqual(await asyncio.wait_for(reader.readexactly(5), 60), b"hello")
                writer.close()
                await writer.wait_closed()
                self.assertTrue((await server.adrain(30)).drained)
            self.assertTrue(server.stats().balances)

        asyncio.run(main())

    def test_only_what_has_no_threads_can_be_attached(self) -> None:
        async def main() -> None:
            server = Server(self.pool, "127.0.0.1:0", Echo)
            with self.assertRaises(paceline.InvalidError):
                server.attach()
            server.close()

        asyncio.run(main())
        server = Server(self.pool, "127.0.0.1:0", Echo, threads=0)
        with self.assertRaises(RuntimeError):
            server.attach()
        server.close()

    def test_a_forked_child_of_a_loop(self) -> None:
        async def main() -> int:
            server = Server(self.pool, "127.0.0.1:0", Echo, threads=0)
            server.attach()
            child = os.fork()
            if child == 0:
                try:
                    server.run()
                except paceline.ForkedError:
                    os._exit(0)
                finally:
                    os._exit(1)
            server.close()
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        self.assertEqual(asyncio.run(main()), 0)


if __name__ == "__main__":
    unittest.main()
