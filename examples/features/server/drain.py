"""A server that drains takes no new connections, answers what has arrived, tells its connections, and cuts off those
that are left when the time is over.

feature: server/drain
prints:
    hello
    cut off: 0
    bye
    the server has closed the connection
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
    with socket.create_connection((host, int(port)), 60) as peer, peer.makefile() as lines:
        peer.sendall(b"hello\n")
        print(lines.readline().strip())
        print("cut off:", server.drain(60).cut_off)
        for line in lines:  # until the end
            print(line.strip())
        print("the server has closed the connection")
