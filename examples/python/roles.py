"""Who leads, and who handles: ten events, three workers. One worker leads, which means that it waits for events. It sees
one, hands the lead on, and handles the event itself.

    cargo build --release
    PYTHONPATH=bindings/python/src PACELINE_LIBRARY=target/release/libpaceline.so python3 examples/python/roles.py
"""

import threading
import time
from functools import partial

import paceline


def worker(pool: paceline.Pool, native_id: int) -> int:
    """The worker that a thread is, from 1 on."""
    return 1 + [thread.native_id for thread in pool.stats().threads].index(native_id)


def leader(pool: paceline.Pool) -> int:
    """The worker that leads now."""
    while (native_id := pool.stats().sets[0].leader) is None:
        time.sleep(0.0001)  # between two leaders
    return worker(pool, native_id)


def handle(pool: paceline.Pool, event: int, done: threading.Semaphore) -> None:
    # By itself the lead is handed on when a handler takes long. A handler that knows that it will says so.
    paceline.promote_new_leader()
    this = worker(pool, threading.get_native_id())
    print(f"worker {this} handles event {event}, worker {leader(pool)} leads", flush=True)
    time.sleep(0.03)  # what the event takes
    done.release()


def main() -> None:
    done = threading.Semaphore(0)
    with paceline.Pool(3) as pool:
        for event in range(1, 11):
            # A timer is an event, as is a descriptor that becomes readable.
            pool.after(0.02 * event, partial(handle, pool, event, done))
        for _ in range(10):
            done.acquire()


if __name__ == "__main__":
    main()
