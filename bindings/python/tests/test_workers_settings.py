"""``WorkerPool``: each setting arrives where it belongs, and does what it says there and nowhere else."""

from __future__ import annotations

import json
import logging
import os
import queue
import tempfile
import threading
import time
import unittest
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import paceline
from paceline import InvalidError, Middleware, Pool, Rate, Retry, RetryBudget, Scaling, TaskStatus
from paceline import Attempt, WorkerPool, current_attempt
from paceline import _layout as layout
from paceline import _policy
from paceline._calls import Periodic
from paceline._future import Future
from paceline._policy import Chosen, kind_config, limit
from paceline._pool import Flow
from paceline._reports import TaskTypeStats, ShutdownReport
from paceline._scaling import Scaler
from paceline._workers import _is_stuck
from support import Case
from test_workers import LONG, Gate, Workers


def nothing(*args: Any) -> None:
    """The empty task."""


def fields(struct: Any) -> dict[str, Any]:
    """What a structure of C's says, but for what is always the same."""
    own = {}
    for name, *_ in struct._fields_:
        value = getattr(struct, name)
        if not isinstance(value, (int, float, bytes, type(None))):
            continue
        if name != "struct_size" and not name.startswith("reserved"):
            own[name] = value
    return own


class Stop(Exception):
    """Ends a call in the middle."""


class Given(Case):
    """What reaches C."""

    def core(self, **settings: Any) -> tuple[dict[str, Any], str, int]:
        """What a worker pool is made of."""
        seen: list[Any] = []

        def made(
            pool: object, name: str, threads: int, config: layout.WorkersConfig, loop: object
        ) -> None:
            seen.append((fields(config), name, threads))
            raise Stop

        with mock.patch("paceline._workers.Core", made), self.assertRaises(Stop):
            WorkerPool(None, **settings)  # type: ignore[arg-type]
        (all_of_it,) = seen
        return all_of_it  # type: ignore[no-any-return]

    def test_of_a_worker_pool(self) -> None:
        default, name, threads = self.core()
        self.assertEqual((name, threads), ("workers", 4))
        expected = {"max_waiting": 65536, "max_queued": 1 << 20, "max_tasks": 1 << 22, "seed": 0}
        expected |= {
            "metrics": False,
            "name": b"workers",
            "scaling": False,
            "full": layout.OVERLOAD_DEFAULT,
        }
        expected |= {"max_droppable": 0, "log": None}
        self.assertEqual({key: default[key] for key in expected}, expected)
        for given, changed in (
            ({"max_waiting": 5}, {"max_waiting": 5}),
            ({"max_queued": 6}, {"max_queued": 6}),
            ({"max_tasks": 7}, {"max_tasks": 7}),
            ({"max_droppable": 8}, {"max_droppable": 8}),
            ({"seed": 1 << 63}, {"seed": 1 << 63}),
            ({"metrics": True}, {"metrics": True}),
            # Threads and room are this side's.
            ({"full": "wait"}, {}),
            ({"scaling": Scaling()}, {}),
            ({"name": "other"}, {"name": b"other"}),
        ):
            told, name, _ = self.core(**given)
            self.assertEqual(told, default | changed)
            self.assertEqual(name, given.get("name", "workers"))
        self.assertEqual(self.core(threads=7)[2], 7)

    def test_of_a_name(self) -> None:
        given: dict[str, Any] = {
            "priority": "high",
            "retry": None,
            "timeout": 1.5,
            "queue_timeout": 2.5,
            "deadline": 3.5,
            "soft_timeout": 4.5,
            "grace": 5.5,
            "budget": RetryBudget(ratio=0.5, per_second=7, burst=9),
            "rate": Rate(3, per=0.5, burst=4),
            "max_running": 11,
            "overlap_retries": True,
            "lease": 6.5,
        }
        expected = {
            "lane": 1,
            "timeout_ns": 1_500_000_000,
            "queue_timeout_ns": 2_500_000_000,
            "deadline_ns": 3_500_000_000,
            "soft_timeout_ns": 4_500_000_000,
            "grace_ns": 5_500_000_000,
            "retry_budget": True,
            "budget_ratio": 0.5,
            "budget_per_second": 7,
            "budget_burst": 9,
            "rate_starts": 3,
            "rate_per_ns": 500_000_000,
            "rate_burst": 4,
            "max_running": 11,
            "overlap_retries": True,
            "lease_ns": 6_500_000_000,
        }
        told = fields(kind_config(**given))
        self.assertEqual({key: told[key] for key in expected}, expected)
        # What the decorator says is that.
        seen: list[Any] = []

        def note(**settings: Any) -> None:
            seen.append(settings)
            raise Stop

        retry = Retry.fixed(3, 1)
        workers = WorkerPool(Pool(1), threads=0)
        self.addCleanup(workers.shutdown, 0)
        with mock.patch("paceline._workers.kind_config", note), self.assertRaises(Stop):
            workers.task(retries=retry, **{key: given[key] for key in given if key != "retry"})
        self.assertEqual(seen, [given | {"retry": retry}])

    def test_of_a_task(self) -> None:
        given = {"priority": "low", "timeout": 1.5, "queue_timeout": 2.5, "deadline": 3.5, "delay": 4.5}
        given |= {"soft_timeout": 5.5, "grace": 6.5, "retries": Retry.linear(3, 0.5), "key": "k"}
        options = Chosen(**given).as_c()  # type: ignore[arg-type]
        assert options is not None
        expected = {
            "lane": 3,
            "timeout_ns": 1_500_000_000,
            "queue_timeout_ns": 2_500_000_000,
            "deadline_ns": 3_500_000_000,
            "delay_ns": 4_500_000_000,
            "soft_timeout_ns": 5_500_000_000,
            "grace_ns": 6_500_000_000,
            "key": hash("k") % (1 << 64),
            "keyed": True,
        }
        told = fields(options)
        self.assertEqual({key: told[key] for key in expected}, expected)
        self.assertEqual((options.retry.retries, options.retry.first_ns), (3, 500_000_000))
        # 0 is a key, and equal keys are one.
        zero = Chosen(key=0).as_c()
        assert zero is not None
        self.assertEqual((zero.key, zero.keyed), (0, True))
        one, same = Chosen(key=(1, str(2))).as_c(), Chosen(key=(1, str(2))).as_c()
        assert one is not None and same is not None
        self.assertEqual(one.key, same.key)
        self.assertNotEqual(one.key, zero.key)
        self.assertIsNone(Chosen(full="wait").as_c())

    def test_of_retries(self) -> None:
        default, none, full, equal = range(4)
        for made, shape, jitter, first, cap, within in (
            (Retry.none(), layout.RETRY_NONE, default, 0, 0, 0),
            (Retry.exponential(5), layout.RETRY_EXPONENTIAL, default, 0.1, 30, 0),
            (Retry.exponential(5, 0.5, 4, "none"), layout.RETRY_EXPONENTIAL, none, 0.5, 4, 0),
            (Retry.linear(5, 0.5, 4, "full"), layout.RETRY_LINEAR, full, 0.5, 4, 0),
            (Retry.fixed(5, 0.5, "equal"), layout.RETRY_FIXED, equal, 0.5, 0, 0),
            (Retry.random(5, 0.5, 4), layout.RETRY_RANDOM, default, 0.5, 4, 0),
            (Retry.custom(5, float), layout.RETRY_FIXED, default, 0, 0, 0),
            (Retry.fixed(5, 0.5).limited(7), layout.RETRY_FIXED, default, 0.5, 0, 7),
        ):
            target = layout.Retry()
            made.fill(target)
            told = (target.shape, target.jitter, target.first_ns, target.cap_ns, target.within_ns)
            times = (int(first * 1e9), int(cap * 1e9), int(within * 1e9))
            self.assertEqual(told, (shape, jitter, *times), made)
            self.assertEqual(target.retries, 0 if made.shape == layout.RETRY_NONE else 5)
        self.assertEqual(_policy.retry_of(3), Retry.exponential(3))
        self.assertEqual(_policy.retry_of(0), Retry.none())
        self.assertEqual(limit("time", 1e-12), 1)
        self.assertEqual(limit("time", float("inf")), layout.FOREVER)
        self.assertEqual(limit("time", None), 0)

    def test_defaults(self) -> None:
        self.assertEqual(asdict(RetryBudget()), {"ratio": 0.2, "per_second": 10, "burst": 100})
        self.assertEqual(asdict(Rate(1)), {"starts": 1, "per": 1.0, "burst": 1})
        expected = {"min_active": 1, "high": 0.002, "low": 0.0002, "period": 0.02}
        self.assertEqual(asdict(Scaling()), expected | {"percentile": 95, "patience": 10})
        with self.assertRaisesRegex(paceline.InvalidError, "patience is 0"):
            Scaling(patience=0).check(1)


