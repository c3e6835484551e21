"""A budget limits retries: while a backend is down, only some of the failures are tried again.

feature: workers/budget
prints:
    50 tasks failed: the backend is down
    retries without a budget: 150, with it: fewer
    refused by the budget: some
"""

import paceline
from paceline import Retry, RetryBudget

with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:
    budget = RetryBudget(ratio=0.1, per_second=1, burst=5)

    @workers.task(retries=Retry.fixed(3, 0.001), budget=budget)
    def fetch(number: int) -> None:
        raise OSError("the backend is down")

    errors = [task.exception() for task in fetch.submit_batch(range(50))]
    print(len(errors), "tasks failed:", errors[0])
    stats = fetch.stats()
    print("retries without a budget: 150, with it:", "fewer" if stats.retried < 150 else "as many")
    print("refused by the budget:", "some" if stats.retries_refused else "none")
