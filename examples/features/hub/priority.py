"""A mailbox with priorities delivers urgent messages first.

feature: hub/priority
prints:
    high
    normal
    low
"""

import paceline

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    with hub.mailbox("news", by_priority=True) as mailbox:
        for priority in ("low", "normal", "high"):
            hub.publish("news", priority=priority)
        for message in mailbox.pull():
            print(message.priority)
