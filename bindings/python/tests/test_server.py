"""``Server``: connections whose hooks run on host threads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import pickle
import queue
import random
import signal
import socket
import struct
import sys
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from typing import Any, Optional

import paceline
from paceline import Conn, ConnHandler, Pool, Reason, Server, Timeout, WriteStatus
from support import Case, run
from test_hub_failures import ODD, Broken


def dial(server: paceline.Server, index: int = 0) -> socket.socket:
    """A client that cannot hang."""
    address = server.addresses[index]
    if address.startswith("unix:"):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        name = address[5:]
        client.connect("\0" + name[1:] if name.startswith("@") else name)
        return client
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), 60)


def expect(client: socket.socket, expected: bytes) -> None:
    got = b""
    while len(got) < len(expected):
        more = client.recv(len(expected) - len(got))
        assert more, f"the end came after {len(got)} bytes"
        got += more
    assert got == expected, got


def rest(client: socket.socket) -> bytes:
    got = []
    while True:
        more = client.recv(65536)
        if not more:
            return b"".join(got)
        got.append(more)


class Echo(ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


class Told(ConnHandler):
    """Tells of every hook, in a queue."""

    told: Any

    def open(self, conn: Conn) -> None:
        self.told.put(("open", conn))

    def data(self, conn: Conn, data: bytes) -> Optional[int]:
        self.told.put(("data", data))
        return None

    def finished(self, conn: Conn) -> None:
        self.told.put(("finished",))
        conn.write(b"bye")
        conn.close()

    def writable(self, conn: Conn) -> None:
        self.told.put(("writable",))

    def written(self, conn: Conn, token: int) -> None:
        self.told.put(("written", token))

    def timeout(self, conn: Conn, kind: Timeout) -> bool:
        self.told.put(("timeout", kind))
        return False

    def draining(self, conn: Conn) -> None:
        self.told.put(("draining",))

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        self.told.put(("close", reason, detail))


def telling() -> tuple[type[Told], Any]:
    told: Any = queue.Queue()
    return type("Telling", (Told,), {"told": told}), told


def is_stale(call: Callable[[], object]) -> bool:
    try:
        call()
    except paceline.StaleError:
        return True
    return False


def finish(client: socket.socket) -> None:
    """Says that nothing more comes, to a server that may have reset the connection by then."""
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise


class Servers(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)

    def serve(self, handler: Any, listen: Any = "127.0.0.1:0", **settings: Any) -> Server:
        server = Server(self.pool, listen, handler, **settings)
        self.addCleanup(server.close)
        return server

    def next(self, told: Any, *expected: Any) -> Any:
        got = told.get(timeout=60)
        self.assertEqual(got[: len(expected)], expected)
        return got

    def end(self, server: Server) -> paceline.ServerStats:
        self.assertTrue(server.drain(30).drained)
        self.assertTrue(server.wait(30))
        stats = server.stats()
        self.assertTrue(stats.balances and stats.open == 0, stats)
        return stats

    def test_echo_everywhere(self) -> None:
        places = ["127.0.0.1:0", "[::1]:0", f"unix:@paceline-py-{os.getpid()}"]
        for threads in (1, 3):
            server = self.serve(Echo, places, threads=threads)
            for index in range(len(places)):
                with dial(server, index) as client:
                    for _ in range(10):
                        client.sendall(b"hello")
                        expect(client, b"hello")
                    client.shutdown(socket.SHUT_WR)
                    self.assertEqual(rest(client), b"")
            stats = self.end(server)
            self.assertEqual((stats.accepted, stats.closed[Reason.PEER]), (3, 3))

    def test_paths_that_are_too_long(self) -> None:
        server = self.serve(Echo)
        for address in ("unix:/" + 107 * "x", "unix:@" + 108 * "x"):
            limit = r"\(108 bytes\), but must be a (path|name) of .*107 bytes$"
            with self.assertRaisesRegex(paceline.InvalidError, limit):
                self.serve(Echo, address)
            with self.assertRaisesRegex(paceline.InvalidError, limit):
                server.connect(address)
        with socket.socket() as not_listening, self.assertRaises(OSError) as refused:
            not_listening.bind(("127.0.0.1", 0))
            self.serve(Echo, not_listening)
        self.assertEqual(refused.exception.errno, errno.EINVAL)
        self.end(server)

    def test_hooks_in_order(self) -> None:
        handler, told = telling()
        server = self.serve(handler, idle_timeout=60)
        client = dial(server)
        self.addCleanup(client.close)
        conn = self.next(told, "open")[1]
        client.sendall(b"one")
        self.next(told, "data", b"one")
        self.assertIn(conn.write_tracked(b"two", 7), (WriteStatus.SENT, WriteStatus.QUEUED))
        self.next(told, "written", 7)
        expect(client, b"two")
        self.assertTrue(conn.peer.startswith("127.0.0.1:"))
        self.assertEqual(conn.local, server.addresses[0])
        client.shutdown(socket.SHUT_WR)
        self.next(told, "finished")
        self.assertEqual(rest(client), b"bye")
        self.next(told, "close", Reason.PEER, 0)
        # The hook has returned, and a moment later the connection is gone.
        self.until(lambda: is_stale(lambda: conn.peer))
        for call in (conn.pause, conn.resume, lambda: conn.write(b"late"), lambda: conn.peer):
            self.assertRaises(paceline.StaleError, call)
        conn.close()
        conn.abort()
        self.end(server)

    def test_what_is_not_consumed_comes_again(self) -> None:
        class Lines(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> int:
                end = data.rfind(b"\n") + 1
                for line in data[:end].splitlines():
                    conn.write(b"<" + line + b">")
                return end

        server = self.serve(Lines, max_unconsumed=100)
        with dial(server) as client:
            for piece in (b"a", b"b\nc", b"\n", b"d\ne\n"):
                client.sendall(piece)
                time.sleep(0.005)
            expect(client, b"<ab><c><d><e>")
            client.sendall(b"x" * 101)
            client.settimeout(60)
            with self.assertRaises(ConnectionResetError):
                rest(client)
                raise ConnectionResetError
        self.assertEqual(self.end(server).closed[Reason.UNCONSUMED], 1)

    def test_refused(self) -> None:
        class Closed(Told):
            def open(self, conn: Conn) -> Any:
                return b"not today"

        Closed.told = told = queue.Queue()
        server = self.serve(Closed)
        with dial(server) as client:
            self.assertEqual(rest(client), b"not today")
        self.next(told, "close", Reason.REFUSED)
        self.end(server)

    def test_hooks_that_raise_are_logged(self) -> None:
        class Bad(Told):
            def data(self, conn: Conn, data: bytes) -> Any:
                if data == b"much":
                    return 5
                raise KeyError("on purpose")

        Bad.told = told = queue.Queue()
        server = self.serve(Bad)
        for data in (b"x", b"much"):
            with self.assertLogs("paceline", logging.ERROR) as logs, dial(server) as client:
                self.next(told, "open")
                client.sendall(data)
                self.next(told, "close", Reason.PANICKED)
            self.assertIn("on purpose" if data == b"x" else "5 of 4", logs.output[0])
        self.assertEqual(self.end(server).closed[Reason.PANICKED], 2)

    def test_a_handler_that_raises_closes_its_own_connection_and_is_counted(self) -> None:
        told: Any = queue.Queue()

        class Bad(ConnHandler):
            """Raises where the first bytes say, or cannot be made."""

            made = 0

            def __init__(self, conn: Conn) -> None:
                Bad.made += 1
                self.where = b""
                if Bad.made == 1:
                    raise KeyError("made")

            def data(self, conn: Conn, data: bytes) -> None:
                self.where = self.where or data
                if data == b"data":
                    raise KeyError("data")
                conn.write(b"well")

            def finished(self, conn: Conn) -> None:
                if self.where == b"finished":
                    raise KeyError("finished")
                conn.close()

            def close(self, conn: Conn, reason: Reason, detail: int) -> None:
                if self.where == b"close":
                    raise KeyError("close")
                told.put((self.where, reason))

        server = self.serve(Bad)
        with self.assertLogs("paceline", logging.ERROR) as logs, dial(server) as client:
            client.sendall(b"x")
            self.until(lambda: server.stats().closed[Reason.PANICKED] == 1)
        self.assertRegex(
            logs.output[0], r"a hook of <paceline.Conn 0x\w+> has failed, with the peer 127\."
        )
        # It is not made again for its end.
        self.assertEqual((Bad.made, len(logs.output)), (1, 1))
        other = dial(server)
        for count, where in enumerate((b"data", b"finished"), 2):
            with self.assertLogs("paceline", logging.ERROR), dial(server) as client:
                client.sendall(where)
                finish(client)
                self.next(told, where, Reason.PANICKED)
            self.until(lambda: server.stats().closed[Reason.PANICKED] == count)
            # It has touched no other.
            other.sendall(b"x")
            expect(other, b"well")
        with self.assertLogs("paceline", logging.ERROR), dial(server) as client:
            client.sendall(b"close")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(rest(client), b"well")
            self.until(lambda: server.stats().panics_in_close == 1)
        other.close()
        self.next(told, b"x", Reason.PEER)
        stats = self.end(server)
        self.assertEqual((stats.closed[Reason.PANICKED], stats.closed[Reason.PEER]), (3, 2))

    def test_an_error_is_told_before_the_end(self) -> None:
        class Failing(Told):
            def error(self, conn: Conn, os_error: int) -> None:
                self.told.put(("error", os_error))

        class Raising(Failing):
            def error(self, conn: Conn, os_error: int) -> None:
                raise KeyError("on purpose")

        for handler in (Failing, Raising):
            handler.told = told = queue.Queue()
            server = self.serve(handler)
            client = dial(server)
            client.sendall(b"x")
            self.next(told, "open")
            self.next(told, "data", b"x")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if handler is Failing:
                client.close()
                self.next(told, "error", errno.ECONNRESET)
                self.next(told, "close", Reason.FAILED, errno.ECONNRESET)
            else:
                # The end comes all the same.
                with self.assertLogs("paceline", logging.ERROR):
                    client.close()
                    self.next(told, "close", Reason.FAILED, errno.ECONNRESET)
                    self.until(lambda: server.stats().panics_in_close == 1)
            self.end(server)

    def test_an_admission_ends_once_whoever_ends_it(self) -> None:
        kept: Any = queue.Queue()

        class Work(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                kept.put(conn.admit())

        server = self.serve(Work)
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-6)
        with dial(server) as client:
            for count in range(1, 21):
                client.sendall(b"x")
                admission = kept.get(timeout=60)
                start = threading.Barrier(10)

                def end() -> None:
                    start.wait(60)
                    admission.answered()

                threads = [threading.Thread(target=end) for _ in range(10)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(60)
                stats = server.stats()
                self.assertEqual((stats.answered, stats.in_work), (count, 0))
        # One that was never made has nothing to end.
        paceline.Admission.__new__(paceline.Admission).close()

    def test_requests_are_admitted(self) -> None:
        kept: Any = queue.Queue()

        class Work(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                conn.write(b"<")
                for _ in range(2):
                    admission = conn.admit()
                    if admission is not None:
                        kept.put((conn, admission))
                if data == b"raise":
                    raise KeyError("on purpose")

        server = self.serve(Work, f"unix:@paceline-py-admit-{os.getpid()}", max_requests=1, busy=b"busy")

        def books() -> tuple[int, ...]:
            stats = server.stats()
            return stats.requests, stats.answered, stats.requests_aborted, stats.busy, stats.in_work

        client = dial(server)
        self.addCleanup(client.close)
        client.sendall(b"one")
        expect(client, b"<busy")
        conn, admission = kept.get(timeout=60)
        self.assertRaises(paceline.StaleError, conn.admit)
        self.assertRaises(TypeError, pickle.dumps, admission)
        self.assertEqual(books(), (1, 0, 0, 1, 1))
        # Long after its hook; to end it twice is to end it once.
        conn.write(b"answer")
        admission.answered()
        admission.close()
        admission.answered()
        expect(client, b"answer")
        self.assertEqual(books(), (1, 1, 0, 1, 0))
        for end in (lambda each: each.close(), lambda each: None):
            client.sendall(b"two")
            expect(client, b"<busy")
            _, admission = kept.get(timeout=60)
            end(admission)
            # One that is lost has ended too.
            del admission
            self.until(lambda: server.stats().in_work == 0)
        self.assertEqual(books(), (3, 1, 2, 3, 0))
        with self.assertRaises(KeyError):
            client.sendall(b"three")
            expect(client, b"<busy")
            with kept.get(timeout=60)[1]:
                raise KeyError("not answered")
        # A drain waits for what is in work.
        client.sendall(b"last")
        expect(client, b"<busy")
        conn, admission = kept.get(timeout=60)
        reports: list[Any] = []
        drain = threading.Thread(target=lambda: reports.append(server.drain(30)))
        drain.start()
        self.until(lambda: self.refuses(server))
        with admission:
            conn.write(b"last")
        self.assertEqual(rest(client), b"last")
        drain.join()
        self.assertTrue(reports[0].drained)
        self.assertEqual(books(), (5, 2, 3, 5, 0))

    def refuses(self, server: Server) -> bool:
        """Whether it drains."""
        try:
            server.connect("unix:@paceline-py-nowhere")
        except paceline.ShutDownError:
            return True
        except OSError:
            pass
        return False

    def test_many_pieces_are_written_as_one(self) -> None:
        class Pieces(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                conn.write(b"first ")
                wrote = conn.write_vectored([b"a", bytearray(b"b"), memoryview(b"cc")[1:], b""])
                conn.write(b" %d" % wrote)
                if data == b"end":
                    conn.close()
                    try:
                        conn.write_vectored([b"late"])
                    except paceline.StaleError:
                        late.set()

        late = threading.Event()
        server = self.serve(Pieces, output_marks=(1, 2, 4000))
        with dial(server) as client:
            client.sendall(b"x")
            expect(client, b"first abc 0")
            conn = next(iter(server._core.conns.values()))
            self.assertEqual(conn.write_vectored([]), WriteStatus.SENT)
            self.assertEqual(conn.write_vectored(iter([b"1", b"2"])), WriteStatus.SENT)
            expect(client, b"12")
            with self.assertRaises(paceline.Full):
                conn.write_vectored([b"x" * 1000, b"x" * 3001])
            self.assertRaises(TypeError, conn.write_vectored, [b"x", 5])
            self.assertRaises(TypeError, conn.write_vectored, b"x")
            # Nothing of these was sent.
            client.sendall(b"end")
            self.assertTrue(late.wait(60))
            self.assertEqual(rest(client), b"first abc 0")
        self.assertRaises(paceline.StaleError, conn.write_vectored, [b"late"])
        self.end(server)

    def test_timeouts(self) -> None:
        handler, told = telling()
        server = self.serve(handler, idle_timeout=0.02)
        with dial(server):
            self.next(told, "open")
            self.next(told, "timeout", Timeout.IDLE)
            self.next(told, "close", Reason.TIMED_OUT, Timeout.IDLE)
        self.end(server)

    def test_a_listen_has_what_it_says(self) -> None:
        """Goal: keywords are for plain addresses and outgoing connections, and for no Listen. Method: both in
        one server, where only the Listen allows silence."""
        handler, told = telling()
        keywords: dict[str, Any] = {"idle_timeout": 0.02, "max_connections": 2, "backlog": 100}
        places = [paceline.Listen("127.0.0.1:0"), "127.0.0.1:0"]
        server = self.serve(handler, places, refusal=b"two are here", v6_only=True, **keywords)
        patient = [dial(server) for _ in range(3)]
        for _ in patient:
            self.next(told, "open")
        ended: queue.Queue[Any] = queue.Queue()

        class Silent(ConnHandler):
            def close(self, conn: Conn, reason: Reason, detail: Any) -> None:
                ended.put((reason, detail))

        server.connect(server.addresses[0], Silent)
        self.assertEqual(ended.get(timeout=60), (Reason.TIMED_OUT, Timeout.IDLE))
        with dial(server, 1) as strict:
            self.assertEqual(rest(strict), b"")
        for client in patient:
            client.sendall(b"x")
            client.close()
        self.assertEqual(self.end(server).closed[Reason.TIMED_OUT], 2)

    def test_a_setting_out_of_its_range_is_named(self) -> None:
        told = "keep_alive is 500ms, but must be 1 s to 32767 s"
        with self.assertRaisesRegex(paceline.InvalidError, told):
            self.serve(Echo, keep_alive=0.5)
        with self.assertRaisesRegex(paceline.InvalidError, told):
            self.serve(Echo, paceline.Listen("127.0.0.1:0", keep_alive=0.5))
        self.serve(Echo, keep_alive=0)

    def test_pressure(self) -> None:
        handler, told = telling()
        marks = (1000, 2000, 1 << 24)
        path = f"unix:@paceline-py-press-{os.getpid()}"
        server = self.serve(handler, path, output_marks=marks, max_unconsumed=10)
        client = dial(server)
        conn = self.next(told, "open")[1]
        wrote, sent = WriteStatus.SENT, 0
        while wrote is not WriteStatus.ABOVE_HIGH_MARK:
            wrote = conn.write(b"x" * 5000)
            sent += 5000
        self.assertGreater(conn.queued, 2000)
        with self.assertRaises(paceline.Full):
            conn.write(bytes(marks[2]))
        expect(client, b"x" * sent)
        self.next(told, "writable")
        client.close()
        self.next(told, "finished")
        self.next(told, "close")
        self.end(server)

    def test_answers_that_have_no_room_end_the_connection(self) -> None:
        class Much(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                for _ in range(3):
                    conn.write(b"x" * 1000)

        server = self.serve(Much, output_marks=(1, 2, 2000))
        with self.assertLogs("paceline", logging.ERROR) as logs, dial(server) as client:
            client.sendall(b"x")
            with self.assertRaises(ConnectionResetError):
                client.recv(1)
        self.assertIn("no room for 3000 bytes", logs.output[0])
        self.end(server)

    def test_pause(self) -> None:
        handler, told = telling()
        server = self.serve(handler)
        with dial(server) as client:
            conn = self.next(told, "open")[1]
            conn.pause()
            time.sleep(0.01)
            client.sendall(b"later")
            with self.assertRaises(queue.Empty):
                told.get(timeout=0.05)
            conn.resume()
            self.next(told, "data", b"later")
        self.next(told, "finished")
        self.end(server)

    def test_a_resume_that_comes_at_once(self) -> None:
        # Another thread takes the parts, and has reading resumed for each before the hook has returned, on either side
        # of its pause.
        parts: Any = queue.Queue()
        took = threading.Semaphore(0)
        sizes: list[int] = []

        class Parts(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> int:
                sizes.append(len(data))
                part = data[:4096]
                if len(sizes) % 2:
                    conn.pause()
                parts.put((conn, part))
                took.acquire()
                if not len(sizes) % 2:
                    conn.pause()
                return len(part)

        def take() -> None:
            for conn, part in iter(parts.get, None):
                taken.append(part)
                conn.resume()
                took.release()

        taken: list[bytes] = []
        taker = threading.Thread(target=take)
        taker.start()
        server = self.serve(Parts)
        body = random.Random(1).randbytes(3 << 20)
        with dial(server) as client:
            client.sendall(body)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(rest(client), b"")
        self.assertEqual(self.end(server).closed[Reason.PEER], 1)
        parts.put(None)
        taker.join(60)
        self.assertEqual(b"".join(taken), body)
        # One read, and one ahead.
        self.assertLessEqual(max(sizes), 2 << 16)

    def test_a_drain_lets_handlers_answer(self) -> None:
        begun, go_on = threading.Event(), threading.Event()

        class Slow(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                begun.set()
                go_on.wait(60)
                conn.write(b"answer")

        server = self.serve(Slow)
        with dial(server) as client:
            client.sendall(b"question")
            begun.wait(60)
            reports: list[Any] = []
            drain = threading.Thread(target=lambda: reports.append(server.drain(30)))
            drain.start()
            time.sleep(0.01)
            go_on.set()
            self.assertEqual(rest(client), b"answer")
        drain.join()
        self.assertTrue(reports[0].drained and not reports[0].requested)
        self.assertEqual(self.end(server).closed[Reason.DRAINED], 1)

    def test_a_drain_inside_a_hook_is_a_request(self) -> None:
        reports: list[Any] = []

        class Last(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                conn.write(b"the last")
                reports.append(server.drain(30))

        server = self.serve(Last)
        with dial(server) as client:
            client.sendall(b"x")
            self.assertEqual(rest(client), b"the last")
        self.assertTrue(server.wait(30))
        self.assertTrue(reports[0].requested)

    def test_connecting(self) -> None:
        echo = self.serve(Echo)
        handler, told = telling()
        server = self.serve(handler, ())
        conn = server.connect(echo.addresses[0])
        conn.write(b"to and fro")
        self.assertIs(self.next(told, "open")[1], conn)
        self.next(told, "data", b"to and fro")
        conn.close()
        self.until(lambda: any(each[0] == "close" for each in list(told.queue)))
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        try:
            other, others = telling()
            server.connect(f"127.0.0.1:{port}", other)
        except OSError:
            pass
        else:
            self.next(others, "close", Reason.FAILED)
        self.assertRaises(paceline.InvalidError, server.connect, "nowhere")
        self.end(server)
        self.end(echo)

    def test_without_host_threads_in_a_loop(self) -> None:
        async def main() -> bytes:
            loop = asyncio.get_running_loop()
            pool = Pool(0)
            server = Server(pool, "127.0.0.1:0", Echo, threads=0)
            loop.add_reader(pool.fileno(), pool.join, 0)
            loop.add_reader(server.fileno(), server.run)
            host, port = server.addresses[0].split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            answers = b""
            for number in range(20):
                writer.write(b"%d " % number)
                answers += await reader.readexactly(len(b"%d " % number))
            writer.close()
            loop.remove_reader(pool.fileno())
            loop.remove_reader(server.fileno())
            self.assertTrue(server.drain(30).drained)
            self.assertTrue(server.stats().balances)
            server.close()
            pool.shutdown()
            return answers

        expected = b"".join(b"%d " % number for number in range(20))
        self.assertEqual(asyncio.run(main()), expected)

    def test_many_clients_and_threads(self) -> None:
        self.switch_often()

        class Part(ConnHandler):
            """Consumes as it likes; a message ends with a line end, and is consumed then."""

            def data(self, conn: Conn, data: bytes) -> int:
                taken = len(data) if data.endswith(b"\n") else random.randrange(len(data) + 1)
                conn.write(data[:taken])
                return taken

        for threads in (1, 3):
            server = self.serve(Part, threads=threads)

            def client(number: int) -> None:
                with dial(server) as mine:
                    for round in range(20):
                        message = bytes([97 + number]) * (997 * round) + b"\n"
                        mine.sendall(message)
                        expect(mine, message)

            clients = [threading.Thread(target=client, args=(number,)) for number in range(6)]
            for each in clients:
                each.start()
            for each in clients:
                each.join()
            self.assertEqual(self.end(server).accepted, 6)

    def test_who_has_finished_is_answered(self) -> None:
        class Later(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                asked.put((conn, conn.admit()))

        class Hears(Later):
            def finished(self, conn: Conn) -> None:
                pass

        asked: Any = queue.Queue()
        for handler in (Later, Hears):
            server = self.serve(handler)
            clients = [dial(server) for _ in range(20)]
            for client in clients:
                client.sendall(b"ask")
                client.shutdown(socket.SHUT_WR)
            time.sleep(0.05)
            for _ in clients:
                conn, request = asked.get(timeout=60)
                conn.write(b"answer")
                request.answered()
            for client in clients:
                with client:
                    self.assertEqual(rest(client), b"answer")
            stats = self.end(server)
            self.assertEqual((stats.answered, stats.closed[Reason.PEER]), (20, 20))

    def test_half_open_connections_stay_where_they_are_allowed(self) -> None:
        class Half(ConnHandler):
            def finished(self, conn: Conn) -> None:
                finished.put(conn)

        finished: Any = queue.Queue()
        server = self.serve(Half, allow_half_open=True)
        with dial(server) as client:
            client.shutdown(socket.SHUT_WR)
            conn = finished.get(timeout=60)
            time.sleep(0.05)
            conn.write(b"late")
            expect(client, b"late")
            conn.close()
            self.assertEqual(rest(client), b"")
        self.end(server)

    def test_the_pool_ends_first(self) -> None:
        handler, told = telling()
        server = self.serve(handler)
        with dial(server):
            self.next(told, "open")
            report = self.pool.stop_now()
            self.assertEqual((report.drained, report.connections), (False, 1))
            self.next(told, "close", Reason.POOL_ENDED)
        self.assertTrue(server.wait(30))
        self.assertRaises(paceline.ShutDownError, Server, self.pool, "127.0.0.1:0", Echo)

    def test_a_lost_server_ends(self) -> None:
        server = Server(self.pool, "127.0.0.1:0", Echo)
        threads = server._core.threads
        client = dial(server)
        client.sendall(b"x")
        expect(client, b"x")
        del server
        gc.collect()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        with client:
            try:
                self.assertEqual(client.recv(1), b"")
            except ConnectionResetError:
                pass

    def test_senseless_arguments(self) -> None:
        for wrong in (
            {"listen": "nowhere"},
            {"threads": -1},
            {"max_connections": 0},
            {"output_marks": (3, 2, 1)},
            {"idle_timeout": -1},
            {"socket_mode": 1 << 40},
        ):
            arguments: dict[str, Any] = {"listen": "127.0.0.1:0", "handler": Echo, **wrong}
            with self.assertRaises(paceline.InvalidError, msg=str(wrong)):
                Server(self.pool, **arguments)
        self.assertRaises(TypeError, Server, self.pool, "127.0.0.1:0", Echo, colour="red")
        server = self.serve(Echo)
        with self.assertRaises(OSError) as raised:
            self.serve(Echo, server.addresses[0])
        self.assertIn(server.addresses[0], str(raised.exception))
        self.assertRaises(paceline.InvalidError, server.run)
        server.close()
        server.close()

    def test_fork(self) -> None:
        told = run(
            """
            import os, paceline, socket
            class Echo(paceline.ConnHandler):
                def data(self, conn, data):
                    conn.write(data)
            pool = paceline.Pool(2)
            server = paceline.Server(pool, "127.0.0.1:0", Echo)
            host, port = server.addresses[0].split(":")
            client = socket.create_connection((host, int(port)), 60)
            pid = os.fork()
            if pid == 0:
                for call in (server.drain, server.stats, server.fileno):
                    try:
                        call()
                    except paceline.ForkedError:
                        continue
                    os._exit(1)
                del server, pool
                raise SystemExit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            client.sendall(b"x")
            assert client.recv(1) == b"x"
            server.drain()
            """,
            "-W",
            "ignore::DeprecationWarning",
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))

    @contextlib.contextmanager
    def silently(self) -> Iterator[None]:
        """With a log that fails."""
        logger, broken = logging.getLogger("paceline"), Broken()
        logger.addHandler(broken)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(broken)
            logger.propagate = True

    def test_whatever_a_hook_raises_others_go_on(self) -> None:
        class Odd(ConnHandler):
            where = ""
            raised: Any = None

            def fails(self, where: str) -> None:
                if where == self.where:
                    raise self.raised

            def __init__(self, conn: Conn) -> None:
                self.fails("init")

            def open(self, conn: Conn) -> None:
                self.fails("open")

            def data(self, conn: Conn, data: bytes) -> None:
                self.fails("data")
                conn.write(data)

            def finished(self, conn: Conn) -> None:
                self.fails("finished")
                conn.close()

            def close(self, conn: Conn, reason: Reason, detail: int) -> None:
                self.fails("close")

        class Chosen:
            """Makes one that fails, or one that does not."""

            fails = False

            def __call__(self, conn: Conn) -> ConnHandler:
                return Odd(conn) if self.fails else Echo(conn)

        chosen = Chosen()
        server = self.serve(chosen)
        other = dial(server)
        self.addCleanup(other.close)
        other.sendall(b"a")
        expect(other, b"a")
        for make in ODD:
            Odd.raised = make()
            for Odd.where in ("init", "open", "data", "finished", "close"):
                with self.subTest(type(Odd.raised).__name__, where=Odd.where), self.silently():
                    chosen.fails = True
                    # It may be reset at any time.
                    with contextlib.suppress(OSError), dial(server) as client:
                        client.sendall(b"x")
                        finish(client)
                        rest(client)
                    chosen.fails = False
                    other.sendall(b"still")
                    expect(other, b"still")
                    self.until(lambda: server.stats().open == 1)
        self.assertEqual(server._core.failures, 0)
        with dial(server) as client:
            client.sendall(b"x")
            expect(client, b"x")

    def test_what_hooks_return(self) -> None:
        """A refusal is bytes, and what was consumed is a whole number: of others the connection is closed."""

        class Odd(ConnHandler):
            refusal: Any = None
            consumed: Any = None

            def open(self, conn: Conn) -> Any:
                return self.refusal

            def data(self, conn: Conn, data: bytes) -> Any:
                return self.consumed

        server = self.serve(Odd)
        for Odd.refusal, Odd.consumed in (
            (5, 0),
            ("no", 0),
            ([1], 0),
            (None, 1.5),
            (None, "1"),
            (None, -1),
        ):
            with self.assertLogs("paceline", logging.ERROR) as logs:
                # It may be reset at any time.
                with contextlib.suppress(OSError), dial(server) as client:
                    client.sendall(b"xx")
                    self.assertEqual(rest(client), b"")
                self.until(lambda: logs.output)
                self.assertEqual(len(logs.output), 1)
        Odd.refusal, Odd.consumed = b"sorry", None
        with contextlib.suppress(ConnectionResetError), dial(server) as client:
            self.assertEqual(rest(client), b"sorry")

    def test_what_ends_the_program_is_raised_by_run(self) -> None:
        """On a thread of the user's own, when the batch has been handled."""

        class Leaving(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                raise kind("now")

        for kind in (KeyboardInterrupt, SystemExit):
            server = self.serve(Leaving, threads=0)
            with dial(server) as client:
                client.sendall(b"x")
                with self.assertRaises(kind):
                    self.until(lambda: server.run() and False)
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(rest(client), b"")

            async def main() -> None:
                with dial(attached) as client:
                    client.sendall(b"x")
                    attached.attach()
                    await asyncio.sleep(60)

            attached = self.serve(Leaving, threads=0)
            with self.assertRaises(kind):
                asyncio.run(main())
            for each in (server, attached):
                each.close()

    @unittest.skipUnless(hasattr(signal, "setitimer"), "signals")
    def test_a_drain_that_waits_is_interrupted(self) -> None:
        gate = threading.Event()
        self.addCleanup(gate.set)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt("from a signal")

        class Slow(ConnHandler):
            def data(self, conn: Conn, data: bytes) -> None:
                conn.admit()
                conn.write(b"begun")
                kept.append(conn.admit())

        kept: list[Any] = []
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, interrupt)
        for enter in (False, True):
            server, web = self.serve(Slow), paceline.Http(self.pool)
            self.addCleanup(web.close)
            web.get("/")(lambda request: kept.append(request))
            web.start()
            with dial(server) as client, dial(web) as other:
                client.sendall(b"x")
                expect(client, b"begun")
                before = len(kept)
                other.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                self.until(lambda: len(kept) > before)
                for each in (server, web):
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    with self.assertRaises(KeyboardInterrupt):
                        if enter:
                            # Its end closes, which waits for nothing.
                            with each:
                                pass
                        else:
                            each.drain(600)
                    self.assertEqual(each._core.closed, enter)
                    each.close()
                    self.assertTrue(each.wait(60))


if __name__ == "__main__":
    unittest.main()
