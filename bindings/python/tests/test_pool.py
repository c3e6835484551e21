"""Pools: handlers one at a time, none stuck behind a slow one, every refusal typed, books balanced."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import select
import socket
import threading
import time
import unittest
import weakref
from typing import Any

import paceline
from paceline import Flow
from support import Case, run


_opened: list[socket.socket] = []


def tearDownModule() -> None:
    while _opened:
        _opened.pop().close()


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    _opened.extend((ours, theirs))
    ours.setblocking(False)
    theirs.settimeout(30)
    return ours, theirs


def echo(connection: socket.socket, _: paceline.Ready) -> Any:
    data = connection.recv(4096)
    if not data:
        connection.close()
        return Flow.DONE
    connection.sendall(data)
    return None


class Events(Case):
    def test_an_echo(self) -> None:
        with paceline.Pool(2) as pool:
            connections = [pair() for _ in range(20)]
            for ours, _ in connections:
                pool.register(ours, echo)
            for _ in range(20):
                for _, theirs in connections:
                    theirs.sendall(b"hello")
                for _, theirs in connections:
                    self.assertEqual(theirs.recv(100), b"hello")
            for _, theirs in connections:
                theirs.close()
            self.until(lambda: pool.stats().handles == 0)
            self.assertEqual(pool._runner.entries, {})

    def test_edge_triggered(self) -> None:
        ours, theirs = pair()
        got: list[bytes] = []

        def read(connection: socket.socket, _: paceline.Ready) -> Any:
            try:
                got.append(connection.recv(1))
            except BlockingIOError:
                return Flow.WAIT
            return Flow.AGAIN

        with paceline.Pool(2) as pool, pool.register(ours, read, level=False):
            theirs.sendall(b"abc")
            self.until(lambda: b"".join(got) == b"abc")
            theirs.sendall(b"def")
            self.until(lambda: b"".join(got) == b"abcdef")

    def test_one_call_at_a_time(self) -> None:
        ours, theirs = pair()
        inside = []
        most = []

        def slow(connection: socket.socket, _: paceline.Ready) -> None:
            inside.append(None)
            most.append(len(inside))
            connection.recv(1)
            time.sleep(0.001)
            inside.pop()

        with paceline.Pool(4) as pool, pool.register(ours, slow):
            theirs.sendall(b"x" * 50)
            self.until(lambda: len(most) == 50)
        self.assertEqual(max(most), 1)

    def test_pause_and_resume(self) -> None:
        ours, theirs = pair()
        got: list[bytes] = []

        def read(connection: socket.socket, _: paceline.Ready) -> Flow:
            got.append(connection.recv(100))
            return Flow.PAUSE

        with paceline.Pool(2) as pool:
            handle = pool.register(ours, read, paused=True)
            theirs.sendall(b"1")
            time.sleep(0.02)
            self.assertEqual(got, [])
            handle.resume()
            self.until(lambda: got == [b"1"])
            theirs.sendall(b"2")
            time.sleep(0.02)
            self.assertEqual(got, [b"1"])
            handle.resume()
            self.until(lambda: got == [b"1", b"2"])
            handle.close()
            for call in (handle.pause, handle.resume):
                with self.assertRaises(paceline.StaleError):
                    call()

    def test_a_paused_handle_is_silent_when_its_peer_goes(self) -> None:
        """Goal: a hang-up is kept in a pause of a level-triggered handle, and told once after it. Method: paused
        at registration, by ``pause``, and by its own answer."""
        for paused, answer in ((True, None), (False, None), (False, Flow.PAUSE)):
            ours, theirs = pair()
            calls = 0

            def read(connection: socket.socket, _: paceline.Ready) -> paceline.Flow | None:
                nonlocal calls
                calls += 1
                return Flow.DONE if connection.recv(100) == b"" else answer

            with paceline.Pool(2) as pool:
                handle = pool.register(ours, read, paused=paused)
                if not paused:
                    theirs.sendall(b"1")
                    self.until(lambda: calls == 1)
                    if answer is None:
                        handle.pause()
                before = calls
                theirs.close()
                time.sleep(0.02)
                self.assertEqual(calls, before)
                handle.resume()
                self.until(lambda: calls == before + 1)

    def test_nothing_is_stuck_behind_a_slow_handler(self) -> None:
        """Goal: with one handler asleep, all others' events of the same batch are handled meanwhile.
        Method: many sockets become ready while the only free thread is kept busy, so that they come
        in one batch; the handler that comes first waits until all others have run."""
        connections = [pair() for _ in range(8)]
        others = threading.Semaphore(0)
        first = threading.Lock()
        released = []

        def handler(connection: socket.socket, _: paceline.Ready) -> None:
            connection.recv(1)
            if first.acquire(blocking=False):
                released.append(all(others.acquire(timeout=20) for _ in range(7)))
            else:
                others.release()

        with paceline.Pool(2) as pool:
            gate = threading.Event()
            busy = [pool.submit(gate.wait) for _ in range(2)]
            for ours, _ in connections:
                pool.register(ours, handler)
            for _, theirs in connections:
                theirs.sendall(b"x")
            gate.set()
            for future in busy:
                future.result()
            self.until(lambda: released)
        self.assertEqual(released, [True])

    def test_promotion_and_may_block(self) -> None:
        """As above, with the handlers saying so: without waiting for anybody's patience to end."""
        for says, options in ((True, {}), (False, {"may_block": True})):
            connections = [pair() for _ in range(4)]
            meeting = threading.Barrier(4)
            met = []

            def handler(connection: socket.socket, _: paceline.Ready) -> None:
                connection.recv(1)
                if says:
                    paceline.promote_new_leader()
                meeting.wait(20)
                met.append(None)

            with paceline.Pool(4) as pool:
                for ours, _ in connections:
                    pool.register(ours, handler, **options)
                for _, theirs in connections:
                    theirs.sendall(b"x")
                self.until(lambda: len(met) == 4)

    def test_a_handler_that_raises(self) -> None:
        raised: list[BaseException] = []
        ours, theirs = pair()

        def broken(*_: object) -> None:
            raise KeyError("broken")

        with paceline.Pool(2, on_unhandled=raised.append) as pool:
            handle = pool.register(ours, broken)
            theirs.sendall(b"x")
            self.until(lambda: pool.stats().handles == 0)
            self.assertTrue(handle.closed)
            ticks = pool.every(0.001, broken)
            self.until(lambda: ticks.closed)
            pool.after(0, broken)
            pool.post(broken)
            self.until(lambda: pool.stats().unhandled == 4)
            self.assertEqual([type(each) for each in raised].count(KeyError), 4)
            self.assertEqual(pool.submit(abs, -1).result(), 1)

    def test_a_hook_that_raises(self) -> None:
        seen: list[Any] = []
        before, threading.excepthook = threading.excepthook, seen.append
        self.addCleanup(setattr, threading, "excepthook", before)

        def hook(_: BaseException) -> None:
            raise ValueError("the hook")

        with paceline.Pool(1, on_unhandled=hook) as pool:
            pool.post(lambda: 1 / 0)
        with paceline.Pool(1) as pool:
            pool.post(lambda: 1 / 0)
        self.assertEqual([each.exc_type for each in seen], [ValueError, ZeroDivisionError])

    def test_a_hook_that_is_false(self) -> None:
        class Kept(list):  # type: ignore[type-arg]
            __call__ = list.append

        kept = Kept()
        with paceline.Pool(1, on_unhandled=kept) as pool:
            pool.post(lambda: 1 / 0)
        self.assertEqual([type(each) for each in kept], [ZeroDivisionError])


