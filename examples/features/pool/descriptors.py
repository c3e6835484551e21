"""A pool calls a handler when a descriptor is ready, here a pipe; what the handler returns says how it goes on.

feature: pool/descriptors
prints:
    read: b'hello'
    read after the pause: b' world'
    read at the end: b''
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
    print("read:", came.get(timeout=60))
    handle.pause()  # no calls for a while
    os.write(theirs, b" world")
    handle.resume()
    print("read after the pause:", came.get(timeout=60))
    os.close(theirs)
    print("read at the end:", came.get(timeout=60))
os.close(ours)
