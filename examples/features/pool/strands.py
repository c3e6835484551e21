"""A strand: its tasks run one at a time and in order, on any thread, so what they share needs no lock.

feature: pool/strands
"""

import paceline

counter = 0


def count() -> int:
    global counter
    counter += 1
    return counter


with paceline.Pool(2) as pool:
    strand = pool.strand()
    for _ in range(999):
        strand.post(count)
    assert strand.submit(count).result() == 1000
