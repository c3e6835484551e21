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

    # A tick that comes while a run goes on is skipped; with "coalesce" one run makes up for all.
    periodic = workers.every(0.001, beat, "beat", missed="skip")
    for _ in range(3):
        print(beats.get(timeout=60))
    periodic.close()
