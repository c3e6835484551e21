"""In a program with asyncio, tasks are awaited, a mailbox is read by `async for`, and subscribers and servers have
coroutines as handlers.

feature: async/await
prints:
    7 squared is 49
    the mailbox got 42
    the subscriber got 42
    the server answered hello
"""

import asyncio
from urllib.request import urlopen

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

    print("7 squared is", await square.submit(7))

    got: "asyncio.Queue[bytes]" = asyncio.Queue()

    @hub.subscribe("orders.*")
    async def orders(message: Message) -> None:
        await got.put(message.payload)

    with hub.mailbox("orders.*") as mailbox:
        hub.publish("orders.eu", b"42")
        async for message in mailbox:
            print("the mailbox got", message.payload.decode())
            break
    print("the subscriber got", (await got.get()).decode())

    http = paceline.Http(pool, threads=0)

    @http.get("/")
    async def hello(request: Request) -> str:
        await asyncio.sleep(0.001)
        return "hello"

    async with http:
        with await asyncio.to_thread(urlopen, f"http://{http.addresses[0]}/", timeout=60) as answer:
            print("the server answered", answer.read().decode())
    orders.unsubscribe()
    hub.close()
    workers.shutdown()
    pool.shutdown(60)


asyncio.run(main())
