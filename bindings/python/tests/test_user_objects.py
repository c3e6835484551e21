"""All places where code of the user comes in, and all ways in which it misbehaves there.

The places are found by inspection (``misbehaving.places``), and each needs a driver here: a new one cannot be
forgotten. A driver has the user's code called once, and waits for whoever waits for it. It is called with code
that misbehaves in each way, and after each with code that does what it should, on the same objects: their threads
must be alive, the answer must be right, and nothing may be printed.

PACELINE_WALK=10 bounds each wait to ten seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import Future as StandardFuture
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Optional, TypeVar
from unittest import mock

import misbehaving
import paceline
from misbehaving import WAYS, Act, Fields, Hostile, Items, Key, Number, Ordinary, Path, Socket
from paceline import ConnHandler, Http, Hub, Pool, RequestBody, Response, Server, Udp, WorkerPool
from support import Case

#: So long whoever waits for an answer waits at most. Seconds.
LIMIT = float(os.environ.get("PACELINE_WALK", "20"))

T = TypeVar("T")

Call = Callable[[Act], object]
Driver = Callable[["Stage", str], Call]

#: For each place, what drives it.
DRIVERS: dict[str, list[Driver]] = {}
#: Those that are for the main thread.
MAIN: set[Driver] = set()
#: Those of code whose exceptions are logged, each once.
TOLD: set[Driver] = set()
#: Ways that are not for a driver.
LEFT_OUT: dict[Driver, frozenset[str]] = {}

#: An event loop hands these to whoever runs it, and ends; that is no thread of the package.
ENDS_LOOPS = frozenset(("raises SystemExit", "raises KeyboardInterrupt"))
#: Before Python 3.11 nobody can tell a handler's own CancelledError from one that ends its task.
CANCELS = frozenset(("raises CancelledError",) if sys.version_info < (3, 11) else ())
#: Where a coroutine that asyncio itself runs raises this, asyncio hangs.
HANGS_LOOPS = frozenset(("raises Opaque",))

#: Only the package makes these.
MADE_BY_THE_PACKAGE = {
    "DurableFunction.__init__:function": "DurableQueue.task",
    "Periodic.__init__:args": "WorkerPool.every",
    "Periodic.__init__:calls": "WorkerPool.every",
    "Scope.__init__:lane": "Pool.scope",
    "TaskReport.__init__:error": "Task.report",
    "TaskReport.__init__:value": "Task.report",
}


def drives(
    *places: str, main: bool = False, told: bool = False, left_out: frozenset[str] = frozenset()
) -> Callable[[Driver], Driver]:
    """Drivers are made on a stage, for a place. ``main``: they are called on the main thread; ``told``: nobody
    has what the code raises, so it is logged."""

    def note(driver: Driver) -> Driver:
        for place in places:
            DRIVERS.setdefault(place, []).append(driver)
        if main:
            MAIN.add(driver)
        if told:
            TOLD.add(driver)
        LEFT_OUT[driver] = left_out
        return driver

    return note


class Told(logging.Handler):
    """Writes what is logged as text, as a usual handler does, and keeps what cannot be written."""

    def __init__(self) -> None:
        super().__init__(level=1)
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._format = logging.Formatter()

    def handleError(self, record: logging.LogRecord) -> None:
        self.faults.append(f"a record of {record.pathname}:{record.lineno} cannot be written")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.texts.append(self._format.format(record))
        except BaseException:
            self.handleError(record)


class Stage:
    """What a driver plays on: it ends all that was made, and knows the threads."""

    def __init__(self) -> None:
        self._ends = contextlib.ExitStack()
        self._before = set(threading.enumerate())
        self._threads: list[threading.Thread] = []
        #: What the user's code does now. A well-behaved one, while things are made.
        self.act = Act()

    # --- what is made ---------------------------------------------------------------------------------

    def keep(self, thing: T, end: Optional[Callable[[], object]] = None) -> T:
        """Ends it when all is over."""
        own: Any = thing
        self._ends.callback(end or own.close)
        return thing

    def executor(self) -> paceline.Executor:
        executor = paceline.Executor(2)
        executor.submit(int).result(LIMIT)
        return self.keep(executor, executor.shutdown)

    def pool(self, **settings: Any) -> Pool:
        pool = Pool(2, **settings)
        return self.keep(pool, lambda: pool.shutdown(LIMIT))

    def workers(self, **settings: Any) -> WorkerPool:
        workers = WorkerPool(self.pool(), threads=2, **settings)
        return self.keep(workers, lambda: workers.shutdown(1, 1, 1))

    def hub(self, **settings: Any) -> Hub:
        hub: Hub = self.keep(Hub(self.pool(), **settings))
        # Its threads are made with the first handler.
        hub.subscribe("warm", nothing)
        return hub

    def server(self, handler: Any, **settings: Any) -> Server:
        return self.keep(Server(self.pool(), "127.0.0.1:0", handler, **settings))

    def http(self) -> Http:
        return self.keep(Http(self.pool()))

    def folder(self) -> FilePath:
        folder = tempfile.TemporaryDirectory()
        self._ends.callback(folder.cleanup)
        return FilePath(folder.name)

    def loop(self) -> asyncio.AbstractEventLoop:
        """One that runs on a thread of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="a loop")
        thread.start()

        def end() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LIMIT)
            loop.close()

        self._ends.callback(end)
        return loop

    def on(self, loop: asyncio.AbstractEventLoop, body: Callable[[], Any]) -> Any:
        """``body()`` on the loop's thread."""

        async def run() -> Any:
            return body()

        return asyncio.run_coroutine_threadsafe(run(), loop).result(LIMIT)

    # --- threads ----------------------------------------------------------------------------------------

    def note_threads(self) -> None:
        """All is made."""
        self._threads = [each for each in threading.enumerate() if each not in self._before]

    def dead(self) -> list[str]:
        """Names of threads that have ended."""
        return [each.name for each in self._threads if not each.is_alive()]

    def close(self) -> None:
        self.act = Act()
        self._ends.close()


# --- what drivers say -------------------------------------------------------------------------------------------


#: A function as an object that is good for nothing else.
code = misbehaving.Code


def nothing(*_: object) -> None:
    pass


def fails(*_: object) -> None:
    raise Ordinary("on purpose")


def crashes(*_: object) -> None:
    raise SystemExit("on purpose")


def called(act: Act) -> None:
    """The user's code was called."""
    assert act.called.wait(LIMIT), "the code was not called"


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, f"it did not come about: {what}"
        time.sleep(0.001)


def check_raised(raised: Optional[BaseException], act: Act) -> None:
    """It is what the user's code has raised, or, of an iterator's end, what says so."""
    kind = type(raised)
    if act.raises is StopIteration:
        assert kind in (StopIteration, RuntimeError), f"{kind.__name__} came out"
    else:
        assert kind is act.raises, f"{kind.__name__} came out"


def check_answer(future: StandardFuture[Any], act: Act, good: Any = 1) -> None:
    """The future has what has come of the user's code, and tells it to all that ask in time."""
    raised = future.exception(LIMIT)
    if act.raises is not None:
        check_raised(raised, act)
        comes_out(act, lambda: future.result(LIMIT))
        return
    assert raised is None, f"{type(raised).__name__} came out"
    value = future.result(LIMIT)
    if act.returns is not None:
        assert type(value) is act.returns
    else:
        assert value == good


def comes_out(act: Act, call: Callable[[], Any]) -> Any:
    """What the user's code raises is raised by the call. What it returns may be refused."""
    try:
        value = call()
    except BaseException as raised:
        if act.well:
            raise
        if act.raises is not None and act.raises is not StopIteration:
            check_raised(raised, act)
        return None
    assert act.called.is_set(), "the code was not called"
    assert act.raises is None or act.raises is StopIteration, "nothing came out"
    return value


def comes_to_nothing(act: Act, call: Callable[[], Any]) -> Any:
    """What the user's code raises is contained, but for what is no ``Exception``: where the caller's own thread
    runs the code, that may come out."""
    try:
        return call()
    except BaseException as raised:
        if act.raises is None or issubclass(act.raises, Exception):
            raise
        check_raised(raised, act)
        return None


# --- tasks --------------------------------------------------------------------------------------------------------


def submitters(stage: Stage, place: str) -> Any:
    """What has ``submit`` and its kin."""
    kind = place.partition(".")[0]
    if kind == "Executor":
        return stage.executor()
    pool = stage.pool(on_unhandled=nothing)
    return {"Pool": lambda: pool, "LaneRef": lambda: pool.lane(1), "Strand": pool.strand}[kind]()


def method_of(thing: Any, place: str) -> Any:
    """The method of a place, of that thing."""
    return getattr(thing, place.partition(".")[2].partition(":")[0])


SUBMITTERS = ("Executor", "Pool", "LaneRef", "Strand")


@drives(*(f"{kind}.submit:{name}" for kind in SUBMITTERS for name in ("fn", "args", "kwargs")))
@drives(*(f"{kind}.try_submit:{name}" for kind in SUBMITTERS[1:] for name in ("fn", "args", "kwargs")))
def submitted(stage: Stage, kind: str) -> Call:
    submit = method_of(submitters(stage, kind), kind)

    def call(act: Act) -> None:
        check_answer(submit(code(lambda *_, **__: act(1)), Hostile(), word=Hostile()), act)

    return call


