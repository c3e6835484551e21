"""A bounded queue carries bytes between any number of threads, without a pool.

feature: pool/queues
prints:
    the sum of what two threads pushed: 1001000
    the queue is empty
    the queue is full
    left in it: 0 1 2 3 4 5 6 7
    the queue is closed and empty
"""

import threading

import paceline

queue = paceline.Queue(8)


def produce() -> None:
    for number in range(1, 1001):
        queue.push(b"%d" % number)  # waits for room


producers = [threading.Thread(target=produce) for _ in range(2)]
for producer in producers:
    producer.start()
print("the sum of what two threads pushed:", sum(int(queue.pop()) for _ in range(2000)))
for producer in producers:
    producer.join()

try:
    queue.pop(timeout=0)
except paceline.Empty as empty:
    print(empty)
try:
    for number in range(9):
        queue.push(b"%d" % number, timeout=0)
except paceline.Full as full:
    print(full)
queue.close()
print("left in it:", *(item.decode() for item in queue.pop_batch(16)))
try:
    queue.pop()
except paceline.ShutDownError as closed:
    print(closed)
