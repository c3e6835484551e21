"""``Udp``: datagrams whose handler runs on host threads."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import queue
import socket
import threading
import unittest
from typing import Any

import paceline
from paceline import Datagram, Peer, Pool, Udp, UdpRef
from support import Case, run
from test_hub_failures import ODD, Broken


def nothing(udp: UdpRef, datagrams: list[Datagram]) -> None:
    pass


class Udps(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(2)
        self.addCleanup(self.pool.shutdown)

    def open(self, handler: Any, bind: Any = "127.0.0.1:0", **settings: Any) -> Udp:
        udp = Udp(self.pool, handler, bind, **settings)
        self.addCleanup(udp.close)
        return udp

    def client(self, udp: Udp) -> socket.socket:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(client.close)
        client.settimeout(60)
        peer = Peer(udp.address)
        client.connect((peer.host, peer.port))
        return client

    def test_datagrams_are_answered(self) -> None:
        def shout(udp: UdpRef, datagrams: list[Datagram]) -> None:
            sent = udp.send_batch([(each.data.upper(), each.peer) for each in datagrams])
            self.assertEqual(sent, len(datagrams))

        udp = self.open(shout, max_datagram=10)
        client = self.client(udp)
        for word in (b"one", b"", b"three"):
            client.send(word)
            self.assertEqual(client.recv(100), word.upper())
        client.send(b"x" * 30)
        self.assertEqual(client.recv(100), b"X" * 10)
        # The peer may have its answer before that is counted.
        self.until(lambda: udp.stats().sent == 4)
        stats = udp.stats()
        self.assertEqual((stats.received, stats.received_bytes, stats.truncated), (4, 38, 1))
        self.assertEqual((stats.sent, stats.sent_bytes, stats.dropped), (4, 18, 0))
        self.assertTrue(udp.drain())
        self.assertFalse(udp.is_open)
        with self.assertRaises(paceline.StaleError):
            udp.send(b"late", udp.address)

    def test_order_and_what_a_datagram_tells(self) -> None:
        came: queue.Queue[Datagram] = queue.Queue()
        udp = self.open(lambda _, datagrams: [came.put(each) for each in datagrams] and None)
        client = self.client(udp)
        for number in range(200):
            client.send(str(number).encode())
            self.until(lambda: udp.stats().received == number + 1)
        got = [came.get(timeout=60) for _ in range(200)]
        self.assertEqual([int(each.data) for each in got], list(range(200)))
        host, port = client.getsockname()
        peer = got[0].peer
        self.assertEqual((peer.host, peer.port, str(peer)), (host, port, f"{host}:{port}"))
        self.assertEqual((peer, hash(peer)), (got[1].peer, hash(got[1].peer)))
        self.assertNotEqual(peer, Peer(udp.address))
        self.assertEqual(Peer("[::1]:80").host, "::1")
        self.assertEqual(repr(Peer("[::1]:80")), "Peer('[::1]:80')")
        self.assertFalse(got[0].is_truncated)
        udp.send("back".encode(), peer)
        udp.send(b"and by text", str(peer))
        self.assertEqual((client.recv(100), client.recv(100)), (b"back", b"and by text"))

    def test_a_slow_host_loses_what_is_too_much_and_it_is_counted(self) -> None:
        gate, came = threading.Event(), queue.Queue[int]()

        def slow(udp: UdpRef, datagrams: list[Datagram]) -> None:
            came.put(len(datagrams))
            gate.wait(60)

        udp = self.open(slow, max_waiting=1024)
        client = self.client(udp)
        client.send(b"first")
        self.assertEqual(came.get(timeout=60), 1)
        for number in range(100):
            client.send(bytes(4))
            self.until(lambda: udp.stats().received == number + 2)
        # 132 bytes each: seven are kept.
        self.until(lambda: udp.stats().dropped == 93)
        gate.set()
        self.assertEqual(came.get(timeout=60), 7)

    def test_a_handler_that_raises_is_logged(self) -> None:
        def fails(udp: UdpRef, datagrams: list[Datagram]) -> None:
            if datagrams[0].data == b"bad":
                raise KeyError("on purpose")
            udp.send(b"good", datagrams[0].peer)

        client = self.client(udp := self.open(fails))
        with self.assertLogs("paceline", logging.ERROR) as logs:
            client.send(b"bad")
            self.until(lambda: logs.output)
        self.assertIn("the handler of 1 datagrams has failed", logs.output[0])
        client.send(b"well")
        self.assertEqual(client.recv(100), b"good")
        self.assertTrue(udp.is_open)

    def test_errors_come_to_their_hook(self) -> None:
        errors: queue.Queue[OSError] = queue.Queue()
        gone = self.open(nothing)
        address = gone.address
        gone.close()
        gone.wait()
        udp = self.open(nothing, None, connect=address, on_error=lambda _, error: errors.put(error))
        udp.send(b"?")
        self.assertIsInstance(errors.get(timeout=60), ConnectionRefusedError)

    def test_ends(self) -> None:
        handled = []

        def slow(udp: UdpRef, datagrams: list[Datagram]) -> None:
            handled.extend(datagrams)

        udp = self.open(slow, threads=3)
        client = self.client(udp)
        for number in range(50):
            client.send(b"x")
            self.until(lambda: udp.stats().received == number + 1)
        self.assertTrue(udp.drain(30))
        self.assertEqual(len(handled), 50)
        self.assertTrue(udp.wait(30))
        udp.close()
        # From inside it is a request.
        answers: queue.Queue[bool] = queue.Queue()
        other = self.open(lambda udp, _: answers.put(other.drain(30)))
        self.client(other).send(b"end")
        self.assertFalse(answers.get(timeout=60))
        self.assertTrue(other.wait(30))
        self.assertFalse(other.is_open)

    def test_one_that_is_lost_is_closed(self) -> None:
        udp = self.open_lost()
        gc.collect()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            peer = Peer(udp)

            def free() -> bool:
                try:
                    again.bind((peer.host, peer.port))
                except OSError:
                    return False
                return True

            self.until(free)

    def open_lost(self) -> str:
        return Udp(self.pool, nothing, "127.0.0.1:0").address

    def test_without_host_threads(self) -> None:
        came: list[bytes] = []
        udp = self.open(lambda _, all: came.extend(each.data for each in all), threads=0)
        self.assertEqual(udp.run(), 0)
        self.client(udp).send(b"hello")
        self.until(udp.run)
        self.assertEqual(came, [b"hello"])
        self.client(udp).send(b"last")
        self.until(lambda: udp.stats().received == 2)
        self.assertTrue(udp.drain(30))
        self.assertEqual(came, [b"hello", b"last"])
        with self.assertRaises(paceline.InvalidError):
            self.open(nothing).run()

    def test_in_an_asyncio_loop(self) -> None:
        async def main() -> list[str]:
            loop = asyncio.get_running_loop()
            threads: list[str] = []
            done = loop.create_future()

            def handle(udp: UdpRef, datagrams: list[Datagram]) -> None:
                threads.append(threading.current_thread().name)
                done.set_result(datagrams[0].data)

            async with Udp(self.pool, handle, "127.0.0.1:0", threads=0) as udp:
                self.client(udp).send(b"to the loop")
                self.assertEqual(await asyncio.wait_for(done, 60), b"to the loop")
                self.assertTrue(await udp.adrain(30))
            return threads

        self.assertEqual(asyncio.run(main()), [threading.current_thread().name])

    def test_a_socket_of_ones_own(self) -> None:
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind(("127.0.0.1", 0))
        came: queue.Queue[bytes] = queue.Queue()
        udp = self.open(lambda _, all: came.put(all[0].data), own)
        host, port = own.getsockname()
        own.close()
        self.assertEqual(udp.address, f"{host}:{port}")
        self.client(udp).send(b"here")
        self.assertEqual(came.get(timeout=60), b"here")

    def test_wrong_arguments(self) -> None:
        for settings, named in [
            ({"batch": 0}, "batch"),
            ({"batch": -1}, "batch"),
            ({"max_datagram": 1 << 40}, "max_datagram"),
            ({"max_waiting": 0}, "max_waiting"),
            ({"max_waiting": -5}, "max_waiting"),
            ({"bind": "nowhere"}, "nowhere"),
            ({"bind": None}, "address is missing"),
            ({"bind": "unix:@a"}, "unix:@a"),
            ({"threads": -1}, "threads"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(paceline.InvalidError, named):
                Udp(self.pool, nothing, **{"bind": "127.0.0.1:0", **settings})
        with self.assertRaises(TypeError):
            Udp(self.pool, None, "127.0.0.1:0")  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            Udp(self.pool, nothing, "127.0.0.1:0", colour="red")
        udp = self.open(nothing)
        with self.assertRaises(OSError):
            self.open(nothing, udp.address)
        with self.assertRaisesRegex(paceline.InvalidError, "peer"):
            udp.send(b"to nobody")
        for wrong in ("", "x", "1.2.3.4", "[::1]"):
            with self.assertRaises(paceline.InvalidError):
                Peer(wrong)
        with self.assertRaises(paceline.InvalidError):
            udp.join_multicast("nobody")
        with self.assertRaises(OSError):
            udp.send(bytes(70_000), udp.address)
        self.assertEqual(udp.send_batch([]), 0)
        with self.assertRaises(TypeError):
            pickle.dumps(udp)

    def test_groups(self) -> None:
        came: queue.Queue[bytes] = queue.Queue()
        udp = self.open(lambda _, all: came.put(all[0].data), "0.0.0.0:0")
        try:
            udp.join_multicast("239.255.77.77")
        except OSError as error:
            self.skipTest(f"skipped, because there is no multicast here: {error}")
        udp.leave_multicast("239.255.77.77")
        with self.assertRaises(OSError):
            udp.leave_multicast("239.255.77.77")

    def test_ten_threads_at_once(self) -> None:
        self.switch_often()
        came = []
        udp = self.open(lambda _, all: came.extend(all), threads=2)
        peer = Peer(udp.address)

        def use() -> None:
            for number in range(50):
                udp.send(b"x", peer)
                udp.send_batch([(b"y", peer)] * 2)
                udp.stats(), udp.is_open, udp.address

        threads = [threading.Thread(target=use) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(udp.stats().sent, 1500)
        self.assertTrue(udp.drain(30))
        self.assertEqual(len(came), udp.stats().received)

    def test_a_forked_child(self) -> None:
        udp = self.open(nothing)
        child = os.fork()
        if child == 0:
            answer = 1
            try:
                for call in (udp.stats, udp.run, lambda: udp.send(b"x", "127.0.0.1:9")):
                    try:
                        call()
                    except (paceline.ForkedError, paceline.InvalidError):
                        continue
                    os._exit(2)
                udp.close()
                answer = 0
            finally:
                os._exit(answer)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(udp.is_open)

    def test_the_interpreters_end(self) -> None:
        told = run(
            """
            import socket, threading, paceline
            pool = paceline.Pool(2)
            def handle(udp, datagrams):
                for each in datagrams:
                    udp.send(each.data, each.peer)
            udp = paceline.Udp(pool, handle, "127.0.0.1:0")
            def flood():
                client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                host, port = udp.address.split(":")
                while True:
                    client.sendto(b"x", (host, int(port)))
            threading.Thread(target=flood, daemon=True).start()
            while udp.stats().sent < 100:
                pass
            print("over")
            """
        )
        self.assertEqual((told.returncode, told.stdout), (0, "over\n"), told.stderr)

    def test_whatever_a_handler_raises_the_next_is_handled(self) -> None:
        came: queue.Queue[bytes] = queue.Queue()
        raised: Any = None

        def handle(_: UdpRef, datagrams: list[Datagram]) -> None:
            for each in datagrams:
                came.put(each.data)
            raise raised

        logger, broken = logging.getLogger("paceline"), Broken()
        self.addCleanup(setattr, logger, "propagate", True)
        self.addCleanup(logger.removeHandler, broken)
        logger.addHandler(broken)
        logger.propagate = False
        udp = self.open(handle)
        client = self.client(udp)
        for make in ODD:
            raised = make()
            client.send(b"next")
            self.assertEqual(came.get(timeout=60), b"next")
        self.assertTrue(udp.drain())
        self.assertEqual((udp.stats().received, udp._core.failures), (len(ODD), 0))


if __name__ == "__main__":
    unittest.main()
