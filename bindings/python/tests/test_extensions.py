"""``WorkerPool``: what is done without room, what runs around attempts, a log of its own, settings
from files, threads that rest, and signals."""

from __future__ import annotations

import json
import logging
import os
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import paceline
from paceline import (
    Log,
    LogRecord,
    Attempt,
    Middleware,
    Retry,
    Scaling,
    Signals,
    TaskStatus,
    WorkerPool,
    current_attempt,
)
from paceline._scaling import Scaler
from support import Case
from test_workers import LONG, Gate, Workers


def nothing(*args: Any) -> None:
    """The empty task."""


class Room(Workers):
    def full_pool(self, **settings: Any) -> tuple[WorkerPool, Gate]:
        """Its only thread is busy, and two tasks may wait."""
        workers = self.make(threads=1, max_queued=2, **settings)
        return workers, self.gate(workers)

    def test_it_is_refused(self) -> None:
        workers, _ = self.full_pool()
        calls = workers.task(nothing)
        for _ in range(2):
            calls.submit()
        for each in (calls, calls.options(full="reject"), calls.options(full=0.001)):
            with self.assertRaises(paceline.Full):
                each.submit()
        with self.assertRaises(paceline.Full):
            calls.post()
        with self.assertRaises(paceline.Full) as refused:
            calls.submit_batch(range(3))
        self.assertEqual(refused.exception.tasks, [])  # type: ignore[attr-defined]
        self.assertEqual(workers.audit().accepted, 3)

    def test_its_submitter_waits(self) -> None:
        workers, gate = self.full_pool(full="wait")
        calls = workers.task(name="echo")(lambda item: item)
        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.extend(calls.submit_batch(range(100))))
        thread.start()
        gate.open.set()
        thread.join(LONG)
        self.assertEqual([task.result(LONG) for task in made], list(range(100)))
        self.assertEqual([calls.submit(item).result(LONG) for item in range(100)], list(range(100)))

    def test_the_pools_own_threads_do_not_wait(self) -> None:
        workers, gate = self.full_pool(full="wait")
        calls = workers.task(nothing)
        for _ in range(2):
            calls.submit()
        with self.assertRaises(paceline.Full):
            self.pool.submit(calls.submit).result(LONG)

    def test_its_submitter_helps(self) -> None:
        workers, gate = self.full_pool(full="run_here")
        calls = workers.task(name="who")(lambda: threading.current_thread().name)
        tasks = [calls.submit() for _ in range(5)]
        # Two had room; for the third the first ones were run here.
        report = tasks[0].report(LONG)
        self.assertEqual((report.value, report.worker), (threading.current_thread().name,) * 2)
        for _ in range(3):
            calls.post()
        gate.open.set()
        for task in tasks:
            task.result(LONG)

    def test_a_task_waits_for_nobody(self) -> None:
        workers = self.make(threads=1, max_queued=1)
        calls = workers.task(nothing)

        def inside(full: Any) -> bool:
            calls.submit()
            try:
                calls.options(full=full).submit()
            except paceline.Full:
                return True
            return False

        within = workers.task(inside)
        for full in ("wait", "run_here", LONG):
            # The one that was submitted inside may be waiting still.
            self.assertTrue(within.options(full="wait").submit(full).result(LONG))
        alone = self.make(threads=0, max_queued=1, full="wait")
        calls = alone.task(nothing)
        calls.submit()
        with self.assertRaises(paceline.Full):
            calls.submit()
        while alone.run():
            pass

    def test_the_oldest_of_the_lowest_lane_goes(self) -> None:
        workers = self.make(threads=1, max_droppable=2, full="drop_oldest")
        gate = self.gate(workers)
        kinds = {
            lane: workers.task(name=lane, priority=lane)(nothing)
            for lane in ("critical", "normal", "low")
        }
        plain = workers.task(name="plain", priority="low", full="reject")(nothing).submit()
        oldest, other = kinds["low"].submit(), kinds["normal"].submit()
        urgent = kinds["critical"].submit()
        with self.assertRaises(paceline.Full):
            oldest.result(LONG)
        self.assertIs(oldest.report().status, TaskStatus.REJECTED)
        with self.assertRaises(paceline.Full):
            kinds["low"].submit()
        with self.assertRaises(paceline.Full) as refused:
            kinds["low"].submit_batch(range(3))
        self.assertEqual(len(refused.exception.tasks), 0)  # type: ignore[attr-defined]
        batch = kinds["normal"].submit_batch(range(3))
        newest = kinds["critical"].submit()
        for task in (other, *batch):
            self.assertIs(task.report(LONG).status, TaskStatus.REJECTED)
        gate.open.set()
        for task in (plain, urgent, newest):
            self.assertIs(task.report(LONG).status, TaskStatus.COMPLETED)
        self.assertEqual((kinds["low"].stats().dropped, kinds["normal"].stats().dropped), (1, 4))
        # All have begun: there is room again.
        for _ in range(10):
            kinds["low"].submit().result(LONG)
        self.assertEqual(sum(map(len, workers._core.droppable)), 0)
        self.assertTrue(workers.shutdown().drained)
        audit = workers.audit()
        self.assertTrue(audit.balances)
        self.assertEqual(audit.dropped, 5)

    def test_what_waits_may_be_dropped(self) -> None:
        workers, gate = self.full_pool()
        calls = workers.task(nothing)
        waits = calls.submit()
        self.assertTrue(waits.drop())
        self.assertFalse(waits.drop())
        self.assertIs(waits.report(LONG).status, TaskStatus.REJECTED)
        gate.open.set()
        done = calls.submit()
        done.result(LONG)
        self.assertFalse(done.drop())


