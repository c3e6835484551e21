"""``WorkerPool``: named tasks with priorities, retries, limits, and an honest end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import json
import logging
import os
import pickle
import queue
import select
import signal
import threading
import time
import unittest
import weakref
from typing import Any

import paceline
from paceline import Error, InvalidError, PermanentFailure, Pool, Rate, Retry, RetryAfter, RetryBudget
from paceline import TaskStatus, WorkerPool
from paceline import current_attempt
from paceline._library import quick
from support import Case, run

#: No wait of a test is meant to take so long. Seconds.
LONG = 120


#: What Prometheus sends, shortened.
PROMETHEUS_ASKS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
)


class Gate:
    """Holds threads of a worker pool until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside: queue.Queue[Any] = queue.Queue()

    def __call__(self, *args: Any) -> Any:
        self.inside.put(args)
        self.open.wait(LONG)
        return args


def is_draining(workers: WorkerPool) -> bool:
    """Whether it is so natively, too: what completes from then on is counted by the shutdown."""
    health = (ctypes.c_uint32 * 10)(40)
    assert quick["pace_workers_health"](workers._core.native.pointer, health) == 0
    return health[1] == 3


class Workers(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def make(self, threads: int = 2, **settings: Any) -> WorkerPool:
        workers = WorkerPool(self.pool, threads=threads, **settings)
        self.addCleanup(workers.shutdown, 0, LONG)
        return workers

    def gate(self, workers: WorkerPool, threads: int = 1) -> Gate:
        """Keeps so many threads busy until the gate is opened, at the latest when the test ends."""
        gate = Gate()
        self.addCleanup(gate.open.set)
        function = workers.task(name="gate")(gate)
        for _ in range(threads):
            function.submit()
            gate.inside.get(timeout=LONG)
        return gate


class Interrupted(Workers):
    @unittest.skipUnless(hasattr(signal, "setitimer"), "signals")
    def test_a_shutdown_that_waits(self) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt("from a signal")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, interrupt)
        workers = self.make(threads=1)
        gate = self.gate(workers)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(KeyboardInterrupt):
            workers.shutdown(drain=600)
        gate.open.set()
        self.assertTrue(workers.shutdown(drain=600).drained)


