"""A server listens on TCP and Unix sockets, and makes a handler object for each connection.

feature: server/handlers
prints:
    TCP: hello, 3 bytes so far
    Unix: hello, 3 bytes so far
    closed: PEER PEER
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
        self.count += len(data)
        conn.write(b"%d bytes so far\n" % self.count)

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        closed.put(reason)


name = f"handlers-{os.getpid()}"
with paceline.Pool() as pool:
    with paceline.Server(pool, ["127.0.0.1:0", f"unix:@{name}"], Count, threads=2) as server:
        host, _, port = server.addresses[0].rpartition(":")
        tcp = socket.create_connection((host, int(port)), 60)
        unix = socket.socket(socket.AF_UNIX)
        unix.settimeout(60)
        unix.connect(f"\0{name}")
        for listener, peer in (("TCP", tcp), ("Unix", unix)):
            with peer, peer.makefile() as lines:
                hello = lines.readline().strip()
                peer.sendall(b"abc")
                print(f"{listener}: {hello}, {lines.readline().strip()}")
        print("closed:", *(closed.get(timeout=60).name for _ in range(2)))
