"""A graceful end: no new connections, what has arrived is answered, and connections hear of it. What remains is cut off.

feature: server/drain
"""

import socket

import paceline
from paceline import Conn


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)

    def draining(self, conn: Conn) -> None:
        conn.write(b"bye\n")


with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Echo) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer:
        peer.sendall(b"hello")
        assert peer.recv(64) == b"hello"
        report = server.drain(60)
        assert report.drained and report.cut_off == 0
        assert peer.recv(64) == b"bye\n" and peer.recv(64) == b""
