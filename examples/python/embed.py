"""paceline inside a host that has its own loop: asyncio.

The pool has no threads. Its one descriptor tells the host's loop when there is something to do, and
the handlers run on the loop's thread, between its own.

    python examples/python/embed.py

feature: pool/join
"""

import asyncio
import socket
from typing import Optional

import paceline
from paceline import Flow, Ready


async def main() -> None:
    ticks = 0
    messages = 0
    over = asyncio.Event()
    pool = paceline.Pool(0)
    loop = asyncio.get_running_loop()
    loop.add_reader(pool.fileno(), pool.join, 0)

    def tick() -> Optional[Flow]:
        nonlocal ticks
        ticks += 1
        print("tick", ticks)
        return Flow.DONE if ticks == 3 else None

    def read_message(connection: socket.socket, _: Ready) -> None:
        nonlocal messages
        messages += 1
        print("a message:", connection.recv(64).decode())

    ours, theirs = socket.socketpair()
    with ours, theirs, pool.register(ours, read_message), pool.every(0.01, tick):
        pool.after(0.1, over.set)
        theirs.sendall(b"from the host")
        # A future of the pool's is one of asyncio's as soon as it is wrapped.
        print("a task says", await asyncio.wrap_future(pool.submit(lambda: 6 * 7)))
        await over.wait()
    print(f"over after {ticks} ticks and {messages} message")

    loop.remove_reader(pool.fileno())
    pool.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
