"""Bounded: what a submission does when there is no room, here to be refused, to run at once, or to drop the oldest.

feature: workers/full
"""

import threading

import paceline
from paceline import TaskStatus

closed, opened = threading.Event(), threading.Event()
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, threads=1, max_queued=16, max_droppable=1)

    @workers.task
    def gate() -> None:
        closed.set()
        assert opened.wait(60)

    @workers.task
    def note(text: str) -> str:
        return text

    gate.submit()
    assert closed.wait(60)  # the only thread is inside
    oldest = note.options(full="drop_oldest").submit("oldest")
    newer = note.options(full="drop_oldest").submit("newer")
    assert oldest.report().status == TaskStatus.REJECTED
    try:
        for number in range(1000):
            note.submit("more")
        raise AssertionError("there is always room")
    except paceline.Full:
        pass
    opened.set()
    assert newer.result() == "newer"
    workers.shutdown(drain=60)
