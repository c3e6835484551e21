"""A task that fails is tried again after a back-off, or at a time that the attempt asks for, but not after a permanent
failure.

feature: workers/retries
prints:
    fixed: COMPLETED, attempts: 3
    linear: COMPLETED, attempts: 3
    exponential: COMPLETED, attempts: 3
    custom: COMPLETED, attempts: 3
    a permanent failure: FAILED, attempts: 1
"""

import paceline
from paceline import PermanentFailure, Retry, RetryAfter

BACK_OFFS = {
    "fixed": Retry.fixed(5, 0.001),
    "linear": Retry.linear(5, 0.001),
    "exponential": Retry.exponential(5, 0.001, cap=0.01),
    "custom": Retry.custom(5, lambda retry: retry / 1000),
}
with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:

    @workers.task
    def third_time() -> int:
        number = paceline.current_attempt().number
        if number == 1:
            raise OSError("busy, ask again")
        if number == 2:
            raise RetryAfter(0.002)  # what the backend has asked for
        return number

    @workers.task(retries=5)
    def in_vain() -> None:
        raise PermanentFailure("no such number")

    for name, retries in BACK_OFFS.items():
        report = third_time.options(retries=retries).submit().report()
        print(f"{name}: {report.status.name}, attempts: {report.attempts}")
    failed = in_vain.submit().report()
    print(f"a permanent failure: {failed.status.name}, attempts: {failed.attempts}")