class Options(Workers):
    """What single calls have in place of their name's settings, as this side knows it."""

    def test_options(self) -> None:
        workers = self.make(threads=1)
        delay, other = float, abs
        known = workers.task(
            name="known",
            priority="high",
            retries=Retry.custom(1, delay),
            timeout=5.0,
            deadline=6.0,
            full=7.0,
        )(nothing)
        self.assertEqual((known.backoff, known.timeout, known.deadline), (delay, 5.0, 6.0))
        self.assertEqual((known.lane, known.full, known.limited, known.overlaps), (1, 7.0, True, False))
        changed = known.options(
            priority="low", retries=Retry.custom(1, other), timeout=8.0, deadline=9.0, full="wait"
        )
        self.assertEqual((changed.backoff, changed.timeout, changed.deadline), (other, 8.0, 9.0))
        self.assertEqual((changed.lane, changed.full), (3, "wait"))
        endless = known.options(timeout=float("inf"), deadline=float("inf"))
        self.assertEqual((endless.timeout, endless.deadline, endless.limited), (None, None, False))
        # One after the other they add up.
        chosen = changed.options(delay=3.0).options(key=4)._chosen
        self.assertEqual((chosen.priority, chosen.delay, chosen.key), ("low", 3.0, 4))
        for limits, limited in (
            ({}, False),
            ({"timeout": 1.0}, True),
            ({"deadline": 1.0}, True),
            ({"lease": 1.0}, True),
            ({"queue_timeout": 1.0}, False),
        ):
            made = workers.task(name=str(limits), **limits)(nothing)  # type: ignore[arg-type]
            self.assertEqual(made.limited, limited)
            self.assertEqual(made.overlaps, "lease" in limits)
        self.assertTrue(workers.task(name="overlaps", overlap_retries=True)(nothing).overlaps)

    def test_limits_count_from_when_a_task_is_due(self) -> None:
        workers = self.make(threads=0)
        limited = workers.task(deadline=1000.0)(nothing)
        before = time.monotonic()
        later = limited.options(delay=500.0)
        for task in (limited.submit(), *limited.submit_batch([1, 2])):
            self.assertTrue(before <= task.due <= time.monotonic())
        for task in (later.submit(), *later.submit_batch([1, 2])):
            self.assertTrue(before + 500 <= task.due <= time.monotonic() + 500)
        tokens = len(workers._core.jobs)
        limited.post()
        later.post()
        now, in_time = [job[0].due for job in list(workers._core.jobs.values())[tokens:]]
        self.assertTrue(before <= now <= time.monotonic())
        self.assertTrue(before + 500 <= in_time <= time.monotonic() + 500)

    def test_posts_have_options_and_keywords(self) -> None:
        workers = self.make(threads=0)
        said: list[Any] = []
        function = workers.task(name="says")(lambda *args, **kwargs: said.append((args, kwargs)))
        function.options(delay=3600.0).post("late")
        function.post(1, two=2)
        function.submit_after(3600.0, "late")
        task = function.submit_after(0.0, 3, four=4)
        self.until(lambda: workers.run() and task.done())
        while workers.run():
            pass
        self.assertEqual(said, [((1,), {"two": 2}), ((3,), {"four": 4})])

    def test_who_is_watched(self) -> None:
        workers = self.make(threads=0, max_queued=2, scaling=None)
        noted = mock.Mock()
        workers._core.scaler = noted
        calls = workers.task(name="watched")(nothing)
        tokens = iter(range(1, 100))
        calls.submit()
        calls.post()
        self.assertEqual(noted.note.mock_calls, [mock.call(next(tokens)), mock.call(next(tokens))])
        noted.reset_mock()
        # What may not begin at once has not waited.
        for options in ({"delay": 3600.0}, {"key": 1}):
            try:
                calls.options(**options).submit()  # type: ignore[arg-type]
            except paceline.Full:
                pass
        noted.note.assert_not_called()
        noted.reset_mock()
        with self.assertRaises(paceline.Full):
            calls.submit()
        (refused,) = noted.note.mock_calls
        self.assertEqual(noted.began.mock_calls, [refused])
        with self.assertRaises(paceline.Full) as full:
            calls.submit_batch(range(3))
        self.assertEqual(full.exception.tasks, [])  # type: ignore[attr-defined]
        noted.reset_mock()
        while workers.run():
            pass
        with self.assertRaises(paceline.Full) as full:
            calls.submit_batch(range(3))
        taken = full.exception.tasks  # type: ignore[attr-defined]
        self.assertEqual(len(taken), 2)
        while workers.run():
            pass
        for task in taken:
            self.assertIs(task.report(LONG).status, TaskStatus.COMPLETED)


