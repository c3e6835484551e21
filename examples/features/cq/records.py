"""Signals as data. Records of the log go to `logging` or to a function: see log.py.

feature: cq/records
"""

import os
import signal

import paceline
from paceline import EntryKind

# Its threads block all signals that matter; other threads that there are must, too.
with paceline.Pool(0) as pool, paceline.CompletionQueue(pool) as queue:
    queue.signals([signal.SIGHUP], tag=1)  # in the main thread
    os.kill(os.getpid(), signal.SIGHUP)
    (entry,) = queue.wait(timeout=60)
    assert (entry.kind, entry.tag, entry.detail) == (EntryKind.SIGNAL, 1, signal.SIGHUP)
    queue.done(entry)
