"""Tasks that survive a crash, with a worker command. A NATS server with streams (nats-server -js) is at NATS_URL, or on this
host. In this directory:

    python -m paceline.worker pictures:queue    # as often as you like, on any host; kill one, and another goes on
    python pictures.py a.png b.png              # submits, and runs nothing itself
"""

from __future__ import annotations

import os
import sys
import time

import paceline

workers = paceline.WorkerPool(paceline.Pool(1))
queue = workers.durable("pictures", os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), ack_wait=5)


@queue.task(retries=3)
def shrink(name: str) -> str:
    """Slow work, which may be begun again: it has to bear that."""
    time.sleep(0.1)
    return f"small-{name}"


if __name__ == "__main__":
    with queue:
        tasks = [shrink.submit(name) for name in sys.argv[1:]]
        for task in tasks:
            print(task.result(60))
