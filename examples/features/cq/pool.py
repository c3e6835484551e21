"""A completion queue: descriptors, ticks, timers and tags of the program's own come out of one wait as data, for programs
that do not want to be called back. Each entry is completed, by any thread.

feature: cq/pool
"""

import os

import paceline

PIPE, TICKER, ONCE, POSTED = range(4)
ours, theirs = os.pipe()
with paceline.Pool() as pool, paceline.CompletionQueue(pool) as queue:
    queue.register(ours, PIPE)
    queue.every(0.001, TICKER)
    queue.after(0.001, ONCE)
    queue.post(POSTED)
    os.write(theirs, b"x")

    ticks, seen = 0, set()
    while ticks < 3 or len(seen) < 4:
        entries = queue.wait(timeout=60)
        assert entries
        for entry in entries:
            if entry.tag == PIPE:
                assert os.read(ours, 1) == b"x"
            ticks += entry.tag == TICKER
            seen.add(entry.tag)
            if entry.tag in (PIPE, TICKER):
                queue.done(entry)  # the next of it may come
    stats = queue.stats()
    assert stats.brought == stats.completed + stats.withdrawn + stats.out
os.close(ours)
os.close(theirs)