class Beats(Case):
    """Periodic tasks, whose ticks and ends are made by hand."""

    def setUp(self) -> None:
        super().setUp()
        self.made: list[Future[Any]] = []
        self.refuses: Exception | None = None

    def submit(self, *args: Any) -> Future[Any]:
        self.assertEqual(args, (7,))
        if self.refuses is not None:
            raise self.refuses
        self.made.append(Future())
        return self.made[-1]

    def make(self, coalesce: bool) -> Periodic:
        return Periodic(self, (7,), coalesce)  # type: ignore[arg-type]

    def test_ticks_are_skipped(self) -> None:
        periodic = self.make(False)
        for _ in range(3):
            self.assertEqual(periodic._tick(), Flow.WAIT)
        self.assertEqual((periodic.runs, periodic.missed), (1, 2))
        self.made[0].set_result(None)
        self.assertEqual(len(self.made), 1)
        periodic._tick()
        self.assertEqual((periodic.runs, periodic.missed), (2, 2))

    def test_one_run_makes_up_for_them(self) -> None:
        periodic = self.make(True)
        for _ in range(3):
            periodic._tick()
        self.assertEqual((periodic.runs, periodic.missed), (1, 2))
        self.made[0].set_result(None)
        self.assertEqual(periodic.runs, 2)
        self.made[1].set_result(None)
        self.assertEqual(periodic.runs, 2)
        periodic._tick()
        periodic._tick()
        periodic.close()
        self.assertTrue(self.made[2].cancelled())
        self.assertEqual(periodic.runs, 3)
        self.assertEqual(periodic._tick(), Flow.DONE)

    def test_refusals(self) -> None:
        periodic = self.make(False)
        self.refuses = paceline.Full("no room")
        self.assertEqual(periodic._tick(), Flow.WAIT)
        self.assertEqual((periodic.runs, periodic.missed, periodic.closed), (0, 1, False))
        self.refuses = paceline.ShutDownError("over")
        self.assertEqual(periodic._tick(), Flow.DONE)
        self.assertEqual((periodic.runs, periodic.missed, periodic.closed), (0, 1, True))


