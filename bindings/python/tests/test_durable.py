"""Durable tasks, with a broker of the test's own."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import paceline
from paceline import DurableQueue, PermanentFailure, Pool, Retry, RetryAfter, WorkerPool
from paceline._native import Native
from support import PACKAGE, run
from test_bridge import LONG, SOON, Brokered
from test_native import natives, no_threads


class Durable(Brokered):
    def setUp(self) -> None:
        super().setUp()
        self.workers = WorkerPool(self.pool, threads=2)
        self.addCleanup(self.workers.shutdown, 0, 1)
        self.name = f"q{time.monotonic_ns()}"

    def queue(self, **settings: Any) -> DurableQueue:
        queue = self.workers.durable(self.name, self.broker.url, **settings)
        self.addCleanup(queue.close)
        return queue


class Tasks(Durable):
    def test_calls_are_run_and_return(self) -> None:
        queue = self.queue()
        jobs: list[Any] = []

        @queue.task
        def add(one: int, *, two: list[int]) -> dict[str, int]:
            """Adds."""
            jobs.append(paceline.current_job())
            return {"sum": one + sum(two)}

        self.assertEqual((add.name, add.__doc__, add(1, two=[2])), ("add", "Adds.", {"sum": 3}))
        with queue.open(work=True):
            task = add.submit(1, two=[2, 3])
            self.assertEqual(task.result(LONG), {"sum": 6})
            report = task.wait(LONG)
            self.assertEqual((report.status, report.attempts, report.failure), ("completed", 1, None))
            self.assertTrue(task.done())
            self.assertFalse(task.cancel())
            # By its id, and by its name.
            self.assertEqual(queue.find(task.id).result(LONG), {"sum": 6})
            again = queue.calls("add").submit(4, two=[])
            self.assertEqual(again.result(LONG), {"sum": 4})
            self.assertNotEqual(again.id, task.id)
        self.assertIsNone(jobs[0])
        self.assertEqual(jobs[1], (task.id, "add", 1, None))
        self.assertIsNone(paceline.current_job())
        with self.assertRaises(paceline.ShutDownError):
            add.submit(1, two=[])

    def test_who_opens_a_queue_to_submit_is_no_worker(self) -> None:
        """Goal: a process that imports functions runs none of them. Method: its queue has a function, another that works has
        one, too, and all tasks are run by that, while the first waits for them."""
        web, worker = self.queue(), self.queue()
        web.task(name="work")(lambda: "web")
        worker.task(name="work")(lambda: "worker")
        with web:
            self.assertTrue(web.wait_connected(LONG))
            tasks = [web.calls("work").submit() for _ in range(20)]
            self.assertIsNone(web._taker.thread)
            with worker.open(work=True):
                self.assertEqual([task.result(LONG) for task in tasks], ["worker"] * 20)
                with self.assertRaisesRegex(paceline.InvalidError, "open already"):
                    worker.open(work=True)

    def test_coroutines(self) -> None:
        queue = self.queue()

        @queue.task(name="sleep")
        async def sleep(number: int) -> tuple[int, int]:
            await asyncio.sleep(0.01)
            job = paceline.current_job()
            assert job is not None
            return number, job.attempt

        async def main() -> list[Any]:
            tasks = await asyncio.gather(*(sleep.submit_async(number) for number in range(50)))
            return await asyncio.gather(*tasks)

        with queue.open(work=True):
            self.assertEqual(asyncio.run(main()), [[number, 1] for number in range(50)])

    def test_bytes_are_as_they_are(self) -> None:
        queue = self.queue()

        @queue.task(codec="bytes")
        def turn(given: bytes) -> bytes:
            return given[::-1]

        with queue.open(work=True):
            self.assertEqual(turn.submit(b"\0\xffa").result(LONG), b"a\xff\0")
            self.assertEqual(turn.submit().result(LONG), b"")
            for wrong in ((b"a", b"b"), ("text",), (5,)):
                with self.assertRaises((TypeError, paceline.InvalidError)):
                    turn.submit(*wrong)

    def test_what_a_function_raises_fails_the_attempt(self) -> None:
        queue = self.queue()
        attempts: list[int] = []

        @queue.task(retries=Retry.fixed(2, SOON))
        def fails(until: int) -> int:
            job = paceline.current_job()
            assert job is not None
            attempts.append(job.attempt)
            if job.attempt < until:
                raise ValueError(f"attempt {job.attempt}")
            return job.attempt

        @queue.task(retries=5)
        def never() -> None:
            raise PermanentFailure("no more")

        @queue.task(retries=Retry.fixed(1, 3600))
        def later() -> int:
            job = paceline.current_job()
            assert job is not None
            if job.attempt == 1:
                raise RetryAfter(SOON)
            return job.attempt

        @queue.task(retries=0)
        def strange() -> Any:
            return object()

        with queue.open(work=True):
            self.assertEqual(fails.submit(2).result(LONG), 2)
            self.assertEqual(attempts, [1, 2])
            task = fails.submit(9)
            with self.assertRaisesRegex(paceline.DurableFailure, "ValueError: attempt 3") as raised:
                task.result(LONG)
            self.assertEqual(
                (raised.exception.report.status, raised.exception.report.attempts), ("failed", 3)
            )
            with self.assertRaisesRegex(paceline.DurableFailure, "no more"):
                never.submit().result(LONG)
            self.assertEqual(later.submit().result(LONG), 2)
            with self.assertRaisesRegex(paceline.DurableFailure, "its result cannot be encoded"):
                strange.submit().result(LONG)
            with self.assertRaises(TypeError):
                fails.submit(object())
            queue.calls("fails", "bytes").submit(b"no json")
            self.until(lambda: len(queue.dead()) == 4)
            dead = queue.dead()
            self.assertEqual([each.name for each in dead], ["fails", "never", "strange", "fails"])
            self.assertEqual((dead[0].arguments, dead[0].id), (b"[[9],{}]", task.id))
            self.assertIn("cannot be decoded", dead[3].failure)
            self.assertEqual(queue.dead(dead[1].number, 1), [dead[1]])
            # It is run again, and is dead again.
            with self.assertRaises(paceline.DurableFailure):
                queue.resubmit(dead[1].number).result(LONG)
            queue.forget(dead[0].number)
            self.assertEqual([each.name for each in queue.dead()], ["strange", "fails", "never"])
            with self.assertRaises(paceline.StaleError):
                queue.forget(dead[0].number)
            with self.assertRaises(paceline.StaleError):
                queue.resubmit(dead[0].number)

    def test_options_of_submissions(self) -> None:
        queue = self.queue()
        order: list[str] = []
        entered, go_on = threading.Event(), threading.Event()

        @queue.task(max_running=1)
        def note(word: str) -> float:
            order.append(word)
            if word == "first":
                entered.set()
                go_on.wait(LONG)
            return time.time()

        with queue.open(work=True):
            first = note.submit("first")
            self.assertTrue(entered.wait(LONG))
            unique = note.options(unique="u", priority="high")
            one, same = unique.submit("one"), unique.submit("two")
            self.assertEqual((one.duplicate, same.duplicate, one.id), (False, True, same.id))
            before = time.time()
            late = note.options(delay=0.2).submit("late")
            cancelled = note.options(delay=3600).submit("never")
            self.assertTrue(cancelled.cancel())
            with self.assertRaises(CancelledError):
                cancelled.result(LONG)
            over = note.options(deadline=0.05).submit("over")
            silent = note.options(ignore_result=True).submit("silent")
            with self.assertRaises(paceline.TimeoutError):
                first.result(0.01)
            time.sleep(0.1)
            go_on.set()
            with self.assertRaises(paceline.TimeoutError):
                over.result(LONG)
            first.result(LONG)
            one.result(LONG)
            self.assertGreaterEqual(late.result(LONG) - before, 0.2)
            self.until(lambda: "silent" in order)
            with self.assertRaises(paceline.TimeoutError):
                silent.result(0.1)
        self.assertEqual(sorted(order), ["first", "late", "one", "silent"])

    def test_a_time_limit_fails_an_attempt(self) -> None:
        queue = self.queue()

        @queue.task(retries=0, timeout=0.05)
        async def hangs() -> None:
            await asyncio.sleep(3600)

        with queue.open(work=True), self.assertRaises(paceline.DurableFailure):
            hangs.submit().result(LONG)

    def test_the_decorator_of_worker_pools(self) -> None:
        with self.assertRaisesRegex(paceline.InvalidError, "durable is True, and there are 0"):
            self.workers.task(durable=True)
        queue = self.queue()

        @self.workers.task(durable=True)
        def one() -> int:
            return 1

        @self.workers.task(durable=queue, name="two", retries=1)
        def other() -> int:
            return 2

        with self.assertRaisesRegex(paceline.InvalidError, "durable is given"):
            self.workers.task(durable=queue, priority="high")  # type: ignore[call-overload]
        with queue.open(work=True):
            self.assertEqual((one.submit().result(LONG), other.submit().result(LONG)), (1, 2))

    def test_schedules(self) -> None:
        queue = self.queue()
        ran: list[str] = []

        @queue.task
        def tick(word: str) -> None:
            ran.append(word)

        queue.schedule("each-second", "* * * * * *", tick, "tick")
        with queue.open(work=True):
            self.until(lambda: len(ran) >= 2)
        self.assertEqual(set(ran), {"tick"})
        wrong = self.queue()
        wrong.schedule("bad", "never", wrong.calls("tick"))
        with self.assertRaisesRegex(paceline.InvalidError, "schedule"):
            wrong.open()

    def test_what_is_out_of_order_is_told(self) -> None:
        queue = self.queue()
        with self.assertRaisesRegex(paceline.InvalidError, "the queue is not open"):
            queue.calls("a").submit()
        with self.assertRaisesRegex(paceline.InvalidError, "has no functions"):
            queue.open(work=True)
        with queue:
            with self.assertRaisesRegex(paceline.InvalidError, "the queue is open already"):
                queue.task(lambda: None)
            with self.assertRaisesRegex(paceline.InvalidError, "the queue is open already"):
                queue.open(work=True)
            with self.assertRaisesRegex(paceline.InvalidError, "task id|id of a"):
                queue.find("nonsense").wait(LONG)
        for name in ("a b", ""):
            with self.assertRaises(paceline.InvalidError):
                self.workers.durable(name, self.broker.url).open()

    def test_a_broker_that_is_away_is_not_one_that_has_none(self) -> None:
        queue = self.workers.durable(self.name, "nats://127.0.0.1:1").open()
        self.addCleanup(queue.close, 0)
        asks = (
            queue.dead,
            lambda: queue.forget(1),
            lambda: queue.resubmit(1),
            queue.find("n00000000000000000000000000000000").cancel,
        )
        with ThreadPoolExecutor(len(asks)) as threads:
            for answer in [threads.submit(ask) for ask in asks]:
                self.assertIsInstance(answer.exception(), paceline.TimeoutError)
        stats = queue.stats()
        self.assertEqual((stats.connected, stats.connects, stats.reason), (False, 0, queue.reason))
        late = (
            queue.calls("t").options(timeout=0.001).submit,
            lambda: queue.find("n00000000000000000000000000000000").wait(0.001),
        )
        for call in late:
            with self.assertRaisesRegex(paceline.TimeoutError, "refused"):
                call()

    def test_another_process_goes_on_with_what_a_dead_one_has_begun(self) -> None:
        """Goal: a task whose worker is killed runs elsewhere. Method: the first worker says that it has begun, and hangs."""
        script = f"""
            import paceline, sys, time
            workers = paceline.WorkerPool(paceline.Pool(1), threads=1)
            queue = workers.durable({self.name!r}, {self.broker.url!r}, ack_wait=1)

            @queue.task
            def work():
                print("begun", flush=True)
                time.sleep(3600)

            with queue.open(work=True):
                time.sleep(3600)
        """
        import textwrap

        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        environment["PACELINE_LIBRARY"] = paceline.library_path
        command = [sys.executable, "-c", textwrap.dedent(script)]
        worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        assert worker.stdout is not None
        self.addCleanup(worker.stdout.close)
        with self.queue(ack_wait=1) as queue:
            task = queue.calls("work").submit()
            self.assertEqual(worker.stdout.readline(), "begun\n")
            os.kill(worker.pid, signal.SIGKILL)
        # A name may be given a function before a queue is open.
        pool = self.workers
        other = pool.durable(self.name, self.broker.url, ack_wait=1)
        self.addCleanup(other.close)

        @other.task
        def work() -> int:
            job = paceline.current_job()
            assert job is not None
            return job.attempt

        with other.open(work=True):
            self.assertEqual(other.find(task.id).result(LONG), 2)

    def test_what_waits_for_a_thread_has_not_begun(self) -> None:
        """Goal: it can be cancelled, and has its first attempt after it was given back. Method: the only thread is taken."""
        narrow = WorkerPool(self.pool, threads=1)
        self.addCleanup(narrow.shutdown, 0, 1)
        queue, other = narrow.durable(self.name, self.broker.url), self.queue()
        self.addCleanup(queue.close)
        entered, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        @queue.task
        def hold() -> None:
            entered.set()
            go_on.wait(LONG)

        @other.task(name="work", retries=Retry.none())
        def run() -> int:
            job = paceline.current_job()
            assert job is not None
            return job.attempt

        work = queue.task(name="work", retries=Retry.none())(lambda: "here")
        queue.open(work=True)
        hold.submit()
        self.assertTrue(entered.wait(LONG))
        cancelled, task = work.submit(), work.submit()
        while len(queue._taker.held) < 3:
            time.sleep(SOON)
        self.assertTrue(cancelled.cancel())
        closes = threading.Thread(target=queue.close, args=(LONG,))
        closes.start()
        other.open(work=True)
        self.assertEqual(other.find(task.id).result(LONG), 1)
        go_on.set()
        closes.join()
        self.assertEqual(other.find(cancelled.id).wait(LONG).status, "cancelled")

    def test_what_there_is_no_room_for_is_given_back(self) -> None:
        """Goal: another worker has it at once. Method: nothing is collected, and the only thread and place of the first are
        taken until the other has run the task."""
        full = WorkerPool(self.pool, threads=1, max_queued=1)
        self.addCleanup(full.shutdown, 0, 1)
        self.uncollected()
        queue, other = full.durable(self.name, self.broker.url), self.queue()
        self.addCleanup(queue.close)
        queue.task(name="work")(lambda: "first")
        other.task(name="work")(lambda: "other")
        entered, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        @full.task
        def hold() -> None:
            entered.set()
            go_on.wait(LONG)

        hold.post()
        entered.wait(LONG)
        with self.assertRaises(paceline.Full):
            for _ in range(8):
                hold.post()
        refused = threading.Event()
        begin = queue._taker.begin

        def begun(native: Native) -> None:
            try:
                begin(native)
            except paceline.Full:
                refused.set()
                raise

        with unittest.mock.patch.object(queue._taker, "begin", begun):
            queue.open(work=True)
            task = queue.calls("work").submit()
            self.assertTrue(refused.wait(LONG))
            other.open(work=True)
            self.assertEqual(other.find(task.id).result(LONG), "other")

    def test_what_comes_from_the_broker_is_freed_by_name(self) -> None:
        """Goal: no path leaves that to the collector. Method: all native objects are kept here, by their list."""
        queue = self.queue(ack_wait=1)
        entered = threading.Event()

        @queue.task(retries=0)
        def work(how: str) -> Any:
            if how == "raise":
                raise ValueError(how)
            if how == "hold":
                entered.set()
                while not paceline.current_attempt().cancelled:
                    time.sleep(0.001)
            return object() if how == "strange" else how

        with natives() as made:
            self.uncollected()
            with queue.open(work=True):
                self.assertEqual(work.submit("fine").result(LONG), "fine")
                kept = [work.submit(how).wait(LONG) for how in ("raise", "strange")]
                kept.append(queue.calls("work", "bytes").submit(b"no json").wait(LONG))
                self.assertEqual([each.status for each in kept], ["failed"] * 3)
                self.until(lambda: len(queue.dead()) == 3)
                # Its result cannot be decoded.
                task = queue.calls("work").submit("fine")
                task._codec = unittest.mock.Mock()
                task._codec.value.side_effect = ValueError("no")
                with self.assertRaises(ValueError) as raised:
                    task.result(LONG)
                # One is cancelled while it runs, as its worker pool ends.
                work.submit("hold")
                self.assertTrue(entered.wait(LONG))
                self.workers.shutdown(0, LONG)
            self.assertGreater(len(made), 10)
            self.until(lambda: [each for each in made if each.pointer.value is not None] == [])
        del raised

    def test_a_queue_that_has_no_thread_holds_nothing(self) -> None:
        """Goal: what fails to open leaves tasks to others. Method: the system has no thread for it."""
        queue, other = self.queue(), self.queue()
        queue.task(name="work")(lambda: "first")
        other.task(name="work")(lambda: "other")
        self.uncollected()
        with no_threads("_taker"), self.assertRaises(RuntimeError) as raised:
            queue.open(work=True)
        self.assertTrue(queue.closed)
        with other.open(work=True):
            tasks = [other.calls("work").submit() for _ in range(8)]
            self.assertEqual([task.result(LONG) for task in tasks], ["other"] * 8)
        del raised

    def uncollected(self) -> None:
        """No garbage is collected until the test ends."""
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)

    def test_at_the_end_of_the_interpreter_it_is_closed(self) -> None:
        told = run(
            f"""
            import asyncio, paceline, time
            workers = paceline.WorkerPool(paceline.Pool(1), threads=1)
            queue = workers.durable({self.name!r}, {self.broker.url!r})

            @queue.task
            def work(number):
                time.sleep(0.01)
                return number

            queue.open(work=True)
            print(work.submit(1).result(60))
            tasks = [work.submit(number) for number in range(20)]
            print("end")
            """
        )
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "1\nend\n", ""))

    def test_a_lost_one_is_closed(self) -> None:
        queue = self.workers.durable(self.name, self.broker.url)
        queue.task(name="work")(lambda: None)
        taker = queue.open(work=True)._taker.thread
        assert taker is not None
        del queue
        self.until_collected(lambda: not taker.is_alive())

    def test_in_a_child_made_by_fork_it_is_refused(self) -> None:
        with self.queue() as queue:
            calls = queue.calls("a")
            child = os.fork()
            if child == 0:
                refused = 0
                for call in (calls.submit, queue.dead, lambda: queue.wait_connected(0)):
                    try:
                        call()
                    except paceline.ForkedError:
                        refused += 1
                os._exit(refused)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)


# The base has no tests of its own, and those of bridges run elsewhere.
del Brokered

if __name__ == "__main__":
    unittest.main()