class Closing(Case):
    def test_closing_waits_for_the_handler(self) -> None:
        ours, theirs = pair()
        running = threading.Event()
        over = []

        def slow(*_: object) -> None:
            running.set()
            time.sleep(0.05)
            over.append(None)

        with paceline.Pool(2) as pool:
            handle = pool.register(ours, slow)
            theirs.sendall(b"x")
            running.wait()
            self.assertTrue(handle.close())
            calls = len(over)
            self.assertEqual(calls, 1)
            self.assertTrue(handle.close())
            self.until(lambda: pool.stats().handles == 0)
            self.assertEqual(len(over), calls)

    def test_closing_inside_handlers(self) -> None:
        """Two handlers that close each other, and one that closes itself, do not wait."""
        with paceline.Pool(3) as pool:
            meeting = threading.Barrier(2)
            answers: list[bool] = []
            handles: list[paceline.Handle] = []
            pairs = [pair() for _ in range(3)]

            def closes(other: int) -> Any:
                def handler(*_: object) -> None:
                    meeting.wait(20)
                    answers.append(handles[other].close())
                    meeting.wait(20)

                return handler

            handles.append(pool.register(pairs[0][0], closes(1), may_block=True))
            handles.append(pool.register(pairs[1][0], closes(0), may_block=True))
            for _, theirs in pairs[:2]:
                theirs.sendall(b"x")
            self.until(lambda: len(answers) == 2)
            self.assertEqual(answers, [False, False])

            own: list[bool] = []
            lasting = pool.register(pairs[2][0], lambda *_: own.append(lasting.close()))
            pairs[2][1].sendall(b"x")
            self.until(lambda: own)
            self.assertEqual(own, [True])
            self.until(lambda: pool.stats().handles == 0)

    def test_a_closed_socket_and_a_new_one_with_its_number(self) -> None:
        raised: list[BaseException] = []
        with paceline.Pool(2, on_unhandled=raised.append) as pool:
            for _ in range(50):
                ours, theirs = pair()
                handle = pool.register(ours, echo)
                ours.close()
                again, _ = pair()
                with pool.register(again, echo):
                    theirs.sendall(b"x")
                    handle.close()
                again.close()
                theirs.close()
            self.until(lambda: pool.stats().handles == 0)
        # A handler may have met its closed socket, and nothing else.
        self.assertEqual({type(each) for each in raised} - {OSError}, set())

    def test_what_cannot_be_registered(self) -> None:
        with paceline.Pool(1) as pool:
            with open(__file__) as file, self.assertRaises(OSError) as told:
                pool.register(file, echo)
            self.assertIsInstance(told.exception, paceline.Error)
            self.assertTrue(told.exception.errno)
            with self.assertRaises(OSError):
                pool.register(987654, echo)
            blocking, _ = pair()
            blocking.setblocking(True)
            with self.assertRaises(ValueError):
                pool.register(blocking, echo, level=False)
            with self.assertRaises(TypeError):
                pool.register(blocking, None)  # type: ignore[arg-type]
            self.assertEqual(pool._runner.entries, {})
        with self.assertRaises(paceline.ShutDownError):
            pool.register(blocking, echo)

    def test_max_handles(self) -> None:
        with paceline.Pool(1, max_handles=1) as pool:
            timers = []
            with self.assertRaises(paceline.Full):
                # Natively it is rounded up.
                for _ in range(5000):
                    timers.append(pool.after(1000, print))
            self.assertEqual(len(pool._runner.entries), len(timers))


