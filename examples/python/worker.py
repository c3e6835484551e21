"""A hundred tasks of mixed priority against a function that often fails: retries, a deadline, a periodic
task beside them, a graceful stop, and a report.

    python examples/python/worker.py

feature: workers/retries
feature: workers/shutdown
"""

from __future__ import annotations

import time
from collections import Counter

import paceline
from paceline import PermanentFailure, Retry, TaskStatus

pool = paceline.Pool(1)
workers = paceline.WorkerPool(pool, threads=4)


@workers.task(name="fetch", retries=Retry.fixed(3, 0.005), deadline=60.0)
def fetch(number: int) -> int:
    """A backend as they are: it wants to be asked up to three times, does not know some numbers at all,
    and never answers about 50."""
    attempt = paceline.current_attempt()
    if number == 50:
        while not attempt.cancelled:
            time.sleep(0.001)
        raise OSError("gave up")
    if number % 25 == 13:
        raise PermanentFailure("there is no such number")
    if attempt.number <= number % 3:
        raise OSError("busy, ask again")
    return number * number


@workers.task(name="heartbeat", priority="critical")
def heartbeat() -> None:
    """Beside the tasks, every 5 ms."""


@workers.on_shutdown
def goodbye() -> None:
    print("clean-up: the backend is told goodbye")


beats = workers.every(0.005, heartbeat)
priorities = ("critical", "high", "normal", "low")
tasks = []
for number in range(100):
    deadline = 0.2 if number == 50 else None
    call = fetch.options(priority=priorities[number % 4], deadline=deadline)
    tasks.append(call.submit(number))

reports = [task.report() for task in tasks]
while beats.runs < 3:
    time.sleep(0.001)
beats.close()

print(f"{'status':<12}{'tasks':>6}")
for status, count in sorted(Counter(report.status for report in reports).items()):
    print(f"{status.name:<12}{count:>6}")
print("the squares add up to", sum(report.value or 0 for report in reports))
faults = Counter(str(each.error) for each in reports if each.status is TaskStatus.FAILED)
for fault, count in faults.items():
    print(f"{count} failed, because {fault}")
print("attempts that were followed by another:", fetch.stats().retried)
print("the periodic task ran at least 3 times")

report = workers.shutdown(drain=30, stop=5)
print(f"drained: {report.drained}, stuck: {len(report.stuck)}")
print("the books balance:", workers.audit().balances)
pool.shutdown()
