"""Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.

feature: server/limits
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
        with connect(small) as first:
            first.sendall(b"hello")
            assert first.recv(64) == b"hello"
            with connect(small) as second:
                assert second.recv(64) == b"too many\n"
                assert second.recv(64) == b""  # the end
        small.drain(60)  # the counters are exact at rest
        assert small.stats().turned_away == 1

        with connect(strict) as silent:
            assert silent.recv(64) == b""  # it says nothing, and is closed
        strict.drain(60)
        stats = strict.stats()
        assert stats.closed[Reason.TIMED_OUT] == 1 and stats.balances