class Posts(Workers):
    def test_nobody_waits(self) -> None:
        workers = self.make()
        gate = Gate()
        posted = workers.task(name="posted", retries=Retry.fixed(1, 0))(gate)
        gate.open.set()
        posted.post(1, 2)
        self.assertEqual(gate.inside.get(timeout=LONG), (1, 2))

        @workers.task(retries=Retry.fixed(1, 0))
        def fails() -> None:
            raise LookupError(current_attempt().number)

        with self.assertLogs("paceline", logging.ERROR) as logs:
            fails.post()
            self.assertTrue(workers.shutdown().drained)
        self.assertEqual(len(logs.records), 1)
        self.assertIn("LookupError: 2", logs.output[0])
        self.assertEqual(fails.stats().failed, 1)
        self.assertEqual(workers._core.jobs, {})
        with self.assertRaises(paceline.ShutDownError):
            fails.post()


class Noted(Middleware):
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes
        self.refuses = False

    def before(self, attempt: Attempt) -> None:
        self.notes.append(f"{self.name} before {attempt.number}")
        if self.refuses:
            raise paceline.PermanentFailure("not today")

    def after(self, attempt: Attempt) -> None:
        self.notes.append(f"{self.name} after")
        raise RuntimeError("an after of its own")

    def on_error(self, attempt: Attempt, exception: BaseException) -> None:
        self.notes.append(f"{self.name} sees {exception}")


class Around(Workers):
    def test_in_order(self) -> None:
        notes: list[str] = []
        first, second = Noted("first", notes), Noted("second", notes)
        workers = self.make(threads=1, middleware=[first, second, Middleware()])

        @workers.task(retries=Retry.fixed(1, 0))
        def flaky(*, value: int) -> int:
            notes.append("function")
            if current_attempt().number == 1:
                raise ValueError("once")
            return value

        with self.assertLogs("paceline", logging.ERROR) as logs:
            self.assertEqual(flaky.submit(value=7).result(LONG), 7)
        self.assertEqual(len(logs.records), 4)
        once = ["first before 1", "second before 1", "function"]
        once += ["second sees once", "second after", "first sees once", "first after"]
        again = ["first before 2", "second before 2", "function", "second after", "first after"]
        self.assertEqual(notes, once + again)

        notes.clear()
        second.refuses = True
        with self.assertLogs("paceline", logging.ERROR):
            with self.assertRaisesRegex(paceline.PermanentFailure, "not today"):
                flaky.submit(value=1).result(LONG)
        refused = ["first before 1", "second before 1", "first sees not today", "first after"]
        self.assertEqual(notes, refused)
        with self.assertRaisesRegex(TypeError, "middleware is .*; allowed: a paceline.Middleware"):
            self.make(middleware=[object()])


