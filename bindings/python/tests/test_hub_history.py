"""``Hub``: histories, queries, replays, topics."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import pickle
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

import paceline
from paceline import History, Hub, MessageFilter, Pool
from paceline._lifetime import called_back
from support import Case


class Broken(BaseException):
    """What is no way to fail at a message."""


class Histories(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def open(self, *histories: History, **settings: Any) -> Hub:
        hub = Hub(self.pool, histories=histories, **settings)
        self.addCleanup(hub.close)
        return hub

    @unittest.skipUnless(hasattr(signal, "pthread_kill"), "signals")
    def test_a_pull_is_not_begun_inside_another(self) -> None:
        """A handler of a signal runs between two looks of a pull on the main thread, whose messages it would
        overwrite."""
        hub = self.open(History("*"))
        other = hub.mailbox("other")
        for make in (hub.mailbox, lambda key: hub.replay_mailbox(key, now=True)):
            box = make("a")
            refused: list[BaseException] = []
            meanwhile: list[BaseException] = []

            def pull(*_: object) -> None:
                try:
                    other.pull(1, 0)
                except paceline.DeadlockError as error:
                    refused.append(error)

            def interrupt() -> None:
                main = threading.main_thread().ident
                assert main is not None
                for _ in range(1000):
                    if refused:
                        break
                    signal.pthread_kill(main, signal.SIGUSR1)
                    time.sleep(0.005)
                meanwhile.extend(refused)
                hub.publish("a", b"end")

            before = signal.signal(signal.SIGUSR1, pull)
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                (message,) = box.pull()
            finally:
                thread.join()
                signal.signal(signal.SIGUSR1, before)
            self.assertEqual(message.payload, b"end")
            self.assertTrue(meanwhile)
            # Afterwards it is allowed again.
            self.assertEqual(other.pull(1, 0), [])

    def texts(self, messages: Any) -> list[int]:
        return [int(each.payload) for each in messages]

    def test_asked_for(self) -> None:
        hub = self.open(History("a.*", keep_count=50, keep_age=3600.0), History("b"))
        for number in range(1, 101):
            hub.publish("a.x" if number % 2 else "a.y", b"%d" % number, {"n": "v"})
        self.assertEqual(self.texts(hub.query("a.*")), list(range(51, 101)))
        self.assertEqual(self.texts(hub.query("a.x", first=90)), [91, 93, 95, 97, 99])
        self.assertEqual(self.texts(hub.query("a.x", last=55)), [51, 53, 55])
        self.assertEqual(self.texts(hub.query("a.*", limit=2)), [51, 52])
        self.assertEqual(self.texts(hub.query("a.*", limit=2, newest=True)), [99, 100])
        self.assertEqual(hub.query("a.*", limit=0) + hub.query("b"), [])
        (last,) = hub.query("a.*", first=100)
        self.assertEqual((last.key, last.headers, last.sequence), ("a.y", (("n", "v"),), 100))
        self.assertEqual(hub.query("a.*", since_ns=last.time_ns + 1), [])
        self.assertEqual(len(hub.query("a.*", until_ns=last.time_ns)), 50)
        first, second = hub.history_stats()
        self.assertEqual((first.pattern, first.recorded, first.in_memory), ("a.*", 100, 50))
        self.assertEqual((first.last_error, first.lines_lost, second.recorded), ("", 0, 0))
        with self.assertRaises(paceline.InvalidError):
            hub.query()

    def test_replayed_into_what_is_published(self) -> None:
        hub = self.open(History(keep_count=None))
        for number in range(100):
            hub.publish("a", b"%d" % number)
        replays = [
            hub.replay_mailbox(">"),
            hub.replay_mailbox("a", sequence=1),
            hub.replay_mailbox("*", since_ns=1),
        ]
        replays.append(hub.replay_mailbox("a", last=100))
        late = hub.replay_mailbox("a", now=True)

        def publish() -> None:
            for number in range(100, 1000):
                hub.publish("a", b"%d" % number)

        publisher = threading.Thread(target=publish)
        publisher.start()
        for replay, count in [(each, 1000) for each in replays] + [(late, 900)]:
            found: list[int] = []
            while len(found) < count:
                found += self.texts(replay.pull(timeout=120))
            self.assertEqual(found, list(range(1000 - count, 1000)))
            self.assertEqual(replay.pull(1, 0) + replay.pull(1, 0.001), [])
        publisher.join()
        replay = hub.replay_mailbox("a", sequence=999)
        came = iter(replay)
        self.assertEqual([int(next(came).payload) for _ in range(2)], [998, 999])
        hub.close()
        self.assertEqual(list(came), [])
        with self.assertRaises(paceline.ShutDownError):
            hub.replay_mailbox("a")

    def test_pulled_waited_for_and_buried(self) -> None:
        hub = self.open(History("a"))
        for number in range(3):
            hub.publish("a", b"%d" % number)
        with hub.replay_mailbox("a") as replay:
            self.assertTrue(self.readable(replay.fileno()))
            found = replay.pull()
            self.assertFalse(self.readable(replay.fileno()))
            replay.bury(found[1], "no\0", 3)
            stats = replay.stats()
            self.assertEqual((stats.delivered, stats.dead_lettered, stats.last), (2, 1, 3))
            (letter,) = hub.dead_letters(subscription=stats.number)
            self.assertEqual((letter.message.payload, letter.failure, letter.attempts), (b"1", "no", 3))
            with self.assertRaises(paceline.InvalidError):
                replay.bury(found[1]._replace(key="b"))
            self.assertEqual(hub.redeliver().enqueued, 1)
            self.assertTrue(self.readable(replay.fileno()))
            self.assertTrue(replay.stats().balances)

            async def pulls() -> list[int]:
                found = await replay.pull_async()
                asyncio.get_running_loop().call_later(0.01, hub.publish, "a", b"7")
                async for message in replay:
                    return self.texts([*found, message])
                raise AssertionError("it has ended")

            self.assertEqual(asyncio.run(pulls()), [1, 7])
            self.assertEqual(replay.stats().redelivered, 1)
        with self.assertRaises(paceline.StaleError):
            replay.pull(1, 0)
        self.assertEqual(list(replay), [])

    def readable(self, fd: int) -> bool:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))

    def supervised(
        self, hub: Hub, came: list[tuple[int, int]], works: threading.Event
    ) -> dict[str, Any]:
        """Messages 2 and later fail until it works."""

        def handle(message: paceline.Message) -> None:
            came.append((int(message.payload), message.attempt))
            if int(message.payload) > 1 and not works.is_set():
                raise Broken if message.attempt == 2 else KeyError("not yet")

        for number in range(1, 6):
            hub.publish("a", b"%d" % number)
        return {
            "handler": handle,
            "retries": paceline.Retry.fixed(1, 0.001),
            "on_error": lambda *_: None,
        }

    def check_supervised(
        self, hub: Hub, replay: Any, came: list[tuple[int, int]], works: threading.Event
    ) -> None:
        self.until(lambda: replay.suspended)
        self.until(lambda: replay.stats().dead_lettered == 2)
        self.assertEqual(came, [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)])
        # What comes stays in the history.
        hub.publish("a", b"6")
        self.until(lambda: replay.stats().running == 0)
        stats = replay.stats()
        self.assertEqual((stats.delivered, stats.last, stats.restarts), (1, 3, 1))
        self.assertTrue(stats.balances)
        works.set()
        self.assertTrue(replay.resume())
        self.assertFalse(replay.resume())
        self.until(lambda: replay.stats().last == 6)
        self.assertEqual(came[5:], [(4, 1), (5, 1), (6, 1)])
        self.assertEqual(len(hub.dead_letters(subscription=replay.stats().number)), 2)
        self.assertEqual(hub.redeliver().enqueued, 2)
        self.until(lambda: replay.stats().delivered == 6)
        stats = replay.stats()
        self.assertEqual((came[8:], stats.redelivered, stats.last), ([(2, 1), (3, 1)], 2, 6))
        self.assertEqual((stats.waiting, stats.running, stats.lost, stats.failed), (0, 0, 0, 0))
        self.assertTrue(stats.balances)

    def test_a_handler_is_supervised(self) -> None:
        hub = self.open(History("a"))
        came: list[tuple[int, int]] = []
        works = threading.Event()
        told: list[Any] = []
        hooks = {"restarts": 1, "within": 3600.0, "suspension": None}
        hooks["on_restart"] = lambda error, count: told.append((error, count))
        replay = hub.replay("a", **self.supervised(hub, came, works), **hooks)
        self.until(lambda: replay.suspended)
        self.check_supervised(hub, replay, came, works)
        self.assertEqual([(type(error), count) for error, count in told], [(Broken, 1), (type(None), 2)])
        self.assertTrue(replay.unsubscribe("sync"))
        self.assertTrue(replay.wait(120))
        hub.publish("a", b"7")
        self.assertEqual(len(came), 10)
        self.assertEqual(hub.redeliver().enqueued, 0)

    def test_a_suspended_replay_is_not_looked_at_again_and_again(self) -> None:
        """Method: its thread serves another handler meanwhile, and messages come to the history."""
        hub = self.open(History("a"))

        def crash(message: paceline.Message) -> None:
            if message.payload == b"1":
                raise Broken

        hub.publish_batch("a", [b"1", b"2", b"3"])
        hooks: dict[str, Any] = {"restarts": 0, "suspension": None, "on_error": lambda *_: None}
        replay = hub.replay("a", crash, **hooks)
        served: Any = replay._served
        self.until(lambda: served.resting)
        turns: list[int] = []
        turn = served.turn
        served.turn = lambda: (turns.append(1), turn())[1]
        other = hub.subscribe("other", lambda message: None)
        hub.publish("a", b"4")
        for number in range(50):
            hub.publish("other")
            self.until(lambda: other.stats().delivered > number)
        self.assertLess(len(turns), 4)
        self.assertTrue(replay.resume())
        self.until(lambda: replay.stats().delivered == 3)

    def test_batches(self) -> None:
        hub = self.open(History("a"))
        hub.publish_batch("a", [b"%d" % number for number in range(1, 8)])
        with hub.replay_mailbox("a", last=5) as pulled:
            batch = pulled.pull_batch(3, 0)
            assert batch is not None
            self.assertEqual(batch.payloads, (b"3", b"4", b"5"))
            self.assertEqual([each.sequence for each in batch], [3, 4, 5])
            self.assertEqual(asyncio.run(pulled.pull_batch_async()).payloads, (b"6", b"7"))
            self.assertIsNone(pulled.pull_batch(1, 0))
        came: list[tuple[tuple[bytes, ...], int]] = []

        def handle(batch: paceline.Batch) -> None:
            came.append((batch.payloads, batch.attempt))
            if b"4" in batch.payloads and len(came) < 4:
                raise Broken if batch.attempt == 2 else KeyError

        async def handle_too(batch: paceline.Batch) -> None:
            handle(batch)

        first, second, third = (b"1", b"2", b"3"), (b"4", b"5", b"6"), (b"7",)
        settings: dict[str, Any] = {"retries": paceline.Retry.fixed(1, 0.001), "restarts": 0, "batch": 3}
        settings["on_error"] = lambda *_: None
        settings["suspension"] = None

        def check(replay: Any) -> None:
            self.until(lambda: replay.suspended)
            self.until(lambda: replay.stats().dead_lettered == 3)
            stats = replay.stats()
            self.assertEqual((stats.delivered, stats.last, stats.running), (3, 6, 0))
            self.assertEqual(came, [(first, 1), (second, 1), (second, 2)])
            replay.resume()
            self.until(lambda: replay.stats().last == 7)
            self.assertEqual(hub.redeliver().enqueued, 3)
            self.until(lambda: replay.stats().delivered == 7)
            # Letters come back one by one, so a batch may have the first of them alone.
            again = tuple(payload for payloads, _ in came[4:] for payload in payloads)
            self.assertEqual((came[3], again), ((third, 1), second))
            self.assertEqual({attempt for _, attempt in came[4:]}, {1})
            self.assertEqual(replay.stats().last, 7)
            self.assertTrue(replay.stats().balances)
            replay.unsubscribe()
            self.assertTrue(replay.wait(120))

        check(hub.replay("a", handle, **settings))
        came.clear()

        async def loop() -> None:
            replay = hub.replay("a", handle_too, **settings)
            await asyncio.get_running_loop().run_in_executor(None, check, replay)

        asyncio.run(loop())

    def test_counts_while_messages_are_handled_in_a_row(self) -> None:
        hub = self.open(History("a"))
        hub.publish_batch("a", [b"%d" % number for number in range(1, 6)])
        inside, leave = threading.Event(), threading.Event()
        self.addCleanup(leave.set)

        def handle(message: paceline.Message) -> None:
            if message.payload == b"4":
                inside.set()
                leave.wait(120)

        replay = hub.replay("a", handle)
        self.assertTrue(inside.wait(120))
        stats = replay.stats()
        self.assertEqual((stats.last, stats.delivered, stats.running, stats.waiting), (3, 3, 1, 1))
        self.assertTrue(stats.balances)
        # What it has taken and not begun is thrown away.
        replay.unsubscribe()
        leave.set()
        self.assertTrue(replay.wait(120))
        stats = replay.stats()
        self.assertEqual((stats.last, stats.delivered, stats.running, stats.discarded), (4, 4, 0, 1))
        self.assertTrue(stats.balances)

    def test_a_handler_of_a_loop_is_supervised(self) -> None:
        hub = self.open(History("a"))
        came: list[tuple[int, int]] = []
        works = threading.Event()

        async def loop() -> None:
            settings = self.supervised(hub, came, works)
            handle = settings.pop("handler")

            async def handler(message: paceline.Message) -> None:
                handle(message)

            replay = hub.replay("a", handler, restarts=1, within=3600.0, suspension=None, **settings)
            # The loop has time for others meanwhile.
            await asyncio.get_running_loop().run_in_executor(None, self.until, lambda: replay.suspended)
            check = (hub, replay, came, works)
            await asyncio.get_running_loop().run_in_executor(None, self.check_supervised, *check)
            replay.unsubscribe()
            await asyncio.get_running_loop().run_in_executor(None, replay.wait, 120)

        asyncio.run(loop())
        self.assertEqual(hub.redeliver().enqueued, 0)

    def test_ends_while_suspended(self) -> None:
        def fails(message: paceline.Message) -> None:
            raise Broken

        async def fails_too(message: paceline.Message) -> None:
            raise Broken

        async def loop(how: str) -> None:
            hub = self.open(History("a"))
            supervisor = paceline.Supervisor(restarts=0, suspension=None)
            settings: dict[str, Any] = {"supervisor": supervisor, "on_failure": "discard", "last": 3}
            settings["on_error"] = lambda *_: None
            for number in range(5):
                hub.publish("a", b"%d" % number)
            replays = [hub.replay("a", fails, **settings), hub.replay("a", fails_too, **settings)]

            def check() -> None:
                self.until(lambda: all(each.suspended for each in replays))
                if how == "close":
                    hub.close()
                for each in replays:
                    if how != "close":
                        each.unsubscribe(how)
                    self.assertTrue(each.wait(120))
                    stats = each.stats()
                    self.assertTrue(stats.balances, stats)
                    self.assertEqual((stats.waiting, stats.delivered), (0, 0))

            await asyncio.get_running_loop().run_in_executor(None, check)

        for how in ("sync", "async", "drain", "close"):
            asyncio.run(loop(how))

    def test_lines_and_archives(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lines")
            hub = self.open(History("a", lines=path, commit_delay=0.0))
            hub.publish("a", b"text")
            hub.flush()
            self.until(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.loads(file.readline())["key"], "a")
            path = os.path.join(folder, "archive")
            for number in range(2):
                pool = Pool(1)
                try:
                    hub = Hub(pool, histories=[History(archive=path, process_only=True)])
                except paceline.UnsupportedError as error:
                    self.assertIn("without `archive`", str(error))
                    pool.shutdown()
                    return
                self.assertEqual(len(hub.query()), number)
                hub.publish("a", b"x")
                hub.flush()
                hub.close()
                del hub
                pool.shutdown()

    def test_a_closed_hub_has_everything_in_its_file(self) -> None:
        """A copy has it, nothing of it is open, and another hub goes on, though the first is still there."""
        with tempfile.TemporaryDirectory() as folder:
            path, hubs = os.path.join(folder, "archive"), []
            for number in range(2):
                try:
                    hubs.append(Hub(self.pool, histories=[History(archive=path, process_only=True)]))
                except paceline.UnsupportedError:
                    return
                with hubs[-1] as hub:
                    for _ in range(1000):
                        hub.publish("a", b"x")
                for fd in os.listdir("/proc/self/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        self.assertFalse(os.readlink(f"/proc/self/fd/{fd}").startswith(folder))
                shutil.copy(path, path + ".copy")
                with contextlib.closing(sqlite3.connect(path + ".copy")) as copy:
                    (count,) = copy.execute("SELECT count(*) FROM messages").fetchone()
                self.assertEqual(count, 1000 * (number + 1))

    def test_what_is_durable_is_found_though_the_program_has_looked(self) -> None:
        """Another SQLite in this process, which takes the locks of the hub's away, and another process."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "archive")
            try:
                hub = self.open(History(archive=path, process_only=True))
            except paceline.UnsupportedError:
                return
            look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
            look += "print(c.execute('SELECT count(*) FROM messages').fetchone()[0]); c.close()"
            for expected in (100, 200):
                for _ in range(100):
                    hub.publish("a", b"x")
                hub.flush()
                with contextlib.closing(sqlite3.connect(path)) as inside:
                    (count,) = inside.execute("SELECT count(*) FROM messages").fetchone()
                    self.assertEqual(count, expected)
                told = subprocess.run(
                    [sys.executable, "-c", look, path], stdout=subprocess.PIPE, check=True
                )
                self.assertEqual(int(told.stdout), expected)
            hub.close()

    def test_export_import_and_archives_without_a_hub(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lines, path = os.path.join(folder, "lines"), os.path.join(folder, "archive")
            hub = self.open(History())
            for number in range(1, 11):
                hub.publish("odd" if number % 2 else "even", b"%d" % number, headers={"n": "v"})
            self.assertEqual(hub.export_lines(lines), 10)
            self.assertEqual(hub.export_lines(lines, "even", first=4), 4)
            found = paceline.read_lines(lines, last=8)
            self.assertEqual([each.payload for each in found], [b"4", b"6", b"8"])
            self.assertEqual(paceline.read_lines(lines, limit=0), [])
            self.assertEqual(found[0].headers, (("n", "v"),))
            for call in (hub.export_lines, paceline.read_lines):
                with self.assertRaises(OSError):
                    call("/nowhere/at/all")
            history = History(archive=path)
            try:
                read = paceline.Archive.import_lines(history, lines)
            except paceline.UnsupportedError:
                with self.assertRaises(paceline.UnsupportedError):
                    paceline.Archive(path)
                return
            self.assertEqual(read, paceline.LinesRead(messages=4, torn=0))
            with self.assertRaisesRegex(paceline.InvalidError, "a new one"):
                paceline.Archive.import_lines(history, lines)
            with self.assertRaisesRegex(paceline.InvalidError, "archive"):
                paceline.Archive.import_lines(History(), lines)
            with self.assertRaises(OSError):
                paceline.Archive("/nowhere/at/all")
            archive = paceline.Archive(path)
            self.assertEqual(archive.query(limit=1, newest=True)[0].payload, b"10")
            self.assertEqual([each.sequence for each in archive.query()], [4, 6, 8, 10])
            self.assertEqual(archive.query(limit=0), [])
            self.assertEqual(archive.export_lines(lines, "even", limit=3), 3)
            self.assertEqual(len(paceline.read_lines(lines)), 3)
            with self.assertRaises(TypeError):
                pickle.dumps(archive)
            # The next hub goes on where it ends.
            hub = self.open(history)
            self.assertEqual(hub.publish("even", b"11").sequence, 11)
            self.assertEqual(len(hub.query("even")), 5)

    def test_a_flush_does_not_say_that_it_has_written_what_was_given_up(self) -> None:
        """The only thread of the pool is held, so nothing is written before the flush."""
        most = 65_536
        with tempfile.TemporaryDirectory() as folder:
            hub = self.open(History(lines=f"{folder}/lines", keep_count=0, disk_wait=None))
            held, go_on = threading.Event(), threading.Event()

            def hold() -> None:
                held.set()
                go_on.wait(60)

            self.pool.submit(hold)
            self.assertTrue(held.wait(60))
            try:
                key = hub.key("a")
                hub.publish_batch(key, [b""] * (most + 7))
                with self.assertRaises(paceline.GivenUpError) as raised:
                    hub.flush()
                self.assertEqual(raised.exception.messages, 7)
                self.assertIn("7 messages", str(raised.exception))
                again = pickle.loads(pickle.dumps(raised.exception))
                self.assertEqual((again.messages, str(again)), (7, str(raised.exception)))
                self.assertEqual(hub.history_stats()[0].given_up, 7)
            finally:
                go_on.set()

    def test_by_default_who_finds_no_room_makes_some(self) -> None:
        """Though the only thread of the pool is held, by which nothing is written then, or publishes itself."""
        most = 65_536
        self.assertEqual(History().disk_wait, 10.0)
        with tempfile.TemporaryDirectory() as folder:
            hub = self.open(History(lines=f"{folder}/lines", keep_count=0, disk_wait=0.0))
            held, go_on = threading.Event(), threading.Event()

            def hold() -> None:
                held.set()
                go_on.wait(60)
                publish()

            key = hub.key("a")

            def publish() -> None:
                hub.publish_batch(key, [b""] * most)
                hub.publish(key, b"")

            inside = self.pool.submit(hold)
            self.assertTrue(held.wait(60))
            try:
                publish()
            finally:
                go_on.set()
            inside.result()
            hub.flush()
            stats = hub.history_stats()[0]
            self.assertEqual((stats.given_up, stats.recorded), (0, 2 * (most + 1)))

    def test_topics(self) -> None:
        hub = self.open()
        topic = hub.topic("n.*", paceline.Json())
        came: list[Any] = []
        topic.subscribe(lambda value, message: came.append((value, message.key)))
        pulled = hub.mailbox("n.*")
        self.assertEqual(topic.publish({"a": [1, None]}, "n.x").enqueued, 2)
        hub.topic("n.y", paceline.Json()).publish("two")
        self.until(lambda: len(came) == 2)
        self.assertEqual(came, [({"a": [1, None]}, "n.x"), ("two", "n.y")])
        self.assertEqual([topic.decode(each) for each in pulled.pull()], [{"a": [1, None]}, "two"])
        with self.assertRaises(TypeError):
            topic.publish(self, "n.x")
        with self.assertRaises(paceline.InvalidError):
            topic.publish(1)
        with self.assertLogs("paceline"):
            hub.publish("n.x", b"{")
            self.until(lambda: len(hub.dead_letters()) == 1)
        self.assertIn("cannot be decoded", hub.dead_letters()[0].failure)
        self.assertEqual(len(came), 2)

    def test_what_is_wrong_is_said(self) -> None:
        invalid = paceline.InvalidError
        for history in (
            History("a b"),
            History(keep_count=-1),
            History(keep_age=-1.0),
            History(lines="x", lines_files=0),
            History(commit_messages=0),
            History("a\0b"),
        ):
            with self.assertRaises(invalid, msg=str(history)):
                self.open(history)
        with self.assertRaises(invalid):
            self.open(*[History()] * 32)
        hub = self.open(History("a"))
        for call in (
            lambda: hub.replay_mailbox(">"),
            lambda: hub.replay_mailbox("a", last=-1),
            lambda: hub.replay_mailbox("a", last=1, now=True),
            lambda: hub.query("a", first=-1),
            lambda: hub.replay_mailbox("a").pull(0),
        ):
            with self.assertRaises(invalid):
                call()
        with self.assertRaises(TypeError):
            pickle.dumps(hub.replay_mailbox("a"))


class Interrupted(Case):
    """Handlers of signals that raise while native code calls Python back, on the main thread."""

    ROUNDS = 500

    def setUp(self) -> None:
        super().setUp()
        self.assertIs(threading.current_thread(), threading.main_thread())
        # A weak reference's function that is interrupted is Python's own affair.
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        self.raised = 0
        self.unraisable: list[Any] = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        self.hook = self.unraisable.append
        sys.unraisablehook = self.hook
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, self.interrupt)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        pool = Pool(1)
        self.addCleanup(pool.shutdown)
        self.hub = Hub(pool, histories=[History("a")], errors=200)
        self.addCleanup(self.hub.close)

    def interrupt(self, *_: object) -> None:
        self.raised += 1
        raise KeyboardInterrupt("from a signal")

    def test_what_refuses_attributes_passes_as_it_is(self) -> None:
        @dataclasses.dataclass(frozen=True)
        class Frozen(BaseException):
            number: int

        raised: list[BaseException] = []

        def body() -> None:
            try:
                with called_back():
                    raise Frozen(7)
            except BaseException as caught:
                raised.append(caught)

        body()
        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join()
        self.assertEqual([type(each) for each in raised], [Frozen, Frozen])

    def check(self, ask: Callable[[], object], whole: object) -> None:
        """Each exception comes out of ``ask``, or else its answer is whole."""
        start = time.monotonic()
        self.assertEqual(ask(), whole)
        longest, seen = time.monotonic() - start, 0
        for _ in range(self.ROUNDS):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-6, 1.2 * longest + 3e-6))
                found = ask()
                signal.setitimer(signal.ITIMER_REAL, 0)
                # A handler that is pending is called here at the latest.
                time.sleep(0)
            except KeyboardInterrupt:
                seen += 1
            else:
                self.assertEqual(found, whole)
        self.assertEqual(seen, self.raised)
        self.assertGreater(seen, 0)
        self.assertEqual(self.unraisable, [])
        # Other hooks are served meanwhile, and the one before is put back.
        ask()
        self.assertIs(sys.unraisablehook, self.hook)

    def test_answers_of_a_hub_are_whole_or_raise(self) -> None:
        for number in range(50):
            self.hub.publish("a", b"%d" % number)
        box = self.hub.mailbox("a", capacity=64)
        self.hub.publish_batch("a", [b"x"] * 50)
        for message in box.pull():
            box.bury(message, "spoilt")
        boxes = [self.hub.mailbox(f"b.{number}", capacity=1) for number in range(50)]
        hub = self.hub
        for name, ask in (
            ("query", lambda: len(hub.query("a"))),
            ("dead_letters", lambda: len(hub.dead_letters())),
            ("patterns", lambda: len(hub.patterns())),
            ("history_stats", lambda: len(hub.history_stats())),
            ("errors", lambda: len(hub.errors())),
        ):
            with self.subTest(name):
                self.raised = 0
                self.check(ask, ask())
        del boxes

    def test_a_filter_that_is_interrupted_raises_out_of_publishing(self) -> None:
        box = self.hub.mailbox("c", capacity=4, filter=MessageFilter.test(lambda _: False))
        self.check(lambda: self.hub.publish("c").matched, 0)
        del box

    def test_a_filter_that_ends_the_program_raises_out_of_publishing(self) -> None:
        for kind in (KeyboardInterrupt, SystemExit):

            def says(_: object) -> bool:
                raise kind("now")

            with self.hub.mailbox("d", filter=MessageFilter.test(says)) as box:
                for publish in (
                    lambda: self.hub.publish("d"),
                    lambda: self.hub.publish_batch("d", [b"1", b"2"]),
                    lambda: self.hub.publish_all([("d", b"1")]),
                    lambda: self.hub.publisher("me").publish("d"),
                ):
                    with self.assertRaises(kind):
                        publish()
                self.assertEqual(box.pull(timeout=0), [])
        self.assertEqual(self.hub.publish("d").matched, 0)


if __name__ == "__main__":
    unittest.main()