@drives(*(f"{kind}.submit:fn" for kind in SUBMITTERS))
def submitted_and_awaited(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)

    def call(act: Act) -> None:
        gate = threading.Event()

        def body() -> Any:
            gate.wait(LIMIT)
            return act(1)

        future = to.submit(body)
        waiter = threading.Timer(0, gate.set)
        waiter.start()
        check_answer(future, act)
        waiter.join()

    return call


@drives(*(f"{kind}.submit_batch:fn" for kind in SUBMITTERS))
def submitted_as_batch(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)

    def call(act: Act) -> None:
        for future in to.submit_batch(code(lambda *_: act(1)), [Hostile(), Hostile()]):
            check_answer(future, act)

    return call


@drives(*(f"{kind}.submit_batch:iterables" for kind in SUBMITTERS))
def submitted_of_iterables(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)

    def call(act: Act) -> None:
        futures = comes_out(act, lambda: to.submit_batch(lambda _: 1, Items(act, 1)))
        for future in futures or ():
            assert future.result(LIMIT) == 1

    return call


@drives(*(f"{kind}.post:{name}" for kind in SUBMITTERS[1:] for name in ("fn", "args", "kwargs")))
@drives(*(f"{kind}.try_post:{name}" for kind in SUBMITTERS[1:] for name in ("fn", "args", "kwargs")))
def posted(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)
    post = method_of(to, kind)

    def call(act: Act) -> None:
        post(code(lambda *_, **__: act()), Hostile(), word=Hostile())
        called(act)
        assert to.submit(lambda: 1).result(LIMIT) == 1

    return call


@drives(*(f"{kind}.post_batch:fn" for kind in SUBMITTERS[1:]))
def posted_as_batch(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)

    def call(act: Act) -> None:
        to.post_batch(code(lambda _: act()), [Hostile(), Hostile()])
        called(act)
        assert to.submit(lambda: 1).result(LIMIT) == 1

    return call


@drives(*(f"{kind}.post_batch:iterables" for kind in SUBMITTERS[1:]))
def posted_of_iterables(stage: Stage, kind: str) -> Call:
    to = submitters(stage, kind)
    return lambda act: comes_out(act, lambda: to.post_batch(nothing, Items(act, 1)))


@drives(*(f"Scope.post:{name}" for name in ("fn", "args", "kwargs")))
def posted_to_a_scope(stage: Stage, _: str) -> Call:
    pool = stage.pool(on_unhandled=nothing)

    def call(act: Act) -> None:
        def scoped() -> None:
            with pool.scope() as scope:
                for _ in range(2):
                    scope.post(code(lambda *_, **__: act()), Hostile(), word=Hostile())

        # The end has what the first has raised.
        comes_out(act, scoped)
        called(act)

    return call


@drives("Executor.map:fn")
def mapped(stage: Stage, _: str) -> Call:
    executor = stage.executor()

    def call(act: Act) -> None:
        for settings in ({}, {"buffersize": 1}):
            results = executor.map(code(lambda *_: act(1)), [Hostile(), Hostile()], **settings)
            if act.raises is None:
                assert len(list(results)) == 2
            else:
                comes_out(act, lambda: list(results))

    return call


@drives("Executor.map:iterables")
def mapped_iterables(stage: Stage, _: str) -> Call:
    executor = stage.executor()

    def call(act: Act) -> None:
        comes_out(act, lambda: list(executor.map(lambda _: 1, Items(act, 1))))
        comes_out(act, lambda: list(executor.map(lambda _: 1, Items(act, 1), buffersize=1)))

    return call


@drives("Executor.__init__:initializer", "Executor.__init__:initargs")
def initialized(stage: Stage, _: str) -> Call:
    def call(act: Act) -> None:
        executor = paceline.Executor(1, initializer=code(lambda *_: act()), initargs=(Hostile(),))
        future = executor.submit(int)
        raised = future.exception(LIMIT)
        assert (raised is None) == (act.raises is None), "whether it is broken"
        executor.shutdown()

    return call


@drives("Future.add_done_callback:fn", told=True)
def told_of_the_end(stage: Stage, _: str) -> Call:
    worker_pool = stage.workers()
    task = worker_pool.task(name="waits")(lambda gate: gate.wait(LIMIT))
    submits = [stage.executor().submit, stage.pool().submit, stage.pool().strand().submit]

    def call(act: Act) -> None:
        for submit in (*submits, None):
            gate, again = threading.Event(), threading.Event()
            act.called.clear()
            future: Any = task.submit(gate) if submit is None else submit(gate.wait, LIMIT)
            future.add_done_callback(code(lambda _: act()))
            future.add_done_callback(lambda _: again.set())
            gate.set()
            assert future.result(LIMIT) is True
            called(act)
            assert again.wait(LIMIT), "the second callback was not called"
            comes_to_nothing(act, lambda: future.add_done_callback(lambda _: act()))

    return call


@drives("Future.set_result:result", "Future.set_exception:exception")
def ended_by_hand(stage: Stage, place: str) -> Call:
    name = place.partition(".")[2].partition(":")[0]

    def call(act: Act) -> None:
        future: paceline.Future[Any] = paceline.Future()
        told = threading.Event()
        future.add_done_callback(lambda _: told.set())
        assert future.set_running_or_notify_cancel()
        getattr(future, name)(act.thing(Ordinary("good")))
        assert told.is_set() and future.done()
        if name == "set_exception" and act.raises is not None:
            check_raised(future.exception(0), act)

    return call


@drives(
    "Future.fail:exception",
    "Future.succeed_attached:result",
    "Task.fail_as:exception",
    "Task.succeed:value",
)
def ended_by_a_thread(stage: Stage, place: str) -> Call:
    kind, name = place.partition(":")[0].split(".")

    def call(act: Act) -> None:
        future = getattr(paceline, kind)()
        told = threading.Event()
        future.add_done_callback(lambda _: told.set())
        assert future.set_running_or_notify_cancel()
        getattr(future, name)(*([4] if name == "fail_as" else []), act.thing(Ordinary("good")))
        assert told.is_set() and future.done()

    return call


# --- events -------------------------------------------------------------------------------------------------------


@drives("Pool.register:on_ready")
def ready(stage: Stage, _: str) -> Call:
    pool = stage.pool(on_unhandled=nothing)

    def call(act: Act) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def on_ready(_: object, __: object) -> Any:
                ours.recv(1)
                return act()

            handle = pool.register(ours, on_ready)
            theirs.send(b"x")
            called(act)
            if act.raises is not None:
                until(lambda: handle.closed, "a handler that fails is deregistered")
            handle.close()

    return call


@drives("Pool.register:io")
def registered(stage: Stage, _: str) -> Call:
    pool = stage.pool()
    ours, theirs = socket.socketpair()
    stage.keep(ours), stage.keep(theirs)

    def call(act: Act) -> None:
        handle = comes_out(act, lambda: pool.register(Socket(act, ours.fileno()), nothing))
        if handle is not None:
            handle.close()

    return call


@drives("Pool.every:fn", "Pool.every:args")
def ticked(stage: Stage, _: str) -> Call:
    pool = stage.pool(on_unhandled=nothing)

    def call(act: Act) -> None:
        handle = pool.every(0.001, code(lambda _: act()), Hostile())
        called(act)
        if act.raises is not None:
            until(lambda: handle.closed, "a handler that fails is deregistered")
        handle.close()

    return call


@drives("Pool.after:fn", "Pool.after:args")
def timed(stage: Stage, _: str) -> Call:
    pool = stage.pool(on_unhandled=nothing)

    def call(act: Act) -> None:
        pool.after(0.001, code(lambda _: act()), Hostile())
        called(act)

    return call


@drives("Pool.__init__:on_unhandled")
def unhandled(stage: Stage, _: str) -> Call:
    pool = stage.pool(on_unhandled=code(lambda _: stage.act()))

    def call(act: Act) -> None:
        pool.post(fails)
        called(act)
        assert pool.submit(lambda: 1).result(LIMIT) == 1

    return call


@drives("Pool.__init__:on_thread_start", "Pool.__init__:on_thread_end")
def begins_and_ends(stage: Stage, place: str) -> Call:
    hook = place.partition(":")[2]

    def call(act: Act) -> None:
        settings: dict[str, Any] = {hook: code(lambda _: act()), "on_unhandled": nothing}
        with Pool(1, **settings) as pool:
            assert pool.submit(lambda: 1).result(LIMIT) == 1
        called(act)

    return call


@drives("Pool.__init__:on_slow")
def told_of_what_is_slow(stage: Stage, _: str) -> Call:
    """By a thread that watches, and by the one that has run it."""

    def call(act: Act) -> None:
        settings: dict[str, Any] = {"slow_limit": 1e-5, "on_unhandled": nothing}
        with Pool(2, on_slow=code(lambda _: act()), **settings) as pool:
            assert pool.submit(act.called.wait, LIMIT).result(LIMIT)
        with Pool(1, on_slow=code(lambda _: act()), **settings) as pool:
            for _ in range(2):
                assert pool.submit(lambda: time.sleep(1e-4) or 1).result(LIMIT) == 1
        assert len(act.calls) >= 3

    return call


