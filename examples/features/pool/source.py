"""A pool that waits at a source in memory, and not at epoll: tasks, timers and rings as ever, but no descriptors.

feature: pool/source
"""

import sys

import paceline
from paceline import Flow

with paceline.Pool(2, source="ring") as pool:
    assert pool.submit(lambda: 42).result() == 42
    try:
        pool.register(sys.stdin, lambda _, ready: Flow.DONE)
        raise AssertionError("a descriptor was taken")
    except paceline.Error:
        pass
