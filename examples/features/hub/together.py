"""Several messages that all mailboxes take, or none.

feature: hub/together
"""

import paceline

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    source = hub.mailbox("account.one")
    target = hub.mailbox("account.other", capacity=1)
    messages = [("account.one", b"-10"), ("account.other", b"+10")]

    assert hub.publish_all(messages).enqueued == 2
    try:
        hub.publish_all(messages)
        raise AssertionError("the target has no room")
    except paceline.Full:
        pass
    assert source.stats().waiting == 1  # so this has not got a second one
    hub.close()
