"""A worker pool has a health for probes, and metrics for Prometheus, to which the program adds its own.

feature: workers/health
prints:
    the thread of the task: 1 completed, 0 failed
    orders_total{shop="eu"} 3.0
    paceline_task_completed_total{task_type="fetch",workers="workers"} 1.0
    health: ready
    health at the end: draining
"""

import paceline

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, metrics=True)

    @workers.task
    def fetch(number: int) -> int:
        return number

    report = fetch.submit(1).report()
    for thread in workers.worker_stats():
        if thread.worker == report.worker:
            print(f"the thread of the task: {thread.completed} completed, {thread.failed} failed")
    workers.counter("orders", "Orders.", shop="eu").inc(3)
    text_format, media_type = paceline.metrics_format("text/plain")  # of a request's Accept header
    for line in workers.metrics(text_format).splitlines():
        if line.startswith(("orders_total{", "paceline_task_completed_total{")):
            print(line)
    print("health:", workers.health().status)
    workers.shutdown(drain=60)
    print("health at the end:", workers.health().status)
