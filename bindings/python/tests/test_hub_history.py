"""``Hub``: histories, queries, replays, topics."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import threading
import unittest
from typing import Any

import paceline
from paceline import History, Hub, Pool
from support import Case


class Histories(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def open(self, *histories: History, **settings: Any) -> Hub:
        hub = Hub(self.pool, histories=histories, **settings)
        self.addCleanup(hub.close)
        return hub

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
        replays = [hub.replay(">"), hub.replay("a", sequence=1), hub.replay("*", since_ns=1)]
        replays.append(hub.replay("a", last=100))
        late = hub.replay("a", now=True)

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
        replay = hub.replay("a", sequence=999)
        came = iter(replay)
        self.assertEqual([int(next(came).payload) for _ in range(2)], [998, 999])
        hub.close()
        self.assertEqual(list(came), [])
        with self.assertRaises(paceline.ShutDownError):
            hub.replay("a")

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
            lambda: hub.replay(">"),
            lambda: hub.replay("a", last=-1),
            lambda: hub.replay("a", last=1, now=True),
            lambda: hub.query("a", first=-1),
            lambda: hub.replay("a").pull(0),
        ):
            with self.assertRaises(invalid):
                call()
        with self.assertRaises(TypeError):
            pickle.dumps(hub.replay("a"))


if __name__ == "__main__":
    unittest.main()
