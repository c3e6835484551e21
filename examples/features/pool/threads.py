"""A pool has a fixed number of threads, which are made at its start and may be pinned to CPUs.

feature: pool/threads
prints:
    pinned to the CPU that was asked for: 2 threads
    a task may run on 1 CPU
    2 threads began, 2 ended
"""

import os

import paceline

cpu = min(os.sched_getaffinity(0))
begun: list[int] = []
ended: list[int] = []
with paceline.Pool(
    2,
    pin=[cpu],  # or "compact", "spread", "none"
    pin_strict=True,
    on_thread_start=begun.append,
    on_thread_end=ended.append,
) as pool:
    threads = [thread for thread in pool.stats().threads if thread.cpu == cpu]
    print("pinned to the CPU that was asked for:", len(threads), "threads")
    cpus = pool.submit(os.sched_getaffinity, 0).result()
    print("a task may run on", len(cpus), "CPU")
print(len(begun), "threads began,", len(ended), "ended")
