"""A server uses sockets that systemd has opened for it. Here the program stands for systemd, too.

feature: server/inherited
prints:
    inherited: a socket with the name echo
    the server answers hello
"""

import os
import socket

import paceline
from paceline import Conn


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


# What systemd does: a socket that listens becomes descriptor 3 of the program.
listener = socket.create_server(("127.0.0.1", 0))
if listener.fileno() == 3:
    listener.detach()
else:
    os.dup2(listener.fileno(), 3)
    listener.close()
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="echo")

(found,) = paceline.inherited()
print("inherited: a socket with the name", found.name)
with paceline.Pool() as pool, paceline.Server(pool, found, Echo) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer:
        peer.sendall(b"hello")
        print("the server answers", peer.recv(64).decode())
