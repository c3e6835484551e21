"""The options of a Pool: where its threads run, how they wait, what is called at their start and end."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
import unittest
from typing import Any
from unittest import mock

import paceline
from paceline import InvalidError, OsError, Pool
from paceline._placement import planned
from support import Case

CPUS = sorted(os.sched_getaffinity(0))


class Leaves(BaseException):
    """Neither an Exception nor known."""


class Placement(Case):
    def test_threads_run_where_they_are_pinned(self) -> None:
        for pin in ("compact", "spread", CPUS, ",".join(map(str, CPUS))):
            with self.subTest(pin=pin), Pool(len(CPUS), pin=pin, pin_strict=True) as pool:
                threads = pool.stats().threads
                pinned = [os.sched_getaffinity(thread.native_id) for thread in threads]
                self.assertTrue(all(len(cpus) == 1 for cpus in pinned), pinned)
                self.assertEqual(set().union(*pinned), set(CPUS))
                self.assertEqual([{thread.cpu} for thread in threads], pinned)
        self.assertEqual(sorted(os.sched_getaffinity(0)), CPUS, "the caller's thread is pinned")

    def test_more_threads_than_cpus_go_round_again(self) -> None:
        with Pool(3, pin=[CPUS[0]], pin_strict=True) as pool:
            self.assertEqual([thread.cpu for thread in pool.stats().threads], [CPUS[0]] * 3)

    def test_without_pinning_threads_may_run_anywhere(self) -> None:
        with Pool(1) as pool:
            self.assertEqual(sorted(pool.submit(os.sched_getaffinity, 0).result()), CPUS)
            self.assertIsNone(pool.stats().threads[0].cpu)

    def test_a_refusal_is_told_or_raised(self) -> None:
        refuses = mock.Mock(side_effect=PermissionError(1, "refused"))
        with mock.patch("os.sched_setaffinity", refuses):
            with Pool(2, pin="compact") as pool:
                self.assertEqual(pool.submit(lambda: 1).result(), 1)
                for thread in pool.stats().threads:
                    self.assertEqual((thread.cpu, thread.pin_failed), (None, True))
            before = threading.active_count()
            with self.assertRaises(OsError) as raised:
                Pool(2, pin="compact", pin_strict=True)
            self.assertEqual(raised.exception.errno, 1)
            self.assertIn("pin_strict", str(raised.exception))
        self.until(lambda: threading.active_count() <= before)

    def test_what_is_no_placement(self) -> None:
        for pin in ("", "close", "0-", "-1", "1;2", "999999999999", [], [-1], [1 << 40], "0,9999"):
            with self.subTest(pin=pin), self.assertRaisesRegex(InvalidError, "pin is"):
                Pool(1, pin=pin)
        for wrong in (3, [1.5], ["0"], b"0"):
            with self.subTest(pin=wrong), self.assertRaises(TypeError):
                Pool(1, pin=wrong)  # type: ignore[arg-type]

    def test_the_order_of_cpus(self) -> None:
        """Two packages, each with two caches of two cores, each of two CPUs: cpu = sibling, package, cache, core."""

        def told(name: str) -> str:
            if name == "online":
                return "0-15"
            cpu = int(name.split("/")[0][3:])
            package, cache, core = cpu >> 2 & 1, cpu >> 1 & 1, cpu & 1
            return {
                "physical_package_id": str(package),
                "core_id": str(cache << 1 | core),
                "shared_cpu_list": f"{package}.{cache}",
            }[name.rsplit("/", 1)[1]]

        with (
            mock.patch("paceline._placement._read", told),
            mock.patch("os.sched_getaffinity", lambda _: set(range(16))),
        ):
            self.assertEqual(planned("compact"), list(range(16)))
            self.assertEqual(planned("spread")[:8], [0, 4, 2, 6, 1, 5, 3, 7])
            self.assertEqual(planned("3, 5-7"), [3, 5, 6, 7])


class Waiting(Case):
    def test_a_pool_without_descriptors(self) -> None:
        with Pool(2, source="ring") as pool:
            over = threading.Event()
            pool.after(0.001, over.set)
            self.assertEqual(pool.submit(lambda: 1).result(60), 1)
            self.assertTrue(over.wait(60))
            with socket.socket() as some, self.assertRaisesRegex(OsError, "no descriptors"):
                pool.register(some, lambda *_: None)

    def test_eager_promotion(self) -> None:
        """With a watch that never comes, what waits behind a handler that blocks is others'."""
        pairs = [socket.socketpair() for _ in range(4)]
        meeting = threading.Barrier(4)
        met: list[None] = []

        def handler(ours: socket.socket, _: paceline.Ready) -> None:
            ours.recv(1)
            meeting.wait(60)
            met.append(None)

        with Pool(4, promotion="eager") as pool:
            pool._runner.patience = 10**15
            begun, busy = threading.Barrier(5), threading.Barrier(5)
            for _ in range(4):
                pool.post(lambda: (begun.wait(60), busy.wait(60)))
            begun.wait(60)
            for ours, theirs in pairs:
                pool.register(ours, handler)
                theirs.send(b"x")
            # All events are there before anybody asks for them.
            busy.wait(60)
            self.until(lambda: len(met) == 4)
        for each in pairs:
            for end in each:
                end.close()

    def test_a_spinning_thread_uses_its_cpu(self) -> None:
        with Pool(1, spin=0.1) as pool:
            clock = time.pthread_getcpuclockid(pool.submit(threading.get_ident).result())
            # Each time it has nothing to do it spins anew; without that it uses much less, on a busy machine, too.
            for _ in range(200):
                pool.submit(int).result(60)
                time.sleep(0.02)
                if time.clock_gettime(clock) > 0.1:
                    return
            self.fail("it does not spin")

    def test_the_watch_period_is_the_patience(self) -> None:
        with Pool(1, watch_period=0.5) as pool:
            self.assertEqual(pool._runner.patience, 500_000_000)
        for period in (0.000001, 2):
            with self.assertRaisesRegex(InvalidError, "watch_period is"):
                Pool(1, watch_period=period)

    def test_what_is_no_way_of_waiting(self) -> None:
        for name, value in (
            ("source", "poll"),
            ("promotion", "late"),
            ("spin", -1),
            ("spin", 0.2),
            ("max_turn", 2),
        ):
            settings: dict[str, Any] = {name: value}
            with self.subTest(settings), self.assertRaisesRegex(InvalidError, f"{name} is"):
                Pool(1, **settings)


