"""Operations endpoints: what they answer, while the pool cannot; and the view of it in a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from support import Case

import paceline
from paceline import CompletionQueue, Http, InvalidError, Ops, Pool, Request, Response, WorkerPool, top

TOKEN = "correct-horse-battery"


def get(url: str, token: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextlib.contextmanager
def watched(threads: int = 2, **settings: Any) -> Iterator[tuple[Pool, str]]:
    with Pool(threads) as pool, paceline.ops.serve(pool, "127.0.0.1:0", **settings) as ops:
        yield pool, f"http://{ops.address}"


def _answer(server: socket.socket, answer: bytes) -> bytes:
    """Takes one connection, sends this, and ends it. What was asked."""
    peer, _ = server.accept()
    with peer:
        asked = peer.recv(4096)
        peer.sendall(answer)
    return asked


class Endpoint(Case):
    def test_it_answers(self) -> None:
        with watched() as (_, url):
            self.assertEqual(get(url + "/health/ready"), (200, "ok\n"))
            self.assertIn("paceline_handles", get(url + "/metrics")[1])
            self.assertIn("<title>paceline</title>", get(url + "/")[1])
            self.assertEqual(json.loads(get(url + "/stats.json")[1])["pool"], "paceline")

    def test_it_answers_while_all_threads_of_python_wait(self) -> None:
        gate = threading.Event()
        with watched() as (pool, url):
            blocked = [pool.submit(gate.wait) for _ in range(2)]
            self.assertEqual(get(url + "/")[0], 200)
            gate.set()
            for each in blocked:
                each.result()

    def test_what_holds_a_thread_is_called_as_python_does(self) -> None:
        gates: list[threading.Event] = []

        class Orders:
            def ship(self) -> None:
                gates[-1].wait()

        def tick(*_: object) -> paceline.Flow:
            Orders().ship()
            return paceline.Flow.DONE

        def read(*_: object) -> paceline.Flow:
            # What we call for it has a function of the user's, too.
            with Pool(1) as inner:
                inner.submit(Orders().ship).result()
            return paceline.Flow.DONE

        here, there = socket.socketpair()
        with watched(blocked_after=0.1) as (pool, url), here, there:
            there.send(b"x")
            ways: dict[str, Callable[[], object]] = {
                "Orders.ship": lambda: pool.post(Orders().ship),
                "tick": lambda: pool.every(0.01, tick),
                "read": lambda: pool.register(here, read),
            }
            for name, start in ways.items():
                with self.subTest(name):
                    gates.append(threading.Event())
                    kept = start()
                    called, body = f'<locals>.{name}" for ', ""
                    if sys.version_info < (3, 11):
                        called = name.rpartition(".")[2] + '" for '
                    for _ in range(6000):
                        body = get(url + "/health/live")[1]
                        if " is blocked in " in body and called in body:
                            break
                        time.sleep(0.01)
                    gates[-1].set()
                    self.assertIn(called, body)
                    while "blocked" in get(url + "/health/live")[1]:
                        time.sleep(0.01)
                    del kept

    def test_a_pool_whose_threads_all_compute_is_alive_and_ready(self) -> None:
        gate, began = threading.Event(), time.monotonic()
        with watched(blocked_after=0.05, ready_after=0.1, dead_after=0.2) as (pool, url):
            inside = [threading.Event() for _ in range(2)]

            def compute(here: threading.Event) -> None:
                here.set()
                gate.wait()

            held = [pool.submit(compute, each) for each in inside]
            for each in inside:
                each.wait()
            while time.monotonic() < began + 2:
                for path in ("/health/live", "/health/ready"):
                    status, body = get(url + path)
                    if status != 200:
                        gate.set()
                    self.assertEqual(status, 200, body)
            gate.set()
            for future in held:
                future.result()

    def test_a_pool_that_starves_is_not_ready_and_then_dead(self) -> None:
        gate, inside = threading.Event(), threading.Semaphore(0)

        def until(url: str, status: int, part: str) -> None:
            body = ""
            for _ in range(6000):
                seen, body = get(url)
                if seen == status and part in body:
                    return
                time.sleep(0.01)
            gate.set()
            self.fail(f"{url} says {body!r}")

        def hold() -> None:
            inside.release()
            gate.wait()

        with watched(ready_after=0.1, dead_after=3600) as (pool, url):
            for _ in range(2):
                pool.post(hold)
            for _ in range(2):
                inside.acquire()
            timer = pool.after(0.001, lambda: None)
            until(url + "/health/ready", 503, "a timer that is due has waited for ")
            self.assertEqual(get(url + "/health/live")[0], 200)
            with paceline.ops.serve(pool, "127.0.0.1:0", ready_after=0.1, dead_after=0.2) as ops:
                dead = f"http://{ops.address}"
                until(
                    dead + "/health/live", 503, "the pool starves: a timer that is due has waited for "
                )
                gate.set()
                for path in ("/health/live", "/health/ready"):
                    until(dead + path, 200, "ok")
            del timer

    def test_an_entry_that_no_host_takes_waits(self) -> None:
        with watched(ready_after=0.1, dead_after=3600) as (pool, url):
            queue = CompletionQueue(pool)
            queue.post(7)
            for _ in range(6000):
                status, body = get(url + "/health/ready")
                if status == 503:
                    break
                time.sleep(0.01)
            self.assertIn("an entry of a completion queue has waited for ", body)
            queue.close()

    def test_failures_of_every_kind_are_among_the_last_faults(self) -> None:
        def fails(what: str) -> Callable[..., Any]:
            def code(*_: Any) -> Any:
                raise ValueError(f"{what} \N{LATIN SMALL LETTER E WITH ACUTE}\0")

            return code

        told: list[BaseException] = []
        with watched() as (pool, url), paceline.Hub(pool) as hub, self.assertLogs("paceline"):
            http = paceline.Http(pool, "127.0.0.1:0")
            http.get("/")(fails("a request"))
            hub.subscribe("key", fails("a message"))
            with (
                http,
                mock.patch("threading.excepthook"),
                paceline.Pool(1, on_unhandled=told.append) as own,
            ):
                pool.post(fails("a post"))
                own.post(fails("a hook's post"))
                pool.after(0.001, fails("a timer"))
                with pool.every(0.001, fails("a periodic timer")):
                    hub.publish("key", b"")
                    self.assertEqual(get(f"http://{http.addresses[0]}/")[0], 500)
                    for what in ("request", "message", "post", "hook's post", "timer", "periodic timer"):
                        part = f"{what} é"
                        for _ in range(6000):
                            faults = json.loads(get(url + "/errors.json")[1])["errors"]
                            if any(part in fault["message"] for fault in faults):
                                break
                            time.sleep(0.01)
                        else:
                            self.fail(f"{part!r} is not among {faults}")
            text = get(url + "/metrics")[1]
        self.assertRegex(text, 'paceline_faults_total{level="error"} [1-9]')
        self.assertEqual(len(told), 1)

    def test_a_token_is_asked_for(self) -> None:
        with watched(token=TOKEN) as (_, url):
            self.assertEqual(get(url + "/metrics")[0], 401)
            self.assertEqual(get(url + "/metrics", TOKEN)[0], 200)
        with Pool(1) as pool:
            times = [{each: 4000} for each in ("blocked_after", "ready_after", "dead_after")]
            for wrong in ({"address": "0.0.0.0:0"}, {"token": "short"}, *times):
                with self.subTest(wrong), self.assertRaisesRegex(InvalidError, next(iter(wrong))):
                    Ops(pool, **{"address": "127.0.0.1:0", **wrong})

    def test_it_is_mounted_in_a_server_of_the_program(self) -> None:
        with Pool(2) as pool, Ops(pool) as ops:
            with self.assertRaises(InvalidError):
                ops.address  # noqa: B018
            http = Http(pool, "127.0.0.1:0")

            @http.route("GET", "/")
            def mine(request: Request) -> Response:
                return Response("mine")

            ops.mount(http, "/ops")
            with self.assertRaisesRegex(InvalidError, "prefix"):
                ops.mount(http, "ops/")
            http.start()
            url = f"http://{http.addresses[0]}"
            self.assertEqual(get(url + "/"), (200, "mine"))
            self.assertEqual(get(url + "/ops/health/live"), (200, "ok\n"))
            ops.close()
            self.assertEqual(get(url + "/ops/health/live")[0], 500)
            self.assertEqual(get(url + "/"), (200, "mine"))

    def test_figures_of_the_program_are_shown(self) -> None:
        with Pool(2) as pool, WorkerPool(pool, metrics=True) as workers:
            workers.counter("orders", "Orders taken").inc(3)
            with paceline.ops.serve(pool, "127.0.0.1:0", workers=workers) as ops:
                self.assertIn("orders_total 3", get(f"http://{ops.address}/metrics")[1])
            with WorkerPool(pool) as none, self.assertRaisesRegex(InvalidError, "metrics"):
                Ops(pool, workers=none)

    def test_settings_start_it_and_are_shown(self) -> None:
        with TemporaryDirectory() as folder, Pool(1) as pool:
            file = Path(folder, "service.yaml")
            file.write_text(f'ops: {{address: "127.0.0.1:0", token: "{TOKEN}"}}\n')
            with Ops(pool, settings=iter([file])) as ops:
                url = f"http://{ops.address}/config"
                self.assertEqual(get(url)[0], 401)
                shown = json.loads(get(url, TOKEN)[1])["settings"]
            of = {each["key"]: each for each in shown}
            self.assertEqual(of["ops.address"]["value"], "127.0.0.1:0")
            self.assertEqual(of["ops.address"]["from"], str(file))
            self.assertEqual(of["ops.token"]["value"], "***")

    def test_closing_it_again_is_allowed(self) -> None:
        with Pool(1) as pool:
            ops = Ops(pool, "127.0.0.1:0")
            ops.close()
            ops.close()
            with self.assertRaises(InvalidError):
                ops.address  # noqa: B018
            with self.assertRaisesRegex(TypeError, "cannot pickle"):
                ops.__reduce__()


#: A bridge of an event, without what two of them differ by.
BRIDGE: dict[str, Any] = {
    "connected": False,
    "reason": None,
    "server": "",
    "connects": 0,
    "lost": 0,
    "exports": [
        {
            "pattern": "orders.>",
            "waiting": 7,
            "in_flight": 1,
            "sent": 9,
            "stored": 8,
            "dropped": 2,
            "refused": 0,
        }
    ],
    "imports": [
        {
            "pattern": "jobs",
            "lag": 6,
            "in_flight": 4,
            "published": 3,
            "acknowledged": 2,
            "dead": 1,
            "refused": 0,
        }
    ],
}


class Top(Case):
    def test_one_report_is_printed(self) -> None:
        with watched() as (_, url):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(top.main([url, "--once"]), 0)
            self.assertIn("paceline paceline: ready", out.getvalue())
            self.assertIn("CPU", out.getvalue())

    def test_what_cannot_be_read_is_said(self) -> None:
        with watched(token=TOKEN) as (_, url):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                self.assertEqual(top.main([url, "--once"]), 1)
            self.assertIn("401", errors.getvalue())
            self.assertIn("needs its token", errors.getvalue())
            with (
                mock.patch.dict(os.environ, PACELINE_OPS_TOKEN=TOKEN[::-1]),
                contextlib.redirect_stderr(errors),
            ):
                self.assertEqual(top.main([url, "--once"]), 1)
            self.assertIn("is not that of this endpoint", errors.getvalue())
            out = io.StringIO()
            with mock.patch.dict(os.environ, PACELINE_OPS_TOKEN=TOKEN), contextlib.redirect_stdout(out):
                self.assertEqual(top.main([url, "--once"]), 0)
            self.assertIn("ready", out.getvalue())

    def test_what_is_no_endpoint_is_said(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            for answer, said in (
                (b"SSH-2.0-OpenSSH_9.2\r\n", "does not answer as an HTTP server"),
                (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nda", "IncompleteRead"),
                (b"HTTP/1.1 200 OK\r\n\r\ndata: \x1b[2J\n", "Expecting value"),
            ):
                with self.subTest(answer=answer):
                    thread = threading.Thread(target=_answer, args=(server, answer))
                    thread.start()
                    errors = io.StringIO()
                    with contextlib.redirect_stderr(errors):
                        self.assertEqual(top.main([url, "--once"]), 1)
                    thread.join()
                    self.assertIn(said, errors.getvalue())
                    self.assertNotIn("\x1b", errors.getvalue())
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(top.main(["http://127.0.0.1:1/a b", "--once"]), 1)

    def test_one_whose_place_another_has_does_not_come_back(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            answer = b"HTTP/1.1 200 OK\r\n\r\nevent: replaced\ndata:\n\n"
            thread = threading.Thread(target=_answer, args=(server, answer))
            thread.start()
            feed = top.Feed(f"http://127.0.0.1:{server.getsockname()[1]}", None)
            feed.start()
            self.assertIn("a newer viewer", feed.told.get(timeout=60))
            feed.join(60)
            self.assertFalse(feed.is_alive())
            thread.join()

    def test_the_token_goes_nowhere_else(self) -> None:
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)
            )
            here, there = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (first, second))
            asked: list[bytes] = []
            moved = f"HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n".encode()
            for server, answer in ((first, moved), (second, b"HTTP/1.1 404 None\r\n\r\n")):
                thread = threading.Thread(
                    target=lambda *it: asked.append(_answer(*it)), args=(server, answer)
                )
                thread.start()
                stack.callback(thread.join)
            with self.assertRaises(OSError):
                next(top.events(here, TOKEN))
        self.assertIn(TOKEN.encode(), asked[0])
        self.assertNotIn(TOKEN.encode(), asked[1])

    def test_nothing_of_a_name_moves_the_cursor(self) -> None:
        self.assertEqual(top.plain("a\x1b[2Jb\n\u202ec"), "a�[2Jb��c")
        with watched() as (pool, url):
            gate = threading.Event()

            def held() -> None:
                gate.wait()

            held.__qualname__ = "\x1b]0;title\x07\x9b2J"
            task = pool.submit(held)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(top.main([url, "--once"]), 0)
            gate.set()
            task.result()
            self.assertFalse(set(out.getvalue()) & set("\x1b\x07\x9b"))

    def test_blocked_threads_and_rescues_are_seen(self) -> None:
        screen = top.Screen()
        thread = {
            "thread": 0,
            "strip": "HHB",
            "state": "blocked",
            "seconds": 2.5,
            "running": "GET /slow",
        }
        cards = {"requests": {"rate": 12345.0, "p50": 0.00012, "p99": 0.25}}
        event = {
            "pool": "p",
            "threads": [{**thread, "rescues": 0}, {**thread, "thread": 1, "strip": "F", "rescues": 1}],
            "health": {"live": True, "ready": False, "reasons": ["why"]},
            "figures": {
                "cards": cards,
                "waiting": [{"kind": "pattern", "name": "orders.>", "count": 7}],
                "process": {"cpu": 0.5, "memory": 1 << 21, "descriptors": 9},
            },
            "bridges": [
                {**BRIDGE, "name": "shop", "connected": True, "server": "b1", "connects": 3},
                {**BRIDGE, "name": "away", "reason": "refused", "lost": 5},
            ],
            "errors": {
                "errors": [
                    {"time": "2026-01-01T10:11:12Z", "level": "warn", "event": "e", "message": "m"}
                ]
            },
        }
        screen.take(event)
        lines = ["".join(text for text, _ in line) for line in screen.lines()]
        for part in ("NOT READY", "▓ blocked for 2.5 s: GET /slow", "! blocked", "12.3 k/s requests"):
            self.assertTrue(any(part in line for line in lines), (part, lines))
        for part in (
            "bridge shop connected to b1  2 reconnects, 0 lost",
            "bridge away NOT CONNECTED: refused  0 reconnects, 5 lost",
            "  export orders.>: 7 waiting, 1 in flight, 9 sent, 8 stored, 2 dropped, 0 refused",
            "  import jobs: 6 lag, 4 in flight, 3 published, 2 acknowledged, 1 dead, 0 refused",
        ):
            self.assertIn(part, lines)
        for part in ("p50 120 µs  p99 250 ms", "7 wait: pattern orders.>", "10:11:12 warn e: m", "why"):
            self.assertTrue(any(part in line for line in lines), (part, lines))

    def test_many_threads_are_folded_and_tables_are_sorted(self) -> None:
        screen = top.Screen()
        thread = {"strip": "F", "state": "following", "seconds": 1.0, "running": None, "rescues": 0}
        threads = [{**thread, "thread": number} for number in range(64)]
        threads[60] |= {"state": "blocked", "strip": "B", "seconds": 9.0}
        rows = [{"name": name, "cells": cells} for name, cells in (("a", [1, None]), ("b", [2, 0.5]))]
        table = {
            "name": "routes",
            "columns": [{"name": "per s", "is_time": False}, {"name": "p99", "is_time": True}],
            "rows": rows,
            "left_out": 3,
        }
        dead = {
            "name": "dead letters",
            "columns": [
                {"name": "age", "is_time": True},
                {"name": "attempts", "is_time": False},
                {"name": "cause", "is_time": False, "is_text": True},
                {"name": "for", "is_time": False, "is_text": True},
            ],
            "rows": [{"name": "k", "cells": [3.0, 2, "failed: no", "k.* letter 1"]}],
            "left_out": 0,
            "ascending": True,
        }
        event = {
            "pool": "p",
            "summary": "thread 2 leads",
            "threads": threads,
            "health": {"live": True, "ready": True, "reasons": []},
            "figures": {
                "cards": {},
                "waiting": [
                    {"kind": "pattern", "name": "x", "count": 7, "capacity": 9, "oldest": 2.0, "lost": 4}
                ],
                "waiting_in_all": 7,
                "tables": [table, dead],
                "process": {"cpu": 0.5, "memory": None, "descriptors": None},
            },
            "errors": {"errors": [{"time": "", "event": "e", "message": "m", "times": 3}]},
        }
        screen.take(event)
        screen.curves = {
            "charts": [
                {
                    "name": "waiting",
                    "is_time": False,
                    "lines": [{"name": "tasks", "values": [0, 0, 0, None, 4, 2]}],
                }
            ]
        }

        def lines() -> list[str]:
            return ["".join(text for text, _ in line) for line in screen.lines()]

        told = lines()
        self.assertEqual(told[1], "thread 2 leads")
        self.assertTrue(told[4].startswith(" 60 ") and "blocked for 9 s" in told[4], told)
        self.assertIn("    56 more threads: 56 following", told)
        self.assertIn("       7 wait: pattern x, of 9, the oldest for 2 s, 4 lost so far", told)
        self.assertTrue(any(line.endswith("▁█ 2") for line in told), told)
        self.assertTrue(
            any(line.endswith("3 s          2  failed: no  k.* letter 1") for line in told), told
        )
        self.assertTrue(any(line.endswith("e: m, 3 times") for line in told), told)

        def names() -> list[str]:
            told = lines()
            return [line[0] for line in told[told.index("and 3 more") - 2 :][:2]]

        self.assertEqual(names(), ["b", "a"])
        screen.upward = True
        self.assertEqual(names(), ["a", "b"])
        screen.upward, screen.column = False, 2
        self.assertEqual(names(), ["b", "a"])
        screen.column = 3
        self.assertEqual(names(), ["a", "b"])

    def test_it_draws_in_a_terminal_and_ends_by_its_key(self) -> None:
        for terminal in ("xterm", "vt100"):
            with self.subTest(terminal):
                self._draws(terminal)

    def _draws(self, terminal: str) -> None:
        with watched() as (_, url):
            own, its = pty.openpty()
            env = {**os.environ, "TERM": terminal, "COLUMNS": "100", "LINES": "30"}
            command = [sys.executable, "-m", "paceline.top", url]
            child = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=env)
            os.close(its)
            seen = b""
            while b"ready" not in seen:
                seen += os.read(own, 4096)
            # Sorts, scrolls and pauses before.
            os.write(own, b"sr\x1b[6~\x1b[B\x1b[H\x1b[Fpq")
            with contextlib.suppress(OSError):
                while os.read(own, 4096):
                    pass
            self.assertEqual(child.wait(60), 0)
            os.close(own)


if __name__ == "__main__":
    unittest.main()
