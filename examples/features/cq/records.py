"""A completion queue brings signals of the process as data. Records of the log go to `logging` or to a function: see
ops/log.py.

feature: cq/records
prints:
    kind: SIGNAL
    tag: 1
    signal: SIGHUP
"""

import os
import signal

import paceline

# The pool's threads block all signals that matter; other threads of the program must block them, too.
with paceline.Pool(0) as pool, paceline.CompletionQueue(pool) as queue:
    queue.signals([signal.SIGHUP], tag=1)  # in the main thread
    os.kill(os.getpid(), signal.SIGHUP)
    (entry,) = queue.wait(timeout=60)
    print("kind:", entry.kind.name)
    print("tag:", entry.tag)
    print("signal:", signal.Signals(entry.detail).name)
    queue.done(entry)
