"""Writing never blocks: what a slow reader has not taken waits in a bounded queue, and a hook is called when there is
room. The peer may finish sending and still read.

feature: server/output
prints:
    the output is full, and the handler waits for room
    the peer has read 300 chunks of 65536 bytes
"""

import socket
import threading

import paceline
from paceline import Conn, WriteStatus

CHUNK, CHUNKS = 65536, 300
is_full = threading.Event()


class Handler(paceline.ConnHandler):
    def __init__(self, conn: Conn) -> None:
        self.left = CHUNKS

    def write_on(self, conn: Conn) -> None:
        wrote = WriteStatus.SENT
        while self.left > 0 and wrote != WriteStatus.ABOVE_HIGH_MARK:
            wrote = conn.write(bytes(CHUNK))
            self.left -= 1
        if self.left > 0:
            is_full.set()
        else:
            conn.close()  # when all is sent

    def data(self, conn: Conn, data: bytes) -> None:
        self.write_on(conn)

    def writable(self, conn: Conn) -> None:
        self.write_on(conn)


with paceline.Pool() as pool:
    marks = (1 << 16, 1 << 18, 1 << 20)
    # Half open: a connection stays though its peer has finished sending.
    server = paceline.Server(pool, "127.0.0.1:0", Handler, output_marks=marks, allow_half_open=True)
    with server:
        host, _, port = server.addresses[0].rpartition(":")
        with socket.create_connection((host, int(port)), 60) as peer:
            peer.sendall(b"!")
            peer.shutdown(socket.SHUT_WR)
            if is_full.wait(60):  # the peer reads nothing until then
                print("the output is full, and the handler waits for room")
            total = 0
            while data := peer.recv(CHUNK):
                total += len(data)
            print("the peer has read", total // CHUNK, "chunks of", CHUNK, "bytes")
