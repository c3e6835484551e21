"""Tasks that begin later, at a rate, or one at a time for each key.

feature: workers/delayed
"""

import time

import paceline
from paceline import Rate

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)
    counters = {"one": 0, "other": 0}

    @workers.task
    def count(key: str) -> None:
        """Tasks of one key run one at a time and in order: no lock is needed."""
        before = counters[key]
        time.sleep(0)
        counters[key] = before + 1

    begun = time.monotonic()
    count.submit_after(0.02, "one").result()
    assert time.monotonic() - begun >= 0.02

    tasks = [count.options(key=key).submit(key) for _ in range(50) for key in counters]
    for task in tasks:
        task.result()
    assert counters == {"one": 51, "other": 50}

    @workers.task(rate=Rate(100, per=1.0), max_running=1)
    def slow(number: int) -> int:
        return number

    begun = time.monotonic()
    assert [task.result() for task in slow.submit_batch(range(5))] == [0, 1, 2, 3, 4]
    assert time.monotonic() - begun >= 0.03  # the first begins at once
    workers.shutdown()
