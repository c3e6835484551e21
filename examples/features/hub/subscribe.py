"""A subscriber gets the messages whose keys match its pattern; publishing returns how many subscribers got the message,
and after a drain no handler runs.

feature: hub/subscribe
prints:
    2 subscribers got order 0
    key is "orders..eu", but must be without empty tokens: no dot at an end, no two in a row
    orders.eu: 0 1 2 3
    orders.>: orders.eu orders.us.ny orders.eu orders.eu orders.eu
"""

import paceline
from paceline import Message

payloads: list[str] = []
keys: list[str] = []
with paceline.Pool() as pool, paceline.Hub(pool) as hub:

    @hub.subscribe("orders.eu")
    def europe(message: Message) -> None:
        payloads.append(message.payload.decode())

    @hub.subscribe("orders.>")  # or "orders.*"
    def all_orders(message: Message) -> None:
        keys.append(message.key)

    receipt = hub.publish("orders.eu", b"0")
    print(receipt.enqueued, "subscribers got order 0")
    hub.publish("orders.us.ny", b"?")
    key = hub.key("orders.eu")  # looked up once, for many messages
    hub.publish_batch(key, [b"1", b"2", b"3"])
    try:
        hub.publish("orders..eu")
    except paceline.InvalidError as error:
        print(error)
    for subscription in (europe, all_orders):
        subscription.drain(60)  # what waits is handled
print("orders.eu:", *payloads)
print("orders.>:", *keys)
