"""``Webhook`` and ``Service``: what goes out of the process. Each is tried if the library has it."""

from __future__ import annotations

import ctypes
import os
import socket
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import paceline
from paceline import Hub, Pool, Retry, Service, Webhook, _integrations
from paceline import _layout as layout
from support import Case


class Outside(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def serve(self, *answers: int, held: Any = None) -> tuple[str, list[tuple[Any, bytes]]]:
        """A server that answers so, and then 200, and not before ``held`` is set: its URL, and what it gets."""
        left, got = list(answers), []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.headers, body))
                if held is not None:
                    held.wait()
                self.send_response(left.pop(0) if left else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/hook", got

    def webhook(self, url: str, **settings: Any) -> Webhook:
        try:
            webhook = Webhook(url, timeout=300, **settings)
        except paceline.UnsupportedError as error:
            self.assertIn("webhook", str(error))
            self.skipTest("skipped, because the library was built without webhooks")
        self.addCleanup(webhook.close)
        return webhook

    def test_what_is_posted_arrives(self) -> None:
        url, got = self.serve(200, 503, 200, 400)
        webhook = self.webhook(url, headers={"Token": "17"}, retries=Retry.fixed(2, 0.001))
        for number in range(3):
            self.assertTrue(webhook.post(b"%d" % number))
        self.assertTrue(webhook.flush())
        self.assertEqual([body for _, body in got], [b"0", b"1", b"1", b"2"])
        self.assertEqual({head["Token"] for head, _ in got}, {"17"})
        stats = webhook.stats()
        self.assertEqual(stats[:5], (3, 2, 1, 1, 0))
        self.assertIn("400", stats.last_error or "")
        hub = Hub(self.pool)
        self.addCleanup(hub.close)
        hub.subscribe("$SYS.subscription.>", lambda message: webhook.post(message.payload))
        box = hub.mailbox("watched")
        self.until(lambda: any(b"watched" in body for _, body in got))
        del box
        webhook.close()
        webhook.close()
        with self.assertRaises(paceline.InvalidError):
            webhook.post(b"")

    def test_what_finds_no_room_is_dropped_and_what_is_under_way_is_waited_for(self) -> None:
        held = threading.Event()
        url, got = self.serve(503, 503, held=held)
        # Before the server ends.
        self.addCleanup(held.set)
        webhook = self.webhook(url, capacity=1, retries=Retry.fixed(1, 0.001))
        self.assertTrue(webhook.flush(120))
        self.assertTrue(webhook.post(b"tried twice"))
        self.until(lambda: got)
        self.assertTrue(webhook.post(b"waits"))
        self.assertFalse(webhook.post(b"finds no room"))
        self.assertFalse(webhook.flush(0))
        self.assertFalse(webhook.flush(0.01))
        self.assertEqual(webhook.stats()[:5], (3, 0, 0, 0, 1))
        held.set()
        self.assertTrue(webhook.flush())
        self.assertEqual([body for _, body in got], [b"tried twice", b"tried twice", b"waits"])
        self.assertEqual(webhook.stats()[:5], (3, 1, 1, 1, 1))

    def test_an_error_is_whole_however_long_it_is(self) -> None:
        """What the library says grows from call to call, over the end of each buffer, which its text may just fill."""
        webhook = self.webhook("http://localhost")
        for lengths in ((0,), (1023,), (1024,), (5000,), (2000, 3000, 9000), (4000, 7)):
            texts = [bytes(97 + at % 26 for at in range(length)) for length in lengths]

            def say(_: object, room: Any, size: int, needed: Any) -> int:
                told = texts.pop(0) if len(texts) > 1 else texts[0]
                needed._obj.value = len(told) + 1
                if len(told) >= size:
                    return layout.EFULL
                ctypes.memmove(room, told + b"\0", len(told) + 1)
                return layout.OK

            with mock.patch.object(_integrations.quick, "pace_webhook_last_error", say):
                error = webhook.stats().last_error
            self.assertEqual((error or "").encode(), texts[-1])

    def test_a_webhook_says_what_is_wrong(self) -> None:
        self.webhook("http://localhost")
        for wrong in ({"capacity": 0}, {"timeout": 0}, {"proxy": "::"}, {"headers": {"a b": "c"}}):
            with self.assertRaises(paceline.InvalidError):
                Webhook("http://localhost", **wrong)
        with self.assertRaises(paceline.InvalidError):
            Webhook("localhost")

    def test_a_service_is_ready_fed_and_stops(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = str(Path(folder.name) / "notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(path)
        told = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "4000"}
        asked: list[str] = []

        def is_well() -> bool:
            asked.append(threading.current_thread().name)
            if len(asked) == 3:
                raise ValueError("not well")
            # Later it says so itself.
            return not 6 <= len(asked) < 9

        with mock.patch.dict(os.environ, told), self.assertLogs("paceline", "ERROR") as logs:
            try:
                service = Service(self.pool, is_well)
            except paceline.UnsupportedError as error:
                self.assertIn("systemd", str(error))
                paceline_log(logs)
                self.skipTest("skipped, because the library was built without systemd")
            service.status("serving")
            with self.assertRaises(paceline.InvalidError):
                service.status("two\nlines")
            heard: set[str] = set()
            wanted = {"READY=1", "WATCHDOG=1", "STATUS=serving"}
            ill = {"STATUS=not well: the watchdog is not fed", "WATCHDOG=1\nSTATUS=well again"}
            times = 0
            while not (wanted | ill <= heard and times == 2):
                heard.add(line := manager.recv(4096).decode().rstrip("\n"))
                times += line in ill and line.startswith("WATCHDOG")
            service.close()
            last = ""
            while last != "STOPPING=1":
                last = manager.recv(4096).decode().rstrip("\n")
        self.assertEqual(len(logs.records), 1)
        count = len(asked)
        with self.assertRaises(paceline.InvalidError):
            service.status("closed")
        self.pool.shutdown()
        self.assertEqual(len(asked), count)
        self.assertNotIn(threading.current_thread().name, asked)


def paceline_log(logs: Any) -> None:
    """``assertLogs`` wants something."""
    import logging

    logging.getLogger("paceline").error("skipped")


if __name__ == "__main__":
    unittest.main()
