"""Threads that are reserved for a lane, and lanes in which something has waited for long."""

from __future__ import annotations

import math
import threading
import unittest
from collections import deque
from typing import Any
from unittest import mock

import paceline
from paceline import InvalidError, Lane, Pool
from paceline._sources import Line, Turns
from support import Case


class Reserved(Case):
    def pool(self, threads: int = 1, **settings: Any) -> Pool:
        pool = Pool(threads, **settings)
        self.addCleanup(pool.shutdown)
        return pool

    def hold(self, pool: Pool, threads: int = 1) -> threading.Event:
        """Keeps its ordinary threads inside of tasks that no reserved one takes."""
        go, entered = threading.Event(), threading.Semaphore(0)
        for _ in range(threads):
            pool.strand().post(lambda: (entered.release(), go.wait(60)))
        for _ in range(threads):
            self.assertTrue(entered.acquire(timeout=60))
        self.addCleanup(go.set)
        return go

    def test_its_tasks_begin_though_all_others_are_busy(self) -> None:
        for lane in Lane:
            with self.subTest(lane.name):
                pool = self.pool(2, reserve={lane: 2})
                go = self.hold(pool, 2)
                both = threading.Barrier(2)
                for _ in range(100):
                    tasks = pool.lane(lane).submit_batch(lambda _: both.wait(60), "12")
                    for task in tasks:
                        task.result(60)
                tasks = [pool.lane(lane).submit(both.wait, 60) for _ in range(2)]
                for task in tasks:
                    task.result(60)
                others = [pool.lane(other).submit(int) for other in Lane if other is not lane]
                others.append(pool.strand().submit(int))
                self.assertEqual(pool.lane(lane).submit(abs, -1).result(60), 1)
                self.assertFalse(any(other.done() for other in others))
                go.set()
                for other in others:
                    other.result(60)
                pool.shutdown(60)
                self.assertTrue(pool.audit().balances)

    def test_they_call_who_waits_for_room(self) -> None:
        for lane in Lane:
            with self.subTest(lane.name):
                pool = self.pool(1, reserve={lane: 1}, lane_capacity=2)
                self.hold(pool)
                entered, go = threading.Event(), threading.Event()
                self.addCleanup(go.set)
                way = pool.lane(lane)
                way.post(lambda entered=entered, go=go: (entered.set(), go.wait(60)))
                self.assertTrue(entered.wait(60))
                way.post_batch(int, "12")
                submitted: deque[Any] = deque()
                thread = threading.Thread(
                    target=lambda way=way, submitted=submitted: submitted.extend(
                        way.submit_batch(int, range(4))
                    ),
                    daemon=True,
                )
                thread.start()
                self.until(lambda pool=pool: pool._runner.waited_for)
                go.set()
                self.until(lambda submitted=submitted: [each.done() for each in submitted] == [True] * 4)

    def test_they_are_the_last_and_named(self) -> None:
        pool = self.pool(1, name="own", reserve={Lane.LOW: 1, Lane.CRITICAL: 2, Lane.HIGH: 0})
        self.until(lambda: len(pool.stats().threads) == 4)
        threads = pool.stats().threads
        self.assertEqual([each.name for each in threads], ["own_0", "own_1", "own_2", "own_3"])
        expected = [None, Lane.LOW, Lane.CRITICAL, Lane.CRITICAL]
        self.assertEqual([each.reserved for each in threads], expected)
        self.until(lambda: all(each.state == "waiting" for each in pool.stats().threads))
        go = self.hold(pool)
        name = pool.lane(Lane.LOW).submit(lambda: threading.current_thread().name).result(60)
        self.assertEqual(name, "own_1")
        self.until(lambda: pool.stats().threads[1].tasks == 1)
        go.set()

    def test_any_thread_runs_them(self) -> None:
        pool = self.pool(1, reserve={Lane.HIGH: 1})
        go, both = threading.Event(), threading.Barrier(3)
        tasks = pool.lane(Lane.HIGH).submit_batch(lambda _: (both.wait(60), go.wait(60)), "12")
        both.wait(60)
        go.set()
        for task in tasks:
            task.result(60)

    def test_they_handle_no_events_and_are_not_set_aside(self) -> None:
        started: list[int] = []
        pool = self.pool(2, reserve={Lane.LOW: 1}, on_thread_start=started.append)
        pool.set_active(1)
        with self.assertRaises(InvalidError):
            pool.set_active(3)
        go = self.hold(pool)
        fired = threading.Event()
        pool.after(0, fired.set)
        for _ in range(20):
            self.assertEqual(pool.lane(Lane.LOW).submit(abs, -1).result(60), 1)
        self.assertFalse(fired.is_set())
        go.set()
        self.assertTrue(fired.wait(60))
        self.assertEqual(sorted(started), [0, 1, 2])

    def test_the_end(self) -> None:
        for drain in (0, 60):
            pool = self.pool(1, reserve={lane: 1 for lane in Lane})
            go = self.hold(pool)
            entered = threading.Semaphore(0)
            for lane in Lane:
                pool.lane(lane).post(lambda entered=entered, go=go: (entered.release(), go.wait(60)))
            for _ in Lane:
                self.assertTrue(entered.acquire(timeout=60))
            left = [pool.lane(lane).submit(int) for lane in Lane]
            ends = threading.Thread(target=pool.shutdown, args=(drain,))
            ends.start()
            self.until(lambda pool=pool: pool._runner.closed is not None)
            if not drain:
                self.until(lambda left=left: all(each.done() for each in left))
            go.set()
            ends.join(60)
            pool.shutdown(60)
            self.assertEqual({each.cancelled() for each in left}, {not drain})
            self.assertEqual({each.state for each in pool.stats().threads}, {"ended"})
            self.assertTrue(pool.audit().balances)

    def test_what_many_submit_is_run(self) -> None:
        self.switch_often()
        pool = self.pool(1, reserve={lane: 1 for lane in Lane}, lane_capacity=8)
        ran = deque[None]()
        ways = [pool, *map(pool.lane, Lane), pool.strand()]

        def submit(way: Any) -> None:
            for _ in range(200):
                way.post(ran.append, None)

        threads = [threading.Thread(target=submit, args=(way,)) for way in ways]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertTrue(pool.shutdown(60).drained)
        self.assertEqual(len(ran), 200 * len(ways))
        self.assertTrue(pool.audit().balances)

    def test_settings(self) -> None:
        allowed = "allowed: threads by lane"
        for wrong in (1, "low", [(Lane.LOW, 1)]):
            with self.assertRaisesRegex(TypeError, f"reserve is .*; {allowed}"):
                Pool(1, reserve=wrong)  # type: ignore[arg-type]
        for key, value, told in (
            (4, 1, "a lane of reserve is 4; allowed: a Lane, or 0 to 3"),
            (0, 49, "reserve of CRITICAL is 49; allowed: 0 to 48"),
            (Lane.LOW, -1, "reserve of LOW is -1; allowed: 0 to 48"),
        ):
            with self.assertRaisesRegex(InvalidError, told):
                Pool(1, reserve={key: value})
        with self.assertRaisesRegex(InvalidError, "reserve is 1; allowed: 0 for a pool without threads"):
            Pool(0, reserve={Lane.LOW: 1})
        for wrong_key in ("low", 1.5, None):
            with self.assertRaises(TypeError):
                Pool(1, reserve={wrong_key: 1})  # type: ignore[dict-item]

        class Fails:
            def __index__(self) -> int:
                raise ZeroDivisionError

            __float__ = __index__  # type: ignore[assignment]

        for settings in (
            {"reserve": {Lane.LOW: Fails()}},
            {"ageing": Fails()},
            {"lane_capacity": Fails()},
        ):
            with self.assertRaises(ZeroDivisionError):
                Pool(1, **settings)  # type: ignore[arg-type]
        self.pool(0, reserve={Lane.LOW: 0})

    def test_ageing_settings(self) -> None:
        for wrong in (0, 0.0009, 3601, -1, float("-inf"), float("nan")):
            with self.assertRaisesRegex(InvalidError, "ageing is .*; allowed: 0.001 to 3600 seconds"):
                Pool(1, ageing=wrong)
        with self.assertRaisesRegex(TypeError, "ageing is '1'; allowed: seconds, or inf for never"):
            Pool(1, ageing="1")  # type: ignore[arg-type]
        for right in (0.001, 3600, math.inf):
            self.pool(ageing=right)


