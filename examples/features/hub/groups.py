"""A group: each message goes to one of its members.

feature: hub/groups
"""

import paceline
from paceline import Message

first: list[bytes] = []
second: list[bytes] = []
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)

    @hub.subscribe("jobs", group="workers", balance="round-robin")  # or "least-loaded", "random"
    def one(message: Message) -> None:
        first.append(message.payload)

    @hub.subscribe("jobs", group="workers", balance="round-robin")
    def other(message: Message) -> None:
        second.append(message.payload)

    for number in range(10):
        hub.publish("jobs", b"%d" % number)
    assert one.drain(60) == other.drain(60) == 0
    assert (len(first), len(second)) == (5, 5)
    assert sorted(first + second) == [b"%d" % number for number in range(10)]
    hub.close()
