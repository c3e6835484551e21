"""A history of what was published: queries, and a replay that goes on with what is new, without gap or duplicate.

feature: hub/history
"""

import queue

import paceline
from paceline import History

with paceline.Pool() as pool:
    # In memory; also by size, by age, and in an archive.
    hub = paceline.Hub(pool, histories=[History("orders.>", keep_count=100)])
    for number in range(1, 5):
        hub.publish("orders.eu", b"%d" % number)

    last_two = hub.query("orders.*", limit=2, newest=True)
    assert [message.payload for message in last_two] == [b"3", b"4"]

    seen: "queue.Queue[bytes]" = queue.Queue()
    replay = hub.replay("orders.eu", lambda message: seen.put(message.payload))
    hub.publish("orders.eu", b"5")
    assert [seen.get(timeout=60) for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
    replay.unsubscribe()
    hub.close()
