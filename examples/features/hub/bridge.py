"""A bridge carries messages from one hub to another over a NATS server; here both hubs are in this process. NATS_URL is
the address of a server with streams (nats-server -js); without it the program only says so.

feature: hub/bridge
prints:
    the server has stored order 42
    attempt 1: order 42
    attempt 2: order 42
    0 messages were left unsent
"""

import os
import queue
import sys

import paceline

url = os.environ.get("NATS_URL")
if url is None:
    print("There is no NATS_URL, the address of a NATS server.")
    sys.exit()

attempts: "queue.Queue[str]" = queue.Queue()
with paceline.Pool() as pool, paceline.Hub(pool) as here, paceline.Hub(pool) as there:
    failed = 0

    @there.subscribe("example.python.*", on_error=lambda message, error: None)
    def handle(message: paceline.Message) -> None:
        global failed
        attempts.put(message.payload.decode())
        if not failed:
            failed += 1
            # The message comes again, here or in another process.
            raise ValueError("the first attempt fails")

    # With a stream each message arrives at least once: the server keeps it until handlers have dealt with it.
    export = paceline.Export("example.python.>", stream="EXAMPLE_PYTHON")
    # Processes that import with the name "billing" take turns.
    wanted = paceline.Import("example.python.>", stream="EXAMPLE_PYTHON", durable="billing")
    with paceline.Bridge(there, url, imports=[wanted]):
        with paceline.Bridge(here, url, exports=[export]) as out:
            out.publish("example.python.order", b"42").wait(60)
            print("the server has stored order 42")
            for number in (1, 2):
                print(f"attempt {number}: order {attempts.get(timeout=60)}")
            print(out.close(60), "messages were left unsent")
        handle.drain(60)
