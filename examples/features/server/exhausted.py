"""Without descriptors to spare a server stops accepting for a moment, counts that, and goes on when there are some.

feature: server/exhausted
"""

import resource
import socket
import time

import paceline
from paceline import Conn


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


paceline.quiet()  # no line on the standard error stream
with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Echo) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.socket() as peer:
        peer.settimeout(60)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (peer.fileno() + 1, hard))  # all are in use
        peer.connect((host, int(port)))  # the kernel has it, but the server cannot accept it
        peer.sendall(b"hello")
        while server.stats().exhausted == 0:
            time.sleep(0.001)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert peer.recv(64) == b"hello"