class Hooks(Case):
    def test_each_thread_calls_them_first_and_last(self) -> None:
        told: list[tuple[str, int, int]] = []

        def hook(what: str) -> Any:
            return lambda number: told.append((what, number, threading.get_ident()))

        with Pool(3, on_thread_start=hook("start"), on_thread_end=hook("end")) as pool:
            barrier = threading.Barrier(3)
            for _ in range(3):
                pool.post(lambda: (barrier.wait(60), hook("task")(-1)))
        self.assertEqual(len(told), 9)
        for ident in {ident for _, _, ident in told}:
            own = [(what, number) for what, number, each in told if each == ident]
            self.assertEqual([what for what, _ in own], ["start", "task", "end"])
            self.assertEqual(own[0][1], own[2][1])
        self.assertEqual(sorted(number for what, number, _ in told if what == "end"), [0, 1, 2])

    def test_what_they_raise_ends_no_thread(self) -> None:
        raised: list[BaseException] = []

        def leaves(number: int) -> None:
            raise Leaves(number)

        with Pool(2, on_unhandled=raised.append, on_thread_start=leaves, on_thread_end=leaves) as pool:
            self.assertEqual(pool.submit(lambda: 1).result(60), 1)
        self.until(lambda: len(raised) == 4)
        self.assertEqual({type(each) for each in raised}, {Leaves})

    def test_they_are_inside_of_the_pool(self) -> None:
        made = threading.Event()
        reports: list[Any] = []

        def ends_it(_: int) -> None:
            made.wait(60)
            reports.append(pool.shutdown())
            with self.assertRaises(paceline.DeadlockError):
                pool.join()
            reports.append(None)

        pool = Pool(1, on_thread_start=ends_it)
        made.set()
        self.until(lambda: len(reports) == 2)
        self.assertTrue(reports[0].requested)
        self.until(lambda: not any(thread.is_alive() for thread in pool._runner.threads))


