"""A completion queue brings descriptors, ticks, timers and the program's own tags as data, out of one wait, for
programs that do not want to be called back. Any thread may complete an entry.

feature: cq/pool
prints:
    pipe: READY
    ticker: TICK
    timer: TIMER
    posted: TASK
"""

import os

import paceline

NAMES = ["pipe", "ticker", "timer", "posted"]  # tags are numbers: here the places in this list
ours, theirs = os.pipe()
with paceline.Pool() as pool, paceline.CompletionQueue(pool) as queue:
    queue.register(ours, tag=0)
    queue.every(0.001, tag=1)
    queue.after(0.001, tag=2)
    queue.post(3)
    os.write(theirs, b"x")

    seen: dict[int, str] = {}
    while len(seen) < len(NAMES):
        entries = queue.wait(timeout=60)
        for entry in entries:
            seen[entry.tag] = entry.kind.name
            if entry.tag == 0:
                os.read(ours, 1)
        queue.done(*entries)  # the next of the pipe and of the ticker may come
    for tag, kind in sorted(seen.items()):
        print(f"{NAMES[tag]}: {kind}")
os.close(ours)
os.close(theirs)
