"""Lanes: preferred, and none starved. Strands: one task at a time, in order, and no thread waits."""

from __future__ import annotations

import gc
import pickle
import socket
import threading
import unittest
import weakref
from collections import Counter, deque
from typing import Any

import paceline
from paceline import Lane
from support import Case, run, unrun_apart

#: Of 64 that begin, how many are of each lane.
SHARES = {Lane.CRITICAL: 32, Lane.HIGH: 18, Lane.NORMAL: 10, Lane.LOW: 4}

#: Of how many that begin in a row one is of the lane, when all have work.
BOUNDS = {Lane.CRITICAL: 9, Lane.HIGH: 13, Lane.NORMAL: 15, Lane.LOW: 16}


def held(pool: paceline.Pool, threads: int = 1) -> threading.Event:
    """Keeps a pool's threads in tasks until the event is set."""
    gate = threading.Event()
    arrived = threading.Barrier(threads + 1)

    def hold() -> None:
        arrived.wait(20)
        gate.wait(60)

    for _ in range(threads):
        pool.post(hold)
    arrived.wait(20)
    return gate


class Lanes(Case):
    def test_shares_and_bounds(self) -> None:
        """While every lane has tasks, shares are exact and no lane waits longer than its bound."""
        begun: list[Lane] = []
        with paceline.Pool(1) as pool:
            gate = held(pool)
            for lane in reversed(Lane):
                pool.lane(lane).post_batch(begun.append, [lane] * 320)
            gate.set()
        self.assertEqual(len(begun), 4 * 320)
        # After 640, CRITICAL has none left.
        for start in range(0, 640, 64):
            self.assertEqual(Counter(begun[start : start + 64]), SHARES)
        for lane, bound in BOUNDS.items():
            for start in range(640 - bound):
                self.assertIn(lane, begun[start : start + bound], (lane, start))

    def test_an_urgent_task_overtakes(self) -> None:
        begun: list[Any] = []
        with paceline.Pool(1) as pool:
            gate = held(pool)
            pool.post_batch(begun.append, range(100))
            pool.lane(Lane.LOW).post(begun.append, "low")
            pool.lane(Lane.CRITICAL).post_batch(begun.append, ["first", "second"])
            gate.set()
        self.assertLess(begun.index("first"), 3)
        self.assertLess(begun.index("second"), 6)
        self.assertLess(begun.index("low"), 17 + 2)
        self.assertEqual([each for each in begun if isinstance(each, int)], list(range(100)))

    def test_no_lane_is_starved(self) -> None:
        """Each lane keeps all threads busy for ever, and the others' tasks run all the same."""
        for busy in Lane:
            with paceline.Pool(2) as pool:
                going = [True]
                lane = pool.lane(busy)

                def endless() -> None:
                    if going:
                        lane.post(endless)

                lane.post_batch(lambda _: endless(), range(8))
                for other in Lane:
                    self.assertEqual(pool.lane(other).submit(abs, -7).result(60), 7)
                going.clear()

    def test_keywords_are_the_functions_own(self) -> None:
        with paceline.Pool(1) as pool:
            told = pool.lane(Lane.HIGH).submit(lambda *args, **named: (args, named), 1, lane=2, fn=3)
            self.assertEqual(told.result(), ((1,), {"lane": 2, "fn": 3}))
            self.assertEqual(
                [each.result() for each in pool.lane(3).submit_batch(pow, [2, 3], [4, 2])], [16, 9]
            )

    def test_nothing_is_lost_between_threads(self) -> None:
        self.switch_often()
        done: list[int] = []
        with paceline.Pool(4) as pool:

            def produce(start: int) -> None:
                for number in range(start, start + 1000):
                    pool.lane(number % 4).post(done.append, number)

            producers = [threading.Thread(target=produce, args=(n * 1000,)) for n in range(4)]
            for thread in producers:
                thread.start()
            for thread in producers:
                thread.join()
        self.assertEqual(sorted(done), list(range(4000)))
        audit = pool.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.completed, audit.in_flight), (4000, 0))
        self.assertEqual(pool._runner.sources, set())

    def test_the_end(self) -> None:
        pool = paceline.Pool(1)
        gate = held(pool)
        futures = [pool.lane(lane).submit(abs, lane) for lane in Lane]
        self.assertEqual((pool.stats().queued, pool.audit().in_flight), (4, 5))
        self.assertTrue(pool.audit().balances)
        self.assertEqual(pool.shutdown(0).cancelled, 4)
        self.assertTrue(all(each.cancelled() for each in futures))
        gate.set()
        self.assertTrue(pool.shutdown(None).drained)
        for lane in Lane:
            with self.assertRaises(paceline.ShutDownError):
                pool.lane(lane).post(abs, 1)
        audit = pool.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.completed, audit.cancelled, audit.rejected), (1, 4, 4))

    def test_what_is_refused(self) -> None:
        with paceline.Pool(1) as pool:
            for wrong in (-1, 4):
                with self.assertRaisesRegex(paceline.InvalidError, "lane is .*; allowed"):
                    pool.lane(wrong)
            with self.assertRaisesRegex(TypeError, "cannot pickle a paceline.LaneRef"):
                pickle.dumps(pool.lane(Lane.LOW))


