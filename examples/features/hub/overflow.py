"""A full mailbox: the publisher is refused, or waits, or something is dropped; each loss is counted and told.

feature: hub/overflow
"""

import threading

import paceline
from paceline import Message

closed, opened = threading.Event(), threading.Event()
seen: list[tuple[bytes, int]] = []
with paceline.Pool() as pool:
    hub = paceline.Hub(pool, threads=1)

    # Or "drop-newest", "conflate", "block", which is the default.
    @hub.subscribe("news", capacity=2, overflow="drop-oldest")
    def slow(message: Message) -> None:
        closed.set()
        assert opened.wait(60)
        seen.append((message.payload, message.lost_before))

    hub.publish("news", b"0")
    assert closed.wait(60)  # the handler is inside
    for each in (b"1", b"2", b"3", b"4"):
        hub.publish("news", each)

    mailbox = hub.mailbox("orders", capacity=2, overflow="reject")
    hub.publish("orders")
    hub.publish("orders")
    try:
        hub.publish("orders")
        raise AssertionError("there is always room")
    except paceline.MailboxFull as full:
        assert full.receipt.rejected == 1
    mailbox.close()

    opened.set()
    assert slow.drain(60) == 0
    assert slow.stats().dropped == 2
    assert seen[-1][0] == b"4" and sum(lost for _, lost in seen) == 2
    hub.close()
