"""The end: a drain completes what was accepted, a stop cancels what has not begun, and every task is accounted for.

feature: pool/shutdown
"""

import time

import paceline


def busy_pool() -> paceline.Pool:
    pool = paceline.Pool(1)
    for _ in range(100):
        pool.post(time.sleep, 0.0001)
    return pool


drained = busy_pool()
assert drained.shutdown(60).drained
assert drained.audit().completed == 100 and drained.audit().balances
try:
    drained.post(print)
    raise AssertionError("it takes nothing more")
except paceline.ShutDownError:
    pass

stopped = busy_pool()
stopped.stop_now()
audit = stopped.audit()
assert audit.completed + audit.cancelled == 100
assert audit.balances and audit.in_flight == 0
