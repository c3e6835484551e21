"""``WorkerPool``: tasks whose functions are coroutines."""

from __future__ import annotations

import asyncio
import threading
import unittest
from collections.abc import Generator
from typing import Any, Optional

import paceline
from paceline import Error, Middleware, PermanentFailure, Pool, Retry, RetryAfter
from paceline import TaskReport, TaskStatus, WorkerPool
from paceline import current_attempt
from support import Case, run

#: No wait of a test is meant to take so long. Seconds.
LONG = 120


class Own(BaseException):
    """No Exception, and nothing that interrupts."""


class Coroutines(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def make(self, threads: int = 1, **settings: Any) -> WorkerPool:
        workers = WorkerPool(self.pool, threads=threads, **settings)
        self.addCleanup(workers.shutdown, 0, LONG)
        return workers

    def loop(self) -> asyncio.AbstractEventLoop:
        """One that runs on a thread of the test's."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(name="theirs", target=loop.run_forever)
        thread.start()

        def end() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONG)
            loop.close()

        self.addCleanup(end)
        return loop

    def status(self, report: TaskReport[Any]) -> tuple[TaskStatus, int]:
        return report.status, report.attempts


class Runs(Coroutines):
    def test_many_are_under_way_with_one_thread(self) -> None:
        workers = self.make()
        inside: list[int] = []
        go: Optional[asyncio.Event] = None

        @workers.task
        async def meet(number: int) -> int:
            nonlocal go
            go = go or asyncio.Event()
            inside.append(number)
            if len(inside) == 50:
                go.set()
            await go.wait()
            return number

        tasks = meet.submit_batch(range(50))
        self.assertEqual([task.result(LONG) for task in tasks], list(range(50)))
        report = tasks[0].report()
        self.assertEqual(self.status(report), (TaskStatus.COMPLETED, 1))
        self.assertEqual((report.name.split(".")[-1], report.worker), ("meet", "workers_loop"))
        row = workers.worker_stats()[-1]
        self.assertEqual((row.worker, row.completed, row.failed), ("workers_loop", 50, 0))
        self.assertTrue(0 < row.utilisation <= 1, row)
        # Threads are free for what is no coroutine.
        self.assertEqual(workers.task(name="plain")(lambda: 1).submit().result(LONG), 1)
        self.assertEqual(asyncio.run(meet(7)), 7)
        audit = workers.audit()
        self.assertEqual((audit.completed, audit.in_flight, audit.balances), (51, 0, True))

    def test_no_thread_is_made_without_one(self) -> None:
        workers = self.make()
        workers.task(name="plain")(lambda: 1).submit().result(LONG)
        self.assertNotIn("workers_loop", [thread.name for thread in threading.enumerate()])
        self.assertEqual(len(workers.worker_stats()), 1)

    def test_methods_and_partials(self) -> None:
        workers = self.make()

        class Holder:
            @workers.task(name="method")
            async def method(self, more: int) -> tuple[Any, int]:
                return self, more

            @workers.task(name="static")
            @staticmethod
            async def static(more: int) -> int:
                return more

        class Called:
            async def __call__(self, more: int) -> int:
                return more

        holder = Holder()
        self.assertEqual(holder.method.submit(1).result(LONG), (holder, 1))
        self.assertEqual(Holder.static.submit(2).result(LONG), 2)
        self.assertEqual(workers.task(name="called")(Called()).submit(3).result(LONG), 3)
        delayed = workers.task(name="later")(Called()).submit_after(0.001, 4)
        self.assertEqual(delayed.result(LONG), 4)

    def test_on_a_host_without_threads(self) -> None:
        workers = self.make(threads=0)

        @workers.task
        async def one() -> str:
            return threading.current_thread().name

        task = one.submit()
        self.until(lambda: (workers.run(), task.done())[1])
        self.assertEqual(task.result(0), "workers_loop")

    def test_on_the_loop_of_the_program(self) -> None:
        loop = self.loop()
        workers = self.make(loop=loop)
        inner = workers.task(name="inner")(lambda: 41)

        @workers.task(name="outer")
        async def outer() -> tuple[bool, str, int]:
            mine = asyncio.get_running_loop() is loop
            return mine, threading.current_thread().name, await inner.submit() + 1

        self.assertEqual(outer.submit().result(LONG), (True, "theirs", 42))
        self.assertNotIn("workers_loop", [thread.name for thread in threading.enumerate()])
        self.assertTrue(workers.shutdown().drained)
        self.assertFalse(loop.is_closed())

    def test_each_knows_its_own_attempt(self) -> None:
        workers = self.make()

        @workers.task(name="attempt", timeout=LONG)
        async def attempt() -> tuple[str, int, bool, bool]:
            mine = current_attempt()
            await asyncio.sleep(0)
            left = mine.time_left()
            assert left is not None
            return mine.name, mine.id, current_attempt() is mine, 0 < left <= LONG

        tasks = [attempt.submit() for _ in range(5)]
        for task in tasks:
            self.assertEqual(task.result(LONG), ("attempt", task.report().id, True, True))
        with self.assertRaises(RuntimeError):
            current_attempt()

    def test_middleware_is_around_it(self) -> None:
        seen: list[str] = []

        class Layer(Middleware):
            def before(self, attempt: Any) -> None:
                seen.append(f"before {attempt.number}")
                if attempt.number == 3:
                    raise PermanentFailure("refused")

            def after(self, attempt: Any) -> None:
                seen.append(f"after {attempt.number}")

            def on_error(self, attempt: Any, exception: BaseException) -> None:
                seen.append(f"{type(exception).__name__} {attempt.number}")

        workers = self.make(middleware=[Layer()])

        @workers.task(retries=Retry.fixed(5, 0))
        async def fails() -> None:
            await asyncio.sleep(0)
            seen.append(f"runs {current_attempt().number}")
            raise ValueError("fails")

        report = fails.submit().report(LONG)
        self.assertEqual(self.status(report), (TaskStatus.FAILED, 3))
        each = [[f"before {n}", f"runs {n}", f"ValueError {n}", f"after {n}"] for n in (1, 2)]
        self.assertEqual(seen, [*each[0], *each[1], "before 3"])


class Failures(Coroutines):
    def test_retries(self) -> None:
        workers = self.make()

        @workers.task(name="third", retries=Retry.fixed(4, 0))
        async def third() -> int:
            await asyncio.sleep(0)
            if current_attempt().number < 3:
                raise RetryAfter(0, "not yet")
            return current_attempt().number

        report = third.submit().report(LONG)
        self.assertEqual((self.status(report), report.value), ((TaskStatus.COMPLETED, 3), 3))

        @workers.task(name="never", retries=4)
        async def never() -> None:
            raise PermanentFailure("no")

        report = never.submit().report(LONG)
        self.assertEqual(self.status(report), (TaskStatus.FAILED, 1))
        self.assertIs(type(report.error), PermanentFailure)
        row = workers.worker_stats()[-1]
        self.assertEqual((row.attempts, row.completed, row.failed), (4, 1, 3))

    def test_whatever_is_raised_the_loop_goes_on(self) -> None:
        workers = self.make()

        class Bad:
            def __await__(self) -> Generator[Any, None, None]:
                yield "nonsense"

        @workers.task(name="raises")
        async def raises(kind: type[BaseException]) -> None:
            await asyncio.sleep(0)
            raise kind("raised")

        @workers.task(name="nonsense")
        async def nonsense() -> None:
            await Bad()

        @workers.task(name="stops")
        async def stops() -> int:
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0.001)
            return 1

        @workers.task(name="leaves")
        async def leaves() -> int:
            # What is left on the loop may raise anything, too.
            def out() -> None:
                raise SystemExit("left")

            asyncio.get_running_loop().call_soon(out)
            asyncio.create_task(asyncio.sleep(LONG))
            return 2

        thread = None
        for kind in (
            ValueError,
            SystemExit,
            KeyboardInterrupt,
            GeneratorExit,
            Own,
            asyncio.CancelledError,
        ):
            with self.subTest(kind=kind):
                task = raises.submit(kind)
                self.assertIs(type(task.report(LONG).error), kind)
                self.assertIs(task.report().status, TaskStatus.FAILED)
        with self.assertRaisesRegex(RuntimeError, "nonsense"):
            nonsense.submit().result(LONG)
        self.assertEqual(stops.submit().result(LONG), 1)
        with self.assertLogs("paceline", "ERROR") as told:
            self.assertEqual(leaves.submit().result(LONG), 2)
            self.assertEqual(stops.submit().result(LONG), 1)
        self.assertIn("goes on after an exception", told.output[0])
        thread = next(each for each in threading.enumerate() if each.name == "workers_loop")
        self.assertTrue(workers.shutdown().drained)
        self.assertFalse(thread.is_alive())

    def test_a_callback_that_raises_anything(self) -> None:
        workers = self.make()

        def bad(_: Any) -> None:
            raise Own("callback")

        gate = threading.Event()

        @workers.task(name="one")
        async def one() -> int:
            while not gate.is_set():
                await asyncio.sleep(0.001)
            return 1

        task = one.submit()
        task.add_done_callback(bad)
        with self.assertLogs("paceline", "ERROR"):
            gate.set()
            self.assertEqual(task.result(LONG), 1)
            self.assertEqual(one.submit().result(LONG), 1)

    def test_a_time_that_is_over(self) -> None:
        workers = self.make()
        ended: list[BaseException] = []

        @workers.task(name="slow", timeout=0.01, retries=Retry.fixed(1, 0))
        async def slow() -> None:
            try:
                await asyncio.sleep(LONG)
            except BaseException as raised:
                ended.append(raised)
                raise

        task = slow.submit()
        with self.assertRaises(paceline.TimeoutError):
            task.result(LONG)
        self.assertEqual(self.status(task.report()), (TaskStatus.TIMED_OUT, 2))
        self.until(lambda: len(ended) == 2)
        self.assertEqual([type(each) for each in ended], [asyncio.CancelledError] * 2)

        @workers.task(name="beats", timeout=0.05)
        async def beats() -> int:
            for _ in range(20):
                await asyncio.sleep(0.01)
                current_attempt().heartbeat()
            return 20

        # On a busy machine a beat may be late.
        self.until(lambda: beats.submit().report(LONG).value == 20)

    def test_one_that_does_not_listen_is_stuck(self) -> None:
        workers = self.make()
        gate = threading.Event()
        self.addCleanup(gate.set)

        @workers.task(name="deaf", timeout=0.001)
        async def deaf() -> None:
            while not gate.is_set():
                try:
                    await asyncio.sleep(0.001)
                except asyncio.CancelledError:
                    pass

        report = deaf.submit().report(LONG)
        while report.worker is None:
            report = deaf.submit().report(LONG)
        self.assertIs(report.status, TaskStatus.TIMED_OUT)
        row = workers.worker_stats()[-1]
        self.assertEqual((row.state, row.task_type), ("stuck", "deaf"))
        self.assertFalse(workers.shutdown(0, 0.05).drained)
        gate.set()
        self.until(lambda: workers.worker_stats()[-1].state == "ended")


class Ends(Coroutines):
    def waiting(self, workers: WorkerPool) -> tuple[Any, list[str]]:
        """A coroutine that waits for ever, and what it notes."""
        notes: list[str] = []

        @workers.task(name="waits")
        async def waits() -> None:
            notes.append("begun")
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                notes.append("cancelled")
                raise

        return waits, notes

    def test_a_task_is_cancelled(self) -> None:
        workers = self.make()
        waits, notes = self.waiting(workers)
        for count in range(1, 20):
            task = waits.submit()
            if count % 2:
                self.until(lambda: len(notes) == 2 * (count // 2) + 1)
            # Otherwise it may be at any place on its way to the loop.
            task.cancel()
            report = task.report(LONG)
            self.assertIs(report.status, TaskStatus.CANCELLED)
            self.assertTrue(task.cancelled())
            del notes[2 * (count // 2) + 2 :]
            while len(notes) < 2 * ((count + 1) // 2):
                notes.append("left out")
        self.assertEqual(workers.audit().cancelled, 19)

    def test_a_shutdown_waits(self) -> None:
        workers = self.make()

        @workers.task(name="chain")
        async def chain() -> int:
            await asyncio.sleep(0.01)
            return 1

        tasks = [chain.submit() for _ in range(20)]
        report = workers.shutdown(LONG)
        self.assertEqual((report.drained, report.completed), (True, {"chain": 20}))
        self.assertTrue(all(task.done() for task in tasks))
        self.assertNotIn("workers_loop", [thread.name for thread in threading.enumerate()])

    def test_a_shutdown_cancels_what_takes_too_long(self) -> None:
        for loop in (None, self.loop()):
            with self.subTest(loop=loop):
                workers = self.make(loop=loop)
                waits, notes = self.waiting(workers)
                task = waits.submit()
                self.until(lambda: notes)
                report = workers.shutdown(0.01, LONG)
                self.assertEqual((report.drained, report.stuck), (False, {}))
                self.assertEqual(notes, ["begun", "cancelled"])
                self.assertIs(task.report(LONG).status, TaskStatus.CANCELLED)

    def test_a_shutdown_inside_is_a_request(self) -> None:
        for loop in (None, self.loop()):
            with self.subTest(loop=loop):
                workers = self.make(loop=loop)

                @workers.task(name="ends")
                async def ends() -> bool:
                    return workers.shutdown().requested

                self.assertTrue(ends.submit().result(LONG))
                self.assertTrue(workers.shutdown().drained)

    def test_a_loop_that_is_closed(self) -> None:
        loop = asyncio.new_event_loop()
        workers = self.make(loop=loop)
        waits, _ = self.waiting(workers)
        task = waits.submit()
        # It is with the loop, which never runs.
        self.until(lambda: workers._core.coroutines.running)
        loop.close()
        with self.assertRaisesRegex(Error, "event loop of its worker pool is closed"):
            waits.submit().result(LONG)
        self.assertFalse(task.done())
        self.assertTrue(workers.shutdown(LONG).drained)
        self.assertIs(task.report(LONG).status, TaskStatus.FAILED)

    def test_one_that_is_lost(self) -> None:
        workers = WorkerPool(self.pool, threads=1)

        @workers.task(name="one")
        async def one() -> int:
            return 1

        self.assertEqual(one.submit().result(LONG), 1)
        threads = list(workers._core.threads)
        self.assertIn("workers_loop", [thread.name for thread in threads])
        del workers, one
        self.until_collected(lambda: not any(thread.is_alive() for thread in threads))

    def test_what_is_no_loop(self) -> None:
        wrong: Any = 5
        with self.assertRaisesRegex(TypeError, "loop is 5"):
            self.make(loop=wrong)


class Interrupts(Case):
    SCRIPT = """
        import asyncio, paceline
        pool = paceline.Pool(1)

        async def serve():
            workers = paceline.WorkerPool(pool, threads=1, loop=asyncio.get_running_loop())

            @workers.task
            async def leaves():
                raise {kind}("from a coroutine")

            task = leaves.submit()
            while not task.done():
                await asyncio.sleep(0.001)
            print("not reached")

        try:
            asyncio.run(serve())
        except {kind} as raised:
            print("raised", raised)
        """

    def test_the_loop_of_the_program_has_what_interrupts(self) -> None:
        for kind in ("SystemExit", "KeyboardInterrupt"):
            with self.subTest(kind=kind):
                ended = run(self.SCRIPT.format(kind=kind))
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertEqual(ended.stdout, "raised from a coroutine\n")


class Exits(Case):
    SCRIPT = """
        import asyncio, paceline, sys
        pool = paceline.Pool(1)
        workers = paceline.WorkerPool(pool, threads={threads})
        begun = []

        @workers.task
        async def waits(seconds):
            try:
                begun.append(1)
                await asyncio.sleep(seconds)
            finally:
                print("ended", flush=True)

        tasks = [waits.submit(600) for _ in range(3)]
        while len(begun) < 3:
            if {threads} == 0:
                workers.run()
        # It may be anywhere.
        waits.submit(600)
        print("leaves", flush=True)
        {ending}
        """

    def test_the_end_of_the_interpreter_cancels_what_waits(self) -> None:
        for threads in (0, 2):
            for ending in ("", "sys.exit()", "raise SystemExit"):
                with self.subTest(threads=threads, ending=ending):
                    ended = run(self.SCRIPT.format(threads=threads, ending=ending))
                    lines = ended.stdout.split()
                    self.assertEqual((ended.returncode, lines[0]), (0, "leaves"))
                    # The last may have begun, and have been cancelled before its first line; if not, it is told of.
                    self.assertIn(lines[1:], (["ended"] * 3, ["ended"] * 4))
                    self.assertRegex(ended.stderr, "^$|^1 of the tasks .*had not begun")


if __name__ == "__main__":
    unittest.main()
