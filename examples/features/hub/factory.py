"""A factory makes a handler anew when it was restarted, so nothing that was half changed is used again.

feature: hub/factory
"""

import logging

import paceline
from paceline import Message


class Crash(BaseException):
    """What is no Exception is a crash."""


class Handler:
    made = 0

    def __init__(self) -> None:
        Handler.made += 1
        self.seen: list[bytes] = []

    def __call__(self, message: Message) -> None:
        assert b"crash" not in self.seen  # never seen again
        self.seen.append(message.payload)
        if message.payload == b"crash":
            raise Crash


paceline.quiet()  # no line on the standard error stream
logging.disable()
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    jobs = hub.subscribe("jobs", factory=Handler, on_error=lambda message, error: None)
    for each in (b"work", b"crash", b"work", b"work"):
        hub.publish("jobs", each)
    assert jobs.drain(60) == 0
    stats = jobs.stats()
    assert (stats.delivered, stats.dead_lettered, Handler.made) == (3, 1, 2)
    hub.close()