class OwnLog(Workers):
    """A log that the worker pool was given, in place of its pool's."""

    def test_each_end_is_a_record(self) -> None:
        told: list[LogRecord] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tasks"
            log = Log(path, levels="off,task=debug", callback=told.append, logger=False)
            workers = self.make(threads=1, log=log)

            @workers.task(retries=Retry.fixed(1, 0))
            def flaky(fails: int) -> None:
                if current_attempt().number <= fails:
                    raise ValueError("no")

            for fails in (0, 1, 2):
                flaky.submit(fails).exception(LONG)
            flaky.options(delay=3600).submit(0).cancel()
            self.assertTrue(workers.shutdown().drained)
            log.close(LONG)
            told = [each for each in told if each.event.startswith("task.")]
            events = [(each.event.removeprefix("task."), each.message) for each in told]
            self.assertEqual(
                events[:3], [("completed", ""), ("retried", "ValueError: no"), ("completed", "")]
            )
            self.assertEqual(events[3:5], [("retried", "ValueError: no"), ("failed", "ValueError: no")])
            self.assertEqual(events[5][0], "cancelled")
            attempts = [each.fields["attempts"] for each in told if "attempts" in each.fields]
            self.assertEqual(attempts, [1, 2, 2, 0])
            self.assertEqual({each.fields["name"] for each in told}, {flaky.name})
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            self.assertEqual(
                [line["event"].removeprefix("task.") for line in lines if "name" in line["fields"]],
                [event for event, _ in events],
            )


class Settings(Workers):
    def test_code_over_environment_over_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "settings.json"
            section = {"full": "wait", "max_waiting": 1, "max_droppable": 3, "min_active": 1}
            path.write_text(json.dumps({"workers": section}))
            os.environ["PACELINE_WORKERS_FULL"] = "drop_oldest"
            self.addCleanup(os.environ.pop, "PACELINE_WORKERS_FULL", None)
            workers = self.make(threads=2, settings=path, environment=True, max_waiting=5)
            core = workers._core
            self.assertEqual((core.full, core.max_droppable, workers.active), ("drop_oldest", 3, 1))
            gate = Gate()
            self.addCleanup(gate.open.set)
            keyed = workers.task(name="keyed")(gate).options(key=1, full="reject")
            for _ in range(6):
                keyed.submit()
            with self.assertRaises(paceline.Full):
                keyed.submit()
            gate.open.set()
            self.assertEqual(self.make(settings=path)._core.full, "wait")
            self.assertEqual(self.make(settings=path, full="reject")._core.full, "reject")
            path.write_text(json.dumps({"workers": {"max_waiting": 0, "min_actve": 1}}))
            wrong = "(?s)settings.json.*workers.max_waiting.*workers.min_actve"
            with self.assertRaisesRegex(paceline.InvalidError, wrong):
                self.make(settings=path)
        with self.assertRaisesRegex(paceline.InvalidError, "settings.json"):
            self.make(settings=path)

    def test_wrong_ones_are_named(self) -> None:
        cases: list[tuple[str, dict[str, Any]]] = [
            ("full is 'never'", {"full": "never"}),
            ("full is -1", {"full": -1}),
            ("max_droppable is 0", {"max_droppable": 0}),
            ("min_active is 3", {"scaling": Scaling(min_active=3)}),
            ("low is 0.002", {"scaling": Scaling(low=0.002)}),
            ("period is 0", {"scaling": Scaling(period=0)}),
            ("percentile is 0", {"scaling": Scaling(percentile=0)}),
        ]
        for text, settings in cases:
            with self.assertRaisesRegex(paceline.InvalidError, text):
                self.make(**settings)
        workers = self.make()
        for wrong in ({"full": "x"}, {"grace": 0}, {"soft_timeout": -1}):
            with self.assertRaisesRegex(paceline.InvalidError, f"^{next(iter(wrong))} is"):
                workers.task(nothing).options(**wrong)  # type: ignore[arg-type]
        with self.assertRaisesRegex(paceline.InvalidError, "grace is 0"):
            workers.task(grace=0)(nothing)
        for threads in (0, 3, -1):
            with self.assertRaisesRegex(paceline.InvalidError, "threads is"):
                workers.set_active(threads)


class Figures(Workers):
    def test_ones_own(self) -> None:
        workers = self.make(metrics=True)
        parcels = workers.counter("parcels", "All of them", port="north")
        level, ways = workers.gauge("level"), workers.histogram("ways", "How long")
        sizes = workers.histogram("sizes", unit="bytes")
        parcels.inc()
        workers.counter("parcels", port="north").inc(41)
        level.set(2.5)
        level.add(-1)
        ways.record(0.5)
        sizes.record(7)
        text = workers.metrics()
        for line in ('parcels_total{port="north"} 42', "level 1.5", "ways", "sizes"):
            self.assertIn(line, text)
        self.assertIn("parcels", workers.metrics("json"))
        for wrong in (
            lambda: workers.gauge("parcels"),
            lambda: workers.counter("of it"),
            lambda: workers.counter("x_total"),
            lambda: workers.histogram("more", unit="miles"),
            lambda: parcels.inc(-1),
            lambda: ways.record(-1.0),
            lambda: sizes.record(-1),
            lambda: self.make().counter("none"),
        ):
            with self.assertRaises(paceline.InvalidError):
                wrong()


