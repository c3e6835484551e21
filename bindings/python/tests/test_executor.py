"""The executor, by the list of the standard library's cases for ThreadPoolExecutor, and beyond it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import os
import pickle
import sys
import threading
import time
import traceback
import unittest
import weakref
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    InvalidStateError,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from concurrent.futures.thread import BrokenThreadPool
from typing import Any

import paceline
from support import Case, run


class Submitting(Case):
    def test_submit(self) -> None:
        with paceline.Executor(3) as executor:
            future = executor.submit(pow, 2, 8)
            self.assertEqual(future.result(), 256)
            self.assertIsInstance(future, concurrent.futures.Future)
            # Names that a method could take for its own.
            keywords = {"self": 1, "fn": 2, "executor": 3}
            self.assertEqual(executor.submit(lambda **all: all, **keywords).result(), keywords)
            with self.assertRaises(TypeError):
                executor.submit()  # type: ignore[call-arg]
            with self.assertRaises(TypeError):
                executor.submit(arg=1)  # type: ignore[call-arg]

    def test_submit_batch(self) -> None:
        with paceline.Executor(3) as executor:
            futures = executor.submit_batch(pow, range(1000), itertools.repeat(2))
            self.assertEqual([each.result() for each in futures], [n * n for n in range(1000)])
            self.assertEqual(executor.submit_batch(pow, [], []), [])

    def test_map(self) -> None:
        with paceline.Executor(3) as executor:
            self.assertEqual(
                list(executor.map(pow, range(1000), [3] * 1000)), [n**3 for n in range(1000)]
            )
            self.assertEqual(list(executor.map(pow, [], [])), [])
            results = executor.map(divmod, [1, 1, 1], [2, 0, 2])
            self.assertEqual(next(results), (0, 1))
            with self.assertRaises(ZeroDivisionError):
                next(results)

    def test_map_runs_without_iteration(self) -> None:
        done: list[int] = []
        executor = paceline.Executor(3)
        executor.map(done.append, range(10))
        executor.shutdown()
        self.assertEqual(sorted(done), list(range(10)))

    def test_map_uses_all_threads(self) -> None:
        meeting = threading.Barrier(4)
        with paceline.Executor(4) as executor:
            list(executor.map(lambda _: meeting.wait(20), range(4)))

    def test_map_times_out_and_cancels_the_rest(self) -> None:
        gate = threading.Event()
        log: list[str] = []
        with paceline.Executor(1) as executor:
            first = executor.submit(gate.wait)
            results = executor.map(log.append, ["second", "third"], timeout=0)
            with self.assertRaises(concurrent.futures.TimeoutError):
                next(results)
            gate.set()
            first.result()
        self.assertEqual(log, [])
        self.assertTrue(executor.audit().balances, executor.audit())
        self.assertEqual(executor.audit().cancelled, 2)

    def test_map_left_early_cancels_the_rest(self) -> None:
        log: list[int] = []
        gate = threading.Event()
        with paceline.Executor(1) as executor:
            results = executor.map(lambda n: (log.append(n), n and gate.wait()), range(100))
            next(results)
            results.close()  # type: ignore[attr-defined]
            gate.set()
        self.assertLess(len(log), 100)
        self.assertTrue(executor.audit().balances, executor.audit())

    def test_map_with_a_buffer(self) -> None:
        taken: list[int] = []

        def numbers() -> Any:
            for number in range(20):
                taken.append(number)
                yield number

        with paceline.Executor(2) as executor:
            results = executor.map(abs, numbers(), buffersize=4)
            self.assertEqual(len(taken), 4)
            self.assertEqual(list(results), list(range(20)))
            for wrong, error in ((0, ValueError), ("4", TypeError)):
                with self.assertRaises(error):
                    executor.map(abs, [1], buffersize=wrong)  # type: ignore[arg-type]

    def test_exceptions_with_traceback(self) -> None:
        def deep() -> None:
            raise KeyError("deep")

        with paceline.Executor(1) as executor:
            futures = [executor.submit(deep)]
            try:
                futures[0].result()
            except KeyError:
                self.assertIn("in deep", traceback.format_exc())
            with self.assertRaises(KeyError):
                list(executor.map(lambda _: deep(), range(3)))
            exits = executor.submit(sys.exit, 3)
            self.assertIsInstance(exits.exception(), SystemExit)
            self.assertEqual(executor.submit(abs, -1).result(), 1)

    def test_exceptions_that_are_false(self) -> None:
        class Nothing(Exception):
            def __len__(self) -> int:
                return 0

        def fails(_: object = None) -> None:
            raise Nothing

        with paceline.Executor(1) as executor:
            for result in (
                executor.submit(fails).result,
                lambda: list(executor.map(fails, [1])),
                lambda: list(executor.map(fails, [1], buffersize=1)),
            ):
                with self.assertRaises(Nothing):
                    result()

    def test_no_references_are_kept(self) -> None:
        class Thing:
            def echo(self) -> "Thing":
                return self

        with paceline.Executor(1) as executor:
            for use in (
                lambda thing: executor.submit(thing.echo).result(),
                lambda thing: executor.submit_batch(Thing.echo, [thing])[0].result(),
                lambda thing: list(executor.map(Thing.echo, [thing])),
                lambda thing: executor.submit(lambda each: each.none, thing).exception(),
            ):
                thing = Thing()
                gone = weakref.ref(thing)
                use(thing)
                del thing
                executor.submit(abs, 1).result()
                self.until_collected(lambda: gone() is None)

    def test_results_of_map_are_let_go(self) -> None:
        class Thing:
            pass

        with paceline.Executor(2) as executor:
            for thing in executor.map(lambda _: Thing(), range(10)):
                gone = weakref.ref(thing)
                del thing
                self.assertIsNone(gone())


class Sleeping(Case):
    def test_nobody_sleeps_beside_a_task(self) -> None:
        """Goal: a thread that goes to sleep while a task is added sees it, or is woken (invariants 1 and
        3 of the runner). Method: threads change places as often as the interpreter lets them, and
        there is one of each, so that nobody else's call makes up for one that is missing."""
        self.switch_often()
        for make in (paceline.Executor, paceline.Pool):
            with make(1) as executor:
                for number in range(4000):
                    self.assertEqual(executor.submit(abs, -number).result(20), number)


