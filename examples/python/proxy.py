"""A TCP proxy: whoever connects here talks to whoever listens there: what examples/proxy does, in
Python.

    python examples/python/proxy.py --listen 127.0.0.1:7000 --to 127.0.0.1:80

A stream is two connections, and what the one reads is written to the other. If not all of it is with
the kernel, the reader pauses until all of it is: so each direction has a back-pressure of its own, and no more
than two reads, of 64 KiB each, wait here. An end is passed on as what it was.

feature: server/connect
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import Optional

import paceline
from paceline import Conn, ConnHandler, Pool, Reason, Server

#: How long streams may go on after an interrupt. Seconds.
DRAIN = 10


class End(ConnHandler):
    """One of a stream's two connections."""

    def __init__(self, conn: Conn) -> None:
        self.conn = conn
        self.other: Optional[End] = None
        self.finished_reading = False
        #: Writes that the kernel does not have yet. One host thread, so nobody else counts.
        self.unwritten = 0

    def data(self, conn: Conn, data: bytes) -> None:
        other = self.peer()
        try:
            # Paused first: it may have been sent before this goes on.
            conn.pause()
            other.unwritten += 1
            other.conn.write_tracked(data, 0)
        except (paceline.StaleError, paceline.Full):
            conn.abort()

    def written(self, conn: Conn, token: int) -> None:
        """The kernel has what the other end has read: when that is all, it may go on. What was read ahead
        before the pause comes still, so it may be two."""
        self.unwritten -= 1
        if self.unwritten:
            return
        try:
            self.peer().conn.resume()
        except paceline.StaleError:
            pass

    def finished(self, conn: Conn) -> None:
        self.finished_reading = True
        other = self.peer()
        if other.finished_reading:
            # Both directions have ended.
            conn.close()
            other.conn.close()
        else:
            try:
                other.conn.shutdown_write()
            except paceline.StaleError:
                conn.abort()

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        if reason not in (Reason.PEER, Reason.LOCAL, Reason.DRAINED):
            self.peer().conn.abort()

    def peer(self) -> End:
        assert self.other is not None
        return self.other


class Client(End):
    """Who has connected here."""

    server: Server
    to: str

    def open(self, conn: Conn) -> Optional[bytes]:
        try:
            upstream = self.server.connect(self.to, lambda conn: Upstream(conn, self))
        except (OSError, paceline.Full, paceline.ShutDownError) as error:
            print(error, file=sys.stderr)
            conn.abort()
            return None
        # Its handler is made with its first event, which may be later than ours.
        upstream.handler = upstream.handler or Upstream(upstream, self)
        return None

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        if self.other is not None:
            super().close(conn, reason, detail)


class Upstream(End):
    """Whom the proxy has connected to."""

    def __init__(self, conn: Conn, client: Client) -> None:
        super().__init__(conn)
        if client.other is None:
            client.other = self
        self.other = client

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        if reason in (Reason.FAILED, Reason.TIMED_OUT):
            print(f"{Client.to}: {reason.name.lower()}", file=sys.stderr)
        super().close(conn, reason, detail)


def main() -> None:
    parser = argparse.ArgumentParser(description="A TCP proxy.")
    parser.add_argument("--listen", required=True, help="where: 127.0.0.1:7000, *:7000, unix:/run/proxy")
    parser.add_argument("--to", required=True, help="whom to connect to, written alike")
    options = parser.parse_args()
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    signal.signal(signal.SIGTERM, lambda *_: interrupted.set())
    Client.to = options.to
    with Pool(1) as pool:
        # Each direction of a stream ends by itself.
        with Server(pool, options.listen, Client, allow_half_open=True) as server:
            Client.server = server
            print("listening on", server.addresses[0], flush=True)
            interrupted.wait()
            server.drain(DRAIN)
            streams = server.stats().accepted
    print(f"{streams} streams")


if __name__ == "__main__":
    main()
