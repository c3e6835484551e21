"""A handler runs on a thread of the hub, in the publisher's thread, on several threads at once, or in one order with
other handlers.

feature: hub/execution
prints:
    inline: it ran in MainThread
    concurrent: two messages were handled at once
    strand: a b a b a b
"""

import threading

import paceline
from paceline import Message

with paceline.Pool(3) as pool, paceline.Hub(pool) as hub:  # execution="serial" is the default

    @hub.subscribe("inline", execution="inline")
    def inline(message: Message) -> None:
        print("inline: it ran in", threading.current_thread().name)

    hub.publish("inline")

    meeting = threading.Barrier(2)

    @hub.subscribe("concurrent", execution="concurrent", threads=2)
    def concurrent(message: Message) -> None:
        if meeting.wait(60) == 0:  # until the other message is handled, too
            print("concurrent: two messages were handled at once")

    hub.publish_batch("concurrent", [b"", b""])
    concurrent.drain(60)

    # These share one strand of the hub: one message at a time, in one order over all keys.
    order: list[str] = []
    notes = [
        hub.subscribe(key, lambda message: order.append(message.payload.decode()), execution="strand")
        for key in ("strand.a", "strand.b")
    ]
    for _ in range(3):
        hub.publish("strand.a", b"a")
        hub.publish("strand.b", b"b")
    for subscription in notes:
        subscription.drain(60)
    print("strand:", *order)