class Results(Workers):
    def test_what_is_returned_and_how_it_ended(self) -> None:
        workers = self.make()

        @workers.task
        def add(a: int, b: int = 0) -> int:
            return a + b

        self.assertEqual(add(1, b=2), 3)
        task = add.submit(3, b=4)
        self.assertEqual(task.result(LONG), 7)
        self.assertIs(task.status, TaskStatus.COMPLETED)
        report = task.report()
        self.assertEqual((report.status, report.value, report.error), (TaskStatus.COMPLETED, 7, None))
        self.assertEqual((report.attempts, report.name), (1, add.name))
        self.assertGreater(report.queue_time, 0)
        self.assertGreaterEqual(report.run_time, 0)
        self.assertIs(task.report(), report)
        self.assertNotEqual(add.submit(0).report(LONG).id, report.id)
        self.assertIn("add", add.name)
        self.assertEqual(add.__name__, "add")

    def test_a_clean_up_without_a_text(self) -> None:
        class CleanUp:
            count = 0

            def __call__(self) -> None:
                self.count += 1

            def __repr__(self) -> str:
                raise ValueError("no text")

        workers, clean_up = self.make(), CleanUp()
        self.assertIs(workers.on_shutdown(clean_up), clean_up)
        workers.shutdown()
        self.assertEqual(clean_up.count, 1)

    def test_exceptions_are_raised_by_result(self) -> None:
        workers = self.make()

        @workers.task
        def fails(text: str) -> None:
            raise KeyError(text)

        task = fails.submit("gone")
        with self.assertRaisesRegex(KeyError, "gone") as raised:
            task.result(LONG)
        self.assertIs(task.status, TaskStatus.FAILED)
        report = task.report()
        self.assertIs(report.error, raised.exception)
        self.assertIsNone(report.value)
        # Its traceback begins in the function.
        try:
            fails.submit("again").result(LONG)
        except KeyError as exception:
            frame = exception.__traceback__
        names = []
        while frame is not None:
            names.append(frame.tb_frame.f_code.co_name)
            frame = frame.tb_next
        self.assertIn("fails", names)
        self.assertNotIn("_work", names)
        self.assertEqual(fails.stats().failed, 2)

    def test_exceptions_that_are_false(self) -> None:
        class Nothing(Exception):
            def __bool__(self) -> bool:
                raise ValueError("neither true nor false")

        @self.make(threads=1).task(retries=0)
        def fails() -> None:
            raise Nothing

        # The thread goes on.
        for _ in range(2):
            with self.assertRaises(Nothing):
                fails.submit().result(LONG)

    def test_batches_in_order(self) -> None:
        workers = self.make(threads=3)
        square = workers.task(name="square")(lambda a, b: a * b)
        tasks = square.submit_batch(range(1000), range(1000))
        self.assertEqual([task.result(LONG) for task in tasks], [n * n for n in range(1000)])
        self.assertEqual(square.submit_batch([], []), [])
        self.until(lambda: workers.audit().balances and workers.audit().in_flight == 0)
        audit = workers.audit()
        self.assertEqual((audit.submitted, audit.completed), (1000, 1000))
        self.assertEqual(workers.stats()["square"], square.stats())

    def test_they_are_standard_futures(self) -> None:
        workers = self.make()
        gate = self.gate(workers, 2)
        half = workers.task(name="half")(lambda n: n / 2)
        tasks = half.submit_batch([2, 4])
        called: queue.Queue[Any] = queue.Queue()
        tasks[0].add_done_callback(called.put)
        done, pending = concurrent.futures.wait(tasks, timeout=0)
        self.assertEqual((len(done), len(pending)), (0, 2))
        with self.assertRaises(concurrent.futures.TimeoutError):
            tasks[0].result(0.001)
        with self.assertRaises(concurrent.futures.TimeoutError):
            tasks[0].report(0.001)
        gate.open.set()
        done, pending = concurrent.futures.wait(tasks, timeout=LONG)
        self.assertEqual({task.result() for task in done}, {1, 2})
        self.assertIs(called.get(timeout=LONG), tasks[0])
        self.assertEqual(
            [each.result() for each in concurrent.futures.as_completed(tasks, LONG)].count(1), 1
        )

    def test_in_asyncio(self) -> None:
        workers = self.make()
        gate = self.gate(workers, 2)
        half = workers.task(name="half")(lambda n: n / 2)
        fails = workers.task(name="fails")(lambda: 1 / 0)

        async def main() -> None:
            one = asyncio.ensure_future(self.awaited(half.submit(8)))
            given_up = half.submit(1)
            two = asyncio.ensure_future(self.awaited(given_up))
            await asyncio.sleep(0)
            two.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await two
            gate.open.set()
            self.assertEqual(await asyncio.wait_for(one, LONG), 4)
            with self.assertRaises(ZeroDivisionError):
                await fails.submit()
            self.assertIs(given_up.status, TaskStatus.CANCELLED)

        asyncio.run(main())

    async def awaited(self, task: Any) -> Any:
        return await task

    def test_without_threads(self) -> None:
        workers = self.make(threads=0)
        here = workers.task(name="here")(threading.get_ident)
        task = here.submit()
        self.assertIs(task.status, TaskStatus.PENDING)
        self.assertEqual(select.select([workers.fileno()], [], [], LONG)[0], [workers.fileno()])
        self.assertEqual(workers.run(), 1)
        self.assertEqual(task.result(0), threading.get_ident())
        later = here.submit()
        self.assertTrue(workers.shutdown(LONG).drained)
        self.assertEqual(later.result(0), threading.get_ident())
        with self.assertRaises(paceline.InvalidError):
            self.make(threads=1).run()


