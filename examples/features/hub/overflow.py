"""When a mailbox is full, the publisher waits or is refused, or a message is dropped; each loss is counted and
reported.

feature: hub/overflow
prints:
    orders: 2 accepted, 1 rejected
    news 0 with 0 lost before it
    news 3 with 2 lost before it
    news 4 with 0 lost before it
    news: 2 dropped
"""

import threading

import paceline
from paceline import Message

inside, go_on = threading.Event(), threading.Event()
with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    with hub.mailbox("orders", capacity=2, overflow="reject"):
        try:
            hub.publish_batch("orders", [b"0", b"1", b"2"])
        except paceline.MailboxFull as full:
            print(f"orders: {full.receipt.enqueued} accepted, {full.receipt.rejected} rejected")

    # Or "drop-newest", "conflate", "block", which is the default.
    @hub.subscribe("news", capacity=2, overflow="drop-oldest")
    def slow(message: Message) -> None:
        inside.set()
        go_on.wait(60)
        print(f"news {message.payload.decode()} with {message.lost_before} lost before it")

    hub.publish("news", b"0")
    inside.wait(60)  # the handler has this message; the next ones wait in the mailbox
    for each in (b"1", b"2", b"3", b"4"):
        hub.publish("news", each)
    go_on.set()
    slow.drain(60)
    print(f"news: {slow.stats().dropped} dropped")
