"""Empty tasks with the queues of Python, on Redis: ``rivals.py PEER fill|work COUNT DIRECTORY``.

The worker's process runs the tasks itself, which is the quickest way that each has. The first task that it runs makes
the file ``first`` in the directory, the last one ``last``."""

import os
import sys

PEER, DO, COUNT, DIRECTORY = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
URL = os.environ["REDIS_URL"]
ran = 0


def count() -> None:
    global ran
    ran += 1
    if ran in (1, COUNT):
        open(os.path.join(DIRECTORY, "first" if ran == 1 else "last"), "w").close()


def celery() -> None:
    from celery import Celery

    app = Celery("empty", broker=URL)
    app.conf.update(
        worker_prefetch_multiplier=64, task_ignore_result=True, broker_connection_retry_on_startup=True
    )
    task = app.task(name="empty")(count)
    if DO == "fill":
        for _ in range(COUNT):
            task.delay()
    else:
        app.worker_main(
            ["worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"]
        )


def rq() -> None:
    from redis import Redis
    from rq import Queue, SimpleWorker

    # By the name under which the worker finds it.
    sys.modules["rivals"] = sys.modules["__main__"]
    count.__module__ = "rivals"
    queue = Queue(connection=Redis.from_url(URL))
    if DO == "fill":
        for _ in range(COUNT):
            queue.enqueue(count, result_ttl=0)
    else:
        SimpleWorker([queue], connection=queue.connection).work(logging_level="ERROR")


def dramatiq() -> None:
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker
    from dramatiq.worker import Worker

    broker = RedisBroker(url=URL)
    dramatiq.set_broker(broker)
    task = dramatiq.actor(count, actor_name="empty")
    if DO == "fill":
        for _ in range(COUNT):
            task.send()
    else:
        worker = Worker(broker, worker_threads=8)
        worker.start()
        worker.join()
        import time

        time.sleep(60)


{"celery": celery, "rq": rq, "dramatiq": dramatiq}[PEER]()
