"""Where a message ends: the same, wherever a stream is cut."""

from __future__ import annotations

import random
import socket
import unittest
from collections.abc import Callable, Iterable
from typing import Any, Optional

import paceline
from paceline import Conn, ConnHandler, Delimited, FixedLength, Frame, Full, LengthPrefixed, Pool, Server
from support import Case

Next = Callable[[bytes, int], Optional[Frame]]


def bodies(stream: bytes, cuts: Iterable[int], next: Next) -> list[bytes]:
    """What a connection's ``data`` finds when the stream comes in these pieces."""
    found, begin = [], 0
    for end in [*cuts, len(stream)]:
        # What was not consumed is shown again, followed by more.
        data, start = stream[begin:end], 0
        while (frame := next(data, start)) is not None:
            found.append(frame.body)
            start += frame.length
        begin += start
    assert begin == len(stream), "everything is consumed"
    return found


class Framing(Case):
    def cut_everywhere(self, stream: bytes, make: Callable[[], Any], messages: list[bytes]) -> None:
        """Whole; in two, at every byte; byte by byte; and at random."""
        places = range(len(stream) + 1)
        several = [sorted(random.choices(places, k=random.randrange(6))) for _ in range(5)]
        for cuts in [[], *([place] for place in places), list(places), *several]:
            self.assertEqual(bodies(stream, cuts, make().next), messages, (stream, cuts))

    def test_messages_do_not_depend_on_cuts(self) -> None:
        for _ in range(60):
            # Of few letters, so that beginnings of delimiters are everywhere.
            count = random.randrange(6)
            messages = [bytes(random.choices(b"abc", k=random.randrange(9))) for _ in range(count)]
            for delimiter in (b"|", b"\r\n", b"aab|", b"||||"):
                stream = b"".join(message + delimiter for message in messages)
                expected = stream.split(delimiter)[:-1]
                self.cut_everywhere(stream, lambda: Delimited(delimiter, 20), expected)
            for width in range(1, 9):
                frame = LengthPrefixed(width, 9)
                stream = b"".join(frame.prefix(len(message)) + message for message in messages)
                self.cut_everywhere(stream, lambda: frame, messages)
            length = random.randrange(1, 5)
            stream = b"".join(messages)
            stream = stream[: len(stream) // length * length]
            expected = [stream[place : place + length] for place in range(0, len(stream), length)]
            self.cut_everywhere(stream, lambda: FixedLength(length), expected)

    def test_the_maximum_is_exact(self) -> None:
        for size in range(7):
            line = b"x" * size + b"\r\n"
            for cut in range(len(line) + 1):
                frame = Delimited(b"\r\n", 4)
                if size <= 4:
                    self.assertEqual(bodies(line, [cut], frame.next), [b"x" * size])
                else:
                    with self.assertRaises(Full) as raised:
                        bodies(line, [cut], frame.next)
                    self.assertIn("4", str(raised.exception))
        frame = Delimited(b"\n", 4)
        self.assertIsNone(frame.next(b"xxxx"))
        # No delimiter can save it.
        self.assertRaises(Full, frame.next, b"xxxxx")
        # What is behind the message in front has its own maximum.
        self.assertEqual(Delimited(b"\n", 1).next(b"a\nbbbbb"), (b"a", 2))
        self.assertEqual(Delimited(b"\n", 0).next(b"\n"), (b"", 1))
        prefixed = LengthPrefixed(2, 300)
        self.assertRaises(Full, prefixed.next, b"\x01\x2d")
        self.assertIsNone(prefixed.next(b"\x01\x2c"))
        self.assertEqual(prefixed.prefix(300), b"\x01\x2c")
        self.assertRaises(Full, LengthPrefixed(8, 1).next, b"\xff" * 8)
        for given, length in ((prefixed, 301), (LengthPrefixed(1, 300), 256), (prefixed, -1)):
            self.assertRaises(paceline.InvalidError, given.prefix, length)

    def test_nothing_is_searched_twice(self) -> None:
        """Goal: a message that comes byte by byte costs time with its length. Method: what was searched is
        changed behind its back, to have a delimiter, which is not found."""
        frame = Delimited(b"\r\n", 100)
        self.assertIsNone(frame.next(b"abcd\r"))
        self.assertEqual(frame.next(b"\r\ncd\r\n"), (b"\r\ncd", 6))
        # The message behind it is searched from its beginning.
        self.assertEqual(frame.next(b"\r\n"), (b"", 2))

    def test_arguments_out_of_range_are_named(self) -> None:
        for made, name in (
            (lambda: Delimited(b"", 1), "delimiter"),
            (lambda: Delimited(b"x", -1), "max"),
            (lambda: FixedLength(0), "length"),
            (lambda: LengthPrefixed(0, 1), "width"),
            (lambda: LengthPrefixed(9, 1), "width"),
            (lambda: LengthPrefixed(1, -1), "max"),
            (lambda: FixedLength(1).next(b"ab", 3), "start"),
            (lambda: Delimited(b"x", 1).next(b"ab", -1), "start"),
        ):
            with self.assertRaises(paceline.InvalidError) as raised:
                made()
            self.assertTrue(str(raised.exception).startswith(f"{name} is "), raised.exception)

    def test_on_a_connection(self) -> None:
        class Upper(ConnHandler):
            def __init__(self, conn: Conn) -> None:
                self.frame = Delimited(b"\r\n", 100)

            def data(self, conn: Conn, data: bytes) -> int:
                start = 0
                while (frame := self.frame.next(data, start)) is not None:
                    conn.write_vectored([frame.body.upper(), b"!"])
                    start += frame.length
                return start

        with Pool(2) as pool, Server(pool, "127.0.0.1:0", Upper) as server:
            host, _, port = server.addresses[0].rpartition(":")
            with socket.create_connection((host, int(port)), 60) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in b"one\r\ntwo\r\n\r\nthree\r\nrest":
                    client.sendall(bytes([byte]))
                client.shutdown(socket.SHUT_WR)
                got = b""
                while more := client.recv(100):
                    got += more
        self.assertEqual(got, b"ONE!TWO!!THREE!")


if __name__ == "__main__":
    unittest.main()
