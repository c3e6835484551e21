"""What is said where users would otherwise wonder: nothing is dropped, ended or forgotten without a word."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import re
import socket
import textwrap
import threading
import unittest
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import paceline
from paceline import Executor, Flow, Http, NatsSettings, Pool, Response, WorkerPool
from support import Case, run, told

LONG = 60.0


class Answers(Case):
    """Functions return all kinds of things. A count of 2 is no Flow.PAUSE, and a text no error."""

    OTHERS: tuple[Any, ...] = (0, 1, 2, 3, 7, True, "x", [3], 2.0, object())

    def check(self, begin: Callable[[Pool, Callable[..., Any]], Any]) -> None:
        for answer in self.OTHERS:
            calls: list[int] = []

            def job(*_: Any, answer: Any = answer, calls: list[int] = calls) -> Any:
                calls.append(len(calls))
                return answer if len(calls) < 4 else Flow.DONE

            with told() as texts, Pool(1) as pool:
                handle = begin(pool, job)
                self.until(lambda: handle.closed)
                self.assertEqual(len(calls), 4, answer)
            means = [text for text in texts if "means nothing" in text]
            self.assertEqual(len(means), 1, (answer, texts))
            self.assertIn("job", means[0])

    def test_a_periodic_function_may_return_anything(self) -> None:
        self.check(lambda pool, job: pool.every(0.001, job))

    def test_a_handler_of_a_descriptor_may_return_anything(self) -> None:
        read, write = socket.socketpair()
        self.addCleanup(read.close)
        self.addCleanup(write.close)
        # It is level-triggered, and nobody reads.
        write.send(b"x")
        self.check(lambda pool, job: pool.register(read, job, level=True))

    def test_what_runs_once_may_return_anything(self) -> None:
        with told() as texts, Pool(1) as pool:
            ran = [
                pool.submit(lambda: 2).result(LONG),
                pool.lane(paceline.Lane.HIGH).submit(lambda: 3).result(LONG),
            ]
            done: list[int] = []
            pool.after(0.001, lambda: done.append(1) or 2)
            self.until(lambda: done)
        self.assertEqual((ran, texts), ([2, 3], []))


class Decorators(Case):
    """Settings beside a function are those of the decorator."""

    def test_a_task_has_its_settings_either_way(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers:

            def function() -> None:
                raise OSError("again")

            direct = workers.task(function, name="direct", retries=3, timeout=5)
            decorated = workers.task(name="decorated", retries=3, timeout=5)(function)
            plain = workers.task(function)
            attempts = [each.submit().report(LONG).attempts for each in (direct, decorated, plain)]
            self.assertEqual(attempts[:2], [4, 4])
            self.assertEqual(attempts[2], 1)

    def test_a_durable_task_has_its_settings_either_way(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers:
            queue = workers.durable("q", nats=NatsSettings("nats://127.0.0.1:1"))

            def function() -> None: ...

            self.assertEqual(queue.task(function, name="named").name, "named")
            self.assertEqual(workers.task(function, name="other", durable=queue).name, "other")
            with self.assertRaisesRegex(paceline.InvalidError, "custom"):
                queue.task(function, retries=paceline.Retry.custom(3, lambda _: 1.0))


class Ends(Case):
    """Tasks that were accepted, by what nobody ends, at the interpreter's end."""

    HEAD = """
        import time, paceline
        def slow(): time.sleep(0.2)
        """

    def test_posted_tasks_that_never_run_are_told(self) -> None:
        told = run(
            self.HEAD
            + """
        pool = paceline.Pool(1)
        for _ in range(10):
            pool.post(slow)
        """
        )
        self.assertEqual(told.returncode, 0)
        self.assertRegex(
            told.stderr, r"(?m)^(9|10) of the tasks of the pool paceline had not begun .*`with`"
        )

    def test_tasks_of_a_worker_pool_that_never_run_are_told(self) -> None:
        told = run(
            self.HEAD
            + """
        pool = paceline.Pool(1)
        workers = paceline.WorkerPool(pool, threads=1)
        task = workers.task(slow)
        for _ in range(10):
            task.post()
        """
        )
        self.assertEqual(told.returncode, 0)
        self.assertRegex(told.stderr, r"(?m)^\d+ of the tasks of the worker pool workers had not begun")

    def test_what_is_ended_says_nothing(self) -> None:
        told = run(
            self.HEAD
            + """
        with paceline.Pool(1) as pool, paceline.WorkerPool(pool, threads=1) as workers:
            pool.post(slow)
            workers.task(slow).post()
        other = paceline.Pool(1)
        other.submit(slow).result()
        executor = paceline.Executor(1)
        for _ in range(3):
            executor.submit(slow)
        """
        )
        self.assertEqual((told.returncode, told.stderr), (0, ""))