class Ageing(Case):
    def setUp(self) -> None:
        super().setUp()
        self.now = 1000.0
        patch = mock.patch("paceline._sources.monotonic", lambda: self.now)
        patch.start()
        self.addCleanup(patch.stop)

    def order(self, ageing: float, waits: float, looks: int = 2) -> list[str]:
        """What begins in which order: of LOW and NORMAL three tasks each that have waited for so long, and forty of
        CRITICAL that have just come."""
        order: list[str] = []
        with Pool(1, ageing=ageing) as pool:
            go, entered = threading.Event(), threading.Event()
            pool.strand().post(lambda: (entered.set(), go.wait(60)))
            self.assertTrue(entered.wait(60))
            for lane in (Lane.LOW, Lane.NORMAL):
                pool.lane(lane).post_batch(lambda _, name=lane.name: order.append(name), range(3))
            for _ in range(looks):
                with pool._lanes._lock:
                    pool._lanes._ageing.look(pool._lanes)
                self.now += waits
            pool.lane(Lane.CRITICAL).post_batch(lambda _: order.append("CRITICAL"), range(40))
            go.set()
        return order

    def places(self, order: list[str], *lanes: str) -> list[int]:
        return [place for place, name in enumerate(order) if name in lanes]

    def test_what_has_waited_is_every_fourth(self) -> None:
        order = self.order(ageing=5.0, waits=5.0)
        self.assertEqual(len(order), 46)
        self.assertEqual(self.places(order, "LOW", "NORMAL")[:4], [3, 7, 11, 15])
        self.assertEqual([order[place] for place in (3, 7, 11, 15)], ["NORMAL", "LOW"] * 2)

    def test_what_has_not_waited_for_so_long_is_not(self) -> None:
        plain = self.order(ageing=math.inf, waits=1e6)
        self.assertEqual(self.order(ageing=5.0, waits=1.0), plain)
        self.assertEqual(self.order(ageing=5.0, waits=5.0, looks=0), plain)
        self.assertEqual(self.places(plain, "LOW", "NORMAL")[0], 13)

    def test_what_came_since_the_last_look_has_not_aged(self) -> None:
        with Pool(1, ageing=5.0) as pool:
            go, entered = threading.Event(), threading.Event()
            pool.strand().post(lambda: (entered.set(), go.wait(60)))
            self.assertTrue(entered.wait(60))
            ageing, lock = pool._lanes._ageing, pool._lanes._lock
            for expected in ([], []):
                with lock:
                    ageing.look(pool._lanes)
                self.assertEqual(ageing.aged, expected)
                pool.lane(Lane.HIGH).post(int)
                self.now += 5
            with lock:
                ageing.look(pool._lanes)
            self.assertEqual(ageing.aged, [Lane.HIGH])
            self.assertEqual(pool.stats().queued, 2)
            go.set()
        with lock:
            self.now += 5
            ageing.look(pool._lanes)
        self.assertEqual(ageing.aged, [])

    def test_bounds(self) -> None:
        """Every lane is full for ever: which lane each of many picks is of, as the native pool has it."""

        def picks(*aged: Lane) -> list[Lane]:
            turns, found = Turns(), []
            for _ in range(1024):
                lines = tuple(
                    Line(deque([((), lane, (), {})] * 2), 2, "", "lane_capacity") for lane in Lane
                )
                found.append(turns.take(lines, aged)[1])
            return found

        def longest(lanes: list[Any], lane: Lane) -> int:
            return max(map(len, "".join(str(int(each)) for each in lanes).split(str(int(lane)))))

        self.assertLessEqual(longest(picks(), Lane.LOW), 16)
        low = picks(Lane.LOW)
        self.assertEqual(longest(low, Lane.LOW), 3)
        self.assertGreaterEqual(low.count(Lane.CRITICAL), 1024 * 3 // 8)
        every = picks(Lane.LOW, Lane.NORMAL, Lane.HIGH)
        for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH):
            self.assertLess(longest(every, lane), 16)


if __name__ == "__main__":
    unittest.main()
