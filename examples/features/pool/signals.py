"""A function is called for each signal of the process, or the program waits for one.

feature: pool/signals
prints:
    the function got SIGHUP
    the program got SIGTERM
"""

import os
import queue
import signal

import paceline

told: "queue.Queue[int]" = queue.Queue()
with paceline.Signals([signal.SIGHUP], on_signal=told.put), paceline.Signals() as ends:
    os.kill(os.getpid(), signal.SIGHUP)
    print("the function got", signal.Signals(told.get(timeout=60)).name)
    os.kill(os.getpid(), signal.SIGTERM)
    number = ends.wait(60)  # for SIGTERM or SIGINT
    print("the program got", signal.Signals(number or 0).name)
