"""What each thread has run for a worker pool: the thread of a task, and the figures of each.

feature: workers/threads
"""

import paceline

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, threads=2)

    @workers.task
    def work(number: int) -> int:
        return number

    reports = [task.report() for task in work.submit_batch(range(10))]
    stats = workers.worker_stats()
    assert {report.worker for report in reports} <= {thread.worker for thread in stats}
    assert sum(thread.attempts for thread in stats) == 10
    assert not any(thread.failed or thread.state == "stuck" for thread in stats)
    workers.shutdown()
