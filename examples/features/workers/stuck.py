"""A task that does not return when its time is over is reported as stuck until it returns: no code can be killed.

feature: workers/stuck
prints:
    the task is TIMED_OUT
    task.stuck: degraded, 1 of 2 threads are left
    task.returned: ready, 2 of 2 threads are left
"""

import queue
import threading

import paceline
from paceline import LogRecord

records: "queue.Queue[LogRecord]" = queue.Queue()
log = paceline.Log(levels="error,task=info", callback=records.put, logger=False)
began, go_on = threading.Event(), threading.Event()
with paceline.Pool(log=log) as pool, paceline.WorkerPool(pool, threads=2) as workers:

    @workers.task(timeout=0.1, grace=0.005)
    def hang() -> None:
        began.set()
        go_on.wait(60)  # never asks whether it is cancelled

    def show_next() -> None:
        event, health = records.get(timeout=60).event, workers.health()
        print(f"{event}: {health.status}, {health.capacity} of {health.threads} threads are left")

    while not began.is_set():  # on a busy machine its time may be over before it begins
        report = hang.submit().report()
    print("the task is", report.status.name)  # nobody waits for its thread
    show_next()
    go_on.set()
    show_next()
log.close(60)