@drives("Pool.__init__:reserve")
def reserved(stage: Stage, _: str) -> Call:
    def call(act: Act) -> None:
        pool = comes_out(act, lambda: Pool(1, reserve={Number(act, 3): Number(act, 1)}))
        if pool is not None:
            assert pool.lane(3).submit(lambda: 1).result(LIMIT) == 1
            pool.shutdown()

    return call


@drives("Pool.__init__:pin")
def pinned(stage: Stage, _: str) -> Call:
    def call(act: Act) -> None:
        pool = comes_out(act, lambda: Pool(1, pin=Items(act, min(os.sched_getaffinity(0)))))
        if pool is not None:
            pool.shutdown()

    return call


@drives("Pool.__init__:on_unhandled")
def unhandled_by_default(stage: Stage, _: str) -> Call:
    """Without a hook: ``threading.excepthook``, which is the user's, too, has what is raised."""
    pool = stage.pool()

    def call(act: Act) -> None:
        with mock.patch("threading.excepthook", lambda _: act()):
            pool.post(code(lambda: act()))
            pool.post(fails)
            called(act)
            for _ in range(4):
                assert pool.submit(lambda: 1).result(LIMIT) == 1
            until(lambda: pool.audit().in_flight == 0, "all has ended")

    return call


@drives("Ring.__init__:handler")
def rung(stage: Stage, _: str) -> Call:
    ring = stage.keep(paceline.Ring(stage.pool(on_unhandled=nothing), code(lambda _: stage.act())))

    def call(act: Act) -> None:
        ring.publish(b"x")
        called(act)
        until(lambda: ring.counts()[0] == ring.counts()[1], "all is handled")

    return call


@drives("Ring.publish_batch:payloads", "Queue.push_batch:payloads")
def pushed(stage: Stage, place: str) -> Call:
    if place.startswith("Ring"):
        put = stage.keep(paceline.Ring(stage.pool(), nothing)).publish_batch
    else:
        put = stage.keep(paceline.Queue()).push_batch
    return lambda act: comes_out(act, lambda: put(Items(act, b"x")))


@drives(
    "CompletionQueue.register:io",
    "CompletionQueue.signals:numbers",
    "CompletionQueue.serve:wanted",
    main=True,
)
@drives("CompletionQueue.serve:listen", "CompletionQueue.serve:settings", main=True)
def attached(stage: Stage, place: str) -> Call:
    pool, what = stage.pool(), place.partition(":")[2]
    ours, theirs = socket.socketpair()
    stage.keep(ours), stage.keep(theirs)

    def call(act: Act) -> None:
        with paceline.CompletionQueue(pool) as queue:
            if what == "io":
                comes_out(act, lambda: queue.register(Socket(act, ours.fileno()), 1))
            elif what == "numbers":
                # A thread of the pool's does not block it, which is refused.
                with contextlib.suppress(paceline.InvalidError):
                    comes_out(act, lambda: queue.signals(Items(act, signal.SIGUSR2), 1))
            elif what == "wanted":
                wanted = Items(act, paceline.ConnEvent.OPENED)
                comes_out(act, lambda: queue.serve("127.0.0.1:0", 1, wanted=wanted))
            elif what == "settings":
                number = Number(act, 65536)
                comes_out(act, lambda: queue.serve("127.0.0.1:0", 1, send_buffer=number))
            else:
                comes_out(act, lambda: queue.serve(Items(act, "127.0.0.1:0"), 1))

    return call


# --- worker pools -------------------------------------------------------------------------------------------------


@drives("WorkerPool.task:function", "Calls.submit:args", "Calls.submit:kwargs")
def worked(stage: Stage, _: str) -> Call:
    body, workers = code(lambda act, *_, **__: act(1)), stage.workers()
    work = workers.task(name="work", retries=0)(body)
    again = workers.task(name="again", retries=paceline.Retry.fixed(1, 0), timeout=LIMIT)(body)

    def call(act: Act) -> None:
        for each in (work, again):
            check_answer(each.submit(act, Hostile(), word=Hostile()), act)

    return call


@drives("WorkerPool.task:function", "Calls.submit:args", "Calls.submit:kwargs")
def worked_as_coroutine(stage: Stage, _: str) -> Call:
    async def body(act: Act, *_: object, **__: object) -> Any:
        await asyncio.sleep(0)
        return act(1)

    workers = stage.workers()
    work = workers.task(name="work", retries=0)(body)
    again = workers.task(name="again", retries=paceline.Retry.fixed(1, 0), timeout=LIMIT)(body)

    def call(act: Act) -> None:
        for each in (work, again):
            check_answer(each.submit(act, Hostile(), word=Hostile()), act)

    return call