class PeriodicOnes(Workers):
    def test_they_end(self) -> None:
        workers = self.make(threads=1)
        tick = workers.task(name="tick")(nothing)
        self.assertFalse(workers.every(3600, tick)._coalesce)
        closed = workers.every(3600, tick, missed="coalesce")
        self.assertTrue(closed._coalesce)
        closed.close()
        handle = closed._handle
        assert handle is not None
        self.assertTrue(closed.closed and handle.closed)
        other = workers.every(3600, tick)
        workers.shutdown()
        self.assertTrue(other.closed)
        with self.assertRaises(paceline.ShutDownError):
            workers.every(3600, tick)


class ByHand(Workers):
    """Without threads: what was taken together, and what happens to the rest of it meanwhile."""

    def together(self, workers: WorkerPool) -> None:
        workers._core.capacity = 64

    def test_each_has_its_attempt(self) -> None:
        workers = self.make(threads=0)
        seen: list[Attempt] = []
        function = workers.task(name="seen")(lambda: seen.append(current_attempt()))
        tasks = [function.submit() for _ in range(3)]
        self.together(workers)
        self.assertEqual(workers.run(), 3)
        self.assertEqual([each.id for each in seen], [task.report().id for task in tasks])
        self.assertEqual({each.name for each in seen}, {"seen"})
        self.assertIn("1 of 'seen'", repr(seen[0]))
        # They are over, which is no failure.
        seen[0].heartbeat()
        self.assertTrue(seen[0].cancelled)
        self.assertFalse(_is_stuck(workers._core.mine))

    def test_one_is_cancelled_behind_another(self) -> None:
        workers = self.make(threads=0)
        ran: list[str] = []
        second: list[Any] = []
        first = workers.task(name="first")(lambda: ran.append(str(second[0].cancel()))).submit()
        second.append(workers.task(name="second")(lambda: ran.append("second")).submit())
        self.together(workers)
        while workers.run():
            pass
        # It was out already: it was only asked.
        self.assertEqual(ran, ["False"])
        self.assertTrue(first.done() and second[0].cancelled())

    def test_the_time_of_one_is_over_behind_another(self) -> None:
        workers = self.make(threads=0)
        ran: list[str] = []

        statuses: list[TaskStatus] = []

        def waits() -> None:
            self.until(lambda: workers.audit().timed_out == 1)
            # Its end is not told yet.
            statuses.append(late.status)

        workers.task(name="waits")(waits).submit()
        late = workers.task(name="late", timeout=0.2)(lambda: ran.append("late")).submit()
        self.together(workers)
        while workers.run():
            pass
        self.assertEqual((ran, statuses), ([], [TaskStatus.RUNNING]))
        self.assertIs(late.report(LONG).status, TaskStatus.TIMED_OUT)

    def test_what_one_raises_whose_time_is_over_is_the_cause(self) -> None:
        workers = self.make(threads=0)

        @workers.task(timeout=0.02)
        def late() -> None:
            self.until(lambda: workers.audit().timed_out == 1)
            raise OSError("too late")

        task = late.submit()
        # It may be over before it has begun.
        while workers.run() and not task.done():
            pass
        if task.report(LONG).attempts:
            error = task.exception()
            self.assertIsInstance(error, paceline.TimeoutError)
            self.assertIsInstance(error and error.__cause__, OSError)

    def test_an_attempt_of_nobody_is_completed(self) -> None:
        workers = self.make(threads=0)
        workers.task(name="nobody")(nothing).post()
        workers._core.jobs.clear()
        self.assertEqual(workers.run(), 1)
        audit = workers.audit()
        self.assertEqual((audit.failed, audit.in_flight), (1, 0))

    def test_time_begins_when_it_begins(self) -> None:
        workers = self.make(threads=0)
        marks: list[float] = []

        def waits() -> None:
            time.sleep(0.01)
            marks.append(time.monotonic())

        def told() -> None:
            attempt = current_attempt()
            marks.append(attempt._began)
            left = attempt.time_left()
            assert left is not None and attempt._deadline is not None
            self.assertTrue(0 < left <= 1000)
            # Time that is over is none, and not less.
            attempt._began -= 2000
            self.assertEqual(attempt.time_left(), 0.0)
            marks.append(attempt._deadline)

        workers.task(name="waits")(waits).submit()
        task = workers.task(name="told", timeout=1000.0, deadline=3000.0)(told).submit()
        self.together(workers)
        with mock.patch.object(Attempt, "heartbeat") as heartbeat:
            while workers.run():
                pass
        # Natively its time began when it was taken.
        heartbeat.assert_called_once_with()
        self.assertIsNone(task.exception(LONG))
        self.assertGreaterEqual(marks[1], marks[0])
        self.assertEqual(marks[2], task.due + 3000)

    def test_a_pool_without_threads_is_driven_by_the_shutdown(self) -> None:
        pool = Pool(0)
        self.addCleanup(pool.shutdown)
        workers = WorkerPool(pool, threads=0)
        task = workers.task(name="later")(lambda: 5).options(delay=0.01).submit()
        self.assertTrue(workers.shutdown(LONG).drained)
        self.assertEqual(task.result(0), 5)


