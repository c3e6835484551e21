"""A handler that crashes is restarted and gets the next message; one that crashes too often is suspended for a while.

feature: hub/supervision
prints:
    restart 1 after Crash()
    restart 2 after Crash()
    suspended for 3600 seconds
    restart 3 after None
    work is done
"""

import json
import logging
import queue
from typing import Optional

import paceline
from paceline import Message


class Crash(BaseException):
    """A handler crashes when it raises what is no Exception."""


def tell(crash: Optional[BaseException], count: int) -> None:
    print("restart", count, "after", repr(crash))


paceline.quiet()  # no line on the standard error stream
logging.disable()
with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    suspended: "queue.Queue[Message]" = queue.Queue()
    hub.subscribe("$SYS.subscription.suspended", suspended.put)

    # A third crash within a minute suspends it for an hour.
    @hub.subscribe(
        "jobs",
        restarts=2,
        within=60,
        suspension=3600,
        longest_suspension=3600,
        on_restart=tell,
        on_error=lambda message, error: None,
    )
    def jobs(message: Message) -> None:
        if message.payload == b"crash":
            raise Crash
        print(message.payload.decode(), "is done")

    for job in (b"crash", b"crash", b"crash"):
        hub.publish("jobs", job)
    notice = json.loads(suspended.get(timeout=60).payload)
    print("suspended for", notice["resumes_in_ms"] // 1000, "seconds")
    jobs.resume()  # or after the suspension, by itself
    hub.publish("jobs", b"work")
    jobs.drain(60)
