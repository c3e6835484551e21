"""The hub publishes what happens and goes wrong in it under $SYS, and keeps its latest errors for queries.

feature: hub/notices
"""

import json
import queue

import paceline
from paceline import Message

notices: "queue.Queue[Message]" = queue.Queue()
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    told = hub.subscribe("$SYS.subscription.overflow", notices.put)
    small = hub.mailbox("orders", capacity=1, overflow="drop-oldest")
    hub.publish("orders", b"1")
    hub.publish("orders", b"2")  # drops the first
    notice = notices.get(timeout=60)
    assert json.loads(notice.payload)
    (error,) = hub.errors(severity="warning")
    assert error.event == "subscription.overflow"
    told.unsubscribe()
    hub.close()
