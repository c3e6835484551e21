"""A bounded number of requests in work, and an answer that comes later from another thread.

feature: server/requests
"""

import queue
import socket

import paceline
from paceline import Admission, Conn

admitted: "queue.Queue[tuple[Conn, Admission]]" = queue.Queue()


class Handler(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        admission = conn.admit()
        if admission is not None:  # else: the busy message is written
            admitted.put((conn, admission))


limits = {"max_requests": 1, "busy": b"busy\n"}
with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Handler, **limits) as server:
    host, _, port = server.addresses[0].rpartition(":")
    first = socket.create_connection((host, int(port)), 60)
    second = socket.create_connection((host, int(port)), 60)
    first.sendall(b"?")
    conn, admission = admitted.get(timeout=60)
    second.sendall(b"?")
    assert second.recv(64) == b"busy\n"

    def answer() -> None:
        conn.write(b"done\n")
        admission.answered()

    pool.post(answer)
    assert first.recv(64) == b"done\n"
    first.close()
    second.close()
    server.drain(60)
    stats = server.stats()
    assert (stats.answered, stats.busy, stats.in_work) == (1, 1, 0)
