"""Any descriptor that can be polled has a handler: here a pipe. What the handler answers says how it goes on.

feature: pool/descriptors
"""

import os
import queue

import paceline
from paceline import Flow, Ready

came: "queue.Queue[bytes]" = queue.Queue()


def read_some(fd: int, ready: Ready) -> Flow:
    data = os.read(fd, 64)
    came.put(data)
    return Flow.WAIT if data else Flow.DONE  # the other end is closed


ours, theirs = os.pipe()
with paceline.Pool() as pool:
    handle = pool.register(ours, read_some)
    os.write(theirs, b"hello")
    assert came.get(timeout=60) == b"hello"
    handle.pause()  # no calls for a while
    os.write(theirs, b" world")
    handle.resume()
    assert came.get(timeout=60) == b" world"
    os.close(theirs)
    assert came.get(timeout=60) == b""
os.close(ours)
