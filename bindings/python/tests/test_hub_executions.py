"""``Hub``: where handlers run: serial, in the publisher's thread, several at once, on one strand."""

from __future__ import annotations

import asyncio
import gc
import threading
import unittest
import weakref
from typing import Any

import paceline
from paceline import Hub, Message, MessageFilter, Pool, Retry
from support import Case, run


class Executions(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(3)
        self.addCleanup(self.pool.shutdown)
        self.hub = self.open()

    def open(self, **settings: Any) -> Hub:
        hub = Hub(self.pool, **settings)
        self.addCleanup(hub.close)
        return hub

    def at_rest(self, subscription: paceline.Subscription) -> paceline.SubscriptionStats:
        def rests() -> bool:
            stats = subscription.stats()
            return stats.waiting == 0 and stats.running == 0

        self.until(rests)
        self.assertTrue(subscription.stats().balances)
        return subscription.stats()

    def test_inline_runs_in_the_publishers_thread_before_publishing_returns(self) -> None:
        came: list[tuple[int, Message]] = []

        @self.hub.subscribe("a.*", execution="inline", filter=MessageFilter.test(lambda _: True))
        def take(message: Message) -> None:
            came.append((threading.get_ident(), message))

        receipt = self.hub.publish("a.b", b"1", {"h": "v"}, "high")
        thread, message = came[0]
        self.assertEqual((receipt.matched, receipt.enqueued, thread), (1, 1, threading.get_ident()))
        self.assertEqual((message.key, message.payload, message.priority), ("a.b", b"1", "high"))
        self.assertEqual((message.headers, message.attempt), ((("h", "v"),), 1))
        self.hub.publish_batch("a.b", [b"2", b"3"])
        self.hub.publish_all([("a.c", b"4"), ("a.d", b"5")])
        self.hub.publisher("p").publish("a.e", b"6")
        self.assertEqual([each.payload for _, each in came], [b"%d" % n for n in range(1, 7)])
        stats = take.stats()
        self.assertEqual((stats.delivered, stats.running, stats.waiting), (6, 0, 0))
        self.assertEqual((take.pattern, take(message), take.errors), ("a.*", None, 0))
        self.assertTrue(take.unsubscribe("sync") and take.wait(120))
        self.assertEqual(self.hub.publish("a.b").matched, 0)
        self.assertEqual(take.stats().delivered, 7 - 1)

    def test_an_inline_handler_that_fails_harms_nobody(self) -> None:
        raised: list[BaseException] = [ValueError("no"), Exception()]
        told: list[Any] = []
        restarts: list[Any] = []

        def fail(message: Message) -> None:
            raise raised[-1]

        failing = self.hub.subscribe(
            "a",
            fail,
            execution="inline",
            on_error=lambda message, error: told.append((message.key, error)),
            on_restart=lambda error, count: restarts.append((error, count)),
            restarts=1,
            within=3600,
            suspension=None,
        )
        fine: list[Message] = []
        self.hub.subscribe("a", fine.append, execution="inline")
        self.assertEqual(self.hub.publish("a").enqueued, 2)
        raised.append(SystemExit("leave"))
        with self.assertRaisesRegex(SystemExit, "leave"):
            self.hub.publish("a")
        self.assertEqual(restarts, [(raised[-1], 1)])
        with self.assertRaisesRegex(SystemExit, "leave"):
            self.pool.submit(self.hub.publish, "a").result(120)
        self.assertTrue(failing.suspended and failing.stats().suspended)
        self.assertEqual(self.hub.publish("a").dead_lettered, 1)
        self.assertEqual(len(fine), 4)
        self.assertEqual([key for key, _ in told], ["a"] * 3)
        self.assertEqual((failing.errors, failing.last_error), (3, raised[-1]))
        reasons = [(letter.reason, letter.failure) for letter in self.hub.dead_letters()]
        self.assertEqual(reasons[0], ("failed", "Exception: "))
        self.assertEqual([reason for reason, _ in reasons[1:]], ["panicked", "panicked", "suspended"])
        events = [error.event for error in self.hub.errors()]
        self.assertEqual(events, ["subscription.restarted", "subscription.suspended"])
        self.assertTrue(failing.resume() and not failing.suspended)
        self.assertTrue(self.hub.audit().balances)

    def test_concurrent_handlers_run_at_once(self) -> None:
        all_in = threading.Barrier(3)
        counts = [0]

        def meet(message: Message) -> None:
            all_in.wait(120)
            counts[0] += 1

        together = self.hub.subscribe("a", meet, execution="concurrent", threads=3, capacity=8)
        for _ in range(6):
            self.hub.publish("a")
        stats = self.at_rest(together)
        self.assertEqual((stats.delivered, together.drain(120)), (6, 0))
        self.assertEqual((together.stats().delivered, together.stats().balances), (6, True))

    def test_the_strand_has_one_order_over_all_keys(self) -> None:
        came: list[tuple[str, bytes]] = []
        inside = [0]

        def take(name: str, message: Message) -> None:
            inside[0] += 1
            self.assertEqual(inside[0], 1)
            came.append((name, message.payload))
            inside[0] -= 1

        def subscribe(name: str, pattern: str) -> paceline.Subscription:
            return self.hub.subscribe(pattern, lambda message: take(name, message), execution="strand")

        subscriptions = [subscribe("a", "k.a"), subscribe("b", "k.b"), subscribe("all", "k.*")]

        def publish(number: int) -> None:
            for each in range(200):
                self.hub.publish(f"k.{'ab'[each % 2]}", b"%d.%d" % (number, each))

        publishers = [threading.Thread(target=publish, args=(number,)) for number in range(2)]
        for each in publishers:
            each.start()
        for each in publishers:
            each.join(120)
        self.until(lambda: len(came) == 800)
        of_all = [payload for name, payload in came if name == "all"]
        others = [payload for name, payload in came if name != "all"]
        self.assertEqual(of_all, others)
        self.assertEqual([self.at_rest(each).delivered for each in subscriptions], [200, 200, 400])
        self.assertEqual([each.errors for each in subscriptions], [0, 0, 0])

    def test_retries_are_those_of_the_subscription_or_of_the_exception(self) -> None:
        attempts: dict[bytes, list[int]] = {}
        asked: list[int] = []

        def fail(message: Message) -> None:
            attempts.setdefault(message.payload, []).append(message.attempt)
            if message.payload == b"permanent":
                raise paceline.PermanentFailure("never")
            if message.payload == b"later":
                raise paceline.RetryAfter(3600)
            if message.attempt < 3:
                raise ValueError

        def delay(attempt: int) -> float:
            asked.append(attempt)
            return 0.001

        trying = self.hub.subscribe(
            "a",
            fail,
            execution="concurrent",
            threads=2,
            retries=Retry.custom(2, delay),
            on_error=lambda *_: None,
            on_failure="discard",
        )
        for payload in (b"permanent", b"later", b"twice"):
            self.hub.publish("a", payload)
        self.until(lambda: trying.stats().delivered == 1 and trying.stats().running == 0)
        stats = trying.stats()
        self.assertEqual((stats.failed, stats.waiting, asked), (1, 1, [1, 2]))
        self.assertEqual(attempts, {b"permanent": [1], b"later": [1], b"twice": [1, 2, 3]})

    def test_ends(self) -> None:
        entered, gate = threading.Event(), threading.Event()
        self.addCleanup(gate.set)

        def slow(message: Message) -> None:
            entered.set()
            gate.wait(120)

        first = self.hub.subscribe("a", slow, execution="strand")
        for _ in range(3):
            self.hub.publish("a")
        self.assertTrue(entered.wait(120))
        self.assertFalse(first.unsubscribe())
        self.assertFalse(first.wait(0.01))
        stats = first.stats()
        self.assertEqual((stats.running, stats.discarded, stats.waiting), (1, 2, 0))
        gate.set()
        self.assertTrue(first.wait(120) and first.unsubscribe())
        stats = first.stats()
        self.assertEqual((stats.delivered, stats.discarded, stats.balances), (1, 2, True))
        drained = self.hub.subscribe("a", slow, execution="concurrent", threads=2)
        for _ in range(5):
            self.hub.publish("a")
        drained.unsubscribe("drain")
        self.assertTrue(drained.wait(120))
        self.assertEqual((drained.stats().delivered, drained.stats().balances), (5, True))
        inside: list[Any] = []

        def ends_itself(message: Message) -> None:
            inside.append(own.unsubscribe("sync"))
            try:
                own.drain()
            except paceline.DeadlockError as refused:
                inside.append(refused)
            self.hub.close()

        own = self.hub.subscribe("b", ends_itself, execution="strand")
        self.hub.publish("b")
        self.assertTrue(own.wait(120))
        self.assertEqual((inside[0], len(inside)), (False, 2))
        with self.assertRaises(paceline.ShutDownError):
            self.hub.subscribe("a", slow, execution="inline")

    def test_a_pool_that_drains_finishes_what_waits(self) -> None:
        with Pool(2) as pool, Hub(pool) as hub:
            strand = hub.subscribe("a", lambda message: None, execution="strand", capacity=2000)
            both = hub.subscribe("a", lambda message: None, execution="concurrent", threads=2)
            for _ in range(1000):
                hub.publish("a")
            self.assertTrue(pool.shutdown(120).drained)
            self.assertEqual((strand.stats().delivered, both.stats().delivered), (1000, 1000))

    def test_a_lost_hub_lets_its_handlers_go(self) -> None:
        hub = Hub(self.pool)

        class Handler:
            def __call__(self, message: Message) -> None:
                pass

        handler = Handler()
        for execution in ("inline", "strand", "concurrent"):
            hub.subscribe("a", handler, execution=execution)
        hub.publish("a")
        gone = weakref.ref(handler)
        del handler, hub

        def is_gone() -> bool:
            gc.collect()
            return gone() is None

        self.until(is_gone)

    def test_the_interpreter_ends_beside_handlers(self) -> None:
        script = """
import paceline, threading, time
pool = paceline.Pool(2)
hub = paceline.Hub(pool)
entered = threading.Event()
def busy(message):
    entered.set()
    time.sleep(0.05)
for execution in ("strand", "concurrent"):
    hub.subscribe("a.>", busy, execution=execution, threads=2, overflow="drop-oldest")
hub.subscribe("a.>", lambda message: None, execution="inline")
def publish():
    while True:
        try:
            hub.publish("a.b", b"x")
        except paceline.ShutDownError:
            return
threading.Thread(target=publish, daemon=True).start()
entered.wait(60)
print("over")
"""
        for _ in range(3):
            done = run(script)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "over\n", ""))

    def test_handlers_of_all_executions_have_one_supervisor(self) -> None:
        """Goal: who calls a handler makes no difference to its supervisor. Method: one of each crashes, for which all
        others are restarted before their next message; once too often, which suspends all, until one is resumed."""
        hub = self.open(histories=[paceline.History(">")])
        executions = ["serial", "inline", "concurrent", "strand", "replay"]
        crashes = 2 * len(executions)
        own: dict[str, Any] = {"restarts": crashes, "within": 3600, "suspension": None}
        supervisor = paceline.Supervisor("one-for-all", **own)
        told: dict[str, list[bool]] = {each: [] for each in executions}
        handlers: dict[str, Any] = {}

        def handle(message: Message) -> None:
            if message.payload == b"crash":
                raise BaseException("it is the test's")

        for name in executions:
            terms: dict[str, Any] = {
                "supervisor": supervisor,
                "on_error": lambda *_: None,
                "on_restart": lambda raised, _, name=name: told[name].append(raised is not None),
            }
            if name == "replay":
                handlers[name] = hub.replay(name, handle, **terms)
            else:
                handlers[name] = hub.subscribe(name, handle, execution=name, **terms)

        def dealt(name: str) -> int:
            stats = handlers[name].stats()
            return int(stats.delivered + stats.dead_lettered)

        def send(name: str, payload: bytes) -> None:
            before = dealt(name)
            hub.publish(name, payload)
            self.until(lambda: dealt(name) > before)

        for number, name in enumerate(executions, 1):
            send(name, b"crash")
            for other in executions:
                send(other, b"fine")
            self.assertEqual({each: len(told[each]) for each in executions}, dict.fromkeys(told, number))
            self.assertTrue(told[name][-1])
        self.assertEqual([sum(each) for each in told.values()], [1] * len(executions))
        for _ in range(crashes - len(executions)):
            self.assertFalse(supervisor.suspended)
            send("inline", b"crash")
        hub.publish("concurrent", b"crash")
        self.until(lambda: all(each.suspended for each in handlers.values()))
        self.assertTrue(supervisor.suspended)
        late = hub.subscribe("late", handle, execution="strand", supervisor=supervisor)
        self.assertTrue(late.suspended)
        self.assertTrue(handlers["replay"].resume())
        self.assertFalse(supervisor.suspended or late.suspended)
        self.assertFalse(any(each.suspended for each in handlers.values()))
        for name in executions:
            restarts = len(told[name])
            send(name, b"fine")
            self.assertEqual(told[name][restarts:], [False])
            self.assertEqual(handlers[name].stats().restarts, len(told[name]))
        self.assertTrue(hub.audit().balances)

    def test_factories_make_handlers_of_all_executions(self) -> None:
        """A handler that has crashed is called no more; a factory that fails is a restart more."""
        for execution in ("inline", "concurrent", "strand"):
            made: list[set[bytes]] = []
            fails = False

            def factory() -> Any:
                if fails:
                    raise GeneratorExit
                seen: set[bytes] = set()
                made.append(seen)

                def handle(message: Message) -> None:
                    self.assertNotIn(b"crash", seen)
                    seen.add(message.payload)
                    if message.payload == b"crash":
                        raise BaseException("it is the test's")

                return handle

            terms: dict[str, Any] = {"on_error": lambda *_: None, "restarts": 3, "within": 3600}
            made_anew = self.hub.subscribe(
                "f", factory=factory, execution=execution, threads=1, suspension=None, **terms
            )
            for payload in (b"1", b"crash", b"2", b"crash"):
                self.hub.publish("f", payload)
            stats = self.at_rest(made_anew)
            self.assertEqual(made, [{b"1", b"crash"}, {b"2", b"crash"}])
            self.assertEqual((stats.restarts, stats.dead_lettered, stats.failed), (2, 2, 0))
            fails = True
            self.hub.publish("f", b"3")
            stats = self.at_rest(made_anew)
            self.assertEqual((stats.restarts, stats.suspended), (3, False))
            self.assertIs(type(made_anew.last_error), GeneratorExit)
            fails = False
            self.hub.publish("f", b"4")
            self.at_rest(made_anew)
            self.assertEqual(made[2:], [{b"4"}])
            fails = True
            self.hub.publish("f", b"crash")
            self.at_rest(made_anew)
            self.assertTrue(made_anew.suspended)
            made_anew.unsubscribe("sync")

    def test_on_restart_may_return_the_next_handler(self) -> None:
        came: list[bytes] = []
        for execution in ("inline", "concurrent", "strand"):

            def crash(message: Message) -> None:
                raise BaseException("it is the test's")

            hooked = self.hub.subscribe(
                "r",
                crash,
                execution=execution,
                on_error=lambda *_: None,
                on_restart=lambda *_: lambda message: came.append(message.payload),
            )
            self.hub.publish("r", b"crash")
            self.at_rest(hooked)
            self.hub.publish("r", execution.encode())
            self.at_rest(hooked)
            hooked.unsubscribe("sync")
        self.assertEqual(came, [b"inline", b"concurrent", b"strand"])

    def test_what_is_wrong_is_said(self) -> None:
        hub = self.hub
        settings: dict[str, Any]
        for settings in (
            {"execution": "parallel"},
            {"execution": "concurrent", "threads": 0},
            {"execution": "concurrent", "threads": 1025},
            {"execution": "inline", "batch": 5},
            {"execution": "inline", "retries": 1},
            {"execution": "strand", "retries": 1},
            {"execution": "strand", "group": "g"},
            {"execution": "concurrent", "group": "g", "balance": "by-key"},
        ):
            with self.assertRaises(paceline.InvalidError, msg=str(settings)):
                hub.subscribe("a", print, **settings)

        async def awaited(message: Message) -> None:
            raise AssertionError

        async def main() -> None:
            for execution in ("inline", "concurrent", "strand"):
                with self.assertRaises(TypeError):
                    hub.subscribe("a", awaited, execution=execution)

        asyncio.run(main())
        self.assertEqual(hub.subscriber_count("a"), 0)


if __name__ == "__main__":
    unittest.main()
