"""Completion queues: what happens on a pool as data."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import threading
import time
import unittest
import weakref
from typing import Any
from unittest import mock

import paceline
from paceline import (
    Complete,
    CompletionEntry,
    CompletionQueue,
    ConnEvent,
    EntryKind,
    Flow,
    Hub,
    InvalidError,
    Pool,
    Ready,
    ShutDownError,
    StaleError,
    _cq,
)
from support import Case


class Queues(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.queue = CompletionQueue(self.pool)
        self.addCleanup(self.queue.close)

    def one(self, kind: EntryKind, tag: int) -> paceline.CompletionEntry:
        (entry,) = self.queue.wait(1, timeout=60)
        self.assertEqual((entry.kind, entry.tag), (kind, tag))
        return entry

    def balances(self) -> paceline.CompletionStats:
        stats = self.queue.stats()
        self.assertEqual(stats.brought, stats.completed + stats.withdrawn + stats.out)
        return stats

    def test_a_descriptor_closed_while_registered(self) -> None:
        """The next of its number is heard of, also when the older handle ends."""
        first, _peer = socket.socketpair()
        number = first.fileno()
        self.queue.register(first, 1)
        first.close()
        second, peer = socket.socketpair()
        self.addCleanup(peer.close)
        self.addCleanup(second.close)
        self.assertEqual(second.fileno(), number)
        self.queue.register(second, 2)
        self.assertEqual(self.pool.stats().handles, 1)
        for _ in range(2):
            peer.sendall(b"x")
            entry = self.one(EntryKind.READY, 2)
            second.recv(1)
            self.queue.complete(entry)

    def test_tags_and_timers(self) -> None:
        self.assertEqual(self.queue.wait(timeout=0), [])
        self.queue.post(3, 4, 5)
        seen: list[int] = []
        while len(seen) < 3:
            for entry in self.queue.wait(timeout=60):
                self.assertEqual((entry.kind, entry.token), (EntryKind.TASK, 0))
                seen.append(entry.tag)
        self.assertEqual(seen, [3, 4, 5])
        self.queue.wake(6)
        self.one(EntryKind.TASK, 6)
        self.queue.after(0.001, tag=9)
        self.one(EntryKind.TIMER, 9)
        self.queue.every(0.001, tag=8)
        self.queue.done(self.one(EntryKind.TICK, 8))
        tick = self.one(EntryKind.TICK, 8)
        self.queue.complete(tick, flow=Flow.DONE)
        with self.assertRaises(StaleError):
            self.queue.done(tick)
        self.assertEqual(self.queue.wait(timeout=0.02), [])
        self.assertEqual(self.balances().out, 0)

    def test_a_descriptor_has_one_entry_out(self) -> None:
        here, there = socket.socketpair()
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        self.queue.register(here, 7)
        there.send(b"a")
        entry = self.one(EntryKind.READY, 7)
        self.assertIn(Ready.READABLE, entry.detail)
        self.assertEqual(self.queue.wait(timeout=0.01), [])
        self.queue.done(entry)
        entry = self.one(EntryKind.READY, 7)
        here.recv(1)
        self.queue.complete(entry, flow=Flow.DONE)
        there.send(b"b")
        self.assertEqual(self.queue.wait(timeout=0.01), [])
        with self.assertRaises(TypeError):
            self.queue.register("no descriptor", 1)  # type: ignore[arg-type]
        # What is registered ends with its queue, also a lost one, so another may have it.
        for again in range(3):
            queue = CompletionQueue(self.pool)
            queue.register(here, again)
            (entry,) = queue.wait(1, timeout=60)
            if again == 1:
                queue.done(entry)
                queue.close()
            del queue
            gc.collect()

    def test_connections(self) -> None:
        (address,) = self.queue.serve("127.0.0.1:0", 1, wanted=[ConnEvent.OPENED, ConnEvent.CLOSED])
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as peer:
            entry = self.one(EntryKind.CONN, 1)
            self.assertEqual(entry.detail.event, ConnEvent.OPENED)
            self.queue.done(entry)
            peer.sendall(b"hello")
            entry = self.one(EntryKind.CONN, 1)
            self.assertEqual((entry.data, entry.detail.event), (b"hello", ConnEvent.DATA))
            with self.assertRaises(InvalidError):
                self.queue.complete(entry, left=6)
            self.queue.complete(entry, data=b"hel", left=2)
            self.assertEqual(peer.recv(3), b"hel")
            peer.sendall(b"!")
            entry = self.one(EntryKind.CONN, 1)
            self.assertEqual(entry.data, b"lo!")
            self.queue.complete(entry, data=b"bye", flags=Complete.CLOSE)
            self.assertEqual(peer.makefile("rb").read(), b"bye")
        entry = self.one(EntryKind.CONN, 1)
        self.assertEqual(entry.detail.event, ConnEvent.CLOSED)
        self.queue.done(entry)
        self.assertEqual(self.balances().out, 0)

    def test_messages(self) -> None:
        hub = Hub(self.pool)
        self.addCleanup(hub.close)
        mailbox = hub.mailbox("a.*")
        self.queue.mailbox(mailbox, 11)
        with self.assertRaises(InvalidError):
            self.queue.mailbox(mailbox, 12)
        # Nor is it pulled beside that, and one that was pulled is not given away.
        with self.assertRaises(InvalidError):
            mailbox.pull(1, 0)
        pulled = hub.mailbox("b")
        self.assertEqual(pulled.pull(1, 0), [])
        with self.assertRaises(InvalidError):
            self.queue.mailbox(pulled, 13)
        for number in range(100):
            hub.publish("a.b", b"%d" % number, headers={"n": str(number)})
        seen: list[paceline.CompletionEntry] = []
        while len(seen) < 100:
            seen += self.queue.wait(timeout=60)
        self.assertEqual([entry.data for entry in seen], [b"%d" % number for number in range(100)])
        self.assertEqual(seen[42].detail.header("n"), "42")
        self.assertEqual((seen[7].detail.key, seen[7].detail.payload), ("a.b", b"7"))
        self.assertEqual(self.balances().out, 100)
        self.queue.done(*reversed(seen))
        hub.publish("a.b", b"again")
        self.queue.complete(self.one(EntryKind.MESSAGE, 11), flags=Complete.RETRY)
        entry = self.one(EntryKind.MESSAGE, 11)
        self.assertTrue(entry.again)
        self.assertEqual((entry.data, entry.detail.attempt), (b"again", 2))
        self.queue.complete(entry, flags=Complete.FAIL, message="I cannot")
        (letter,) = hub.dead_letters()
        self.assertIn("I cannot", str(letter))

    def test_a_lease_finds_out_who_is_gone(self) -> None:
        queue = CompletionQueue(self.pool, lease=0.02)
        self.addCleanup(queue.close)
        queue.every(3600, 1)
        here, there = socket.socketpair()
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        queue.register(here, 2)
        there.send(b"a")
        (first,) = queue.wait(timeout=60)
        (second,) = queue.wait(timeout=60)
        self.assertEqual((first.tag, second.tag, second.again), (2, 2, True))
        with self.assertRaises(StaleError):
            queue.renew(first)
        with self.assertRaises(InvalidError):
            CompletionQueue(self.pool, lease=0.0001)
        self.assertGreaterEqual(queue.stats().withdrawn, 1)

    def test_what_is_copied_late_is_there(self) -> None:
        queue = CompletionQueue(self.pool, lease=0.001)
        self.addCleanup(queue.close)
        hub = Hub(self.pool)
        self.addCleanup(hub.close)
        queue.mailbox(hub.mailbox("late"), 3)
        copy = _cq._entry

        def held_up(row: Any) -> CompletionEntry:
            time.sleep(0.05)
            return copy(row)

        with mock.patch.object(_cq, "_entry", held_up):
            hub.publish("late", b"payload", {"name": "value"})
            (entry,) = queue.wait(timeout=60)
        self.assertEqual((entry.data, entry.again), (b"payload", False))
        # From here on the lease runs.
        (entry,) = queue.wait(timeout=60)
        self.assertTrue(entry.again)

    def test_several_threads_and_the_end(self) -> None:
        seen: list[int] = []

        def run() -> None:
            while True:
                try:
                    seen.extend(entry.tag for entry in self.queue.wait(8))
                except ShutDownError:
                    return

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1000):
            self.queue.post(number)
        while len(seen) < 1000:
            time.sleep(0.001)
        self.queue.close()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), list(range(1000)))
        with self.assertRaises(ShutDownError):
            self.queue.wait()

    def test_beside_a_loop(self) -> None:
        found: list[int] = []
        self.queue.after(0.001, 1)
        poll = select.poll()
        poll.register(self.queue.fileno(), select.POLLIN)
        while not found:
            self.assertTrue(poll.poll(60_000))
            found += [entry.tag for entry in self.queue.wait(timeout=0)]

        async def main() -> None:
            loop, came = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(self.queue, came.set)
            self.queue.post(2)
            while not (entries := self.queue.wait(timeout=0)):
                came.clear()
                await came.wait()
            found.extend(entry.tag for entry in entries)
            loop.remove_reader(self.queue)

        asyncio.run(main())
        self.assertEqual(found, [1, 2])

    def test_a_signal(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        try:
            pool = Pool(1)
            queue = CompletionQueue(pool)
            try:
                queue.signals([signal.SIGUSR2], 5)
            except InvalidError:
                # A thread of the tests lets it through.
                return
            os.kill(os.getpid(), signal.SIGUSR2)
            (entry,) = queue.wait(timeout=60)
            self.assertEqual(
                (entry.kind, entry.tag, entry.detail), (EntryKind.SIGNAL, 5, signal.SIGUSR2)
            )
        finally:
            queue.close()
            pool.shutdown()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def test_a_lost_one_is_collected(self) -> None:
        queue = CompletionQueue(self.pool)
        gone = weakref.ref(queue)
        queue.every(0.001, 1)
        del queue
        gc.collect()
        self.assertIsNone(gone())

    def test_it_outlives_its_pool(self) -> None:
        pool = Pool(1)
        queue = CompletionQueue(pool)
        pool.shutdown()
        with self.assertRaises(ShutDownError):
            queue.wait()
        with self.assertRaises(ShutDownError):
            CompletionQueue(pool)
        with self.assertRaises(TypeError):
            queue.__reduce__()


if __name__ == "__main__":
    unittest.main()