class Strands(Case):
    def test_one_at_a_time_and_in_order(self) -> None:
        self.switch_often()
        seen: list[tuple[int, int]] = []
        inside: list[None] = []
        most: list[int] = []

        def note(producer: int, number: int) -> None:
            inside.append(None)
            most.append(len(inside))
            seen.append((producer, number))
            inside.pop()

        with paceline.Pool(4) as pool:
            strand = pool.strand()

            def produce(producer: int) -> None:
                for number in range(1000):
                    strand.post(note, producer, number)

            producers = [threading.Thread(target=produce, args=(n,)) for n in range(3)]
            for thread in producers:
                thread.start()
            for thread in producers:
                thread.join()
        self.assertEqual((max(most), len(most)), (1, 3000))
        for producer in range(3):
            mine = [number for who, number in seen if who == producer]
            self.assertEqual(mine, list(range(1000)))
        audit = pool.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.accepted, audit.completed, audit.in_flight), (3000, 3000, 0))

    def test_a_slow_task_holds_no_second_thread(self) -> None:
        done: list[int] = []
        with paceline.Pool(2) as pool:
            strand = pool.strand()
            gate = threading.Event()
            strand.post(gate.wait, 60)
            strand.post_batch(done.append, range(100))
            for _ in range(10):
                self.assertEqual(pool.submit(abs, -1).result(20), 1)
            other = pool.strand()
            self.assertEqual(other.submit(abs, -2).result(20), 2)
            self.assertEqual((done, pool.stats().queued), ([], 100))
            gate.set()
        self.assertEqual(done, list(range(100)))

    def test_all_threads_serve_strands(self) -> None:
        meeting = threading.Barrier(4)
        with paceline.Pool(4) as pool:
            for _ in range(50):
                for future in [pool.strand().submit(meeting.wait, 20) for _ in range(4)]:
                    future.result()

    def test_what_raises(self) -> None:
        raised: list[BaseException] = []
        with paceline.Pool(2, on_unhandled=raised.append) as pool:
            strand = pool.strand()
            strand.post(lambda: 1 / 0)
            failed = strand.submit(int, "x")
            futures = strand.submit_batch(divmod, [7, 8], [2, 0])
            self.assertEqual(strand.submit(int, "11", base=2).result(), 3)
            self.assertIsInstance(failed.exception(), ValueError)
            self.assertEqual(futures[0].result(), (3, 1))
            self.assertIsInstance(futures[1].exception(), ZeroDivisionError)
        self.assertEqual([type(each) for each in raised], [ZeroDivisionError])
        audit = pool.audit()
        self.assertEqual((audit.completed, audit.failed), (2, 3))

    def test_a_batch_is_in_one_piece(self) -> None:
        done: list[int] = []
        with paceline.Pool(2) as pool:
            strand = pool.strand()
            producers = [
                threading.Thread(
                    target=lambda n=n: [strand.post_batch(done.append, [n] * 10) for _ in range(50)]
                )
                for n in range(3)
            ]
            for thread in producers:
                thread.start()
            for thread in producers:
                thread.join()
        self.assertEqual(len(done), 1500)
        for start in range(0, 1500, 10):
            self.assertEqual(len(set(done[start : start + 10])), 1)

    def test_a_cancelled_one_is_left_out(self) -> None:
        done: list[str] = []
        with paceline.Pool(1) as pool:
            gate = held(pool)
            strand = pool.strand()
            _, second, _ = strand.submit_batch(done.append, ["1", "2", "3"])
            self.assertTrue(second.cancel())
            gate.set()
        self.assertEqual(done, ["1", "3"])
        self.assertEqual(pool.audit().cancelled, 1)

    def test_a_dropped_strand_runs_what_it_accepted(self) -> None:
        done: list[int] = []
        with paceline.Pool(1) as pool:
            gate = held(pool)
            strand = pool.strand()
            strand.post_batch(done.append, range(100))
            gone = weakref.ref(strand._serial)
            del strand
            gc.collect()
            gate.set()
            self.until(lambda: len(done) == 100)
            self.until(lambda: gone() is None)

    def test_it_keeps_the_pool_and_no_cycle(self) -> None:
        pool = paceline.Pool(1)
        strand, lane = pool.strand(), pool.lane(Lane.LOW)
        strand.submit(abs, 1).result()
        gone = weakref.ref(pool)
        threads = list(pool._runner.threads)
        del pool
        self.assertEqual(strand.submit(abs, -1).result(), 1)
        self.assertEqual(lane.submit(abs, -2).result(), 2)
        gc.disable()
        self.addCleanup(gc.enable)
        del strand, lane
        self.assertIsNone(gone())
        for thread in threads:
            thread.join(20)
            self.assertFalse(thread.is_alive())

    def test_a_post_while_it_becomes_idle(self) -> None:
        """As collecting garbage may post, on the thread that has the strand in hand, under its lock."""

        class Line(deque):  # type: ignore[type-arg]
            late: Any = None

            def __bool__(self) -> bool:
                before, late, self.late = len(self) > 0, self.late, None
                if late is not None:
                    late()
                return before

        with paceline.Pool(1) as pool:
            strand = pool.strand()
            line = strand._serial.line.tasks = Line()
            for _ in range(100):
                late = []
                gate = held(pool)
                strand.post(int)
                line.late = lambda: late.append(strand.submit(abs, -1))
                gate.set()
                self.until(lambda: late)
                self.assertEqual(late[0].result(20), 1)

    def test_an_endless_strand_lets_others_go_first(self) -> None:
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        theirs.settimeout(60)
        going = [True]
        with paceline.Pool(1) as pool:
            strand = pool.strand()

            def endless() -> None:
                if going:
                    strand.post(endless)

            def endless_too() -> None:
                if going:
                    pool.post(endless_too)

            pool.post(endless_too)
            strand.post_batch(lambda _: endless(), range(50))
            self.assertEqual(pool.submit(abs, -1).result(60), 1)
            self.assertEqual(pool.lane(Lane.LOW).submit(abs, -1).result(60), 1)
            pool.register(ours, lambda connection, _: theirs_gets(connection))
            theirs.sendall(b"x")
            self.assertEqual(theirs.recv(1), b"x")
            going.clear()

    def test_shutdown_waits_or_cancels(self) -> None:
        done: list[int] = []
        for drain, ran in ((None, 100), (0, 0)):
            done.clear()
            pool = paceline.Pool(2)
            strand = pool.strand()
            gate, running = threading.Event(), threading.Event()
            strand.post(lambda: (running.set(), gate.wait(60)))
            strand.post_batch(done.append, range(100))
            running.wait(20)
            self.assertEqual(pool.audit().in_flight, 101)
            self.assertTrue(pool.audit().balances)
            if drain is None:
                threading.Timer(0.02, gate.set).start()
            report = pool.shutdown(drain)
            self.assertEqual(
                (report.drained, report.cancelled, report.stuck),
                (True, 0, 0) if drain is None else (False, 100, 1),
            )
            gate.set()
            self.assertTrue(pool.shutdown(None).drained)
            self.assertEqual(len(done), ran)
            with self.assertRaises(paceline.ShutDownError):
                strand.post(abs, 1)
            with self.assertRaises(paceline.ShutDownError):
                pool.strand()
            audit = pool.audit()
            self.assertTrue(audit.balances, audit)
            self.assertEqual(
                (audit.completed, audit.cancelled, audit.rejected, audit.in_flight),
                (ran + 1, 100 - ran, 1, 0),
            )

    def test_shutdown_amid_posts(self) -> None:
        """What was accepted before it runs, what was refused does not, and the books know which."""
        self.switch_often()
        for _ in range(30):
            done: list[int] = []
            accepted: list[int] = []
            pool = paceline.Pool(2)
            ways: list[Any] = [pool.strand(), pool.lane(Lane.HIGH), pool.lane(Lane.LOW)]

            def produce(number: int) -> None:
                way = ways[number]
                try:
                    while True:
                        way.post(done.append, number)
                        accepted.append(number)
                except paceline.ShutDownError:
                    pass

            producers = [threading.Thread(target=produce, args=(n,)) for n in (0, 1, 2, 0)]
            for thread in producers:
                thread.start()
            self.until(lambda: len(accepted) > 50)
            before = accepted[:]
            report = pool.shutdown(None)
            for thread in producers:
                thread.join()
            self.assertEqual(Counter(before) - Counter(done), Counter())
            self.assertEqual(Counter(done) - Counter(accepted), Counter())
            audit = pool.audit()
            self.assertTrue(audit.balances, audit)
            self.assertEqual((audit.completed, audit.in_flight), (len(done), 0))
            # What came between may have been cancelled.
            self.assertEqual(audit.cancelled, report.cancelled)
            self.assertEqual(audit.accepted, len(accepted))

    def test_hosts(self) -> None:
        """Without threads; the last to leave need not be the one that has the strand in hand."""
        done: list[int] = []
        gate, running = threading.Event(), threading.Event()
        pool = paceline.Pool(0)
        strand = pool.strand()
        futures = strand.submit_batch(abs, [-1, -2, -3])
        self.assertEqual((pool.join(20), [each.result(0) for each in futures]), (3, [1, 2, 3]))
        strand.post(lambda: (running.set(), gate.wait(60)))
        host = threading.Thread(target=pool.join, args=(20,))
        host.start()
        running.wait(20)
        strand.post_batch(done.append, range(200))
        pool.lane(Lane.LOW).post(done.append, 200)
        threading.Timer(0.02, gate.set).start()
        report = pool.shutdown(None)
        host.join()
        self.assertEqual((report.drained, report.cancelled), (True, 0))
        self.assertEqual(sorted(done), list(range(201)))
        self.assertTrue(pool.audit().balances)

    def test_it_refuses_to_be_pickled(self) -> None:
        with paceline.Pool(1) as pool:
            with self.assertRaisesRegex(TypeError, "cannot pickle a paceline.Strand"):
                pickle.dumps(pool.strand())

    def test_a_forked_child_is_refused(self) -> None:
        told = run(
            """
            import os, threading, warnings
            import paceline
            warnings.simplefilter("ignore")
            pool = paceline.Pool(2, strand_capacity=1 << 16)
            strand, lane = pool.strand(), pool.lane(paceline.Lane.HIGH)
            gate = threading.Event()
            strand.post(gate.wait)
            waiting = strand.submit(abs, 1)
            for _ in range(20):
                # Another thread may hold any lock meanwhile.
                busy = threading.Thread(target=lambda: [strand.post(abs, 1) for _ in range(2000)])
                busy.start()
                child = os.fork()
                if child == 0:
                    refused = 0
                    calls = (pool.strand, lambda: strand.post(abs, 1), lambda: lane.submit(abs, 1))
                    for call in calls:
                        try:
                            call()
                        except paceline.ForkedError:
                            refused += 1
                    pool.shutdown()
                    os._exit(refused)
                assert os.waitpid(child, 0)[1] >> 8 == 3
                busy.join()
            gate.set()
            assert waiting.result(20) == 1
            assert pool.shutdown(None).drained and pool.audit().balances
            """
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))

    def test_the_interpreter_may_end(self) -> None:
        told = run(
            """
            import time
            import paceline
            pool = paceline.Pool(2)
            strand = pool.strand()
            strand.post(time.sleep, 0.05)
            strand.post_batch(print, range(3))
            pool.lane(paceline.Lane.LOW).post(time.sleep, 0.05)
            """
        )
        self.assertEqual((told.returncode, unrun_apart(told.stderr)), (0, ""))


def theirs_gets(connection: socket.socket) -> None:
    connection.sendall(connection.recv(1))


if __name__ == "__main__":
    unittest.main()