class Failures(Workers):
    def test_retries_until_it_succeeds(self) -> None:
        workers = self.make()

        @workers.task(retries=Retry.fixed(3, 0.001))
        def third() -> int:
            number = current_attempt().number
            if number < 3:
                raise OSError(f"attempt {number}")
            return number

        task = third.submit()
        self.assertEqual(task.result(LONG), 3)
        self.assertEqual(task.report().attempts, 3)
        self.assertEqual(third.stats().retried, 2)

    def test_the_last_exception_is_what_is_raised(self) -> None:
        workers = self.make()

        def fails() -> None:
            raise OSError(f"attempt {current_attempt().number}")

        for retries in (
            Retry.fixed(2, 0),
            Retry.linear(2, 0.0001),
            Retry.exponential(2, 0.0001, jitter="none"),
            Retry.random(2, 0, 0.001),
            Retry.exponential(2, 0.0001).limited(LONG),
        ):
            function = workers.task(name=str(retries), retries=retries)(fails)
            with self.assertRaisesRegex(OSError, "attempt 3"):
                function.submit().result(LONG)
            with self.assertRaisesRegex(OSError, "attempt 1"):
                function.options(retries=0).submit().result(LONG)

    def test_a_task_says_permanent_or_later(self) -> None:
        workers = self.make()
        began: list[float] = []

        @workers.task(retries=Retry.fixed(3, 0))
        def permanent() -> None:
            raise PermanentFailure("no such thing")

        @workers.task(retries=Retry.fixed(1, 0))
        def later() -> None:
            began.append(time.monotonic())
            raise RetryAfter(0.05, "not yet")

        task = permanent.submit()
        with self.assertRaisesRegex(PermanentFailure, "no such thing"):
            task.result(LONG)
        self.assertEqual(task.report().attempts, 1)
        with self.assertRaisesRegex(RetryAfter, "not yet"):
            later.submit().result(LONG)
        self.assertEqual(len(began), 2)
        self.assertGreaterEqual(began[1] - began[0], 0.049)

    def test_delays_of_ones_own(self) -> None:
        workers = self.make()
        asked: list[int] = []

        def delay(retry: int) -> float:
            asked.append(retry)
            if retry == 3:
                raise ValueError("no more")
            return 0.001

        @workers.task(retries=Retry.custom(5, delay))
        def fails() -> None:
            raise OSError(current_attempt().number)

        with self.assertLogs("paceline", logging.ERROR):
            with self.assertRaisesRegex(OSError, "3"):
                fails.submit().result(LONG)
        self.assertEqual(asked, [1, 2, 3])

    def test_a_budget_bounds_retries(self) -> None:
        workers = self.make()

        @workers.task(retries=Retry.fixed(10, 0), budget=RetryBudget(ratio=0, per_second=0, burst=4))
        def fails() -> None:
            raise OSError

        tasks = [fails.submit() for _ in range(10)]
        for task in tasks:
            with self.assertRaises(OSError):
                task.result(LONG)
        stats = fails.stats()
        self.assertLessEqual(stats.retried, 4)
        self.assertEqual(stats.retries_refused, 10)

    def test_what_cannot_be_shown(self) -> None:
        workers = self.make()

        class Odd(Exception):
            def __str__(self) -> str:
                raise ValueError

        @workers.task
        def odd(kind: Any) -> None:
            raise kind("\0 \ud800")

        for kind in (Odd, ValueError, SystemExit, KeyboardInterrupt):
            with self.assertRaises(kind):
                odd.submit(kind).result(LONG)
        self.assertEqual(workers.health().status, "ready")


