"""With asyncio: tasks may be coroutines, and are awaited, as mailboxes are; a server and subscribers run in the loop.

feature: async/await
"""

import asyncio

import paceline
from paceline import Message, Request


async def main() -> None:
    pool = paceline.Pool()
    workers = paceline.WorkerPool(pool)
    hub = paceline.Hub(pool)

    @workers.task(retries=1)
    async def square(number: int) -> int:
        await asyncio.sleep(0.001)
        return number * number

    assert await asyncio.wrap_future(square.submit(7)) == 49

    got: "asyncio.Queue[bytes]" = asyncio.Queue()

    @hub.subscribe("orders.*")
    async def orders(message: Message) -> None:
        await asyncio.sleep(0)
        await got.put(message.payload)

    with hub.mailbox("orders.*") as mailbox:
        hub.publish("orders.eu", b"42")
        async for message in mailbox:
            assert message.payload == b"42"
            break
    assert await asyncio.wait_for(got.get(), 60) == b"42"

    http = paceline.Http(pool, threads=0)

    @http.get("/")
    async def hello(request: Request) -> str:
        await asyncio.sleep(0.001)
        return "hello"

    async with http:
        host, _, port = http.addresses[0].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 60)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"hello")
        writer.close()
    orders.unsubscribe()
    hub.close()
    workers.shutdown()
    pool.shutdown(60)


asyncio.run(main())
