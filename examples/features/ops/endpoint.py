"""An operations endpoint serves a live page, metrics and the health of a pool, even while the pool's threads are busy.

feature: ops/endpoint
prints:
    /: text/html; charset=utf-8
    /metrics: text/plain; version=0.0.4; charset=utf-8
    /stats.json: application/json
    /health/ready, while the only thread is busy: ok
    /ops/health/live of the program's own server: ok
"""

import threading
import urllib.request
from http.client import HTTPResponse

import paceline


def get(address: str, path: str) -> HTTPResponse:
    answer: HTTPResponse = urllib.request.urlopen(f"http://{address}{path}", timeout=60)
    return answer


with paceline.Pool(1) as pool, paceline.ops.serve(pool, "127.0.0.1:0") as ops:
    # Then open it in a browser, or run `python -m paceline.top`.
    for path in ("/", "/metrics", "/stats.json"):
        with get(ops.address, path) as answer:
            print(f"{path}: {answer.headers['Content-Type']}")

    gate = threading.Event()
    busy = pool.submit(gate.wait)
    with get(ops.address, "/health/ready") as answer:
        print("/health/ready, while the only thread is busy:", answer.read().decode().strip())
    gate.set()
    busy.result()

    http = paceline.Http(pool)
    ops.mount(http, "/ops")
    with http, get(http.addresses[0], "/ops/health/live") as answer:
        print("/ops/health/live of the program's own server:", answer.read().decode().strip())