class Timers(Case):
    def test_once_and_periodic(self) -> None:
        seen: list[Any] = []
        with paceline.Pool(2) as pool:
            timer = pool.after(0.002, seen.append, "once")
            start = time.monotonic()
            self.until(lambda: seen == ["once"])
            self.assertGreaterEqual(time.monotonic() - start, 0.001)
            self.assertFalse(timer.cancel())
            self.assertFalse(timer.postpone(1))

            counted = iter(range(3))
            ticks = pool.every(0.001, lambda: Flow.WAIT if next(counted) < 2 else Flow.DONE)
            self.until(lambda: ticks.closed)
            self.assertEqual(next(counted, None), None)

    def test_cancel_and_postpone(self) -> None:
        seen: list[Any] = []
        with paceline.Pool(2) as pool:
            cancelled = pool.after(1000, seen.append, "never")
            self.assertTrue(cancelled.cancel())
            self.assertFalse(cancelled.cancel())
            later = pool.after(0.01, seen.append, "later")
            self.assertTrue(later.postpone(0.05))
            start = time.monotonic()
            self.until(lambda: seen == ["later"])
            self.assertGreaterEqual(time.monotonic() - start, 0.04)
            self.assertEqual(pool._runner.entries, {})

    def test_bounds(self) -> None:
        with paceline.Pool(1) as pool:
            for wrong in (-1.0, float("nan"), float("inf"), 1e18):
                with self.assertRaises(ValueError):
                    pool.after(wrong, print)
                with self.assertRaises(ValueError):
                    pool.every(wrong, print)
            with self.assertRaises(ValueError):
                pool.every(0, print)


