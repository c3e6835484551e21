"""A request waits for the reply of a subscriber, with asyncio or without.

feature: hub/requests
prints:
    answered: pong
    awaited: pong
    not answered: nobody subscribes to the key of the request
"""

import asyncio

import paceline
from paceline import Message

with paceline.Pool() as pool, paceline.Hub(pool) as hub:

    @hub.subscribe("ping")
    def answer(request: Message) -> None:
        hub.reply(request, b"pong")

    print("answered:", hub.request("ping", timeout=60).payload.decode())

    async def ask() -> Message:
        return await hub.request_async("ping", timeout=60)

    print("awaited:", asyncio.run(ask()).payload.decode())
    try:
        hub.request("nobody", timeout=60)
    except paceline.NoRespondersError as error:
        print("not answered:", error)
