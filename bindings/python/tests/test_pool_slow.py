"""Handlers and tasks that take too long, and who is told of them."""

from __future__ import annotations

import functools
import os
import threading
import time
import unittest
from typing import Any

import paceline
from paceline import InvalidError, Lane, Pool, SlowReport
from support import Case

LIMIT = 0.005


class Slow(Case):
    def setUp(self) -> None:
        super().setUp()
        self.told: list[SlowReport] = []
        self.heard = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def hear(self, report: SlowReport) -> None:
        self.told.append(report)
        self.heard.release()

    def pool(self, threads: int, **settings: Any) -> Pool:
        pool = Pool(threads, on_slow=self.hear, slow_limit=LIMIT, **settings)
        self.addCleanup(pool.shutdown)
        return pool

    def until_told(self, *_: object) -> None:
        """Runs until a thread has told of it."""
        self.assertTrue(self.heard.acquire(timeout=60))
        self.ended.release()

    def takes_long(self, *_: object) -> None:
        time.sleep(2 * LIMIT)

    def check(self, name: str, running: bool) -> None:
        self.until(lambda: self.told)
        report = self.told.pop()
        self.assertEqual((report.name, report.running, self.told), (name, running, []))
        self.assertTrue(not running or self.ended.acquire(timeout=60))
        self.assertGreater(report.elapsed, LIMIT)
        self.assertTrue(report.thread.startswith("paceline_"), report.thread)

    def test_a_thread_that_is_free_tells_of_what_runs(self) -> None:
        pool = self.pool(2)
        name = "Slow.until_told"
        for way in (pool, *map(pool.lane, Lane), pool.strand()):
            way.submit(self.until_told).result(60)
            self.check(name, True)
            way.post(self.until_told, 1)
            self.check(name, True)
        pool.after(0, self.until_told)
        self.check(name, True)
        ticks = pool.every(0.001, lambda: (self.until_told(), paceline.Flow.DONE)[1])
        self.until(lambda: ticks.closed)
        self.check("Slow.test_a_thread_that_is_free_tells_of_what_runs.<locals>.<lambda>", True)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        os.write(writer, b"x")

        def read(fd: int, _: paceline.Ready) -> paceline.Flow:
            self.until_told()
            return paceline.Flow.DONE

        pool.register(reader, read)
        self.check("Slow.test_a_thread_that_is_free_tells_of_what_runs.<locals>.read", True)
        with paceline.Ring(pool, self.until_told) as ring:
            ring.publish(b"x")
        self.check(name, True)
        self.assertTrue(pool.shutdown(60).drained)
        self.assertEqual(self.told, [])

    def test_without_one_the_thread_tells_itself(self) -> None:
        pool = self.pool(1)
        pool.submit(self.takes_long).result(60)
        pool.submit(int).result(60)
        self.check("Slow.takes_long", False)
        with self.assertRaises(ZeroDivisionError):
            pool.submit(lambda: (self.takes_long(), 1 // 0)).result(60)
        self.assertEqual(len(self.told), 1)
        for what, name in ((functools.partial(self.takes_long), "partial"), (Odd(), "Odd")):
            self.told.clear()
            pool.submit(what).result(60)
            pool.submit(int).result(60)
            self.check(name, False)

    def test_what_is_quick_is_not_told(self) -> None:
        pool = Pool(2, on_slow=self.told.append, slow_limit=86_400)
        pool.submit(self.takes_long).result(60)
        pool.submit_batch(int, range(1000))
        pool.submit(dict, function=1, named_for=2, self=3).result(60)
        pool.shutdown(60)
        self.assertEqual(self.told, [])
        self.assertEqual(pool._runner.slow.runs, set())

    def test_each_that_runs_beside_others_is_told_once(self) -> None:
        pool = self.pool(4, reserve={Lane.LOW: 1})
        go = threading.Event()
        tasks = [pool.submit(go.wait, 60) for _ in range(3)]
        tasks.append(pool.lane(Lane.LOW).submit(go.wait, 60))
        self.until(lambda: len(self.told) == 4)
        go.set()
        for task in tasks:
            task.result(60)
        pool.shutdown(60)
        self.assertEqual({report.name for report in self.told}, {"Event.wait"})
        self.assertEqual(len({report.thread for report in self.told}), 4)
        self.assertEqual(len(self.told), 4)

    def test_a_host(self) -> None:
        pool = self.pool(0)
        pool.post(self.takes_long)
        self.assertEqual(pool.join(60), 1)
        report = self.told.pop()
        self.assertEqual((report.thread, report.running), (threading.current_thread().name, False))

    def test_a_hook_may_use_the_pool(self) -> None:
        done = threading.Semaphore(0)
        pool = Pool(2, on_slow=lambda _: pool.post(done.release), slow_limit=LIMIT)
        for _ in range(3):
            pool.submit(self.takes_long).result(60)
        for _ in range(3):
            self.assertTrue(done.acquire(timeout=60))
        pool.shutdown(60)

    def test_settings(self) -> None:
        for missing, given in (("slow_limit", {"on_slow": print}), ("on_slow", {"slow_limit": 1})):
            settings: dict[str, Any] = given
            with self.assertRaisesRegex(TypeError, f"{missing} is None; allowed: .* as there is a"):
                Pool(1, **settings)
        for wrong in (0, 9e-6, 86_401, -1, float("inf"), float("nan")):
            with self.assertRaisesRegex(
                InvalidError, "slow_limit is .*; allowed: 1e-05 to 86400 seconds"
            ):
                Pool(1, on_slow=print, slow_limit=wrong)
        with self.assertRaisesRegex(TypeError, "on_slow is 1; allowed: something to call"):
            Pool(1, on_slow=1, slow_limit=1)  # type: ignore[arg-type]


class OddType(type):
    """Has no answer for any name."""

    def __getattribute__(cls, name: str) -> Any:
        raise SystemExit


class Odd(metaclass=OddType):
    """Has an answer for every name."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit

    def __call__(self) -> None:
        time.sleep(2 * LIMIT)


if __name__ == "__main__":
    unittest.main()
