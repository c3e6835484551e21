"""Supervision: a handler that crashes is started anew and goes on with the next message; one that crashes too often is
suspended for a while.

feature: hub/supervision
"""

import logging
import time

import paceline
from paceline import Message


class Crash(BaseException):
    """What is no Exception is a crash."""


handled = restarts = 0


def start_anew(failure: str, count: int) -> None:
    global handled, restarts
    handled, restarts = 0, count


paceline.quiet()  # no line on the standard error stream
logging.disable()
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)

    # A third crash within a minute suspends it for an hour.
    @hub.subscribe(
        "jobs",
        restarts=2,
        within=60.0,
        suspension=3600.0,
        longest_suspension=3600.0,
        on_restart=start_anew,
        on_error=lambda message, error: None,
    )
    def jobs(message: Message) -> None:
        global handled
        if message.payload == b"crash":
            raise Crash
        handled += 1

    for each in (b"crash", b"crash", b"crash"):
        hub.publish("jobs", each)
    while not jobs.stats().suspended:
        time.sleep(0.001)
    jobs.resume()  # or after the suspension, by itself
    hub.publish("jobs", b"work")
    assert jobs.drain(60) == 0
    assert handled == 1 and restarts >= 2
    hub.close()
