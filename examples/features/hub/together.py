"""Several messages are published together: all mailboxes take them, or none does.

feature: hub/together
prints:
    2 enqueued
    the mailbox of subscription 2 (account.other) is full (1 messages); nothing was published
    1 waits in the one, 1 in the other
"""

import paceline

with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    source = hub.mailbox("account.one")
    target = hub.mailbox("account.other", capacity=1)
    messages = [("account.one", b"-10"), ("account.other", b"+10")]

    print(hub.publish_all(messages).enqueued, "enqueued")
    try:
        hub.publish_all(messages)
    except paceline.Full as full:
        print(full)
    print(source.stats().waiting, "waits in the one,", target.stats().waiting, "in the other")
