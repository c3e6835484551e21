"""A completion queue brings the messages of a mailbox as data; an entry that is completed with FAIL makes a dead
letter.

feature: cq/messages
prints:
    order 0
    order 1
    order 2
    dead letter: 1, no such order
"""

import paceline
from paceline import Complete

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    with paceline.CompletionQueue(pool) as queue:
        queue.mailbox(hub.mailbox("orders.>"), tag=7)
        for number in range(3):
            hub.publish("orders.eu", b"%d" % number)
        handled = 0
        while handled < 3:
            for entry in queue.wait(timeout=60):
                handled += 1
                print("order", entry.data.decode())
                if entry.data == b"1":
                    queue.complete(entry, flags=Complete.FAIL, message="no such order")
                else:
                    queue.done(entry)
    for letter in hub.dead_letters():
        print(f"dead letter: {letter.message.payload.decode()}, {letter.failure}")
