"""Workers that take turns at a queue of tasks. The worker that leads takes a task, hands the lead on, and handles the task.
In `roles` one worker waits for events. Here tasks are in a queue, and whoever is free takes the next one.

    cargo build --release
    PYTHONPATH=bindings/python/src PACELINE_LIBRARY=target/release/libpaceline.so python3 examples/python/turns.py
"""

import threading
import time

import paceline


def handle(task: int) -> None:
    worker = threading.current_thread().name
    print(f"{worker} leads, and takes task {task}", flush=True)
    paceline.promote_new_leader()  # another worker is called for the next task
    time.sleep(0.025)  # what the task takes
    print(f"{worker} has handled task {task}", flush=True)


def main() -> None:
    with paceline.Pool(3, name="worker") as pool:
        for task in range(1, 10):
            # The queue: a lane of the pool. It is bounded, and a post waits for room.
            pool.post(handle, task)
            time.sleep(0.01)  # until the next task comes
        report = pool.shutdown(drain=60)  # handles what was accepted, and ends
        for thread in pool.stats().threads:
            print(f"{thread.name}: {thread.tasks} tasks")
        print(f"drained: {str(report.drained).lower()}")


if __name__ == "__main__":
    main()
