"""Health, what each thread has run, and figures of tasks as text for a collector, with figures of the program's own.

feature: workers/health
"""

import paceline

with paceline.Pool() as pool:
    workers = paceline.WorkerPool(pool, metrics=True)

    @workers.task
    def fetch(number: int) -> int:
        return number

    report = fetch.submit(1).report()
    thread = next(row for row in workers.worker_stats() if row.worker == report.worker)
    assert (thread.attempts, thread.completed, thread.failed) == (1, 1, 0)
    workers.counter("orders", "Orders.", shop="eu").inc(3)

    assert workers.health().status == "ready" and not workers.health().stuck
    format, media_type = paceline.metrics_format("text/plain")  # of a request's Accept header
    text = workers.metrics(format)
    assert 'orders_total{shop="eu"} 3' in text and "fetch" in text
    workers.shutdown(drain=60)
    assert workers.health().status == "draining"
