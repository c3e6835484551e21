"""Tasks with a report of how each ended; many at once; and those for which nobody waits.

feature: workers/tasks
"""

import asyncio

import paceline
from paceline import TaskStatus

posted: list[str] = []
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def square(number: int) -> int:
        return number * number

    @workers.task
    async def later(number: int) -> int:
        # On an event loop of the worker pool's: it holds no thread.
        await asyncio.sleep(0.01)
        return number

    @workers.task
    def note(text: str) -> None:
        posted.append(text)

    report = square.submit(5).report()
    assert (report.status, report.value, report.attempts) == (TaskStatus.COMPLETED, 25, 1)
    assert sum(task.result() for task in square.submit_batch(range(1, 5))) == 30
    assert later.submit(7).result() == 7
    note.post("fire and forget")
    assert workers.shutdown(drain=60).drained
assert posted == ["fire and forget"]
