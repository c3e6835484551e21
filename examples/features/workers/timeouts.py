"""Limits in time, of one attempt and of all of them, and cancellation. No code is killed: an attempt sees that it should
end.

feature: workers/timeouts
"""

import time

import paceline
from paceline import Retry, TaskStatus

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def until_cancelled() -> None:
        while not paceline.current_attempt().cancelled:
            time.sleep(0.001)
        raise OSError("given up")

    # Of an attempt, of which there may be several.
    limited = until_cancelled.options(timeout=0.005, retries=Retry.fixed(2, 0.001))
    report = limited.submit().report()
    assert (report.status, report.attempts) == (TaskStatus.TIMED_OUT, 3)

    # Of all attempts, and of the waits between them.
    report = until_cancelled.options(deadline=0.005).submit().report()
    assert report.status == TaskStatus.TIMED_OUT

    task = until_cancelled.submit()
    task.cancel()  # keeps it from beginning, or has it see that it should end
    assert task.report().status == TaskStatus.CANCELLED
    workers.shutdown()
