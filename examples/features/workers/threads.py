"""The report of a task names the thread that ran it; each thread has figures of what it has run.

feature: workers/threads
prints:
    threads: workers_0 workers_1
    10 tasks are completed
    one of them ran the last task
"""

import paceline

with paceline.Pool() as pool, paceline.WorkerPool(pool, threads=2) as workers:

    @workers.task
    def work(number: int) -> int:
        return number

    for task in work.submit_batch(range(10)):
        report = task.report()
    stats = workers.worker_stats()
    print("threads:", *(thread.worker for thread in stats))
    print(sum(thread.completed for thread in stats), "tasks are completed")
    if report.worker in [thread.worker for thread in stats]:
        print("one of them ran the last task")
