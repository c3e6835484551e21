"""A periodic task runs again and again until it is closed.

feature: workers/periodic
prints:
    beat
    beat
    beat
"""

import queue

import paceline

beats: "queue.Queue[str]" = queue.Queue()
with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:

    @workers.task
    def beat(text: str) -> None:
        beats.put(text)

    # A tick that comes while the last one still runs is skipped, or made up for later ("coalesce").
    periodic = workers.every(0.001, beat, "beat", missed="skip")
    for _ in range(3):
        print(beats.get(timeout=60))
    periodic.close()
