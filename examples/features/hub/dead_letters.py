"""A message at which a handler fails is tried again; after the last attempt it is a dead letter, which can be delivered
once more.

feature: hub/dead_letters
prints:
    order 43 is done
    dead: order 42, after 3 attempts: OSError: the database is down
    1 delivered once more
    order 42 is done
"""

import queue

import paceline
from paceline import Message, Retry

done: "queue.Queue[str]" = queue.Queue()
is_mended = False
with paceline.Pool() as pool, paceline.Hub(pool) as hub:

    @hub.subscribe("orders", retries=Retry.fixed(2, 0.001), on_error=lambda message, error: None)
    def orders(message: Message) -> None:
        if message.payload == b"42" and not is_mended:
            raise OSError("the database is down")
        done.put(message.payload.decode())

    hub.publish("orders", b"42")
    hub.publish("orders", b"43")  # its turn comes when the one before is done or dead
    print(f"order {done.get(timeout=60)} is done")
    (letter,) = hub.dead_letters()
    order = letter.message.payload.decode()
    print(f"dead: order {order}, after {letter.attempts} attempts: {letter.failure}")

    is_mended = True
    print(hub.redeliver().enqueued, "delivered once more")
    print(f"order {done.get(timeout=60)} is done")
    orders.drain(60)
