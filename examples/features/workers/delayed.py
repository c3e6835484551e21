"""Tasks may begin after a delay, at a limited rate, or one at a time for each key.

feature: workers/delayed
prints:
    one at a time for each key: 50 and 50
    begun after 20 ms: True
    5 tasks at 100 per second, in 30 ms or more: True
"""

import time

import paceline
from paceline import Rate

with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:
    counters = {"one": 0, "other": 0}

    @workers.task
    def count(key: str) -> None:
        """Tasks of one key run one at a time and in order: no lock is needed."""
        before = counters[key]
        time.sleep(0)
        counters[key] = before + 1

    tasks = [count.options(key=key).submit(key) for _ in range(50) for key in counters]
    for task in tasks:
        task.result()
    print("one at a time for each key:", counters["one"], "and", counters["other"])

    @workers.task(rate=Rate(100, per=1.0), max_running=1)
    def now(number: int) -> float:
        return time.monotonic()

    submitted = time.monotonic()
    print("begun after 20 ms:", now.submit_after(0.02, 0).result() - submitted >= 0.02)

    times = [task.result() for task in now.submit_batch(range(5))]
    print("5 tasks at 100 per second, in 30 ms or more:", times[-1] - times[0] >= 0.03)