class Ending(Workers):
    def test_how_long(self) -> None:
        workers = self.make(threads=1)
        with mock.patch.object(workers._core, "shutdown") as shutdown:
            workers.shutdown()
            workers.shutdown(1.0, 2.0, 3.0)
            with workers:
                pass
            with self.assertRaises(Stop), workers:
                raise Stop
        expected = [(30, 5, 5), (1.0, 2.0, 3.0), (None, 5, 5), (0, 5, 5)]
        self.assertEqual([call.args for call in shutdown.mock_calls], expected)

    def test_inside_a_task_it_goes_on_without_it(self) -> None:
        workers = self.make(threads=1)
        with mock.patch.object(workers._core, "_finish") as finish:
            ends = workers.task(name="ends")(lambda: workers.shutdown(1.0, 2.0, 3.0))
            self.assertTrue(ends.submit().result(LONG).requested)
            self.until(lambda: finish.called)
        finish.assert_called_once_with((1_000_000_000, 2_000_000_000), 3.0)

    def test_hooks(self) -> None:
        workers = self.make(threads=1)
        self.assertIs(workers.on_shutdown(nothing), nothing)

        @workers.on_shutdown
        def fails() -> None:
            raise OSError

        with self.assertLogs("paceline", logging.ERROR):
            report = workers.shutdown()
        self.assertIn("fails", report.failed_hooks[0])

    def test_who_does_not_return_is_not_waited_for(self) -> None:
        workers = self.make(threads=1)
        gate = self.gate(workers)
        self.assertEqual(workers.shutdown(0, 0.001).stuck, {"gate": 1})
        self.assertFalse(workers._core.join(0))
        gate.open.set()
        self.assertTrue(workers._core.join(LONG))

    def test_threads_that_rest_end_with_a_pool_that_is_lost(self) -> None:
        core = self.lost()
        self.until_collected(lambda: not any(thread.is_alive() for thread in core.threads))
        self.assertTrue(core.closed)

    def lost(self) -> Any:
        workers = WorkerPool(self.pool, threads=3)
        core = workers._core
        workers.set_active(1)
        quick = workers.task(name="quick")(nothing)
        while core.resting < 2:
            quick.submit().result(LONG)
        workers.set_active(3)
        self.until(lambda: core.resting == 0)
        workers.set_active(1)
        while core.resting < 2:
            quick.submit().result(LONG)
        return core

    def test_reports_in_words(self) -> None:
        report = ShutdownReport(False, False, {"b": 2, "a": 1}, {"c": 3}, {"d": 4}, ("e", "f"))
        told = "not drained; completed: 1 a, 2 b; cancelled: 3 c; stuck: 4 d; failed hooks: e, f"
        self.assertEqual(str(report), told)
        self.assertEqual(
            str(ShutdownReport(False, True, {}, {}, {}, ())),
            "drained; completed: none; cancelled: none; stuck: none",
        )
        self.assertEqual(str(ShutdownReport(True, False, {}, {}, {}, ())), "requested")