class Active(Case):
    def states(self, pool: Pool) -> list[str]:
        return [thread.state for thread in pool.stats().threads]

    def test_fewer_threads_work_for_a_while(self) -> None:
        with Pool(4) as pool:
            pool.set_active(2)
            self.until(lambda: self.states(pool)[2:] == ["set aside"] * 2)
            for _ in range(200):
                names = {each.result(60) for each in pool.submit_batch(_name, range(20))}
                self.assertLessEqual(names, {"paceline_0", "paceline_1"})
            pool.set_active(4)
            meeting = threading.Barrier(4)
            for each in pool.submit_batch(meeting.wait, [60] * 4):
                each.result(60)
            self.assertNotIn("set aside", self.states(pool))

    def test_those_that_are_busy_are_set_aside_later(self) -> None:
        with Pool(3) as pool:
            go, begun = threading.Event(), threading.Barrier(4)
            for _ in range(3):
                pool.post(lambda: (begun.wait(60), go.wait(60)))
            begun.wait(60)
            pool.set_active(1)
            futures = pool.submit_batch(_name, range(100))
            go.set()
            for each in futures:
                each.result(60)
            self.until(lambda: self.states(pool)[1:] == ["set aside"] * 2)
            self.assertEqual(pool.submit(_name, 0).result(60), "paceline_0")

    def test_the_end_calls_them_back(self) -> None:
        for drain in (0, None):
            pool = Pool(4)
            pool.set_active(1)
            self.until(lambda: self.states(pool)[1:] == ["set aside"] * 3)
            self.assertEqual(pool.shutdown(drain).stuck, 0)
            self.until(lambda: self.states(pool) == ["ended"] * 4)

    def test_changes_beside_work(self) -> None:
        self.switch_often()
        with Pool(4) as pool:
            futures = []
            for turn in range(300):
                pool.set_active(1 + turn % 4)
                futures += pool.submit_batch(_name, range(10))
            for each in futures:
                each.result(60)
        self.assertTrue(pool.audit().balances)

    def test_what_is_no_number_of_threads(self) -> None:
        with Pool(2) as pool:
            for wrong in (0, 3, -1):
                with self.assertRaisesRegex(InvalidError, "threads is"):
                    pool.set_active(wrong)
        with self.assertRaises(paceline.ShutDownError):
            pool.set_active(1)
        with Pool(0) as none, self.assertRaises(InvalidError):
            none.set_active(1)


class Settings(Case):
    def file(self, text: str, ending: str = ".json") -> str:
        with tempfile.NamedTemporaryFile("w", suffix=ending, delete=False) as file:
            file.write(text)
        self.addCleanup(os.unlink, file.name)
        return file.name

    def variables(self, **variables: str) -> None:
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_from_a_file(self) -> None:
        text = """{"pool": {"threads": 3, "name": "filed", "pin": "%d", "pin_strict": true, "promotion": "eager",
            "watch_period": "5ms", "source": "ring", "max_joined": 2, "leaders": 1, "spin": "1us", "max_turn": "2ms",
            "lane_capacity": 16, "strand_capacity": 4}}"""
        with Pool(settings=self.file(text % CPUS[0])) as pool:
            threads = pool.stats().threads
            self.assertEqual([each.name for each in threads], ["filed_0", "filed_1", "filed_2"])
            self.assertEqual({each.cpu for each in threads}, {CPUS[0]})
            self.assertTrue(pool._runner.eager)
            self.assertEqual(pool._runner.patience, 5_000_000)
            self.assertEqual((pool._runner.lane_capacity, pool._runner.strand_capacity), (16, 4))
            self.assertEqual(pool._runner.native.stats().threads, 5)
            with socket.socket() as some, self.assertRaisesRegex(OsError, "no descriptors"):
                pool.register(some, lambda *_: None)

    def test_what_code_gives_wins_over_the_environment_and_that_over_the_file(self) -> None:
        file = self.file("pool:\n  threads: 3\n  name: filed\n  max_joined: 2\n", ".yaml")
        self.variables(PACELINE_POOL_NAME="said", PACELINE_POOL_THREADS="2")
        for given, expected in (
            ({}, ["filed_0", "filed_1", "filed_2"]),
            ({"environment": True}, ["said_0", "said_1"]),
            ({"environment": True, "threads": 1, "name": "own"}, ["own_0"]),
        ):
            options: dict[str, Any] = given
            with Pool(settings=file, **options) as pool:
                self.assertEqual([each.name for each in pool.stats().threads], expected)
                self.assertEqual(pool._runner.native.stats().threads, len(expected) + 2)

    def test_what_is_wrong_is_told(self) -> None:
        with self.assertRaises(InvalidError) as raised:
            Pool(settings=self.file('{"pool": {"threads": -3, "pinn": 1}}'))
        self.assertIn("pool.threads", str(raised.exception))
        self.assertIn("pool.pinn", str(raised.exception))
        with self.assertRaises(InvalidError):
            Pool(settings="/nowhere/at/all.json")
        with self.assertRaises(TypeError):
            Pool(settings=3)  # type: ignore[arg-type]

    def test_what_a_pool_of_python_cannot_have(self) -> None:
        for name, value in (
            ("leaders", "2"),
            ("stack_size", "65536"),
        ):
            text = f'{{"pool": {{"threads": 4, "{name}": {value}}}}}'
            with (
                self.subTest(name),
                self.assertRaisesRegex(InvalidError, f"pool.{name} is {value}; allowed"),
            ):
                Pool(settings=self.file(text))


