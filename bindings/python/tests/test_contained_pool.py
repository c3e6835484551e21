"""Code and objects of the user that misbehave on threads of pools, executors and worker pools: each is contained
and told, the thread goes on, and whoever waits has an answer."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import inspect
import logging
import socket
import sys
import threading
import time
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paceline
from paceline import Executor, Log, Middleware, Pool, Retry, RetryAfter, WorkerPool
from paceline._arguments import is_coroutine_function
from paceline._keys import keys
from support import Case

#: No wait of a test is meant to take so long. Seconds.
LONG = 60


class Bad(Exception):
    """What objects of the user raise where they should not."""


@dataclass(frozen=True)
class Frozen(Exception):
    """It refuses attributes."""

    text: str = ""


class Stubborn(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise Bad(name)


class Shy(Exception):
    """It cannot be shown."""

    def __str__(self) -> str:
        raise Bad

    __repr__ = __str__


class Hidden(Exception):
    """Nothing of it can be read."""

    def __getattribute__(self, name: str) -> Any:
        raise Bad(name)


class Fatal(BaseException):
    """No Exception."""


class Strange(str):
    """Text whose methods raise."""

    def encode(self, *_: Any) -> Any:
        raise Bad

    replace = __format__ = encode


class Told(Exception):
    """Its text is of a class of its own."""

    def __str__(self) -> str:
        return Strange("told")


class Untrue(Exception):
    """It is not true."""

    def __bool__(self) -> bool:
        return False


class Undecided(Exception):
    """Nor is it false."""

    def __bool__(self) -> bool:
        raise Bad


#: What is raised by tasks and handlers.
RAISED: list[type[BaseException]] = [
    ValueError,
    Frozen,
    Stubborn,
    Shy,
    Hidden,
    Told,
    Untrue,
    Undecided,
    Fatal,
    SystemExit,
    KeyboardInterrupt,
    StopIteration,
    GeneratorExit,
]


def raises(kind: type[BaseException], *_: object) -> Any:
    raise kind()


def raised_by(call: Callable[[], object]) -> Any:
    """The class of what it raises."""
    try:
        call()
    except BaseException as raised:
        return type(raised)


class Records(logging.Handler):
    """What was logged. A record that cannot be shown is a failure of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        formatter = logging.Formatter()
        self.texts.append(formatter.format(record))


