"""A strand runs its tasks one at a time and in order, on any thread, so what they share needs no lock.

feature: pool/strands
prints:
    the first task has counted to 1
    the last task has counted to 1000
"""

import paceline

counter = 0


def count() -> int:
    global counter
    counter += 1
    return counter


with paceline.Pool(2) as pool:
    strand = pool.strand()
    tasks = [strand.submit(count) for _ in range(1000)]
    print("the first task has counted to", tasks[0].result())
    print("the last task has counted to", tasks[-1].result())
