"""A bounded queue of bytes for any number of threads, for use without a pool.

feature: pool/queues
"""

import threading

import paceline

queue = paceline.Queue(8)
try:
    queue.pop(0)
    raise AssertionError("it is empty")
except paceline.Empty:
    pass


def produce() -> None:
    for number in range(1, 1001):
        queue.push(b"%d" % number)


producers = [threading.Thread(target=produce) for _ in range(2)]
for producer in producers:
    producer.start()
assert sum(int(queue.pop()) for _ in range(2000)) == 1001000
for producer in producers:
    producer.join()

pushed = 0
try:
    while True:
        queue.push(b"x", 0)
        pushed += 1
except paceline.Full:
    assert pushed == queue.capacity
queue.close()
assert queue.pop_batch(16) == [b"x"] * 8
try:
    queue.pop(0)
    raise AssertionError("it is closed")
except paceline.ShutDownError:
    pass
