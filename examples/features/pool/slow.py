"""A hook is called once for each handler or task that takes too long.

feature: pool/slow
prints:
    fetch is slow, and still runs
    fetch has returned: done
"""

import threading

import paceline

heard = threading.Event()


def hear(report: paceline.SlowReport) -> None:
    print(report.name, "is slow, and", "still runs" if report.running else "has returned meanwhile")
    heard.set()


def fetch() -> str:
    heard.wait(60)
    return "done"


with paceline.Pool(2, on_slow=hear, slow_limit=0.01) as pool:
    print("fetch has returned:", pool.submit(fetch).result())
