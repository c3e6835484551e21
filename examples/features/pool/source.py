"""A pool may wait at a source in memory instead of epoll: it has tasks, timers and rings then, but no descriptors.

feature: pool/source
prints:
    the task returned 42
    a descriptor was refused: this handle set has no descriptors
"""

import sys

import paceline
from paceline import Flow

with paceline.Pool(2, source="ring") as pool:
    print("the task returned", pool.submit(lambda: 42).result())
    try:
        pool.register(sys.stdin, lambda _, ready: Flow.DONE)
    except paceline.Error as error:
        print("a descriptor was refused:", str(error).rpartition(": ")[2])
