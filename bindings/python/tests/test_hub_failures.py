"""``Hub``: handlers that fail, dead letters, filters, groups, publishers with limits, requests."""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import logging
import pickle
import threading
import unittest
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import paceline
from paceline import Hub, InvalidError, Message, MessageFilter, Pool, Rate, Retry, Supervisor
from support import Case, run


@dataclass(frozen=True)
class Frozen(Exception):
    """Refuses attributes."""

    code: int = 1


class Unshown(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Closed(Exception):
    """Has no attributes that could be read."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


class Bottom(BaseException):
    """Is no ``Exception``."""


class Broken(logging.Handler):
    """A handler of ``logging`` that fails."""

    def emit(self, record: logging.LogRecord) -> None:
        raise Bottom("no log")


#: What code of the user's may raise.
ODD: list[Callable[[], BaseException]] = [
    lambda: ValueError("plain"),
    Frozen,
    Unshown,
    Closed,
    Bottom,
    StopIteration,
    GeneratorExit,
    SystemExit,
    KeyboardInterrupt,
    asyncio.CancelledError,
]


class Odd(Case):
    """Whatever a function of the user's raises, others go on, and so does the thread."""

    def setUp(self) -> None:
        super().setUp()
        pool = Pool(1)
        self.addCleanup(pool.shutdown)
        self.hub = Hub(pool)
        self.addCleanup(self.hub.close)
        self.came: list[bytes] = []
        self.hub.subscribe("other", lambda message: self.came.append(message.payload))
        logger = logging.getLogger("paceline")
        self.addCleanup(setattr, logger, "propagate", logger.propagate)
        logger.propagate = False
        for handler in (logging.NullHandler(), Broken()):
            logger.addHandler(handler)
            self.addCleanup(logger.removeHandler, handler)

    def goes_on(self) -> None:
        before = len(self.came)
        self.hub.publish("other", b"still here")
        self.until(lambda: len(self.came) > before)
        self.assertFalse(self.hub.closed)

    def test_handlers_and_their_hooks(self) -> None:
        for make in ODD:
            raised = make()

            def fail(*_: object) -> Any:
                raise raised

            for terms in (
                {},
                {"on_error": fail},
                {"on_restart": fail},
                {"on_failure": "discard"},
                {"retries": Retry.fixed(1, 0)},
                {"retries": Retry.custom(1, fail)},
                {"batch": 4},
            ):
                with self.subTest(type(raised).__name__, terms=terms):
                    subscription = self.hub.subscribe("a", fail, restarts=None, **terms)
                    self.hub.publish("a", b"1")
                    self.hub.publish("a", b"2")
                    self.until(lambda: sum(self.ended(subscription)) == 2)
                    letters = self.hub.remove_dead_letters()
                    self.assertEqual(len(letters), 0 if "on_failure" in terms else 2)
                    for letter in letters:
                        self.assertTrue(letter.failure.startswith(type(raised).__name__), letter)
                    self.assertIs(subscription.last_error, raised)
                    self.goes_on()
                    subscription.unsubscribe("sync")

    def ended(self, subscription: Any) -> tuple[int, int]:
        stats = subscription.stats()
        return stats.dead_lettered, stats.failed

    def test_handlers_of_a_loop(self) -> None:
        async def main() -> None:
            for make in ODD:
                raised = make()
                if issubclass(type(raised), (KeyboardInterrupt, SystemExit)):
                    # They end the loop, which is the user's.
                    continue
                if type(raised) is asyncio.CancelledError and not hasattr(asyncio.Task, "cancelling"):
                    continue

                async def fail(*_: object) -> Any:
                    raise raised

                subscription = self.hub.subscribe("a", fail, restarts=None)
                self.hub.publish("a", b"1")
                self.hub.publish("a", b"2")
                for _ in range(10_000):
                    if sum(self.ended(subscription)) == 2:
                        break
                    await asyncio.sleep(0.001)
                # A coroutine that raises StopIteration raises RuntimeError instead.
                self.assertEqual(self.ended(subscription), (2, 0), type(raised))
                subscription.unsubscribe()

        asyncio.run(main())
        self.goes_on()

    def test_what_ends_the_program_ends_a_loop(self) -> None:
        """Its thread is the user's; the message has become a dead letter before."""
        for kind in (KeyboardInterrupt, SystemExit):

            def leave(*_: object) -> None:
                raise kind("now")

            async def main() -> None:
                async def fail(_: Message) -> None:
                    raise KeyError

                self.hub.subscribe("a", fail, on_error=leave)
                self.hub.publish("a")
                await asyncio.sleep(60)

            with self.assertRaises(kind):
                asyncio.run(main())
            self.assertEqual(len(self.hub.remove_dead_letters()), 1)
            self.goes_on()

    def test_functions_whose_call_runs_nothing(self) -> None:
        """They would be dealt with before they have run, so they are refused."""

        async def coroutine(*_: object) -> None:
            pass

        def generator(*_: object) -> Iterator[None]:
            yield

        async def both(*_: object) -> AsyncIterator[None]:
            yield

        class Called:
            async def __call__(self, *_: object) -> None:
                pass

        hub, pool, topic = self.hub, self.hub._core.pool, self.hub.topic("a", paceline.Json())
        for function in (coroutine, generator, both, Called(), functools.partial(coroutine, 1)):
            for call in (
                lambda: topic.subscribe(function),
                lambda: hub.subscribe("a", abs, on_error=function),
                lambda: hub.subscribe("a", abs, on_restart=function),
                lambda: MessageFilter.test(function),
                lambda: paceline.Ring(pool, function),
                lambda: paceline.Udp(pool, function),
                lambda: paceline.Udp(pool, abs, on_error=function),
                lambda: paceline.Log(callback=function),
                lambda: paceline.Signals(on_signal=function),
                lambda: paceline.Service(pool, function),
            ):
                with self.assertRaisesRegex(TypeError, "allowed: no coroutine or generator function"):
                    call()
        for function in (generator, both):
            with self.assertRaisesRegex(TypeError, "generator function"):
                hub.subscribe("a", function)
        # One that is served by a loop must have one.
        with self.assertRaises(RuntimeError):
            hub.subscribe("a", Called())

        async def served() -> list[int]:
            came: list[int] = []

            class Counts:
                async def __call__(self, message: Message) -> None:
                    came.append(message.sequence)

            hub.subscribe("a", Counts())
            hub.publish("a")
            for _ in range(10_000):
                if came:
                    break
                await asyncio.sleep(0.001)
            return came

        self.assertEqual(len(asyncio.run(served())), 1)

    def test_threads_that_cannot_be_made(self) -> None:
        """The hub goes on with what it has, and a server that has none is not there."""
        pool = self.hub._core.pool
        hub = Hub(pool, threads=2)
        self.addCleanup(hub.close)
        box = hub.mailbox("a")
        start, allowed = threading.Thread.start, 0

        def refuse(thread: threading.Thread) -> None:
            nonlocal allowed
            if allowed == 0:
                raise RuntimeError("can't start new thread")
            allowed -= 1
            start(thread)

        with mock.patch.object(threading.Thread, "start", refuse):
            with self.assertRaisesRegex(RuntimeError, "can't start"):
                hub.subscribe("a", abs)
            for make in (
                lambda: paceline.Server(pool, "127.0.0.1:0", paceline.ConnHandler, threads=2),
                lambda: paceline.Http(pool, threads=2).start(),
                lambda: paceline.Udp(pool, abs, "127.0.0.1:0", threads=2),
            ):
                for allowed in (0, 1):
                    with self.assertRaisesRegex(RuntimeError, "can't start"):
                        make()
            allowed = 1
            came: list[bytes] = []
            hub.subscribe("a", lambda message: came.append(message.payload))
        hub.publish("a", b"1")
        self.until(lambda: came == [b"1"])
        self.assertEqual([each.payload for each in box.pull()], [b"1"])
        hub.close()

    def test_what_nothing_else_contains(self) -> None:
        """Even that is no end of the thread, and is told once."""
        with mock.patch.object(self.hub._core, "due", side_effect=MemoryError) as due:
            self.hub.publish("other", b"x")
            self.until(lambda: due.call_count > 1)
        self.goes_on()
        with mock.patch("paceline._subscriptions.Served.turn", side_effect=MemoryError) as turn:
            self.hub.publish("other", b"y")
            self.until(lambda: turn.call_count > 1)
        self.until(lambda: self.came[-1] == b"y")
        self.assertGreater(self.hub._core.failures, 2)
        self.goes_on()

    def test_delays_that_are_none(self) -> None:
        """Those that are too long, or no time at all: there is no other attempt, and nobody else notices."""

        def after(seconds: Any) -> Callable[[Message], None]:
            def fail(_: Message) -> None:
                raise paceline.RetryAfter(seconds)

            return fail

        def simply(_: Message) -> None:
            raise KeyError

        for delay in (float("inf"), float("nan"), -1.0, 3.1e9, 10**400, "1", None, object()):
            for handler, retry in (
                (after(delay), Retry.fixed(3, 0.0)),
                (simply, Retry.custom(3, lambda _: delay)),
            ):
                with self.subTest(delay=delay):
                    subscription = self.hub.subscribe("a", handler, retries=retry)
                    self.hub.publish("a")
                    self.until(lambda: self.ended(subscription) == (1, 0))
                    self.goes_on()
                    subscription.unsubscribe("sync")

    def test_delays_beyond_what_epoll_can_wait(self) -> None:
        month = 30 * 86400.0

        def later(_: Message) -> None:
            raise paceline.RetryAfter(month)

        def simply(_: Message) -> None:
            raise KeyError

        for delay in (month, 3e9):
            for handler, retry in (
                (later, Retry.fixed(3, 0.0)),
                (simply, Retry.fixed(3, delay)),
                (simply, Retry.linear(3, delay)),
                (simply, Retry.custom(3, lambda _: delay)),
            ):
                subscription = self.hub.subscribe("a", handler, retries=retry, on_error=lambda *_: None)
                self.hub.publish("a")
                self.until(lambda: subscription.errors == 1)
                self.goes_on()
                self.assertEqual((self.ended(subscription), subscription.stats().running), ((0, 0), 1))
                subscription.unsubscribe("sync")
                self.assertTrue(subscription.wait(60))


class Broken(BaseException):
    """What is no way to fail at a message."""


class Failures(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = self.open(threads=2)
        self.failing, self.crashes = True, False
        self.came: list[tuple[str, int]] = []

    def open(self, **settings: Any) -> Hub:
        hub = Hub(self.pool, **settings)
        self.addCleanup(hub.close)
        return hub

    def handle(self, message: Message) -> None:
        self.came.append((message.payload.decode(), message.attempt))
        if self.failing and self.crashes:
            raise Broken("not yet")
        if self.failing:
            raise KeyError("not yet")

    def nothing(self, *_: object) -> None:
        pass

    def at_rest(self, subscription: Any) -> Any:
        def rests() -> bool:
            stats = subscription.stats()
            return stats.waiting == 0 and stats.running == 0

        self.until(rests)
        stats = subscription.stats()
        self.assertTrue(stats.balances and self.hub.audit().balances)
        return stats

    def test_tried_again_buried_and_delivered_once_more(self) -> None:
        told: list[Any] = []
        subscription = self.hub.subscribe(
            "a.*",
            self.handle,
            on_error=self.nothing,
            retries=Retry.fixed(2, 0.001),
            on_restart=lambda error, count: told.append((str(error), count)),
        )
        self.hub.publish("a.b", b"1", {"x": "y"})
        self.hub.publish("a.b", b"2")
        stats = self.at_rest(subscription)
        self.assertEqual(self.came, [("1", 1), ("1", 2), ("1", 3), ("2", 1), ("2", 2), ("2", 3)])
        self.assertEqual((stats.dead_lettered, stats.failed, stats.restarts), (2, 0, 0))
        self.assertEqual((told, subscription.errors), ([], 6))
        first, second = self.hub.dead_letters()
        self.assertEqual((first.message.payload, first.message.headers), (b"1", (("x", "y"),)))
        self.assertEqual((first.message.sequence, first.message.key), (1, "a.b"))
        self.assertEqual((first.reason, first.failure), ("failed", "KeyError: 'not yet'"))
        self.assertEqual((first.attempts, first.pattern), (3, "a.*"))
        self.assertEqual((first.subscription, second.subscription), (stats.number, stats.number))
        self.assertGreaterEqual(second.died_ns, first.message.time_ns)
        for conditions, count in (
            ({"pattern": "*.b"}, 2),
            ({"pattern": "b"}, 0),
            ({"reason": "suspended"}, 0),
            ({"subscription": stats.number + 1}, 0),
            ({"numbers": (first.number, first.number)}, 1),
            ({"numbers": (0, 0)}, 0),
            ({"numbers": (2, 1)}, 0),
            ({"since_ns": second.died_ns + 1}, 0),
            ({"limit": 1}, 1),
            ({"limit": 0}, 0),
        ):
            self.assertEqual(len(self.hub.dead_letters(**conditions)), count, conditions)
        self.assertEqual(self.hub.remove_dead_letters(limit=1), [first])
        self.failing = False
        self.assertEqual(self.hub.redeliver(reason="failed"), paceline.Redelivered(1, 0, 0))
        self.assertEqual(self.hub.redeliver(limit=0), paceline.Redelivered(0, 0, 0))
        self.until(lambda: self.came[-1] == ("2", 1))
        stats = self.at_rest(subscription)
        self.assertEqual((stats.delivered, stats.redelivered), (1, 1))
        self.assertEqual(self.hub.dead_letter_stats(), paceline.DeadLetterStats(2, 0, 0, 2))

    def test_a_retry_holds_up_nobody_else(self) -> None:
        hub = self.hub = self.open(threads=1)
        came: list[bytes] = []
        slow = hub.subscribe(
            "a", self.handle, on_error=self.nothing, retries=Retry.fixed(9, 3600.0), capacity=8
        )
        hub.subscribe("b", lambda message: came.append(message.payload))
        hub.publish("a", b"1")
        self.until(lambda: len(self.came) == 1)
        hub.publish("a", b"2")
        for number in range(100):
            hub.publish("b", b"%d" % number)
        self.until(lambda: len(came) == 100)
        self.assertEqual(len(self.came), 1)
        self.assertEqual((slow.stats().running, slow.stats().waiting), (1, 1))
        slow.unsubscribe()
        self.assertTrue(slow.wait(120))
        stats = self.at_rest(slow)
        self.assertEqual((stats.discarded, len(self.came)), (2, 1))
        # And the end of a hub does not wait for one.
        hub.subscribe("c", self.handle, on_error=self.nothing, retries=Retry.fixed(9, 3600.0))
        hub.publish("c", b"3")
        self.until(lambda: len(self.came) == 2)
        hub.close()

    def test_no_other_attempt_helps_or_not_now(self) -> None:
        def permanent(message: Message) -> None:
            self.came.append((message.key, message.attempt))
            if message.key == "a":
                raise paceline.PermanentFailure("never")
            if message.attempt == 1:
                raise paceline.RetryAfter(0.001)

        again = Retry.fixed(5, 3600.0)
        for key in ("a", "b"):
            self.hub.subscribe(key, permanent, on_error=self.nothing, retries=again)
            self.hub.publish(key)
        self.until(lambda: len(self.came) == 3)
        self.assertEqual(sorted(self.came), [("a", 1), ("b", 1), ("b", 2)])
        self.until(lambda: len(self.hub.dead_letters()) == 1)
        self.assertEqual(self.hub.dead_letters()[0].failure, "PermanentFailure: never")

    def test_bad_messages_suspend_nobody(self) -> None:
        values: list[Any] = []
        plain = self.hub.subscribe("plain", self.handle, on_error=self.nothing)
        topic: paceline.Topic[Any] = self.hub.topic("typed", paceline.Json())
        typed = topic.subscribe(lambda value, message: values.append(value), on_error=self.nothing)
        for _ in range(50):
            self.hub.publish("plain", b"bad")
            self.hub.publish("typed", b"{")
            self.hub.publish("typed", b"1")
        for subscription in (plain, typed):
            stats = self.at_rest(subscription)
            self.assertEqual((stats.dead_lettered, stats.restarts, stats.suspended), (50, 0, False))
        self.assertEqual(values, [1] * 50)

    def test_a_handler_that_was_suspended_gets_messages_again_by_itself(self) -> None:
        self.crashes = True
        times = {"within": 3600, "suspension": 0.02, "longest_suspension": 0.1}
        with self.assertLogs("paceline") as logs:
            subscription = self.hub.subscribe(
                "a", self.handle, restarts=0, on_error=self.nothing, **times
            )
            self.hub.publish("a", b"crash")
            self.at_rest(subscription)
            self.until(lambda: not subscription.suspended)
            self.hub.publish("a", b"crash")
            self.at_rest(subscription)
        self.assertIn(
            "handler of a has crashed too often, and is suspended until 0.02 seconds", logs.output[0]
        )
        self.assertIn("0.04 seconds", logs.output[1])
        self.failing = False

        def handled() -> bool:
            self.hub.publish("a", b"good")
            return subscription.stats().delivered > 0

        self.until(handled)
        self.assertFalse(subscription.suspended or subscription.stats().suspended)

    def test_suspended_and_resumed(self) -> None:
        self.crashes = True
        told: list[Any] = []
        subscription = self.hub.subscribe(
            "a",
            self.handle,
            on_error=self.nothing,
            on_failure="discard",
            restarts=1,
            within=3600,
            suspension=None,
            on_restart=lambda error, count: told.append((error is None, count)),
        )
        self.assertFalse(subscription.resume())
        for number in range(4):
            self.hub.publish("a", b"%d" % number)
        stats = self.at_rest(subscription)
        self.assertTrue(subscription.suspended and stats.suspended)
        self.assertEqual((stats.failed, stats.dead_lettered), (1, 3))
        letters = self.hub.dead_letters()
        self.assertEqual([each.reason for each in letters], ["failed", "suspended", "suspended"])
        self.assertEqual([each.attempts for each in letters], [1, 0, 0])
        self.failing = False
        self.assertTrue(subscription.resume())
        self.assertFalse(subscription.suspended)
        self.assertEqual(self.hub.redeliver().enqueued, 3)
        self.until(lambda: subscription.stats().delivered == 3)
        self.assertEqual(told, [(False, 1), (True, 2)])

    def test_supervised_together(self) -> None:
        self.crashes = True
        supervisor = Supervisor("one-for-all", restarts=1, within=3600, suspension=None)
        told: list[Any] = []
        failing = self.hub.subscribe("a", self.handle, on_error=self.nothing, supervisor=supervisor)
        fine = self.hub.subscribe(
            "b", self.nothing, supervisor=supervisor, on_restart=lambda *both: told.append(both)
        )
        self.hub.publish("a")
        self.at_rest(failing)
        self.hub.publish("b")
        self.at_rest(fine)
        self.assertEqual((told, supervisor.suspended), ([(None, 1)], False))
        self.hub.publish("a")
        self.until(lambda: fine.suspended)
        self.assertTrue(supervisor.suspended and failing.suspended)
        late = self.hub.subscribe("c", self.nothing, supervisor=supervisor)
        self.assertTrue(late.suspended)
        self.assertTrue(fine.resume())
        self.assertFalse(late.suspended or failing.suspended or supervisor.suspended)

    def made(self, number: int) -> Any:
        """A handler that crashes at "crash", and is not called again then."""
        seen: list[bytes] = []

        def handle(message: Message) -> None:
            self.assertNotIn(b"crash", seen)
            seen.append(message.payload)
            if message.payload == b"crash":
                raise SystemExit("broken")
            if message.payload == b"fail":
                raise ValueError("no")
            self.came.append((number, len(seen)))

        return handle

    def dealt(self, subscription: Any) -> int:
        stats = subscription.stats()
        return int(stats.delivered + stats.failed + stats.dead_lettered)

    def publish_each(self, subscription: Any, key: str, *payloads: str) -> None:
        """One after the other, so that each is dealt with before the next."""
        for payload in payloads:
            before = self.dealt(subscription)
            self.hub.publish(key, payload.encode())
            self.until(lambda: self.dealt(subscription) > before)

    def test_a_factory_makes_handlers_anew(self) -> None:
        numbers = itertools.count(1)
        fails: list[BaseException] = []

        def factory() -> Any:
            number = next(numbers)
            if fails:
                raise fails[0]
            return self.made(number)

        for batch in (None, 1):
            with self.subTest(batch=batch):
                numbers = itertools.count(1)
                self.came.clear()
                key = f"key {batch}".replace(" ", ".")

                def whole(made: Any) -> Any:
                    return lambda batch: [made(message) for message in batch] and None

                make = factory if batch is None else lambda: whole(factory())
                made = self.hub.subscribe(
                    key, factory=make, batch=batch, restarts=None, on_error=self.nothing
                )
                self.publish_each(made, key, "good", "fail", "good", "crash", "good", "good")
                self.assertEqual(self.came, [(1, 1), (1, 3), (2, 1), (2, 2)])
                self.assertEqual(made.stats().restarts, 1)
                # A factory that fails is a failed restart: the message is dead, and the next has it called again.
                for raised in (ValueError("parts"), SystemExit("parts")):
                    restarts = made.stats().restarts
                    fails.append(raised)
                    self.publish_each(made, key, "crash", "lost", "lost")
                    self.assertEqual(made.stats().restarts, restarts + 3)
                    self.assertIs(made.last_error, raised)
                    fails.clear()
                    self.came.clear()
                    self.publish_each(made, key, "good")
                    self.assertEqual([seen for _, seen in self.came], [1])
                made.unsubscribe("sync")

    def test_too_many_failed_restarts_suspend(self) -> None:
        fails: list[bool] = []

        def factory() -> Any:
            return None if fails else self.made(1)

        made = self.hub.subscribe(
            "a", factory=factory, restarts=2, suspension=None, on_error=self.nothing
        )
        fails.append(True)
        self.publish_each(made, "a", "crash", "lost", "lost")
        self.assertTrue(made.suspended)
        fails.clear()
        self.assertTrue(made.resume())
        self.publish_each(made, "a", "good")
        self.assertEqual(self.came, [(1, 1)])

    def test_on_restart_may_return_a_handler(self) -> None:
        returns: list[Any] = [self.made(2), None, 5, self.made(3)]

        def hook(error: object, count: int) -> Any:
            return returns.pop(0)

        # The same goes on where it returns none.
        seen: list[bytes] = []

        def first(message: Message) -> None:
            seen.append(message.payload)
            self.made(1)(message)

        sub = self.hub.subscribe("a", first, on_restart=hook, restarts=None, on_error=self.nothing)
        self.publish_each(sub, "a", "good", "crash", "good")
        self.assertEqual(self.came, [(1, 1), (2, 1)])
        self.assertEqual(seen, [b"good", b"crash"])
        self.came.clear()
        other = self.hub.subscribe("b", first, on_restart=hook, restarts=None, on_error=self.nothing)
        with self.assertLogs("paceline") as logs:
            self.publish_each(other, "b", "crash", "good", "crash", "good", "crash", "good")
        self.assertEqual([number for number, _ in self.came], [1, 1, 3])
        self.assertIn("on_restart has returned 5, which is no handler", logs.output[0])

    def test_a_factory_of_a_topic(self) -> None:
        topic: paceline.Topic[Any] = self.hub.topic("a", paceline.Json())
        numbers = itertools.count(1)

        def factory() -> Any:
            number, seen = next(numbers), itertools.count(1)

            def handle(value: Any, message: Message) -> None:
                if value == "crash":
                    raise SystemExit("broken")
                self.came.append((number, next(seen), value))

            return handle

        made = topic.subscribe(factory=factory, restarts=None, on_error=self.nothing)
        self.publish_each(made, "a", "1", '"crash"', "2", "3")
        self.assertEqual(self.came, [(1, 1, 1), (2, 1, 2), (2, 2, 3)])
        made.unsubscribe("sync")
        self.came.clear()
        first, second = factory(), factory()
        hooks: dict[str, Any] = {"on_restart": lambda *_: second, "on_error": self.nothing}
        other = topic.subscribe(first, **hooks)
        self.publish_each(other, "a", "1", '"crash"', "2")
        self.assertEqual(self.came, [(3, 1, 1), (4, 1, 2)])
        with self.assertRaisesRegex(InvalidError, "beside a factory"):
            topic.subscribe(first, factory=factory)
        for wrong in ({}, {"factory": 5}, {"handler": first, "on_restart": 5}):
            with self.assertRaises(TypeError):
                topic.subscribe(**wrong)

    def test_what_is_no_factory(self) -> None:
        with self.assertRaisesRegex(InvalidError, "handler is given beside a factory"):
            self.hub.subscribe("a", self.nothing, factory=lambda: self.nothing)
        for wrong in (5, self.serve_async):
            with self.assertRaises(TypeError):
                self.hub.subscribe("a", factory=wrong)
        with self.assertRaises(TypeError):
            self.hub.subscribe("a", factory=lambda: 5)
        with self.assertRaisesRegex(KeyError, "parts"):
            self.hub.subscribe("a", factory=lambda: {}["parts"])
        self.assertEqual(self.hub.subscriber_count("a"), 0)

    async def serve_async(self) -> None:
        """No factory."""

    def test_a_factory_in_an_event_loop(self) -> None:
        async def serve() -> None:
            numbers = itertools.count(1)

            def factory() -> Any:
                number = next(numbers)
                if number == 3:
                    # Handlers of a loop are coroutines.
                    return self.nothing

                async def handles(message: Message) -> None:
                    self.came.append((number, message.payload.decode()))
                    if message.payload == b"crash":
                        raise Broken("broken")

                return handles

            made = self.hub.subscribe("a", factory=factory, restarts=None, on_error=self.nothing)
            for payload in ("good", "crash", "good", "crash", "lost", "good"):
                before = self.dealt(made)
                self.hub.publish("a", payload.encode())
                while self.dealt(made) == before:
                    await asyncio.sleep(0.001)
            both = [(1, "good"), (1, "crash"), (2, "good"), (2, "crash"), (4, "good")]
            self.assertEqual(self.came, both)
            self.assertEqual(made.stats().restarts, 3)
            made.unsubscribe()

        asyncio.run(serve())

    def test_hooks_that_fail(self) -> None:
        def hook(error: object, count: int) -> None:
            raise ValueError("the hook")

        self.crashes = True
        with self.assertLogs("paceline") as logs:
            subscription = self.hub.subscribe("a", self.handle, on_restart=hook)
            self.hub.publish("a")
            self.until(lambda: len(logs.output) == 2)
            self.at_rest(subscription)
        self.assertIn("was restarted has failed", logs.output[1])

    def test_in_an_event_loop(self) -> None:
        async def serve() -> None:
            done = asyncio.Event()

            @self.hub.subscribe("a", retries=Retry.fixed(1, 0.001), on_error=self.nothing)
            async def handles(message: Message) -> None:
                self.came.append((message.payload.decode(), message.attempt))
                if message.payload == b"1":
                    raise KeyError("not yet")
                if message.payload == b"2":
                    done.set()

            for number in range(3):
                self.hub.publish("a", b"%d" % number)
            await done.wait()
            self.hub.subscribe("q", lambda message: self.hub.reply(message, b"!" + message.payload))
            reply = await self.hub.request_async("q", b"?", 120)
            self.assertEqual(reply.payload, b"!?")

        asyncio.run(serve())
        self.assertEqual(self.came, [("0", 1), ("1", 1), ("1", 2), ("2", 1)])
        self.assertEqual(len(self.hub.dead_letters("a")), 1)

    def test_a_mailbox_buries(self) -> None:
        mailbox = self.hub.mailbox("a")
        self.hub.publish("a", b"x")
        (message,) = mailbox.pull(1)
        mailbox.bury(message, "cut\0off", 7)
        with self.assertRaises(paceline.InvalidError):
            mailbox.bury(message)
        with self.assertRaises(paceline.InvalidError):
            mailbox.bury(message._replace(key="b"))
        with self.assertRaises(paceline.InvalidError):
            mailbox.bury(message, "", -1)
        (letter,) = self.hub.dead_letters()
        self.assertEqual((letter.failure, letter.attempts), ("cutoff", 7))
        self.assertEqual(letter.message._replace(attempt=1), message)
        self.hub.redeliver()
        self.assertEqual([each.payload for each in mailbox.pull(9)], [b"x"])
        few = self.open(dead_letters=1)
        mailbox = few.mailbox("a")
        few.publish_batch("a", [b"1", b"2"])
        for each in mailbox.pull(2):
            mailbox.bury(each)
        self.assertEqual(few.dead_letter_stats(), paceline.DeadLetterStats(2, 1, 1, 0))

    def test_filters(self) -> None:
        loud, alarm = MessageFilter.bytes_at(1, b"!"), MessageFilter.header("kind", "alarm")
        table = {
            "loud": (loud, [b"a!"]),
            "both": (loud | alarm, [b"a!", b"b"]),
            "neither": (~(loud | alarm), [b"c"]),
            "none": (loud & alarm, []),
            "past": (MessageFilter.published(0, 1), []),
            "all": (MessageFilter.published(1), [b"a!", b"b", b"c"]),
            "few": (MessageFilter.at_most(Rate(1, 3e8, 2)), [b"a!", b"b"]),
        }
        boxes = {name: self.hub.mailbox("a", filter=each[0]) for name, each in table.items()}
        handled: list[bytes] = []
        self.hub.subscribe("a", lambda message: handled.append(message.payload), filter=~loud)
        self.hub.publish("a", b"a!")
        self.hub.publish("a", b"b", {"kind": "alarm"})
        self.assertEqual(self.hub.publish("a", b"c").matched, 3)
        for name, box in boxes.items():
            expected = table[name][1]
            self.assertEqual([each.payload for each in box.pull(9, 0)], expected, name)
            self.assertEqual(box.stats().filtered, 3 - len(expected), name)
        self.until(lambda: handled == [b"b", b"c"])
        with self.assertRaises(TypeError):
            loud & 5
        for wrong in (
            lambda: MessageFilter.at_most(Rate(0)),
            lambda: MessageFilter.header("a\0b", ""),
            lambda: MessageFilter.bytes_at(-1, b""),
        ):
            with self.assertRaises(paceline.InvalidError):
                wrong()

    def test_functions_decide(self) -> None:
        threads: set[str] = set()

        def short(message: Message) -> bool:
            threads.add(threading.current_thread().name)
            if message.payload == b"bad":
                raise ValueError("cannot tell")
            return len(message.payload) < 3

        test = MessageFilter.test(short)
        loud = MessageFilter.bytes_at(0, b"!")
        table = {
            "short": (test, [b"a", b"!b"], 3),
            "long": (~test, [b"!long"], 3),
            "loud": (loud & test, [b"!b"], 0),
            "either": (loud | test, [b"a", b"!b", b"!long"], 3),
        }
        boxes = {name: self.hub.mailbox("a", filter=each[0]) for name, each in table.items()}
        handled: list[bytes] = []
        subscription = self.hub.subscribe(
            "a", lambda message: handled.append(message.payload), filter=test
        )
        del test, short
        gc.collect()
        with self.assertLogs("paceline", "ERROR") as logs:
            self.hub.publish("a", b"a", {"h": "v"})
            self.hub.publish_batch("a", [b"!b", b"bad"])
            self.hub.publish_all([("a", b"bad")])
            publisher = self.hub.publisher("p")
            publisher.publish("a", b"bad")
            publisher.publish_batch("a", [b"!long"])
        self.assertEqual(len(logs.records), 4 * 3)
        self.assertIn("cannot tell", logs.output[0])
        for name, box in boxes.items():
            _, expected, failures = table[name]
            self.assertEqual([each.payload for each in box.pull(9, 0)], expected, name)
            stats = box.stats()
            self.assertEqual(
                (stats.filtered, stats.filter_failures), (6 - len(expected), failures), name
            )
        self.until(lambda: handled == [b"a", b"!b"])
        self.assertEqual(subscription.stats().filter_failures, 3)
        self.assertEqual(threads, {threading.current_thread().name})
        for box in boxes.values():
            box.close()
        del boxes, box, table
        gc.collect()
        # Who has ended may be asked once more.
        self.hub.publish("a", b"a")
        with self.assertRaises(TypeError):
            MessageFilter.test(5)  # type: ignore[arg-type]

    def test_functions_of_filters_beside_many_publishers(self) -> None:
        """The lock of the interpreter changes hands inside the functions, and nobody waits for it while others
        wait for them."""
        barrier, counts = threading.Barrier(4), [0] * 4

        def even(message: Message) -> bool:
            return int(message.payload) % 2 == 0

        box = self.hub.mailbox("a.*", capacity=1 << 16, filter=MessageFilter.test(even))

        def publish(number: int) -> None:
            barrier.wait()
            for each in range(300):
                counts[number] += self.hub.publish(f"a.{number}", b"%d" % each).enqueued
                with self.hub.mailbox("a.0", filter=MessageFilter.test(even)):
                    pass

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(box.pull(1 << 16, 0)), 600)
        self.assertGreaterEqual(min(counts), 150)

    def test_groups_share(self) -> None:
        for balance in ("round-robin", "least-loaded", "random"):
            group = {"group": f"g-{balance}", "balance": balance}
            boxes = [self.hub.mailbox("a", **group) for _ in range(3)]
            for _ in range(30):
                self.assertEqual(self.hub.publish("a").enqueued, 1)
            counts = [len(box.pull(99, 0)) for box in boxes]
            self.assertEqual(sum(counts), 30)
            if balance != "random":
                self.assertEqual(counts, [10, 10, 10])
            for box in boxes:
                box.close()

    def test_groups_by_key_and_header_keep_the_order_of_each(self) -> None:
        for balance, header in (("by-key", None), ("by-header", "id")):
            group = {"group": f"g-{balance}", "balance": balance, "balance_header": header}
            with self.assertRaises(paceline.InvalidError):
                self.hub.mailbox("a.*", **group)
            came: list[dict[str, list[int]]] = [{} for _ in range(3)]
            took: list[tuple[str, int]] = []

            def take(own: dict[str, list[int]], message: Message) -> None:
                name = message.key if header is None else message.header("id") or ""
                own.setdefault(name, []).append(int(message.payload))
                took.append((name, int(message.payload)))

            members = [
                self.hub.subscribe("a.*", functools.partial(take, own), **group) for own in came[:2]
            ]
            for number in range(300):
                key = f"a.{number % 7}"
                self.hub.publish(key if header is None else "a.b", b"%d" % number, {"id": key})
                if number == 150:
                    # Keys that move come to the new member when the old one is done with them.
                    members.append(self.hub.subscribe("a.*", functools.partial(take, came[2]), **group))
            self.until(lambda: len(took) == 300)
            for key in range(7):
                self.assertEqual(
                    [number for name, number in took if name == f"a.{key}"], [*range(key, 300, 7)]
                )
            for own in came[:2]:
                for other in came[:2]:
                    self.assertTrue(own is other or not own.keys() & other.keys())
            for member in members:
                member.unsubscribe("sync")

    def test_a_unique_subscription_is_there_once(self) -> None:
        first = self.hub.subscribe("a.>", self.nothing, unique="audit")
        for again in (self.hub.subscribe, lambda *_, **settings: self.hub.mailbox("a.>", **settings)):
            with self.assertRaisesRegex(paceline.InvalidError, '"audit"'):
                again("a.>", self.nothing, unique="audit")
        self.assertEqual(self.hub.subscriber_count("a.b"), 1)
        self.hub.subscribe("a.b", self.nothing, unique="audit")
        first.unsubscribe("sync")
        self.hub.mailbox("a.>", unique="audit").close()

    def test_a_mailbox_that_is_acknowledged(self) -> None:
        box = self.hub.mailbox("a", acknowledged=True, group="g", balance="by-key")
        for _ in range(5):
            self.hub.publish("a")
        messages = box.pull()
        self.assertEqual((box.stats().running, box.stats().delivered), (5, 0))
        box.acknowledge()
        box.acknowledge(1, failed=1, discarded=1)
        box.bury(messages[4], "no")
        stats = box.stats()
        self.assertEqual((stats.delivered, stats.failed, stats.discarded), (2, 1, 1))
        self.assertEqual((stats.running, stats.dead_lettered), (0, 1))
        self.assertTrue(stats.balances and self.hub.audit().balances)
        for counts in ((1,), (-1,), (0, 0, 1 << 64)):
            with self.assertRaises(paceline.InvalidError):
                box.acknowledge(*counts)
        self.assertTrue(box.crashed("it broke\0") and not box.catch_up())
        self.assertTrue(box.suspend(3600) and not box.suspend())
        self.assertEqual(self.hub.publish("a").dead_lettered, 1)
        self.assertEqual((box.suspended, box.stats().suspended, box.stats().restarts), (True, True, 1))
        self.assertTrue(box.resume() and not box.resume())
        self.assertTrue(box.catch_up() and not box.catch_up() and not box.suspended)
        self.assertEqual(box.stats().restarts, 2)
        supervisor = Supervisor(restarts=0, suspension=None)
        with self.assertRaises(paceline.InvalidError):
            self.hub.mailbox("a", supervisor=supervisor)
        own = self.hub.mailbox("a", acknowledged=True, supervisor=supervisor)
        self.assertFalse(own.crashed("it broke"))
        self.assertTrue(own.suspended and supervisor.suspended and not box.suspended)
        self.assertEqual(box.pull(1, 0), [])

    def test_publishers_have_limits(self) -> None:
        mailbox = self.hub.mailbox(">")
        publisher = self.hub.publisher("clock", quota=Rate(1, 3e8, 3), allow=["a.*", "b"])
        key = self.hub.key("b")
        self.assertEqual(publisher.publish("a.x", b"1", {"h": "v"}, "high").enqueued, 1)
        with self.assertRaises(paceline.InvalidError):
            publisher.publish("c")
        with self.assertRaises(paceline.Full):
            publisher.publish_batch(key, [b"2", b"3", b"4"])
        self.assertEqual(publisher.stats(), paceline.PublisherStats(3, 2, 3, 0))
        first, *others = mailbox.pull(9, 0)
        self.assertEqual((first.headers, first.priority), ((("h", "v"),), "high"))
        self.assertEqual([each.payload for each in others], [b"2", b"3"])
        with self.assertRaises(paceline.InvalidError):
            self.hub.publisher("x", allow=["a..b"])
        with self.assertRaises(paceline.InvalidError):
            publisher.publish(self.open().key("b"))

    def test_requests(self) -> None:
        hub = self.hub
        with self.assertRaises(paceline.NoRespondersError):
            hub.request("a")
        seen: list[Message] = []

        @hub.subscribe("a")
        def answers(message: Message) -> None:
            seen.append(message)
            if message.payload:
                hub.reply(message, message.payload * 2)
                hub.reply(message, b"too late")

        self.assertEqual(hub.request("a", b"ab", headers={"x": "y"}).payload, b"abab")
        self.assertEqual(seen[0].header("x"), "y")
        self.assertEqual(hub.request(hub.key("a"), b"1", 120).payload, b"11")
        with self.assertRaises(paceline.TimeoutError):
            hub.request("a", b"", 0.001)
        with self.assertRaises(paceline.InvalidError):
            hub.reply(Message("a", b"", (), 1, 1, 0, "normal"))
        full = hub.mailbox("full", capacity=1)
        hub.publish("full")
        with self.assertRaises(paceline.Full):
            hub.request("full")
        del full

    def test_what_is_wrong_is_said(self) -> None:
        hub, invalid = self.hub, paceline.InvalidError
        for settings in (
            {"on_failure": "ignore"},
            {"restarts": -1},
            {"suspension": 0},
            {"suspension": 61},
            {"longest_suspension": 0.5},
            {"within": 0},
            {"balance": "by-luck"},
            {"group": "g", "balance": "by-header"},
            {"group": "g", "balance": "by-key", "overflow": "drop-oldest"},
            {"group": ""},
            {"group": "g", "filter": MessageFilter.published()},
            {"retries": Retry.fixed(-1, 1.0)},
            {"retries": Retry.fixed(1, -1.0)},
        ):
            with self.assertRaises(invalid, msg=str(settings)):
                hub.subscribe("a", self.nothing, **settings)
        for settings in ({"on_restart": 5}, {"filter": "a"}):
            with self.assertRaises(TypeError):
                hub.subscribe("a", self.nothing, **settings)
        self.assertEqual(hub.subscriber_count("a"), 0)
        with self.assertRaises(invalid):
            Supervisor("one-for-two")
        with self.assertRaises(invalid):
            hub.dead_letters(reason="age")
        with self.assertRaises(invalid):
            hub.dead_letters("a b")
        with self.assertRaises(invalid):
            hub.redeliver(since_ns=-1)
        with self.assertRaises(invalid):
            Hub(self.pool, dead_letters=0)
        for what in (hub.publisher("p"), Supervisor(), MessageFilter.published()):
            with self.assertRaises(TypeError):
                pickle.dumps(what)
        hub.close()
        for call in (
            lambda: hub.publisher("p"),
            lambda: hub.request("a"),
            lambda: hub.redeliver(),
        ):
            with self.assertRaises(paceline.ShutDownError):
                call()

    def test_the_interpreter_ends_before_a_retry(self) -> None:
        script = """
            import paceline
            hub = paceline.Hub(paceline.Pool(1))

            def fails(message):
                print("once", flush=True)
                raise KeyError

            hub.subscribe("a", fails, retries=paceline.Retry.fixed(3, 3600.0), on_error=print)
            hub.publish("a", b"x")
            while hub.audit().waiting:
                pass
        """
        told = run(script)
        self.assertEqual((told.returncode, told.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
