"""A typed topic has a codec, which makes bytes of values and values of bytes.

feature: hub/topics
prints:
    20 degrees
    22 degrees
    dead letter: warm, PermanentFailure: cannot be decoded: JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""

from typing import Any

import paceline
from paceline import Json, Message


def show(reading: Any, message: Message) -> None:
    print(reading["degrees"], "degrees")


with paceline.Pool() as pool, paceline.Hub(pool) as hub:
    room = hub.topic("temperature.room", Json())  # or any object with `encode` and `decode`
    shows = room.subscribe(show, on_error=lambda message, error: None)
    room.publish({"degrees": 20})
    room.publish({"degrees": 22})
    hub.publish("temperature.room", b"warm")  # is a dead letter: the handler is not called
    shows.drain(60)
    for letter in hub.dead_letters():
        print(f"dead letter: {letter.message.payload.decode()}, {letter.failure}")
