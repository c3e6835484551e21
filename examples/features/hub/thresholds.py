"""A hub publishes a notice under $SYS.threshold when a figure crosses a limit, and another one when it is back.

feature: hub/thresholds
prints:
    threshold.crossed: paceline_hub_waiting{hub="shop"} above 10.5
    threshold.cleared: paceline_hub_waiting{hub="shop"} above 10.5
"""

import json
import queue

import paceline
from paceline import Message, Threshold

notices: "queue.Queue[Message]" = queue.Queue()


def show_next() -> None:
    notice = json.loads(notices.get(timeout=60).payload)
    print(f"{notice['event']}: {notice['threshold']}")


with paceline.Pool() as pool, paceline.Hub(pool, name="shop") as hub:
    hub.subscribe("$SYS.threshold.>", notices.put)
    orders = hub.mailbox("orders")
    # The limit is for a figure, its rate or a quantile. Messages under `$SYS.` count, too.
    full = Threshold("paceline_hub_waiting", above=10.5, back_at=5, labels={"hub": "shop"})
    with hub.watch([full], every=0.005):
        hub.publish_batch("orders", [b""] * 20)
        show_next()
        orders.close()  # discards them
        show_next()
