"""Signals of the process: a function is told, or the program waits for one.

feature: pool/signals
"""

import os
import queue
import signal

import paceline

told: "queue.Queue[int]" = queue.Queue()
with paceline.Pool() as pool:
    with paceline.Signals([signal.SIGHUP], on_signal=told.put), paceline.Signals() as ends:
        os.kill(os.getpid(), signal.SIGHUP)
        assert told.get(timeout=60) == signal.SIGHUP

        pool.after(0.01, os.kill, os.getpid(), signal.SIGTERM)
        assert ends.wait(60) == signal.SIGTERM  # SIGTERM or SIGINT
    assert pool.shutdown(60).drained
