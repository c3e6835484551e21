"""The number of threads that take tasks follows how long tasks wait, between a minimum and all threads.

feature: workers/scaling
prints:
    active without tasks: 1
    active under load: 2 or more
"""

import time

import paceline
from paceline import Scaling

# A longer wait than `high`: one thread more. A shorter one than `low`: one thread less.
scaling = Scaling(min_active=1, high=0.002, low=0.0002, period=0.005)
with paceline.Pool() as pool, paceline.WorkerPool(pool, threads=4, scaling=scaling) as workers:
    print("active without tasks:", workers.active)

    @workers.task
    def work(number: int) -> int:
        time.sleep(0.001)
        return workers.active

    active = 1
    while active < 2:
        active = max(task.result() for task in work.submit_batch(range(50)))
    print("active under load: 2 or more")
