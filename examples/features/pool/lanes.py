"""Tasks in a higher lane begin before those in a lower one.

feature: pool/lanes
prints:
    CRITICAL
    HIGH
    NORMAL
    LOW
"""

import threading

import paceline
from paceline import Lane

gate = threading.Event()
with paceline.Pool(1) as pool:
    pool.lane(Lane.CRITICAL).post(gate.wait, 60)  # the only thread is busy until all are submitted
    for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH, Lane.CRITICAL):
        pool.lane(lane).post(print, lane.name)
    gate.set()
