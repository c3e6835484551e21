"""Tasks are submitted singly with a report of how each ended, in batches, or without a result.

feature: workers/tasks
prints:
    COMPLETED, value 25, attempts 1
    a batch: 1 4 9 16
    a coroutine: 7
    fire and forget
"""

import asyncio

import paceline

with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:

    @workers.task
    def square(number: int) -> int:
        return number * number

    @workers.task
    async def later(number: int) -> int:
        # It runs on an event loop of the worker pool, and holds no thread.
        await asyncio.sleep(0.01)
        return number

    @workers.task
    def note(text: str) -> None:
        print(text)

    report = square.submit(5).report()
    print(f"{report.status.name}, value {report.value}, attempts {report.attempts}")
    print("a batch:", *(task.result() for task in square.submit_batch(range(1, 5))))
    print("a coroutine:", later.submit(7).result())
    note.post("fire and forget")
