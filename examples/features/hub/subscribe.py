"""Publish and subscribe: keys, patterns, how many got a message, and an end after which no handler runs.

feature: hub/subscribe
"""

import paceline
from paceline import Message

exact: list[bytes] = []
every: list[str] = []
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)

    @hub.subscribe("orders.eu")
    def one(message: Message) -> None:
        exact.append(message.payload)

    @hub.subscribe("orders.>")  # or "orders.*"
    def other(message: Message) -> None:
        every.append(message.key)

    assert hub.subscriber_count("orders.eu") == 2
    receipt = hub.publish("orders.eu", b"0")
    assert receipt.matched == receipt.enqueued == 2
    hub.publish("orders.us.ny", b"?")
    key = hub.key("orders.eu")  # looked up once, for many messages
    hub.publish_batch(key, [b"1", b"2", b"3"])
    try:
        hub.publish("orders..eu", b"?")
        raise AssertionError("this is no key")
    except paceline.InvalidError:
        pass
    assert one.drain(60) == other.drain(60) == 0  # what waits is handled
    assert exact == [b"0", b"1", b"2", b"3"]
    assert every == ["orders.eu", "orders.us.ny", "orders.eu", "orders.eu", "orders.eu"]
    hub.close()
