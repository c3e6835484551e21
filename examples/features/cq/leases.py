"""A lease: an entry that is not completed in time is brought again, and the first token for it is stale.

feature: cq/leases
"""

import paceline

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    with paceline.CompletionQueue(pool, lease=0.02) as queue:
        queue.mailbox(hub.mailbox("orders"), tag=7)
        hub.publish("orders", b"42")
        (first,) = queue.wait(timeout=60)
        (again,) = queue.wait(timeout=60)  # the thread that has it is gone; another one waits
        assert again.again and again.detail.payload == b"42"
        try:
            queue.done(first)
            raise AssertionError("it is still out")
        except paceline.StaleError:
            pass
        queue.done(again)
        assert tuple(queue.stats()) == (2, 1, 1, 0)  # brought, completed, withdrawn, out
    hub.close()
