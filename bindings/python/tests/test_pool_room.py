"""Bounds of lanes and strands: who waits for room, who never waits, and what becomes of those who wait."""

from __future__ import annotations

import signal
import threading
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import paceline
from paceline import Full, InvalidError, Lane, Pool, ShutDownError, Strand
from paceline._runner import Posted
from support import Case


class Gate:
    """Keeps the threads of a pool inside of tasks."""

    def __init__(self, case: Case, pool: Pool, threads: int) -> None:
        self.opened = threading.Event()
        entered = threading.Semaphore(0)
        for _ in range(threads):
            pool.post(lambda: (entered.release(), self.opened.wait(60)))
        for _ in range(threads):
            case.assertTrue(entered.acquire(timeout=60))

    def open(self) -> None:
        self.opened.set()


class Room(Case):
    def pool(self, threads: int = 1, **settings: Any) -> Pool:
        pool = Pool(threads, **settings)
        self.addCleanup(pool.shutdown)
        return pool

    def waits(self, call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
        """Has another thread call that; what comes of it."""
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.append(call())
            except BaseException as raised:
                outcome.append(raised)

        thread = threading.Thread(target=run)
        thread.start()
        return thread, outcome

    def ways(self, pool: Pool) -> list[Any]:
        return [pool, *map(pool.lane, Lane), pool.strand()]

    def test_what_may_not_wait_is_refused_by_a_full_lane_only(self) -> None:
        pool = self.pool(lane_capacity=3, strand_capacity=2)
        gate = Gate(self, pool, 1)
        rooms = [(pool.lane(lane), 3) for lane in Lane] + [(pool.strand(), 2), (pool.strand(), 2)]
        futures = []
        for way, room in rooms:
            for number in range(room):
                futures.append(way.try_submit(int, number))
            for refused in (way.try_submit, way.try_post):
                with self.assertRaisesRegex(
                    Full, f"is full: {room} tasks wait there, .* a larger (lane|strand)_capacity"
                ):
                    refused(int)
        with self.assertRaises(Full):
            pool.try_post(int)
        with self.assertRaises(Full):
            pool.try_submit(int)
        self.assertEqual(pool.stats().queued, sum(room for _, room in rooms))
        gate.open()
        self.assertEqual(sum(future.result(60) for future in futures), 4 * 3 + 2)
        pool.shutdown(60)
        audit = pool.audit()
        self.assertEqual((audit.accepted, audit.rejected), (1 + 12 + 4, 12 + 2))
        self.assertTrue(audit.balances)

    def test_a_task_of_the_pool_never_waits(self) -> None:
        pool = self.pool(lane_capacity=4, strand_capacity=4)

        def fill(way: Any) -> int:
            for number in range(100):
                try:
                    (way.submit if number % 2 else way.post)(int)
                except Full:
                    with self.assertRaises(Full):
                        way.submit_batch(int, "1")
                    return number
            return -1

        for way in self.ways(pool):
            with self.subTest(way):
                self.assertEqual(pool.submit(fill, way).result(60), 4)
        filled = pool.submit(lambda: pool.post_batch(int, range(5)))
        self.assertIsInstance(filled.exception(60), Full)
        pool.shutdown(60)
        audit = pool.audit()
        self.assertTrue(audit.balances)
        self.assertEqual(audit.accepted, 6 * (1 + 4) + 1)

    def test_a_handler_of_what_stands_on_the_pool_never_waits(self) -> None:
        pool = self.pool(lane_capacity=2)
        gate = Gate(self, pool, 1)
        refused = threading.Event()
        with paceline.Hub(pool, threads=1) as hub:

            def handle(_: paceline.Message) -> None:
                try:
                    pool.post_batch(int, range(3))
                except Full:
                    refused.set()

            hub.subscribe("a", handle)
            hub.publish("a", b"")
            self.until(refused.is_set)
            gate.open()

    def test_who_is_outside_waits_and_is_called_when_half_of_it_is_gone(self) -> None:
        pool = self.pool(lane_capacity=4, strand_capacity=4)
        for way in self.ways(pool):
            with self.subTest(way):
                gate = Gate(self, pool, 1)
                steps, ran = threading.Semaphore(0), []
                for number in range(4):
                    way.post(lambda number=number: (steps.acquire(), ran.append(number)))
                thread, outcome = self.waits(lambda way=way: way.submit(lambda: ran.append(4)))
                self.until(lambda: pool._runner.waited_for)
                gate.open()
                steps.release()
                self.until(lambda: len(ran) == 1)
                self.assertEqual(outcome, [])
                steps.release()
                thread.join(60)
                steps.release(2)
                outcome[0].result(60)
                self.assertEqual(ran, [0, 1, 2, 3, 4])
                self.assertFalse(pool._runner.waited_for)

    def test_many_who_wait_lose_nothing(self) -> None:
        self.switch_often()
        pool = self.pool(2, lane_capacity=2, strand_capacity=2)
        ran = [0]

        def count() -> None:
            with lock:
                ran[0] += 1

        def produce(way: Any) -> None:
            for _ in range(100):
                way.post(count)
                way.submit_batch(lambda _: count(), range(5))

        lock = threading.Lock()
        threads = [self.waits(lambda way=way: produce(way)) for way in self.ways(pool) for _ in range(2)]
        for thread, outcome in threads:
            thread.join(120)
            self.assertEqual(outcome, [None])
        pool.shutdown(60)
        self.assertEqual(ran[0], 12 * 600)
        self.assertTrue(pool.audit().balances)
        self.assertEqual(pool.stats().queued, 0)

    def test_the_end_refuses_those_who_wait(self) -> None:
        for drain in (0, 60):
            pool = self.pool(lane_capacity=2, strand_capacity=2)
            gate = Gate(self, pool, 1)
            ways = self.ways(pool)
            waiting = []
            for way in ways[1:]:
                way.post_batch(int, "12")
            for way in ways:
                waiting.append(self.waits(lambda way=way: way.submit(int)))
            self.until(lambda pool=pool: len(pool._runner.waited_for) == 5)
            thread, _ = self.waits(lambda pool=pool, drain=drain: pool.shutdown(drain))
            for each, outcome in waiting:
                each.join(60)
                self.assertIsInstance(outcome[0], ShutDownError)
            gate.open()
            thread.join(60)
            audit = pool.audit()
            self.assertTrue(audit.balances)
            self.assertEqual((audit.rejected, audit.cancelled), (6, 0 if drain else 10))

    def test_a_host_makes_room(self) -> None:
        pool = self.pool(0, lane_capacity=2)
        pool.post_batch(int, "12")
        thread, outcome = self.waits(lambda: pool.submit(abs, -3))
        self.until(lambda: pool._runner.waited_for)
        self.until(lambda: pool.join(0) is not None and not thread.is_alive())
        self.until(lambda: pool.join(0) is not None and outcome[0].done())
        self.assertEqual(outcome[0].result(), 3)
        self.assertEqual(pool.join(0), 0)

    def test_a_wait_can_be_interrupted(self) -> None:
        class Interrupt(Exception):
            pass

        def interrupt(*_: object) -> None:
            raise Interrupt

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, interrupt))
        pool = self.pool(lane_capacity=2)
        gate = Gate(self, pool, 1)
        pool.post_batch(int, "12")
        main = threading.main_thread().ident

        def send() -> None:
            self.until(lambda: pool._runner.waited_for)
            signal.pthread_kill(main, signal.SIGUSR1)

        thread, _ = self.waits(send)
        with self.assertRaises(Interrupt):
            pool.post(int)
        thread.join(60)
        again, outcome = self.waits(lambda: pool.submit(abs, -2).result(60))
        gate.open()
        again.join(60)
        self.assertEqual(outcome, [2])

    def test_a_batch_is_larger_than_the_lane(self) -> None:
        pool = self.pool(2, lane_capacity=4, strand_capacity=3)
        for way in self.ways(pool):
            futures = way.submit_batch(abs, range(0, -100, -1))
            self.assertEqual([future.result(60) for future in futures], list(range(100)))
            self.assertEqual(way.submit_batch(abs, ()), [])

    def test_batches_at_the_same_moment_do_not_share_the_room(self) -> None:
        pool = self.pool(lane_capacity=4, strand_capacity=4)
        gate = Gate(self, pool, 1)
        for way in [*map(pool.lane, Lane), pool.strand()]:
            source = way._serial if isinstance(way, Strand) else way._lanes
            line = source.line if isinstance(way, Strand) else source.by_lane[way._lane]
            other: list[Any] = []

            def admitted(*of: Any, way: Any = way, source: Any = source, other: Any = other) -> int:
                """Another batch comes between the look for room and the tasks."""
                found = type(source).admit(source, *of)
                if not other:
                    other.append(way)
                    way.post_batch(int, "34")
                return found

            with mock.patch.object(source, "admit", admitted), self.assertRaises(Full):
                source.add([(Posted(print), int, (), {})] * 4, line, waits=False)
            self.assertEqual(source.waiting_in(line), 2)
        gate.open()

    def test_settings(self) -> None:
        default = self.pool()._runner
        self.assertEqual((default.lane_capacity, default.strand_capacity), (8192, 1024))
        for name in ("lane_capacity", "strand_capacity"):
            for wrong in (1, 0, -1, 2**24 + 1):
                with self.assertRaisesRegex(InvalidError, f"{name} is {wrong}; allowed: 2 to 16777216"):
                    Pool(1, **{name: wrong})
            with self.assertRaisesRegex(
                InvalidError, f"{name} is an int of thousands of digits; allowed"
            ):
                Pool(1, **{name: 10**5000})
            with self.assertRaisesRegex(TypeError, f"{name} is 2.5; allowed: a whole number"):
                Pool(1, **{name: 2.5})  # type: ignore[arg-type]
            self.assertEqual(getattr(self.pool(**{name: 2**24})._runner, name), 2**24)


if __name__ == "__main__":
    unittest.main()
