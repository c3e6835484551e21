"""Timers: one that rings once, one that is periodic, and one that is put off and then cancelled.

feature: pool/timers
prints:
    once
    tick 1
    tick 2
    tick 3
    the third was cancelled before it rang
"""

import queue
from typing import Optional

import paceline
from paceline import Flow

rings: "queue.Queue[str]" = queue.Queue()
ticks = 0


def tick() -> Optional[Flow]:
    global ticks
    ticks += 1
    rings.put(f"tick {ticks}")
    return Flow.DONE if ticks == 3 else None


with paceline.Pool() as pool:
    pool.after(0.001, rings.put, "once")
    print(rings.get(timeout=60))

    pool.every(0.001, tick)
    for _ in range(3):
        print(rings.get(timeout=60))

    timer = pool.after(3600, rings.put, "never")
    timer.postpone(7200)  # from now
    if timer.cancel():
        print("the third was cancelled before it rang")
