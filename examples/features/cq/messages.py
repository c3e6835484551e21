"""Messages of the hub as data.

feature: cq/messages
"""

import paceline
from paceline import Complete

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    with paceline.CompletionQueue(pool) as queue:
        queue.mailbox(hub.mailbox("orders.>"), tag=7)
        for number in range(3):
            hub.publish("orders.eu", b"%d" % number)
        payloads: list[bytes] = []
        while len(payloads) < 3:
            for entry in queue.wait(timeout=60):
                assert entry.tag == 7
                payloads.append(entry.detail.payload)
                if entry.detail.payload == b"1":
                    queue.complete(entry, flags=Complete.FAIL, message="no such order")
                else:
                    queue.done(entry)
        assert payloads == [b"0", b"1", b"2"]
        (letter,) = hub.dead_letters()
        assert letter.failure == "no such order"
    hub.close()
