"""An echo server on a pool whose threads take turns leading.

python examples/python/echo.py                   # the demo: drives itself, prints what happened
python examples/python/echo.py 127.0.0.1:7000    # serves until interrupted
"""

from __future__ import annotations

import socket
import sys
import threading
from typing import Optional

import paceline
from paceline import Flow, Pool, Ready

CONNECTIONS = 20
ROUNDS = 50


def echo(connection: socket.socket, _: Ready) -> Optional[Flow]:
    """Level-triggered, so one read is enough: what is left makes it ready again."""
    try:
        data = connection.recv(65536)
        # A client that reads nothing holds up this thread for a second, and is left then.
        if data:
            connection.settimeout(1)
            connection.sendall(data)
            connection.setblocking(False)
            return None
    except BlockingIOError:
        return None
    except OSError:
        pass
    connection.close()
    return Flow.DONE


def serve(pool: Pool, listener: socket.socket) -> paceline.Handle:
    """Accepts on ``listener``; each connection gets a handle that ends with it."""

    def accept(listener: socket.socket, _: Ready) -> None:
        try:
            connection, _address = listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        pool.register(connection, echo)

    listener.setblocking(False)
    return pool.register(listener, accept)


def demo(pool: Pool, address: tuple[str, int]) -> None:
    clients = [socket.create_connection(address) for _ in range(CONNECTIONS)]
    echoed = 0
    for number in range(ROUNDS):
        request = b"request %d" % number
        for client in clients:
            client.sendall(request)
        for client in clients:
            echoed += client.recv(len(request), socket.MSG_WAITALL) == request
    for client in clients:
        client.close()
    print(f"{echoed} requests over {CONNECTIONS} connections were echoed")


def main() -> None:
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:0").rpartition(":")
    with Pool() as pool, socket.create_server((host, int(port))) as listener:
        with serve(pool, listener):
            if len(sys.argv) > 1:
                print(f"listening on {host}:{listener.getsockname()[1]}", flush=True)
                try:
                    threading.Event().wait()
                except KeyboardInterrupt:
                    pass
            else:
                demo(pool, listener.getsockname())


if __name__ == "__main__":
    main()