class Contained(Case):
    def setUp(self) -> None:
        super().setUp()
        self.records = Records()
        for name in ("paceline", "concurrent.futures"):
            logger = logging.getLogger(name)
            logger.addHandler(self.records)
            self.addCleanup(logger.removeHandler, self.records)
            self.addCleanup(setattr, logger, "propagate", logger.propagate)
            logger.propagate = False
        self.hooked: list[type[BaseException]] = []
        self.addCleanup(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = lambda args: self.hooked.append(args.exc_type)

    def told(self, text: str) -> int:
        return sum(text in each for each in self.records.texts)

    def executor(self, threads: int = 1, **more: Any) -> Executor:
        executor = Executor(threads, **more)
        self.addCleanup(executor.shutdown)
        return executor

    def pool(self, threads: int = 1, **more: Any) -> Pool:
        pool = Pool(threads, **more)
        self.addCleanup(pool.shutdown)
        return pool

    def workers(self, threads: int = 1, pool: Any = None, **more: Any) -> WorkerPool:
        workers = WorkerPool(pool or self.pool(), threads=threads, **more)
        self.addCleanup(workers.shutdown, 0, LONG)
        return workers


class Raising(Contained):
    """Whatever a task raises, its future has it, and the thread runs the next."""

    def raised_by(self, submit: Callable[..., Any], wait: Callable[[Any], Any]) -> None:
        for kind in RAISED:
            with self.subTest(kind=kind):
                future = submit(raises, kind)
                self.assertIs(type(wait(future)), kind)
                self.assertIs(raised_by(future.result), kind)
                self.assertIsNone(wait(submit(len, ())))

    def test_executor(self) -> None:
        executor = self.executor()
        self.raised_by(executor.submit, lambda future: future.exception(LONG))
        self.assertEqual(len(executor._threads), 1)
        self.assertEqual(executor.audit().failed, len(RAISED))

    def test_map(self) -> None:
        executor = self.executor()
        for kind in RAISED:
            with self.subTest(kind=kind):
                # A generator cannot raise it, as in the standard.
                expected = RuntimeError if kind is StopIteration else kind
                try:
                    list(executor.map(raises, [kind], timeout=LONG))
                except BaseException as raised:
                    self.assertIs(type(raised), expected)
                else:
                    self.fail("it was lost")
                self.assertEqual(list(executor.map(len, [()], timeout=LONG)), [0])

    def test_pool(self) -> None:
        pool = self.pool()
        self.raised_by(pool.submit, lambda future: future.exception(LONG))
        self.raised_by(pool.strand().submit, lambda future: future.exception(LONG))
        self.raised_by(pool.lane(0).submit, lambda future: future.exception(LONG))

    def test_worker_pool(self) -> None:
        workers = self.workers()
        task = workers.task(name="calls")(lambda function, *args: function(*args))
        self.raised_by(task.submit, lambda future: future.exception(LONG))
        self.assertEqual(workers.health().status, "ready")

    def test_posted(self) -> None:
        workers = self.workers()
        task = workers.task(name="calls")(lambda function, *args: function(*args))
        for kind in RAISED:
            task.post(raises, kind)
        self.assertEqual(task.submit(len, ()).result(LONG), 0)
        self.assertEqual(self.told("a task of 'calls' has failed"), len(RAISED))

    def test_posted_to_a_pool(self) -> None:
        heard: list[type[BaseException]] = []
        pool = self.pool(on_unhandled=lambda raised: heard.append(type(raised)))
        for kind in RAISED:
            pool.post(raises, kind)
        self.assertEqual(pool.submit(len, ()).result(LONG), 0)
        self.assertEqual(heard, RAISED)
        self.assertEqual(pool.stats().unhandled, len(RAISED))

    def test_events_and_timers(self) -> None:
        pool = self.pool()
        for kind in RAISED:
            pool.after(0, raises, kind)
            pool.every(0.000001, raises, kind)
            pool.post(raises, kind)
        self.until(lambda: pool.stats().unhandled == 3 * len(RAISED))
        self.assertEqual(pool.submit(len, ()).result(LONG), 0)
        # What the interpreter's hook would leave out is logged.
        told = len(self.hooked) + sum("SystemExit" in each for each in self.records.texts)
        self.assertEqual(told, 3 * len(RAISED))

    def test_hooks_that_raise(self) -> None:
        for hook in RAISED:
            with self.subTest(hook=hook):
                pool = self.pool(on_unhandled=lambda raised: raises(hook))
                pool.post(raises, Bad)
                self.assertEqual(pool.submit(len, ()).result(LONG), 0)
                threading.excepthook = lambda args: raises(hook)
                pool.post(raises, Bad)
                self.assertEqual(pool.submit(len, ()).result(LONG), 0)
                self.assertEqual(pool.stats().unhandled, 2)

    def test_an_answer_that_cannot_be_shown(self) -> None:
        made: list[None] = []

        class Odd:
            def __init__(self) -> None:
                made.append(None)

            def __repr__(self) -> str:
                raise Fatal

        pool = self.pool()
        handle = pool.every(0.0001, Odd)
        self.until(lambda: len(made) > 3)
        handle.close()
        self.assertEqual(pool.submit(len, ()).result(LONG), 0)

    def test_initializers(self) -> None:
        for kind in RAISED:
            with self.subTest(kind=kind):
                executor = Executor(1, initializer=raises, initargs=(kind,))
                with self.assertRaises(concurrent.futures.thread.BrokenThreadPool):
                    executor.submit(len, ()).result(LONG)
                executor.shutdown()

    def test_an_initializer_and_a_log_that_raise(self) -> None:
        logging.getLogger("concurrent.futures").addFilter(_refuse)
        self.addCleanup(logging.getLogger("concurrent.futures").removeFilter, _refuse)
        executor = Executor(1, initializer=raises, initargs=(Bad,))
        with self.assertRaises(concurrent.futures.thread.BrokenThreadPool):
            executor.submit(len, ()).result(LONG)
        executor.shutdown()


def _refuse(_: object) -> bool:
    raise Bad


class Callbacks(Contained):
    """A callback may raise anything: those after it are called, and the thread goes on."""

    def test_executor(self) -> None:
        executor = self.executor()
        self.callbacks_of(executor.submit)
        self.assertEqual(len([each for each in executor._threads if each.is_alive()]), 1)

    def test_pool(self) -> None:
        self.callbacks_of(self.pool().submit)

    def test_worker_pool(self) -> None:
        workers = self.workers()
        self.callbacks_of(workers.task(name="calls")(lambda function, *args: function(*args)).submit)
        self.assertEqual(workers.health().status, "ready")

    def callbacks_of(self, submit: Callable[..., Any]) -> None:
        count = 0
        for kind in RAISED:
            for task in ((time.sleep, 0), (raises, Bad)):
                with self.subTest(kind=kind, task=task):
                    gate = threading.Event()
                    submit(gate.wait)
                    future = submit(*task)
                    called: list[Any] = []
                    future.add_done_callback(lambda _: raises(kind))
                    future.add_done_callback(called.append)
                    future.add_done_callback(lambda _: raises(kind))
                    gate.set()
                    future.exception(LONG)
                    self.assertEqual(submit(len, ()).result(LONG), 0)
                    self.assertEqual(called, [future])
                    count += 2
                    told = "exception calling callback", "a callback of a task was left"
                    self.until(lambda: sum(map(self.told, told)) == count)

    def test_on_the_thread_of_a_user(self) -> None:
        """KeyboardInterrupt and SystemExit are the caller's, as in the standard library."""
        executor = self.executor()
        gate = threading.Event()
        self.addCleanup(gate.set)
        executor.submit(gate.wait)
        for kind in (KeyboardInterrupt, SystemExit):
            future = executor.submit(len, ())
            called: list[Any] = []
            future.add_done_callback(lambda _: raises(kind))
            future.add_done_callback(called.append)
            with self.assertRaises(kind):
                future.cancel()
            self.assertEqual(called, [future])
            with self.assertRaises(kind):
                future.add_done_callback(lambda _: raises(kind))
        future.add_done_callback(lambda _: raises(Shy))
        self.assertEqual(self.told("exception calling callback"), 1)

    def test_a_sweep_goes_on(self) -> None:
        executor = self.executor()
        gate = threading.Event()
        executor.submit(gate.wait)
        futures = [executor.submit(len, ()) for _ in range(3)]
        futures[0].add_done_callback(lambda _: raises(KeyboardInterrupt))
        with self.assertRaises(KeyboardInterrupt):
            executor.shutdown(wait=False, cancel_futures=True)
        self.assertTrue(all(each.cancelled() for each in futures))
        gate.set()

    def test_a_pool_ends_whatever_callbacks_raise(self) -> None:
        pool = Pool(1)
        gate = threading.Event()
        pool.submit(gate.wait)
        future = pool.submit(len, ())
        future.add_done_callback(lambda _: raises(KeyboardInterrupt))
        timer = threading.Timer(0.01, gate.set)
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            pool.shutdown()
        self.until(lambda: not any(each.is_alive() for each in pool._runner.threads))


class Around(Contained):
    """What stands around the attempts of a worker pool."""

    def test_a_log_that_raises(self) -> None:
        for name in ("paceline", "paceline.task"):
            logging.getLogger(name).addFilter(_refuse)
            self.addCleanup(logging.getLogger(name).removeFilter, _refuse)
        log = Log(levels="debug", callback=lambda _: raises(Bad))
        self.addCleanup(log.close, LONG)
        workers = self.workers(log=log)
        task = workers.task(name="raises")(raises)
        for kind in RAISED:
            task.post(kind)
            self.assertIs(type(task.submit(kind).exception(LONG)), kind)

    def test_middleware(self) -> None:
        class Layer(Middleware):
            def __init__(self, before: Any, after: Any) -> None:
                self.kinds = before, after

            def before(self, attempt: Any) -> None:
                if self.kinds[0] is not None:
                    raise self.kinds[0]

            def after(self, attempt: Any) -> None:
                if self.kinds[1] is not None:
                    raise self.kinds[1]

            def on_error(self, attempt: Any, exception: BaseException) -> None:
                self.after(attempt)

        for kind in RAISED:
            with self.subTest(kind=kind):
                workers = self.workers(middleware=[Layer(None, kind), Layer(None, kind)])
                task = workers.task(name="calls")(lambda function, *args: function(*args))
                self.assertEqual(task.submit(len, ()).result(LONG), 0)
                self.assertIs(type(task.submit(raises, Frozen).exception(LONG)), Frozen)
                self.assertEqual(workers.health().status, "ready")
                refusing = self.workers(middleware=[Layer(kind, None)])
                task = refusing.task(name="calls")(lambda function, *args: function(*args))
                self.assertIs(type(task.submit(len, ()).exception(LONG)), kind)
                self.assertEqual(refusing.health().status, "ready")

    def test_delays(self) -> None:
        workers = self.workers()
        for kind in RAISED:
            with self.subTest(kind=kind):
                retry = Retry.custom(3, lambda _: raises(kind))
                task = workers.task(name=kind.__name__, retries=retry)(raises)
                self.assertIs(type(task.submit(ValueError).exception(LONG)), ValueError)
        self.assertEqual(self.told("no delay could be had"), len(RAISED))
        retry = Retry.custom(3, lambda _: float("inf"))
        task = workers.task(name="for ever", retries=retry)(raises)
        self.assertIs(type(task.submit(ValueError).exception(LONG)), ValueError)

    def test_a_delay_that_cannot_be_read(self) -> None:
        class Never(RetryAfter):
            @property
            def seconds(self) -> float:  # type: ignore[override]
                raise Fatal

            @seconds.setter
            def seconds(self, _: float) -> None: ...

        workers = self.workers()
        task = workers.task(name="never", retries=2)(lambda: raises(lambda: Never(1)))  # type: ignore[arg-type]
        self.assertIs(type(task.submit().exception(LONG)), Never)
        self.assertEqual(workers.health().status, "ready")

    def test_hooks_of_a_shutdown(self) -> None:
        for kind in RAISED:
            with self.subTest(kind=kind):
                called: list[str] = []
                workers = self.workers()
                workers.on_shutdown(lambda: called.append("first"), name="first")
                workers.on_shutdown(lambda: raises(kind), name="raises")
                if issubclass(kind, (KeyboardInterrupt, SystemExit)):
                    with self.assertRaises(kind):
                        workers.shutdown()
                else:
                    self.assertEqual(workers.shutdown().failed_hooks, ("raises",))
                self.assertEqual(called, ["first"])


class Hosting(Contained):
    """A thread of the user that runs tasks has what interrupts it; the task has ended all the same."""

    def test_a_pool_without_threads(self) -> None:
        pool = self.pool(0)
        for kind in (KeyboardInterrupt, SystemExit):
            for submit in (pool.submit, pool.strand().submit, pool.lane(0).submit):
                future = submit(raises, kind)
                after = submit(len, ())
                with self.assertRaises(kind):
                    pool.join(LONG)
                self.assertIs(type(future.exception(0)), kind)
                while not after.done():
                    pool.join(LONG)
            pool.post(raises, kind)
            with self.assertRaises(kind):
                pool.join(LONG)
            handle = pool.every(0.0001, raises, kind)
            with self.assertRaises(kind):
                pool.join(LONG)
            self.assertTrue(handle.closed)
            pool.after(0, raises, kind)
            with self.assertRaises(kind):
                pool.join(LONG)
            future = pool.submit(len, ())
            future.add_done_callback(lambda _: raises(kind))
            with self.assertRaises(kind):
                pool.join(LONG)
            self.assertEqual(future.result(0), 0)
        self.assertEqual(self.hooked, [])
        future = pool.submit(raises, Fatal)
        pool.join(LONG)
        self.assertIs(type(future.exception(0)), Fatal)

    def test_a_worker_pool_without_threads(self) -> None:
        workers = self.workers(0)
        task = workers.task(name="calls")(lambda function, *args: function(*args))
        for kind in (KeyboardInterrupt, SystemExit):
            failing, after = task.submit(raises, kind), task.submit(len, ())
            self.interrupted(workers, kind)
            self.assertIs(type(failing.exception(0)), kind)
            self.until(lambda: workers.run() or after.done())
            self.assertEqual(after.result(LONG), 0)
            future = task.submit(len, ())
            future.add_done_callback(lambda _: raises(kind))
            self.interrupted(workers, kind)
            self.assertEqual(future.result(0), 0)
        self.assertEqual(workers.audit().failed, 2)

    def interrupted(self, workers: WorkerPool, kind: type[BaseException]) -> None:
        end = time.monotonic() + LONG
        with self.assertRaises(kind):
            while time.monotonic() < end:
                workers.run()


class Keys(Contained):
    """Equality decides whether tasks wait for each other."""

    def test_unequal_keys_of_one_hash(self) -> None:
        workers = self.workers(2)
        gate = threading.Event()
        self.addCleanup(gate.set)

        @workers.task
        def waits() -> bool:
            return gate.wait(LONG)

        @workers.task
        def opens() -> None:
            gate.set()

        for one, other in ((-1, -2), (0, (1 << 61) - 1), ("a", Alike("a"))):
            gate.clear()
            waiting = waits.options(key=one).submit()
            opens.options(key=other).submit().result(LONG)
            self.assertTrue(waiting.result(LONG))

    def test_equal_keys(self) -> None:
        workers = self.workers(4)
        running, most, lock = 0, 0, threading.Lock()

        @workers.task
        def runs() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.001)
            with lock:
                running -= 1

        # Each submission has a key of its own, equal to all others.
        kinds: list[Callable[[], Any]] = [lambda: 1, lambda: 1.0, lambda: True]
        tasks = [runs.options(key=kinds[each % 3]()).submit() for each in range(60)]
        for task in tasks:
            task.result(LONG)
        self.assertEqual(most, 1)
        most = 0
        for task in [runs.options(key=("a", str(each % 1))).submit() for each in range(20)]:
            task.result(LONG)
        self.assertEqual(most, 1)

    def test_nested(self) -> None:
        workers = self.workers(2)

        @workers.task
        def inner() -> str:
            return "inner"

        @workers.task
        def outer() -> str:
            return inner.options(key=-2).submit().result(LONG)

        self.assertEqual(outer.options(key=-1).submit().result(LONG), "inner")

    def test_keys_are_not_kept(self) -> None:
        workers = self.workers()
        task = workers.task(name="len")(len)
        before = len(keys._numbers)
        for number in range(100):
            task.options(key=Alike(number)).submit(()).result(LONG)

        def swept() -> bool:
            gc.collect()
            task.options(key=Alike(None))
            return len(keys._numbers) <= before + 2

        self.until(swept)

    def test_keys_that_raise(self) -> None:
        class Odd:
            def __init__(self, kind: Any) -> None:
                self.kind = kind

            def __hash__(self) -> int:
                return 1

            def __eq__(self, other: object) -> bool:
                raise self.kind

        workers = self.workers()
        task = workers.task(name="len")(len)
        with self.assertRaises(TypeError):
            task.options(key=[])  # type: ignore[arg-type]
        for kind in (Bad, SystemExit, Fatal):
            one = Odd(kind)
            kept = task.options(key=one)
            self.assertEqual(kept.submit(()).result(LONG), 0)
            # The same object is equal to itself.
            self.assertEqual(task.options(key=one).options(priority="high").submit(()).result(LONG), 0)
            with self.assertRaises(kind):
                task.options(key=Odd(kind))
            del kept
        self.assertEqual(workers.health().status, "ready")


