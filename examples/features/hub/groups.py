"""A group: each message goes to one of its members.

feature: hub/groups
"""

import paceline
from paceline import Message

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    counters = [0, 0, 0, 0]

    def member(number: int, pattern: str, group: str, balance: str) -> paceline.Subscription:
        def count(message: Message) -> None:
            counters[number] += 1

        return hub.subscribe(pattern, count, group=group, balance=balance)

    members = [
        member(0, "jobs", "workers", "round-robin"),  # or "least-loaded", "random", "by-header"
        member(1, "jobs", "workers", "round-robin"),
        member(2, "orders.*", "shops", "by-key"),  # all messages of a key go to the same member
        member(3, "orders.*", "shops", "by-key"),
    ]
    for _ in range(10):
        hub.publish("jobs")
        hub.publish("orders.one")
    for each in members:
        assert each.drain(60) == 0
    assert counters[:2] == [5, 5]
    assert sorted(counters[2:]) == [0, 10]
    hub.close()