class Tasks(Case):
    def test_tasks(self) -> None:
        done: list[int] = []
        with paceline.Pool(3) as pool:
            self.assertEqual(pool.submit(divmod, 7, 2).result(), (3, 1))
            futures = pool.submit_batch(pow, range(100), [2] * 100)
            self.assertEqual([each.result() for each in futures], [n * n for n in range(100)])
            pool.post_batch(done.append, range(100))
            with self.assertRaises(ZeroDivisionError):
                pool.submit(lambda: 1 / 0).result()
        self.assertEqual(sorted(done), list(range(100)))
        audit = pool.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.accepted, audit.failed, audit.in_flight), (202, 1, 0))

    def test_events_and_endless_tasks_share_the_threads(self) -> None:
        ours, theirs = pair()
        going = [True]
        with paceline.Pool(1) as pool:

            def endless() -> None:
                if going:
                    pool.post(endless)

            pool.post(endless)
            pool.register(ours, echo)
            theirs.sendall(b"x")
            self.assertEqual(theirs.recv(1), b"x")
            going.clear()

    def test_all_threads_take_part(self) -> None:
        meeting = threading.Barrier(4)
        with paceline.Pool(4) as pool:
            for _ in range(50):
                for future in pool.submit_batch(lambda _: meeting.wait(20), range(4)):
                    future.result()

    def test_shutdown(self) -> None:
        gate = threading.Event()
        pool = paceline.Pool(1)
        running = pool.submit(gate.wait)
        self.until(running.running)
        waiting = pool.submit(abs, 1)
        report = pool.shutdown(drain=0.01)
        self.assertEqual((report.drained, report.cancelled, report.stuck), (False, 1, 1))
        self.assertTrue(waiting.cancelled())
        with self.assertRaises(RuntimeError):
            pool.submit(abs, 1)
        gate.set()
        report = pool.shutdown(drain=None)
        self.assertEqual((report.drained, report.stuck), (True, 0))
        audit = pool.audit()
        self.assertTrue(audit.balances, audit)
        self.assertEqual((audit.rejected, audit.cancelled, audit.completed), (1, 1, 1))

    def test_a_shutdown_drains_what_stands_on_the_pool(self) -> None:
        for end, threads in itertools.product(("shutdown", "with", "inside"), (2, 0)):
            if end == "inside" and not threads:
                continue
            seen: list[object] = []
            tries = iter(range(3))
            pool = paceline.Pool(threads)
            hub = paceline.Hub(pool)
            workers = paceline.WorkerPool(pool, threads=1)

            @workers.task(retries=paceline.Retry.fixed(3, 0.05))
            def flaky() -> None:
                if next(tries) < 2:
                    raise ValueError("not yet")
                # What runs in the drain may want more of it.
                hub.publish("last", b"done")

            @hub.subscribe("first")
            def first(message: paceline.Message) -> None:
                time.sleep(0.02)
                seen.append(message.payload)

            @hub.subscribe("last")
            def last(message: paceline.Message) -> None:
                seen.append(message.payload)

            flaky.submit()
            for number in range(5):
                hub.publish("first", b"%d" % number)
            if end == "with":
                with pool:
                    pass
            elif end == "inside":
                self.assertTrue(pool.submit(pool.shutdown, 30).result().requested)
                self.until(lambda: not any(thread.is_alive() for thread in pool._runner.threads))
            else:
                report = pool.shutdown(30)
                self.assertEqual(
                    (report.drained, report.left, report.worker_tasks), (True, 0, 0), report
                )
            self.assertEqual(sorted(map(bytes, seen)), [b"0", b"1", b"2", b"3", b"4", b"done"])

    def test_a_shutdown_says_what_was_lost(self) -> None:
        for wait in (0.05, 0):
            pool = paceline.Pool(1)
            workers = paceline.WorkerPool(pool, threads=1)

            @workers.task(name="flaky", retries=paceline.Retry.fixed(3, 3000))
            def flaky() -> None:
                raise ValueError("never")

            task = flaky.submit()
            self.until(lambda: workers.stats()["flaky"].retried == 1)
            began = time.monotonic()
            report = pool.shutdown(wait) if wait else pool.stop_now()
            self.assertLess(time.monotonic() - began, 30)
            self.assertEqual((report.drained, report.worker_tasks), (False, 1), report)
            self.until(task.cancelled)

    def test_shutdown_inside(self) -> None:
        pool = paceline.Pool(2)
        report = pool.submit(pool.shutdown).result()
        self.assertTrue(report.requested)
        self.assertTrue(pool.shutdown(drain=None).drained)

    def test_a_lost_pool_ends(self) -> None:
        ours, _ = pair()
        pool = paceline.Pool(2)
        threads = list(pool._runner.threads)
        handle = pool.register(ours, echo)
        gone = weakref.ref(pool)
        del pool
        gc.collect()
        self.assertIsNotNone(gone())
        handle.close()
        del handle
        gc.collect()
        self.assertIsNone(gone())
        for thread in threads:
            thread.join(20)
            self.assertFalse(thread.is_alive())

    def test_wrong_configurations(self) -> None:
        for wrong in ({"threads": -1}, {"threads": 1001}, {"max_joined": 0}):
            with self.assertRaises(ValueError):
                paceline.Pool(**wrong)  # type: ignore[arg-type]

    def test_it_refuses_to_be_pickled(self) -> None:
        with paceline.Pool(1) as pool:
            for each in (pool, pool.every(1, print), pool.after(1000, print)):
                with self.assertRaisesRegex(TypeError, "cannot pickle a paceline"):
                    pickle.dumps(each)


