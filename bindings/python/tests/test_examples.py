"""The examples that serve, as processes of their own."""

from __future__ import annotations

import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

import paceline
from paceline import top
from support import HANG, PACKAGE, Case

EXAMPLES = PACKAGE.parents[3] / "examples" / "python"


def load(name: str) -> Any:
    """An example as a module, to see inside."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Examples(Case):
    def setUp(self) -> None:
        super().setUp()
        if not EXAMPLES.exists():
            self.skipTest("skipped, because the examples lie outside this package")

    def test_the_page_of_observe_shows_what_lags_and_what_works(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        environment["PACELINE_LIBRARY"] = paceline.library_path
        command = [sys.executable, str(EXAMPLES / "observe.py"), "127.0.0.1:0", "127.0.0.1:0"]
        pipe = subprocess.PIPE
        # As under a service manager: that it has no input does not end it.
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, text=True
        )
        self.addCleanup(child.kill)
        assert child.stdout is not None
        page, server = (child.stdout.readline().split("http://")[1].split("/")[0] for _ in range(2))
        with urllib.request.urlopen(f"http://{server}/hello", timeout=60) as answer:
            self.assertEqual(answer.read(), b"hello\n")
        lags = works = False
        for event in top.events(f"http://{page}", None):
            figures = event["figures"]
            lags = lags or any(each["name"] == "orders.*" for each in figures["waiting"])
            works = works or bool(figures["cards"]["tasks"] and figures["cards"]["tasks"]["rate"])
            if lags and works:
                break
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(120), 0)
        child.stdout.close()

    def start(self, name: str, *arguments: str) -> tuple[subprocess.Popen[str], tuple[str, int]]:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        environment["PACELINE_LIBRARY"] = paceline.library_path
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--listen", "127.0.0.1:0", *arguments]
        pipe = subprocess.PIPE
        server = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)
        self.addCleanup(server.kill)
        assert server.stdout is not None
        line = server.stdout.readline()
        self.assertTrue(line.startswith("listening on "), line)
        host, _, port = line.split()[-1].rpartition(":")
        return server, (host, int(port))

    def stop(self, server: subprocess.Popen[str]) -> str:
        """It ends in order; what it has said last."""
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=HANG)
        self.assertEqual((server.returncode, err), (0, ""))
        return out

    def test_http(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        (root / "a b.txt").write_text("0123456789")
        (root / "sub").mkdir()
        (root / "sub" / "index.html").write_text("<p>")
        (root / ".hidden").write_text("x")
        large = os.urandom(3 << 20)
        (root / "large").write_bytes(large)
        server, address = self.start("http", "--directory", str(root))

        def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
            connection = http.client.HTTPConnection(*address, timeout=60)
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=names)
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer.status, body, answer.headers

        status, body, headers = ask("/a%20b.txt")
        self.assertEqual((status, body), (200, b"0123456789"))
        self.assertEqual(headers["Content-Type"], "text/plain; charset=utf-8")
        self.assertEqual(headers["Accept-Ranges"], "bytes")
        modified = headers["Last-Modified"]
        self.assertEqual(ask("/a%20b.txt", If_Modified_Since=modified)[:2], (304, b""))
        early = "Thu, 01 Jan 1970 00:00:00 GMT"
        self.assertEqual(ask("/a%20b.txt", If_Modified_Since=early)[0], 200)
        for wanted, expected, told in (
            ("bytes=2-5", b"2345", "bytes 2-5/10"),
            ("bytes=7-", b"789", "bytes 7-9/10"),
            ("bytes=-3", b"789", "bytes 7-9/10"),
            ("bytes=8-99", b"89", "bytes 8-9/10"),
        ):
            status, body, headers = ask("/a%20b.txt", Range=wanted)
            self.assertEqual((status, body, headers["Content-Range"]), (206, expected, told))
        for wanted in ("bytes=10-", "bytes=-0"):
            status, body, headers = ask("/a%20b.txt", Range=wanted)
            self.assertEqual((status, headers["Content-Range"]), (416, "bytes */10"))
        for wanted in ("bytes=1-2,4-5", "lines=1-2", "bytes=5-2", "bytes=-"):
            self.assertEqual(ask("/a%20b.txt", Range=wanted)[:2], (200, b"0123456789"))
        self.assertEqual(ask("/a%20b.txt", Range="bytes=1-2", If_Range=early)[0], 200)
        self.assertEqual(ask("/a%20b.txt", Range="bytes=1-2", If_Range=modified)[0], 206)
        status, body, headers = ask("/a%20b.txt", "HEAD")
        self.assertEqual((status, body, headers["Content-Length"]), (200, b"", "10"))
        self.assertEqual(ask("/large")[1], large)
        self.assertEqual(ask("/large", Range="bytes=99999-")[1], large[99999:])
        self.assertEqual(ask("/sub/")[1], b"<p>")
        status, _, headers = ask("/sub?q")
        self.assertEqual((status, headers["Location"]), (301, "/sub/?q"))
        for conditions, expected in (
            ({"If-None-Match": "*"}, 304),
            ({"If-None-Match": '"a"'}, 200),
            ({"If-Match": '"a"'}, 412),
            ({"If-Match": "*"}, 200),
            ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:01 GMT"}, 412),
            ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:01 GMT", "If-Match": "*"}, 200),
            ({"If-Unmodified-Since": "yesterday"}, 200),
        ):
            self.assertEqual(ask("/a%20b.txt", **conditions)[0], expected, conditions)
        for nowhere in ("/", "/.hidden", "/none", "/sub/..%2fa%20b.txt", "/..%2f..%2fetc/passwd", "//a"):
            self.assertEqual(ask(nowhere)[0], 404, nowhere)
        self.assertEqual(ask("/large", "POST")[0], 405)
        self.assertEqual(ask("/api/hello/y%C3%A4")[1].decode(), '{"hello":"yä"}')
        self.assertEqual(ask("/api/hello/%FF")[:2], (400, b"400 Bad Request\n"))
        self.assertRegex(self.stop(server), r"^\d+ requests: \d+ answered, 2 refused, 0 aborted\n$")

    def test_chat(self) -> None:
        server, address = self.start("chat")

        def join(name: str) -> Any:
            client = socket.create_connection(address, 60)
            self.addCleanup(client.close)
            lines = client.makefile("rw", encoding="utf-8")
            self.assertEqual(lines.readline(), "* your name?\n")
            say(lines, name)
            return lines

        def say(lines: Any, line: str) -> None:
            lines.write(line + "\n")
            lines.flush()

        anna = join("anna")
        self.assertEqual(anna.readline(), "* welcome, anna\n")
        other = join("anna")
        self.assertEqual(other.readline(), "* somebody has that name; yours?\n")
        say(other, "bert")
        self.assertEqual(other.readline(), "* welcome, bert\n")
        self.assertEqual(anna.readline(), "* bert has joined\n")
        say(anna, "hello\x1b[2J")
        self.assertEqual(other.readline(), "anna: hello[2J\n")
        say(other, "/quit")
        self.assertEqual(other.readline(), "* bye\n")
        self.assertEqual(other.readline(), "")
        self.assertEqual(anna.readline(), "* bert has left\n")
        # One who does not read harms nobody.
        slow = join("slow")
        self.assertEqual(slow.readline(), "* welcome, slow\n")
        self.assertEqual(anna.readline(), "* slow has joined\n")
        third = join("third")
        self.assertEqual(third.readline(), "* welcome, third\n")
        self.assertEqual(anna.readline(), "* third has joined\n")
        for number in range(8000):
            say(anna, f"{number} " + "x" * 1000)
            self.assertTrue(third.readline().startswith(f"anna: {number} "))
        self.assertEqual(slow.readline(), "* third has joined\n")
        line = slow.readline()
        while not line.startswith("* you have missed"):
            self.assertTrue(line.startswith("anna: "), line)
            line = slow.readline()
        self.assertEqual(self.stop(server).split(";")[0], "4 joined and said 8001 lines")

    def test_proxy(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def echo() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=bounce, args=(client,), daemon=True).start()

        def bounce(client: socket.socket) -> None:
            with client:
                while True:
                    data = client.recv(1 << 16)
                    if not data:
                        break
                    client.sendall(data)
                client.sendall(b"the end")

        threading.Thread(target=echo, daemon=True).start()
        to = "127.0.0.1:%d" % listener.getsockname()[1]
        server, address = self.start("proxy", "--to", to)
        data = os.urandom(4 << 20)

        def talk(wrong: list[Optional[str]]) -> None:
            with socket.create_connection(address, 60) as client:
                sender = threading.Thread(
                    target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))
                )
                sender.start()
                got = bytearray()
                while True:
                    more = client.recv(1 << 16)
                    if not more:
                        break
                    got += more
                sender.join()
                wrong.append(None if got == data + b"the end" else f"{len(got)} bytes")

        wrong: list[Optional[str]] = []
        clients = [threading.Thread(target=talk, args=(wrong,)) for _ in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(wrong, [None] * 4)
        self.assertEqual(self.stop(server), "4 streams\n")
        # Bound, but nobody listens there.
        nobody = socket.socket()
        self.addCleanup(nobody.close)
        nobody.bind(("127.0.0.1", 0))
        server, address = self.start("proxy", "--to", "127.0.0.1:%d" % nobody.getsockname()[1])
        # The reset may come while this is still connecting, or find nothing read.
        with self.assertRaises(ConnectionResetError):
            with socket.create_connection(address, 60) as client:
                client.recv(1)
                raise ConnectionResetError
        server.send_signal(signal.SIGINT)
        self.assertIn("127.0.0.1", server.communicate(timeout=HANG)[1])

    def test_the_proxy_holds_both_directions_back(self) -> None:
        """Goal: whatever is sent, and however slowly it is read, what waits in the proxy is bounded, in each
        direction. Method: both ends send as much as is taken, and read in drops; what is queued is counted
        when it has grown."""
        proxy = load("proxy")
        queued: list[int] = [0]
        relay = proxy.End.data

        def data(self: Any, conn: paceline.Conn, data: bytes) -> None:
            relay(self, conn, data)
            try:
                queued[0] = max(queued[0], self.peer().conn.queued)
            except paceline.StaleError:
                pass

        self.addCleanup(setattr, proxy.End, "data", relay)
        proxy.End.data = data
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(60)
        proxy.Client.to = "127.0.0.1:%d" % listener.getsockname()[1]
        buffers = {"send_buffer": 4096, "receive_buffer": 1 << 20, "allow_half_open": True}
        size = 8 << 20

        def send(end: socket.socket) -> None:
            end.sendall(bytes(size))
            end.shutdown(socket.SHUT_WR)

        def read(end: socket.socket) -> int:
            got = 0
            while more := end.recv(16384):
                got += len(more)
            return got

        with paceline.Pool(1) as pool:
            with paceline.Server(pool, "127.0.0.1:0", proxy.Client, **buffers) as server:
                proxy.Client.server = server
                host, _, port = server.addresses[0].rpartition(":")
                with socket.create_connection((host, int(port)), 60) as client:
                    upstream, _ = listener.accept()
                    upstream.settimeout(60)
                    ends = (client, upstream)
                    with upstream, ThreadPoolExecutor(4) as threads:
                        sends = [threads.submit(send, end) for end in ends]
                        # Nothing is read until as much waits as may.
                        self.until(lambda: queued[0])
                        last = -1
                        while queued[0] != last:
                            last = queued[0]
                            time.sleep(0.2)
                        reads = [threads.submit(read, end) for end in ends]
                        self.assertEqual([each.result(120) for each in reads], [size, size])
                        for each in sends:
                            each.result(60)
                self.assertTrue(server.drain(30).drained)
        # Two reads, of 64 KiB each.
        self.assertGreater(queued[0], 0)
        self.assertLessEqual(queued[0], 2 << 16)


if __name__ == "__main__":
    unittest.main()
