"""A bridge: keys of one hub reach another one over a NATS server, here of the same process. The address of a server with
streams (nats-server -js) is in NATS_URL; without one there is nothing to show.

feature: hub/bridge
"""

import os
import sys
import time

import paceline

url = os.environ.get("NATS_URL")
if url is None:
    print("There is no NATS_URL, the address of a NATS server.")
    sys.exit()

handled = 0
with paceline.Pool() as pool, paceline.Hub(pool) as here, paceline.Hub(pool) as there:

    @there.subscribe("example.python.*", on_error=lambda message, error: None)
    def handle(message: paceline.Message) -> None:
        global handled
        assert message.payload == b"42"
        handled += 1
        if handled == 1:
            # The message comes again, here or in another process.
            raise ValueError("the first attempt fails")

    # At least once: the server stores what is published, and it is acknowledged when handlers have dealt with it.
    export = paceline.Export("example.python.>", stream="EXAMPLE_PYTHON")
    # Processes that import with the name "billing" take turns.
    wanted = paceline.Import("example.python.>", stream="EXAMPLE_PYTHON", durable="billing")
    with paceline.Bridge(there, url, imports=[wanted]) as to:
        with paceline.Bridge(here, url, exports=[export]) as out:
            out.publish("example.python.order", b"42").wait(60)  # it is stored now
            while to.stats().imports[0].acknowledged < 1:
                time.sleep(0.01)
            assert handled >= 2
            assert out.close(60) == 0