class Requests(Case):
    def test_a_request_that_nobody_answers_is_told(self) -> None:
        with told() as texts, Pool(1) as pool:
            http = Http(pool)

            @http.get("/nothing/{number}")
            def nothing(request: Any) -> None:
                return None

            with http:
                host, port = http.addresses[0].rsplit(":", 1)
                client = HTTPConnection(host, int(port), timeout=LONG)
                client.request("GET", "/nothing/7")
                self.assertEqual(client.getresponse().status, 500)
                client.close()
        unanswered = [text for text in texts if "was not answered" in text]
        self.assertEqual(len(unanswered), 1, texts)
        self.assertIn("GET /nothing/7", unanswered[0])

    def test_an_answer_after_an_answer_is_told(self) -> None:
        with told() as texts, Pool(1) as pool:
            http = Http(pool)

            @http.get("/twice")
            def twice(request: Any) -> str:
                request.respond("first")
                return "second"

            with http:
                host, port = http.addresses[0].rsplit(":", 1)
                client = HTTPConnection(host, int(port), timeout=LONG)
                client.request("GET", "/twice")
                self.assertEqual(client.getresponse().read(), b"first")
                client.close()
        self.assertEqual(len(texts), 1, texts)
        self.assertIn("GET /twice> has returned an answer: it is dropped", texts[0])

    def test_json_is_compact(self) -> None:
        value = {"name": "Grüße 🎉", "list": [1, 2]}
        response = Response.json(value)
        self.assertEqual(response.body, '{"name":"Grüße 🎉","list":[1,2]}'.encode())
        self.assertEqual(json.loads(response.body), value)  # type: ignore[arg-type]


class Failing(Case):
    """What handlers of a hub fail with."""

    def test_an_attempt_that_another_follows_is_a_warning(self) -> None:
        for execution in ("serial", "concurrent"):
            with told() as texts:
                with Pool(1) as pool, paceline.Hub(pool) as hub:

                    def handler(message: Any) -> None:
                        raise KeyError("on purpose")

                    retries = paceline.Retry.fixed(2, 0.001)
                    hub.subscribe("key", handler, retries=retries, execution=execution)
                    hub.publish("key")
                    self.until(lambda: hub.dead_letters())
                self.until(lambda: sum(map(counted, texts)) == 3)
            errors = [text for text in texts if text.startswith("ERROR ")]
            self.assertEqual(errors, ["ERROR a handler has failed at a message of 'key'"])
            for text in set(texts) - set(errors):
                self.assertRegex(text, "^WARNING a handler .* of 'key', which is tried again")

    def test_a_full_stage_is_told_once_with_a_count(self) -> None:
        for execution in ("serial", "concurrent", "inline"):
            with told() as texts:
                with Pool(1) as pool, paceline.Hub(pool) as hub:
                    full = hub.mailbox("next", capacity=8)
                    hub.subscribe("key", lambda _: hub.publish("next"), execution=execution)
                    for _ in range(200):
                        hub.publish("key")
                    self.until(lambda: hub.audit().dead_lettered == 192)
                    full.close()
                self.until(lambda: sum(map(counted, texts)) == 192)
            # One each second, and one at the end.
            self.assertLess(len(texts), 96)


