"""``Hub.request_async``: replies through one descriptor of each loop; ``Hub.publish_async``."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import unittest
import weakref
from typing import Any

import paceline
from paceline import Hub, Message, Pool
from support import Case, run


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class Publishing(Case):
    """``publish_async`` waits for room, and its event loop goes on."""

    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = Hub(self.pool)
        self.addCleanup(self.hub.close)

    def test_a_slow_reader_holds_up_its_publishers_and_not_the_loop(self) -> None:
        topic = self.hub.topic("a", paceline.Json())
        publisher = self.hub.publisher("p")

        async def main() -> None:
            box = self.hub.mailbox("a", capacity=2, overflow="block")
            receipt = await self.hub.publish_async("a", b"0", {"h": "v"}, "high")
            self.assertEqual((receipt.matched, receipt.enqueued), (1, 1))
            self.assertEqual((await topic.publish_async(1)).enqueued, 1)
            # All others find it full, and come in order.
            waiting = [asyncio.ensure_future(self.hub.publish_async("a", b"2"))]
            waiting += [asyncio.ensure_future(topic.publish_async(n)) for n in range(3, 10)]
            waiting.append(asyncio.ensure_future(publisher.publish_async("a", b"10")))
            while not self.hub._core.lines:
                await asyncio.sleep(0)
            self.assertFalse(any(each.done() for each in waiting))
            self.assertEqual((await self.hub.publish_async("b")).matched, 0)
            came: list[Message] = []
            while len(came) < 11:
                came += await box.pull_async()
            self.assertEqual([int(each.payload) for each in came], list(range(11)))
            self.assertEqual((came[0].header("h"), came[0].priority), ("v", "high"))
            for each in waiting:
                self.assertEqual((await each).enqueued, 1)

        asyncio.run(main())
        self.assertEqual(publisher.stats().published, 1)
        self.assertEqual(len(self.hub._core.lines), 0)

    def test_cancelled_it_publishes_nothing(self) -> None:
        async def main() -> None:
            box = self.hub.mailbox("a", capacity=1, overflow="block")
            await self.hub.publish_async("a", b"0")
            gone = asyncio.ensure_future(self.hub.publish_async("a", b"1"))
            kept = asyncio.ensure_future(self.hub.publish_async("a", b"2"))
            while not self.hub._core.lines:
                await asyncio.sleep(0)
            gone.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await gone
            came: list[Message] = []
            while len(came) < 2:
                came += await box.pull_async()
            self.assertEqual([each.payload for each in came], [b"0", b"2"])
            self.assertEqual((await kept).enqueued, 1)

        asyncio.run(main())

    def test_where_it_does_not_wait(self) -> None:
        refused: list[paceline.MailboxFull] = []

        async def main() -> None:
            over = asyncio.Event()

            async def handle(message: Message) -> None:
                if over.is_set():
                    return
                try:
                    for _ in range(40):
                        await self.hub.publish_async("own")
                except paceline.MailboxFull as full:
                    refused.append(full)
                    over.set()

            # Who has it would wait for itself.
            own = self.hub.subscribe("own", handle, capacity=16, on_failure="discard")
            await self.hub.publish_async("own")
            await over.wait()
            own.unsubscribe()
            self.hub.mailbox("short", capacity=1, overflow="block", block=0.01)
            box = self.hub.mailbox("full", capacity=1, overflow="block")
            short = self.hub.mailbox("short", capacity=1, overflow="block", block=0.01)
            for key, settings in (("short", {}), ("full", {"no_wait": True})):
                await self.hub.publish_async(key)
                with self.assertRaises(paceline.MailboxFull):
                    await self.hub.publish_async(key, **settings)
            waits = asyncio.ensure_future(self.hub.publish_async("full"))
            while not self.hub._core.lines:
                await asyncio.sleep(0)
            self.hub.close()
            with self.assertRaises(paceline.ShutDownError):
                await waits
            del box, short

        asyncio.run(main())
        self.assertEqual(refused[0].receipt.rejected, 1)


class Requests(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = Hub(self.pool)
        self.addCleanup(self.hub.close)
        self.silent = self.hub.mailbox("silent", capacity=2000)

    def echo(self) -> None:
        self.hub.subscribe("echo", lambda message: self.hub.reply(message, message.payload))

    @unittest.skipUnless(hasattr(signal, "setitimer"), "signals")
    def test_one_that_waits_is_interrupted(self) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt("from a signal")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(KeyboardInterrupt):
            self.hub.request("silent", b"1")
        (asked,) = self.silent.pull()
        # It was given up: nobody gets the reply.
        self.hub.reply(asked, b"late")
        self.echo()
        self.assertEqual(self.hub.request("echo", b"2", 60, {"a": "b"}).payload, b"2")

    def test_it_is_the_same_on_all_threads(self) -> None:
        outcomes: list[list[str]] = []
        self.echo()

        def ask() -> None:
            told = []
            for key, timeout in (
                ("echo", None),
                ("echo", 60),
                ("silent", 0.01),
                ("silent", 0),
                ("nobody", 1),
                ("a..b", 1),
            ):
                try:
                    told.append(self.hub.request(key, b"x", timeout).payload.decode())
                except paceline.Error as error:
                    told.append(f"{type(error).__name__}: {error}")
            outcomes.append(told)

        ask()
        other = threading.Thread(target=ask)
        other.start()
        other.join(60)
        self.assertEqual(outcomes[0], outcomes[1])

    def test_many_at_once_take_no_threads_and_one_descriptor(self) -> None:
        self.echo()
        # Replies do not wait for the threads of the pool.
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.pool.post(gate.wait)

        async def ask() -> None:
            await self.hub.request_async("echo", b"first")
            gc.collect()
            threads, before = threading.active_count(), descriptors()
            asked = [self.hub.request_async("echo", b"%d" % n, 120, {"n": "v"}) for n in range(500)]
            waiting = [asyncio.ensure_future(self.hub.request_async("silent")) for _ in range(500)]
            replies = await asyncio.gather(*asked)
            self.assertEqual([each.payload for each in replies], [b"%d" % n for n in range(500)])
            # Those of others may end meanwhile.
            self.assertLessEqual(threading.active_count(), threads)
            self.assertLessEqual(descriptors(), before)
            self.assertFalse(any(each.done() for each in waiting))
            large = bytes(range(256)) * 2048
            self.assertEqual((await self.hub.request_async("echo", large)).payload, large)
            for request in reversed(self.silent.pull(1000, 0)):
                self.hub.reply(request, b"late")
            self.assertEqual({each.payload for each in await asyncio.gather(*waiting)}, {b"late"})

        asyncio.run(ask())

    def test_failures_and_times(self) -> None:
        full = self.hub.mailbox("full", capacity=1)
        self.hub.publish("full")

        async def ask() -> None:
            with self.assertRaises(paceline.NoRespondersError):
                await self.hub.request_async("none")
            with self.assertRaises(paceline.Full):
                await self.hub.request_async("full")
            for timeout in (0.001, 0, -1):
                with self.assertRaises(TimeoutError):
                    await self.hub.request_async("silent", b"", timeout)
            # A reply that comes too late reaches nobody, and the next request gets its own.
            for request in self.silent.pull(9, 0):
                self.hub.reply(request, b"late")
            asked = asyncio.ensure_future(self.hub.request_async("silent", b"x", 120))
            await asyncio.sleep(0)
            (request,) = self.silent.pull(9, 1)
            self.hub.reply(request, b"first")
            self.hub.reply(request, b"second")
            self.assertEqual((await asked).payload, b"first")
            for wrong in ({"payload": 7}, {"timeout": "x"}, {"priority": "x"}):
                with self.assertRaises((TypeError, paceline.InvalidError)):
                    await self.hub.request_async("silent", **wrong)  # type: ignore[arg-type]

        asyncio.run(ask())
        self.assertEqual(full.stats().waiting, 1)

    def test_cancelled_it_is_given_up(self) -> None:
        async def ask() -> None:
            asked = [asyncio.ensure_future(self.hub.request_async("silent")) for _ in range(3)]
            await asyncio.sleep(0)
            requests = self.silent.pull(9, 1)
            self.assertEqual(len(requests), 3)
            asked[1].cancel()
            with self.assertRaises(asyncio.CancelledError):
                await asked[1]
            # Nobody gets it, and it harms nobody.
            for request in requests:
                self.hub.reply(request, b"x")
            self.assertEqual((await asked[0]).payload + (await asked[2]).payload, b"xx")
            # Cancelled when the reply is there already.
            last = asyncio.ensure_future(self.hub.request_async("silent"))
            await asyncio.sleep(0)
            self.hub.reply(self.silent.pull(9, 1)[0])
            last.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await last
            with self.assertRaises(TimeoutError):
                await self.hub.request_async("silent", b"", 0.01)
            (held,) = self.hub._core.requests.values()
            self.assertEqual(held._open, {})
            # Cancelled in the turn in which replies are looked for: others get theirs.
            two = [asyncio.ensure_future(self.hub.request_async("silent")) for _ in range(2)]
            await asyncio.sleep(0)
            for request in self.silent.pull(9, 1):
                self.hub.reply(request, b"y")
            two[0].cancel()
            held._wake()
            self.assertEqual((await two[1]).payload, b"y")

        asyncio.run(ask())

    def test_many_loops(self) -> None:
        self.echo()
        failed: list[BaseException] = []

        async def ask(name: str) -> None:
            for _ in range(5):
                asked = [self.hub.request_async("echo", f"{name}{n}".encode(), 120) for n in range(20)]
                replies = await asyncio.gather(*asked)
                self.assertEqual(
                    [each.payload.decode() for each in replies], [f"{name}{n}" for n in range(20)]
                )

        def loops(name: str) -> None:
            try:
                for number in range(3):
                    asyncio.run(ask(f"{name} {number} "))
            except BaseException as error:
                failed.append(error)

        before = descriptors()
        threads = [threading.Thread(target=loops, args=(f"thread {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        # What belonged to loops that were closed is gone with them.
        self.until_collected(lambda: len(self.hub._core.requests) == 0)
        self.until(lambda: descriptors() <= before + 1)

    def test_a_loop_that_is_closed_in_mid_request(self) -> None:
        loop = asyncio.new_event_loop()

        async def ask() -> Message:
            return await self.hub.request_async("silent")

        task = loop.create_task(ask())
        loop.run_until_complete(asyncio.sleep(0))
        (request,) = self.silent.pull(9, 1)
        loop.close()
        self.hub.reply(request)
        gone = weakref.ref(loop)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        del task, loop
        gc.collect()
        self.assertIsNone(gone())
        asyncio.run(self.nobody())

    async def nobody(self) -> None:
        with self.assertRaises(paceline.NoRespondersError):
            await self.hub.request_async("none")

    def test_a_hub_that_is_closed_in_mid_request(self) -> None:
        async def ask(how: str) -> None:
            hub: Any = Hub(self.pool)
            mailbox = hub.mailbox("a")
            asked = [asyncio.ensure_future(hub.request_async("a")) for _ in range(3)]
            await asyncio.sleep(0)
            if how == "here":
                hub.close()
            else:
                await asyncio.get_running_loop().run_in_executor(None, hub.close)
            for each in asked:
                with self.assertRaises(paceline.ShutDownError):
                    await each
            with self.assertRaises(paceline.ShutDownError):
                await hub.request_async("a")
            del mailbox

        for how in ("here", "elsewhere"):
            asyncio.run(ask(how))

    def test_a_loop_outlives_many_hubs(self) -> None:
        async def ask() -> None:
            before = descriptors()
            for _ in range(20):
                with Hub(self.pool) as hub:
                    hub.subscribe("a", lambda message: hub.reply(message, b"!"))
                    self.assertEqual((await hub.request_async("a", b"", 120)).payload, b"!")
                await asyncio.sleep(0)
                hub = None  # type: ignore[assignment]
                gc.collect()
            self.assertLess(descriptors(), before + 20)

        asyncio.run(ask())

    def test_a_fork_and_the_interpreters_end(self) -> None:
        script = """
            import asyncio, os, sys
            from paceline import ForkedError, Hub, Pool
            pool = Pool(1)
            hub = Hub(pool)
            hub.subscribe("a", lambda message: hub.reply(message, b"!"))
            silent = hub.mailbox("b")

            async def ask():
                assert (await hub.request_async("a")).payload == b"!"

            asyncio.run(ask())
            if os.fork() == 0:
                try:
                    asyncio.run(ask())
                except ForkedError:
                    os._exit(7)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 7

            async def leave():
                asyncio.ensure_future(hub.request_async("b"))
                await asyncio.sleep(0)
                sys.exit(3)

            asyncio.run(leave())
            """
        told = run(script)
        self.assertEqual((told.returncode, told.stdout), (3, ""), told.stderr)


if __name__ == "__main__":
    unittest.main()
