"""A hook hears of handlers that take too long: once for each.

feature: pool/slow
"""

import threading

import paceline

told: list[paceline.SlowReport] = []
heard = threading.Event()


def hear(report: paceline.SlowReport) -> None:
    told.append(report)
    heard.set()


def wait() -> bool:
    return heard.wait(60)


with paceline.Pool(2, on_slow=hear, slow_limit=0.01) as pool:
    assert pool.submit(wait).result()
report = told.pop()
assert not told and report.name == "wait" and report.thread.startswith("paceline_")
assert report.elapsed > 0.01 and report.running  # False: it has returned meanwhile