class Hosts(Case):
    def readable(self, pool: paceline.Pool) -> bool:
        return bool(select.select([pool], [], [], 0)[0])

    def test_a_pool_without_threads(self) -> None:
        ours, theirs = pair()
        with paceline.Pool(0) as pool:
            self.assertEqual(pool.join(0), 0)
            self.assertFalse(self.readable(pool))
            future = pool.submit(abs, -3)
            self.assertTrue(self.readable(pool))
            self.assertEqual((pool.join(0), future.result(0)), (1, 3))
            pool.join(0)
            self.assertFalse(self.readable(pool))
            pool.register(ours, echo)
            theirs.sendall(b"x")
            self.until(lambda: self.readable(pool))
            self.until(lambda: pool.join(0))
            self.assertEqual(theirs.recv(1), b"x")
            pool.after(0.01, theirs.close)
            self.assertEqual(pool.join(20), 1)
            self.until(lambda: pool.join(0) and not pool._runner.entries)

    def test_visits_leave_nothing_behind(self) -> None:
        with paceline.Pool(0) as pool:
            for number in range(200):
                future = pool.submit(abs, -number)
                self.until(lambda: pool.join(0))
                self.assertEqual(future.result(0), number)
            runner = pool._runner
            self.assertEqual((len(runner.books), len(runner.members)), (1, 0))
            self.assertLessEqual(len(runner.asleep) + len(runner.unclaimed), 2)
            self.assertEqual(pool.audit().completed, 200)

    def test_a_host_that_waits_is_woken(self) -> None:
        with paceline.Pool(0) as pool:
            host = threading.Thread(target=lambda: pool.join(None))
            host.start()
            time.sleep(0.02)
            self.assertEqual(pool.submit(abs, -1).result(20), 1)
            host.join()

    def test_join_inside_is_refused(self) -> None:
        with paceline.Pool(1) as pool, self.assertRaises(paceline.DeadlockError):
            pool.submit(pool.join).result()

    def test_fileno_of_a_pool_with_threads(self) -> None:
        with paceline.Pool(1) as pool, self.assertRaises(ValueError):
            pool.fileno()

    def test_a_host_beside_threads(self) -> None:
        with paceline.Pool(1) as pool:
            gate = threading.Event()
            busy = pool.submit(gate.wait)
            self.until(busy.running)
            future = pool.submit(abs, -2)
            self.until(lambda: pool.join(0) or future.done())
            self.assertEqual(future.result(0), 2)
            gate.set()