class Threads(Case):
    def test_defaults_and_bounds(self) -> None:
        # The standard one asks what the process may use since Python 3.13.
        if sys.version_info >= (3, 13) or len(os.sched_getaffinity(0)) == os.cpu_count():
            self.assertEqual(paceline.Executor()._max_workers, ThreadPoolExecutor()._max_workers)
        for wrong in (0, -1):
            with self.assertRaisesRegex(ValueError, "max_workers must be greater than 0"):
                paceline.Executor(wrong)
        with self.assertRaisesRegex(TypeError, "initializer is 1; allowed: something to call"):
            paceline.Executor(initializer=1)  # type: ignore[arg-type]

    def test_threads_are_made_when_needed(self) -> None:
        gate = threading.Event()
        with paceline.Executor(4) as executor:
            self.assertEqual(len(executor._threads), 0)
            for _ in range(20):
                executor.submit(gate.wait)
            self.assertEqual(len(executor._threads), 4)
            gate.set()

    def test_an_idle_thread_is_used_again(self) -> None:
        with paceline.Executor(8) as executor:
            for _ in range(3):
                executor.submit(abs, 1).result()
                self.until(lambda: executor._runner.asleep)
            self.assertEqual(len(executor._threads), 1)

    def test_more_threads_than_hosts_natively(self) -> None:
        gate = threading.Event()
        with paceline.Executor(1100) as executor:
            waiting = [executor.submit(gate.wait) for _ in range(1100)]
            gate.set()
            self.assertTrue(all(each.result() for each in waiting))

    def test_names(self) -> None:
        with paceline.Executor(1, thread_name_prefix="SPECIAL") as executor:
            self.assertEqual(executor.submit(name).result(), "SPECIAL_0")
        with paceline.Executor(1) as executor:
            # As the standard one's, which tools may look for.
            self.assertRegex(executor.submit(name).result(), r"^ThreadPoolExecutor-\d+_0$")

    def test_as_the_default_of_a_loop(self) -> None:
        """Which takes standard executors only."""

        async def runs(executor: paceline.Executor) -> str:
            loop = asyncio.get_running_loop()
            loop.set_default_executor(executor)
            return await loop.run_in_executor(None, name)

        executor = paceline.Executor(1, "default")
        self.assertEqual(asyncio.run(runs(executor)), "default_0")
        # The loop has shut it down.
        with self.assertRaises(RuntimeError):
            executor.submit(name)

    def test_all_that_a_standard_one_has(self) -> None:
        """Nothing public is inherited that would look for what only the standard one's ``__init__`` makes."""
        executor = paceline.Executor(1)
        self.assertIsInstance(executor, ThreadPoolExecutor)
        own = vars(paceline.Executor)
        for each in vars(ThreadPoolExecutor):
            if not each.startswith("_") and each not in ("prepare_context", "BROKEN"):
                self.assertIn(each, own)
        with executor as same:
            self.assertIs(same, executor)
            self.assertEqual(executor.submit(len, "a").result(), 1)
            self.assertEqual(list(executor.map(len, ["a"])), [1])
            self.assertEqual(len(executor._threads), 1)
            self.assertFalse(executor._shutdown or executor._broken)
        self.assertTrue(executor._shutdown)
        self.assertIn("Executor object", repr(executor))

    def test_initializer(self) -> None:
        local = threading.local()
        with paceline.Executor(2, initializer=setattr, initargs=(local, "value", 5)) as executor:
            self.assertEqual(executor.submit(lambda: local.value).result(), 5)

    def test_a_failing_initializer(self) -> None:
        logging.getLogger("concurrent.futures").propagate = False
        gate = threading.Event()

        def fail() -> None:
            gate.wait()
            raise ValueError("error in initializer")

        with self.assertLogs("concurrent.futures", "CRITICAL") as logged:
            with paceline.Executor(1, initializer=fail) as executor:
                future = executor.submit(abs, 1)
                results = executor.map(abs, [1, 2])
                gate.set()
                text = "A thread initializer failed, the thread pool is not usable anymore"
                with self.assertRaisesRegex(BrokenThreadPool, text):
                    future.result()
                with self.assertRaises(BrokenExecutor):
                    next(results)
                self.until(lambda: executor._broken)
                with self.assertRaisesRegex(BrokenThreadPool, text):
                    executor.submit(abs, 1)
        self.assertIn("ValueError: error in initializer", logged.output[0])

    def test_all_threads_take_part(self) -> None:
        meeting = threading.Barrier(5)
        with paceline.Executor(5) as executor:
            for _ in range(100):
                futures = [executor.submit(meeting.wait, 20) for _ in range(5)]
                for future in futures:
                    future.result()


