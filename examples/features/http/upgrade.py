"""A request may change the protocol of its connection, which has another handler from then on.

feature: http/upgrade
prints:
    HTTP/1.1 101 Switching Protocols
    the echo answers hello
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
        request.upgrade("echo", Echo)

    with http:
        host, _, port = http.addresses[0].rpartition(":")
        with socket.create_connection((host, int(port)), 60) as peer, peer.makefile() as lines:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            print(lines.readline().strip())
            while lines.readline().strip():
                pass  # the rest of the head, which ends with an empty line
            peer.sendall(b"hello\n")
            print("the echo answers", lines.readline().strip())
