"""A budget for retries: while a backend is down, only some of its failures are tried again.

feature: workers/budget
"""

import paceline
from paceline import Retry, RetryBudget

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)
    budget = RetryBudget(ratio=0.1, per_second=1, burst=5)

    @workers.task(retries=Retry.fixed(3, 0.001), budget=budget)
    def fetch(number: int) -> None:
        raise OSError("the backend is down")

    for task in fetch.submit_batch(range(50)):
        assert isinstance(task.exception(), OSError)
    workers.shutdown(drain=60)
    stats = fetch.stats()
    assert stats.failed == 50 and stats.retries_refused > 0 and stats.retried < 150
