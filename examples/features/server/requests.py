"""A server refuses requests while it works on too many; those that it admits are answered later, by another thread.

feature: server/requests
prints:
    the second client gets: busy
    the first client gets: done
    1 answered, 1 refused as busy, 0 in work
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


def answer(conn: Conn, admission: Admission) -> None:
    with admission:  # it is answered at the end
        conn.write(b"done\n")


with paceline.Pool() as pool:
    with paceline.Server(pool, "127.0.0.1:0", Handler, max_requests=1, busy=b"busy\n") as server:
        host, _, port = server.addresses[0].rpartition(":")
        first = socket.create_connection((host, int(port)), 60)
        second = socket.create_connection((host, int(port)), 60)
        with first, second:
            first.sendall(b"?")
            request = admitted.get(timeout=60)
            second.sendall(b"?")
            print("the second client gets:", second.recv(64).decode().strip())
            pool.post(answer, *request)
            print("the first client gets:", first.recv(64).decode().strip())
        server.drain(60)
        stats = server.stats()
        print(f"{stats.answered} answered, {stats.busy} refused as busy, {stats.in_work} in work")
