"""Calls in orders that make no sense, from many threads: typed errors, never a crash, never a hang.

PACELINE_ABUSE=100000 PYTHONPATH=bindings/python/src python3 bindings/python/tests/test_abuse.py
"""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import paceline
import paceline._mailbox
from paceline import Flow
from paceline._library import lib
from paceline._native import EVENT, FOREVER, NativePool, Puller, pool_config
from support import Case

CALLS = int(os.environ.get("PACELINE_ABUSE", "20000"))
THREADS = 4

#: What a senseless call may raise; anything else is a fault.
EXPECTED = (paceline.Error, OSError, RuntimeError, ValueError, TypeError)


class Victims:
    """Objects in every state, that all threads use at once and nobody takes care of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pool = paceline.Pool(2, on_unhandled=self.unhandled)
        self.executor = paceline.Executor(2)
        self.queue = paceline.Queue(8, 16)
        self.ring = paceline.Ring(self.pool, self.handle, capacity=8, max_payload=16)
        self.sockets: list[socket.socket] = list(socket.socketpair())
        self.handles: list[Any] = [self.pool.every(0.001, lambda: None)]
        self.timers: list[Any] = [self.pool.after(0.001, lambda: None)]
        self.strand = self.pool.strand()
        self.futures: list[Any] = [self.executor.submit(abs, 1)]
        self.wrong: list[BaseException] = []

    def unhandled(self, exception: BaseException) -> None:
        if not isinstance(exception, EXPECTED):
            self.wrong.append(exception)

    def handle(self, _: list[bytes]) -> None:
        if self.random.random() < 0.1:
            raise ValueError("a ring's handler")

    def on_ready(self, connection: socket.socket, _: paceline.Ready) -> Any:
        return self.random.choice(
            [
                lambda: connection.recv(8) and None,
                lambda: connection.close(),
                lambda: Flow.AGAIN if connection.recv(1) else Flow.DONE,
                lambda: Flow.PAUSE,
                lambda: Flow.DONE,
                lambda: "no flow",
                lambda: self.pick(self.handles).close() and None,
                lambda: self.pool.join(0) and None,
            ]
        )()

    def pick(self, things: list[Any]) -> Any:
        return things[self.random.randrange(len(things))]

    def keep(self, things: list[Any], thing: Any) -> None:
        """Instead of another, which is dropped in whatever state it is."""
        if len(things) < 16:
            things.append(thing)
        else:
            things[self.random.randrange(len(things))] = thing

    def calls(self) -> list[Callable[[], Any]]:
        r = self.random
        return [
            lambda: [self.keep(self.sockets, each) for each in socket.socketpair()],
            lambda: self.pick(self.sockets).close(),
            lambda: self.pick(self.sockets).setblocking(False),
            lambda: self.pick(self.sockets).send(b"x" * r.randrange(1, 9), socket.MSG_DONTWAIT),
            lambda: self.keep(
                self.handles,
                self.pool.register(
                    self.pick(self.sockets),
                    self.on_ready,
                    level=r.random() < 0.7,
                    may_block=r.random() < 0.2,
                    paused=r.random() < 0.2,
                ),
            ),
            lambda: self.pool.register(r.randrange(900, 2000), lambda *_: Flow.DONE).close(),
            lambda: self.pick(self.handles).close(),
            lambda: self.pick(self.handles).close(),
            lambda: self.pick(self.handles).pause(),
            lambda: self.pick(self.handles).resume(),
            lambda: self.keep(
                self.handles, self.pool.every(r.random() * 0.002, lambda: r.choice([None, 3]))
            ),
            lambda: self.keep(self.timers, self.pool.after(r.random() * 0.002, lambda: 1 / 1)),
            lambda: self.pick(self.timers).cancel(),
            lambda: self.pick(self.timers).postpone(r.random() * 0.002),
            lambda: self.keep(self.futures, self.executor.submit(abs, r.choice([1, "x"]))),
            lambda: self.keep(self.futures, self.pool.submit(abs, r.choice([1, "x"]))),
            lambda: self.keep(self.futures, self.strand.submit(abs, r.choice([1, "x"]))),
            lambda: self.strand.post_batch(self.pick(self.calls_inside()), range(r.randrange(4))),
            lambda: self.pool.strand().post(self.strand.post, abs, "x"),
            lambda: self.keep(
                self.futures, self.pool.lane(r.randrange(5)).submit(abs, r.choice([1, "x"]))
            ),
            lambda: self.pool.lane(r.randrange(4)).post_batch(abs, range(r.randrange(9))),
            lambda: self.pick(self.futures).cancel(),
            lambda: self.pick(self.futures).exception(0.001),
            lambda: self.pick(self.futures).add_done_callback(lambda _: None),
            lambda: next(self.executor.map(abs, range(3), timeout=0.001)),
            lambda: self.pool.post(self.pick(self.handles).close),
            lambda: self.pool.submit(self.pool.join, 0).result(1),
            lambda: self.pool.join(0),
            lambda: self.queue.push(b"x" * r.randrange(20), r.choice([0, 0.001])),
            lambda: self.queue.push_batch([b"y"] * r.randrange(12)),
            lambda: self.queue.pop(r.choice([0, 0.001])),
            lambda: self.queue.pop_batch(r.randrange(-1, 12), 0),
            lambda: self.ring.publish(b"x" * r.randrange(20), r.choice([0, 0.001])),
            lambda: self.ring.publish_batch([b"y"] * r.randrange(12)),
            lambda: (self.pool.stats(), self.pool.audit(), self.queue.fileno(), len(self.queue)),
            lambda: paceline.promote_new_leader(),
        ]

    def calls_inside(self) -> list[Any]:
        return [
            abs,
            lambda _: self.strand.post(abs, 1),
            lambda _: self.pool.join(0),
            lambda _: self.pool.lane(0).post(self.strand.post, abs, 1),
        ]

    def endings(self) -> list[Callable[[], Any]]:
        return [
            self.ring.close,
            self.queue.close,
            lambda: self.executor.shutdown(wait=False, cancel_futures=True),
            lambda: self.pool.shutdown(0),
            lambda: self.pool.submit(self.pool.shutdown),
        ]

    def abuse(self, count: int, ends: bool) -> None:
        calls, endings = self.calls(), self.endings()
        for number in range(count):
            # Towards the end things are closed under the others' hands.
            closing = ends and number > count * 0.9 and self.random.random() < 0.1
            call = self.pick(endings if closing else calls)
            try:
                call()
            except EXPECTED:
                pass
            except BaseException as fault:
                self.wrong.append(fault)

    def end(self) -> None:
        self.queue.close()
        self.executor.shutdown()
        self.pool.shutdown(5)
        for each in self.sockets:
            each.close()


class Nobody(paceline.ConnHandler):
    """Does nothing."""

    def data(self, conn: paceline.Conn, data: bytes) -> None:
        pass


class Reentered(Case):
    """A destructor that the collector runs, or a handler of a signal, may come at any place, and may call anything:
    here, at every line of the package that a call runs."""

    FILES = "_ring _hub _subscriptions _supervision _mailbox _server _http _udp _log _queue _hosts _notices".split()

    def reenter(self, operation: Callable[[], object], again: Callable[[], object]) -> int:
        """Calls one at each line of the other; in how many places."""
        places: set[tuple[str, int]] = set()
        raised: list[BaseException] = []

        def trace(frame: Any, event: str, _: Any) -> Any:
            name = os.path.basename(frame.f_code.co_filename)[:-3]
            if name not in self.FILES:
                return None
            if event == "line":
                places.add((name, frame.f_lineno))
                again()
            return trace

        def run() -> None:
            sys.settrace(trace)
            try:
                operation()
            except BaseException as failed:
                raised.append(failed)
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        self.assertFalse(thread.is_alive(), "it waits for itself")
        self.assertEqual(raised, [])
        return len(places)

    def test_whatever_is_called_in_the_midst_of_it(self) -> None:
        pool = paceline.Pool(2)
        self.addCleanup(pool.shutdown)
        handled: list[bytes] = []
        ring = paceline.Ring(pool, handled.extend, capacity=1 << 16)
        hub = paceline.Hub(pool, threads=2)
        supervisor = paceline.Supervisor("one-for-all", restarts=None)
        subscription = hub.subscribe("a", lambda _: None, supervisor=supervisor)
        box = hub.mailbox("a", overflow="drop-oldest")
        server = paceline.Server(pool, "127.0.0.1:0", Nobody)
        web = paceline.Http(pool, threads=0).start()
        log = paceline.Log(callback=lambda _: None, logger=False)
        for each in (hub, server, web, log):
            self.addCleanup(each.close)

        def subscribe() -> None:
            hub.subscribe("b", lambda _: None, supervisor=supervisor).unsubscribe()

        def fail() -> None:
            care = subscription._served.care
            care.judge(SystemExit(), None)

        calls: list[Callable[[], object]] = [
            lambda: ring.publish(b"x"),
            ring.counts,
            lambda: hub.publish("a", b"x"),
            subscribe,
            fail,
            subscription.resume,
            subscription.stats,
            lambda: subscription.wait(0),
            subscription._served.hurry,
            hub.patterns,
            lambda: box.pull_batch(1, 0) if not paceline._mailbox.place().busy else None,
            lambda: server.connect(server.addresses[0]).close(),
            server.stats,
            web.fileno,
            web._core._upgraded,
            web.run,
            log.flush,
        ]
        for operation in calls:
            for again in calls:
                self.reenter(operation, again)
        self.assertGreater(self.reenter(calls[0], ring.counts), 5)
        self.until(lambda: ring.counts()[1] == ring.counts()[0] == len(handled))
        self.assertEqual(len(ring._permits), 1)
        before = subscription.stats().delivered
        hub.publish("a", b"still")
        self.until(lambda: subscription.stats().delivered > before)
        self.assertEqual((hub._core.failures, server._core.failures), (0, 0))
        subscription.unsubscribe()
        self.reenter(lambda: subscription.wait(60), lambda: subscription.wait(0))


class Abuse(Case):
    def test_random_calls(self) -> None:
        # Sockets are dropped in whatever state they are.
        warnings.simplefilter("ignore", ResourceWarning)
        for seed in range(4):
            victims = Victims(seed)
            threads = [
                threading.Thread(target=victims.abuse, args=(CALLS // 4 // THREADS, number == 0))
                for number in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            victims.end()
            # StopIteration of an abandoned map is the only thing that is no error.
            wrong = [each for each in victims.wrong if not _is_standard(each)]
            self.assertEqual(wrong, [], f"seed {seed}")
            for audit in (victims.pool.audit(), victims.executor.audit()):
                self.assertTrue(audit.balances, f"seed {seed}: {audit}")
                self.assertEqual(audit.in_flight, 0)

    def test_threads_that_end_with_events_out(self) -> None:
        """Taken, not completed, and the thread is gone: another completes the event, and it comes to the next."""
        native = NativePool(4, pool_config())
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        native.queue.register(ours.fileno(), 1, True, False, False, 7)
        theirs.send(b"x")
        for _ in range(20):
            puller = Puller(native.queue, EVENT, 4)
            thread = threading.Thread(target=puller.pull, args=(FOREVER,))
            thread.start()
            thread.join()
            self.assertEqual([event[2] for event in puller.entries], [7])
            self.assertTrue(native.queue.complete(puller.entries[0][1], 0))
        native.shutdown()

    def test_stale_numbers(self) -> None:
        """Ids that were, never were, or belong to something else: an error, each time."""
        native = NativePool(1, pool_config())
        ticks = native.queue.every(1_000_000_000, 1)
        self.assertEqual(lib.pace_handle_deregister(native.pointer, ticks), 0)
        numbers = [0, 1, ticks, ticks + (1 << 32), (1 << 64) - 1]
        numbers += [random.Random(3).getrandbits(64) for _ in range(1000)]
        for number in numbers:
            for call in (lib.pace_handle_pause, lib.pace_handle_resume, lib.pace_handle_deregister):
                self.assertLess(call(native.pointer, number), 0)
            self.assertFalse(native.queue.complete(number, 0))
            self.assertFalse(native.cancel_timer(number))


def _is_standard(exception: BaseException) -> bool:
    from concurrent.futures import CancelledError
    from concurrent.futures import TimeoutError as FutureTimeoutError

    return isinstance(exception, (CancelledError, FutureTimeoutError, StopIteration))


if __name__ == "__main__":
    unittest.main()
