"""A server with a TCP and a Unix listener, and with a handler object for each connection.

feature: server/handlers
"""

import os
import queue
import socket

import paceline
from paceline import Conn, Reason

closed: "queue.Queue[Reason]" = queue.Queue()


class Count(paceline.ConnHandler):
    def __init__(self, conn: Conn) -> None:
        self.count = 0

    def open(self, conn: Conn) -> None:
        conn.write(b"hello\n")  # to return bytes is to refuse the connection with them

    def data(self, conn: Conn, data: bytes) -> None:
        """Answers each byte with the number of bytes so far."""
        self.count += len(data)
        conn.write(b"%d\n" % self.count)

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        closed.put(reason)


name = f"handlers-{os.getpid()}"
with paceline.Pool() as pool:
    with paceline.Server(pool, ["127.0.0.1:0", f"unix:@{name}"], Count, threads=2) as server:
        host, _, port = server.addresses[0].rpartition(":")
        one = socket.create_connection((host, int(port)), 60)
        other = socket.socket(socket.AF_UNIX)
        other.settimeout(60)
        other.connect(f"\0{name}")
        assert one.recv(6) == b"hello\n" and other.recv(6) == b"hello\n"
        one.sendall(b"abc")
        assert one.recv(2) == b"3\n"
        other.sendall(b"x")
        assert other.recv(2) == b"1\n"
        one.close()
        other.close()
        assert [closed.get(timeout=60) for _ in range(2)] == [Reason.PEER] * 2
