"""``Hub``: what it tells of itself, its figures, and thresholds."""

from __future__ import annotations

import json
import pickle
import unittest
from typing import Any

import paceline
from paceline import Hub, Pool, Threshold, WorkerPool
from support import Case


class Notices(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = self.open(notice_interval=0.001, errors=2, count_keys=1)

    def open(self, **settings: Any) -> Hub:
        hub = Hub(self.pool, **settings)
        self.addCleanup(hub.close)
        return hub

    def test_notices_are_messages_and_errors_stay(self) -> None:
        heard = self.hub.mailbox("$SYS.subscription.>")
        mailbox = self.hub.mailbox("a", capacity=1)
        self.hub.publish("a")
        self.assertRaises(paceline.MailboxFull, self.hub.publish, "a")
        started, overflow = heard.pull(1)[0], heard.pull(1)[0]
        self.assertEqual(started.key, "$SYS.subscription.started")
        told = json.loads(overflow.payload)
        number = mailbox.stats().number
        self.assertEqual((told["event"], told["count"]), ("subscription.overflow", 1))
        (error,) = self.hub.errors()
        self.assertEqual((error.number, error.severity), (1, "warning"))
        self.assertEqual(error.event, "subscription.overflow")
        self.assertEqual(error.origin, f"subscription {number} (a)")
        self.assertIn("was full", error.message)
        for none in (
            self.hub.errors(severity="error"),
            self.hub.errors(event="history."),
            self.hub.errors(origin="publisher"),
            self.hub.errors(after=1),
            self.hub.errors(since_ns=error.time_ns + 1),
            self.hub.errors(limit=0),
        ):
            self.assertEqual(none, [])
        self.assertEqual(self.hub.errors(event="subscription.", limit=1), [error])

    def test_restarts_and_suspensions_of_handlers_are_seen_by_the_hub(self) -> None:
        hub = self.open(errors=9)
        heard = hub.mailbox("$SYS.subscription.>")

        def crash(message: paceline.Message) -> None:
            raise SystemExit("broken")

        times = {"restarts": 1, "within": 3600, "suspension": None}
        crashing = hub.subscribe("a", crash, on_error=lambda *_: None, **times)
        hub.publish("a")
        self.until(lambda: crashing.stats().restarts == 1)
        hub.publish("a")
        self.until(lambda: crashing.suspended)
        self.assertEqual(hub.publish("a").dead_lettered, 1)
        # That of the second crash may come a moment after the suspension.
        self.until(lambda: crashing.stats().dead_lettered == 3)
        stats = crashing.stats()
        self.assertEqual((stats.dead_lettered, stats.restarts, stats.suspended), (3, 1, True))
        (figures,) = [one for one in hub.stats()["subscriptions"] if one["pattern"] == "a"]
        self.assertEqual((figures["restarts"], figures["suspended"]), (1, True))
        self.assertEqual((figures["delivered"], figures["running"], figures["dead_lettered"]), (0, 0, 3))
        restarted, suspended = hub.errors()
        self.assertEqual(restarted.event, "subscription.restarted")
        self.assertEqual(restarted.message, "restart 1: SystemExit: broken")
        self.assertEqual(suspended.event, "subscription.suspended")
        self.assertEqual(suspended.origin, f"subscription {stats.number} (a)")
        self.assertTrue(crashing.resume())
        told: list[str] = []
        while told[-1:] != ["$SYS.subscription.resumed"]:
            told += [message.key for message in heard.pull()]
        self.assertIn("$SYS.subscription.suspended", told)
        self.assertTrue(hub.audit().balances)

    def test_handlers_of_replays_are_seen_by_the_hub(self) -> None:
        hub = self.open(errors=9, histories=[paceline.History(">")])

        def handle(message: paceline.Message) -> None:
            if message.payload == b"crash":
                raise SystemExit("broken")
            if message.payload == b"fail":
                raise ValueError("no")

        times = {"restarts": 1, "within": 3600, "suspension": None}
        replay = hub.replay("a", handle, on_error=lambda *_: None, on_failure="discard", **times)
        for payload in ("", "fail", "crash", "crash"):
            hub.publish("a", payload.encode())
        self.until(lambda: replay.suspended)
        last = hub.publish("a").sequence
        self.until(lambda: hub.audit().running == 0)
        (figures,) = hub.stats()["replays"]
        stats = replay.stats()
        self.assertEqual((figures["delivered"], figures["failed"], figures["running"]), (1, 2, 0))
        self.assertEqual((stats.delivered, stats.failed, stats.dead_lettered), (1, 2, 1))
        self.assertEqual((figures["restarts"], figures["suspended"]), (1, True))
        self.assertEqual((figures["id"], figures["last"]), (stats.number, last - 1))
        restarted, suspended = hub.errors()
        self.assertEqual(restarted.event, "subscription.restarted")
        self.assertEqual(restarted.message, "restart 1: SystemExit: broken")
        self.assertEqual(suspended.event, "subscription.suspended")
        self.assertEqual(suspended.origin, f"replay {stats.number} (a)")
        self.assertTrue(replay.resume())
        self.until(lambda: hub.stats()["replays"][0]["last"] == last)
        self.assertTrue(replay.unsubscribe("sync"))
        audit = hub.audit()
        self.assertTrue(audit.balances)
        self.assertEqual((audit.delivered, audit.failed, audit.dead_lettered), (2, 2, 1))

    def test_a_suspension_ends_in_the_hub_though_nobody_looks(self) -> None:
        def crash(message: paceline.Message) -> None:
            raise SystemExit

        supervisor = paceline.Supervisor(restarts=0, suspension=0.02)
        for pattern in ("a", "b"):
            self.hub.subscribe(pattern, crash, on_error=lambda *_: None, supervisor=supervisor)

        def suspended() -> list[bool]:
            return [one["suspended"] for one in self.hub.stats()["subscriptions"]]

        self.hub.publish("a")
        self.until(lambda: len(self.hub.dead_letters()) == 1)
        self.until(lambda: suspended() == [False, False])
        self.assertIn("subscription.suspended", [error.event for error in self.hub.errors()])

    def test_figures_of_the_hub_are_those_of_its_handlers(self) -> None:
        def fail(message: paceline.Message) -> None:
            raise ValueError

        settings = {"on_failure": "discard", "on_error": lambda *_: None}
        failing = self.hub.subscribe("a", fail, **settings)
        fine = self.hub.subscribe("a", lambda message: None)
        for _ in range(50):
            self.hub.publish("a")
        self.until(lambda: self.hub.audit().running + self.hub.audit().waiting == 0)
        audit = self.hub.audit()
        self.assertEqual((audit.delivered, audit.failed, audit.balances), (50, 50, True))
        self.assertEqual((failing.stats().failed, fine.stats().delivered), (50, 50))

    def test_statistics_are_published_periodically(self) -> None:
        hub = self.open(stats_interval=0.01)
        heard = hub.mailbox("$SYS.hub.statistics")
        hub.publish("a")
        for _ in range(3):
            (message,) = heard.pull(1)
        told = json.loads(message.payload)
        self.assertEqual((told["event"], told["lost_messages"]), ("hub.statistics", 0))
        # Its notices count, too.
        self.assertGreaterEqual(told["published"], 3)
        self.assertRaises(paceline.InvalidError, self.open, stats_interval=0.001)
        self.assertRaises(paceline.InvalidError, self.open, stats_interval=86401)

    def test_figures_in_three_forms(self) -> None:
        mailbox = self.hub.mailbox("a.*")
        for key in ("a.b", "a.b", "a.c"):
            self.hub.publish(key)
        stats = self.hub.stats()
        self.assertEqual((stats["published"], stats["waiting"], stats["keys"]), (3, 3, 2))
        self.assertEqual([one["pattern"] for one in stats["subscriptions"]], ["a.*"])
        self.assertIn({"key": "a.b", "published": 2}, stats["key_counts"])
        line = 'paceline_hub_published_total{hub="paceline-hub"} 3'
        self.assertIn(line, self.hub.metrics())
        self.assertIn("families", json.loads(self.hub.metrics("json")))
        with WorkerPool(self.pool, metrics=True) as workers:
            self.hub.share_metrics(workers)
            self.assertIn(line, workers.metrics())
        with WorkerPool(self.pool) as workers:
            with self.assertRaises(paceline.InvalidError):
                self.hub.share_metrics(workers)
        del mailbox

    def test_thresholds_are_told_when_crossed_and_when_back(self) -> None:
        heard = self.hub.mailbox("$SYS.threshold.*")
        mailbox = self.hub.mailbox("a")
        labels = {"hub": "paceline-hub"}
        full = Threshold("paceline_hub_waiting", above=9.5, back_at=5, labels=labels, severity="error")
        with self.hub.watch([full, Threshold("none", below=1, rate=True)], every=0.001) as watch:
            self.until(lambda: watch.looks >= 2)
            self.assertEqual((watch.crossed, heard.pull(1, 0)), (0, []))
            for _ in range(10):
                self.hub.publish("a")
            (crossed,) = heard.pull(1)
            told = json.loads(crossed.payload)
            self.assertEqual((told["event"], told["severity"]), ("threshold.crossed", "error"))
            self.assertGreaterEqual(told["figure"], 10)
            self.assertEqual(watch.crossed, 1)
            self.assertEqual(len(mailbox.pull(10)), 10)
            self.assertEqual(heard.pull(1)[0].key, "$SYS.threshold.cleared")
            self.assertEqual(watch.crossed, 0)
            with self.assertRaises(TypeError):
                pickle.dumps(watch)
        self.assertEqual((watch.crossed, watch.looks), (0, 0))
        self.assertEqual([error.event for error in self.hub.errors()], ["threshold.crossed"])

    def test_bad_input_is_named(self) -> None:
        watch = self.hub.watch
        for call in (
            lambda: self.open(errors=0),
            lambda: self.open(notice_interval=0),
            lambda: self.open(count_keys=-1),
            lambda: self.open(count_keys=1_000_001),
            lambda: self.hub.errors(severity="bad"),
            lambda: self.hub.errors(after=-1),
            lambda: self.hub.metrics("xml"),
            lambda: watch([]),
            lambda: watch([Threshold("m")]),
            lambda: watch([Threshold("m", above=1, below=1)]),
            lambda: watch([Threshold("m", above=1, rate=True, quantile=0.5)]),
            lambda: watch([Threshold("m", above=1, quantile=2)]),
            lambda: watch([Threshold("m", above=1, back_at=2)]),
            lambda: watch([Threshold("m", above=float("nan"))]),
            lambda: watch([Threshold("m", above=1, severity="bad")]),
            lambda: watch([Threshold("m", above=1)], every=0),
        ):
            with self.assertRaises(paceline.InvalidError):
                call()
        self.hub.close()
        with self.assertRaises(paceline.ShutDownError):
            watch([Threshold("m", above=1)])


if __name__ == "__main__":
    unittest.main()