class Threads(Case):
    def test_patched_threads_are_refused(self) -> None:
        """Method: what gevent's and eventlet's patches do, without them: a thread that is started never runs."""
        told = run(
            """
            import sys, threading, types
            import paceline
            early, pool = paceline.Executor(1), paceline.Pool(0)
            hub, queue = paceline.Hub(pool), paceline.Queue()
            real = threading.get_ident, threading.Thread.start
            def get_ident(): return 1
            get_ident.__module__ = "gevent.thread"
            threading.get_ident = get_ident
            threading.Thread.start = lambda self: print("started")
            for make in (
                lambda: early.submit(print, "ran"),
                lambda: early.submit_batch(print, ["ran"]),
                lambda: list(early.map(print, ["ran"])),
                lambda: paceline.Executor(1).submit(print, "ran"),
                lambda: paceline.Pool(1),
                lambda: paceline.WorkerPool(pool, threads=1),
                lambda: paceline.Server(pool, (), print),
                lambda: paceline.Http(pool).start(),
                lambda: hub.subscribe("key", print),
                lambda: paceline.Log(callback=print, logger=False),
                lambda: queue.pop(),
            ):
                try:
                    make()
                except paceline.UnsupportedError as refused:
                    print("patched by gevent" in str(refused))
            threading.get_ident, threading.Thread.start = real
            """
        )
        self.assertEqual(told.stdout, "True\n" * 11, told.stderr)

    def test_a_task_that_is_refused_for_want_of_a_thread_does_not_run(self) -> None:
        ran: list[int] = []
        start = threading.Thread.start

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        executor = Executor(2)
        self.addCleanup(executor.shutdown)
        self.addCleanup(setattr, threading.Thread, "start", start)
        threading.Thread.start = refuse  # type: ignore[method-assign]
        calls: list[Callable[[], Any]] = [
            lambda: executor.submit(ran.append, 1),
            lambda: executor.submit_batch(ran.append, [2, 3]),
            lambda: list(executor.map(ran.append, [4, 5])),
        ]
        for call in calls:
            with self.assertRaisesRegex(RuntimeError, "can't start new thread"):
                call()
        threading.Thread.start = start  # type: ignore[method-assign]
        first = executor.submit(ran.append, 6)
        first.result(LONG)
        # With one thread a second one is not needed.
        threading.Thread.start = refuse  # type: ignore[method-assign]
        for call in calls:
            call()
        executor.submit(ran.append, 7).result(LONG)
        self.assertEqual(sorted(ran), [1, 2, 3, 4, 5, 6, 7])
        self.until(lambda: executor.audit().balances)