class Pace:
    """The threads of a scaler, by hand."""

    pool: Any = None
    most = 3
    active = 1
    closed = False

    def set_active(self, threads: int) -> None:
        self.active = threads


class Active(Workers):
    def test_the_others_rest(self) -> None:
        workers = self.make(threads=3)
        quick = workers.task(name="quick")(lambda: threading.current_thread().name)
        workers.set_active(1)
        names = [quick.submit().result(LONG) for _ in range(200)]
        # Who was to lead next when it was said leads once more.
        self.assertGreaterEqual(names.count("workers_0"), 198)
        workers.set_active(3)
        gates = [self.gate(workers) for _ in range(3)]
        health = workers.health()
        self.assertEqual((health.capacity, health.free), (3, 0))
        for each in gates:
            each.open.set()

    def test_all_help_in_the_end(self) -> None:
        workers = self.make(threads=2)
        workers.set_active(1)
        quick = workers.task(nothing)
        while workers._core.resting < 1:
            quick.submit().result(LONG)
        barrier = threading.Barrier(2)
        for _ in range(2):
            workers.task(name="both")(barrier.wait).submit(LONG)
        self.assertTrue(workers.shutdown(drain=LONG).drained)
        self.assertEqual(workers.stats()["both"].completed, 2)
        with self.assertRaises(paceline.ShutDownError):
            workers.set_active(2)

    def test_waits_decide(self) -> None:
        pace, now = Pace(), [0.0]
        scaler = Scaler(Scaling(high=1, low=0.1, patience=3), pace, lambda: now[0])
        scaler._armed = True
        for token in range(3):
            scaler.note(token)
        now[0] = 0.5
        self.assertTrue(scaler.look())
        self.assertEqual(pace.active, 1, "they have not waited for long")
        now[0] = 2.0
        for active in (2, 3, 3):
            self.assertTrue(scaler.look())
            self.assertEqual(pace.active, active, "one more at a time, up to all")
        for token in range(4):
            scaler.began(token)
        scaler.look()
        self.assertEqual(pace.active, 3, "what has begun late counts once more")
        for active in (3, 3, 2, 2, 2, 1):
            more = scaler.look()
            self.assertEqual(
                (pace.active, more), (active, active > 1), "one less after three quiet looks"
            )

    def test_it_scales(self) -> None:
        scaling = Scaling(high=0.002, low=0.0005, period=0.001, patience=2)
        workers = self.make(threads=3, scaling=scaling)
        self.assertEqual(workers.active, 1)
        # The second and third only begin once others than the first take tasks.
        gates = [self.gate(workers) for _ in range(3)]
        self.assertEqual(workers.active, 3)
        for gate in gates:
            gate.open.set()
        end = time.monotonic() + LONG
        while workers.active > 1 and time.monotonic() < end:
            time.sleep(0.001)
        self.assertEqual(workers.active, 1)
        self.assertTrue(workers.shutdown().drained)


class Arriving(Case):
    def test_they_are_waited_for_and_told(self) -> None:
        before = signal.getsignal(signal.SIGUSR1)
        told = threading.Event()

        def note(number: int) -> None:
            told.set()
            raise KeyError(number)

        with self.assertLogs("paceline", logging.ERROR):
            with Signals((signal.SIGUSR1,), note) as signals:
                self.assertIsNone(signals.wait(0))
                os.kill(os.getpid(), signal.SIGUSR1)
                self.assertEqual(signals.wait(LONG), signal.SIGUSR1)
                self.assertTrue(told.wait(LONG))
                while any(thread.name == "paceline_signals" for thread in threading.enumerate()):
                    signals.close()
        self.assertEqual(signal.getsignal(signal.SIGUSR1), before)
        signals.close()

    def test_wrong_ones(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        for numbers in ((signal.SIGTERM, signal.SIGKILL), (4711,), (-1,), ()):
            with self.assertRaises(paceline.InvalidError):
                Signals(numbers)
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)
        with self.assertRaises(TypeError):
            Signals(on_signal=7)  # type: ignore[arg-type]
        raised: list[str] = []

        def elsewhere() -> None:
            try:
                Signals()
            except RuntimeError as error:
                raised.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(LONG)
        self.assertEqual(len(raised), 1)


if __name__ == "__main__":
    unittest.main()
