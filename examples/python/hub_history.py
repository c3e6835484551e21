"""Publishes, stops, starts again, and replays: what was published before the stop comes first, then what is new.
Without archives in the library a hub forgets with its end, and the replay is of one that has not ended.

    python examples/python/hub_history.py

feature: hub/history
"""

from __future__ import annotations

import os
import tempfile

import paceline

with tempfile.TemporaryDirectory() as folder:
    archived = paceline.History("orders.>", archive=os.path.join(folder, "orders.sqlite"))
    pool = paceline.Pool(1)
    try:
        hub = paceline.Hub(pool, histories=[archived])
        print("archives: yes")
    except paceline.UnsupportedError:
        hub = paceline.Hub(pool, histories=[paceline.History("orders.>")])
        archived = None
        print("archives: not in this library")

    for number in range(1, 4):
        hub.publish("orders.eu", b"order %d" % number)
    # Until here it may be lost with the power.
    hub.flush()

    if archived is not None:
        hub.close()
        del hub
        pool.shutdown()
        pool = paceline.Pool(1)
        hub = paceline.Hub(pool, histories=[archived])

    replay = hub.replay_mailbox("orders.eu")
    hub.publish("orders.eu", b"order 4")
    came: list[str] = []
    while len(came) < 4:
        came += [message.payload.decode() for message in replay.pull()]
    print("replayed:", ", ".join(came))
    last = hub.query("orders.*", limit=2, newest=True)
    print("the last two:", ", ".join(message.payload.decode() for message in last))
    print("recorded:", sum(stats.recorded for stats in hub.history_stats()) > 0)
    hub.close()
    del hub, replay
    pool.shutdown()
