"""Queues: bytes come back exactly, in order, once, and every refusal is typed."""

from __future__ import annotations

import asyncio
import pickle
import queue
import select
import threading
import unittest

import paceline
from support import Case


class Queues(Case):
    def test_bytes_come_back_exactly(self) -> None:
        payloads = [b"", b"\0", b"abc", b"\0\0\0", bytes(range(255)), b"x" * 255]
        pipe = paceline.Queue(8, 255)
        self.assertEqual(pipe.push_batch(payloads), len(payloads))
        self.assertEqual(pipe.pop_batch(), payloads)
        for given in (bytearray(b"ab"), memoryview(b"cd"), b"ef"):
            pipe.push(given)
        self.assertEqual([pipe.pop() for _ in range(3)], [b"ab", b"cd", b"ef"])

    def test_long_payloads_come_back_exactly(self) -> None:
        lengths = (0, 1, 255, 256, 257, 65535, 65536)
        payloads = [bytes((length % 251,)) * length for length in lengths]
        for most in (256, 65536):
            fitting = [payload for payload in payloads if len(payload) <= most]
            pipe = paceline.Queue(8, most)
            self.assertEqual(pipe.push_batch(fitting), len(fitting))
            self.assertEqual(pipe.pop(), b"")
            self.assertEqual(pipe.pop_batch(100), fitting[1:])
            with self.assertRaises(queue.Empty):
                pipe.pop_batch(100, 0)
            with self.assertRaises(paceline.InvalidError):
                pipe.push(b"x" * (most + 1))

    def test_bounds(self) -> None:
        pipe = paceline.Queue(2, 4)
        with self.assertRaises(paceline.InvalidError) as told:
            pipe.push(b"12345")
        self.assertIsInstance(told.exception, ValueError)
        self.assertIn("5 bytes; allowed: 4", str(told.exception))
        for wrong in ((0, 4), (-1, 4), (4, 0), (4, 65537)):
            with self.assertRaises(ValueError):
                paceline.Queue(*wrong)
        with self.assertRaises(ValueError):
            pipe.pop_batch(0)
        with self.assertRaises(TypeError):
            pipe.push("text")  # type: ignore[arg-type]
        self.assertEqual(pipe.push_batch([b"1", b"2", b"3"]), 2)
        self.assertEqual((len(pipe), pipe.capacity, pipe.max_payload), (2, 2, 4))

    def test_full_and_empty_are_the_standard_ones(self) -> None:
        pipe = paceline.Queue(1, 4)
        for timeout, late in ((0, False), (0.01, True)):
            with self.assertRaises(queue.Empty) as empty:
                pipe.pop(timeout)
            self.assertEqual(isinstance(empty.exception, TimeoutError), late)
        for _ in range(pipe.capacity):
            pipe.push(b"1")
        for timeout, late in ((0, False), (0.01, True)):
            with self.assertRaises(queue.Full) as full:
                pipe.push(b"2", timeout)
            self.assertEqual(isinstance(full.exception, TimeoutError), late)
        self.assertIsInstance(full.exception, paceline.Error)

    def test_closing(self) -> None:
        pipe = paceline.Queue(4)
        pipe.push(b"last")
        pipe.close()
        pipe.close()
        self.assertTrue(pipe.closed)
        with self.assertRaises(paceline.ShutDownError):
            pipe.push(b"late")
        with self.assertRaises(paceline.ShutDownError):
            pipe.push_batch([b"late"])
        self.assertEqual(pipe.pop(), b"last")
        with self.assertRaises(RuntimeError):
            pipe.pop()

    def test_closing_wakes_who_waits(self) -> None:
        pipe = paceline.Queue(4)
        raised: list[BaseException] = []

        def wait() -> None:
            try:
                pipe.pop()
            except paceline.ShutDownError as error:
                raised.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        pipe.close()
        for thread in threads:
            thread.join()
        self.assertEqual(len(raised), 3)

    def test_nothing_is_lost_or_doubled(self) -> None:
        """Four producers, three consumers, one by one and in batches, through a small queue."""
        each, producers = 2000, 4
        pipe = paceline.Queue(64, 8)
        got: list[bytes] = []

        def produce(producer: int) -> None:
            for number in range(0, each, 4):
                batch = [b"%d %d" % (producer, number + step) for step in range(4)]
                done = pipe.push_batch(batch)
                for payload in batch[done:]:
                    pipe.push(payload)

        def consume() -> None:
            while True:
                try:
                    got.extend(pipe.pop_batch(16))
                except paceline.ShutDownError:
                    return

        consumers = [threading.Thread(target=consume) for _ in range(3)]
        makers = [threading.Thread(target=produce, args=(number,)) for number in range(producers)]
        for thread in (*consumers, *makers):
            thread.start()
        for thread in makers:
            thread.join()
        pipe.close()
        for thread in consumers:
            thread.join()
        everything = [b"%d %d" % (producer, n) for producer in range(producers) for n in range(each)]
        self.assertEqual(sorted(got), sorted(everything))

    def test_the_descriptor_tells(self) -> None:
        pipe = paceline.Queue(4)

        def readable() -> bool:
            return bool(select.select([pipe], [], [], 0)[0])

        self.assertFalse(readable())
        pipe.push(b"1")
        self.assertTrue(readable())
        pipe.pop()
        with self.assertRaises(paceline.Empty):
            pipe.pop(0)
        self.assertFalse(readable())
        pipe.close()
        self.assertTrue(readable())

    def test_asyncio(self) -> None:
        pipe = paceline.Queue(16)
        count = 500

        async def consume() -> list[bytes]:
            return [payload async for payload in pipe]

        def produce() -> None:
            for number in range(count):
                pipe.push(b"%d" % number)
            pipe.close()

        async def main() -> list[list[bytes]]:
            consumers = [asyncio.create_task(consume()) for _ in range(3)]
            cancelled = asyncio.create_task(consume())
            await asyncio.sleep(0)
            cancelled.cancel()
            thread = threading.Thread(target=produce)
            thread.start()
            lists = await asyncio.gather(*consumers)
            thread.join()
            return lists

        got = sorted(payload for each in asyncio.run(main()) for payload in each)
        self.assertEqual(got, sorted(b"%d" % number for number in range(count)))
        self.assertEqual(pipe._loops, {})

    def test_it_refuses_to_be_pickled(self) -> None:
        with self.assertRaisesRegex(TypeError, "cannot pickle a paceline.Queue"):
            pickle.dumps(paceline.Queue())


if __name__ == "__main__":
    unittest.main()
