"""Typed topics: a codec makes bytes of values, and values of bytes.

feature: hub/topics
"""

from typing import Any

import paceline
from paceline import Json, Message

total = 0


def add(reading: Any, message: Message) -> None:
    global total
    total += reading["degrees"]


with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    room = hub.topic("temperature.room", Json())  # or any object with `encode` and `decode`
    adds = room.subscribe(add, on_error=lambda message, error: None)
    room.publish({"degrees": 20})
    room.publish({"degrees": 22})
    hub.publish("temperature.room", b"warm")  # is a dead letter: the handler is not called
    assert adds.drain(60) == 0
    assert total == 42
    assert [letter.message.payload for letter in hub.dead_letters()] == [b"warm"]
    hub.close()
