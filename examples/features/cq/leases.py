"""An entry of a completion queue that is not completed within its lease is brought again, and its first token is stale.

feature: cq/leases
prints:
    order 42 came
    order 42 came again
    the first token is stale
    1 completed
"""

import paceline
from paceline import CompletionEntry


def complete(queue: paceline.CompletionQueue, entry: CompletionEntry) -> bool:
    try:
        queue.done(entry)
    except paceline.StaleError:
        return False
    return True


with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    with paceline.CompletionQueue(pool, lease=0.2) as queue:
        queue.mailbox(hub.mailbox("orders"), tag=7)
        hub.publish("orders", b"42")
        (first,) = queue.wait(timeout=60)
        print("order", first.data.decode(), "came")
        (again,) = queue.wait(
            timeout=60
        )  # as if the thread that took it had died, and another one waited
        print("order", again.data.decode(), "came again" if again.again else "came")
        print("the first token is", "valid" if complete(queue, first) else "stale")
        while not complete(queue, again):  # this thread was too slow itself
            (again,) = queue.wait(timeout=60)
        print(queue.stats().completed, "completed")
