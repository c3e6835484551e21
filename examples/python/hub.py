"""Two thermometers publish to four subscribers: one adds up, one is an asyncio task, one refuses what
cannot be, and one is too slow and loses by its policy. At the end, what became of every reading.

    python examples/python/hub.py

feature: hub/subscribe
"""

from __future__ import annotations

import asyncio
import struct
import threading

import paceline
from paceline import Message

READINGS = 1000
#: What a broken thermometer says.
BROKEN = -300

pool = paceline.Pool(1)
hub = paceline.Hub(pool, threads=3)


def reading(message: Message) -> int:
    return int(struct.unpack("<q", message.payload)[0])


def measure(key: str, broken_at: int) -> None:
    """Degrees between -10 and 30, and one reading that cannot be."""
    looked_up = hub.key(key)
    for number in range(READINGS):
        degrees = BROKEN if number == broken_at else number % 41 - 10
        hub.publish(looked_up, struct.pack("<q", degrees))


total = 0
gate = threading.Event()


@hub.subscribe("temperature.*", capacity=2 * READINGS)
def adds(message: Message) -> None:
    global total
    total += max(-273, reading(message))


broken: list[str] = []


def report(message: Message, error: BaseException) -> None:
    broken.append(message.key)


@hub.subscribe("temperature.>", capacity=2 * READINGS, on_error=report)
def checks(message: Message) -> None:
    if reading(message) < -273:
        raise ValueError("no temperature")


@hub.subscribe("temperature.roof", capacity=10, overflow="drop-oldest")
def slow(message: Message) -> None:
    """Is busy with its first reading until the last one has come."""
    gate.wait()


async def alarms() -> int:
    """How many readings of the roof are too hot."""
    hot = 0
    with hub.mailbox("temperature.roof", capacity=READINGS) as mailbox:
        publishers = [
            threading.Thread(target=measure, args=("temperature.roof", 100)),
            threading.Thread(target=measure, args=("temperature.cellar", 500)),
        ]
        for publisher in publishers:
            publisher.start()
        async for message in mailbox:
            hot += reading(message) >= 30
            if mailbox.stats().delivered == READINGS:
                break
        for publisher in publishers:
            publisher.join()
    return hot


print("hot:", asyncio.run(alarms()))
gate.set()
for subscription in (adds, checks, slow):
    subscription.unsubscribe("drain")
    subscription.wait()
print("sum:", total)
print("broken:", sorted(broken), "last:", repr(checks.last_error))
for name, subscription in (("adds", adds), ("checks", checks)):
    stats = subscription.stats()
    print(f"{name}: {stats.matched} = {stats.delivered} delivered + {stats.dead_lettered} dead letters")
print("checks was restarted", checks.stats().restarts, "times")
stats = slow.stats()
print("slow lost some:", stats.dropped > 0 and stats.matched == stats.delivered + stats.dropped)
hub.close()
print("the books balance:", hub.audit().balances)
pool.shutdown()
