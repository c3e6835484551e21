"""Middleware runs around each attempt of every task; tasks are made by a decorator.

feature: workers/middleware
"""

import paceline
from paceline import Attempt, Retry

log: list[str] = []


class Tell(paceline.Middleware):
    def before(self, attempt: Attempt) -> None:
        log.append(f"attempt {attempt.number} begins")  # to raise is to fail the attempt

    def after(self, attempt: Attempt) -> None:
        log.append("ends")

    def on_error(self, attempt: Attempt, exception: BaseException) -> None:
        log.append(f"fails: {exception}")


with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, middleware=[Tell()])

    @workers.task(retries=Retry.fixed(1, 0.001))
    def fail_once() -> None:
        if paceline.current_attempt().number == 1:
            raise OSError("busy")

    fail_once.submit().result()
    workers.shutdown()
assert log == ["attempt 1 begins", "fails: busy", "ends", "attempt 2 begins", "ends"]
