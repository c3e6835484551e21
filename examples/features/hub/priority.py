"""Priority of messages: in a mailbox of this kind what is more urgent comes first.

feature: hub/priority
"""

import paceline

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    mailbox = hub.mailbox("news", by_priority=True)
    hub.publish("news", b"l", priority="low")
    hub.publish("news", b"n")
    hub.publish("news", b"h", priority="high")
    with paceline.CompletionQueue(pool) as queue:
        queue.mailbox(mailbox, tag=1)
        order = b""
        while len(order) < 3:
            for entry in queue.wait(timeout=60):
                order += entry.detail.payload
                queue.done(entry)
    assert order == b"hnl"
    hub.close()
