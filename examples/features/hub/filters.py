"""Filters: what a subscription does not want never comes to its mailbox.

feature: hub/filters
"""

import paceline
from paceline import Message, MessageFilter

got: list[bytes] = []
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    urgent = MessageFilter.header("kind", "urgent")
    is_long = MessageFilter.test(lambda message: len(message.payload) >= 5)

    # Also: bytes_at(), published(), at_most(); |, ~.
    @hub.subscribe("news", filter=urgent & is_long)
    def news(message: Message) -> None:
        got.append(message.payload)

    hub.publish("news", b"short", headers={"kind": "urgent"})
    hub.publish("news", b"no", headers={"kind": "urgent"})
    hub.publish("news", b"without")
    assert news.drain(60) == 0
    assert got == [b"short"]
    hub.close()
