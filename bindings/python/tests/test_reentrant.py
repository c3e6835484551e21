"""A finalizer that the collector runs, or a signal handler, comes in the midst of anything: what it calls again on
the same thread must neither wait for that thread nor spoil what is under way.

One line of the package after the other is such a place: a trace function calls again there. Two things the standard
library shares: nobody can wait for a thread inside of its ``Thread.start()``, and a thread that waits for a future
holds that future's lock now and then.
"""

from __future__ import annotations

import sys
import threading
import unittest
from collections.abc import Callable
from types import FrameType
from typing import Any

import paceline
from paceline import Executor, Pool, WorkerPool
from support import PACKAGE, Case, run

#: No wait of a test is meant to take so long. Seconds.
LONG = 60

#: Calls on one thread: what is under way, and what a finalizer does then. Both are given what ``make`` has made.
Call = Callable[[Any], object]


class Places:
    """Calls once, at a line of the package, when so many have passed on this thread."""

    def __init__(self, skip: int, call: Callable[[], object]) -> None:
        self.left = skip
        self.called = False
        self.raised: BaseException | None = None
        self._call = call

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        if event == "line" and not self.called:
            self.left -= 1
            if self.left < 0:
                self.called = True
                try:
                    self._call()
                except BaseException as raised:
                    self.raised = raised
        return self.trace

    def begin(self) -> None:
        """From here on, also in the calls that this thread is in."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                frame.f_trace = self.trace
            frame = frame.f_back
        sys.settrace(self.trace)


def discard(raised: BaseException) -> None:
    """What a late call may be refused with."""
    if not isinstance(raised, (RuntimeError, paceline.Error)):
        raise raised


class Again(Case):
    def each_place(self, make: Callable[[], Any], under_way: Call, again: Call, end: Call) -> int:
        """``again`` in each line of ``under_way``; says how many there were."""
        places = 0
        while True:
            made = make()
            place = Places(places, lambda: again(made))
            before = sys.gettrace()
            sys.settrace(place.trace)
            try:
                under_way(made)
            except (RuntimeError, paceline.Error):
                # The call again has closed it.
                pass
            finally:
                sys.settrace(before)
            if place.raised is not None:
                discard(place.raised)
            end(made)
            if not place.called:
                return places
            places += 1

    def each_place_of_thread(
        self,
        make: Callable[[], Any],
        first: Callable[[Any, Callable[[], None]], object],
        again: Call,
        end: Call,
    ) -> int:
        """``again`` in each line that the thread comes to that runs the task of ``first``."""
        places = 0
        while True:
            made = make()
            place = Places(places, lambda: again(made))
            first(made, place.begin)
            end(made)
            if place.raised is not None:
                discard(place.raised)
            if not place.called:
                return places
            places += 1


class Futures(Again):
    def test_a_future(self) -> None:
        """Each way to attach in the midst of each other."""
        gate = threading.Event()
        self.addCleanup(gate.set)
        executor = Executor(1)
        self.addCleanup(executor.shutdown, False)
        executor.submit(gate.wait)
        calls: list[Call] = [
            lambda future: future.cancel(),
            lambda future: future.add_done_callback(lambda _: None),
            lambda future: (future.done(), future.cancelled(), future.running()),
            lambda future: future._condition,
        ]
        for under_way in calls:
            for again in calls:
                self.each_place(
                    lambda: executor.submit(len, ()), under_way, again, lambda future: future.cancel()
                )

    def test_of_other_futures(self) -> None:
        """No lock is common to futures."""
        executor, other = Executor(1), Executor(1)
        self.addCleanup(executor.shutdown)
        self.addCleanup(other.shutdown)

        def again(_: object) -> None:
            future = other.submit(len, ())
            future.add_done_callback(lambda _: None)
            self.assertEqual(future.result(LONG), 0)

        for under_way in (
            lambda future: future.result(LONG),
            lambda future: future.add_done_callback(id),
        ):
            count = self.each_place(
                lambda: executor.submit(len, ()), under_way, again, lambda future: future.result(LONG)
            )
            self.assertGreater(count, 0)


class Executors(Again):
    def end(self, executor: Executor) -> None:
        executor.shutdown()
        self.assertLessEqual(len(executor._threads), 2)
        self.assertFalse(any(each.is_alive() for each in executor._threads))
        audit = executor.audit()
        self.assertTrue(audit.balances and not audit.in_flight, audit)

    def test_submissions(self) -> None:
        def again(executor: Executor) -> None:
            self.assertEqual(executor.submit(len, ()).result(LONG), 0)
            executor.audit()

        def under_way(executor: Executor) -> None:
            self.assertEqual(executor.submit(len, "abc").result(LONG), 3)
            self.assertEqual(
                [each.result(LONG) for each in executor.submit_batch(len, ["", "a"])], [0, 1]
            )
            self.assertEqual(list(executor.map(len, ["ab", "a"])), [2, 1])
            executor.audit()

        self.assertGreater(self.each_place(lambda: Executor(2), under_way, again, self.end), 50)

    def test_the_end(self) -> None:
        """A shutdown in the midst of a submission, and a submission in the midst of a shutdown."""

        def submit(executor: Executor) -> None:
            executor.submit(len, ())
            executor.map(len, ["ab", "a"])

        for wait in (True, False):
            for cancel in (True, False):

                def shutdown(executor: Executor, wait: bool = wait, cancel: bool = cancel) -> None:
                    executor.shutdown(wait, cancel_futures=cancel)

                self.each_place(lambda: Executor(2), submit, shutdown, self.end)
                self.each_place(lambda: Executor(2), shutdown, submit, self.end)

    def test_on_its_threads(self) -> None:
        calls: list[Call] = [
            lambda made: made[0].submit(len, ()).add_done_callback(lambda _: None),
            lambda made: made[1].cancel(),
            lambda made: made[0].shutdown(False, cancel_futures=True),
        ]
        for again in calls:

            def make() -> Any:
                executor, gate = Executor(1), threading.Event()
                executor.submit(gate.wait)
                first = executor.submit(lambda: begins[0]())
                others = [executor.submit(len, ()) for _ in range(3)]
                others[0].add_done_callback(lambda _: None)
                begins: list[Any] = [None]
                return executor, others[1], gate, begins, [first, *others]

            def first(made: Any, begin: Callable[[], None]) -> None:
                made[3][0] = begin
                made[2].set()

            def end(made: Any) -> None:
                self.until(lambda: all(each.done() for each in made[4]))
                self.end(made[0])

            self.assertGreater(self.each_place_of_thread(make, first, again, end), 5)


class Pools(Again):
    def test_tasks_and_events(self) -> None:
        pool = Pool(2)
        self.addCleanup(pool.shutdown)
        strand = pool.strand()

        def again(_: object) -> None:
            self.assertEqual(pool.submit(len, ()).result(LONG), 0)
            # Lanes and strands have a lock, under which their tasks are not to be waited for.
            strand.submit(len, ())
            pool.lane(0).submit(len, ())
            pool.after(LONG, len, ()).cancel()
            pool.every(LONG, len, ()).close()
            pool.audit()

        def work(_: object) -> None:
            again(_)
            self.assertEqual(strand.submit(len, ()).result(LONG), 0)
            self.assertEqual(pool.lane(0).submit(len, ()).result(LONG), 0)

        count = self.each_place(lambda: None, work, again, lambda _: None)
        self.assertGreater(count, 50)

    def test_a_host(self) -> None:
        """A pool without threads, in the midst of a join."""
        pool = Pool(0)
        self.addCleanup(pool.shutdown)

        def work(_: object) -> None:
            future = pool.submit(len, ())
            pool.after(0, len, ())
            while not future.done():
                pool.join(0.001)

        def again(_: object) -> None:
            pool.submit(len, ())
            pool.every(LONG, len, ()).close()
            pool.audit()
            try:
                pool.join(0)
            except paceline.DeadlockError:
                pass

        self.each_place(lambda: None, work, again, lambda _: None)
        while pool.audit().in_flight:
            pool.join(0)

    def test_the_end(self) -> None:
        def make() -> Pool:
            return Pool(1)

        def submit(pool: Pool) -> None:
            pool.submit(len, ())
            pool.after(0, len, ())
            pool.strand().submit(len, ())

        def end(pool: Pool) -> None:
            pool.shutdown(LONG)
            self.until(lambda: not any(each.is_alive() for each in pool._runner.threads))

        self.each_place(make, submit, lambda pool: pool.shutdown(), end)
        self.each_place(make, lambda pool: pool.shutdown(), submit, end)


class Workers(Again):
    def make(self, threads: int = 1, **more: Any) -> Any:
        workers = WorkerPool(self.pool, threads=threads, **more)
        return (
            workers,
            workers.task(name="len")(len),
            workers.task(name="drops", full="drop_oldest")(len),
        )

    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def end(self, made: Any) -> None:
        workers = made[0]
        workers.shutdown(LONG, LONG)
        audit = workers.audit()
        ended = audit.completed + audit.failed + audit.cancelled + audit.timed_out + audit.dropped
        self.assertEqual(audit.accepted, ended)
        self.assertEqual(workers._core.jobs, {})

    def test_submissions(self) -> None:
        """On one worker pool, whose tasks may be dropped for others."""
        made = self.make(2, max_droppable=2)

        def work(made: Any) -> None:
            self.assertEqual(made[1].submit(()).result(LONG), 0)
            made[1].post(())
            for task in [made[2].submit(()) for _ in range(3)]:
                task.drop()
                task.exception(LONG)
                task.report(LONG)
            made[1].submit_after(LONG, ()).cancel()
            made[0].health()

        self.assertGreater(self.each_place(lambda: made, work, work, lambda _: None), 50)
        self.end(made)

    def test_the_end(self) -> None:
        def submit(made: Any) -> None:
            made[1].submit(())
            made[2].submit(())

        def shutdown(made: Any) -> None:
            made[0].shutdown(0, 0)

        self.each_place(self.make, submit, shutdown, self.end)
        self.each_place(self.make, shutdown, submit, self.end)

    def test_a_host(self) -> None:
        """A turn in the midst of a turn, of a pool without threads: by a task, too."""
        made = self.make(0)
        workers, task, _ = made
        fails = workers.task(name="fails")(lambda: workers.run() and 1 / 0)

        def work(_: object) -> None:
            futures = [task.submit(()), fails.submit(), task.submit(())]
            while not all(each.done() for each in futures):
                workers.run()
            self.assertEqual([type(each.exception(0)) for each in futures][::2], [type(None)] * 2)

        self.assertGreater(self.each_place(lambda: None, work, work, lambda _: None), 50)
        self.end(made)
        self.assertEqual(workers.stats()["len"].failed, 0)

    def test_a_task_that_runs_others_fails_itself(self) -> None:
        workers = self.make(0)[0]
        inner = workers.task(name="inner")(lambda: "inner")

        @workers.task(name="outer")
        def outer() -> None:
            while not second.done():
                workers.run()
            raise LookupError

        first = outer.submit()
        second = inner.submit()
        while not first.done():
            workers.run()
        self.assertIs(type(first.exception(0)), LookupError)
        self.assertEqual(second.result(0), "inner")

    def test_on_its_threads(self) -> None:
        calls: list[Call] = [
            lambda made: made[0][1].submit(()),
            lambda made: made[0][2].submit(()),
            lambda made: made[1].cancel(),
            lambda made: made[0][0].shutdown(0, 0),
        ]
        for again in calls:

            def make() -> Any:
                made, gate, begins = self.make(), threading.Event(), [None]
                first = made[0].task(name="first")(lambda: gate.wait() and begins[0]()).submit()  # type: ignore[misc]
                others = [made[1].submit(()) for _ in range(2)] + [made[2].submit(()) for _ in range(2)]
                others[0].add_done_callback(lambda _: None)
                return made, others[1], gate, begins, [first, *others]

            def first(made: Any, begin: Callable[[], None]) -> None:
                made[3][0] = begin
                made[2].set()

            def end(made: Any) -> None:
                self.until(lambda: all(each.done() for each in made[4]))
                self.end(made[0])

            self.assertGreater(self.each_place_of_thread(make, first, again, end), 5)

    def test_periodic(self) -> None:
        made = self.make()

        def again(_: object) -> None:
            periodic = made[0].every(0.000001, made[1], ())
            self.until(lambda: periodic.runs)
            periodic.close()

        self.each_place(lambda: None, again, again, lambda _: None)
        self.end(made)


class Signals(Case):
    def test_signal_handlers(self) -> None:
        """Between instructions of one line, too."""
        ended = run(
            """
            import faulthandler, signal, time
            faulthandler.dump_traceback_later(60, exit=True)
            import paceline

            executor, other, pool = paceline.Executor(2), paceline.Executor(1), paceline.Pool(1)
            workers = paceline.WorkerPool(pool, threads=1, max_droppable=4)
            task = workers.task(name="len", full="drop_oldest")(len)
            strand, handled, inside = pool.strand(), 0, 0

            def submit(then):
                try:
                    submitted = task.submit(())
                except paceline.Full:
                    return  # Its thread has all four of them, and has not come to them.
                then(submitted)

            def work():
                future = executor.submit(len, ())
                future.add_done_callback(lambda _: None)
                assert future.result(50) == 0
                assert pool.submit(len, ()).result(50) == 0
                assert strand.submit(len, ()).result(50) == 0
                submit(lambda one: one.exception(50))
                assert list(executor.map(len, ["a"])) == [1]

            def handle(*_):
                global handled, inside
                # While a future is waited for its lock is held now and then, as the standard one's is.
                if inside:
                    return
                inside = 1
                handled += 1
                for each in executor, pool, strand:
                    each.submit(len, ()).add_done_callback(lambda _: None)
                    each.submit(len, ()).cancel()
                submit(lambda one: one.cancel())
                submit(lambda one: one.drop())
                pool.every(50, len, ()).close()
                assert other.submit(len, ()).result(50) == 0
                inside = 0

            other.submit(len, ()).result(50)
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
            end = time.monotonic() + 3
            while time.monotonic() < end:
                work()
            signal.setitimer(signal.ITIMER_REAL, 0)
            workers.shutdown()
            pool.shutdown()
            executor.shutdown()
            print(handled > 10, executor.audit().failed)
            """
        )
        self.assertEqual((ended.stdout, ended.returncode), ("True 0\n", 0), ended.stderr)

    @unittest.skipIf(sys.version_info < (3, 11), "older ones call handlers between any two instructions")
    def test_signal_handlers_that_raise(self) -> None:
        """Whatever they interrupt: what was accepted ends, and other threads go on."""
        ended = run(
            """
            import faulthandler, random, signal, threading
            faulthandler.dump_traceback_later(60, exit=True)
            import paceline

            armed = False

            class Interrupt(KeyboardInterrupt):
                pass

            def handle(*_):
                global armed
                if armed:
                    armed = False
                    raise Interrupt

            def go_on(body):
                while armed:
                    body()

            def interrupted(body):
                global armed
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0004))
                    go_on(body)
                except Interrupt:
                    pass

            signal.signal(signal.SIGALRM, handle)
            executor, pool = paceline.Executor(2), paceline.Pool(1)
            # All threads are there: the standard library's Thread.start must not be interrupted.
            barrier = threading.Barrier(2)
            list(executor.map(lambda _: barrier.wait(50), range(2)))

            def elsewhere():
                assert executor.submit(len, ()).result(50) == 0

            for _ in range(300):
                interrupted(lambda: executor.submit(len, ()).done())
                thread = threading.Thread(target=elsewhere)
                thread.start()
                thread.join()
            executor.shutdown()

            workers, ended = paceline.WorkerPool(pool, threads=0), 0
            task = workers.task(name="len")(len)
            for _ in range(500):
                submitted = [task.submit(()) for _ in range(20)]
                interrupted(workers.run)
                while not all(each.done() for each in submitted):
                    workers.run()
                ended += 20
            workers.shutdown()
            for _ in range(100):
                interrupted(lambda: pool.join(0.001))
            pool.shutdown()
            print(ended)
            """
        )
        self.assertEqual((ended.stdout, ended.returncode), ("10000\n", 0), ended.stderr)

    @unittest.skipIf(sys.version_info < (3, 11), "older ones call handlers between any two instructions")
    def test_signal_handlers_that_raise_beside_requests(self) -> None:
        """Each request is answered, if only by a 500 or by the end of its connection."""
        ended = run(
            """
            import faulthandler, http.client, logging, random, signal, threading, time
            faulthandler.dump_traceback_later(60, exit=True)
            import paceline

            logging.disable(logging.CRITICAL)
            armed = False

            class Interrupt(KeyboardInterrupt):
                pass

            def handle(*_):
                global armed
                if armed:
                    armed = False
                    raise Interrupt

            def go_on(body):
                while armed:
                    body()

            signal.signal(signal.SIGALRM, handle)
            pool = paceline.Pool(1)
            server = paceline.Http(pool, threads=0)
            server.get("/")(lambda request: "well")
            server.start()
            answers = []

            def ask():
                connection = http.client.HTTPConnection(server.addresses[0], timeout=15)
                for _ in range(300):
                    try:
                        connection.request("GET", "/")
                        answer = connection.getresponse()
                        answer.read()
                        answers.append(answer.status)
                    except (http.client.HTTPException, ConnectionError):
                        # The call that was interrupted has failed, which closes its connection.
                        connection.close()
                        answers.append(500)
                connection.close()

            asking = [threading.Thread(target=ask) for _ in range(3)]
            for thread in asking:
                thread.start()
            while any(thread.is_alive() for thread in asking):
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.001))
                    go_on(server.run)
                except Interrupt:
                    pass
            print(len(answers), set(answers) <= {200, 500})
            server.close()
            pool.shutdown()
            """
        )
        self.assertEqual((ended.stdout, ended.returncode), ("900 True\n", 0), ended.stderr)

    def test_finalizers(self) -> None:
        ended = run(
            """
            import contextlib, faulthandler, gc
            faulthandler.dump_traceback_later(60, exit=True)
            import paceline

            executor, pool = paceline.Executor(2), paceline.Pool(1)
            workers = paceline.WorkerPool(pool, threads=1, max_droppable=4)
            task = workers.task(name="len", full="drop_oldest")(len)
            finalized, ended = 0, False

            class Cycle:
                def __init__(self):
                    self.me = self

                def __del__(self):
                    global finalized
                    if ended:
                        return
                    finalized += 1
                    executor.submit(len, ()).cancel()
                    pool.submit(len, ()).add_done_callback(lambda _: None)
                    with contextlib.suppress(paceline.Full):
                        task.submit(()).cancel()
                    if finalized % 64 == 0:
                        other = paceline.Executor(1)
                        other.submit(len, ())
                        other.shutdown(wait=False)

            gc.set_threshold(1, 1000, 1000)
            for _ in range(1000):
                Cycle()
                future = executor.submit(Cycle)
                future.add_done_callback(lambda _: Cycle())
                future.result(50)
                with contextlib.suppress(paceline.Full):
                    task.submit(()).exception(50)
                del future
            gc.set_threshold(0)
            gc.collect()
            ended = True
            workers.shutdown()
            pool.shutdown()
            executor.shutdown()
            print(finalized > 1000)
            """
        )
        self.assertEqual((ended.stdout, ended.returncode), ("True\n", 0), ended.stderr)


if __name__ == "__main__":
    unittest.main()