class Told(Workers):
    def test_health(self) -> None:
        workers = self.make(threads=3)
        gate = self.gate(workers)
        workers.set_active(2)
        health = workers.health()
        self.assertEqual((health.threads, health.capacity, health.free), (3, 2, 1))
        self.assertEqual((health.waiting, health.status), (0, "ready"))
        gate.open.set()
        alone = self.make(threads=1)
        gate = self.gate(alone)
        for _ in range(2):
            alone.task(name="waits")(nothing).submit()
        self.assertEqual(alone.health().waiting, 2)
        gate.open.set()

    def test_stats(self) -> None:
        workers = self.make(threads=0, max_queued=2)
        calls = workers.task(name="counted")(nothing)
        for _ in range(2):
            calls.submit()
        for _ in range(3):
            with self.assertRaises(paceline.Full):
                calls.submit()
        stats = calls.stats()
        self.assertEqual((stats.submitted, stats.accepted, stats.rejected), (5, 2, 3))
        native = (name for name, *_ in layout.TaskTypeStats._fields_)
        self.assertLessEqual(set(TaskTypeStats.__dataclass_fields__), set(native))

    def test_figures(self) -> None:
        workers = self.make(threads=1, metrics=True, name="figured")
        workers.gauge("level", "How high", shelf="a").set(1.5)
        workers.histogram("sizes", "How big", unit="bytes", box="b").record(7)
        workers.histogram("counts", unit="numbers").record(3)
        workers.histogram("ways").record(2.0)
        workers.counter("parcels", "All of them", port="x").inc()
        workers.task(name="counted")(nothing).submit().result(LONG)
        text = workers.metrics()
        for line in (
            "# HELP level How high",
            'level{shelf="a"} 1.5',
            "# HELP sizes How big",
            'sizes_sum{box="b"} 7.0',
            "counts_sum 3.0",
            "ways_sum 2.0",
            "# HELP parcels_total All of them",
            'parcels_total{port="x"} 1.0',
        ):
            self.assertIn(line, text.splitlines())
        self.assertIn('workers="figured"', text)
        names = [thread.name for thread in threading.enumerate()]
        self.assertIn("figured_0", names)

    def test_reports_count_seconds(self) -> None:
        workers = self.make(threads=1)
        begin = time.monotonic()
        gate = self.gate(workers)
        running = workers.task(name="runs")(gate).submit()
        # The first one runs, and the second waits for it.
        waited = time.monotonic()
        time.sleep(0.02)
        waited = time.monotonic() - waited
        gate.open.set()
        report = running.report(LONG)
        took = time.monotonic() - begin
        self.assertTrue(waited <= report.queue_time <= took + 1)
        self.assertLessEqual(report.run_time, took + 1)
        slow = workers.task(name="slow")(lambda: time.sleep(0.02)).submit().report(LONG)
        self.assertGreaterEqual(slow.run_time, 0.02)
        self.assertLessEqual(slow.run_time, time.monotonic() - begin + 1)

    def test_causes(self) -> None:
        workers = self.make(threads=1)

        @workers.task(retries=Retry.fixed(1, 1000))
        def fails() -> None:
            raise OSError("the first one")

        task = fails.submit()
        self.until(lambda: task.status is TaskStatus.RETRYING)
        self.assertTrue(task.drop())
        with self.assertRaises(paceline.Full) as full:
            task.result(LONG)
        self.assertIs(full.exception.__cause__, task.last)
        self.assertIsInstance(task.last, OSError)
        self.assertIs(task.status, TaskStatus.REJECTED)
        done = workers.task(name="done")(nothing).submit()
        done.result(LONG)
        # What waits in ``exception`` sees an end that no thread is free to tell.
        gate = self.gate(workers)
        late = workers.task(name="late", queue_timeout=0.01)(nothing).submit()
        self.assertIsInstance(late.exception(LONG / 4), paceline.TimeoutError)
        gate.open.set()

    def test_what_is_overtaken_is_not_its_tasks(self) -> None:
        workers = self.make(threads=2)
        gate, other = Gate(), threading.Event()
        self.addCleanup(gate.open.set)
        self.addCleanup(other.set)

        @workers.task(timeout=0.2, retries=Retry.fixed(50, 0), overlap_retries=True)
        def overtaken() -> str:
            attempt = current_attempt()
            while attempt.number > 1 and not other.wait(0.001):
                attempt.heartbeat()
            if attempt.number > 1:
                return "in time"
            gate()
            raise ValueError("too late")

        task = overtaken.submit()
        gate.inside.get(timeout=LONG)
        self.until(lambda: overtaken.stats().retried >= 1)
        gate.open.set()
        # The first one has come back, and the task goes on.
        self.until(lambda: overtaken.stats().discarded >= 1)
        self.until(lambda: all(hand.job is None or hand.number > 1 for hand in workers._core.hands))
        self.assertIsNone(task.last)
        other.set()
        self.assertEqual(task.result(LONG), "in time")

    def test_heartbeats_are_heard(self) -> None:
        workers = self.make(threads=1)

        @workers.task(timeout=0.05)
        def goes_on() -> None:
            attempt = current_attempt()
            end = time.monotonic() + 0.25
            while time.monotonic() < end and not attempt.cancelled:
                attempt.heartbeat()
                time.sleep(0.001)

        # Who is not let run for so long has been silent, and tries again.
        self.until(lambda: goes_on.submit().exception(LONG) is None)


