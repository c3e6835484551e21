"""Bridges, with a broker of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import paceline
from paceline import Bridge, Export, Hub, Import, NatsSettings, Pool, Retry, StartAt
from support import Case, run

LONG = 60.0
#: Seconds between attempts of the tests.
SOON = 0.01


class Broker:
    """A nats-server on a free port."""

    def __init__(self, more: str = "") -> None:
        # The kernel's choice, which another process could take in between.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-nats-"))
        store = self.folder / "store"
        text = f'host: 127.0.0.1\nport: {self.port}\njetstream {{ store_dir: "{store}" }}\n{more}\n'
        (self.folder / "settings").write_text(text)
        self.start()

    def start(self) -> None:
        command = ["nats-server", "-c", str(self.folder / "settings")]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        end = time.monotonic() + LONG
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if time.monotonic() > end:
                raise RuntimeError("the broker does not come")
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Brokered(Case):
    """With a broker and two hubs, as of two processes."""

    broker: Broker

    @classmethod
    def setUpClass(cls) -> None:
        if shutil.which("nats-server") is None:
            raise unittest.SkipTest("there is no nats-server")
        cls.broker = Broker()
        cls.addClassCleanup(cls.broker.close)
        with Pool(0) as pool, Hub(pool) as hub:
            try:
                Bridge(hub, cls.broker.url, exports=["a"]).close()
            except paceline.UnsupportedError:
                raise unittest.SkipTest("the library has no bridges") from None

    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)
        self.here, self.there = self.hub(), self.hub()
        #: Of what no other test has.
        self.name = f"{self._testMethodName}-{time.monotonic_ns()}"

    def hub(self) -> Hub:
        hub = Hub(self.pool)
        self.addCleanup(hub.close)
        return hub

    def bridge(self, hub: Hub, **rules: Any) -> Bridge:
        bridge = Bridge(hub, self.broker.url, **rules)
        self.addCleanup(bridge.close)
        self.assertTrue(bridge.wait_connected(LONG))
        return bridge

    def stored(self, pattern: str, **more: Any) -> Bridge:
        """From here, at least once."""
        # A subject is of one stream.
        rule = Export(pattern, stream=self.name, prefix=f"{self.name}.", **more)
        return self.bridge(self.here, exports=[rule])

    def taken(self, pattern: str, hub: Optional[Hub] = None, **more: Any) -> Bridge:
        """To there."""
        rule = Import(pattern, stream=self.name, durable="d", prefix=f"{self.name}.", **more)
        return self.bridge(hub or self.there, imports=[rule])


class Keys(Brokered):
    def test_messages_come_as_they_were_published(self) -> None:
        box = self.there.mailbox(">")
        self.bridge(self.there, imports=["orders.>"])
        out = self.bridge(self.here, exports=["orders.>"])
        # What was published before the import is subscribed to is nobody's.
        self.until(lambda: self.here.publish("orders.try") and box.pull(timeout=0.05))
        self.here.publish("orders.eu", b"one", {"who": "me"}, "high")
        self.here.publish("stocks.eu", b"stays")
        self.assertTrue(out.flush(LONG))
        self.until(lambda: self.last(box, b"one"))
        self.assertEqual(self.found.key, "orders.eu")
        self.assertEqual((self.found.header("who"), self.found.priority), ("me", "high"))
        stats = out.stats()
        self.assertTrue(stats.connected and out.connected and stats.server)
        self.assertEqual((stats.reason, stats.connects), (None, 1))
        self.assertEqual((stats.exports[0].pattern, stats.exports[0].stream), ("orders.>", None))
        self.assertEqual(stats.exports[0].waiting, 0)
        self.assertEqual(stats.imports, ())

    def last(self, box: paceline.Mailbox, payload: bytes) -> bool:
        for message in box.pull(timeout=0.05):
            if message.payload == payload:
                self.found = message
                return True
        return False

    def test_a_request_is_answered_elsewhere(self) -> None:
        def reply(message: paceline.Message) -> None:
            self.there.reply(message, message.payload.upper())

        self.there.subscribe("ask", reply)
        self.bridge(self.there, imports=[Import("ask", group="g")])
        self.bridge(self.here, exports=["ask"])
        self.assertEqual(self.here.request("ask", b"abc", LONG).payload, b"ABC")

        async def ask() -> bytes:
            return (await self.here.request_async("ask", b"def", LONG)).payload

        self.assertEqual(asyncio.run(ask()), b"DEF")

    def test_prefixes_are_put_before_keys_and_taken_off(self) -> None:
        box = self.there.mailbox(">")
        self.bridge(self.there, imports=[Import("a", prefix="eu.shop.")])
        self.bridge(self.here, exports=[Export("a", prefix="eu.shop.")])
        self.until(lambda: self.here.publish("a", b"x") and self.last(box, b"x"))
        self.assertEqual(self.found.key, "a")

    def test_what_does_not_fit_is_told(self) -> None:
        url = self.broker.url
        for rules, told in (
            ({}, "the rules of a bridge is none"),
            ({"exports": ["$SYS.>"]}, "the pattern of an export"),
            ({"exports": ["a"], "permitted": ["b.>"]}, "the pattern of a rule"),
            ({"exports": ["a"], "permitted": []}, "permitted is empty"),
            ({"imports": [Import("a", stream="s")]}, "durable"),
            ({"imports": [Import("a", retries=Retry.custom(1, lambda _: 1.0))]}, "retries is"),
            ({"exports": [Export("a", overflow="no")]}, "overflow is 'no'"),
        ):
            with self.subTest(told), self.assertRaisesRegex(paceline.InvalidError, told):
                Bridge(self.here, url, **rules)
        with self.assertRaisesRegex(paceline.InvalidError, "the address of a broker"):
            Bridge(self.here, "nats://joe:secret@:x", exports=["a"])
        out = self.stored("a")
        with self.assertRaisesRegex(paceline.InvalidError, "the key of a message"):
            out.publish("b")
        out.close()
        with self.assertRaises(paceline.ShutDownError):
            out.publish("a")
        self.assertTrue(out.closed)
        self.assertEqual(out.close(), 0)

    def test_settings_say_how_it_is(self) -> None:
        file = self.broker.folder / "bridge.yaml"
        file.write_text(f"bridge:\n  servers: {self.broker.url}\n  exports: [a, b]\n")
        with Bridge.from_settings(self.here, str(file), exports=["c"], imports=["d"]) as made:
            self.assertTrue(made.wait_connected(LONG))
            stats = made.stats()
            self.assertEqual([each.pattern for each in stats.exports], ["a", "b", "c"])
            self.assertEqual([each.pattern for each in stats.imports], ["d"])
        with unittest.mock.patch.dict(os.environ, PACELINE_BRIDGE_SERVERS="nonsense:x"):
            with self.assertRaisesRegex(paceline.InvalidError, "nonsense:x"):
                Bridge.from_settings(self.here, str(file), environment=True)
            Bridge.from_settings(self.here, paceline.Settings(str(file))).close()
        file.write_text("bridge:\n  exports: [a]\n")
        with self.assertRaisesRegex(paceline.InvalidError, "bridge.servers"):
            Bridge.from_settings(self.here, str(file))

    def test_secrets_are_read_from_files(self) -> None:
        secret = "0pen.Sesame"
        file = self.broker.folder / "secret"
        for more, login in (
            (f'user: joe, password: "{secret}"', {"user": "joe", "password_file": str(file)}),
            (f'token: "{secret}"', {"token_file": str(file)}),
        ):
            broker = Broker(f"authorization {{ {more} }}")
            self.addCleanup(broker.close)
            file.write_text(f"not {secret}")
            nats = NatsSettings(broker.url, reconnect_first=SOON, reconnect_cap=SOON, **login)
            with Bridge(self.here, nats, exports=["a"]) as made:
                self.until(lambda made=made: "uthorization" in (made.stats().reason or ""))
                self.assertNotIn(secret, f"{made.stats()} {nats}")
                file.write_text(f"{secret}\n")
                self.assertTrue(made.wait_connected(LONG))
                self.assertNotIn(secret, str(made.stats()))
        with self.assertRaisesRegex(paceline.InvalidError, "in place of password"):
            both = NatsSettings("x", user="joe", password=secret, password_file=str(file))
            Bridge(self.here, both, exports=["a"])

    def test_secrets_are_not_shown(self) -> None:
        settings = NatsSettings(
            "nats://joe:secret@a:4222, tls://secret@b", user="joe", password="secret", token="secret"
        )
        self.assertEqual(repr(settings), "<paceline.NatsSettings 'nats://a:4222,tls://b'>")
        for wrong in (5, "secret\0"):
            with self.assertRaises((TypeError, paceline.InvalidError)) as raised:
                Bridge(self.here, NatsSettings("x", token=wrong), exports=["a"])  # type: ignore[arg-type]
            self.assertNotIn("secret", str(raised.exception))
        with self.assertRaises(TypeError):
            Bridge(self.here, NatsSettings("x", password=b"secret"), exports=["a"])  # type: ignore[arg-type]


class Stores(Brokered):
    """Publishers learn that their message is stored."""

    def test_one_waits(self) -> None:
        out = self.stored("orders.>")
        pending = out.publish("orders.a", b"x", {"a": "b"}, "critical")
        pending.wait(LONG)
        self.assertTrue(pending.done())
        pending.wait(0)
        self.assertEqual(out.stats().exports[0].stored, 1)

    def test_loops_await(self) -> None:
        out = self.stored("orders.>")
        key = self.here.key("orders.a")

        async def store(number: int) -> None:
            await out.publish(key, str(number).encode())

        async def main() -> None:
            await asyncio.gather(*map(store, range(300)))
            again = out.publish(key)
            # Several await the same.
            await asyncio.gather(_awaits(again), _awaits(again))
            await again

        asyncio.run(main())
        # Of another loop.
        asyncio.run(main())
        self.assertEqual(out.stats().exports[0].stored, 602)

    def test_while_the_broker_is_away_they_wait(self) -> None:
        broker = Broker()
        self.addCleanup(broker.close)
        settings = NatsSettings(broker.url, reconnect_cap=0.05)
        with Bridge(self.here, settings, exports=[Export("a", stream="A")]) as out:
            out.publish("a").wait(LONG)
            broker.kill()
            pending = out.publish("a")
            with self.assertRaises(paceline.TimeoutError):
                pending.wait(0.01)
            self.assertFalse(pending.done())
            self.assertFalse(out.flush(0.01))
            self.until(lambda: not out.connected)
            self.assertFalse(out.wait_connected(0.01))
            self.assertTrue(out.stats().reason)

            async def main() -> None:
                late = [asyncio.ensure_future(_awaits(out.publish("a"))) for _ in range(10)]
                await asyncio.sleep(0.25)
                late[0].cancel()
                self.assertEqual(sum(each.done() for each in late), 0)
                await asyncio.get_running_loop().run_in_executor(None, broker.start)
                await asyncio.gather(*late[1:])

            asyncio.run(main())
            pending.wait(LONG)
            self.assertEqual(out.stats().exports[0].stored, 12)

    def test_what_waits_in_an_archive_is_sent_by_the_next_bridge(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        history = paceline.History("a", archive=f"{folder}/archive")
        rule = Export("a", stream=self.name, prefix=f"{self.name}.", spool=f"{folder}/spool")
        with Hub(self.pool, histories=[history]) as hub:
            with Bridge(hub, "nats://127.0.0.1:9", exports=[rule]) as bridge:
                hub.publish("a", b"x")
                self.assertEqual(bridge.stats().exports[0].waiting, 1)
            hub.flush()
        with Hub(self.pool, histories=[history]) as hub:
            bridge = Bridge(hub, self.broker.url, exports=[rule])
            self.addCleanup(bridge.close)
            hub.publish("a", b"y")
            self.assertTrue(bridge.flush(LONG))
            self.assertEqual(bridge.stats().exports[0].stored, 2)
            with self.assertRaisesRegex(paceline.InvalidError, "no other bridge"):
                Bridge(hub, self.broker.url, exports=[rule])

    def test_a_bridge_that_ends_tells_it(self) -> None:
        out = Bridge(self.here, "nats://127.0.0.1:9", exports=[Export("a", stream="A")])
        pending = out.publish("a")

        async def main() -> None:
            awaits = asyncio.ensure_future(_awaits(out.publish("a")))
            await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, out.close, 0)
            await awaits

        with self.assertRaises(paceline.ShutDownError):
            asyncio.run(main())
        with self.assertRaises(paceline.ShutDownError):
            pending.wait(LONG)
        # What was lost is told once.
        self.assertEqual(out.stats().exports[0].stored, 0)

    def test_a_full_buffer_refuses(self) -> None:
        rule = Export("a", stream="A", buffer=1, overflow="reject")
        with contextlib.closing(Bridge(self.here, "nats://127.0.0.1:9", exports=[rule])) as out:
            pending = [out.publish("a")]
            with self.assertRaises(paceline.Full):
                pending += [out.publish("a") for _ in range(3)]
            out.close(0)

    def test_where_it_may_a_publisher_waits_for_room(self) -> None:
        rule = Export("a", stream="A", buffer=1, overflow="block", block=0.05)
        out = Bridge(self.here, "nats://127.0.0.1:9", exports=[rule])
        self.addCleanup(out.close, 0)
        start = time.monotonic()
        with self.assertRaises(paceline.Full):
            for _ in range(3):
                out.publish("a")
        self.assertGreaterEqual(time.monotonic() - start, 0.05)
        with self.assertRaises(paceline.Full):
            out.publish("a", no_wait=True)


async def _awaits(pending: paceline.PendingStore) -> None:
    await pending


class AtLeastOnce(Brokered):
    """A message is acknowledged when its handlers have succeeded."""

    def outcome(self, subscribe: Callable[[Hub, str, Callable[[bytes], None]], Any]) -> None:
        """One that succeeds, one that fails once, and one that always does."""
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(2, SOON))
        seen: Counter[bytes] = Counter()

        def handle(payload: bytes) -> None:
            seen[payload] += 1
            if payload == b"bad" or (payload == b"second" and seen[payload] == 1):
                raise ValueError("not yet")

        with subscribe(self.there, "jobs", handle):
            for payload in (b"good", b"second", b"bad"):
                out.publish("jobs", payload).wait(LONG)
            self.settled(back, acknowledged=2, dead=1)
        self.assertEqual(seen, {b"good": 1, b"second": 2, b"bad": 3})
        letters = self.there.dead_letters()
        self.assertEqual([letter.message.payload for letter in letters], [b"bad"])
        self.assertEqual(back.stats().imports[0].again, 3)
        self.assertTrue(self.there.audit().balances)

    def settled(self, back: Bridge, **wanted: int) -> None:
        def holds() -> bool:
            stats = back.stats().imports[0]
            return stats.in_flight == 0 and all(getattr(stats, n) == v for n, v in wanted.items())

        try:
            self.until(holds, 30)
        except AssertionError:
            self.fail(f"{back.stats().imports[0]} is not {wanted}")

    def test_handlers_of_each_execution(self) -> None:
        for execution in ("serial", "concurrent", "strand", "inline"):
            with self.subTest(execution):
                self.there, self.name = self.hub(), f"{execution}-{time.monotonic_ns()}"

                def subscribe(hub: Hub, key: str, handle: Any, execution: str = execution) -> Any:
                    called = lambda message: handle(message.payload)
                    return hub.subscribe(
                        key, called, execution=execution, threads=2, on_error=lambda *_: None
                    )

                self.outcome(subscribe)

    def test_batches(self) -> None:
        """All of a batch fail with it."""
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(20, SOON))
        left = [2]

        def handle(batch: paceline.Batch) -> None:
            if left[0]:
                left[0] -= 1
                raise ValueError("not yet")

        with self.there.subscribe("jobs", handle, batch=8, on_error=lambda *_: None):
            for number in range(20):
                out.publish("jobs", str(number).encode())
            self.settled(back, acknowledged=20, dead=0)
        self.assertGreaterEqual(back.stats().imports[0].again, 2)
        self.assertEqual(self.there.dead_letters(), [])

    def test_coroutines(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(2, SOON))
        seen: Counter[bytes] = Counter()

        async def handle(message: paceline.Message) -> None:
            seen[message.payload] += 1
            await asyncio.sleep(0.001)
            if message.payload == b"bad" or seen[message.payload] == 1:
                raise ValueError("not yet")

        async def main() -> None:
            self.there.subscribe("jobs", handle, on_error=lambda *_: None)
            for payload in (b"second", b"bad"):
                await out.publish("jobs", payload)
            wait = lambda: self.settled(back, acknowledged=1, dead=1)
            await asyncio.get_running_loop().run_in_executor(None, wait)

        asyncio.run(main())
        self.assertEqual(seen, {b"second": 2, b"bad": 3})
        self.assertEqual(len(self.there.dead_letters()), 1)

    def test_retries_of_the_subscription_come_first(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(1, SOON))
        attempts: list[int] = []

        def handle(message: paceline.Message) -> None:
            attempts.append(message.attempt)
            raise ValueError("no")

        retries = Retry.fixed(2, 0.001)
        with self.there.subscribe("jobs", handle, retries=retries, on_error=lambda *_: None):
            out.publish("jobs")
            self.settled(back, acknowledged=0, dead=1)
        self.assertEqual(attempts, [1, 2, 3, 1, 2, 3])
        self.assertEqual(len(self.there.dead_letters()), 1)

    def test_while_a_handler_works_the_broker_waits(self) -> None:
        out = self.stored("slow")
        back = self.taken("slow", ack_wait=0.2)
        began, calls = threading.Event(), []

        def handle(message: paceline.Message) -> None:
            calls.append(message.payload)
            began.set()
            time.sleep(1)

        with self.there.subscribe("slow", handle):
            out.publish("slow", b"x")
            self.assertTrue(began.wait(LONG))
            stats = back.stats().imports[0]
            self.assertEqual((stats.acknowledged, stats.in_flight), (0, 1))
            self.settled(back, acknowledged=1)
            time.sleep(0.5)
        self.assertEqual(calls, [b"x"])

    def test_all_subscriptions_deal_with_it(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(5, SOON))
        box = self.there.mailbox("jobs", acknowledged=True)
        self.there.subscribe("jobs", lambda _: None)
        out.publish("jobs", b"x")
        (message,) = box.pull(timeout=LONG)
        stats = back.stats().imports[0]
        self.assertEqual((stats.acknowledged, stats.in_flight), (0, 1))
        box.bury(message, "no", 1)
        (message,) = box.pull(timeout=LONG)
        self.assertEqual(back.stats().imports[0].again, 1)
        box.acknowledge(delivered=1)
        self.settled(back, acknowledged=1, again=1)
        self.assertEqual(self.there.dead_letters(), [])

    def test_what_was_pulled_and_is_not_acknowledged_comes_again(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(50, SOON))
        for end in (lambda box: box.acknowledge(0, discarded=1), lambda box: None):
            box = self.there.mailbox("jobs", acknowledged=True)
            out.publish("jobs", b"x").wait(LONG)
            self.assertEqual(len(box.pull(timeout=LONG)), 1)
            end(box)
            box.close()
            del box
            gc.collect()
            # Nobody subscribes now, until there is another.
            before = back.stats().imports[0].again
            self.until(lambda: back.stats().imports[0].again > before)
            with self.there.mailbox("jobs") as other:
                self.assertEqual(other.pull(timeout=LONG)[0].payload, b"x")
            self.settled(back)

    def test_what_a_handler_has_not_begun_comes_again_when_it_unsubscribes(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs", retries=Retry.fixed(50, SOON))
        entered, go_on = threading.Event(), threading.Event()
        seen: list[bytes] = []

        def handle(message: paceline.Message) -> None:
            seen.append(message.payload)
            entered.set()
            go_on.wait(LONG)

        first = self.there.subscribe("jobs", handle)
        # While the first is with it others are taken along, or wait.
        out.publish("jobs", b"0").wait(LONG)
        self.assertTrue(entered.wait(LONG))
        go_on.set()
        self.settled(back, acknowledged=1)
        entered.clear()
        go_on.clear()
        for number in range(1, 10):
            out.publish("jobs", str(number).encode()).wait(LONG)
        self.assertTrue(entered.wait(LONG))
        self.until(lambda: back.stats().imports[0].published >= 10)
        first.unsubscribe()
        go_on.set()
        self.assertTrue(first.wait(LONG))
        with self.there.subscribe("jobs", lambda message: seen.append(message.payload)):
            self.settled(back, acknowledged=10)
        self.assertEqual(sorted(seen), [str(number).encode() for number in range(10)])

    def test_what_is_pulled_counts_as_dealt_with(self) -> None:
        out = self.stored("jobs")
        back = self.taken("jobs")
        box = self.there.mailbox("jobs")
        out.publish("jobs", b"x")
        self.assertEqual(box.pull(timeout=LONG)[0].payload, b"x")
        self.settled(back, acknowledged=1)

    def test_an_import_begins_where_it_is_told(self) -> None:
        out = self.stored("jobs")
        for number in range(5):
            out.publish("jobs", str(number).encode()).wait(LONG)
        time.sleep(0.01)
        then = time.time_ns()
        for number in range(5, 8):
            out.publish("jobs", str(number).encode()).wait(LONG)
        for index, (start, first) in enumerate(
            (
                (None, 0),
                (StartAt.first(), 0),
                (StartAt.sequence(4), 3),
                (StartAt.time_ns(then), 5),
                (StartAt.new(), 8),
            )
        ):
            hub = self.hub()
            box = hub.mailbox("jobs")
            rule = Import(
                "jobs", stream=self.name, durable=f"d{index}", start=start, prefix=f"{self.name}."
            )
            with Bridge(hub, self.broker.url, imports=[rule]) as back:
                self.assertTrue(back.wait_connected(LONG))
                if first == 8:
                    # Its consumer is made soon.
                    self.until(lambda: out.publish("jobs", b"8") and box.pull(timeout=0.05))
                else:
                    self.assertEqual(box.pull(timeout=LONG)[0].payload, str(first).encode())
                # What waits in the mailbox is not waited for.
                back.close(0)


class Ends(Brokered):
    def test_a_lost_bridge_is_collected_and_closed(self) -> None:
        bridge = self.bridge(self.here, exports=["a"])
        gone = weakref.ref(bridge)
        self._cleanups.clear()
        self.addCleanup(self.pool.shutdown)
        self.here.publish("a", b"x")
        del bridge
        self.until_collected(lambda: gone() is None)
        self.until(lambda: self.here.patterns() == {})

    def test_closing_sends_what_waits(self) -> None:
        self.there.subscribe("a", lambda _: None)
        back = self.taken("a")
        out = self.stored("a")
        for _ in range(1000):
            self.here.publish("a", b"x")
        self.assertEqual(out.close(LONG), 0)
        self.until(lambda: back.stats().imports[0].acknowledged == 1000)

    def test_what_is_left_is_told(self) -> None:
        out = Bridge(self.here, "nats://127.0.0.1:9", exports=[Export("a", stream="A")])
        for _ in range(3):
            self.here.publish("a")
        self.assertEqual(out.close(0.01), 3)

    def test_in_a_child_made_by_fork_it_is_refused(self) -> None:
        out = self.stored("a")
        pending = out.publish("a")
        pending.wait(LONG)
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (
                lambda: out.publish("a"),
                out.stats,
                out.flush,
                lambda: out.wait_connected(0),
                lambda: Bridge(self.here, self.broker.url, exports=["a"]),
            ):
                try:
                    call()
                except paceline.ForkedError:
                    refused += 1
            os._exit(refused)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 5)
        out.publish("a").wait(LONG)

    def test_at_the_end_of_the_interpreter_what_waits_is_sent(self) -> None:
        back = self.taken("a")
        self.there.subscribe("a", lambda _: None)
        told = run(
            f"""
            import paceline
            pool = paceline.Pool(1)
            hub = paceline.Hub(pool)
            hub.subscribe("a", lambda message: None, execution="inline")
            bridge = paceline.Bridge(
                hub, {self.broker.url!r}, exports=[paceline.Export("a", stream={self.name!r}, prefix="{self.name}.")], imports=["b"]
            )
            bridge.wait_connected(60)
            kept = [bridge.publish("a", b"x") for _ in range(100)]
            print("end")
            """
        )
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "end\n", ""))
        self.until(lambda: back.stats().imports[0].acknowledged == 100)

    def test_a_loop_that_waits_at_the_end_does_not_hold_it(self) -> None:
        told = run(
            """
            import asyncio, paceline
            pool = paceline.Pool(1)
            hub = paceline.Hub(pool)
            bridge = paceline.Bridge(hub, "nats://127.0.0.1:9", exports=[paceline.Export("a", stream="A")])

            async def store():
                await bridge.publish("a")

            loop = asyncio.new_event_loop()
            task = loop.create_task(store())
            loop.run_until_complete(asyncio.sleep(0.05))
            task.cancel()
            loop.run_until_complete(asyncio.sleep(0.05))
            loop.close()
            print("end")
            """
        )
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "end\n", ""))


if __name__ == "__main__":
    unittest.main()
