"""A server refuses connections beyond a maximum, with a message, and closes those that are idle.

feature: server/limits
prints:
    the first connection is answered: hello
    the second one is refused: too many
    turned away: 1
    timed out: 1
"""

import socket

import paceline
from paceline import Conn, Reason


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


def connect(server: paceline.Server) -> socket.socket:
    host, _, port = server.addresses[0].rpartition(":")
    return socket.create_connection((host, int(port)), 60)


with paceline.Pool() as pool:
    small = paceline.Server(pool, "127.0.0.1:0", Echo, max_connections=1, refusal=b"too many\n")
    strict = paceline.Server(pool, "127.0.0.1:0", Echo, idle_timeout=0.02)
    with small, strict:
        with connect(small) as first, connect(small) as second:
            first.sendall(b"hello")
            print("the first connection is answered:", first.recv(64).decode())
            print("the second one is refused:", second.recv(64).decode().strip())
        small.drain(60)  # the counters are exact at rest
        print("turned away:", small.stats().turned_away)

        with connect(strict) as silent:
            silent.recv(64)  # until the end, as it sends nothing
        strict.drain(60)
        print("timed out:", strict.stats().closed[Reason.TIMED_OUT])
