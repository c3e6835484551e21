"""The subscriptions of a group share their messages: each message goes to one of them.

feature: hub/groups
prints:
    jobs, in turns: 5 and 5
    orders of one key: 0 and 10
"""

import paceline
from paceline import Message

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
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
        each.drain(60)
    print("jobs, in turns: {} and {}".format(*counters[:2]))
    print("orders of one key: {} and {}".format(*sorted(counters[2:])))
