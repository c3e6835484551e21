"""A server that has no descriptors left stops accepting, logs a warning, and goes on when there are some again.

feature: server/exhausted
prints:
    warn: accept.paused, Too many open files (os error 24)
    the server answers hello
"""

import queue
import resource
import socket

import paceline
from paceline import Conn, LogRecord


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        conn.write(data)


records: "queue.Queue[LogRecord]" = queue.Queue()
log = paceline.Log(levels="warn", callback=records.put, logger=False)
with paceline.Pool(log=log) as pool, paceline.Server(pool, "127.0.0.1:0", Echo) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.socket() as peer:
        peer.settimeout(60)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (peer.fileno() + 1, hard))  # all are in use
        peer.connect((host, int(port)))  # the kernel has it, but the server cannot accept it
        peer.sendall(b"hello")
        record = records.get(timeout=60)
        print(f"{record.level}: {record.event}, {record.message}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        print("the server answers", peer.recv(64).decode())
log.close(60)
