"""A history keeps what was published; it answers queries, and a replay goes on with new messages, without a gap or a
duplicate.

feature: hub/history
prints:
    the last two: 3 4
    replayed and new: 1 2 3 4 5
"""

import queue

import paceline
from paceline import History

# In memory, by count. A size and an age may be limits, too, and an archive is a file.
histories = [History("orders.>", keep_count=100)]
with paceline.Pool() as pool, paceline.Hub(pool, histories=histories) as hub:
    hub.publish_batch("orders.eu", [b"1", b"2", b"3", b"4"])
    last_two = hub.query("orders.*", limit=2, newest=True)
    print("the last two:", *(message.payload.decode() for message in last_two))

    seen: "queue.Queue[str]" = queue.Queue()
    with hub.replay("orders.eu", lambda message: seen.put(message.payload.decode())):
        hub.publish("orders.eu", b"5")
        print("replayed and new:", *(seen.get(timeout=60) for _ in range(5)))
