"""A lease: an entry that is not completed in time is brought again, and the first token for it is stale.

feature: cq/leases
"""

import paceline
from paceline import CompletionEntry


def complete(queue: paceline.CompletionQueue, entry: CompletionEntry) -> bool:
    try:
        queue.done(entry)
    except paceline.StaleError:
        return False
    return True


with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    with paceline.CompletionQueue(pool, lease=0.02) as queue:
        queue.mailbox(hub.mailbox("orders"), tag=7)
        hub.publish("orders", b"42")
        (first,) = queue.wait(timeout=60)
        (again,) = queue.wait(timeout=60)  # the thread that has it is gone; another one waits
        assert again.again and again.detail.payload == b"42"
        assert not complete(queue, first)
        while not complete(queue, again):  # this thread was too slow itself
            (again,) = queue.wait(timeout=60)
        stats = queue.stats()
        assert stats.completed == 1 and stats.brought == stats.withdrawn + 1 >= 2
    hub.close()
