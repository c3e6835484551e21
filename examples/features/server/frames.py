"""A message in a stream ends at a delimiter, has its length in front, or has a fixed length.

feature: server/frames
prints:
    + one
    + two
    + three
    with its length in front: b'abc', 5 bytes in all
    of a fixed length: b'abc'
"""

import socket

import paceline
from paceline import Conn


class Lines(paceline.ConnHandler):
    def __init__(self, conn: Conn) -> None:
        self.line = paceline.Delimited(b"\n", max=1024)

    def data(self, conn: Conn, data: bytes) -> int:
        """Answers each whole line with a + in front, and leaves a part of a line for the next call."""
        consumed = 0
        while frame := self.line.next(data, consumed):
            conn.write(b"+ " + frame.body + b"\n")
            consumed += frame.length
        return consumed


with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Lines) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer, peer.makefile() as answers:
        peer.sendall(b"one\ntwo\nthr")
        print(answers.readline() + answers.readline(), end="")
        peer.sendall(b"ee\n")
        print(answers.readline(), end="")

frame = paceline.LengthPrefixed(2, max=1024).next(b"\0\3abcd")  # two bytes of length
if frame is not None:  # None: more bytes are needed
    print(f"with its length in front: {frame.body!r}, {frame.length} bytes in all")
frame = paceline.FixedLength(3).next(b"abcd")
if frame is not None:
    print(f"of a fixed length: {frame.body!r}")
