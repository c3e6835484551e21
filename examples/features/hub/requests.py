"""Request and reply, with and without asyncio.

feature: hub/requests
"""

import asyncio

import paceline
from paceline import Message

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)

    @hub.subscribe("ping")
    def answer(request: Message) -> None:
        hub.reply(request, b"pong")

    assert hub.request("ping", b"?", timeout=60).payload == b"pong"

    async def ask() -> bytes:
        return (await hub.request_async("ping", b"?", timeout=60)).payload

    assert asyncio.run(ask()) == b"pong"
    try:
        hub.request("nobody", b"?", timeout=60)
        raise AssertionError("somebody has answered")
    except paceline.NoRespondersError:
        pass
    hub.close()