def name() -> str:
    return threading.current_thread().name


class Futures(Case):
    def test_cancel(self) -> None:
        gate = threading.Event()
        with paceline.Executor(1) as executor:
            running = executor.submit(gate.wait)
            self.until(running.running)
            waiting = [executor.submit(abs, 1) for _ in range(3)]
            told: list[Any] = []
            waiting[0].add_done_callback(told.append)
            self.assertFalse(running.cancel())
            self.assertTrue(waiting[0].cancel())
            self.assertTrue(waiting[0].cancel())
            self.assertTrue(waiting[0].cancelled() and waiting[0].done())
            self.assertEqual(told, [waiting[0]])
            with self.assertRaises(CancelledError):
                waiting[0].result()
            gate.set()
            self.assertEqual(waiting[1].result(), 1)
        audit = executor.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.cancelled, audit.completed), (1, 3))

    def test_times_out(self) -> None:
        gate = threading.Event()
        with paceline.Executor(1) as executor:
            future = executor.submit(gate.wait)
            for call in (future.result, future.exception):
                with self.assertRaises(concurrent.futures.TimeoutError):
                    call(timeout=0.01)
            gate.set()
            self.assertTrue(future.result(20))

    def test_callbacks(self) -> None:
        gate = threading.Event()
        told: list[Any] = []
        with paceline.Executor(1) as executor:
            future = executor.submit(gate.wait)

            def raising(_: object) -> None:
                raise ValueError("a callback's")

            future.add_done_callback(told.append)
            future.add_done_callback(raising)
            future.add_done_callback(told.append)
            with self.assertLogs("concurrent.futures", "ERROR"):
                gate.set()
                self.until(lambda: len(told) == 2)
            future.add_done_callback(told.append)
        self.assertEqual(told, [future] * 3)

    def test_a_future_ends_once(self) -> None:
        with paceline.Executor(1) as executor:
            future = executor.submit(abs, 1)
            future.result()
            for call in (future.set_result, future.set_exception):
                with self.assertRaises(InvalidStateError):
                    call(None)  # type: ignore[arg-type]
            self.assertIn("finished returned int", repr(future))

    def test_wait_and_as_completed(self) -> None:
        """With those of the standard executor among them; at every moment of a future's life."""
        with paceline.Executor(2) as ours, ThreadPoolExecutor(2) as theirs:
            for _ in range(200):
                futures = [ours.submit(abs, 1), theirs.submit(abs, 2), ours.submit(time.sleep, 0)]
                done, pending = wait(futures, timeout=20, return_when=ALL_COMPLETED)
                self.assertEqual((done, pending), (set(futures), set()))
            for _ in range(200):
                futures = ours.submit_batch(abs, range(20))
                self.assertEqual(set(as_completed(futures, 20)), set(futures))
            gate = threading.Event()
            futures = [ours.submit(gate.wait), ours.submit(abs, "x")]
            done, pending = wait(futures, 20, FIRST_COMPLETED)
            self.assertEqual((done, pending), ({futures[1]}, {futures[0]}))
            done, _ = wait(futures, 20, FIRST_EXCEPTION)
            self.assertEqual(done, {futures[1]})
            with self.assertRaises(concurrent.futures.TimeoutError):
                list(as_completed(futures, 0.01))
            gate.set()

    def test_asyncio(self) -> None:
        async def main(executor: paceline.Executor) -> list[int]:
            loop = asyncio.get_running_loop()
            calls = [loop.run_in_executor(executor, pow, n, 2) for n in range(200)]
            wrapped = [asyncio.wrap_future(executor.submit(pow, n, 2)) for n in range(200)]
            return [*await asyncio.gather(*calls), *await asyncio.gather(*wrapped)]

        with paceline.Executor(3) as executor:
            self.assertEqual(asyncio.run(main(executor)), [n * n for n in range(200)] * 2)

    def test_races_of_waiting_and_ending(self) -> None:
        """Goal: who begins to wait while the future ends is told. Many waiters per future."""
        with paceline.Executor(2) as executor:
            got: list[int] = []

            def watch(future: Any) -> None:
                got.append(future.result(20))

            for _ in range(100):
                future = executor.submit(abs, -7)
                watchers = [threading.Thread(target=watch, args=(future,)) for _ in range(3)]
                for thread in watchers:
                    thread.start()
                for thread in watchers:
                    thread.join()
            self.assertEqual(got, [7] * 300)


