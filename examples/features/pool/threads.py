"""A fixed pool of threads, made at its start and pinned to CPUs.

feature: pool/threads
"""

import os

import paceline

cpu = min(os.sched_getaffinity(0))
begun: list[int] = []
ended: list[int] = []
with paceline.Pool(
    2,
    name="pinned",
    pin=[cpu],  # or "compact", "spread", "none"
    pin_strict=True,
    on_thread_start=begun.append,
    on_thread_end=ended.append,
) as pool:
    where = [pool.submit(os.sched_getaffinity, 0).result() for _ in range(4)]
    assert where == [{cpu}] * 4
    threads = pool.stats().threads
    assert [(thread.cpu, thread.pin_failed) for thread in threads] == [(cpu, False)] * 2
assert (len(begun), len(ended)) == (2, 2)