class Waiting(Contained):
    """Whoever waits has an answer."""

    def test_stop_iteration_is_awaited(self) -> None:
        workers = self.workers()
        task = workers.task(name="calls")(lambda function, *args: function(*args))

        async def awaits() -> None:
            for kind in RAISED:
                try:
                    await task.submit(raises, kind)
                except BaseException as raised:
                    if kind is StopIteration:
                        self.assertIs(type(raised), RuntimeError)
                        self.assertIs(type(raised.__cause__), StopIteration)
                    else:
                        self.assertIs(type(raised), kind)
                else:
                    self.fail("it was lost")
            self.assertEqual(await task.submit(len, ()), 0)

        async def all_of() -> None:
            done = await asyncio.gather(task.submit(raises, StopIteration), return_exceptions=True)
            self.assertIs(type(done[0]), RuntimeError)

        for awaiting in (awaits(), all_of()):
            asyncio.run(awaiting)

    def test_a_cancelled_await(self) -> None:
        workers = self.workers()
        gate = threading.Event()
        self.addCleanup(gate.set)
        blocks = workers.task(name="blocks")(gate.wait)

        async def awaits() -> None:
            running = blocks.submit()
            waiting, other = blocks.submit(), blocks.submit()
            awaiting = asyncio.ensure_future(_await(waiting))
            await asyncio.sleep(0)
            awaiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await awaiting
            self.assertTrue(waiting.cancelled())
            other.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await other
            with self.assertRaises(asyncio.CancelledError):
                await other
            gate.set()
            self.assertTrue(await running)
            self.assertTrue(await running)

        asyncio.run(awaits())

    def test_an_await_whose_loop_is_closed(self) -> None:
        workers = self.workers()
        gate = threading.Event()
        self.addCleanup(gate.set)
        blocks = workers.task(name="blocks")(gate.wait)
        tasks = [blocks.submit()]

        async def abandons() -> None:
            awaiting = tasks[0].__await__()
            next(awaiting)
            self.addCleanup(awaiting.close)

        asyncio.run(abandons())
        gate.set()
        self.assertTrue(tasks[0].result(LONG))
        self.assertTrue(blocks.submit().result(LONG))
        self.assertEqual(self.records.texts, [])

    def test_waits_for_what_a_shutdown_cancels(self) -> None:
        for wait in (
            lambda futures: concurrent.futures.wait(futures, LONG)[1],
            lambda futures: len(list(concurrent.futures.as_completed(futures, LONG))) - len(futures),
        ):
            executor, pool, gate = Executor(1), Pool(1), threading.Event()
            for each in (executor, pool):
                each.submit(gate.wait)
            strand, lane = pool.strand(), pool.lane(3)
            futures = [each.submit(len, ()) for each in (executor, executor, pool, strand, lane)]
            left: list[Any] = []
            waiting = threading.Thread(target=lambda: left.append(wait(futures)))  # type: ignore[no-untyped-call]
            waiting.start()
            self.until(lambda: all(each._waiters for each in futures))  # type: ignore[attr-defined]
            executor.shutdown(wait=False, cancel_futures=True)
            pool.shutdown()
            waiting.join(LONG)
            self.assertFalse(left[0])
            self.assertTrue(all(each.cancelled() for each in futures))
            gate.set()


