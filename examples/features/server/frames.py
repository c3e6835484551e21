"""Where a message ends: at a delimiter, after a length in front of it, or after a fixed length.

feature: server/frames
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
            conn.write(b"+" + frame.body + b"\n")
            consumed += frame.length
        return consumed


with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Lines) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer:
        peer.sendall(b"one\ntwo\nthr")
        assert peer.recv(10, socket.MSG_WAITALL) == b"+one\n+two\n"
        peer.sendall(b"ee\n")
        assert peer.recv(7, socket.MSG_WAITALL) == b"+three\n"

frame = paceline.LengthPrefixed(2, max=1024).next(b"\0\3abcd")  # two bytes of length
assert frame is not None and frame.body == b"abc" and frame.length == 5
frame = paceline.FixedLength(3).next(b"abcd")
assert frame is not None and frame.body == b"abc"
