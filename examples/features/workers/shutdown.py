"""A shutdown drains, then stops what is left, then calls hooks that clean up, and returns a report.

feature: workers/shutdown
prints:
    the task stops
    the database is closed
    not drained; completed: 1 endless; cancelled: none; stuck: none
    one more task: the worker pool is shut down
"""

import threading
import time

import paceline

running = threading.Event()
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def endless() -> None:
        running.set()
        while not paceline.current_attempt().cancelled:
            time.sleep(0.001)
        print("the task stops")

    @workers.on_shutdown
    def close_the_database() -> None:
        print("the database is closed")

    endless.submit()
    running.wait(60)
    # Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute.
    print(workers.shutdown(drain=0.01, stop=60, clean_up=60))
    try:
        endless.submit()
    except paceline.ShutDownError as error:
        print("one more task:", error)
