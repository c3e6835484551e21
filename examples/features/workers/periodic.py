"""A periodic task: again and again, beside the others, until it is closed.

feature: workers/periodic
"""

import queue

import paceline

beats: "queue.Queue[int]" = queue.Queue()
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def beat(number: int) -> None:
        beats.put(number)

    # A tick that comes while the last one still runs is skipped, or made up for later ("coalesce").
    periodic = workers.every(0.001, beat, 42, missed="skip")
    assert [beats.get(timeout=60) for _ in range(3)] == [42] * 3
    periodic.close()
    workers.shutdown(drain=60)
