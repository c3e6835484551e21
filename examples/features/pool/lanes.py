"""Lanes of priority: what waits in a higher lane begins first.

feature: pool/lanes
"""

import threading

import paceline
from paceline import Lane

closed, opened = threading.Event(), threading.Event()
order: list[str] = []


def gate() -> None:
    closed.set()
    assert opened.wait(60)


with paceline.Pool(1) as pool:
    pool.post(gate)
    assert closed.wait(60)
    for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH, Lane.CRITICAL):
        pool.lane(lane).post(order.append, lane.name)
    opened.set()
assert order == ["CRITICAL", "HIGH", "NORMAL", "LOW"]
