"""Durable tasks: a NATS server keeps them until they have ended, so that they outlive the process, and any process with a
function for a task's name runs it. The address of a server with streams (nats-server -js) is in NATS_URL; without one there
is nothing to show.

feature: workers/durable
"""

import os
import sys

import paceline

url = os.environ.get("NATS_URL")
if url is None:
    print("There is no NATS_URL, the address of a NATS server.")
    sys.exit()

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool)
    queue = workers.durable("greetings_python", url)

    @queue.task(retries=paceline.Retry.fixed(3, 0.01))
    def greet(name: str) -> str:
        if not name:
            raise paceline.PermanentFailure("nobody is there")
        if paceline.current_job().attempt == 1:
            raise ValueError("not yet")  # another attempt follows
        return f"hello, {name}"

    with queue.open(work=True):  # it submits, and runs tasks, too
        task = greet.submit("Ada")  # it is stored now
        assert queue.find(task.id).result(60) == "hello, Ada"  # as another process may
        assert task.wait(60).attempts == 2
        assert greet.submit("").wait(60).status == "failed"
        assert "nobody is there" in queue.dead()[-1].failure  # it may be submitted again
    workers.shutdown()