class Waiting(Case):
    """Waits that hold up what they wait for."""

    def test_what_waits_is_refused_in_an_event_loop(self) -> None:
        with Pool(1) as pool, paceline.Hub(pool) as hub, WorkerPool(pool, threads=1) as workers:
            queue, mailbox = paceline.Queue(), hub.mailbox("key")
            http = Http(pool).start()
            udp = paceline.Udp(pool, lambda *_: None, "127.0.0.1:0")
            durable = workers.durable("q", nats=NatsSettings("nats://127.0.0.1:1"))
            gate, stored = threading.Event(), durable.task(lambda: None, name="stored")
            task = workers.task(gate.wait).submit()
            hub.subscribe("asked", lambda message: hub.reply(message, b"well"))
            refused: list[tuple[Callable[[], Any], str]] = [
                (lambda: hub.request("asked", b"", 0.1), "hub.request_async"),
                (lambda: mailbox.pull(1, 0.1), "mailbox.pull_async"),
                (lambda: mailbox.pull_batch(1), "mailbox.pull_async"),
                (lambda: queue.pop(0.1), "queue.pop_async"),
                (lambda: queue.pop_batch(1), "queue.pop_async"),
                (lambda: stored.submit(), "task.submit_async"),
                (lambda: durable.find("n" + 32 * "0").result(0.1), "the task itself"),
                (lambda: task.result(0.1), "the task itself"),
                (lambda: task.exception(), "the task itself"),
                (lambda: task.report(), "the task itself"),
                (lambda: http.drain(), "adrain"),
                (lambda: udp.drain(), "adrain"),
            ]
            allowed: list[Callable[[], Any]] = [
                lambda: mailbox.pull(1, 0),
                lambda: self.assertRaises(paceline.Empty, queue.pop, 0),
                lambda: self.assertRaises(concurrent.futures.TimeoutError, task.result, 0),
                lambda: (queue.push(b"x"), queue.pop()),
                lambda: (hub.publish("key"), mailbox.pull(1)),
            ]

            async def main() -> None:
                for call, twin in refused:
                    with self.assertRaisesRegex(paceline.DeadlockError, f"in a coroutine: await {twin}"):
                        call()
                for call in allowed:
                    call()
                self.assertEqual((await hub.request_async("asked")).payload, b"well")
                gate.set()
                self.assertTrue(await task)
                self.assertTrue(task.result())

            with durable:
                asyncio.run(main())
            self.assertEqual(hub.request("asked", b"", LONG).payload, b"well")
            self.assertTrue(http.drain().drained)
            udp.close()

    def test_a_task_that_waits_for_itself_is_told(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers, Executor(1) as executor:
            began = threading.Event()
            tasks: list[Any] = []

            def own() -> Any:
                began.wait()
                return tasks[-1].result(LONG)

            async def awaits() -> Any:
                await asyncio.get_running_loop().run_in_executor(None, began.wait)
                return await tasks[-1]

            for submit in (
                lambda: pool.submit(own),
                lambda: pool.strand().submit(own),
                lambda: executor.submit(own),
                lambda: workers.task(own, name="own").submit(),
                lambda: workers.task(awaits, name="awaits").submit(),
            ):
                began.clear()
                tasks.append(submit())
                began.set()
                with self.assertRaisesRegex(paceline.DeadlockError, "waits for it"):
                    tasks[-1].result(LONG)

    def test_who_waits_for_another_task_is_no_deadlock(self) -> None:
        with Pool(2) as pool, WorkerPool(pool, threads=2) as workers:
            other = pool.submit(lambda: 1)
            self.assertEqual(pool.submit(lambda: other.result(LONG)).result(LONG), 1)
            inner = workers.task(lambda: 2, name="inner")
            self.assertEqual(
                workers.task(lambda: inner.submit().result(LONG), name="outer").submit().result(LONG), 2
            )

            async def begins() -> Any:
                """What a coroutine has begun may wait for it."""
                asyncio.get_running_loop().create_task(waits())

            async def waits() -> None:
                came.append(await tasks[0])

            came: list[Any] = []
            tasks: list[Any] = []
            began = workers.task(begins, name="begins")
            tasks.append(began.submit_after(0.01))
            self.until(lambda: came == [None])


def counted(text: str) -> int:
    """How many failures a line tells of."""
    more = re.search(r"\[(\d+) more of this kind( since)?", text)
    return 1 if more is None else int(more[1]) + (more[2] is not None)


class Names(Case):
    def test_a_star_replaces_no_name_of_pythons(self) -> None:
        import builtins

        self.assertEqual([name for name in paceline.__all__ if hasattr(builtins, name)], [])

    def test_a_keyword_may_be_called_self(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers, Executor(1) as executor:

            def function(**keywords: Any) -> Any:
                return keywords

            task = workers.task(function)
            expected = {"self": 1, "fn": 2, "function": 3}
            self.assertEqual(task(**expected), expected)
            self.assertEqual(task.submit(**expected).result(LONG), expected)
            self.assertEqual(task.submit_after(0, **expected).result(LONG), expected)
            for each in (pool, pool.strand(), pool.lane(paceline.Lane.HIGH), executor):
                self.assertEqual(each.submit(function, **expected).result(LONG), expected)

    def test_a_path_with_a_nul_is_refused(self) -> None:
        for path in ("a\0b", b"a\0b", Path("a\0b")):
            with self.assertRaisesRegex(paceline.InvalidError, "allowed: a path without NUL"):
                Pool(1, settings=path)


class Notebooks(Case):
    """Goal: a cell that decorates can be run again, with other settings. Method: source that is run as a cell is."""

    def cell(self, source: str, names: dict[str, Any]) -> Any:
        names.setdefault("__name__", "__main__")
        exec(textwrap.dedent(source), names)
        return names["f"]

    def test_a_task_can_be_defined_again(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers:
            names: dict[str, Any] = {"workers": workers}
            cell = """
                @workers.task(retries={retries})
                def f(): return {answer}
                """
            first = self.cell(cell.format(retries=1, answer=1), names)
            other = self.cell(cell.format(retries=2, answer=2), names)
            third = self.cell(cell.format(retries=3, answer=3), names)
            again = self.cell(cell.format(retries=2, answer=4), names)
            tasks = [first, other, third, again]
            self.assertEqual([each.submit().result(LONG) for each in tasks], [1, 2, 3, 4])
            self.assertEqual([each.name for each in tasks], ["f", "f#2", "f#3", "f#2"])
            counts = {name: each.completed for name, each in workers.stats().items()}
            self.assertEqual(counts, {"f": 1, "f#2": 2, "f#3": 1})

    def test_another_function_of_a_name_is_refused(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers:

            def made(retries: int) -> Any:
                def function() -> None: ...

                return workers.task(function, name="f", retries=retries)

            made(1)
            with self.assertRaisesRegex(paceline.InvalidError, "there is a task 'f' already with other"):
                made(2)
            made(1)

    def test_a_durable_task_can_be_defined_again(self) -> None:
        with Pool(1) as pool, WorkerPool(pool, threads=1) as workers:
            queue = workers.durable("q", nats=NatsSettings("nats://127.0.0.1:1"))
            names: dict[str, Any] = {"queue": queue}
            cell = """
                @queue.task(retries={retries}, timeout={timeout})
                def f(): return {timeout}
                """
            self.cell(cell.format(retries=1, timeout=1), names)
            self.cell(cell.format(retries=2, timeout=2), names)
            with queue:
                again = self.cell(cell.format(retries=2, timeout=3), names)
                self.assertEqual((again(), again.name), (3, "f"))
                self.assertEqual(queue._taker.functions["f"][0].name, "q.f#3")
                with self.assertRaisesRegex(paceline.InvalidError, "allowed for retries of 'f'"):
                    self.cell(cell.format(retries=3, timeout=3), names)
                with self.assertRaisesRegex(paceline.InvalidError, "the queue is open already"):
                    queue.task(lambda: None, name="g")

    def test_a_route_can_be_defined_again(self) -> None:
        with Pool(1) as pool:
            http = Http(pool)
            names: dict[str, Any] = {"http": http}
            cell = """
                @http.get("/f")
                def f(request): return "{answer}"
                """

            @http.around
            def around(request: Any, next: Any) -> Any:
                return next(request).header("around", "once")

            def asked() -> tuple[bytes, Any]:
                host, port = http.addresses[0].rsplit(":", 1)
                client = HTTPConnection(host, int(port), timeout=LONG)
                self.addCleanup(client.close)
                client.request("GET", "/f")
                response = client.getresponse()
                return response.read(), response.getheader("around")

            self.cell(cell.format(answer=1), names)
            self.cell(cell.format(answer=2), names)
            with http:
                self.assertEqual(asked(), (b"2", "once"))
                self.cell(cell.format(answer=3), names)
                self.assertEqual(asked(), (b"3", "once"))
                with self.assertRaisesRegex(paceline.InvalidError, "started already"):
                    http.get("/f")(lambda request: "another")


class Clocks(Case):
    def test_a_clock_that_stands_still_holds_up_no_wait(self) -> None:
        """Goal: waits with a time end though a test of the program's has frozen the clocks of ``time``, in place and in
        every module that has taken them."""
        told = run(
            """
            import sys, time, threading
            real = time.monotonic, time.time, time.perf_counter, time.monotonic_ns, time.time_ns
            import paceline
            from paceline import Executor, Pool, WorkerPool, Hub, Queue, Log
            pool = Pool(1)
            workers, hub, queue = WorkerPool(pool, threads=1), Hub(pool), Queue()
            gate = threading.Event()
            task, mailbox = workers.task(gate.wait), hub.mailbox("k")
            running = task.submit()
            posted = pool.submit(gate.wait)
            frozen = lambda: 1000.0
            for name, module in list(sys.modules.items()):
                if not name.startswith("threading"):
                    for key, value in list(vars(module).items()):
                        if any(value is each for each in real):
                            setattr(module, key, frozen)
            def ends(wait):
                try:
                    wait()
                except Exception:
                    pass
            ends(lambda: running.result(0.05))
            ends(lambda: running.report(0.05))
            ends(lambda: posted.result(0.05))
            ends(lambda: mailbox.pull(1, timeout=0.05))
            ends(lambda: hub.request("nobody.k", b"", timeout=0.05))
            ends(lambda: list(paceline.Executor(1).map(gate.wait, [1], timeout=0.05)))
            gate.set()
            pool.shutdown(drain=5)
            print("through")
            """,
            timeout=60,
        )
        self.assertEqual(told.stdout, "through\n", told.stderr)


if __name__ == "__main__":
    unittest.main()
