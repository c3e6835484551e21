"""After a crash a factory makes a new handler, so that one that was half changed is never called again.

feature: hub/factory
prints:
    a handler is made
    it has seen: work
    it has seen: work crash
    a handler is made
    it has seen: work
"""

import logging

import paceline
from paceline import Message


class Crash(BaseException):
    """A handler crashes when it raises what is no Exception."""


class Handler:
    def __init__(self) -> None:
        print("a handler is made")
        self.seen: list[str] = []

    def __call__(self, message: Message) -> None:
        self.seen.append(message.payload.decode())
        print("it has seen:", *self.seen)
        if message.payload == b"crash":
            raise Crash


paceline.quiet()  # no line on the standard error stream
logging.disable()
with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    jobs = hub.subscribe("jobs", factory=Handler, on_error=lambda message, error: None)
    for job in (b"work", b"crash", b"work"):
        hub.publish("jobs", job)
    jobs.drain(60)
