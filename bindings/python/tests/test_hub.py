"""``Hub``: publishing, mailboxes, and handlers on threads and in event loops."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
import sys
import signal
import threading
import time
import unittest
import weakref
from collections.abc import Iterator
from typing import Any

import paceline
from paceline import Hub, Message, Pool
from support import Case, run


class Hubs(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = self.open()

    def open(self, **settings: Any) -> Hub:
        hub = Hub(self.pool, **settings)
        self.addCleanup(hub.close)
        return hub

    def publish(self, key: str, numbers: range) -> None:
        for number in numbers:
            self.hub.publish(key, str(number).encode())

    def test_what_is_published_is_what_comes(self) -> None:
        mailbox = self.hub.mailbox("orders.*")
        self.hub.publish("orders.eu", b"\0one", [("a", "1"), ("a", "2"), ("b", "")], "high")
        key = self.hub.key("orders.us")
        self.assertEqual((str(key), repr(key)), ("orders.us", "<paceline.Key 'orders.us'>"))
        large = bytes(range(256)) * 1024
        self.hub.publish(key, bytearray(large), {"ä": "ö"})
        receipt = self.hub.publish_batch(key, [b"three", b"", memoryview(b"five")])
        self.assertEqual(receipt, paceline.Receipt(5, 3, 3, 0, 0))
        self.hub.publish("orders.eu.lost")
        first, second, *others = mailbox.pull(10, 0)
        self.assertEqual((first.key, first.payload, first.priority), ("orders.eu", b"\0one", "high"))
        self.assertEqual(first.headers, (("a", "1"), ("a", "2"), ("b", "")))
        self.assertEqual((first.header("a"), first.header("b"), first.header("c")), ("1", "", None))
        self.assertEqual((first.sequence, first.lost_before), (1, 0))
        self.assertEqual((second.payload, second.headers), (large, (("ä", "ö"),)))
        self.assertLessEqual(first.time_ns, second.time_ns)
        self.assertEqual([each.payload for each in others], [b"three", b"", b"five"])
        self.assertEqual(mailbox.pull(10, 0), [])
        self.assertEqual(mailbox.pull(10, 0.001), [])

    def test_who_works_for_others_does_not_wait_for_room(self) -> None:
        other = self.open()
        full = self.hub.mailbox("full", capacity=1, overflow="block")
        self.addCleanup(full.close)
        self.hub.publish("full")
        failed: list[object] = []
        handled = threading.Event()
        publishes: list[Any] = [
            lambda: self.hub.publish("full"),
            lambda: self.hub.publish_batch("full", [b"x"]),
        ]

        def handle(_: Any) -> None:
            for publish in publishes:
                try:
                    publish()
                except paceline.MailboxFull:
                    failed.append(publish)
            handled.set()

        self.pool.submit(handle, None).result(60)
        other.subscribe("a", handle)
        handled.clear()
        other.publish("a")
        self.assertTrue(handled.wait(60))
        self.assertEqual(len(failed), 4)

    def test_a_batch_is_what_was_published_in_whatever_mix_of_sizes(self) -> None:
        sizes = (0, 8, 8, 255, 256, 0, 257, 1, 1 << 17)
        for batch in ((8, 8, 8), (0, 0), (0, 8, 255, 256), (257, 0, 8), sizes):
            mailboxes = [self.hub.mailbox("sizes.>") for _ in range(3)]
            payloads = [bytes([number + 1]) * size for number, size in enumerate(batch)]
            self.hub.publish_batch("sizes.a", payloads[:2])
            for payload in payloads[2:]:
                self.hub.publish("sizes.b", payload, {"size": str(len(payload))}, "high")
            # Beside them a hub whose messages have the same numbers.
            other = self.open()
            foreign = other.mailbox("sizes.>")
            for payload in payloads:
                other.publish("sizes.b", payload[::-1] + b"!", priority="low")
            for mailbox in mailboxes:
                found = mailbox.pull(100, 0)
                self.assertEqual([each.payload for each in found], payloads)
                self.assertEqual(
                    [each.key for each in found], ["sizes.a"] * 2 + ["sizes.b"] * (len(batch) - 2)
                )
                for each in found[2:]:
                    self.assertEqual(each.header("size"), str(len(each.payload)))
                    self.assertEqual(each.priority, "high")
                # What the caller does with its list is its own affair.
                found.clear()
                if mailbox is not mailboxes[0]:
                    strange = foreign.pull(len(batch), 0)
                    self.assertEqual([each.priority for each in strange], ["low"] * len(strange))
            for mailbox in mailboxes:
                mailbox.close()

    def test_a_batch_has_what_its_messages_have(self) -> None:
        one, other, late = (
            self.hub.mailbox("a.*", capacity=3, overflow="drop-oldest") for _ in range(3)
        )
        self.hub.publish("a.x", b"0")
        self.hub.publish_batch("a.b", [b"one", b"two"])
        self.assertEqual([each.payload for each in late.pull(2, 0)], [b"0", b"one"])
        self.hub.publish("a.c", b"three", {"n": "3"}, "high")
        self.hub.publish("a.c", b"")
        batch, same = one.pull_batch(10, 0), other.pull_batch(10, 0)
        self.assertIs(batch, same, "made once for all that one thread empties")
        self.assertEqual(repr(batch), "<paceline.Batch of 3 messages>")
        self.assertEqual((batch.payloads, batch.lost, batch.attempt), ((b"two", b"three", b""), 2, 1))
        messages = list(batch)
        self.assertEqual([each.payload for each in messages], list(batch.payloads))
        self.assertEqual([each.key for each in batch], ["a.b", "a.c", "a.c"])
        self.assertEqual([each.headers for each in batch], [(), (("n", "3"),), ()])
        self.assertEqual([each.priority for each in batch], ["normal", "high", "normal"])
        self.assertEqual([each.lost_before for each in batch], [2, 0, 0])
        self.assertEqual((batch[-1], batch[:2], len(batch)), (messages[2], messages[:2], 3))
        own = late.pull_batch(10, 0)
        self.assertEqual((own.payloads, own.lost), (batch.payloads, 0), "not the same: nothing was lost")
        self.assertIsNone(one.pull_batch(10, 0))
        # What was pulled is a copy.
        self.hub.publish_batch("a.d", [b"four", b"five!"])
        self.assertEqual(late.pull_batch(10, 0).payloads, (b"four", b"five!"))
        self.assertEqual([each.payload for each in batch], [b"two", b"three", b""])
        with self.assertRaises(TypeError):
            pickle.dumps(batch)

    def test_handlers_of_batches(self) -> None:
        self.hub = self.open()
        found: list[Any] = []
        hold, held = threading.Event(), threading.Event()

        def handle(batch: paceline.Batch) -> None:
            held.set()
            hold.wait()
            found.append((batch.attempt, batch.payloads))
            if b"3" in batch.payloads and batch.attempt == 1 or b"5" in batch.payloads:
                raise ValueError(len(batch))

        told: list[Any] = []
        subscription = self.hub.subscribe(
            "a",
            handle,
            batch=3,
            retries=paceline.Retry.fixed(1, 0.001),
            on_error=lambda batch, error: told.append((len(batch), str(error))),
        )
        self.publish("a", range(1))
        held.wait()
        self.publish("a", range(1, 8))
        self.assertEqual(subscription.stats().running, 1)
        hold.set()
        subscription.unsubscribe("drain")
        self.assertTrue(subscription.wait(60))
        first, second, third = (b"0",), (b"1", b"2", b"3"), (b"4", b"5", b"6")
        attempts = [(1, first), (1, second), (2, second), (1, third), (2, third), (1, (b"7",))]
        self.assertEqual(found, attempts)
        self.assertEqual(told, [(3, "3")] * 3)
        stats = subscription.stats()
        self.assertEqual((stats.delivered, stats.dead_lettered, stats.running), (5, 3, 0))
        self.assertEqual((stats.balances, stats.restarts), (True, 0))
        dead = [letter.message.payload for letter in self.hub.dead_letters()]
        self.assertEqual(dead, list(third))

    def test_handlers_of_batches_in_an_event_loop(self) -> None:
        async def main() -> list[tuple[bytes, ...]]:
            found: list[tuple[bytes, ...]] = []
            over = asyncio.Event()

            async def handle(batch: paceline.Batch) -> None:
                found.append(batch.payloads)
                if sum(map(len, found)) == 5:
                    over.set()

            self.hub.subscribe("a", handle, batch=4)
            self.publish("a", range(5))
            await over.wait()
            return found

        self.assertEqual(asyncio.run(main()), [(b"0", b"1", b"2", b"3"), (b"4",)])

    def test_a_loop_that_was_closed_is_collected_without_a_word(self) -> None:
        async def handle(_: Message) -> None:
            pass

        async def subscribe(hub: Hub) -> None:
            hub.subscribe("a", handle)
            # It waits now.
            await asyncio.sleep(0)

        told: list[Any] = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = told.append
        hub, loop = Hub(self.pool), asyncio.new_event_loop()
        loop.run_until_complete(subscribe(hub))
        loop.close()
        hub.close()
        # What asyncio says of a task that is lost.
        logger = logging.getLogger("asyncio")
        self.addCleanup(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        del hub, loop
        gc.collect()
        self.assertEqual(told, [])

    def test_what_an_iterable_of_headers_raises(self) -> None:
        def headers() -> Iterator[tuple[str, str]]:
            yield "a", "b"
            raise ValueError("of the iterable")

        with self.assertRaisesRegex(ValueError, "of the iterable"):
            self.hub.publish("a", b"", headers())
        with self.assertRaisesRegex(ValueError, "of the iterable"):
            paceline.Response("", headers=headers())

    def test_what_changes_in_the_midst_of_many_is_heeded(self) -> None:
        counts: list[paceline.SubscriptionStats] = []

        def handle(message: Message) -> None:
            counts.append(subscription.stats())
            if len(counts) == 5:
                subscription.unsubscribe()

        gate = threading.Event()
        self.hub.subscribe("gate", lambda _: gate.wait())
        subscription = self.hub.subscribe("a", handle)
        self.hub.publish("gate")
        self.publish("a", range(12))
        gate.set()
        self.assertTrue(subscription.wait(60))
        self.assertEqual([each.delivered for each in counts], list(range(5)))
        self.assertEqual([each.running for each in counts], [12, 11, 10, 9, 8])
        stats = subscription.stats()
        self.assertEqual((stats.delivered, stats.discarded, stats.running), (5, 7, 0))

    def test_full_mailboxes_do_as_they_were_told(self) -> None:
        kept = {
            "reject": (["0", "1"], (0, 2)),
            "drop-newest": (["0", "1"], (2, 0)),
            "drop-oldest": (["2", "3"], (2, 0)),
            "conflate": (["3"], (3, 0)),
        }
        mailboxes = {name: self.hub.mailbox("k", capacity=2, overflow=name) for name in kept}
        self.publish("k", range(2))
        for payload in (b"2", b"3"):
            with self.assertRaisesRegex(paceline.MailboxFull, r"\(k\) is full \(2 messages\)") as raised:
                self.hub.publish("k", payload)
            receipt = raised.exception.receipt
            self.assertEqual(
                (receipt.matched, receipt.enqueued, receipt.dropped, receipt.rejected), (4, 2, 1, 1)
            )
        for name, (payloads, lost) in kept.items():
            came = mailboxes[name].pull(10, 0)
            self.assertEqual([each.payload.decode() for each in came], payloads, name)
            stats = mailboxes[name].stats()
            self.assertEqual((stats.dropped, stats.rejected), lost, name)
            self.assertTrue(stats.balances)
        self.publish("k", range(1))
        self.assertEqual(mailboxes["reject"].pull(1, 0)[0].lost_before, 2)

    def test_who_may_block_waits_for_room(self) -> None:
        mailbox = self.hub.mailbox("k", capacity=1, overflow="block", block=3600)
        self.publish("k", range(1))
        for publish in (self.hub.publish, self.hub.publisher("hasty", no_wait=True).publish):
            with self.assertRaises(paceline.MailboxFull) as raised:
                publish("k", b"1", **({"no_wait": True} if publish == self.hub.publish else {}))
            self.assertEqual(raised.exception.receipt.rejected, 1)
        publisher = self.hub.publisher("patient")
        receipts: list[paceline.Receipt] = []

        def wait() -> None:
            receipts.append(self.hub.publish("k", b"2"))
            receipts.append(publisher.publish("k", b"3"))
            receipts.append(publisher.publish_batch("k", [b"4", b"5"]))

        waiter = threading.Thread(target=wait)
        waiter.start()
        came: list[Message] = []
        while len(came) < 5:
            came += mailbox.pull()
        waiter.join()
        self.assertEqual([each.payload for each in came], [b"0", b"2", b"3", b"4", b"5"])
        self.assertEqual([each.enqueued for each in receipts], [1, 1, 2])
        self.assertEqual(came[1].lost_before, 2)
        hasty = self.hub.mailbox("h", capacity=1, overflow="block", block=0.001)
        with self.assertRaises(paceline.MailboxFull) as raised:
            self.hub.publish_batch("h", [b"", b""])
        self.assertEqual(raised.exception.receipt[1:5], (2, 1, 0, 1))
        self.assertEqual(hasty.stats().rejected, 1)

    def test_who_waits_for_room_gives_up_when_the_mailbox_says(self) -> None:
        mailbox = self.hub.mailbox("k", capacity=1, overflow="block", block=0.3)
        publisher = self.hub.publisher("patient")
        for publish in (self.hub.publish, publisher.publish):
            self.publish("k", range(1))
            begun = time.monotonic()
            with self.assertRaises(paceline.MailboxFull) as raised:
                publish("k", b"1")
            self.assertEqual(raised.exception.receipt.rejected, 1)
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            self.assertEqual(len(mailbox.pull(10, 0)), 1)
        self.assertEqual(mailbox.stats().rejected, 2)
        stats = publisher.stats()
        self.assertEqual((stats.published, stats.refused, stats.lost), (1, 0, 1))

    def test_publishers_that_compete_for_room_are_not_refused(self) -> None:
        subscription = self.hub.subscribe("k", lambda _: None, capacity=2)
        failed: list[BaseException] = []

        def publish() -> None:
            try:
                for _ in range(500):
                    self.hub.publish("k", b"x")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=publish) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.until(lambda: subscription.stats().delivered == 2000)
        self.assertEqual(subscription.stats().rejected, 0)

    def test_a_loop_of_a_hundred_thousand_loses_nothing(self) -> None:
        came = [0]

        def count(_: Message) -> None:
            came[0] += 1

        subscription, key = self.hub.subscribe("k", count), self.hub.key("k")
        for _ in range(100_000):
            self.hub.publish(key, b"x")
        self.until(lambda: came[0] == 100_000)
        stats = subscription.stats()
        self.assertEqual((stats.delivered, stats.dropped, stats.rejected), (100_000, 0, 0))

    def test_who_waits_for_room_is_interrupted_by_signals(self) -> None:
        class Interrupted(BaseException):
            pass

        def interrupt(*_: object) -> None:
            raise Interrupted

        mailbox = self.hub.mailbox("k", capacity=1, overflow="block")
        self.hub.publish("k")
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(Interrupted):
                self.hub.publish("k")
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(mailbox.stats().matched, 1)

    def test_who_makes_room_may_not_wait_for_it(self) -> None:
        refused: list[BaseException] = []

        def publish(_: Message) -> None:
            try:
                self.hub.publish("k")
            except paceline.MailboxFull as error:
                refused.append(error)

        full = self.hub.mailbox("k", capacity=1, overflow="block")
        self.hub.publish("k")
        self.hub.subscribe("handled", publish)
        self.hub.publish("handled")
        self.until(lambda: len(refused) == 1)

        async def loop() -> None:
            publisher = self.hub.publisher("patient")
            for call in (self.hub.publish, publisher.publish):
                with self.assertRaises(paceline.MailboxFull):
                    call("k", b"")
            with self.assertRaises(paceline.MailboxFull):
                publisher.publish_batch("k", [b""])

        asyncio.run(loop())
        del full

    def test_messages_together_are_for_everybody_or_nobody(self) -> None:
        debits, credits = self.hub.mailbox("debit"), self.hub.mailbox("credit.*", capacity=1)
        credit = self.hub.key("credit.eu")
        both = [("debit", b"17", {"trace": "1"}, "high"), (credit, bytearray(b"17"))]
        self.assertEqual(self.hub.publish_all(both), paceline.Receipt(2, 2, 2, 0, 0))
        with self.assertRaises(paceline.Full):
            self.hub.publish_all(both)
        (debit,) = debits.pull(9, 0)
        self.assertEqual((debit.payload, debit.header("trace"), debit.priority), (b"17", "1", "high"))
        self.assertEqual([each.key for each in credits.pull(9, 0)], ["credit.eu"])
        self.assertEqual(self.hub.publish_all([]).matched, 0)
        self.assertEqual(self.hub.publish_all(("debit", b"") for _ in range(3)).enqueued, 3)
        for wrong in ([("debit",)], ["debit"], [("debit", 5)], 5):
            with self.assertRaises(TypeError):
                self.hub.publish_all(wrong)  # type: ignore[arg-type]
        with self.assertRaises(paceline.InvalidError):
            self.hub.publish_all([("a..b", b"")])
        with self.assertRaisesRegex(paceline.InvalidError, "without . and >, which are of patterns"):
            self.hub.publish("orders*", b"")
        with self.assertRaisesRegex(
            paceline.InvalidError, 'a token of its own, as in "a.[*]", not "orders[*]"'
        ):
            self.hub.mailbox("orders*")
        with self.hub.mailbox("debit", group="g"), self.assertRaises(paceline.InvalidError):
            self.hub.publish_all(both)
        self.assertEqual(len(debits.pull(9, 0)), 3)

    def test_latencies_are_measured_on_request(self) -> None:
        plain, mailbox = self.hub.mailbox("k"), self.hub.mailbox("k", measured=True)
        handled: list[Message] = []
        subscription = self.hub.subscribe("k", handled.append, measured=True)
        self.publish("k", range(3))
        self.assertEqual(len(mailbox.pull(9, 0)), 3)
        self.until(lambda: len(handled) == 3)
        self.assertIsNone(plain.stats().latency)
        for stats in (mailbox.stats(), subscription.stats()):
            latency = stats.latency
            assert latency is not None
            self.assertEqual(latency.count, 3)
            spread = (latency.p50, latency.p90, latency.p99, latency.p999, latency.max)
            self.assertEqual(list(spread), sorted(spread))
            self.assertLessEqual(latency.mean, latency.max)

    def test_by_priority(self) -> None:
        mailbox = self.hub.mailbox("k", by_priority=True)
        for priority in ("low", "normal", "critical", "high"):
            self.hub.publish("k", priority.encode(), priority=priority)
        came = [(each.payload.decode(), each.priority) for each in mailbox.pull(10, 0)]
        self.assertEqual(came, [(each, each) for each in ("critical", "high", "normal", "low")])

    def test_a_mailbox_ends(self) -> None:
        mailbox, other = self.hub.mailbox("k"), self.hub.mailbox("k")
        self.publish("k", range(3))
        # Leaving a loop early loses nothing.
        for message in mailbox:
            break
        self.assertFalse(mailbox.unsubscribe("drain"))
        self.publish("k", range(3))
        self.assertEqual([each.payload for each in mailbox], [b"1", b"2"])
        with self.assertRaises(paceline.StaleError):
            mailbox.pull(1, 0)
        waiter = threading.Thread(target=lambda: [each for each in other])
        waiter.start()
        self.until(lambda: other.stats().delivered == 6)
        other.close()
        waiter.join(60)
        self.assertFalse(waiter.is_alive())
        with self.hub.mailbox("k") as third:
            self.publish("k", range(2))
        self.assertEqual(third.stats().discarded, 2)
        lost = weakref.ref(self.hub.mailbox("lost"))
        gc.collect()
        self.assertIsNone(lost())
        self.assertEqual(self.hub.patterns(), {})

    def test_a_lease_runs_out(self) -> None:
        mailbox = self.hub.mailbox("k", lease=0.001)
        self.until(lambda: self.hub.subscriber_count("k") == 0)
        with self.assertRaises(paceline.StaleError):
            mailbox.pull(1, 0)

    def test_handlers_keep_their_order_and_fail_alone(self) -> None:
        self.switch_often()
        hub = self.hub = self.open(threads=3)
        came: list[int] = []
        inside = threading.Lock()
        told: list[tuple[bytes, BaseException]] = []

        @hub.subscribe("n.*", capacity=4096)
        def in_order(message: Message) -> None:
            self.assertTrue(inside.acquire(blocking=False))
            came.append(int(message.payload))
            inside.release()

        def fails(message: Message) -> None:
            if message.payload.endswith(b"7"):
                raise KeyError(message.payload)

        other = hub.subscribe(
            "n.*",
            fails,
            capacity=4096,
            on_error=lambda *both: told.append((both[0].payload, both[1])),
            on_failure="discard",
            restarts=None,
        )
        self.publish("n.a", range(2000))
        for each in (in_order, other):
            each.unsubscribe("drain")
            self.assertTrue(each.wait(120))
        self.assertEqual(came, list(range(2000)))
        self.assertEqual((in_order.errors, in_order.last_error), (0, None))
        self.assertEqual((other.errors, len(told)), (200, 200))
        self.assertEqual((told[-1][0], told[-1][1]), (b"1997", other.last_error))
        stats = other.stats()
        self.assertEqual((stats.matched, stats.delivered, stats.failed), (2000, 1800, 200))
        self.assertTrue(stats.balances)
        self.assertTrue(hub.audit().balances)
        in_order(Message("n", b"5", (), 1, 1, 0, "normal"))
        self.assertEqual(came[-1], 5)

    def test_a_slow_handler_holds_up_itself_alone(self) -> None:
        hub = self.hub = self.open(threads=2)
        gate, entered, came = threading.Event(), threading.Event(), []
        self.addCleanup(gate.set)

        def slow(message: Message) -> None:
            entered.set()
            gate.wait(120)

        slowly = hub.subscribe("k", slow, capacity=2, overflow="drop-oldest")
        hub.subscribe("k", lambda message: came.append(message.payload))
        self.publish("k", range(1))
        self.assertTrue(entered.wait(120))
        self.publish("k", range(1, 11))
        self.until(lambda: len(came) == 11)
        stats = slowly.stats()
        self.assertEqual((stats.running, stats.waiting, stats.dropped), (1, 2, 8))
        self.assertFalse(slowly.unsubscribe())
        gate.set()
        self.assertTrue(slowly.wait(120))
        self.assertEqual(slowly.stats().discarded, 2)

    def test_ends_that_wait_and_ends_that_do_not(self) -> None:
        gate, entered = threading.Event(), threading.Event()
        self.addCleanup(gate.set)

        def slow(message: Message) -> None:
            entered.set()
            gate.wait(120)

        waited = self.hub.subscribe("a", slow)
        self.publish("a", range(1))
        self.assertTrue(entered.wait(120))
        ended: list[bool] = []
        waiter = threading.Thread(target=lambda: ended.append(waited.unsubscribe("sync")))
        waiter.start()
        # It has ended, but somebody is inside.
        self.until(lambda: self.hub.publish("a").matched == 0)
        self.assertEqual((ended, self.hub.subscriber_count("a")), ([], 1))
        gate.set()
        waiter.join(120)
        self.assertEqual(ended, [True])
        itself: list[Any] = []

        @self.hub.subscribe("b")
        def ends(message: Message) -> None:
            itself.append(ends.unsubscribe("sync"))

        self.publish("b", range(3))
        self.assertTrue(ends.wait(120))
        self.assertEqual(itself, [False])
        self.assertTrue(ends.stats().balances)

    def test_a_failure_without_a_hook_is_logged(self) -> None:
        def fails(message: Message) -> None:
            raise KeyError("on purpose")

        def hook(message: Message, error: BaseException) -> None:
            raise ValueError("the hook")

        with self.assertLogs("paceline", logging.ERROR) as logs:
            self.hub.subscribe("a", fails)
            self.hub.subscribe("b", fails, on_error=hook)
            self.publish("a", range(1))
            self.until(lambda: len(logs.output) == 1)
            self.publish("b", range(1))
            self.until(lambda: len(logs.output) == 2)
        self.assertIn("failed at a message of 'a'", logs.output[0])
        self.assertIn("hook of a handler", logs.output[1])

    def test_in_an_event_loop(self) -> None:
        came: list[str] = []

        async def serve() -> None:
            done = asyncio.Event()

            @self.hub.subscribe("a")
            async def handles(message: Message) -> None:
                if message.payload == b"1":
                    raise KeyError("on purpose")
                await asyncio.sleep(0)
                came.append(message.payload.decode())
                if message.payload == b"4":
                    done.set()

            async def reads(mailbox: paceline.Mailbox) -> list[bytes]:
                return [message.payload async for message in mailbox]

            mailbox = self.hub.mailbox("b")
            readers = [asyncio.ensure_future(reads(mailbox)) for _ in range(2)]
            await asyncio.sleep(0)
            publisher = threading.Thread(target=lambda: [self.publish(key, range(5)) for key in "ab"])
            with self.assertLogs("paceline", logging.ERROR):
                publisher.start()
                await done.wait()
            await asyncio.get_running_loop().run_in_executor(None, publisher.join)
            mailbox.unsubscribe("drain")
            one, two = await asyncio.gather(*readers)
            self.assertEqual(sorted(one + two), [b"0", b"1", b"2", b"3", b"4"])
            self.assertEqual(came, ["0", "2", "3", "4"])
            stats = handles.stats()
            self.assertEqual((stats.dead_lettered, stats.failed, stats.delivered), (1, 0, 4))
            self.subscription = handles

        asyncio.run(serve())
        # It has ended with its loop.
        self.assertTrue(self.subscription.wait(120))
        self.assertEqual(self.hub.subscriber_count("a"), 0)

        async def nothing(message: Message) -> None:
            pass

        with self.assertRaises(RuntimeError):
            self.hub.subscribe("a", nothing)

    def test_books_and_names(self) -> None:
        one, two = self.hub.mailbox("a.>"), self.hub.mailbox("a.b", capacity=1)
        self.publish("a.b", range(1))
        for _ in range(2):
            self.assertRaises(paceline.MailboxFull, self.hub.publish, "a.b")
        one.pull(1)
        audit = self.hub.audit()
        self.assertEqual((audit.published, audit.matched, audit.delivered), (3, 6, 1))
        self.assertEqual((audit.waiting, audit.rejected, audit.balances), (3, 2, True))
        self.assertEqual(self.hub.patterns(), {"a.>": 1, "a.b": 1})
        self.assertEqual((self.hub.subscriber_count("a.b"), self.hub.subscriber_count("b")), (2, 0))
        self.assertEqual((one.pattern, two.pattern), ("a.>", "a.b"))

    def test_what_is_wrong_is_said(self) -> None:
        hub, invalid = self.hub, paceline.InvalidError
        for wrong in ("", "a b", "a.*", "a\0b"):
            with self.assertRaises(invalid):
                hub.publish(wrong, b"")
            with self.assertRaises(invalid):
                hub.key(wrong)
        with self.assertRaises(invalid):
            hub.publish("a", b"", priority="urgent")
        with self.assertRaises(invalid):
            hub.publish("a", b"", [("x", "y")] * 65)
        for payload in ("text", 5):
            with self.assertRaises(TypeError):
                hub.publish("a", payload)
        with self.assertRaises(invalid):
            hub.publish(self.open().key("a"), b"")
        with self.assertRaises(invalid):
            self.open(max_payload=3).publish("a", b"four")
        for settings in ({"capacity": 0}, {"overflow": "wait"}, {"block": -1}, {"lease": 0.0001}):
            with self.assertRaises(invalid):
                hub.mailbox("a", **settings)
        with self.assertRaises(invalid):
            hub.mailbox("a").pull(0)
        with self.assertRaises(invalid):
            hub.mailbox("a").unsubscribe("now")
        with self.assertRaises(TypeError):
            hub.subscribe("a", 5)
        with self.assertRaises(invalid):
            Hub(self.pool, threads=0)
        for what in (hub, hub.key("a"), hub.mailbox("a"), hub.subscribe("a", print)):
            with self.assertRaises(TypeError):
                pickle.dumps(what)

    def test_a_hub_ends(self) -> None:
        hub = self.open(name="ending")
        subscription, mailbox, key = hub.subscribe("a", print), hub.mailbox("a"), hub.key("a")
        hub.close()
        hub.close()
        self.assertTrue(hub.closed and subscription.wait(120))
        self.assertEqual(list(mailbox), [])
        for call in (
            lambda: hub.publish(key, b""),
            lambda: hub.publish_batch(key, []),
            lambda: hub.mailbox("a"),
            lambda: hub.subscribe("a", print),
        ):
            with self.assertRaises(paceline.ShutDownError):
                call()
        lost = self.open_lost()
        self.until(lambda: not [each for each in threading.enumerate() if "lost-hub" in each.name])
        self.assertTrue(lost.wait(120))

    def open_lost(self) -> Any:
        hub = Hub(self.pool, name="lost-hub")
        served = hub.subscribe("a", lambda message: None)._served
        self.assertTrue([each for each in threading.enumerate() if "lost-hub" in each.name])
        return served.over

    def test_a_pull_inside_a_pull_is_refused(self) -> None:
        mailbox = self.hub.mailbox("a")
        self.publish("a", range(1))
        from paceline import _mailbox

        _mailbox.place().busy = True
        self.addCleanup(setattr, _mailbox.place(), "busy", False)
        with self.assertRaises(paceline.DeadlockError):
            mailbox.pull(1)

    def test_the_interpreter_ends_in_the_midst(self) -> None:
        script = """
            import threading, paceline
            pool = paceline.Pool(2)
            hub = paceline.Hub(pool, threads=2)
            seen = threading.Event()
            for pattern in ("a.*", "a.>", ">"):
                hub.subscribe(pattern, lambda message: seen.set(), overflow="drop-oldest")
            mailbox = hub.mailbox("a.b", overflow="drop-oldest")
            threading.Thread(target=lambda: [each for each in mailbox]).start()

            def publish():
                try:
                    while True:
                        hub.publish("a.b", b"x")
                except paceline.ShutDownError:
                    pass

            threading.Thread(target=publish).start()
            seen.wait()
            print("over")
        """
        for _ in range(5):
            told = run(script)
            self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "over\n", ""))

    def test_fork(self) -> None:
        script = """
            import os, paceline
            pool = paceline.Pool(1)
            hub = paceline.Hub(pool, histories=[paceline.History()])
            mailbox, key, replay = hub.mailbox("a"), hub.key("a"), hub.replay_mailbox(">")
            publisher, topic = hub.publisher("p"), hub.topic("a", paceline.Json())
            handler = hub.subscribe("b", lambda message: None)
            hub.publish("a", b"early")
            (message,) = mailbox.pull()
            refused = [
                lambda: hub.publish("a", b""),
                lambda: hub.publish(key, b""),
                lambda: hub.publish_batch(key, [b""]),
                lambda: hub.key("b"),
                lambda: hub.publisher("q"),
                lambda: hub.request("a"),
                lambda: hub.reply(message),
                lambda: hub.mailbox("a"),
                lambda: hub.subscribe("a", lambda message: None),
                lambda: hub.replay_mailbox(">"),
                lambda: hub.query(),
                lambda: hub.flush(),
                lambda: hub.history_stats(),
                lambda: hub.dead_letters(),
                lambda: hub.remove_dead_letters(),
                lambda: hub.redeliver(),
                lambda: hub.dead_letter_stats(),
                lambda: hub.subscriber_count("a"),
                lambda: hub.patterns(),
                lambda: hub.audit(),
                lambda: mailbox.pull(1, 0),
                lambda: mailbox.pull(1),
                lambda: mailbox.bury(message),
                lambda: mailbox.fileno(),
                lambda: mailbox.stats(),
                lambda: mailbox.close(),
                lambda: next(iter(mailbox)),
                lambda: replay.pull(1),
                lambda: publisher.publish("a"),
                lambda: publisher.publish_batch(key, [b""]),
                lambda: publisher.stats(),
                lambda: topic.publish(1),
                lambda: handler.stats(),
                lambda: handler.unsubscribe("sync"),
            ]
            def passes(call):
                try:
                    return call() or True
                except paceline.ForkedError:
                    return False

            def fork():
                child = os.fork()
                if child == 0:
                    # Neither do these wait for what is not there.
                    hub.close()
                    os._exit(sum(map(passes, refused)) + handler.wait(0))
                codes.append(os.waitpid(child, 0)[1])

            codes = []
            forks = [threading.Thread(target=fork) for _ in range(10)]
            for each in forks:
                each.start()
            for each in forks:
                each.join()
            print(codes == [0] * 10)
            hub.publish("a", b"x")
            print(mailbox.pull(1)[0].payload)
        """
        told = run(script.replace("import os,", "import os, threading,"))
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "True\nb'x'\n", ""))

    def test_drained_until_it_is_handled_or_time_is_over(self) -> None:
        gate, came = threading.Event(), threading.Event()
        self.addCleanup(gate.set)

        def slow(_: Message) -> None:
            came.set()
            gate.wait(120)

        held = self.hub.subscribe("a", slow)
        self.publish("a", range(5))
        came.wait()
        self.assertEqual(held.drain(0.001), 4)
        self.assertEqual(self.hub.publish("a").matched, 0)
        gate.set()
        self.assertTrue(held.wait())
        self.assertEqual((held.stats().delivered, held.stats().discarded), (1, 4))
        self.assertEqual(held.drain(), 0)

        # What is to be tried again is waited for, or left.
        tries: list[int] = []

        def second(message: Message) -> None:
            tries.append(message.attempt)
            if message.attempt == 1:
                raise ValueError("no")

        for delay, left in ((0.001, 0), (3600.0, 2)):
            retry = paceline.Retry.fixed(1, delay)
            again = self.hub.subscribe("b", second, retries=retry, on_error=lambda *_: None)
            tries.clear()
            self.publish("b", range(2))
            self.until(lambda: tries)
            self.assertEqual(again.drain(None if left == 0 else 0.01), left)
            self.assertEqual(tries, [1, 2, 1, 2] if left == 0 else [1])
            self.assertTrue(again.stats().balances)
        told: list[object] = []

        def inside(_: Message) -> None:
            try:
                told.append(ends.drain())
            except paceline.DeadlockError as error:
                told.append(error)

        ends = self.hub.subscribe("c", inside)
        self.publish("c", range(2))
        self.until(lambda: len(told) == 2)
        self.assertIsInstance(told[1], paceline.DeadlockError)

        async def looped() -> None:
            async def handler(_: Message) -> None:
                pass

            served = self.hub.subscribe("d", handler)
            with self.assertRaises(paceline.DeadlockError):
                served.drain()
            self.hub.publish("d")
            loop = asyncio.get_running_loop()
            self.assertEqual(await loop.run_in_executor(None, served.drain), 0)
            self.assertEqual(served.stats().delivered, 1)

        asyncio.run(looped())

    def test_what_a_shutdown_leaves(self) -> None:
        pool = Pool(1)
        hub = Hub(pool)
        mailbox = hub.mailbox("a")
        for _ in range(3):
            hub.publish("a")
        self.assertEqual(pool.shutdown().left, 3)
        self.assertEqual(mailbox.stats().waiting, 3)
        hub.close()


if __name__ == "__main__":
    unittest.main()