class Ending(Case):
    def test_run_after_shutdown(self) -> None:
        executor = paceline.Executor(1)
        executor.shutdown()
        for call in (executor.submit, executor.map, executor.submit_batch):
            with self.assertRaisesRegex(RuntimeError, "^cannot schedule new futures after shutdown$"):
                call(pow, [2], [5])  # type: ignore[operator]

    def test_shutdown_without_waiting(self) -> None:
        executor = paceline.Executor(2)
        results = executor.map(abs, range(-5, 5))
        threads = executor._threads
        executor.shutdown(wait=False)
        for thread in threads:
            thread.join()
        self.assertEqual(list(results), [5, 4, 3, 2, 1, 0, 1, 2, 3, 4])

    def test_shutdown_that_cancels(self) -> None:
        gate = threading.Event()
        executor = paceline.Executor(2)
        futures = [executor.submit(gate.wait) for _ in range(20)]
        results = executor.map(abs, range(5))
        self.until(lambda: sum(each.running() for each in futures) == 2)
        executor.shutdown(wait=False, cancel_futures=True)
        gate.set()
        executor.shutdown()
        self.assertEqual(sum(each.cancelled() for each in futures), 18)
        with self.assertRaises(CancelledError):
            next(results)
        audit = executor.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.cancelled, audit.completed), (23, 2))

    def test_a_lost_executor_ends(self) -> None:
        executor = paceline.Executor(3)
        results = executor.map(abs, range(-5, 5))
        threads = executor._threads
        gone = weakref.ref(executor)
        del executor
        self.assertIsNone(gone())
        for thread in threads:
            thread.join()
        self.assertEqual(list(results), [5, 4, 3, 2, 1, 0, 1, 2, 3, 4])

    def test_shutdown_races_with_submitting(self) -> None:
        """Goal: what was accepted runs, what was refused does not, whatever the moment."""
        self.switch_often()
        for make in (paceline.Executor, paceline.Pool):
            for _ in range(150):
                self.race(make)

    def race(self, make: Any) -> None:
        executor = make(2)
        ran: list[int] = []
        accepted: list[int] = []

        def submit() -> None:
            for number in itertools.count():
                try:
                    executor.submit(ran.append, number)
                except RuntimeError:
                    return
                accepted.append(number)

        thread = threading.Thread(target=submit)
        thread.start()
        time.sleep(0.0002)
        if make is paceline.Executor:
            executor.shutdown()
        else:
            executor.shutdown(drain=None)
        thread.join()
        self.assertEqual(sorted(ran), accepted)
        self.assertTrue(executor.audit().balances, executor.audit())

    def test_the_interpreters_end_runs_what_is_pending(self) -> None:
        told = run(
            """
            import paceline, time
            executor = paceline.Executor(2)
            executor.submit(lambda: (time.sleep(0.3), print("slow", flush=True)))
            executor.submit(print, "quick", flush=True)
            """
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual(sorted(told.stdout.split()), ["quick", "slow"])

    def test_submitting_at_the_interpreters_end(self) -> None:
        told = run(
            """
            import atexit, paceline
            executor = paceline.Executor(2)
            @atexit.register
            def last():
                for each in (executor, paceline.Executor(1)):
                    try:
                        each.submit(id, None)
                    except RuntimeError as error:
                        print(error)
            executor.submit(id, 42).result()
            """
        )
        text = "cannot schedule new futures after interpreter shutdown\n"
        self.assertEqual((told.returncode, told.stdout), (0, text * 2), told.stderr)

    def test_it_refuses_to_be_pickled(self) -> None:
        with self.assertRaisesRegex(TypeError, "cannot pickle a paceline.Executor"):
            pickle.dumps(paceline.Executor())


class Forked(Case):
    @unittest.skipUnless(hasattr(os, "fork"), "skipped, because there is no fork")
    def test_a_child_is_told(self) -> None:
        told = run(
            """
            import os, paceline, warnings
            warnings.simplefilter("ignore")
            executor, pool, queue = paceline.Executor(2), paceline.Pool(2), paceline.Queue()
            executor.submit(abs, 1).result()
            ring = paceline.Ring(pool, print)
            handle, timer = pool.every(0.001, lambda: None), pool.after(1000, print)
            child = os.fork()
            if child == 0:
                for call in (
                    lambda: executor.submit(abs, 1), lambda: executor.map(abs, [1]),
                    lambda: pool.submit(abs, 1), lambda: pool.post(abs, 1), lambda: pool.join(0),
                    lambda: pool.after(1, print), lambda: pool.every(1, print),
                    lambda: pool.register(0, print), lambda: queue.push(b""), lambda: queue.pop(0),
                    lambda: ring.publish(b""), handle.close, handle.pause, timer.cancel, pool.stats,
                    queue.close, queue.fileno,
                ):
                    try:
                        call()
                    except paceline.ForkedError:
                        continue
                    raise SystemExit("no ForkedError")
                executor.shutdown()
                pool.shutdown(drain=None)
                with paceline.Executor(2) as fresh, paceline.Pool(1) as other:
                    assert fresh.submit(abs, -1).result() + other.submit(abs, -1).result() == 2
                raise SystemExit(7)
            _, status = os.waitpid(child, 0)
            assert executor.submit(abs, -5).result() == 5
            print(os.WEXITSTATUS(status))
            """
        )
        self.assertEqual((told.stdout, told.stderr, told.returncode), ("7\n", "", 0))

    @unittest.skipUnless(hasattr(os, "fork"), "skipped, because there is no fork")
    def test_forking_from_a_task(self) -> None:
        told = run(
            """
            import os, paceline, warnings
            warnings.simplefilter("ignore")
            def fork():
                child = os.fork()
                if child == 0:
                    os._exit(0)
                return os.waitpid(child, 0)[1]
            for make in (paceline.Executor, paceline.Pool):
                with make(2) as executor:
                    assert [executor.submit(fork).result() for _ in range(20)] == [0] * 20
            """
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))


class Importing(Case):
    def test_importing_makes_no_threads(self) -> None:
        told = run(
            """
            import os, threading, paceline
            print(threading.active_count(), len(os.listdir("/proc/self/task")))
            """
        )
        self.assertEqual(told.stdout, "1 1\n", told.stderr)


if __name__ == "__main__":
    unittest.main()
