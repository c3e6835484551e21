"""Leader and followers: a handler that is about to block hands the lead on, and another thread sees the next event.

feature: pool/leader
"""

import socket
import threading

import paceline
from paceline import Flow, Ready

first_blocks, second_ran = threading.Event(), threading.Event()


def blocks(_: socket.socket, ready: Ready) -> Flow:
    paceline.promote_new_leader()  # from here on another thread waits for events
    first_blocks.set()
    assert second_ran.wait(60)
    return Flow.DONE


def runs(_: socket.socket, ready: Ready) -> Flow:
    second_ran.set()
    return Flow.DONE


first, to_first = socket.socketpair()
second, to_second = socket.socketpair()
with first, to_first, second, to_second, paceline.Pool(2) as pool:
    pool.register(first, blocks)
    pool.register(second, runs)
    to_first.send(b"!")
    assert first_blocks.wait(60)
    to_second.send(b"!")
    assert second_ran.wait(60)
    # The statistics tell who leads, and what each thread does.
    stats = pool.stats()
    assert len(stats.sets) == 1 and len(stats.threads) == 2