class Registered(Contained):
    """What is decorated or registered is served as it is meant, or refused at once."""

    def test_methods(self) -> None:
        workers = self.workers()

        class Account:
            def __init__(self, balance: int) -> None:
                self.balance = balance

            @workers.task(retries=2)
            def deposit(self, amount: int, *, times: int = 1) -> int:
                """Adds to it."""
                self.balance += amount * times
                return self.balance

            @workers.task
            @classmethod
            def named(cls) -> str:
                return cls.__name__

            @staticmethod
            @workers.task(name="three")
            def three() -> int:
                return 3

            @workers.task(name="four")
            @staticmethod
            def four() -> int:
                return 4

            urgent = deposit.options(priority="high")

        account = Account(10)
        self.assertEqual(account.deposit.submit(5).result(LONG), 15)
        self.assertEqual(account.deposit.submit(5, times=2).result(LONG), 25)
        self.assertEqual(account.deposit(5), 30)
        self.assertEqual(account.urgent.submit(5).result(LONG), 35)
        self.assertEqual(account.deposit.options(priority="low").submit(5).result(LONG), 40)
        self.assertEqual(account.deposit.submit_after(0, 5).result(LONG), 45)
        self.assertEqual([each.result(LONG) for each in account.deposit.submit_batch([1, 2])], [46, 48])
        account.deposit.post(2)
        self.until(lambda: account.balance == 50)
        # Of the class it is a function of the object.
        self.assertEqual(Account.deposit.submit(account, 5).result(LONG), 55)
        self.assertEqual(Account.deposit(account, 5), 60)
        for holder in (Account, account):
            self.assertEqual([holder.named(), holder.named.submit().result(LONG)], ["Account"] * 2)
            self.assertEqual([holder.three(), holder.three.submit().result(LONG)], [3, 3])
            self.assertEqual([holder.four(), holder.four.submit().result(LONG)], [4, 4])
        self.assertEqual(account.deposit.__doc__, "Adds to it.")
        self.assertEqual(list(inspect.signature(account.deposit).parameters), ["amount", "times"])
        self.assertEqual(workers.stats()[Account.deposit.name].completed, 9)
        periodic = workers.every(0.0001, account.deposit, 1)
        self.until(lambda: account.balance > 62)
        periodic.close()

    def test_callables_that_are_no_functions(self) -> None:
        workers = self.workers()

        class Calls:
            def __call__(self) -> str:
                return "called"

        class Holder:
            called = workers.task(name="called")(Calls())
            partly = workers.task(name="partly")(functools.partial(len, "ab"))
            builtin = workers.task(name="builtin")(len)

        holder = Holder()
        self.assertEqual(holder.called.submit().result(LONG), "called")
        self.assertEqual(holder.builtin.submit("a").result(LONG), 1)
        if sys.version_info < (3, 14):
            # From then on a partial is a method, too.
            self.assertEqual(holder.partly.submit().result(LONG), 2)

    def test_what_would_never_run(self) -> None:
        """A call of such a function returns a coroutine or a generator, and runs nothing."""

        async def coroutine(*_: Any) -> None: ...

        def generator(*_: Any) -> Any:
            yield

        async def both(*_: Any) -> Any:
            yield

        class Coroutine:
            async def __call__(self, *_: Any) -> None: ...

        class Generator:
            def __call__(self, *_: Any) -> Any:
                yield

        class Method:
            async def method(self, *_: Any) -> None: ...

        pool, workers = self.pool(), self.workers()
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)

        def layer(name: str, method: Any) -> Middleware:
            kind: Any = type("Layer", (Middleware,), {name: method})
            made: Middleware = kind()
            return made

        places: dict[str, Callable[[Any], Any]] = {
            "WorkerPool.task": workers.task(name="refused"),
            "WorkerPool.on_shutdown": workers.on_shutdown,
            "Retry.custom": lambda function: Retry.custom(1, function),
            "Pool.register": lambda function: pool.register(ours, function),
            "Pool.after": lambda function: pool.after(0, function),
            "Pool.every": lambda function: pool.every(1, function),
            "Pool": lambda function: Pool(0, on_unhandled=function),
            "start": lambda function: Pool(0, on_thread_start=function),
            "end": lambda function: Pool(0, on_thread_end=function),
            "Executor": lambda function: Executor(1, initializer=function),
            "Service": lambda function: paceline.Service(pool, function),
        }
        for name in ("before", "after", "on_error"):
            places[name] = lambda function, name=name: self.workers(middleware=[layer(name, function)])
        functions = [coroutine, generator, both, Coroutine(), Generator(), Method().method]
        functions += [functools.partial(each) for each in functions[:3]]
        functions += (
            [staticmethod(each) for each in functions[:3]] if sys.version_info >= (3, 10) else []
        )
        for place, takes in places.items():
            for function in functions:
                inner = getattr(function, "__func__", function)
                if place == "WorkerPool.task" and is_coroutine_function(inner):
                    # They run on an event loop.
                    continue
                with self.subTest(place=place, function=function):
                    with self.assertRaisesRegex(
                        TypeError, "allowed: (no coroutine or generator|.*something to call)"
                    ):
                        takes(function)

    def test_what_a_class_makes(self) -> None:
        """A class is called itself, and not what its objects do when they are called."""

        class Made:
            async def __call__(self) -> None: ...

        task = self.workers().task(name="makes")(Made)
        self.assertIs(type(task.submit().result(LONG)), Made)

    def test_a_periodic_task_that_fails_is_told(self) -> None:
        workers = self.workers()
        for missed in ("skip", "coalesce"):
            for kind in RAISED:
                with self.subTest(missed=missed, kind=kind):
                    task = workers.task(name=f"{kind.__name__} {missed}")(raises)
                    periodic = workers.every(0.0001, task, kind, missed=missed)
                    name = f"a run of the periodic task '{task.name}' has failed"
                    self.until(lambda: self.told(name) > 1)
                    periodic.close()
                    assert periodic.last is not None
                    self.until(periodic.last.done)
                    # The end cancels one that has not begun.
                    failed = periodic.runs - periodic.last.cancelled()
                    self.until(lambda: self.told(name) == failed)

    def test_a_periodic_task_that_is_late_is_told(self) -> None:
        workers = self.workers()
        gate = threading.Event()
        self.addCleanup(gate.set)
        task = workers.task(name="late", timeout=0.001)(lambda: gate.wait(LONG))
        workers.every(0.0001, task)
        other = self.workers()
        self.assertEqual(other.task(name="len")(len).submit(()).result(LONG), 0)
        time.sleep(0.01)
        gate.set()
        self.until(lambda: self.told("a run of the periodic task 'late' has failed"))


async def _await(task: Any) -> Any:
    return await task


class Alike:
    """Its hash is another's."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash("a")


if __name__ == "__main__":
    unittest.main()
