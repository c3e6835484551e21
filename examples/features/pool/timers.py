"""Timers: one that rings once, one that rings again and again, and one that is put off and then cancelled.

feature: pool/timers
"""

import queue
from typing import Optional

import paceline
from paceline import Flow

with paceline.Pool() as pool:
    rings: "queue.Queue[str]" = queue.Queue()

    pool.after(0.001, rings.put, "once")
    assert rings.get(timeout=60) == "once"

    ticks = 0

    def tick() -> Optional[Flow]:
        global ticks
        ticks += 1
        rings.put(f"tick {ticks}")
        return Flow.DONE if ticks == 3 else None

    pool.every(0.001, tick)
    assert [rings.get(timeout=60) for _ in range(3)] == ["tick 1", "tick 2", "tick 3"]

    timer = pool.after(3600, rings.put, "never")
    assert timer.postpone(7200)  # from now
    assert timer.cancel()
assert rings.empty()
