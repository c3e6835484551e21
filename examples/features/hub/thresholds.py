"""Thresholds: the hub tells under $SYS.threshold when a figure crosses a limit, and when it is back.

feature: hub/thresholds
"""

import queue

import paceline
from paceline import Threshold

keys: "queue.Queue[str]" = queue.Queue()
with paceline.Pool() as pool:
    hub = paceline.Hub(pool, name="shop")
    notices = hub.subscribe("$SYS.threshold.>", lambda message: keys.put(message.key))
    orders = hub.mailbox("orders")
    # A number; also its rate, or a quantile. `$SYS.` is counted, too.
    full = Threshold("paceline_hub_waiting", above=10.5, back_at=5, labels={"hub": "shop"})
    watch = hub.watch([full], every=0.005)
    hub.publish_batch("orders", [b""] * 20)
    assert keys.get(timeout=60) == "$SYS.threshold.crossed"
    orders.close()  # discards them
    assert keys.get(timeout=60) == "$SYS.threshold.cleared"
    watch.close()
    notices.unsubscribe()
    hub.close()
