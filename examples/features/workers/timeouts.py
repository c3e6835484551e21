"""A limit in time is for one attempt or for the whole task, and a task can be cancelled. No code is killed: an attempt
sees that it should end.

feature: workers/timeouts
prints:
    timeout: TIMED_OUT, attempts: 3
    deadline: TIMED_OUT
    cancel: CANCELLED
"""

import time

import paceline
from paceline import Retry

with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:

    @workers.task
    def until_cancelled() -> None:
        while not paceline.current_attempt().cancelled:
            time.sleep(0.001)
        raise OSError("given up")

    # A limit for each attempt.
    limited = until_cancelled.options(timeout=0.005, retries=Retry.fixed(2, 0.001))
    report = limited.submit().report()
    print(f"timeout: {report.status.name}, attempts: {report.attempts}")

    # A limit for all attempts and the waits between them.
    report = until_cancelled.options(deadline=0.005).submit().report()
    print("deadline:", report.status.name)

    task = until_cancelled.submit()
    task.cancel()  # it does not begin, or it sees that it should end
    print("cancel:", task.report().status.name)
