"""Threads are not added; how many of them take tasks follows the wait in the queue, between a minimum and all.

feature: workers/scaling
"""

import time

import paceline
from paceline import Scaling

# A longer wait than `high`: one thread more. A shorter one than `low`: one thread less.
scaling = Scaling(min_active=1, high=0.002, low=0.0002, period=0.005)
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, threads=4, scaling=scaling)

    @workers.task
    def work() -> None:
        time.sleep(0.001)

    end = time.monotonic() + 60
    while workers.active < 2 and time.monotonic() < end:
        for _ in range(4):
            work.post()
        time.sleep(0.001)
    assert workers.active >= 2
    workers.shutdown(drain=60)
