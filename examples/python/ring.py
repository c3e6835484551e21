"""Several producers, one table, no lock.

Weather stations measure, each in a thread of its own. The pool keeps one table of what all of them
have seen. A serial ring calls its handler on one thread at a time, with everything that has come since
the last call, so the table simply belongs to the handler.

    python examples/python/ring.py

feature: pool/rings
"""

import math
import struct
import threading

import paceline

STATIONS = ("harbour", "airport", "summit")
PER_STATION = 10_000
BATCH = 100

#: What the ring carries: a station's number and degrees Celsius.
READING = struct.Struct("=Bd")


def measure(station: int, number: int) -> float:
    """A day and a night go by in a thousand readings."""
    hour = number % 1000 / 1000 * 24
    return (14.0, 11.0, -3.0)[station] + 6 * math.sin((hour - 9) / 24 * math.tau)


def main() -> None:
    table = [[0, math.inf, 0.0, -math.inf] for _ in STATIONS]
    left = len(STATIONS) * PER_STATION
    finished = threading.Event()

    def enter(batch: "list[bytes]") -> None:
        nonlocal left
        for payload in batch:
            station, celsius = READING.unpack(payload)
            row = table[station]
            row[:] = row[0] + 1, min(row[1], celsius), row[2] + celsius, max(row[3], celsius)
        left -= len(batch)
        if left == 0:
            finished.set()

    def produce(station: int) -> None:
        for first in range(0, PER_STATION, BATCH):
            readings = [
                READING.pack(station, measure(station, number)) for number in range(first, first + BATCH)
            ]
            published = ring.publish_batch(readings)
            # A full ring makes its producers wait.
            for reading in readings[published:]:
                ring.publish(reading)

    with paceline.Pool() as pool:
        ring = paceline.Ring(pool, enter, capacity=4096, max_payload=READING.size)
        producers = [threading.Thread(target=produce, args=(n,)) for n in range(len(STATIONS))]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        finished.wait()

    print(f"{'station':<8} {'readings':>8} {'lowest':>7} {'mean':>7} {'highest':>7}")
    for name, (readings, lowest, total, highest) in zip(STATIONS, table):
        print(f"{name:<8} {readings:>8} {lowest:>7.1f} {total / readings:>7.1f} {highest:>7.1f}")


if __name__ == "__main__":
    main()
