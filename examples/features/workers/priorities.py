"""Tasks of a higher priority begin first.

feature: workers/priorities
prints:
    critical
    high
    normal
    low
"""

import threading

import paceline

inside, go_on = threading.Event(), threading.Event()
with paceline.Pool() as pool, paceline.WorkerPool(pool, threads=1) as workers:

    @workers.task
    def block() -> None:
        inside.set()
        go_on.wait(60)

    @workers.task
    def note(priority: str) -> None:
        print(priority)

    block.submit()
    inside.wait(60)  # the only thread is busy until all are submitted
    for priority in ("low", "normal", "high", "critical"):
        note.options(priority=priority).submit(priority)
    go_on.set()
