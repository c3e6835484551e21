"""Retries: with a back-off, as long as it may help; not after a permanent failure; at a time that the attempt says.

feature: workers/retries
"""

import paceline
from paceline import PermanentFailure, Retry, RetryAfter, TaskStatus

SHAPES = [
    Retry.fixed(5, 0.001),
    Retry.linear(5, 0.001),
    Retry.exponential(5, 0.001, cap=0.01),
    Retry.random(5, 0.001, 0.003),
    Retry.custom(5, lambda retry: retry / 1000),
]
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def third_time() -> int:
        number = paceline.current_attempt().number
        if number == 1:
            raise OSError("busy, ask again")
        if number == 2:
            raise RetryAfter(0.002)  # what the backend has asked for
        return number

    for shape in SHAPES:
        report = third_time.options(retries=shape).submit().report()
        assert (report.value, report.attempts) == (3, 3)

    @workers.task(retries=5)
    def in_vain() -> None:
        raise PermanentFailure("no such number")

    report = in_vain.submit().report()
    assert (report.status, report.attempts) == (TaskStatus.FAILED, 1)
    workers.shutdown()
