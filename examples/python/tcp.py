"""A TCP server that echoes, with the limits that a server in production has: 4 threads, 20,000 connections, 120 s without a
byte, 10,000 requests. It ends at SIGTERM or Ctrl-C, and drains first. For 20,000 connections: `ulimit -n 20100`.

    cargo build --release
    export PYTHONPATH=bindings/python/src PACELINE_LIBRARY=target/release/libpaceline.so
    python3 examples/python/tcp.py 127.0.0.1:3333    # without an address: port 3333 of all addresses
    nc 127.0.0.1 3333
"""

import sys

import paceline
from paceline import Conn, Listen


class Echo(paceline.ConnHandler):
    def data(self, conn: Conn, data: bytes) -> None:
        admission = conn.admit()  # one of 10,000; if there is none, the busy message is written
        if admission is not None:
            conn.write(data)
            admission.answered()  # here at once; another thread may do it later


def main() -> None:
    listen = Listen(
        sys.argv[1] if len(sys.argv) > 1 else "*:3333",
        idle_timeout=120,
        max_connections=20_000,
        refusal=b"too many connections\n",
        max_requests=10_000,
        busy=b"too many requests\n",
    )
    with paceline.Signals() as signals, paceline.Pool(1) as pool:
        # Code in Python runs on threads of the server, and not of the pool.
        with paceline.Server(pool, listen, Echo, threads=4) as server:
            print("listening on", server.addresses[0], flush=True)
            signals.wait()
            drained, stats = server.drain(10).drained, server.stats()
    print(f"drained: {str(drained).lower()}, connections: {stats.accepted}, requests: {stats.answered}")


if __name__ == "__main__":
    main()
