"""An operations endpoint: a live page, figures and health of a pool, which answers while the pool's threads are busy.

feature: ops/endpoint
"""

import threading
import urllib.request

import paceline


def get(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


with paceline.Pool(1) as pool, paceline.ops.serve(pool, "127.0.0.1:0") as ops:
    # Then open it in a browser, or run `python -m paceline.top`.
    assert "<title>paceline</title>" in get(ops.address, "/")
    assert "paceline_thread_led_total" in get(ops.address, "/metrics")
    assert get(ops.address, "/health/ready") == "ok\n"

    gate = threading.Event()
    busy = pool.submit(gate.wait)
    assert '"threads"' in get(ops.address, "/stats.json")
    gate.set()
    assert busy.result()

    http = paceline.Http(pool)
    ops.mount(http, "/ops")
    with http:
        assert get(http.addresses[0], "/ops/health/live") == "ok\n"
