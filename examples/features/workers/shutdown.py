"""The end in phases: no new tasks, a drain, a stop of what is left, hooks that clean up; and a report.

feature: workers/shutdown
"""

import threading
import time

import paceline

running, cleaned = threading.Event(), threading.Event()
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)

    @workers.task
    def endless() -> None:
        running.set()
        while not paceline.current_attempt().cancelled:
            time.sleep(0.001)

    @workers.on_shutdown
    def close_the_database() -> None:
        cleaned.set()

    endless.submit()
    assert running.wait(60)
    # Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute.
    report = workers.shutdown(drain=0.01, stop=60, clean_up=60)
    assert not report.drained and not report.stuck and not report.failed_hooks
    assert cleaned.is_set()
    try:
        endless.submit()
        raise AssertionError("it takes nothing more")
    except paceline.ShutDownError:
        pass
    assert workers.audit().balances
