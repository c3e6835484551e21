"""With eager promotion another thread takes the lead before each handler, for handlers that usually block. By default a
thread that watches takes the lead from a handler that is slow.

feature: pool/promotion
prints:
    both handlers are inside at once
    both have returned
"""

import socket
import threading

import paceline
from paceline import Flow, Ready

meeting = threading.Barrier(3)


def meet(_: socket.socket, ready: Ready) -> Flow:
    meeting.wait(60)  # it blocks, without having said so
    return Flow.DONE


one, to_one = socket.socketpair()
other, to_other = socket.socketpair()
with one, to_one, other, to_other, paceline.Pool(3, promotion="eager") as pool:
    to_one.send(b"!")
    to_other.send(b"!")
    pool.register(one, meet)
    pool.register(other, meet)
    meeting.wait(60)
    print("both handlers are inside at once")
print("both have returned")
