"""Output never blocks: what a slow reader has not taken waits in a bounded queue, and the hook hears when there is room.
The peer may finish sending, and still read.

feature: server/output
"""

import socket
import time

import paceline
from paceline import Conn, WriteStatus

CHUNK, CHUNKS = 65536, 300


class Handler(paceline.ConnHandler):
    def __init__(self, conn: Conn) -> None:
        self.left = CHUNKS

    def write_on(self, conn: Conn) -> None:
        wrote = WriteStatus.SENT
        while self.left > 0 and wrote != WriteStatus.ABOVE_HIGH_MARK:
            wrote = conn.write(bytes(CHUNK))
            self.left -= 1

    def data(self, conn: Conn, data: bytes) -> None:
        self.write_on(conn)
        assert self.left > 0  # more than the buffers of the kernel and the queue hold

    def writable(self, conn: Conn) -> None:
        self.write_on(conn)
        if self.left == 0:
            conn.close()  # when all is sent


settings = {
    "output_marks": (1 << 16, 1 << 18, 1 << 20),
    "allow_half_open": True,  # stays open though the peer has finished sending
}
with paceline.Pool() as pool, paceline.Server(pool, "127.0.0.1:0", Handler, **settings) as server:
    host, _, port = server.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer:
        peer.sendall(b"!")
        peer.shutdown(socket.SHUT_WR)
        time.sleep(0.01)  # reads nothing for a while
        total = 0
        while data := peer.recv(CHUNK):
            total += len(data)
    assert total == CHUNK * CHUNKS
