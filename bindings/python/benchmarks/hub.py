"""Deliveries per second of a Hub, beside the hub that one writes: a queue and a thread per subscriber.

    python bindings/python/benchmarks/hub.py [--subscribers N] [--messages N] [--rounds N]

Messages of 8 bytes are published with one key in bursts that fit a queue, and a burst is over when every
subscriber has handled all of it: each message is counted by its subscriber, which looks at its payload. Ours
are published in batches. "pulled" is one thread that pulls batches of all mailboxes and calls the same function
for each payload as the queue's threads do; "handlers" are called by a thread of the hub for each message, and
"batch handlers" for each batch, of which they look at each payload. Each round runs all of them, in turns; a
ratio is taken within a round and the median of the ratios is printed, so that what else the machine does meets
all alike.
"""

from __future__ import annotations

import argparse
import queue
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

import paceline

#: Messages of a burst, and what a queue holds.
BURST = 1024
#: Messages of a batch.
BATCH = 256
#: After so many seconds a delivery is lost.
PATIENCE = 60.0


class Counter:
    """Counts what the subscribers have handled, and says when it is a burst."""

    def __init__(self, subscribers: int) -> None:
        self.left = self.subscribers = subscribers
        self.lock = threading.Lock()
        self.all = threading.Event()

    def burst(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.left = self.subscribers
                self.all.set()

    def wait(self) -> None:
        if not self.all.wait(PATIENCE):
            raise RuntimeError(f"{self.left} of {self.subscribers} subscribers have not got all")
        self.all.clear()


class Subscriber:
    """Handles payloads."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.left = BURST

    def handle(self, payload: bytes) -> None:
        self.left -= len(payload) == 8
        if self.left == 0:
            self.left = BURST
            self.counter.burst()

    def handle_message(self, message: paceline.Message) -> None:
        self.left -= len(message.payload) == 8
        if self.left == 0:
            self.left = BURST
            self.counter.burst()

    def handle_batch(self, batch: paceline.Batch) -> None:
        for payload in batch.payloads:
            self.left -= len(payload) == 8
        if self.left == 0:
            self.left = BURST
            self.counter.burst()


class Standard:
    """Of the standard library: a queue and a thread for each subscriber."""

    def __init__(self, subscribers: int, counter: Counter) -> None:
        self.queues: dict[str, list[queue.Queue[Optional[bytes]]]] = {}
        self.threads = []
        for _ in range(subscribers):
            mine: queue.Queue[Optional[bytes]] = queue.Queue(BURST)
            self.queues.setdefault("a.b", []).append(mine)
            thread = threading.Thread(target=self.serve, args=(mine, Subscriber(counter).handle))
            thread.start()
            self.threads.append(thread)

    @staticmethod
    def serve(mine: queue.Queue[Optional[bytes]], handle: Callable[[bytes], None]) -> None:
        while True:
            payload = mine.get()
            if payload is None:
                return
            handle(payload)

    def publish(self, payloads: list[bytes]) -> None:
        queues = self.queues["a.b"]
        for payload in payloads:
            for each in queues:
                each.put(payload)

    def close(self) -> None:
        for each in self.queues["a.b"]:
            each.put(None)
        for thread in self.threads:
            thread.join()


class Pulled:
    """Ours: mailboxes, which one thread empties in batches."""

    def __init__(self, subscribers: int, counter: Counter) -> None:
        self.pool = paceline.Pool(1)
        self.hub = paceline.Hub(self.pool)
        self.key = self.hub.key("a.b")
        self.mailboxes = [self.hub.mailbox("a.b", capacity=BURST) for _ in range(subscribers)]
        self.work = threading.Semaphore(0)
        self.handlers = [Subscriber(counter).handle for _ in range(subscribers)]
        self.over = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        pairs = list(zip(self.mailboxes, self.handlers))
        first = self.mailboxes[0]
        try:
            while True:
                # All have the same messages: where the first waits for some, so do the others.
                for mailbox, handle in pairs:
                    batch = mailbox.pull_batch(BATCH, None if mailbox is first else 0)
                    if batch:
                        for payload in batch.payloads:
                            handle(payload)
        except paceline.StaleError:
            pass

    def publish(self, payloads: list[bytes]) -> None:
        for start in range(0, len(payloads), BATCH):
            receipt = self.hub.publish_batch(self.key, payloads[start : start + BATCH])
            if receipt.rejected:
                raise RuntimeError(f"lost: {receipt}")

    def close(self) -> None:
        self.hub.close()
        self.thread.join()
        self.pool.shutdown()


class Handled(Pulled):
    """Ours: handlers, which a thread of the hub calls."""

    def __init__(self, subscribers: int, counter: Counter) -> None:
        self.pool = paceline.Pool(1)
        self.hub = paceline.Hub(self.pool)
        self.key = self.hub.key("a.b")
        for _ in range(subscribers):
            self.subscribe(Subscriber(counter))

    def subscribe(self, subscriber: Subscriber) -> None:
        self.hub.subscribe("a.b", subscriber.handle_message, capacity=BURST)

    def close(self) -> None:
        self.hub.close()
        self.pool.shutdown()


class Batched(Handled):
    """Ours: handlers of batches."""

    def subscribe(self, subscriber: Subscriber) -> None:
        self.hub.subscribe("a.b", subscriber.handle_batch, capacity=BURST, batch=BATCH)


KINDS: dict[str, Any] = {
    "queues and threads": Standard,
    "pulled": Pulled,
    "handlers": Handled,
    "batch handlers": Batched,
}


def rate(kind: Any, subscribers: int, bursts: int) -> float:
    """Deliveries per second."""
    counter = Counter(subscribers)
    hub = kind(subscribers, counter)
    payloads = [number.to_bytes(8, "little") for number in range(BURST)]
    try:
        for number in range(bursts + 1):
            if number == 1:
                start = time.perf_counter()
            hub.publish(payloads)
            counter.wait()
        return bursts * BURST * subscribers / (time.perf_counter() - start)
    finally:
        hub.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=10)
    parser.add_argument("--messages", type=int, default=20 * BURST)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    subscribers, bursts = options.subscribers, max(1, options.messages // BURST)
    print(f"{subscribers} subscribers, {bursts} bursts of {BURST} messages, {options.rounds} rounds")
    names = list(KINDS)
    rates: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(options.rounds):
        for name in names if turn % 2 else reversed(names):
            rates[name].append(rate(KINDS[name], subscribers, bursts))
    standard = rates[names[0]]
    print(f"{'':<20}{'deliveries/s':>14}{'ratio':>8}")
    for name in names:
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates[name], standard))
        print(f"{name:<20}{statistics.median(rates[name]):>14,.0f}{ratio:>8.1f}")


if __name__ == "__main__":
    main()