class Doing(Workers):
    """What is done without room."""

    def full_pool(self, full: str, threads: int = 1) -> tuple[WorkerPool, Gate]:
        workers = self.make(threads=threads, max_queued=2, full=full)
        return workers, self.gate(workers, threads)

    def test_seconds_and_other_pools(self) -> None:
        workers, gate = self.full_pool("reject")
        calls = workers.task(name="calls", retries=Retry.fixed(3, 0))(lambda: 1 / 0)
        other = Pool(1)
        self.addCleanup(other.shutdown)
        for _ in range(2):
            calls.submit()
        waits = calls.options(full=LONG, retries=0)
        begun = queue.Queue[None]()

        def submit(*_: Any) -> Any:
            begun.put(None)
            return waits.submit()

        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.append(submit()))
        thread.start()
        # A thread of another pool may wait, too.
        elsewhere = other.submit(submit)
        for _ in range(2):
            begun.get(timeout=LONG)
        time.sleep(0.02)
        gate.open.set()
        thread.join(LONG)
        for task in (*made, elsewhere.result(LONG)):
            report = task.report(LONG)
            self.assertEqual((report.status, report.attempts), (TaskStatus.FAILED, 1))

    def test_each_of_a_batch_that_waited_has_its_own_id(self) -> None:
        workers, gate = self.full_pool("wait")
        calls = workers.task(name="echo")(lambda item: (item, current_attempt().id))
        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.extend(calls.submit_batch(range(50))))
        thread.start()
        gate.open.set()
        thread.join(LONG)
        told = [task.report(LONG) for task in made]
        self.assertEqual([report.value for report in told], [(n, told[n].id) for n in range(50)])
        self.assertEqual(len({report.id for report in told}), 50)

    def test_a_task_that_runs_with_its_submitter_waits_for_nobody(self) -> None:
        workers, gate = self.full_pool("run_here")
        quick = workers.task(name="quick")(nothing)
        refused: list[bool] = []

        def inside() -> None:
            try:
                while True:
                    quick.options(full=LONG).submit()
            except paceline.Full:
                refused.append(True)

        within = workers.task(name="within")(inside)
        for _ in range(3):
            within.submit()
        gate.open.set()
        self.until(lambda: len(refused) == 3)

    def test_who_finds_nothing_to_help_with_is_refused(self) -> None:
        # One thread runs, and the other waits for what comes; so does what has the key.
        workers = self.make(threads=2, max_waiting=1, full="run_here")
        gate = Gate()
        self.addCleanup(gate.open.set)
        keyed = workers.task(name="keyed")(gate).options(key=1)
        keyed.submit()
        gate.inside.get(timeout=LONG)
        keyed.submit()
        with self.assertRaises(paceline.Full):
            keyed.submit()
        gate.open.set()

    def test_the_oldest_goes(self) -> None:
        workers = self.make(threads=1, max_droppable=2, full="drop_oldest")
        gate = self.gate(workers)
        calls = workers.task(name="calls")(nothing)
        first, second, third = (calls.submit() for _ in range(3))
        self.assertIs(first.report(LONG).status, TaskStatus.REJECTED)
        gone = calls.submit()
        self.assertTrue(gone.cancel())
        gate.open.set()
        self.assertIs(second.report(LONG).status, TaskStatus.REJECTED)
        self.assertIs(third.report(LONG).status, TaskStatus.COMPLETED)
        # Neither what has begun nor what was cancelled waits.
        core = workers._core
        self.until(lambda: sum(map(len, core.droppable)) == 0)
        core.note_droppable(calls.lane, 1, third)
        self.assertTrue(third.begun)
        self.assertEqual(sum(map(len, core.droppable)), 0)

    def test_settings_of_files_and_variables(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "settings.json"
            for full in ("reject", "wait", "run_here", "drop_oldest"):
                path.write_text(json.dumps({"workers": {"full": full, "min_active": 2}}))
                workers = self.make(threads=3, settings=path)
                self.assertEqual((workers._core.full, workers.active), (full, 2))
        os.environ["PACELINE_WORKERS_FULL"] = "run_here"
        self.addCleanup(os.environ.pop, "PACELINE_WORKERS_FULL", None)
        self.assertEqual(self.make(environment=True)._core.full, "run_here")
        os.environ["PACELINE_WORKERS_FULL"] = ""
        self.assertEqual(self.make(environment=True)._core.full, self.make()._core.full)
        self.assertEqual(self.make()._core.full, "reject")


class Seen(Workers):
    def test_what_leaves_a_task_is_seen(self) -> None:
        seen: list[BaseException] = []

        class Sees(Middleware):
            def on_error(self, attempt: Attempt, exception: BaseException) -> None:
                seen.append(exception)

        workers = self.make(threads=1, middleware=[Sees()])

        @workers.task
        def leaves() -> None:
            raise SystemExit(3)

        with self.assertRaises(SystemExit):
            leaves.submit().result(LONG)
        self.assertEqual([type(each) for each in seen], [SystemExit])


class Pace:
    """The threads of a scaler, and the timers of their pool, by hand."""

    def __init__(self, active: int = 1) -> None:
        self.pool, self.most, self.active, self.closed = self, 9, active, False
        self.timers: list[Any] = []
        self.refuses = False

    def set_active(self, threads: int) -> None:
        self.active = threads

    def after(self, seconds: float, function: Any) -> None:
        if self.refuses:
            raise paceline.Full("no handle is left")
        self.timers.append((seconds, function))

    def tick(self) -> None:
        _, function = self.timers.pop()
        function()


class Scales(Case):
    def make(self, active: int = 1, **settings: Any) -> tuple[Scaler, Pace, list[float]]:
        pace, now = Pace(active), [0.0]
        return Scaler(Scaling(high=1, low=0.1, **settings), pace, lambda: now[0]), pace, now

    def waits(self, scaler: Scaler, now: list[float], *waits: float) -> None:
        """Tasks that have waited for so long, in this order."""
        for token, wait in enumerate(waits):
            scaler._stamps[token] = now[0] - wait
            scaler.began(token)

    def test_the_percentile_decides(self) -> None:
        scaler, pace, now = self.make(percentile=50)
        # In whatever order they have come: the sixth of ten is half a second.
        self.waits(scaler, now, 9, 9, 9, 9, 0.5, 0.5, 0.5, 0, 0, 0)
        scaler.look()
        self.assertEqual(pace.active, 1)
        self.waits(scaler, now, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2)
        scaler.look()
        self.assertEqual(pace.active, 2)
        scaler, pace, now = self.make(percentile=100)
        self.waits(scaler, now, 2, 0)
        scaler.look()
        self.assertEqual(pace.active, 2)

    def test_only_quiet_looks_in_a_row_count(self) -> None:
        scaler, pace, now = self.make(active=5, patience=2, min_active=3)
        for wait, active in ((0, 5), (0.5, 5), (0, 5), (2, 6), (0, 6), (0, 5), (0, 5), (0, 4)):
            self.waits(scaler, now, wait)
            scaler.look()
            self.assertEqual(pace.active, active)
        for active in (4, 3, 3, 3, 3, 3):
            scaler.look()
            self.assertEqual(pace.active, active, "not fewer than it may")

    def test_its_timer(self) -> None:
        scaler, pace, now = self.make(active=2, period=7.0, patience=1)
        pace.refuses = True
        scaler.note(1)
        self.assertEqual(pace.timers, [])
        # The next submission tries again; one timer is enough.
        pace.refuses = False
        for token in (2, 3):
            scaler.note(token)
        self.assertEqual([seconds for seconds, _ in pace.timers], [7.0])
        pace.tick()
        self.assertEqual(len(pace.timers), 1, "something waits still")
        for token in (1, 2, 3):
            scaler.began(token)
        pace.tick()
        self.assertEqual((pace.active, pace.timers), (1, []), "there is nothing to look at")
        scaler.note(4)
        self.assertEqual(len(pace.timers), 1)
        pace.closed = True
        pace.active = 5
        pace.tick()
        self.assertEqual((pace.active, pace.timers), (5, []))


class Services(Case):
    def test_a_service_from_two_files_and_the_environment(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            base, own = os.path.join(folder, "base.yaml"), os.path.join(folder, "own.json")
            with open(base, "w", encoding="utf-8") as file:
                file.write(
                    "pool: {threads: 3, name: rider}\n"
                    "workers: {max_waiting: 16}\n"
                    "tasks: {lane: high, timeout: 2s, retries: 3, retry_growth: fixed, full: reject}\n"
                    "hub: {max_payload: 8 B, notice_interval: 2s}\n"
                    "history: {pattern: 'a.>', keep_count: 2, keep_age: 1h}\n"
                    "server: {address: '127.0.0.1:0', max_connections: 7, output_low: 1}\n"
                    "http: {max_body: 3, head_timeout: 1500ms}\n"
                    "webhook: {url: 'http://127.0.0.1:9/', capacity: 4, retries: 0}\n"
                    "log: {facade: false}\n"
                )
            with open(own, "w", encoding="utf-8") as file:
                json.dump({"pool": {"threads": 2}, "tasks": {"retries": 1, "retry_delay": "1ms"}}, file)
            with mock.patch.dict(os.environ, {"PACELINE_HUB_ERRORS": "77"}):
                settings = paceline.Settings(base, own, environment=True)
                self.assertEqual(
                    settings.hub(), {"max_payload": 8, "errors": 77, "notice_interval": 2.0}
                )
                with paceline.Pool(settings=settings) as pool:
                    self.assertEqual(len(pool.stats().threads), 2)
                    workers = paceline.WorkerPool(pool, settings=[base, own])
                    runs: list[int] = []

                    def fails() -> None:
                        runs.append(1)
                        raise ValueError

                    chosen = settings.tasks()
                    self.assertEqual((chosen["timeout"], chosen["full"]), (2.0, "reject"))
                    self.assertEqual(chosen["priority"], paceline.Lane.HIGH)
                    task = workers.task(name="fails", **chosen)(fails).submit()
                    self.assertEqual(task.report(60).status, paceline.TaskStatus.FAILED)
                    self.assertEqual(len(runs), 2)
                    hub = paceline.Hub(pool, histories=settings.histories(), **settings.hub())
                    with self.assertRaises(InvalidError):
                        hub.publish("a.b", b"123456789")
                    for number in range(5):
                        hub.publish("a.b", b"%d" % number)
                    self.assertEqual(len(hub.query("a.b")), 2)
                    listen = settings.listen("unused")
                    self.assertEqual(listen.address, "127.0.0.1:0")
                    self.assertEqual(listen.max_connections, 7)
                    self.assertEqual(listen.output_marks, (1, 1 << 18, 1 << 24))
                    self.assertEqual(settings.http(), {"max_body": 3, "head_timeout": 1.5})
                    http = paceline.Http(pool, listen, **settings.http())
                    http.start()
                    self.assertEqual(len(http.addresses), 1)
                    http.close()
                    self.assertEqual(settings.webhook()["url"], "http://127.0.0.1:9/")
                    try:
                        paceline.Webhook(**settings.webhook()).close()
                    except paceline.UnsupportedError:
                        pass
                    hub.close()
                with open(own, "w", encoding="utf-8") as file:
                    json.dump({"hub": {"max_payload": 0}, "htp": {}}, file)
                with self.assertRaises(InvalidError) as told:
                    settings.http()
                self.assertIn("hub.max_payload", str(told.exception))
                self.assertIn("htp", str(told.exception))
        nothing = paceline.Settings()
        self.assertEqual((nothing.hub(), nothing.histories(), nothing.tasks()), ({}, (), {}))
        with self.assertRaisesRegex(InvalidError, "server.address"):
            nothing.listen()
        with self.assertRaises(TypeError):
            paceline.Settings(5)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
