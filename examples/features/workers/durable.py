"""A NATS server keeps durable tasks until they have ended, so that they outlive the process; any process with a
function for a task's name runs it. NATS_URL is the address of a server with streams (nats-server -js); without it the
program only says so.

feature: workers/durable
prints:
    hello, Ada
    completed after 2 attempts
    failed after 1 attempts
    dead: PermanentFailure: nobody is there
"""

import os
import sys

import paceline

url = os.environ.get("NATS_URL")
if url is None:
    print("There is no NATS_URL, the address of a NATS server.")
    sys.exit()

with paceline.Pool() as pool, paceline.WorkerPool(pool) as workers:
    queue = workers.durable("greetings_python", url)

    @queue.task(retries=paceline.Retry.fixed(3, 0.01))
    def greet(name: str) -> str:
        if not name:
            raise paceline.PermanentFailure("nobody is there")
        job = paceline.current_job()
        if job is not None and job.attempt == 1:
            raise ValueError("not yet")  # another attempt follows
        return f"hello, {name}"

    with queue.open(work=True):  # it submits, and runs tasks, too
        task = greet.submit("Ada")  # it is stored now
        print(queue.find(task.id).result(60))  # as another process may
        for each in (task, greet.submit("")):
            report = each.wait(60)
            print(report.status, "after", report.attempts, "attempts")
        print("dead:", queue.dead()[-1].failure)  # it may be submitted again
