"""What the end of ``with`` waits for: the user's code that runs."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import signal
import socket
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from typing import Any

import paceline
from paceline import Hub, Pool
from support import Case

LONG = 60.0


class Busy:
    """Code of the user that takes a while, and knows whether it is called when it must not be any more."""

    def __init__(self) -> None:
        self.entered, self.over = threading.Event(), False
        self.inside = self.done = self.late = 0

    def __call__(self, *_: Any) -> None:
        self.late += self.over
        self.inside += 1
        self.entered.set()
        time.sleep(0.02)
        self.inside -= 1
        self.done += 1


def _talks(address: str, said: bytes) -> None:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), LONG) as client:
        client.sendall(said)


@contextmanager
def pool(_: Pool, busy: Busy) -> Iterator[Any]:
    with Pool(1) as own:
        own.post(busy)
        yield None


@contextmanager
def scope(pool: Pool, busy: Busy) -> Iterator[Any]:
    with pool.scope() as scope:
        scope.post(busy)
        yield None


@contextmanager
def handle(pool: Pool, busy: Busy) -> Iterator[Any]:
    with pool.every(0.001, busy):
        yield None


@contextmanager
def ring(pool: Pool, busy: Busy) -> Iterator[Any]:
    with paceline.Ring(pool, busy, batch=1) as ring:
        for _ in range(3):
            ring.publish(b"x")
        yield None
    if ring.counts() != (3, 3):
        raise AssertionError(f"{ring.counts()} were published and handled")


class _Talks(paceline.ConnHandler):
    def __init__(self, busy: Busy) -> None:
        self.busy = busy

    def data(self, conn: paceline.Conn, data: Any) -> int:
        self.busy()
        return len(data)


@contextmanager
def server(pool: Pool, busy: Busy) -> Iterator[Any]:
    with paceline.Server(pool, "127.0.0.1:0", lambda _: _Talks(busy)) as server:
        _talks(server.addresses[0], b"x")
        yield server


@contextmanager
def http(pool: Pool, busy: Busy) -> Iterator[Any]:
    def route(request: paceline.Request) -> bytes:
        busy()
        return b""

    http = paceline.Http(pool, "127.0.0.1:0")
    http.route("GET", "/")(route)
    with http:
        _talks(http.addresses[0], b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        yield http


@contextmanager
def udp(pool: Pool, busy: Busy) -> Iterator[Any]:
    with paceline.Udp(pool, busy, "127.0.0.1:0") as udp:
        udp.send(b"x", udp.address)
        yield udp


@contextmanager
def hub(pool: Pool, busy: Busy) -> Iterator[Any]:
    with Hub(pool) as hub:
        hub.subscribe("a", busy)
        hub.publish("a", b"x")
        yield None


@contextmanager
def subscription(pool: Pool, busy: Busy) -> Iterator[Any]:
    with Hub(pool) as hub, hub.subscribe("a", busy):
        hub.publish("a", b"x")
        yield None


@contextmanager
def replay(pool: Pool, busy: Busy) -> Iterator[Any]:
    with Hub(pool, histories=[paceline.History("a")]) as hub:
        with hub.replay("a", busy):
            hub.publish("a", b"x")
            yield None


@contextmanager
def workers(pool: Pool, busy: Busy) -> Iterator[Any]:
    with paceline.WorkerPool(pool, threads=1) as workers:
        workers.task(name="busy")(busy).submit()
        yield None


@contextmanager
def signals(_: Pool, busy: Busy) -> Iterator[Any]:
    with paceline.Signals([signal.SIGUSR2], busy):
        os.kill(os.getpid(), signal.SIGUSR2)
        yield None


WAITS: dict[str, Callable[[Pool, Busy], Any]] = {
    "Pool": pool,
    "Scope": scope,
    "Handle": handle,
    "Ring": ring,
    "Server": server,
    "Http": http,
    "Udp": udp,
    "Hub": hub,
    "Subscription": subscription,
    "Replay": replay,
    "WorkerPool": workers,
    "Signals": signals,
}

#: Those whose end has no code of the user to wait for.
CALL_NOTHING = {
    "Admission": "a count",
    "Bridge": "publishes in a hub, whose subscriptions call",
    "CalledBack": "not public",
    "CompletionQueue": "data, and no calls",
    "DurableQueue": "needs a broker: test_durable.py",
    "Executor": "its base class waits for what was submitted",
    "Handled": "Subscription and Replay",
    "Hosted": "Server, Http and Udp",
    "Mailbox": "pulled",
    "Native": "not public",
    "Ops": "answers from a native thread",
    "Pulled": "Mailbox and ReplayMailbox",
    "Queue": "plain bytes",
    "ReplayMailbox": "pulled",
    "Source": "not public",
    "Service": "asks by a handle of the native library, which waits; without systemd nobody asks",
    "Serving": "Server and Http",
    "Watch": "calls nothing: a subscription does",
    "Webhook": "posts from a native thread",
    "_Visit": "not public",
}


class Ends(Case):
    def test_the_end_of_with_waits_for_the_code_that_runs(self) -> None:
        with Pool(2) as pool:
            for name, make in WAITS.items():
                with self.subTest(name):
                    busy = Busy()
                    with make(pool, busy):
                        self.assertTrue(busy.entered.wait(LONG))
                    busy.over = True
                    self.assertEqual((busy.inside, busy.done > 0), (0, True))
                    time.sleep(0.005)
                    self.assertEqual(busy.late, 0)

    def test_inside_its_own_handler_nothing_waits(self) -> None:
        with Pool(2) as pool, Hub(pool, threads=2, histories=[paceline.History("a")]) as hub:
            for make in (
                lambda call: pool.every(0.001, call),
                lambda call: paceline.Ring(pool, call),
                lambda call: hub.subscribe("a", call),
                lambda call: hub.replay("a", call, now=True),
            ):
                there, left = threading.Event(), threading.Event()
                ended = ExitStack()

                def leaves(
                    *_: Any, ended: ExitStack = ended, there: Any = there, left: Any = left
                ) -> None:
                    if there.wait(LONG):
                        ended.close()
                        left.set()

                made = ended.enter_context(make(leaves))
                there.set()
                if isinstance(made, paceline.Ring):
                    made.publish(b"x")
                hub.publish("a", b"x")
                self.assertTrue(left.wait(LONG))

    def test_every_class_that_is_left_is_tested(self) -> None:
        found = set()
        for module in pkgutil.iter_modules(paceline.__path__):
            inside = vars(importlib.import_module(f"paceline.{module.name}"))
            found |= {
                each.__name__
                for each in inside.values()
                if isinstance(each, type)
                and each.__module__.startswith("paceline")
                and hasattr(each, "__exit__")
            }
        self.assertGreater(len(found), 20)
        self.assertEqual(found - {*WAITS, *CALL_NOTHING}, set())


def refused(address: str, times: int) -> None:
    """Makes so many requests that are none."""
    for _ in range(times):
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), LONG) as client:
            client.sendall(b"nonsense\r\n\r\n")
            while client.recv(1 << 16):
                pass


class Shutdowns(Case):
    """How a pool ends with what stands on it."""

    def test_handlers_of_a_hub_begin_no_more(self) -> None:
        for drain in (0.0, 0.1):
            pool, busy = Pool(1), Busy()
            hub = Hub(pool)
            subscription = hub.subscribe("a", busy)
            for _ in range(100):
                hub.publish("a", b"x")
            self.assertTrue(busy.entered.wait(LONG))
            report = pool.shutdown(drain)
            busy.over = True
            self.assertTrue(subscription.wait(LONG))
            self.assertFalse(report.drained)
            # One of them may have been with the handler.
            self.assertIn(report.left, (100 - busy.done, 101 - busy.done))
            self.assertEqual(busy.late, 0)
            self.assertEqual(pool.shutdown().left, report.left)
            hub.close()

    def test_in_a_handler_on_the_thread_of_the_user_a_drain_is_a_request(self) -> None:
        with Pool(1) as pool, paceline.WorkerPool(pool, threads=0) as workers:
            task = workers.task(lambda: pool.shutdown(LONG)).submit()
            while not task.done():
                workers.run()
            self.assertTrue(task.result(LONG).requested)
            while pool._runner.left is None:
                workers.run()
        for coroutine in (False, True):
            with self.subTest(coroutine=coroutine):
                self.drain_in_a_loop(coroutine)

    def drain_in_a_loop(self, coroutine: bool) -> None:
        answered: list[bytes] = []
        reports = []

        async def main() -> None:
            pool = Pool(1)
            server = paceline.Http(pool, threads=0)

            def answer(_: paceline.Request) -> str:
                reports.append(pool.shutdown(LONG))
                return "answer"

            async def later(request: paceline.Request) -> str:
                return answer(request)

            server.get("/")(later if coroutine else answer)
            server.start()
            server.attach()

            def ask() -> None:
                client = HTTPConnection(server.addresses[0], timeout=LONG)
                client.request("GET", "/")
                answered.append(client.getresponse().read())
                client.close()

            await asyncio.get_running_loop().run_in_executor(None, ask)
            server.close()
            # Nothing stands on it that this loop serves.
            self.assertFalse(pool.shutdown(LONG).requested)

        asyncio.run(main())
        self.assertEqual(answered, [b"answer"])
        self.assertTrue(reports[0].requested)

    def test_a_drain_takes_nothing_from_outside(self) -> None:
        ways: list[Callable[[Hub], Any]] = [
            lambda hub: hub.publish("a", b"x"),
            lambda hub: hub.publish_batch("a", [b"x"]),
            lambda hub: hub.publish_all([("a", b"x")]),
            lambda hub: hub.publisher("name").publish("a", b"x"),
            lambda hub: hub.publisher("name").publish_batch("a", [b"x"]),
            lambda hub: hub.request("a", b"x", 1),
        ]
        pool = Pool(1)
        hub = Hub(pool)
        there, go_on = threading.Event(), threading.Event()
        seen: list[bytes] = []

        def handle(message: paceline.Message) -> None:
            seen.append(message.payload)
            if message.payload == b"first":
                there.set()
                go_on.wait(LONG)
                for way in ways[:5]:
                    way(hub)

        hub.subscribe("a", handle)
        hub.publish("a", b"first")
        self.assertTrue(there.wait(LONG))
        reports: list[Any] = []
        ends = threading.Thread(target=lambda: reports.append(pool.shutdown(LONG)))
        ends.start()
        self.until(lambda: pool._runner.draining)
        for number, way in enumerate(ways):
            with self.subTest(number), self.assertRaises(paceline.ShutDownError):
                way(hub)
        go_on.set()
        ends.join(LONG)
        self.assertTrue(reports[0].drained)
        self.assertEqual(seen, [b"first", *[b"x"] * 5])
        hub.close()

    def test_a_loop_that_is_stopped_holds_no_drain(self) -> None:
        pool, loop = Pool(1), asyncio.new_event_loop()
        self.addCleanup(loop.close)
        hub = Hub(pool)

        async def handle(_: paceline.Message) -> None:
            pass

        async def subscribe() -> None:
            hub.subscribe("a", handle)

        loop.run_until_complete(subscribe())
        hub.publish("a", b"x")
        start = time.monotonic()
        report = pool.shutdown(LONG)
        self.assertLess(time.monotonic() - start, LONG / 2)
        self.assertEqual((report.drained, report.left), (False, 1))
        hub.close()
        loop.run_until_complete(asyncio.sleep(0.01))

    def test_what_an_end_has_to_tell_is_told(self) -> None:
        for threads in (0, 1):
            told: list[object] = []
            entered, go_on = threading.Event(), threading.Event()
            pool = Pool(1)
            server = paceline.Http(pool, threads=threads)

            def tell(
                end: object, told: list[object] = told, entered: Any = entered, go_on: Any = go_on
            ) -> None:
                entered.set()
                go_on.wait(LONG)
                time.sleep(0.005)
                told.append(end)

            server.on_end(tell)
            with pool, server:
                # What the server refuses waits for nobody; a host thread takes up to 64 ends at once.
                refused(server.addresses[0], 1)
                if threads:
                    self.assertTrue(entered.wait(LONG))
                refused(server.addresses[0], 99)
                go_on.set()
            self.assertEqual(len(told), 100)


if __name__ == "__main__":
    unittest.main()
