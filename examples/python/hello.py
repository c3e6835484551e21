"""A task, ten tasks, a timer.

python examples/python/hello.py

feature: pool/tasks
"""

import queue
import time

import paceline


def main() -> None:
    # A thread per CPU, at most four. Leaving the block waits for what was accepted.
    with paceline.Pool() as pool:
        # A task, and its value.
        print("a task says", pool.submit(lambda: 6 * 7).result())

        # Ten tasks. They run on any thread in any order; the values are taken in this one.
        squares = pool.submit_batch(lambda n: n * n, range(1, 11))
        print("ten tasks say", [square.result() for square in squares])

        # A timer, which ends by itself: nothing need be kept. It runs late if at all, never early.
        heard: "queue.SimpleQueue[float]" = queue.SimpleQueue()
        began, delay = time.monotonic(), 0.020
        pool.after(delay, lambda: heard.put(time.monotonic()))
        print("a timer says that 20 ms have passed:", heard.get() - began >= delay)

    # Every task is accounted for.
    print("the books balance:", pool.audit().balances)


if __name__ == "__main__":
    main()