class Limits(Workers):
    def test_an_attempt_that_is_late(self) -> None:
        workers = self.make(threads=1)
        seen: queue.Queue[Any] = queue.Queue()

        @workers.task(timeout=1.0)
        def sleeps() -> str:
            attempt = current_attempt()
            seen.put(attempt.time_left())
            while not attempt.cancelled:
                time.sleep(0.001)
            seen.put(attempt.time_left())
            return "too late"

        task = sleeps.submit()
        with self.assertRaisesRegex(paceline.TimeoutError, "the task's time is over"):
            task.result(LONG)
        self.assertIs(task.status, TaskStatus.TIMED_OUT)
        self.assertIs(task.report().status, TaskStatus.TIMED_OUT)
        self.assertLessEqual(seen.get(timeout=LONG), 1)
        self.assertLess(seen.get(timeout=LONG), 1)
        # The thread goes on.
        self.assertEqual(workers.task(name="one")(lambda: 1).submit().result(LONG), 1)

    def test_each_thread_is_told_with_what_it_runs(self) -> None:
        workers = self.make(threads=2)
        once: list[int] = []

        def second() -> None:
            if not once:
                once.append(1)
                raise ValueError("once")

        report = workers.task(name="second", retries=Retry.fixed(1, 0))(second).submit().report(LONG)
        self.assertEqual((report.status, report.attempts), (TaskStatus.COMPLETED, 2))
        rows = workers.worker_stats()
        self.assertEqual([row.worker for row in rows], ["workers_0", "workers_1"])
        self.assertIn(report.worker, ("workers_0", "workers_1"))
        self.assertEqual(sum(row.completed for row in rows), 1)
        self.assertEqual(sum(row.failed for row in rows), 1)
        gate = Gate()
        self.addCleanup(gate.open.set)
        deaf = workers.task(name="deaf", timeout=0.001)(gate).submit()
        # What had lain there for longer than its time is not begun.
        report = deaf.report(LONG)
        while report.worker is None:
            deaf = workers.task(name="deaf", timeout=0.001)(gate).submit()
            report = deaf.report(LONG)
        self.assertIs(report.status, TaskStatus.TIMED_OUT)
        row = next(row for row in workers.worker_stats() if row.worker == report.worker)
        self.assertEqual((row.state, row.task_type), ("stuck", "deaf"))
        self.assertEqual(row.attempts, row.completed + row.failed + 1)
        self.assertTrue(0 < row.utilisation <= 1 and row.run_time > 0, row)
        gate.open.set()
        self.until(lambda: all(row.state == "waiting" for row in workers.worker_stats()))
        workers.set_active(1)
        self.until(lambda: workers.worker_stats()[1].state == "set aside")
        workers.shutdown()
        self.assertEqual([row.state for row in workers.worker_stats()], ["ended"] * 2)
        self.assertEqual(sum(row.attempts for row in workers.worker_stats()), 3)

    def test_a_thread_of_the_program_is_told_by_its_name(self) -> None:
        workers = self.make(threads=0)
        cancelled = workers.task(name="cancelled")(lambda: 1).submit()
        self.assertTrue(cancelled.cancel())
        self.assertIsNone(cancelled.report(LONG).worker)
        task = workers.task(name="one")(lambda: workers.worker_stats()[0]).submit()
        self.until(lambda: workers.run() and task.done())
        name = threading.current_thread().name
        row = task.result(0)
        self.assertEqual((row.worker, row.state, row.task_type), (name, "running", "one"))
        self.assertEqual((row.attempts, row.completed), (1, 0))
        self.assertEqual(task.report().worker, name)

    def test_one_that_does_not_listen_is_stuck(self) -> None:
        workers = self.make(threads=2)
        gate = Gate()
        self.addCleanup(gate.open.set)
        deaf = workers.task(name="deaf", timeout=1.0)(gate)
        with self.assertRaises(paceline.TimeoutError):
            deaf.submit().result(LONG)
        gate.inside.get(timeout=LONG)
        health = workers.health()
        self.assertEqual((health.status, health.stuck, health.capacity), ("degraded", ("deaf",), 1))
        self.assertEqual(health.free, 1)
        with self.assertRaises(paceline.TimeoutError):
            deaf.submit().result(LONG)
        gate.inside.get(timeout=LONG)
        self.assertEqual(workers.health().status, "stuck")
        gate.open.set()
        self.until(lambda: workers.health().status == "ready")

    def test_a_retry_overtakes_a_late_attempt(self) -> None:
        workers = self.make(threads=2)
        gate = Gate()
        self.addCleanup(gate.open.set)

        @workers.task(timeout=0.2, retries=Retry.fixed(50, 0), overlap_retries=True)
        def overtaken() -> str:
            attempt = current_attempt()
            if attempt.number > 1:
                return "in time"
            gate()
            if attempt.cancelled:
                raise ValueError("too late")
            return "never told"

        task = overtaken.submit()
        gate.inside.get(timeout=LONG)
        self.assertEqual(task.result(LONG), "in time")
        late = task.report().attempts - 1
        self.assertGreaterEqual(late, 1)
        self.until(lambda: overtaken.stats().running == 1)
        gate.open.set()
        self.until(lambda: overtaken.stats().running == 0)
        stats = overtaken.stats()
        self.assertEqual(
            (stats.completed, stats.failed, stats.retried, stats.discarded), (1, 0, late, late)
        )
        self.assertEqual(task.result(0), "in time")
        self.until(lambda: workers.health().status == "ready")

    def test_an_attempt_without_a_sign_of_life_has_failed(self) -> None:
        workers = self.make(threads=2)
        gate = Gate()
        self.addCleanup(gate.open.set)

        @workers.task(lease=0.05, retries=Retry.fixed(50, 0))
        def silent() -> str:
            if current_attempt().number > 1:
                return "in time"
            gate()
            return "never told"

        task = silent.submit()
        self.assertEqual(task.result(LONG), "in time")
        self.assertGreaterEqual(silent.stats().retried, 1)
        gate.open.set()
        self.until(lambda: silent.stats().running == 0)
        self.assertEqual((task.result(0), silent.stats().completed), ("in time", 1))

        again = Gate()
        self.addCleanup(again.open.set)

        @workers.task(lease=0.05)
        def gone() -> None:
            again()

        with self.assertRaisesRegex(Error, "no sign of life"):
            gone.submit().result(LONG)
        self.assertEqual(gone.stats().failed, 1)
        again.open.set()
        with self.assertRaisesRegex(InvalidError, "lease"):
            workers.task(name="wrong", lease=0.0001)(len)

    def test_a_heartbeat_gives_time(self) -> None:
        workers = self.make(threads=1)

        @workers.task(timeout=LONG)
        def slow() -> str:
            attempt = current_attempt()
            began = attempt._began
            time.sleep(0.001)
            attempt.heartbeat()
            self.assertGreater(attempt._began, began)
            self.assertFalse(attempt.cancelled)
            return "done"

        self.assertEqual(slow.submit().result(LONG), "done")

    def test_time_in_the_queue_and_in_all(self) -> None:
        workers = self.make(threads=1)
        gate = self.gate(workers)
        quick = workers.task(name="quick")(lambda: 1)
        for limits in ({"queue_timeout": 0.01}, {"deadline": 0.01}):
            task = quick.options(**limits).submit()
            with self.assertRaises(paceline.TimeoutError):
                task.result(LONG)
            self.assertEqual(task.report().attempts, 0)
        unlimited = workers.task(name="limited", queue_timeout=0.01)(lambda: 2)
        task = unlimited.options(queue_timeout=float("inf")).submit()
        time.sleep(0.02)
        gate.open.set()
        self.assertEqual(task.result(LONG), 2)

    def test_a_deadline_is_told(self) -> None:
        workers = self.make()
        left = workers.task(name="left", deadline=50.0)(lambda: current_attempt().time_left())
        told = left.submit().result(LONG)
        assert told is not None
        self.assertTrue(0 < told <= 50)
        told = left.options(timeout=10).submit().result(LONG)
        assert told is not None
        self.assertTrue(0 < told <= 10)
        none = workers.task(name="none")(lambda: current_attempt().time_left())
        self.assertIsNone(none.submit().result(LONG))

    def test_a_soft_time_only_asks(self) -> None:
        workers = self.make()

        @workers.task(soft_timeout=0.01)
        def listens() -> str:
            while not current_attempt().cancelled:
                time.sleep(0.001)
            return "what there was"

        self.assertEqual(listens.submit().result(LONG), "what there was")

    def test_so_many_at_once(self) -> None:
        self.switch_often()
        workers = self.make(threads=4)
        inside: list[int] = []
        most: list[int] = []

        @workers.task(max_running=2)
        def counts() -> None:
            inside.append(1)
            most.append(len(inside))
            time.sleep(0)
            inside.pop()

        for task in [counts.submit() for _ in range(200)]:
            task.result(LONG)
        self.assertLessEqual(max(most), 2)


