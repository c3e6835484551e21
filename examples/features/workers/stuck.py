"""A task that does not return after its time is over cannot be killed: its thread is reported as stuck until it returns.

feature: workers/stuck
"""

import threading
import time

import paceline

began, opened = threading.Event(), threading.Event()
with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, threads=2)

    @workers.task(timeout=0.05, grace=0.005)
    def hang() -> None:
        began.set()
        assert opened.wait(60)  # does not ask whether it is cancelled

    while not began.is_set():  # on a busy machine its time may be over before it begins
        try:
            hang.submit().result()  # nobody waits for the thread
            raise AssertionError("its time is over")
        except paceline.TimeoutError:
            pass
    while not workers.health().stuck:
        time.sleep(0.001)
    opened.set()
    while workers.health().stuck:
        time.sleep(0.001)
    workers.shutdown()