@drives("Calls.submit:args", left_out=HANGS_LOOPS)
def awaited(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work", retries=0)(code(lambda act, *_: act(1)))

    async def wait(act: Act) -> Any:
        return await asyncio.wait_for(work.submit(act, Hostile()), LIMIT)

    def call(act: Act) -> None:
        try:
            value = asyncio.run(wait(act))
        except BaseException as raised:
            check_raised(raised, act)
        else:
            assert act.raises is None and (value == 1 if act.well else type(value) is act.returns)

    return call


@drives("Calls.submit_after:args", "Calls.submit_after:kwargs")
def delayed(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work", retries=0)(code(lambda act, *_, **__: act(1)))
    return lambda act: check_answer(work.submit_after(0.001, act, Hostile(), word=Hostile()), act)


@drives("Calls.submit_batch:iterables")
def worked_as_batch(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work", retries=0)(code(lambda act, *_: act(1)))
    one = stage.workers().task(name="one", retries=0)(lambda _: 1)

    def call(act: Act) -> None:
        for task in work.submit_batch([act, act], [Hostile(), Hostile()]):
            check_answer(task, act)
        for task in comes_out(act, lambda: one.submit_batch(Items(act, 1))) or ():
            assert task.result(LIMIT) == 1

    return call


@drives("Calls.post:args", "Calls.post:kwargs", told=True)
def worked_for_nobody(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work", retries=0)(code(lambda act, *_, **__: act(1)))

    def call(act: Act) -> None:
        work.post(act, Hostile(), word=Hostile())
        called(act)

    return call


@drives("Calls.options:key")
def keyed(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work")(lambda gate: gate.wait(LIMIT))

    def call(act: Act) -> None:
        gate, tasks = threading.Event(), []
        for key in (Key(act), Key(act), 1):
            with contextlib.suppress(BaseException):
                tasks.append(work.options(key=key).submit(gate))
        gate.set()
        assert all(task.result(LIMIT) for task in tasks)
        assert tasks or not act.well
        hostile: Any = Hostile()
        with contextlib.suppress(Ordinary, TypeError):
            work.options(key=hostile).submit(gate).result(LIMIT)
        assert work.options(key=1).submit(gate).result(LIMIT)

    return call


@drives("TaskFunction.__call__:args", "TaskFunction.__call__:kwargs")
def called_itself(stage: Stage, _: str) -> Call:
    work = stage.workers().task(name="work")(code(lambda *_, **__: stage.act(1)))
    return lambda act: comes_out(act, lambda: work(Hostile(), word=Hostile()))


@drives("DurableQueue.task:function")
@drives("DurableFunction.__call__:args", "DurableFunction.__call__:kwargs")
def durable_called_itself(stage: Stage, _: str) -> Call:
    queue = stage.keep(stage.workers().durable("queue", "nats://127.0.0.1:9"))
    work = queue.task(name="work")(code(lambda *_, **__: stage.act(1)))
    return lambda act: comes_out(act, lambda: work(Hostile(), word=Hostile()))


@drives(*(f"DurableCalls.submit:{name}" for name in ("args", "kwargs")))
@drives(*(f"DurableQueue.schedule:{name}" for name in ("calls", "args", "kwargs")))
def durable_with_values(stage: Stage, place: str) -> Call:
    queue = stage.keep(stage.workers().durable("queue", "nats://127.0.0.1:9"))
    calls = queue.calls("work")
    ways: dict[str, Callable[..., Any]] = {
        "DurableCalls.submit": calls.submit,
        "DurableCalls.submit_async": lambda *args, **kwargs: asyncio.run(
            calls.submit_async(*args, **kwargs)
        ),
        "DurableQueue.schedule": partial(queue.schedule, "label", "* * * * *", calls),
    }
    way, named = ways[place.partition(":")[0]], place.endswith("kwargs")

    def call(act: Act) -> None:
        value = JsonList(act)
        try:
            comes_out(act, lambda: way(word=value) if named else way(value))
        except paceline.InvalidError:
            assert act.well, "only a queue that is open takes what is right"

    return call


@drives(*(f"DurableCalls.submit_async:{name}" for name in ("args", "kwargs")), left_out=HANGS_LOOPS)
def durable_in_a_loop(stage: Stage, place: str) -> Call:
    return durable_with_values(stage, place)


@drives("Retry.custom:delay", "Retry.__init__:delay")
def tried_again(stage: Stage, place: str) -> Call:
    def delay(_: int) -> Any:
        return stage.act(0.0)

    retry = paceline.Retry.custom(1, delay)
    if "__init__" in place:
        retry = paceline.Retry(retry.shape, 1, delay=delay)
    work = stage.workers().task(name="work", retries=retry)(fails)
    hub = stage.hub()
    subscription = hub.subscribe("tried", fails, retries=retry, restarts=None)

    def call(act: Act) -> None:
        assert type(work.submit().exception(LIMIT)) is Ordinary
        called(act)
        act.called.clear()
        before = subscription.stats().dead_lettered
        hub.publish("tried")
        called(act)
        until(lambda: subscription.stats().dead_lettered > before, "it is given up")

    return call


@drives("WorkerPool.every:calls", "WorkerPool.every:args")
def worked_now_and_then(stage: Stage, _: str) -> Call:
    workers = stage.workers()
    work = workers.task(name="work", retries=0)(code(lambda act, _: act()))

    def call(act: Act) -> None:
        periodic = workers.every(0.001, work, act, Hostile())
        for _ in range(2):
            called(act)
            act.called.clear()
        periodic.close()

    return call


@drives("WorkerPool.on_shutdown:function", "WorkerPool.on_shutdown()", told=True)
def cleaned_up(stage: Stage, _: str) -> Call:
    pool = stage.pool()

    def call(act: Act) -> None:
        workers, others = WorkerPool(pool, threads=1), threading.Event()
        workers.on_shutdown(others.set, "others")
        workers.on_shutdown(code(lambda: act()), "own")
        report = comes_to_nothing(act, lambda: workers.shutdown(LIMIT, LIMIT, LIMIT))
        assert act.called.is_set() and others.is_set(), "a hook was not called"
        if report is not None:
            assert report.failed_hooks == (() if act.raises is None else ("own",))

    return call


@drives("Middleware.before", "Middleware.after", "Middleware.on_error")
def around(stage: Stage, place: str) -> Call:
    hook = place.partition(".")[2]

    class Misbehaves(paceline.Middleware):
        pass

    setattr(Misbehaves, hook, lambda *_: stage.act())
    workers = stage.workers(middleware=[Misbehaves(), paceline.Middleware()])
    work = workers.task(name="work", retries=0)(fails if hook == "on_error" else lambda: 1)

    def call(act: Act) -> None:
        task = work.submit()
        if hook == "on_error":
            assert type(task.exception(LIMIT)) is Ordinary
        elif hook == "before" and act.raises is not None:
            check_raised(task.exception(LIMIT), act)
        else:
            assert task.result(LIMIT) == 1
        called(act)

    return call


@drives("Pool.__init__:settings")
def read_from(stage: Stage, _: str) -> Call:
    path = stage.folder() / "settings.yaml"
    path.write_text("pool:\n  threads: 1\n")

    def call(act: Act) -> None:
        pool = comes_out(act, lambda: Pool(settings=Path(act, str(path))))
        if pool is not None:
            pool.shutdown()

    return call


@drives("Ops.__init__:settings")
def watched(stage: Stage, _: str) -> Call:
    pool = stage.pool()
    path = stage.folder() / "settings.yaml"
    path.write_text("ops:\n  blocked_after: 1s\n")

    def call(act: Act) -> None:
        for settings in (Path(act, str(path)), Items(act, str(path))):
            ops = comes_out(act, lambda: paceline.Ops(pool, settings=settings))
            if ops is not None:
                ops.close()

    return call


@drives("WorkerPool.__init__:middleware", "WorkerPool.__init__:settings")
def worker_pools(stage: Stage, place: str) -> Call:
    pool = stage.pool()
    path = stage.folder() / "settings.yaml"
    path.write_text("workers:\n  max_waiting: 10\n")

    def call(act: Act) -> None:
        if place.endswith("settings"):
            settings: dict[str, Any] = {"settings": Path(act, str(path))}
        else:
            settings = {"middleware": Items(act, paceline.Middleware())}
        workers = comes_out(act, lambda: WorkerPool(pool, **settings))
        if workers is not None:
            workers.shutdown(LIMIT)

    return call


# --- logs and signals ---------------------------------------------------------------------------------------------


@drives("Log.__init__:callback", told=True)
def logged(stage: Stage, _: str) -> Call:
    log = stage.keep(paceline.Log(levels="info", callback=code(lambda _: stage.act()), logger=False))

    def call(act: Act) -> None:
        with Pool(1, log=log):
            called(act)
        log.flush(LIMIT)

    return call


@drives("Log.__init__:file", "Log.__init__:settings")
def log_files(stage: Stage, place: str) -> Call:
    name = place.partition(":")[2]
    path = stage.folder() / "file.yaml"
    if name == "settings":
        path.write_text(f"log:\n  file: {path}.log\n")

    def call(act: Act) -> None:
        log = comes_out(act, lambda: paceline.Log(**{name: Path(act, str(path))}))
        if log is not None:
            log.close(LIMIT)

    return call


@drives("Signals.__init__:on_signal", main=True, told=True)
def signalled(stage: Stage, _: str) -> Call:
    signals = stage.keep(paceline.Signals([signal.SIGUSR1], code(lambda _: stage.act())))

    def call(act: Act) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signals.wait(LIMIT) == signal.SIGUSR1
        called(act)

    return call


@drives("Signals.__init__:signals", main=True)
def which_signals(stage: Stage, _: str) -> Call:
    before = signal.getsignal(signal.SIGUSR1)

    def call(act: Act) -> None:
        signals = (
            comes_out(act, lambda: paceline.Signals(Items(act, signal.SIGUSR1))) if act.well else None
        )
        if act.raises is StopIteration:
            return
        if not act.well:
            comes_out(act, lambda: paceline.Signals(Items(act, signal.SIGUSR1)))
        if signals is not None:
            signals.close()
        assert signal.getsignal(signal.SIGUSR1) is before

    return call


@drives("Service.__init__:is_well", told=True)
def watched_over(stage: Stage, _: str) -> Call:
    path = str(stage.folder() / "notify")
    manager = stage.keep(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    manager.bind(path)
    manager.setblocking(False)
    with mock.patch.dict(os.environ, {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "4000"}):
        stage.keep(paceline.Service(stage.pool(), code(lambda: stage.act(True))))

    def call(act: Act) -> None:
        called(act)
        with contextlib.suppress(BlockingIOError):
            while manager.recv(4096):
                pass

    return call


@drives("Webhook.__init__:headers")
def webhooks(stage: Stage, _: str) -> Call:
    def call(act: Act) -> None:
        for headers in (Items(act, ("a", "b")), Fields(act, a="b")):
            webhook = comes_out(act, lambda: paceline.Webhook("http://127.0.0.1:9/", headers=headers))
            if webhook is not None:
                webhook.close()

    return call


# --- hubs ---------------------------------------------------------------------------------------------------------


def dealt_with(subscription: Any) -> int:
    stats = subscription.stats()
    return int(stats.delivered + stats.failed + stats.dead_lettered)


@drives("Hub.subscribe:handler", "Hub.subscribe:on_error", "Hub.subscribe:on_restart")
def subscribed(stage: Stage, place: str) -> Call:
    hub, name = stage.hub(), place.partition(":")[2]
    settings: dict[str, Any] = {name: code(lambda *_: stage.act())}
    settings.setdefault("handler", crashes if name == "on_restart" else fails)
    single = hub.subscribe("single", restarts=None, **settings)
    batch = hub.subscribe("batch", restarts=None, batch=4, **settings)
    again = hub.subscribe("again", restarts=None, retries=paceline.Retry.fixed(1, 0), **settings)

    def call(act: Act) -> None:
        for key, subscription in (("single", single), ("batch", batch), ("again", again)):
            act.called.clear()
            before = dealt_with(subscription)
            hub.publish(key)
            called(act)
            until(lambda: dealt_with(subscription) > before, "it is dealt with")
            assert subscription.errors >= (act.raises is not None and name == "handler")

    return call


@drives("Hub.subscribe:factory", "Hub.replay:factory", "Topic.subscribe:factory")
def made_by_a_factory(stage: Stage, place: str) -> Call:
    hub = stage.hub(histories=[paceline.History("kept.>")])
    makes: list[bool] = []

    def factory() -> Any:
        # The first is made by who subscribes.
        makes.append(True)
        return crashes if len(makes) == 1 else stage.act(crashes)

    made: Any
    if place.startswith("Topic"):
        made = hub.topic("kept.>", paceline.Json()).subscribe(factory=factory, restarts=None)
    else:
        subscribe = hub.subscribe if place.startswith("Hub.subscribe") else hub.replay
        made = subscribe("kept.>", factory=factory, restarts=None)

    def call(act: Act) -> None:
        # What the factory has made crashes, so that another one is made for each second message.
        for _ in range(2):
            before = dealt_with(made)
            hub.publish("kept.x", b"1")
            until(lambda: dealt_with(made) > before, "it is dealt with")
        called(act)

    return call


@drives("Hub.subscribe:handler", left_out=ENDS_LOOPS | CANCELS, told=True)
def subscribed_on_a_loop(stage: Stage, _: str) -> Call:
    hub, loop = stage.hub(), stage.loop()

    async def handle(_: object) -> Any:
        return stage.act()

    subscription = stage.on(loop, lambda: hub.subscribe("looped", handle, restarts=None))

    def call(act: Act) -> None:
        before = dealt_with(subscription)
        hub.publish("looped")
        called(act)
        until(lambda: dealt_with(subscription) > before, "it is dealt with")

    return call


@drives("Hub.replay:handler", "Hub.replay:on_error", "Hub.replay:on_restart")
def replayed(stage: Stage, place: str) -> Call:
    hub, name = stage.hub(histories=[paceline.History("kept.>")]), place.partition(":")[2]
    settings: dict[str, Any] = {name: code(lambda *_: stage.act())}
    settings.setdefault("handler", crashes if name == "on_restart" else fails)
    replay = hub.replay("kept.>", restarts=None, **settings)

    def call(act: Act) -> None:
        before = dealt_with(replay)
        hub.publish("kept.x")
        called(act)
        until(lambda: dealt_with(replay) > before, "it is dealt with")

    return call


class Answers:
    """A codec that is the user's."""

    def __init__(self, stage: Stage, what: str) -> None:
        self._stage, self._what = stage, what

    def encode(self, value: Any) -> bytes:
        result: bytes = self._stage.act(b"x") if self._what == "encode" else b"x"
        return result

    def decode(self, payload: bytes) -> Any:
        return self._stage.act(1) if self._what == "decode" else 1


@drives("Codec.encode", "Codec.decode", "Hub.topic:codec", "Topic.__init__:codec", "Topic.publish:value")
def coded(stage: Stage, place: str) -> Call:
    hub, what = stage.hub(), "encode" if place in ("Codec.encode", "Topic.publish:value") else "decode"
    codec = Answers(stage, what)
    topic = (
        paceline.Topic(hub, "coded", codec) if place.startswith("Topic") else hub.topic("coded", codec)
    )
    subscription = topic.subscribe(nothing, restarts=None)

    def call(act: Act) -> None:
        if what == "encode":
            comes_out(act, lambda: topic.publish(Hostile()))
            return
        before = dealt_with(subscription)
        topic.publish(Hostile())
        called(act)
        until(lambda: dealt_with(subscription) > before, "it is dealt with")

    return call


@drives("Topic.publish_async:value", left_out=HANGS_LOOPS)
def coded_in_a_loop(stage: Stage, _: str) -> Call:
    topic = stage.hub().topic("coded", Answers(stage, "encode"))

    async def send() -> Any:
        return await topic.publish_async(Hostile())

    return lambda act: comes_out(act, lambda: asyncio.run(send()))


@drives("Topic.subscribe:handler", told=True)
def subscribed_to_a_topic(stage: Stage, _: str) -> Call:
    topic = stage.hub().topic("coded", paceline.Json())
    subscription = topic.subscribe(code(lambda *_: stage.act()), restarts=None)

    def call(act: Act) -> None:
        before = dealt_with(subscription)
        topic.publish(1)
        called(act)
        until(lambda: dealt_with(subscription) > before, "it is dealt with")

    return call


@drives("Topic.subscribe:on_restart")
def topic_restarted(stage: Stage, _: str) -> Call:
    hub = stage.hub()
    topic = hub.topic("topic", paceline.Json())
    hook = code(lambda *_: stage.act())
    subscription = topic.subscribe(crashes, on_restart=hook, restarts=None)

    def call(act: Act) -> None:
        before = dealt_with(subscription)
        hub.publish("topic", b"1")
        called(act)
        until(lambda: dealt_with(subscription) > before, "it is dealt with")

    return call


@drives("Topic.subscribe:settings")
def settings_of_a_topic(stage: Stage, _: str) -> Call:
    topic = stage.hub().topic("coded", paceline.Json())

    def call(act: Act) -> None:
        subscription = comes_out(act, lambda: topic.subscribe(nothing, capacity=Number(act, 4)))
        if subscription is not None:
            subscription.unsubscribe("sync")

    return call


class Encoded:
    """Something that ``json`` cannot write, unless the user's code says how."""


@drives("Json.encode:value")
def written_as_json(stage: Stage, _: str) -> Call:
    def call(act: Act) -> None:
        comes_out(act, lambda: paceline.Json().encode(JsonList(act)))

    return call


class JsonList(list):  # type: ignore[type-arg]
    """Written by iteration."""

    def __init__(self, act: Act) -> None:
        super().__init__([1])
        self._act = act

    def __iter__(self) -> Iterator[Any]:
        return Items(self._act, 1)

    def __len__(self) -> int:
        self._act()
        return 1

    def __bool__(self) -> bool:
        self._act()
        return True


@drives("MessageFilter.test:says", told=True)
def filtered(stage: Stage, _: str) -> Call:
    hub = stage.hub()
    came = threading.Event()
    subscription = hub.subscribe(
        "filtered",
        lambda _: came.set(),
        filter=paceline.MessageFilter.test(code(lambda _: stage.act(True))),
    )

    def call(act: Act) -> None:
        came.clear()
        failures = subscription.stats().filter_failures
        comes_to_nothing(act, lambda: hub.publish("filtered"))
        assert act.called.is_set()
        if act.well:
            assert came.wait(LIMIT), "nothing came"
        else:
            assert subscription.stats().filter_failures > failures, "it was not counted"

    return call


def bridge(stage: Stage, hub: Hub, **rules: Any) -> paceline.Bridge:
    """One whose broker does not come."""
    opened = paceline.Bridge(hub, "nats://127.0.0.1:9", **rules)
    return stage.keep(opened, lambda: opened.close(0))


@drives(*(f"Bridge.__init__:{name}" for name in ("exports", "imports", "permitted")))
def bridged(stage: Stage, place: str) -> Call:
    hub, name = stage.hub(), place.partition(":")[2]

    def call(act: Act) -> None:
        rules = {"exports": ["a"], name: Items(act, "a")}
        comes_out(act, lambda: bridge(stage, hub, **rules))

    return call


@drives(*(f"Bridge.from_settings:{name}" for name in ("settings", "exports", "imports")))
def bridged_by_settings(stage: Stage, place: str) -> Call:
    hub, name = stage.hub(), place.partition(":")[2]
    file = stage.folder() / "settings.json"
    file.write_text('{"bridge": {"servers": "nats://127.0.0.1:9", "exports": ["b"]}}')

    def call(act: Act) -> None:
        given: dict[str, Any] = {"settings": str(file)}
        ways = [Path(act, str(file)), Items(act, str(file))] if name == "settings" else [Items(act, "a")]
        for value in ways:
            made = comes_out(
                act, lambda value=value: paceline.Bridge.from_settings(hub, **{**given, name: value})
            )
            if made is not None:
                made.close(0)

    return call


@drives("Bridge.publish:headers")
def stored(stage: Stage, _: str) -> Call:
    hub = stage.hub()
    opened = bridge(stage, hub, exports=[paceline.Export("headed", stream="S")])

    def call(act: Act) -> None:
        comes_out(act, lambda: opened.publish("headed", b"", Items(act, ("a", "b"))))
        comes_out(act, lambda: opened.publish("headed", b"", Fields(act, a="b")))

    return call


@drives(
    "Hub.publish:headers", "Hub.request:headers", "Publisher.publish:headers", "Topic.publish:headers"
)
def headed(stage: Stage, place: str) -> Call:
    hub = stage.hub()
    if place.startswith("Hub.request"):
        hub.subscribe("headed", lambda message: hub.reply(message, b"yes"))
    publisher = hub.publisher("publisher")
    topic = hub.topic("headed", paceline.Json())
    calls: dict[str, Callable[[Any], Any]] = {
        "Hub.publish": lambda headers: hub.publish("headed", b"", headers),
        "Hub.request": lambda headers: hub.request("headed", b"", LIMIT, headers),
        "Publisher.publish": lambda headers: publisher.publish("headed", b"", headers),
        "Topic.publish": lambda headers: topic.publish(1, None, headers),
    }
    send = calls[place.partition(":")[0]]

    def call(act: Act) -> None:
        comes_out(act, lambda: send(Items(act, ("a", "b"))))
        comes_out(act, lambda: send(Fields(act, a="b")))

    return call


@drives(
    "Hub.request_async:headers",
    "Hub.publish_async:headers",
    "Publisher.publish_async:headers",
    "Topic.publish_async:headers",
    left_out=HANGS_LOOPS,
)
def headed_in_a_loop(stage: Stage, place: str) -> Call:
    hub = stage.hub()
    if place.startswith("Hub.request"):
        hub.subscribe("headed", lambda message: hub.reply(message, b"yes"))
    publisher = hub.publisher("publisher")
    topic = hub.topic("headed", paceline.Json())
    calls: dict[str, Callable[[Any], Any]] = {
        "Hub.request_async": lambda headers: hub.request_async("headed", b"", LIMIT, headers),
        "Hub.publish_async": lambda headers: hub.publish_async("headed", b"", headers),
        "Publisher.publish_async": lambda headers: publisher.publish_async("headed", b"", headers),
        "Topic.publish_async": lambda headers: topic.publish_async(1, None, headers),
    }
    begin = calls[place.partition(":")[0]]

    async def send(headers: Any) -> Any:
        return await begin(headers)

    def call(act: Act) -> None:
        comes_out(act, lambda: asyncio.run(send(Items(act, ("a", "b")))))
        comes_out(act, lambda: asyncio.run(send(Fields(act, a="b"))))

    return call


@drives("Hub.publish_batch:payloads", "Hub.publish_all:messages", "Publisher.publish_batch:payloads")
def published_as_batch(stage: Stage, place: str) -> Call:
    hub = stage.hub()
    calls: dict[str, Callable[[Any], Any]] = {
        "Hub.publish_batch": lambda items: hub.publish_batch("batch", items(b"x")),
        "Hub.publish_all": lambda items: hub.publish_all(items(("batch", b"x"))),
        "Publisher.publish_batch": lambda items: hub.publisher("one").publish_batch(
            "batch", items(b"x")
        ),
    }
    send = calls[place.partition(":")[0]]
    return lambda act: comes_out(act, lambda: send(lambda good: Items(act, good)))


@drives("Hub.publisher:allow", "Publisher.__init__:allow")
def allowed(stage: Stage, place: str) -> Call:
    hub = stage.hub()

    def call(act: Act) -> None:
        items = Items(act, "a")
        if place.startswith("Hub"):
            comes_out(act, lambda: hub.publisher("named", allow=items))
        else:
            comes_out(act, lambda: paceline.Publisher(hub, "named", None, items, False))

    return call


@drives("Hub.watch:thresholds", "Threshold.__init__:labels")
def watched(stage: Stage, place: str) -> Call:
    hub = stage.hub()

    def call(act: Act) -> None:
        if place.startswith("Hub"):
            thresholds: Any = Items(act, paceline.Threshold("a", above=1))
        else:
            thresholds = [paceline.Threshold("a", above=1, labels=Fields(act, a="b"))]
        watch = comes_out(act, lambda: hub.watch(thresholds))
        if watch is not None:
            watch.close()

    return call


@drives("Hub.__init__:histories")
def hubs(stage: Stage, _: str) -> Call:
    pool = stage.pool()

    def call(act: Act) -> None:
        hub = comes_out(act, lambda: Hub(pool, histories=Items(act, paceline.History())))
        if hub is not None:
            hub.close()

    return call


# --- servers ------------------------------------------------------------------------------------------------------


def dial(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.socket()
    connection.settimeout(LIMIT)
    # Small, so that an output is soon full.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.connect((host, int(port)))
    return connection


def may_break(act: Act) -> Any:
    """Around what a client does: its connection may be over before it has begun."""
    return contextlib.nullcontext() if act.well else contextlib.suppress(ConnectionError)


def read(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or what came before the end."""
    came = b""
    while len(came) < size:
        try:
            part = connection.recv(1 << 16)
        except ConnectionError:
            return came
        if not part:
            return came
        came += part
    return came


#: So much is written to fill an output.
_MUCH = 1 << 20


def acting(stage: Stage, hook: str) -> Any:
    """The handler of a connection that echoes, one of whose hooks is the user's."""

    class Acting(ConnHandler):
        def data(self, conn: Any, data: bytes) -> None:
            if hook == "written":
                conn.write_tracked(data, 7)
            elif hook == "writable":
                conn.write(bytes(_MUCH))
            else:
                conn.write(data)

        def close(self, conn: Any, reason: Any, detail: int) -> None:
            pass

    if hook == "data":
        echo = Acting.data

        def data(self: Any, conn: Any, data: bytes) -> Any:
            echo(self, conn, data)
            return stage.act()

        setattr(Acting, "data", data)
    elif hook == "finished":
        setattr(Acting, hook, lambda _, conn: (stage.act(), conn.close()))
    else:
        setattr(Acting, hook, lambda *_: stage.act())
    return Acting


@drives(
    *(
        f"ConnHandler.{name}"
        for name in ("open", "data", "finished", "writable", "written", "timeout", "close")
    ),
    told=True,
)
def connected(stage: Stage, place: str) -> Call:
    hook = place.partition(".")[2]
    settings: dict[str, Any] = {"output_marks": (1000, 2000, 1 << 24), "send_buffer": 1 << 16}
    if hook == "timeout":
        settings["idle_timeout"] = 0.01
    server = stage.server(acting(stage, hook), **settings)
    size = _MUCH if hook == "writable" else 4

    def call(act: Act) -> None:
        with may_break(act), dial(server.addresses[0]) as client:
            client.sendall(b"ping")
            if act.well or hook == "close":
                assert len(read(client, size)) == size, "no echo"
            elif hook == "writable":
                read(client, size)
            if hook == "finished":
                client.shutdown(socket.SHUT_WR)
            if hook != "close":
                called(act)
        called(act)
        until(lambda: server.stats().open == 0, "the connection has ended")
        stats = server.stats()
        assert stats.balances, stats

    return call


@drives("ConnHandler.__init__", "Server.__init__:handler", "Server.connect:handler", told=True)
def made_for_a_connection(stage: Stage, place: str) -> Call:
    class Echo(ConnHandler):
        def data(self, conn: Any, data: bytes) -> None:
            conn.write(data)

    factory = code(lambda conn: stage.act(Echo(conn)))
    connects = place.startswith("Server.connect")
    server = stage.server(Echo if connects else factory)

    def call(act: Act) -> None:
        if connects:
            conn = server.connect(server.addresses[0], factory)
            called(act)
            with contextlib.suppress(paceline.StaleError):
                conn.close()
        else:
            came = b""
            with may_break(act), dial(server.addresses[0]) as client:
                client.sendall(b"ping")
                came = read(client, 4)
            assert came == (b"ping" if act.well else b""), "no echo, or none was to come"
            called(act)
        until(lambda: server.stats().open == 0, "the connection has ended")

    return call


@drives("ConnHandler.draining", told=True)
def drained(stage: Stage, place: str) -> Call:
    handler, pool = acting(stage, "draining"), stage.pool()

    def call(act: Act) -> None:
        server = Server(pool, "127.0.0.1:0", handler)
        with dial(server.addresses[0]) as client:
            client.sendall(b"ping")
            assert read(client, 4) == b"ping"
            drains = threading.Thread(target=server.drain, args=(LIMIT,))
            drains.start()
            called(act)
        drains.join()
        server.close()

    return call


@drives("ConnHandler.error", told=True)
def failed_to_connect(stage: Stage, place: str) -> Call:
    server = stage.server(acting(stage, "error"))
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % gone.getsockname()[1]

    def call(act: Act) -> None:
        server.connect(address)
        called(act)
        until(lambda: server.stats().open == 0, "the connection has ended")

    return call


@drives("Conn.write_vectored:pieces")
def written_in_pieces(stage: Stage, _: str) -> Call:
    class Silent(ConnHandler):
        def data(self, conn: Any, data: bytes) -> None:
            pass

    server = stage.server(Silent)
    conn = server.connect(server.addresses[0])
    return lambda act: comes_out(act, lambda: conn.write_vectored(Items(act, b"x")))


@drives("Server.__init__:listen", "Listen.__init__:address", "Http.__init__:listen", "Udp.__init__:bind")
@drives("Server.__init__:settings", "Http.__init__:settings", "Udp.__init__:settings")
def places_to_listen_at(stage: Stage, place: str) -> Call:
    pool, kind = stage.pool(), place.partition(".")[0]
    make: dict[str, Callable[..., Any]] = {
        "Server": lambda where, **settings: Server(pool, where, ConnHandler, **settings),
        "Listen": lambda where: Server(pool, paceline.Listen(where), ConnHandler),
        "Http": lambda where, **settings: Http(pool, where, **settings).start(),
        "Udp": lambda where, **settings: Udp(pool, nothing, where, **settings),
    }

    def call(act: Act) -> None:
        type = socket.SOCK_DGRAM if kind == "Udp" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, type) as bound:
            bound.bind(("127.0.0.1", 0))
            if kind != "Udp":
                bound.listen()
            if place.endswith("settings"):
                number = Number(act, 65536)
                given: list[Any] = [lambda: make[kind]("127.0.0.1:0", send_buffer=number)]
            else:
                given = [lambda: make[kind](Socket(act, bound.fileno()))]
                if kind in ("Server", "Http"):
                    given.append(lambda: make[kind](Items(act, "127.0.0.1:0")))
            for each in given:
                made = comes_out(act, each)
                if made is not None:
                    made.close()

    return call


# --- HTTP ---------------------------------------------------------------------------------------------------------

_UPGRADE = "Connection: upgrade\r\nUpgrade: echo\r\n"


def ask(server: Http, method: str, body: bytes = b"", headers: str = "Connection: close\r\n") -> bytes:
    """All that is answered."""
    with dial(server.addresses[0]) as client:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        client.sendall(f"{method} /x HTTP/1.1\r\nHost: x\r\n{headers}{length}\r\n".encode() + body)
        return read(client, 1 << 30)


def check_response(act: Act, response: bytes) -> None:
    first = response.split(b"\r\n")[0]
    if act.well:
        assert first.startswith(b"HTTP/1.1 200") and response.endswith(b"well"), response
    else:
        assert first.startswith(b"HTTP/1.1 500"), response


def settled(server: Http) -> None:
    """All requests have been answered, and the books balance."""
    until(lambda: server.stats().in_work == 0, "a request is still in work")
    until(lambda: server.stats().balances, "the books do not balance")


METHODS = ("get", "put", "post", "patch", "delete", "route", "route_streaming")


@drives(*(f"Http.{name}()" for name in METHODS), told=True)
def requested(stage: Stage, place: str) -> Call:
    server, name = stage.http(), place.partition(".")[2].strip("()")
    method = "POST" if name.startswith("route") else name.upper()
    route = (
        getattr(server, name)("POST", "/x") if name.startswith("route") else getattr(server, name)("/x")
    )
    route(code(lambda _: stage.act("well")))
    server.start()

    def call(act: Act) -> None:
        response = ask(server, method)
        if act.raises is not None or act.well:
            check_response(act, response)
        settled(server)

    return call


@drives("Http.around:middleware", "Http.fallback:handler", "Http.on_end:hook", told=True)
def around_requests(stage: Stage, place: str) -> Call:
    server, name = stage.http(), place.partition(".")[2].partition(":")[0]
    ended = threading.Semaphore(0)
    if name == "around":
        server.around(code(lambda request, go_on: stage.act("well")))
    elif name == "fallback":
        server.fallback(code(lambda _: stage.act("well")))
    else:

        def hook(end: Any) -> None:
            ended.release()
            stage.act("well")

        server.on_end(hook)
    if name != "fallback":
        server.get("/x")(lambda _: "well")
    server.start()

    def call(act: Act) -> None:
        response = ask(server, "GET")
        if name == "on_end":
            assert response.endswith(b"well"), response
            assert ended.acquire(timeout=60), "its end was not told"
        elif act.raises is not None or act.well:
            check_response(act, response)
        settled(server)

    return call


@drives("Http.get()", left_out=ENDS_LOOPS, told=True)
def requested_on_a_loop(stage: Stage, _: str) -> Call:
    server: Http = stage.keep(Http(stage.pool(), threads=0))
    loop = stage.loop()

    @server.get("/x")
    async def handle(_: Any) -> Any:
        await asyncio.sleep(0)
        return stage.act("well")

    server.start()
    stage.on(loop, server.attach)

    def call(act: Act) -> None:
        response = ask(server, "GET")
        if act.raises is not None or act.well:
            check_response(act, response)
        settled(server)

    return call


@drives(
    "Response.__init__:headers",
    "Response.error:headers",
    "Response.json:value",
    "Request.respond:response",
    told=True,
)
def responded(stage: Stage, place: str) -> Call:
    server = stage.http()

    @server.get("/x")
    def handle(request: Any) -> Optional[Response]:
        if place.startswith("Response.error"):
            made = Response.error(418, Fields(stage.act, A="b"))
            return made if not stage.act.well else Response("well", headers=Fields(stage.act, A="b"))
        if place.endswith("value"):
            made = Response.json(JsonList(stage.act))
            return made if not stage.act.well else Response("well")
        if place.endswith("response"):
            if stage.act.well:
                return Response("well", headers=Fields(stage.act, A="b"))
            request.respond({"a": JsonList(stage.act)})
            return None
        return Response("well", headers=Fields(stage.act, A="b"))

    @server.post("/x")
    def other(_: Any) -> Response:
        return Response("well", headers=Items(stage.act, ("A", "b")))

    server.start()

    def call(act: Act) -> None:
        for method in ("GET", "POST") if place.startswith("Response.__init__") else ("GET",):
            response = ask(server, method)
            assert response, "no answer"
            if act.raises not in (None, StopIteration) or act.well:
                check_response(act, response)
        settled(server)

    return call


@drives("Response.__init__:body", told=True)
def responded_in_pieces(stage: Stage, _: str) -> Call:
    server = stage.http()

    @server.get("/x")
    def handle(_: Any) -> Response:
        return Response(Items(stage.act, b"well"))

    @server.post("/x")
    def other(_: Any) -> Any:
        def pieces() -> Iterator[Any]:
            yield b"first "
            yield stage.act(b"well")

        return Response(pieces(), length=10)

    class Iterable:
        def __iter__(self) -> Any:
            return stage.act(iter([b"well"]))

    @server.put("/x")
    def third(_: Any) -> Any:
        return Response(Iterable())

    server.start()

    def call(act: Act) -> None:
        for method in ("GET", "POST", "PUT"):
            response = ask(server, method)
            assert b"well" in response if act.well else response is not None, response
        settled(server)

    return call


@drives("RequestBody.data", "RequestBody.end", told=True)
def body_taken(stage: Stage, place: str) -> Call:
    server, hook = stage.http(), place.partition(".")[2]

    class Body(RequestBody):
        def __init__(self, request: Any) -> None:
            self.request = request

        def data(self, data: bytes) -> Any:
            return stage.act() if hook == "data" else None

        def end(self, is_whole: bool) -> Any:
            if hook == "end":
                stage.act()
            self.request.respond("well")

    server.route_streaming("POST", "/x")(Body)
    server.start()

    def call(act: Act) -> None:
        response = ask(server, "POST", b"body")
        if act.raises is not None or act.well:
            check_response(act, response)
        called(act)
        settled(server)

    return call


@drives("Request.upgrade:handler", "Request.upgrade:headers", told=True)
def upgraded(stage: Stage, place: str) -> Call:
    server = stage.http()

    class Echo(ConnHandler):
        def data(self, conn: Any, data: bytes) -> None:
            conn.write(data)
            conn.close()

    @server.get("/x")
    def handle(request: Any) -> None:
        act = stage.act
        if place.endswith("handler"):
            request.upgrade("echo", code(lambda conn: act(Echo(conn))))
        else:
            request.upgrade("echo", Echo, Fields(act, A="b"))

    server.start()

    def call(act: Act) -> None:
        response = b""
        with may_break(act), dial(server.addresses[0]) as client:
            client.sendall(f"GET /x HTTP/1.1\r\nHost: x\r\n{_UPGRADE}\r\n".encode())
            client.sendall(b"ping")
            response = read(client, 1 << 20)
        called(act)
        if act.well:
            assert response.startswith(b"HTTP/1.1 101") and response.endswith(b"ping"), response
        settled(server)

    return call


# --- datagrams ----------------------------------------------------------------------------------------------------


@drives("Udp.__init__:handler", told=True)
def datagrams(stage: Stage, _: str) -> Call:
    udp: Udp = stage.keep(Udp(stage.pool(), code(lambda *_: stage.act()), "127.0.0.1:0"))
    client = stage.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    host, _, port = udp.address.rpartition(":")

    def call(act: Act) -> None:
        client.sendto(b"x", (host, int(port)))
        called(act)

    return call


@drives("Udp.__init__:on_error", told=True)
def datagram_errors(stage: Stage, _: str) -> Call:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % gone.getsockname()[1]
    udp: Udp = stage.keep(
        Udp(stage.pool(), nothing, connect=address, on_error=code(lambda *_: stage.act()))
    )

    def call(act: Act) -> None:
        with contextlib.suppress(OSError):
            udp.send(b"x")
        called(act)

    return call


@drives("UdpRef.send_batch:datagrams")
def datagrams_sent(stage: Stage, _: str) -> Call:
    udp: Udp = stage.keep(Udp(stage.pool(), nothing, "127.0.0.1:0"))
    address = udp.address
    return lambda act: comes_out(act, lambda: udp.send_batch(Items(act, (b"x", address))))


# --- on the caller's own thread -----------------------------------------------------------------------------------

#: Calls that have the user's code called on the thread that makes them.
HERE: dict[str, Callable[[Stage], Callable[[Callable[..., Any]], object]]] = {}


def here(name: str) -> Callable[[Any], Any]:
    def note(made: Any) -> Any:
        HERE[name] = made
        return made

    return note


@here("publishing")
def filtered_here(stage: Stage) -> Any:
    hub = stage.hub()
    publisher, topic = hub.publisher("here"), hub.topic("here", paceline.Json())
    sends = [
        lambda: hub.publish("here"),
        lambda: hub.publish_batch("here", [b"x", b"y"]),
        lambda: hub.publish_all([("here", b"x")]),
        lambda: publisher.publish("here"),
        lambda: publisher.publish_batch("here", [b"x"]),
        lambda: topic.publish(1),
        lambda: hub.request("here", b"", 0.001),
    ]
    turn = itertools.cycle(sends)

    def call(user: Callable[..., Any]) -> None:
        for _ in sends:
            box = hub.mailbox("here", filter=paceline.MessageFilter.test(lambda _: bool(user()) or True))
            with box, contextlib.suppress(paceline.TimeoutError, paceline.NoRespondersError):
                next(turn)()

    return call


@here("Pool.join")
def joined_here(stage: Stage) -> Any:
    pool = Pool(0)
    stage.keep(pool, pool.shutdown)
    tasks = itertools.cycle([pool.post, pool.submit, pool.strand().post, pool.lane(0).post])

    def call(user: Callable[..., Any]) -> None:
        next(tasks)(user)
        pool.join(0.1)

    return call


@here("Pool.join for events")
def events_here(stage: Stage) -> Any:
    pool = Pool(0)
    stage.keep(pool, pool.shutdown)

    def call(user: Callable[..., Any]) -> None:
        pool.after(0, user)
        pool.join(0.1)

    return call


@here("WorkerPool.run")
def worked_here(stage: Stage) -> Any:
    workers = WorkerPool(stage.pool(), threads=0)
    stage.keep(workers, lambda: workers.shutdown(0, 0, 0))
    work = workers.task(name="here", retries=0)(lambda user: user())

    def call(user: Callable[..., Any]) -> None:
        task = work.submit(user)
        while not task.done():
            workers.run()

    return call


@here("Calls.submit where there is no room")
def helped_here(stage: Stage) -> Any:
    workers = WorkerPool(stage.pool(), threads=1, max_queued=2, full="run_here")
    stage.keep(workers, lambda: workers.shutdown(LIMIT))
    gate, inside = threading.Event(), threading.Event()
    stage.keep(gate, gate.set)

    def waits() -> None:
        inside.set()
        gate.wait()

    workers.task(name="gate")(waits).submit()
    assert inside.wait(LIMIT)
    work = workers.task(name="here", retries=0)(lambda user: user())

    def call(user: Callable[..., Any]) -> None:
        task = work.submit(user)
        while not task.done():
            work.submit(nothing)

    return call


@here("WorkerPool.shutdown")
def cleaned_up_here(stage: Stage) -> Any:
    pool = stage.pool()

    def call(user: Callable[..., Any]) -> None:
        workers = WorkerPool(pool, threads=1)
        workers.on_shutdown(user)
        workers.shutdown(LIMIT)

    return call


@here("Future.add_done_callback")
def called_back_here(stage: Stage) -> Any:
    future = stage.executor().submit(int)
    future.result(LIMIT)
    return lambda user: future.add_done_callback(lambda _: user())


@here("Future.cancel")
def cancelled_here(stage: Stage) -> Any:
    def call(user: Callable[..., Any]) -> None:
        future: paceline.Future[Any] = paceline.Future()
        future.add_done_callback(lambda _: user())
        assert future.cancel()

    return call


@here("Http.run")
def served_here(stage: Stage) -> Any:
    server: Http = stage.keep(Http(stage.pool(), threads=0))
    users: list[Callable[..., Any]] = []
    server.get("/x")(lambda _: users.pop()() or "well")
    server.start()

    def call(user: Callable[..., Any]) -> None:
        users.append(user)
        client = threading.Thread(target=ask, args=(server, "GET"))
        client.start()
        try:
            while users or client.is_alive():
                server.run()
        finally:
            while client.is_alive():
                server.run()

    return call


@here("Server.run")
def connected_here(stage: Stage) -> Any:
    users: list[Callable[..., Any]] = []

    class Once(ConnHandler):
        def data(self, conn: Any, data: bytes) -> None:
            conn.write(data)
            conn.close()
            users.pop()()

    server: Server = stage.keep(Server(stage.pool(), "127.0.0.1:0", Once, threads=0))

    def call(user: Callable[..., Any]) -> None:
        users.append(user)
        with dial(server.addresses[0]) as client:
            client.sendall(b"x")
            while users:
                server.run()

    return call


@here("Udp.run")
def datagrams_here(stage: Stage) -> Any:
    users: list[Callable[..., Any]] = []
    udp: Udp = stage.keep(Udp(stage.pool(), lambda *_: users.pop()(), "127.0.0.1:0", threads=0))
    host, _, port = udp.address.rpartition(":")

    def call(user: Callable[..., Any]) -> None:
        users.append(user)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"x", (host, int(port)))
            while users:
                udp.run()

    return call


class Interrupted(Case):
    """A handler of a signal raises while the user's code runs on the thread of a caller, the main one: it comes out
    of the call, and the next call is served."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))
        signal.signal(signal.SIGUSR1, signal.default_int_handler)

    def interrupt(self) -> None:
        signal.raise_signal(signal.SIGUSR1)
        # Python calls the handler here at the latest.
        time.sleep(0)

    def check(self, name: str) -> None:
        stage = Stage()
        self.addCleanup(stage.close)
        call = HERE[name](stage)
        for _ in range(8):
            done: list[int] = []
            call(lambda: done.append(1))
            self.assertTrue(done, "the code was not called")
            with self.assertRaises(KeyboardInterrupt):
                call(self.interrupt)


# --- the walk -----------------------------------------------------------------------------------------------------


class Walk(Case):
    """All places, in all ways."""

    def setUp(self) -> None:
        super().setUp()
        self.told = Told()
        for name in ("paceline", "concurrent.futures", "asyncio"):
            logger = logging.getLogger(name)
            self.enterPatch(mock.patch.object(logger, "propagate", False))
            logger.addHandler(self.told)
            self.addCleanup(logger.removeHandler, self.told)
        #: What the library was built without, if that is needed.
        self.lacks = ""
        #: What the interpreter would have printed.
        self.printed: list[str] = []
        self.enterPatch(mock.patch("sys.unraisablehook", self.unraisable))
        # The default of what is told of exceptions that nobody waits for.
        self.enterPatch(mock.patch("threading.excepthook", nothing))

    def enterPatch(self, patch: Any) -> None:
        patch.start()
        self.addCleanup(patch.stop)

    def unraisable(self, what: Any) -> None:
        # What is raised when an object is collected is the interpreter's to tell.
        if getattr(what.object, "__name__", "") != "__del__":
            where = getattr(what.object, "__qualname__", type(what.object).__name__)
            trace = "".join(traceback.format_tb(what.exc_traceback)[-2:])
            self.printed.append(f"{what.exc_type.__name__} is told of {where} ({what.err_msg})\n{trace}")

    def test_each_place_has_a_driver(self) -> None:
        places = misbehaving.places()
        driven = {*DRIVERS, *MADE_BY_THE_PACKAGE}
        self.assertEqual(sorted(places - driven), [], "places without a driver")
        self.assertEqual(sorted(driven - places), [], "drivers and exceptions of places that are gone")

    def test_places_are_found(self) -> None:
        """Of each kind one."""
        some = {
            "Pool.submit:fn",
            "Http.get()",
            "Middleware.after",
            "Udp.__init__:on_error",
            "Topic.publish:value",
        }
        self.assertLessEqual(some, misbehaving.places())

    def walk(self, driver: Driver, place: str) -> None:
        """All ways at one place."""
        failures: list[str] = []
        stage: Optional[Stage] = None
        for way, kind in WAYS.items():
            if way in LEFT_OUT[driver]:
                continue
            if stage is None:
                stage = Stage()
                self.addCleanup(self.bounded, stage.close, driver in MAIN)
                try:
                    call = driver(stage, place)
                except paceline.UnsupportedError as lacks:
                    self.skipTest(f"skipped, because {lacks}")
                stage.note_threads()
            fails = Act(kind)
            self.told.texts.clear()
            for act, what in ((fails, way), (Act(), f"{way}, then all is well")):
                stage.act = act
                wrong = self.bounded(lambda: call(act), driver in MAIN)
                if self.lacks:
                    self.skipTest(f"skipped, because {self.lacks}")
                wrong += [f"the thread {name} has ended" for name in stage.dead()]
                if act is not fails and driver in TOLD and fails.raises is not None and not wrong:
                    wrong += self.check_told(fails.raises.__name__, fails)
                wrong += [*self.printed, *self.told.faults]
                self.printed.clear()
                self.told.faults.clear()
                if wrong:
                    failures.append(f"{place} ({driver.__name__}) {what}: {'; '.join(wrong)}")
                    # What was shown on a broken stage says nothing of the next way.
                    self.bounded(stage.close, driver in MAIN)
                    self.printed.clear()
                    stage = None
                    break
        if stage is not None:
            wrong = self.bounded(stage.close, driver in MAIN)
            del call
            gc.collect()
            failures += [
                f"{place} ({driver.__name__}) at the end: {each}" for each in wrong + self.printed
            ]
        if failures:
            self.fail("\n" + "\n".join(failures))

    def check_told(self, name: str, act: Act) -> list[str]:
        """Each exception was logged once, unless it may have come out of the call, or ended an iteration."""
        calls = len(act.calls)
        usual = name != "StopIteration" and issubclass(act.raises or object, Exception)
        end = time.monotonic() + LIMIT
        while True:
            told = sum(name in text for text in list(self.told.texts))
            if told == calls or not usual and told < calls:
                return []
            if told > calls or time.monotonic() > end:
                return [f"{calls} exceptions were told {told} times"]
            time.sleep(0.001)

    def bounded(self, call: Callable[[], object], main: bool) -> list[str]:
        """What has gone wrong with a call. One that takes too long is left behind."""
        wrong: list[str] = []

        def run() -> None:
            try:
                call()
            except paceline.UnsupportedError as lacks:
                self.lacks = str(lacks)
            except BaseException as raised:
                trace = traceback.format_tb(BaseException.__dict__["__traceback__"].__get__(raised))
                what = (
                    str(raised)
                    if type(raised) is AssertionError
                    else f"{type(raised).__name__} came out"
                )
                wrong.append(f"{what}\n" + "".join(trace[-3:]))

        if main:
            run()
            return wrong
        thread = threading.Thread(target=run, name="a driver", daemon=True)
        thread.start()
        thread.join(4 * LIMIT)
        if thread.is_alive():
            frame = sys._current_frames().get(thread.ident or 0)
            return ["it hangs\n" + "".join(traceback.format_stack(frame))]
        return wrong


def _add_tests() -> None:
    """One for each driver and callable."""

    def test_of(driver: Driver, place: str) -> Callable[[Walk], None]:
        return lambda self: self.walk(driver, place)

    for place, drivers in DRIVERS.items():
        for driver in drivers:
            # Parameters of one callable share a test, if their driver does not ask for the whole place.
            about = place if driver.__code__.co_varnames[1] == "place" else place.partition(":")[0]
            name = re.sub(r"\W+", "_", f"test_{driver.__name__}_{about}").rstrip("_")
            if not hasattr(Walk, name):
                test = test_of(driver, place)
                test.__name__ = name
                setattr(Walk, name, test)

    for name in HERE:
        setattr(
            Interrupted,
            re.sub(r"\W+", "_", f"test_{name}"),
            lambda self, name=name: self.check(name),
        )


_add_tests()


if __name__ == "__main__":
    unittest.main()