class Cancelling(Workers):
    def test_what_waits_never_starts(self) -> None:
        workers = self.make(threads=1)
        gate = self.gate(workers)
        began = []
        task = workers.task(name="late")(lambda: began.append(1)).submit()
        self.assertIs(task.status, TaskStatus.PENDING)
        self.assertFalse(task.running())
        self.assertTrue(task.cancel())
        self.assertTrue(task.cancel())
        self.assertIs(task.status, TaskStatus.CANCELLED)
        with self.assertRaises(concurrent.futures.CancelledError):
            task.result(0)
        self.assertIs(task.report().status, TaskStatus.CANCELLED)
        gate.open.set()
        self.until(lambda: workers.audit().in_flight == 0)
        self.assertEqual((began, workers.audit().cancelled), ([], 1))
        done, _ = concurrent.futures.wait([task], timeout=LONG)
        self.assertEqual(done, {task})

    def test_what_runs_is_asked(self) -> None:
        workers = self.make()
        inside: queue.Queue[Any] = queue.Queue()

        @workers.task(retries=Retry.fixed(9, 0))
        def listens() -> None:
            inside.put(None)
            while not current_attempt().cancelled:
                time.sleep(0.001)
            raise OSError("gave up")

        task = listens.submit()
        inside.get(timeout=LONG)
        self.assertTrue(task.running())
        self.assertIs(task.status, TaskStatus.RUNNING)
        self.assertFalse(task.cancel())
        with self.assertRaises(concurrent.futures.CancelledError):
            task.result(LONG)
        self.assertIs(task.report().status, TaskStatus.CANCELLED)
        self.assertFalse(task.running())

    def test_what_waits_for_its_retry(self) -> None:
        workers = self.make()

        @workers.task(retries=Retry.fixed(1, 1000.0))
        def fails() -> None:
            raise OSError

        task = fails.submit()
        self.until(lambda: task.status is TaskStatus.RETRYING)
        self.assertTrue(task.cancel())
        self.assertTrue(task.cancelled())

    def test_from_many_threads_each_ends_once(self) -> None:
        self.switch_often()
        workers = self.make(threads=3)
        ran: list[int] = []
        note = workers.task(name="note")(ran.append)
        tasks = [note.submit(n) for n in range(300)]
        won: list[int] = []

        def cancel(of: list[Any]) -> None:
            won.extend(n for n in of if tasks[n].cancel())

        threads = [threading.Thread(target=cancel, args=(range(n, 300, 4),)) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        concurrent.futures.wait(tasks, timeout=LONG)
        self.assertEqual(sorted(ran + [n for n in range(300) if tasks[n].cancelled()]), list(range(300)))
        self.assertTrue(set(won) <= {n for n in range(300) if tasks[n].cancelled()})
        self.until(lambda: workers.audit().balances and workers.audit().in_flight == 0)


class Order(Workers):
    def test_priorities(self) -> None:
        workers = self.make(threads=1)
        gate = self.gate(workers)
        order: list[str] = []
        low = workers.task(name="low", priority="low")(order.append)
        tasks = [low.submit("low") for _ in range(40)]
        tasks += low.options(priority="critical").submit_batch(["critical"] * 40)
        tasks += low.options(priority=paceline.Lane.HIGH).submit_batch(["high"] * 40)
        gate.open.set()
        concurrent.futures.wait(tasks, timeout=LONG)
        self.assertEqual(len(order), 120)
        # Weights of 32, 18 and 4; and nobody starves.
        self.assertGreaterEqual(order[:60].count("critical"), 30)
        self.assertGreaterEqual(order[:60].count("high"), 15)
        self.assertGreaterEqual(order[:60].count("low"), 1)

    def test_keys(self) -> None:
        self.switch_often()
        workers = self.make(threads=4)
        inside: dict[str, int] = {"a": 0, "b": 0}
        order: dict[str, list[int]] = {"a": [], "b": []}
        most: list[int] = []

        @workers.task(retries=Retry.fixed(1, 0))
        def step(key: str, n: int) -> None:
            inside[key] += 1
            most.append(inside[key])
            time.sleep(0)
            inside[key] -= 1
            if n % 7 == 3 and current_attempt().number == 1:
                raise OSError
            order[key].append(n)

        tasks = [step.options(key=key).submit(key, n) for n in range(50) for key in "ab"]
        for task in tasks:
            task.result(LONG)
        self.assertEqual(set(most), {1})
        self.assertEqual(order, {"a": list(range(50)), "b": list(range(50))})

    def test_delays_and_rates(self) -> None:
        workers = self.make()
        began = time.monotonic()
        now = workers.task(name="now")(time.monotonic)
        self.assertGreaterEqual(now.submit_after(0.05).result(LONG) - began, 0.049)
        self.assertGreaterEqual(now.options(delay=0.02).submit().result(LONG) - began, 0.019)
        limited = workers.task(name="limited", rate=Rate(1, per=0.02))(time.monotonic)
        began = time.monotonic()
        times = [task.result(LONG) for task in [limited.submit() for _ in range(4)]]
        self.assertGreaterEqual(max(times) - began, 0.059)

    def test_what_is_slow_holds_nobody_up(self) -> None:
        # Quick ones, so that many are taken at once; then one that waits for others behind it.
        workers = self.make(threads=2)
        nothing = workers.task(name="nothing")(lambda *_: None)
        for task in nothing.submit_batch(range(5000)):
            task.result(LONG)
        for _ in range(20):
            opened = threading.Event()
            both = workers.task(name="both")(lambda call: call())
            first, second = both.submit_batch([lambda: opened.wait(LONG), opened.set])
            self.assertTrue(first.result(LONG))
            second.result(LONG)

    def test_periodic(self) -> None:
        workers = self.make()
        ran: queue.Queue[int] = queue.Queue()
        periodic = workers.every(0.002, workers.task(name="tick")(ran.put), 7)
        self.assertEqual([ran.get(timeout=LONG) for _ in range(3)], [7, 7, 7])
        periodic.close()
        self.assertGreaterEqual(periodic.runs, 3)
        self.until(lambda: workers.audit().in_flight == 0)
        runs = periodic.runs
        time.sleep(0.01)
        self.assertEqual(periodic.runs, runs)

    def test_ticks_that_are_missed(self) -> None:
        workers = self.make()
        for missed in ("skip", "coalesce"):
            gate = Gate()
            self.addCleanup(gate.open.set)
            tick = workers.task(name=missed)(gate)
            periodic = workers.every(0.001, tick, missed=missed)
            gate.inside.get(timeout=LONG)
            self.until(lambda: periodic.missed >= 3)
            self.assertEqual(periodic.runs, 1)
            gate.open.set()
            self.until(lambda: periodic.runs >= 2)
            periodic.close()
        with self.assertRaisesRegex(paceline.InvalidError, "missed"):
            workers.every(1, tick, missed="never")


class Ends(Workers):
    def test_it_drains(self) -> None:
        workers = self.make()
        gate = self.gate(workers, 2)
        quick = workers.task(name="quick")(lambda n: n)
        tasks = quick.submit_batch(range(5))
        said: list[str] = []
        workers.on_shutdown(lambda: said.append("first"), "first")
        workers.on_shutdown(lambda: said.append("last"), "last")
        reports: queue.Queue[Any] = queue.Queue()
        ender = threading.Thread(target=lambda: reports.put(workers.shutdown(LONG, LONG)))
        ender.start()
        self.until(lambda: workers.health().status == "draining" and is_draining(workers))
        gate.open.set()
        report = reports.get(timeout=LONG)
        ender.join()
        self.assertTrue(report.drained)
        self.assertEqual(report.completed.get("quick"), 5)
        self.assertEqual((report.cancelled, report.stuck, report.failed_hooks), ({}, {}, ()))
        self.assertEqual([task.result(0) for task in tasks], list(range(5)))
        self.assertEqual(said, ["last", "first"])
        self.assertIn("drained; completed: ", str(report))
        for submit in (quick.submit, quick.submit_after):
            with self.assertRaises(paceline.ShutDownError):
                submit(1)
        with self.assertRaises(paceline.ShutDownError):
            quick.submit_batch([1])
        self.assertFalse([each for each in threading.enumerate() if each.name.startswith("workers_")])
        self.assertTrue(workers.audit().balances)

    def test_what_has_not_begun_is_cancelled_and_what_does_not_listen_is_told(self) -> None:
        workers = self.make(threads=1)
        gate = self.gate(workers)
        late = [workers.task(name="waits")(lambda: None).submit() for _ in range(2)]

        def broken() -> None:
            raise OSError("on purpose")

        workers.on_shutdown(broken)
        with self.assertLogs("paceline", logging.ERROR):
            report = workers.shutdown(0.01, 0.01)
        self.assertFalse(report.drained)
        self.assertEqual((report.cancelled, report.stuck), ({"waits": 2}, {"gate": 1}))
        self.assertIn("broken", report.failed_hooks[0])
        gate.open.set()
        for task in late:
            with self.assertRaises(concurrent.futures.CancelledError):
                task.result(LONG)
        self.assertTrue(workers._core.join(LONG))

    def test_hooks_have_a_time(self) -> None:
        workers = self.make()
        said: list[int] = []
        workers.on_shutdown(lambda: said.append(1), "one")
        workers.on_shutdown(lambda: time.sleep(0.01), "slow")
        self.assertIn("one", workers.shutdown(clean_up=0.001).failed_hooks)
        self.assertEqual(said, [])

    def test_inside_a_task_it_is_a_request(self) -> None:
        workers = self.make(threads=1)

        @workers.task
        def ends() -> bool:
            return workers.shutdown(LONG).requested

        @workers.task(name="after")
        def after() -> int:
            return 3

        gate = self.gate(workers)
        first, second = ends.submit(), after.submit()
        gate.open.set()
        self.assertTrue(first.result(LONG))
        self.assertEqual(second.result(LONG), 3)
        self.assertTrue(workers._core.join(LONG))
        with self.assertRaises(paceline.ShutDownError):
            after.submit()

    def test_with_blocks(self) -> None:
        with self.make() as workers:
            task = workers.task(name="n")(lambda: 5).submit()
        self.assertEqual(task.result(0), 5)
        with self.assertRaises(KeyError):
            with self.make() as workers:
                gate = self.gate(workers, 2)
                task = workers.task(name="n")(lambda: 5).submit()
                threading.Timer(0.05, gate.open.set).start()
                raise KeyError
        self.assertTrue(task.cancelled())

    def test_the_pool_beneath_ends(self) -> None:
        pool = Pool(1)
        workers = WorkerPool(pool, threads=1)
        gate = Gate()
        running = workers.task(name="gate")(gate).submit()
        gate.inside.get(timeout=LONG)
        waiting = workers.task(name="n")(lambda: 5).submit()
        pool.shutdown()
        gate.open.set()
        for task in (running, waiting):
            concurrent.futures.wait([task], timeout=LONG)
            self.assertTrue(task.done())
        self.assertTrue(workers._core.join(LONG))
        workers.shutdown(0)

    def test_one_that_is_lost_ends(self) -> None:
        core = weakref.ref(self.lost())
        self.until_collected(
            lambda: core() is None or not any(each.is_alive() for each in core().threads)
        )

    def lost(self) -> Any:
        workers = WorkerPool(self.pool, threads=2)
        workers.task(name="n")(lambda: 5).submit().result(LONG)
        return workers._core

    def test_tasks_and_what_they_hold_are_freed(self) -> None:
        workers = self.make()

        class Thing:
            pass

        thing = Thing()
        gone = weakref.ref(thing)
        same = workers.task(name="same")(lambda thing: thing)
        fails = workers.task(name="fails")(lambda thing: 1 / 0)
        task = same.submit(thing)
        self.assertIs(task.result(LONG), thing)
        with self.assertRaises(ZeroDivisionError):
            fails.submit(thing).result(LONG)
        del task, thing
        self.until_collected(lambda: gone() is None)
        self.until(lambda: not workers._core.jobs)

    def test_ids_are_given_back(self) -> None:
        # They are made by the 256.
        workers = self.make(max_tasks=256)
        n = workers.task(name="n")(lambda: 5)
        for _ in range(600):
            self.assertEqual(n.submit().result(LONG), 5)
        kept = []
        with self.assertRaises(paceline.Full):
            for _ in range(300):
                kept.append(n.submit())
        self.assertLessEqual(len(kept), 256)
        for task in kept:
            self.assertEqual(task.report(LONG).value, 5)
        del kept[100:], task
        many = workers.task(name="many")(lambda _: 6)
        with self.assertRaises(paceline.Full) as full:
            many.submit_batch(range(300))
        accepted = full.exception.tasks  # type: ignore[attr-defined]
        self.assertEqual([task.result(LONG) for task in accepted], [6] * len(accepted))
        self.assertTrue(accepted)
        self.until(lambda: not workers._core.jobs)

    def test_in_a_child(self) -> None:
        workers = self.make()
        n = workers.task(name="n")(lambda: 5)
        n.submit().result(LONG)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for call in (n.submit, lambda: n.submit_batch(), workers.audit, workers.shutdown):
                    try:
                        call()
                    except paceline.ForkedError:
                        continue
                    os._exit(2)
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(n.submit().result(LONG), 5)

    def test_the_interpreter_ends_in_mid_traffic(self) -> None:
        for seed in range(5):
            told = run(
                f"""
                import random, sys, time
                import paceline
                random.seed({seed})
                workers = paceline.WorkerPool(paceline.Pool(1), threads=3)

                @workers.task(retries=5, timeout=10.0)
                def again(n):
                    if random.random() < 0.3:
                        raise OSError
                    try:
                        again.submit(n + 1)
                    except paceline.ShutDownError:
                        pass

                again.submit_batch(range(50))
                workers.every(0.001, again, 0)
                time.sleep(random.random() * 0.05)
                """
            )
            self.assertEqual((told.returncode, told.stdout), (0, ""), told.stderr)
            self.assertNotIn("Error", told.stderr)


class Settings(Workers):
    def test_wrong_ones_are_named(self) -> None:
        workers = self.make()
        for settings, named in [
            ({"priority": "urgent"}, "priority is 'urgent'"),
            ({"priority": 4}, "priority is 4"),
            ({"retries": -1}, "retries is -1"),
            ({"retries": -1}, "retries is -1"),
            ({"timeout": 0}, "timeout is 0"),
            ({"timeout": -1}, "timeout is -1"),
            ({"deadline": float("nan")}, "deadline is nan"),
            ({"queue_timeout": 1e10}, "queue_timeout"),
            ({"retries": Retry.fixed(1, -1)}, "first is -1"),
            ({"retries": Retry.fixed(1, 1, jitter="some")}, "jitter is 'some'"),
            ({"retries": Retry.random(1, 2, 1)}, ""),
            ({"rate": Rate(0)}, "rate.starts"),
            ({"rate": Rate(1, per=0)}, ""),
            ({"budget": RetryBudget(burst=0)}, "burst"),
            ({"budget": RetryBudget(per_second=-1)}, "budget.per_second"),
            ({"name": "a\0b"}, "NUL"),
            ({"max_running": 0}, "max_running is 0"),
            ({"soft_timeout": 0}, "soft_timeout is 0"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(paceline.InvalidError, named):
                workers.task(**settings)(lambda: None)
        function = workers.task(name="known")(lambda: None)
        for settings, named in [
            ({"priority": "urgent"}, "priority"),
            ({"delay": -1}, "delay is -1"),
            ({"timeout": 0}, "timeout is 0"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(paceline.InvalidError, named):
                function.options(**settings)
        with self.assertRaisesRegex(paceline.InvalidError, "known"):
            workers.task(name="known", timeout=3)(lambda: None)
        for settings, named in [
            ({"threads": -1}, "threads"),
            ({"max_waiting": 0}, "max_waiting"),
            ({"max_queued": -1}, "max_queued"),
            ({"max_tasks": 1 << 25}, "max_tasks"),
            ({"seed": -1}, "seed"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(paceline.InvalidError, named):
                WorkerPool(self.pool, **settings)

    def test_what_cannot_be_a_task(self) -> None:
        workers = self.make()

        def generator() -> Any:
            yield

        for thing in (generator, 3):
            with self.assertRaises(TypeError):
                workers.task(name="n")(thing)  # type: ignore[type-var]
        with self.assertRaises(TypeError):
            Retry.custom(1, 3)  # type: ignore[arg-type]
        with self.assertRaisesRegex(RuntimeError, "current_attempt"):
            current_attempt()
        for unpicklable in (workers, workers.task(name="n")(len).submit("")):
            with self.assertRaises(TypeError):
                pickle.dumps(unpicklable)

    def test_metrics(self) -> None:
        workers = self.make(metrics=True, name="own")
        n = workers.task(name="counted")(lambda: 5)
        n.submit().result(LONG)
        self.assertIn('task="counted"', workers.metrics().replace("task_type=", "task="))
        self.assertIn("families", json.loads(workers.metrics("json")))
        for accept, name, version in (
            (None, "prometheus", "text/plain; version=0.0.4"),
            ("*/*", "prometheus", "text/plain; version=0.0.4"),
            (PROMETHEUS_ASKS, "openmetrics", "application/openmetrics-text; version=1.0.0"),
        ):
            format, media_type = paceline.metrics_format(accept)
            self.assertEqual((format, media_type), (name, version + "; charset=utf-8"))
            self.assertEqual(workers.metrics(format).endswith("# EOF\n"), name == "openmetrics")
        with self.assertRaisesRegex(paceline.InvalidError, "format"):
            workers.metrics("xml")
        with self.assertRaisesRegex(paceline.InvalidError, "metrics"):
            self.make().metrics()


if __name__ == "__main__":
    unittest.main()
