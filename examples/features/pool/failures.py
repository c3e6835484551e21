"""An exception of a task goes to whoever waits for it, or to one hook if nobody does; nothing else ends with it.

feature: pool/failures
"""

import queue

import paceline

unhandled: "queue.Queue[BaseException]" = queue.Queue()


def fails() -> None:
    raise LookupError("no answer")


with paceline.Pool(on_unhandled=unhandled.put) as pool:
    assert isinstance(pool.submit(fails).exception(), LookupError)
    pool.post(fails)
    assert isinstance(unhandled.get(timeout=60), LookupError)
    assert pool.submit(lambda: 42).result() == 42
assert pool.audit().failed == 2 and pool.audit().balances
