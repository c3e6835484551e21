"""Middleware runs around each attempt of every task.

feature: workers/middleware
prints:
    attempt 1 begins
    attempt 1 fails: busy
    attempt 1 ends
    attempt 2 begins
    attempt 2 ends
"""

import paceline
from paceline import Attempt, Retry


class Tell(paceline.Middleware):
    def before(self, attempt: Attempt) -> None:
        print(f"attempt {attempt.number} begins")  # to raise is to fail the attempt

    def after(self, attempt: Attempt) -> None:
        print(f"attempt {attempt.number} ends")

    def on_error(self, attempt: Attempt, exception: BaseException) -> None:
        print(f"attempt {attempt.number} fails: {exception}")


with paceline.Pool() as pool, paceline.WorkerPool(pool, middleware=[Tell()]) as workers:

    @workers.task(retries=Retry.fixed(1, 0.001))
    def fail_once() -> None:
        if paceline.current_attempt().number == 1:
            raise OSError("busy")

    fail_once.submit().result()