class Rings(Case):
    def test_serial_keeps_the_order(self) -> None:
        got: list[bytes] = []
        most: list[int] = []
        inside: list[None] = []

        def handler(batch: list[bytes]) -> None:
            inside.append(None)
            most.append(len(inside))
            got.extend(batch)
            inside.pop()

        with paceline.Pool(3) as pool, paceline.Ring(pool, handler, capacity=64) as ring:
            expected = [b"%d" % number for number in range(5000)]
            for start in range(0, 5000, 10):
                batch = expected[start : start + 10]
                for payload in batch[ring.publish_batch(batch) :]:
                    ring.publish(payload)
            self.until(lambda: ring.counts() == (5000, 5000))
        self.assertEqual(got, expected)
        self.assertEqual(max(most), 1)

    def test_concurrent_loses_nothing(self) -> None:
        got: list[bytes] = []
        with paceline.Pool(3) as pool:
            ring = paceline.Ring(pool, got.extend, capacity=16, concurrent=True, batch=4)
            producers = [
                threading.Thread(target=lambda: [ring.publish(b"x") for _ in range(1000)])
                for _ in range(3)
            ]
            for thread in producers:
                thread.start()
            for thread in producers:
                thread.join()
            self.until(lambda: ring.counts() == (3000, 3000))
        self.assertEqual(len(got), 3000)

    def test_long_payloads_are_handled_whole(self) -> None:
        got: list[bytes] = []
        expected = [bytes((length % 251,)) * length for length in (0, 255, 256, 65535, 65536)]
        with paceline.Pool(2) as pool:
            with paceline.Ring(pool, got.extend, capacity=2, max_payload=65536) as ring:
                for payload in expected:
                    ring.publish(payload)
        self.assertEqual(got, expected)

    def test_full_closed_and_raising(self) -> None:
        raised: list[BaseException] = []
        gate = threading.Event()

        def handler(batch: list[bytes]) -> None:
            gate.wait()
            raise ValueError(len(batch))

        with paceline.Pool(1, on_unhandled=raised.append) as pool:
            ring = paceline.Ring(pool, handler, capacity=2, max_payload=4)
            ring.publish(b"1")
            self.until(lambda: len(ring._queue) == 0)
            self.assertEqual(ring.publish_batch([b"2", b"3", b"4"]), 2)
            with self.assertRaises(paceline.Full):
                ring.publish(b"5", 0)
            with self.assertRaises(TimeoutError):
                ring.publish(b"5", 0.01)
            with self.assertRaises(ValueError):
                ring.publish(b"12345")
            ring.close()
            with self.assertRaises(paceline.ShutDownError):
                ring.publish(b"6")
            gate.set()
            self.until(lambda: ring.counts() == (3, 3))
        self.assertEqual([str(each) for each in raised], ["1", "2"])

    def test_publishing_inside_never_waits(self) -> None:
        with paceline.Pool(1) as pool:
            refused: list[BaseException] = []

            def handler(_: list[bytes]) -> None:
                try:
                    for _ in range(10):
                        ring.publish(b"again")
                except (paceline.Full, paceline.ShutDownError) as full:
                    refused.append(full)
                    ring.close()

            ring = paceline.Ring(pool, handler, capacity=2)
            ring.publish(b"first")
            self.until(lambda: refused)


class Processors(Case):
    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "skipped, because there is no affinity here")
    def test_those_that_the_process_may_use(self) -> None:
        """A container or taskset may allow fewer than there are."""
        ended = run(
            """
            import os, paceline
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            with paceline.Pool() as pool, paceline.Executor() as executor:
                print(len(pool._runner.threads), executor._max_workers)
            """
        )
        self.assertEqual((ended.stdout, ended.stderr), ("1 5\n", ""))


if __name__ == "__main__":
    unittest.main()
