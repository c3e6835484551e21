"""A message that a handler fails at is tried again, and then becomes a dead letter, which can be delivered once more.

feature: hub/dead_letters
"""

import time

import paceline
from paceline import Message, Retry

attempts = 0
is_mended = False
with paceline.Pool() as pool:
    hub = paceline.Hub(pool)

    @hub.subscribe("orders", retries=Retry.fixed(2, 0.001), on_error=lambda message, error: None)
    def orders(message: Message) -> None:
        global attempts
        attempts += 1
        if not is_mended:
            raise OSError("the database is down")

    hub.publish("orders", b"42")
    while not hub.dead_letters():
        time.sleep(0.001)
    (letter,) = hub.dead_letters()
    assert letter.attempts == 3 and "the database is down" in letter.failure
    assert letter.message.payload == b"42"

    is_mended = True
    assert hub.redeliver().enqueued == 1
    assert orders.drain(60) == 0
    assert attempts == 4 and not hub.dead_letters()
    hub.close()
