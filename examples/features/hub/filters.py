"""A filter decides which messages get into the mailbox of a subscription.

feature: hub/filters
prints:
    got: urgent and long
    3 filtered
"""

import paceline
from paceline import Message, MessageFilter

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    urgent = MessageFilter.header("kind", "urgent")
    is_long = MessageFilter.test(lambda message: len(message.payload) >= 5)

    # There are bytes_at(), published() and at_most(), too; `|` and `~` combine them as well.
    @hub.subscribe("news", filter=urgent & is_long)
    def news(message: Message) -> None:
        print("got:", message.payload.decode())

    hub.publish("news", b"urgent and long", headers={"kind": "urgent"})
    hub.publish("news", b"no", headers={"kind": "urgent"})
    hub.publish("news", b"without the header")
    hub.publish("news", b"of another kind", headers={"kind": "daily"})
    news.drain(60)
    print(news.stats().filtered, "filtered")