class Statistics(Case):
    def test_threads_are_named_with_what_they_do(self) -> None:
        with Pool(2, name="own") as pool:
            go, begun = threading.Event(), threading.Event()
            blocked = pool.submit(lambda: (begun.set(), go.wait(60), _name(0)))
            self.assertTrue(begun.wait(60))
            self.until(lambda: sorted(t.state for t in pool.stats().threads) == ["running", "waiting"])
            running = next(t for t in pool.stats().threads if t.state == "running")
            go.set()
            self.assertEqual(blocked.result(60)[2], running.name)
            self.until(lambda: [t.state for t in pool.stats().threads] == ["waiting"] * 2)
            self.assertEqual([t.name for t in pool.stats().threads], ["own_0", "own_1"])
            self.assertEqual(sum(t.tasks for t in pool.stats().threads), 1)
            pool.after(0, int)
            self.until(lambda: sum(t.events for t in pool.stats().threads) == 1)
            ids = {each.native_id for each in threading.enumerate()}
            self.assertLessEqual({t.native_id for t in pool.stats().threads}, ids)
        ended = pool.stats()
        self.assertEqual([t.state for t in ended.threads], ["ended"] * 2)
        self.assertEqual(sum(t.events for t in ended.threads), 1)

    def test_what_a_thread_has_led_is_its_own(self) -> None:
        with Pool(3) as pool, Pool(2) as other:
            for each in (pool, other):
                ids = {thread.native_id for thread in each.stats().threads}
                self.until(lambda each=each: each.stats().sets[0].leader)
                self.assertIn(each.stats().sets[0].leader, ids)
            before = pool.stats().threads
            go, begun = threading.Event(), threading.Event()
            held = pool.submit(lambda: (begun.set(), go.wait(60), threading.get_native_id())[2])
            self.assertTrue(begun.wait(60))
            for _ in range(50):
                # Each of these is led to by a thread that is not held.
                fired = threading.Event()
                pool.after(0, fired.set)
                self.assertTrue(fired.wait(60))
                pool.join(0)
            go.set()
            native_id = held.result(60)
            led = {
                now.native_id: now.terms - then.terms for now, then in zip(pool.stats().threads, before)
            }
            self.assertLessEqual(led.pop(native_id), 2)
            self.assertGreater(sum(led.values()), 2)
        for now, then in zip(pool.stats().threads, before):
            self.assertGreaterEqual(now.terms, then.terms)
            self.assertGreaterEqual(now.parked, then.parked)

    def test_utilisation_is_the_share_of_time_that_is_not_waited(self) -> None:
        with Pool(1) as pool:
            go = threading.Event()
            pool.post(go.wait, 60)
            # The longer it runs, the nearer to 1; then, the longer it waits, the nearer to 0.
            self.until(lambda: pool.stats().threads[0].utilisation > 0.9)
            go.set()
            self.until(lambda: pool.stats().threads[0].utilisation < 0.5)


def _name(_: object) -> str:
    return threading.current_thread().name


class Figures(Case):
    def test_figures_without_a_worker_pool(self) -> None:
        with paceline.Pool(2, name="figured") as pool:
            with self.assertRaises(OSError):
                pool.add_disk("/nowhere/at/all")
            self.assertNotIn("system_disk", pool.metrics())
            pool.add_disk("/tmp")
            text = pool.metrics("openmetrics")
            self.assertIn('system_disk_free_bytes{path="/tmp"}', text)
            self.assertIn('pool="figured"', text)
            self.assertIn("process_resident_memory_bytes", text)
            self.assertIsInstance(json.loads(pool.metrics("json")), dict)
            with self.assertRaises(paceline.InvalidError):
                pool.metrics("hub")
            workers = paceline.WorkerPool(pool, metrics=True)
            self.assertIn('system_disk_total_bytes{path="/tmp"}', workers.metrics())


if __name__ == "__main__":
    unittest.main()
