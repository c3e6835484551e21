"""Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.

feature: server/limits
"""

import socket

import paceline
from paceline import Conn, Reason


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


limits = {"max_connections": 1, "refusal": b"too many\n", "idle_timeout": 0.2}
with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Echo, **limits) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as first:
        first.sendall(b"hello")
        assert first.recv(64) == b"hello"
        with socket.create_connection((host, int(port)), 60) as second:
            assert second.recv(64) == b"too many\n"
            assert second.recv(64) == b""  # the end
        assert first.recv(64) == b""  # it says nothing, and is closed
    server.drain(60)
    stats = server.stats()
    assert stats.turned_away == 1 and stats.closed[Reason.TIMED_OUT] == 1 and stats.balances
