"""The leader is the thread that waits for events. A handler that is about to block hands the lead on, so that another
thread sees the next event.

feature: pool/leader
prints:
    the first handler blocks
    the second handler runs
    the first handler goes on
"""

import socket
import threading

import paceline
from paceline import Flow, Ready

first_blocks, second_ran = threading.Event(), threading.Event()


def block(_: socket.socket, ready: Ready) -> Flow:
    paceline.promote_new_leader()  # from here on another thread waits for events
    print("the first handler blocks")
    first_blocks.set()
    second_ran.wait(60)
    print("the first handler goes on")
    return Flow.DONE


def run(_: socket.socket, ready: Ready) -> Flow:
    print("the second handler runs")
    second_ran.set()
    return Flow.DONE


first, to_first = socket.socketpair()
second, to_second = socket.socketpair()
with first, to_first, second, to_second, paceline.Pool(2) as pool:
    pool.register(first, block)
    pool.register(second, run)
    to_first.send(b"!")
    first_blocks.wait(60)
    to_second.send(b"!")
    second_ran.wait(60)
