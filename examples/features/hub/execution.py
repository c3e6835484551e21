"""Where a handler runs: serially on threads of the hub, in the publisher's thread, on several threads, or in one order with
others.

feature: hub/execution
"""

import threading

import paceline
from paceline import Message

with paceline.Pool(3) as pool:
    hub = paceline.Hub(pool)  # execution="serial" is the default
    ran_on: list[int] = []

    @hub.subscribe("inline", execution="inline")
    def one(message: Message) -> None:
        ran_on.append(threading.get_ident())

    hub.publish("inline")
    assert ran_on == [threading.get_ident()]

    meeting = threading.Barrier(2)

    @hub.subscribe("concurrent", execution="concurrent", threads=2)
    def two(message: Message) -> None:
        meeting.wait(60)  # two messages at once

    hub.publish_batch("concurrent", [b"", b""])

    # Of several subscriptions, but all of the hub's one strand: one at a time, in one order over all keys.
    order: list[bytes] = []
    notes = [
        hub.subscribe(key, lambda message: order.append(message.payload), execution="strand")
        for key in ("strand.a", "strand.b")
    ]
    for _ in range(3):
        hub.publish("strand.a", b"a")
        hub.publish("strand.b", b"b")
    for subscription in (two, *notes):
        assert subscription.drain(60) == 0
    assert b"".join(order) == b"ababab"
    hub.close()
