"""A service to look at: an HTTP server, a worker pool and a hub on one pool, a handler that sometimes blocks its thread, a
subscription that lags, and the live page that shows all of it.

    python examples/python/observe.py

Then open the page in a browser. SIGINT and SIGTERM end it.
"""

from __future__ import annotations

import signal
import sys
import threading
import time

import paceline
from paceline import Message, Request, Response

page, address, *_ = [*sys.argv[1:], *("127.0.0.1:9090", "127.0.0.1:8080")[len(sys.argv) - 1 :]]

pool = paceline.Pool(4, name="observe")
http = paceline.Http(pool, address)


@http.get("/hello")
def hello(request: Request) -> Response:
    return Response("hello\n")


@http.get("/slow")
def slow(request: Request) -> Response:
    # What a handler should not do: others of its thread wait meanwhile.
    time.sleep(3)
    return Response("at last\n")


workers = paceline.WorkerPool(pool, threads=2)
hub = paceline.Hub(pool)


@workers.task(name="resize")
def resize() -> None:
    time.sleep(0.002)


def slow_order(message: Message) -> None:
    """66 orders a second, of the 100 that come: it lags, until the oldest are dropped."""
    time.sleep(0.015)


def bring() -> None:
    resize.submit()
    hub.publish("orders.new", b"one more")


def report() -> None:
    """The handler that sometimes blocks: 2 s of 12."""
    time.sleep(2)


interrupted = threading.Event()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: interrupted.set())
with pool, http, workers, hub:
    hub.subscribe("orders.>", lambda message: None)
    hub.subscribe("orders.*", slow_order, capacity=500, overflow="drop-oldest", measured=True)
    with pool.every(0.01, bring), pool.every(12, report), paceline.ops.serve(pool, page) as ops:
        print(f"the live page: http://{ops.address}/")
        print(f"the server: http://{http.addresses[0]}/hello, and /slow", flush=True)
        interrupted.wait()
