"""Native objects are freed by name, on each path: nothing here is collected, and what a traceback holds is kept."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import socket
import threading
import unittest
import unittest.mock
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import paceline
from paceline import ConnHandler, Http, Hub, Log, Pool, Server, Udp, WorkerPool
from paceline import _layout as layout
from paceline._library import lib, quick
from paceline._native import Native, NativePool, pool_config
from support import Case


@contextlib.contextmanager
def natives() -> Iterator[list[Native]]:
    """The native objects that are made inside. The list keeps them, so what is freed was freed by name."""
    made: list[Native] = []
    init = Native.__init__

    def noted(self: Native, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    with unittest.mock.patch.object(Native, "__init__", noted):
        yield made


@contextlib.contextmanager
def fails(library: Any, name: str) -> Iterator[None]:
    """A function of the library refuses each call."""
    with unittest.mock.patch.object(library, name, lambda *_: layout.EINVAL):
        yield


@contextlib.contextmanager
def no_threads(suffix: str) -> Iterator[None]:
    """There are no more threads for those whose names end so."""
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name.endswith(suffix):
            raise RuntimeError("can't start new thread")
        start(self)

    with unittest.mock.patch.object(threading.Thread, "start", refuse):
        yield


class Uncollected(Case):
    """Nothing is collected, and what was raised is kept."""

    def setUp(self) -> None:
        super().setUp()
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)

    def raised(self, call: Callable[[], object]) -> BaseException:
        try:
            call()
        except BaseException as raised:
            return raised
        self.fail("nothing was raised")

    def assert_freed(self, made: list[Native], least: int = 1) -> None:
        self.assertGreaterEqual(len(made), least)
        self.assertEqual([each for each in made if each.pointer.value is not None], [])


class Constructors(Uncollected):
    def test_one_that_fails_frees_what_it_has_made(self) -> None:
        with socket.socket() as taken, socket.socket(type=socket.SOCK_DGRAM) as bound:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            bound.bind(("127.0.0.1", 0))
            stream, datagrams = (f"127.0.0.1:{each.getsockname()[1]}" for each in (taken, bound))
            cases: list[tuple[Any, Callable[[], object]]] = [
                (contextlib.nullcontext(), lambda: Server(self.pool, stream, ConnHandler)),
                (contextlib.nullcontext(), lambda: Udp(self.pool, print, datagrams)),
                (fails(lib, "pace_http_new"), lambda: Http(self.pool, "127.0.0.1:0")),
                (fails(lib, "pace_workers_new"), lambda: WorkerPool(self.pool)),
                (fails(quick, "pace_cq_workers"), lambda: WorkerPool(self.pool)),
                (fails(quick, "pace_cq_log"), lambda: Log(callback=print)),
                (no_threads("paceline_log"), lambda: Log(callback=print)),
                (fails(lib, "pace_cq_new"), lambda: NativePool(1, pool_config())),
            ]
            for number, (failing, make) in enumerate(cases):
                with self.subTest(number), natives() as made:
                    with failing:
                        kept = self.raised(make)
                    self.assert_freed(made)
                    del kept

    def test_a_mailbox_that_cannot_be_pulled_is_not_subscribed(self) -> None:
        with Hub(self.pool) as hub:
            with unittest.mock.patch(
                "paceline._mailbox.queue_of", side_effect=paceline.OsError(24, "none")
            ):
                kept = self.raised(lambda: hub.mailbox("a"))
            self.assertIsInstance(kept, paceline.OsError)
            self.assertEqual(hub.publish("a").matched, 0)

    def test_a_bridge_whose_rules_are_wrong(self) -> None:
        with Hub(self.pool) as hub, natives() as made:
            kept = self.raised(lambda: paceline.Bridge(hub, "nats://127.0.0.1:1", exports=["a..b"]))
            if isinstance(kept, paceline.UnsupportedError):
                self.skipTest("the library has no bridges")
            self.assertIsInstance(kept, paceline.InvalidError)
            self.assert_freed([each for each in made if each.pointer is not hub._core.native.pointer])


class Others(Uncollected):
    def test_the_end_of_a_recording(self) -> None:
        self.pool.submit(int).result()
        with natives() as made:
            self.pool.trace(0.001)
        self.assert_freed(made)

    def test_a_pool_that_is_lost_is_freed(self) -> None:
        freed: list[int] = []
        with unittest.mock.patch.object(lib, "pace_pool_free", lambda own: freed.append(own.value)):
            native = NativePool(1, pool_config())
            pointer = native.pointer.value
            del native
        self.assertEqual(freed, [pointer])
        lib.pace_pool_free(ctypes.c_void_p(pointer))

    def test_a_refused_task_is_lost_at_once(self) -> None:
        """Goal: what was to be submitted goes with the exception. Method: no room, and a weak reference."""

        class Given:
            pass

        workers = WorkerPool(self.pool, threads=1, max_queued=1)
        self.addCleanup(workers.shutdown, 0, 1)
        entered, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        @workers.task
        def hold(given: object) -> None:
            entered.set()
            go_on.wait()

        tasks = [hold.submit(None)]
        entered.wait()
        for submit in (hold.submit, lambda given: hold.submit_batch([given])):
            given = Given()
            gone = weakref.ref(given)
            for _ in range(8):
                try:
                    submit(given)
                except paceline.Full:
                    break
                given = Given()
                gone = weakref.ref(given)
            else:
                self.fail("there is always room")
            del given
            self.assertIsNone(gone())
        del tasks

    def test_a_request_of_a_hook_that_has_raised_is_over(self) -> None:
        """Goal: its place is free though the log keeps the traceback. Method: room for one, and two connections."""

        class Failing(ConnHandler):
            def data(self, conn: paceline.Conn, data: bytes) -> None:
                admission = conn.admit()
                raise ValueError("not this one" if admission else "no room")

        with self.assertLogs("paceline") as kept:
            with Server(self.pool, "127.0.0.1:0", Failing, max_requests=1, busy=b"busy") as server:
                host, port = server.addresses[0].rsplit(":", 1)
                for _ in range(2):
                    with socket.create_connection((host, int(port))) as peer:
                        peer.sendall(b"x")
                        with contextlib.suppress(ConnectionError):
                            self.assertEqual(peer.recv(16), b"")
                self.until(lambda: server.stats().requests_aborted == 2)
                self.assertEqual(server.stats().in_work, 0)
        raised = [record.exc_info[1] for record in kept.records if record.exc_info]
        self.assertEqual([str(each) for each in raised], ["not this one"] * 2)


if __name__ == "__main__":
    unittest.main()
