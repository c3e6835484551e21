"""Priorities: what is more urgent begins first.

feature: workers/priorities
"""

import threading

import paceline

closed, opened = threading.Event(), threading.Event()
order: list[str] = []
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, threads=1)

    @workers.task
    def gate() -> None:
        closed.set()
        assert opened.wait(60)

    @workers.task
    def note(priority: str) -> None:
        order.append(priority)

    gate.submit()
    assert closed.wait(60)
    for priority in ("low", "normal", "high", "critical"):
        note.options(priority=priority).submit(priority)
    opened.set()
    assert workers.shutdown(drain=60).drained
assert order == ["critical", "high", "normal", "low"]
