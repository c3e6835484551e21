"""A drain completes the tasks that were accepted, a stop cancels those that have not begun, and an audit accounts for
every task.

feature: pool/shutdown
prints:
    drained: 100 completed, 0 cancelled
    one more task: cannot schedule new futures after shutdown
    stopped: 100 completed or cancelled, 0 in flight
"""

import time

import paceline


def busy_pool() -> paceline.Pool:
    pool = paceline.Pool(1)
    for _ in range(100):
        pool.post(time.sleep, 0.0001)
    return pool


drained = busy_pool()
drained.shutdown(60)
audit = drained.audit()
print(f"drained: {audit.completed} completed, {audit.cancelled} cancelled")
try:
    drained.post(print)
except paceline.ShutDownError as error:
    print("one more task:", error)

stopped = busy_pool()
stopped.stop_now()
audit = stopped.audit()
print(
    f"stopped: {audit.completed + audit.cancelled} completed or cancelled, {audit.in_flight} in flight"
)
