"""A hub publishes notices of what goes wrong in it under $SYS, and keeps its latest errors for queries.

feature: hub/notices
prints:
    notice: the mailbox was full: 1 lost by DropOldest
    warning: subscription.overflow, subscription 2 (orders)
"""

import json
import queue

import paceline
from paceline import Message

notices: "queue.Queue[Message]" = queue.Queue()
with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    hub.subscribe("$SYS.subscription.overflow", notices.put)
    with hub.mailbox("orders", capacity=1, overflow="drop-oldest"):
        hub.publish("orders", b"1")
        hub.publish("orders", b"2")  # drops the first
        print("notice:", json.loads(notices.get(timeout=60).payload)["message"])
    for error in hub.errors():
        print(f"{error.severity}: {error.event}, {error.origin}")
