"""A change of protocol: after a request the connection has a handler of its own.

feature: http/upgrade
"""

import socket

import paceline
from paceline import Conn, Request


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def upgrade(request: Request) -> None:
        assert request.header("Upgrade") == "echo"
        request.upgrade("echo", Echo)

    with http:
        host, _, port = http.addresses[0].rpartition(":")
        with socket.create_connection((host, int(port)), 60) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            head = b""
            while b"\r\n\r\n" not in head:
                head += peer.recv(1)
            assert head.startswith(b"HTTP/1.1 101 ")
            peer.sendall(b"hello")
            assert peer.recv(64) == b"hello"
