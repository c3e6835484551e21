"""Handlers that have subscribed to a hub, or that its histories are replayed to, and the threads that call them.

    native mailboxes ── readable ──► epoll, one shot ──► host thread: pull a batch, handle it, arm it again

A mailbox is armed for one thread at a time, so its messages are handled one at a time and in order,
however many threads there are. Who has taken its event alone may take it out of the epoll set: its end
makes it readable too, and is met by the thread that comes for it. Where there is one thread only, a mailbox
stays armed, unless its next turn has been postponed: each change is a system call, which lets go of the
interpreter's lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import heapq
import itertools
import math
import os
import select
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from operator import length_hint
from typing import Any, Optional, TypedDict, TypeVar, Union

import paceline

from . import _layout as layout
from . import _lifetime, _supervision
from ._arguments import (
    instance,
    items,
    nanos,
    one_of,
    patience,
    text,
    within,
)
from ._called import Called, is_inside
from ._clock import monotonic
from ._contain import LEAVING, Failures, failure_of, report
from ._errors import DeadlockError, Error, ShutDownError, StaleError
from ._history import History, ReplayMailbox, ReplayStats
from ._hosts import SLICE, Hosts, Native, hosts_here
from ._library import check, lib, nanoseconds, quick
from ._lifetime import called_back
from ._mailbox import WAYS, Mailbox, Pulled, SubscriptionStats
from ._members import current, loop_here
from ._message import LARGE, Batch, Message, Receipt, answered
from ._message_filter import MessageFilter
from ._pool import Pool
from ._requests import Asker, Requests
from ._policy import Retry
from ._supervision import Care, Handlers, Supervisor, failed_at

#: How many a handler's thread takes before it looks after the others: few at first, and more the quicker they are
#: handled. What it has taken cannot be dropped for newer ones.
TURN = 16
MOST = 256
#: Seconds: a turn that is full and shorter is followed by a longer one, and one that is longer by a shorter.
SHORT = 0.001
#: Seconds that a thread waits at most before it looks at the time again: epoll takes up to 2^31 ms.
LONGEST = 86400.0

_NOTHING = contextlib.nullcontext()

#: Called with each message, or batch; what it returns is awaited if it is a coroutine function.
MessageHandler = Union[Callable[[Message], object], Callable[[Batch], object]]
#: Called with the message, or batch, that the handler has failed at, and what it has raised.
FailureHook = Union[Callable[[Message, BaseException], object], Callable[[Batch, BaseException], object]]
#: Called with what a handler was restarted for, and how often it was.
RestartHook = Callable[[Optional[BaseException], int], object]
#: Makes handlers, one after the other.
HandlerFactory = Callable[[], MessageHandler]


class HandlerSettings(TypedDict, total=False):
    """What every handler has: of a subscription, a replay or a topic."""

    on_error: Optional[FailureHook]
    retries: Union[int, Retry, None]
    on_failure: str
    restarts: Optional[int]
    within: float
    suspension: Optional[float]
    longest_suspension: float
    supervisor: Optional[Supervisor]
    batch: Optional[int]


class TopicSettings(HandlerSettings, total=False):
    """What ``Topic.subscribe`` takes beside its own keywords."""

    capacity: int
    overflow: str
    block: Optional[float]
    by_priority: bool
    filter: Optional[MessageFilter]
    group: Optional[str]
    balance: str
    balance_header: Optional[str]
    unique: Optional[str]
    measured: bool
    execution: str
    threads: int


class SubscriptionSettings(TopicSettings, total=False):
    """What ``Hub.subscribe`` takes beside a handler or a factory."""

    on_restart: Optional[RestartHook]


class ReplaySettings(HandlerSettings, total=False):
    """What ``Hub.replay`` takes beside a handler or a factory."""

    sequence: Optional[int]
    since_ns: Optional[int]
    last: Optional[int]
    now: bool
    on_restart: Optional[RestartHook]


class Over:
    """Says that something has ended. As an Event, but for a thread that comes back to it in the midst of it: in a
    signal's handler, or in a destructor."""

    def __init__(self) -> None:
        # Its lock may be taken again.
        self._condition = threading.Condition()
        self._is_set = False

    def set(self) -> None:
        with self._condition:
            self._is_set = True
            self._condition.notify_all()

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: Optional[float]) -> bool:
        with self._condition:
            return self._condition.wait_for(self.is_set, timeout)


class Served:
    """A mailbox and its handler. It knows nothing of the Hub and the Subscription before it."""

    def __init__(
        self,
        core: Core,
        mailbox: Union[Mailbox, ReplayMailbox],
        handler: Callable[..., Any],
        on_error: Optional[Callable[..., Any]],
        terms: _supervision.Terms,
        turn: int,
        batches: bool,
    ) -> None:
        self.core = core
        self.mailbox = mailbox
        self.handlers = Handlers(terms, handler)
        self.on_error = on_error
        #: How many it takes at once, and whether that is its own choice.
        self.most = turn
        self.paces = turn == TURN and not batches
        #: The handler is called with batches.
        self.batches = batches
        #: What comes to it.
        self.pattern = mailbox.pattern
        #: A replay: what comes while it is suspended stays in the history.
        self.keeps = isinstance(mailbox, ReplayMailbox)
        #: What it is polled by.
        self.fd = -1
        #: It is not polled: its turn comes when its time has come.
        self.postponed = False
        #: It is suspended, and keeps what it has taken until it is looked at when that is over.
        self.resting = False
        #: Held while the handler runs.
        self.busy = threading.Lock()
        #: What was taken and is not dealt with, messages or batches: the first may be tried again later.
        self.held: deque[Any] = deque()
        #: Of messages that are handled one after the other without a look at each: all, and those that have not
        #: begun.
        self.row: Optional[tuple[list[Message], Iterator[Message]]] = None
        #: Whether the first of these is in an attempt.
        self.trying = False
        #: What was taken of the mailbox is thrown away.
        self.cancelled = False
        #: It has ended, and nothing runs.
        self.over = Over()
        # Written by whoever serves it.
        self.handled = 0
        self.failed = 0
        self.errors = 0
        self.skipped = 0
        self.last_error: Optional[BaseException] = None
        self.failures = Failures()
        #: Of the loop that serves it.
        self.task: Optional[asyncio.Task[None]] = None
        #: Of those that were handled, failed at and skipped, how many the hub was told of; held while it is told.
        self.told = (0, 0, 0)
        self.telling = threading.RLock()
        self.care = Care(terms, mailbox, self.handlers)

    @property
    def handler(self) -> Callable[..., Any]:
        handler: Callable[..., Any] = self.handlers.handler
        return handler

    def begin(self, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        """From here on it is served: by this loop, which runs here, or by a thread."""
        self.core.add_served(self, loop)
        if loop is not None:
            self.task = loop.create_task(self.serve_async())

    def rests(self) -> bool:
        """Whether it is suspended, and what comes is kept until it is resumed."""
        return self.keeps and self.care.suspended and not self.cancelled

    def tell(self) -> None:
        """Tells the hub what became of what was taken."""
        with self.telling:
            told = self.told
            # What a row has handled may be between the row and the count for a moment.
            done = (max(self.dealt(), told[0]), self.failed, self.skipped)
            if done != told:
                # In a child made by fork it is the parent's; what was left when it was freed the hub knows.
                with contextlib.suppress(Error):
                    self.mailbox.acknowledge(*(now - before for now, before in zip(done, told)))
            self.told = done

    def stats(self) -> Any:
        """The counts of its mailbox, until now."""
        self.tell()
        return self.mailbox.stats()

    def is_suspended(self) -> bool:
        return self.mailbox.suspended

    def resume(self) -> bool:
        return self.mailbox.resume()

    def unsubscribe(self, how: str) -> bool:
        """Ends it; says whether its handler does not run and will not, which "sync" waits for."""
        self.mailbox.unsubscribe(how)
        if how != "drain" or self.keeps:
            self.cancel()
            self.hurry()
        if how == "sync" and not self.core.is_inside() and self not in self.core.looped:
            with self.busy:
                return True
        return self.over.is_set()

    def drain(self, within: Optional[float]) -> int:
        """As ``Subscription.drain``."""
        task = self.task
        if self.core.is_inside() or (task is not None and _runs_here(task.get_loop())):
            raise DeadlockError("a subscription is drained by others than its handler's thread or loop")
        before: int = self.stats().discarded
        self.unsubscribe("drain")
        if self.over.wait(within):
            return 0
        self.unsubscribe("async")
        now = self.stats()
        return int(now.discarded - before + now.running - self.under_way())

    def taken(self) -> int:
        """How many messages were taken from the mailbox, and have not been dealt with."""
        return int(self.stats().running)

    def remains(self) -> bool:
        """Whether messages wait that will be handled."""
        if self.keeps or self.cancelled or self.care.suspended:
            return False
        task = self.task
        if task is not None and (not task.get_loop().is_running() or _runs_here(task.get_loop())):
            # Nobody handles them: its loop is stopped, or its thread waits.
            return False
        return self.taken() > 0 or self.mailbox.stats().waiting > 0

    def hurry(self) -> None:
        """It may have to be looked at before its time."""
        if self.task is None:
            self.core.hurry(self)

    def turn(self) -> Optional[float]:
        """Handles a batch; after how many seconds there is more to do, 0 for when something comes, None: it has
        ended."""
        with self.busy:
            try:
                return self.handle_some()
            finally:
                self.tell()

    def handle_some(self) -> Optional[float]:
        """The same, alone."""
        self.resting = self.rests()
        if self.resting or not self.held:
            try:
                batch = self.mailbox.pull_batch(self.most, 0)
            except (StaleError, ShutDownError):
                return None
            # What ends a suspension after this is a new event of the descriptor.
            self.resting = batch is None and self.rests()
            if self.resting or (batch is None and not self.held):
                return 0.0
            if batch is None:
                pass
            elif self.batches:
                self.held.append(batch)
            elif not self.held and self.care.is_usual() and not self.cancelled:
                delay = self.handle(batch._all())
                if delay is not None:
                    return delay
            else:
                self.held.extend(batch._all())
        while message := self.next():
            try:
                self.renewed()(message)
            except BaseException as raised:
                delay = self.fail(message, raised)
                if delay is not None:
                    return delay
            else:
                self.succeed(message)
        return 0.0

    def renewed(self) -> Callable[..., Any]:
        """The handler: another one, if it was restarted since and is to be replaced. Raises what the factory raises."""
        if self.handlers.stale:
            self.care.unmade = True
            self.handlers.renewed()
            self.care.unmade = False
        return self.handler

    def handle(self, messages: list[Message]) -> Optional[float]:
        """Handles messages one after the other until an alarm or a failure: what is left is held then. After how
        many seconds the first of these is tried again; None: now."""
        handler, care, left = self.handler, self.care, iter(messages)
        start = monotonic() if self.paces else 0.0
        self.row, self.trying = (messages, left), True
        failure = None
        try:
            for message in left:
                if care.alarm:
                    self.held.append(message)
                    break
                handler(message)
        except BaseException as raised:
            failure = raised
            self.held.append(message)
        done = len(messages) - len(self.held) - length_hint(left)
        self.row, self.trying = None, False
        self.held.extend(left)
        self.handled += done
        if failure is not None:
            care.attempts = 1
            return self.fail(message, failure)
        if self.paces and len(messages) == self.most:
            short = monotonic() - start < SHORT
            self.most = min(2 * self.most, MOST) if short else max(self.most // 2, TURN)
        return None

    async def serve_async(self) -> None:
        """The same as a task of an event loop, until the subscription has ended."""
        try:
            while True:
                while self.rests():
                    try:
                        batch = self.mailbox.pull_batch(self.most, 0)
                    except (StaleError, ShutDownError):
                        return
                    if batch is not None:
                        self.held.extend((batch,) if self.batches else batch._all())
                        break
                    await self.mailbox._changed()
                if not self.held:
                    try:
                        batch = await self.mailbox.pull_batch_async(self.most)
                    except (StaleError, ShutDownError):
                        return
                    self.held.extend((batch,) if self.batches else batch._all())
                while message := self.next():
                    try:
                        await self.renewed()(message)
                    except LEAVING:
                        raise
                    except BaseException as raised:
                        if self.is_cancelled(raised):
                            raise
                        delay = self.fail(message, raised)
                        if delay is not None:
                            await asyncio.sleep(delay)
                    else:
                        self.succeed(message)
                self.tell()
        finally:
            # If the task was cancelled inside the handler, its message is not dealt with.
            self.cancelled = True
            self.skip()
            # Collected together with its loop, its mailbox may have gone before.
            with contextlib.suppress(Error):
                self.mailbox.close()
            self.end()

    def is_cancelled(self, raised: BaseException) -> bool:
        """Whether the task is to end, and not only something that the handler has awaited."""
        if not issubclass(type(raised), asyncio.CancelledError):
            return False
        # Before Python 3.11 nobody can tell.
        cancelling: Any = getattr(self.task, "cancelling", lambda: 1)
        return bool(cancelling())

    def next(self) -> Any:
        """The message, or batch, to be handled now, if there is one. Those of a handler that is suspended are
        buried, or kept."""
        held, care = self.held, self.care
        if self.cancelled:
            self.skip()
        while held and care.suspended:
            if self.keeps:
                return None
            self.bury(held.popleft(), "", 0)
        if not held:
            return None
        message, attempt = held[0], care.begin()
        self.trying = True
        if attempt == 1:
            return message
        return message._again(attempt) if self.batches else message._replace(attempt=attempt)

    def weight(self, held: Any) -> int:
        """How many messages that is."""
        return len(held) if self.batches else 1

    def passed(self) -> list[Message]:
        """Of messages that are handled one after the other, those that were handled. Never too many."""
        row = self.row
        if row is None:
            return []
        messages, left = row
        # One of them is with the handler.
        return messages[: max(0, len(messages) - length_hint(left) - 1)]

    def dealt(self) -> int:
        """How many messages were handled. Never too many."""
        handled = self.handled
        return handled + len(self.passed())

    def under_way(self) -> int:
        """How many messages are with the handler."""
        held = self.held
        if not self.trying:
            return 0
        return self.weight(held[0]) if self.batches and held else 1

    def cancel(self) -> None:
        """What was taken of the mailbox, and has not begun, is thrown away."""
        self.cancelled = True
        self.care.alarm = True

    def succeed(self, message: Any) -> None:
        self.trying = False
        self.held.popleft()
        self.care.attempts = 0
        self.handled += self.weight(message)

    def fail(self, message: Any, raised: BaseException) -> Optional[float]:
        """The handler has failed at its message, which is tried again after so many seconds; None: no more."""
        self.trying, leaving = False, None
        self.last_error = raised
        self.errors += 1
        again = self.care.delay(raised)
        if self.on_error is None:
            key = self.mailbox.pattern if self.batches else message.key
            is_final = again is None or self.care.has_crashed(raised)
            failed_at(self.failures, key, raised, is_final)
        else:
            try:
                self.on_error(message, raised)
            except BaseException as failed:
                if self.task is not None and issubclass(type(failed), LEAVING):
                    # The loop's thread is the user's.
                    leaving = failed
                else:
                    report("the hook of a handler that has failed has failed", raised=failed)
        delay = self.settle(message, raised, again)
        if leaving is not None:
            raise leaving
        return delay

    def settle(self, message: Any, raised: BaseException, again: Optional[float]) -> Optional[float]:
        """What becomes of a message that the handler has failed at, and whose retry may come after so many seconds; as
        ``fail``."""
        after, attempts = self.care.judge(raised, again), self.care.attempts
        if after >= 0:
            return after
        self.held.popleft()
        self.care.attempts = 0
        if after == _supervision.DISCARD:
            self.failed += self.weight(message)
        else:
            self.bury(message, failure_of(raised), attempts)
        lasts, self.care.found_out = self.care.found_out, None
        if lasts is not None:
            until = "it is resumed" if lasts == math.inf else f"{lasts:g} seconds are over"
            report(
                "a handler of %s has crashed too often, and is suspended until " + until,
                self.mailbox.pattern,
            )
        return None

    def bury(self, held: Any, failure: str, attempts: int) -> None:
        for message in held if self.batches else (held,):
            try:
                self.mailbox.bury(message, failure, attempts)
            except Error:
                # In a child made by fork.
                self.failed += 1

    def skip(self) -> None:
        self.skipped += sum(map(self.weight, self.held))
        self.held.clear()
        self.tell()

    def end(self) -> None:
        self.core.forget(self)
        self.failures.end()
        self.over.set()


class Core(Hosts):
    """A hub, and the threads that serve its handlers."""

    def __init__(
        self,
        pool: Pool,
        threads: int,
        name: str,
        max_payload: int,
        dead_letters: int,
        histories: Iterable[History],
        errors: int,
        notice_interval: float,
        count_keys: int,
        stats_interval: Optional[float],
    ) -> None:
        super().__init__(pool, name, threads)
        self.runner = pool._runner
        #: What names it without keeping it.
        self.identity = object()
        within("threads", threads, 1, 1000)
        options = layout.HubOptions()
        check(quick.pace_hub_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.max_payload = within("max_payload", max_payload, 1, 1 << 30)
        options.dead_letters = within("dead_letters", dead_letters, 1, 10_000_000)
        options.name = text("name", name)
        options.errors = within("errors", errors, 1, 1_000_000)
        options.notice_interval_ns = nanos("notice_interval", notice_interval, 0.001)
        options.count_keys = within("count_keys", count_keys, 0, 1_000_000)
        if stats_interval is not None:
            options.stats_interval_ns = nanos("stats_interval", stats_interval, 0.01)
        kept = items("histories", histories, "an iterable of paceline.History")
        for history in kept:
            instance("histories", history, History)
        rows = (layout.HistoryOptions * len(kept))()
        for row, history in zip(rows, kept):
            history.fill(row)
        options.histories, options.history_count = ctypes.addressof(rows), len(kept)
        #: Whether a publication may wait for the disk.
        self.waits = any(history.waits for history in kept)
        pool._runner.check_open()
        pointer, inside = ctypes.c_void_p(), pool._runner.native.pointer
        check(lib.pace_hub_new(inside, ctypes.byref(options), ctypes.byref(pointer)))
        self.native = Native(pointer, lib.pace_hub_free)
        self.lock = threading.RLock()
        #: The mailboxes of others, which end with the hub.
        self.mailboxes: weakref.WeakSet[Pulled] = weakref.WeakSet()
        #: What filters of its subscriptions call, by identity. They stay until the hub goes.
        self.tests: dict[int, Any] = {}
        #: Publishing calls Python back: for these, or for handlers in the publisher's thread.
        self.calls_back = False
        #: Those whose handlers native code calls.
        self.called: set[Called] = set()
        #: By descriptor, what threads serve; and what loops serve.
        self.served: dict[int, Served] = {}
        self.looped: set[Served] = set()
        self.poll: Any = None
        #: How a mailbox is polled.
        self.armed = select.EPOLLIN if threads == 1 else select.EPOLLIN | select.EPOLLONESHOT
        self.wake: tuple[int, int] = (-1, -1)
        #: Those whose next attempt is to come: when, a number to tell them apart, who. Under the lock.
        self.later: list[tuple[float, int, Served]] = []
        self.numbers = itertools.count()
        #: What event loops have asked, by identity of the loop, which has it: an answer that is awaited has its
        #: loop in turn.
        self.requests: weakref.WeakValueDictionary[int, Requests] = weakref.WeakValueDictionary()
        #: Of the main thread.
        self._asker: Optional[Asker] = None
        #: Where publications of an event loop, by identity, with the same key wait for room.
        self.lines: weakref.WeakValueDictionary[tuple[int, str], asyncio.Lock]
        self.lines = weakref.WeakValueDictionary()
        #: Readable when somebody should look at that.
        self.nudged: tuple[int, int] = (-1, -1)
        if not _lifetime.enlist(self):
            raise ShutDownError("the interpreter ends")
        self.count_in()

    def pointer(self) -> ctypes.c_void_p:
        """The native hub, if it is open."""
        if self.closed:
            # A child made by fork gets ForkedError of the library.
            count = ctypes.c_size_t()
            check(quick.pace_hub_subscriber_count(self.native.pointer, b"x", ctypes.byref(count)))
            raise ShutDownError("the hub is closed")
        return self.native.pointer

    def is_served_by(self, loop: Any) -> bool:
        with self.lock:
            tasks = [each.task for each in self.looped]
        return any(task is not None and task.get_loop() is loop for task in tasks)

    def check_draining(self) -> None:
        """In a drain, what stands on the pool may publish still, and nobody else. Raises ShutDownError."""
        if self.pool._runner.draining and not self.pool._runner.is_inside():
            raise ShutDownError("the pool is shut down")

    def view(self, size: int) -> Any:
        """The library for a publication of so many bytes: others go on meanwhile if it may wait or copies much."""
        return lib if self.waits or size >= LARGE else quick

    def publishing(self) -> Any:
        """Around a publication."""
        return called_back() if self.calls_back else _NOTHING

    def may_wait(self) -> bool:
        """Whether this thread may wait for room: it must not be one who makes it, also by what others wait for, and an
        event loop waits for nobody."""
        return hosts_here() is None and current() is None and loop_here() is None

    def flags(self, no_wait: bool) -> int:
        """Those of a publication of several messages, which others go on beside."""
        return layout.PUBLISH_NO_WAIT if no_wait or not self.may_wait() else 0

    def publish(
        self, key: Any, call: Callable[[int], int], receipt: layout.Receipt, no_wait: bool
    ) -> Receipt:
        """Publishes by a call with flags. It waits for room, if it may, without the interpreter's lock, which handlers
        need, and in slices, so that signals are looked at; and for no longer than the mailbox says."""
        begun = monotonic()
        flags = layout.PUBLISH_NO_WAIT if no_wait else layout.PUBLISH_TRY
        status = call(flags)
        while status == layout.ETIMEDOUT:
            waited = nanoseconds(monotonic() - begun)
            if (
                not self.may_wait()
                or lib.pace_key_await_room(key, nanoseconds(SLICE), waited) == layout.EFULL
            ):
                flags = layout.PUBLISH_NO_WAIT
            status = call(flags)
        return answered(status, receipt)

    async def publish_async(
        self, key: paceline.Key, call: Callable[[int], int], receipt: layout.Receipt, no_wait: bool
    ) -> Receipt:
        """The same in an event loop, which goes on meanwhile: a thread of the loop's executor waits for room. Those that
        wait with the same key come in order."""
        loop, begun = asyncio.get_running_loop(), monotonic()
        here = (id(loop), key.text)
        line = self.lines.get(here)
        if line is None:
            with self.publishing():
                status = call(layout.PUBLISH_NO_WAIT if no_wait else layout.PUBLISH_TRY)
            if status != layout.ETIMEDOUT:
                return answered(status, receipt)
            line = self.lines[here] = asyncio.Lock()

        def wait() -> int:
            # It has the key, which is needed also when the task was cancelled.
            waited = nanoseconds(monotonic() - begun)
            return int(lib.pace_key_await_room(key._native.pointer, nanoseconds(SLICE), waited))

        async with line:
            flags = layout.PUBLISH_NO_WAIT if no_wait or self.is_handled_here() else layout.PUBLISH_TRY
            while True:
                self.pointer()
                with self.publishing():
                    status = call(flags)
                if status != layout.ETIMEDOUT:
                    return answered(status, receipt)
                if await loop.run_in_executor(None, wait) == layout.EFULL:
                    flags = layout.PUBLISH_NO_WAIT

    def is_handled_here(self) -> bool:
        """Whether the task that runs is a handler's: it would wait for itself."""
        task = asyncio.current_task()
        with self.lock:
            return any(each.task is task for each in self.looped)

    def requests_of(self, loop: asyncio.AbstractEventLoop) -> Requests:
        """Those of the loop that runs here."""
        with self.lock:
            self.pointer()
            found = self.requests.get(id(loop))
            if found is None or found.loop() is not loop:
                found = self.requests[id(loop)] = Requests(self, loop)
            return found

    def asker(self) -> Asker:
        """What asks on the main thread."""
        if self._asker is None:
            self._asker = Asker()
        return self._asker

    def keep_filter(self, filter: Optional[MessageFilter]) -> None:
        """Whoever publishes may still ask when the subscription has ended."""
        if filter is not None and filter._tests:
            self.calls_back = True
            self.tests.update((id(test), test) for test in filter._tests)

    def add_called(self, called: Called) -> None:
        with self.lock:
            if not called.over.is_set():
                self.called.add(called)
            closed = self.closed
        if closed:
            called.unsubscribe("async")
            raise ShutDownError("the hub is closed")

    def forget_called(self, called: Called) -> None:
        with self.lock:
            self.called.discard(called)

    def is_inside(self) -> bool:
        return super().is_inside() or is_inside(self)

    def join(self, timeout: Optional[float] = None) -> bool:
        end = None if timeout is None else monotonic() + timeout
        joined = super().join(timeout)
        with self.lock:
            called = list(self.called)
        for each in called:
            while not each.over.wait(SLICE):
                if end is not None and monotonic() >= end:
                    return False
        return joined

    def add_mailbox(self, mailbox: Pulled) -> None:
        with self.lock:
            self.mailboxes.add(mailbox)
            closed = self.closed
        if closed:
            mailbox.close()

    def add_served(self, served: Served, loop: Any) -> None:
        fd = -1 if loop is not None else served.mailbox.fileno()
        with self.lock:
            if self.closed:
                raise ShutDownError("the hub is closed")
            if loop is not None:
                self.looped.add(served)
                return
            self.spawn()
            served.fd = fd
            self.served[fd] = served
            self.poll.register(fd, self.armed)

    def spawn(self) -> None:
        """The first handler has come. Under the lock."""
        if self.threads:
            return
        if self.poll is None:
            self.wake, self.nudged = os.pipe(), os.pipe()
            for end in self.nudged:
                os.set_blocking(end, False)
            poll = select.epoll()
            poll.register(self.wake[0], select.EPOLLIN)
            poll.register(self.nudged[0], select.EPOLLIN)
            self.poll = poll
        try:
            self.make_threads(lambda: Hand(self))
        except RuntimeError as raised:
            if not self.threads:
                # Another handler may find some.
                raise
            report("a hub has fewer threads than it was to have", raised=raised)

    def postpone(self, served: Served, delay: float) -> None:
        """Its turn comes after so many seconds."""
        with self.lock:
            heapq.heappush(self.later, (monotonic() + delay, next(self.numbers), served))
        self.nudge()
        # Whoever has cancelled it in between has not found it.
        if served.cancelled:
            self.hurry(served)

    def hurry(self, served: Served) -> None:
        """Its turn comes now, if it was postponed."""
        with self.lock:
            mine = [each for each in self.later if each[2] is served]
            for each in mine:
                self.later.remove(each)
                self.later.append((0.0, *each[1:]))
            heapq.heapify(self.later)
        if mine:
            self.nudge()

    def due(self) -> tuple[Optional[Served], float]:
        """Whose time has come, and for how many seconds to wait at most; −1: without an end."""
        with self.lock:
            if not self.later:
                return None, -1
            left = self.later[0][0] - monotonic()
            if left <= 0:
                return heapq.heappop(self.later)[2], 0
            return None, min(left, LONGEST)

    def nudge(self) -> None:
        try:
            os.write(self.nudged[1], b"x")
        except BlockingIOError:
            pass

    def remains(self, end: Optional[float]) -> bool:
        if self.closed:
            return False
        with self.lock:
            served = {*self.served.values(), *self.looped}
            # Their next attempt comes too late.
            served -= {each for when, _, each in self.later if end is not None and when > end}
        return any(each.remains() for each in served)

    def left(self) -> int:
        with self.lock:
            served = [] if self.closed else [*self.served.values(), *self.looped]
        return sum(each.taken() for each in served if not each.keeps)

    def forget(self, served: Served) -> None:
        with self.lock:
            self.looped.discard(served)

    def end_handlers(self) -> None:
        with self.lock:
            served = [*self.served.values(), *self.looped]
        _call_all(_ends_of(served))

    def close_native(self) -> None:
        with self.lock:
            # Whatever comes from here on sees that it is closed.
            mailboxes = list(self.mailboxes)
            served = [*self.served.values(), *self.looped]
            asking = list(self.requests.values())
            called = list(self.called)
        ends: list[Callable[[], object]] = [each.close for each in asking]
        ends += [partial(each.unsubscribe, "async") for each in called]
        ends += [each.close for each in mailboxes]
        _call_all([*ends, *_ends_of(served)])
        # Threads end when nothing is left to be handled.
        if self.poll is not None:
            os.write(self.wake[1], b"x")

    def forked(self) -> None:
        super().forked()
        self.lock = threading.RLock()
        self.requests = weakref.WeakValueDictionary()
        self.called = set()

    def __del__(self) -> None:
        for fd in (*getattr(self, "wake", ()), *getattr(self, "nudged", ())):
            if fd >= 0:
                os.close(fd)


class Hand:
    """One host thread."""

    def __init__(self, core: Core) -> None:
        self.core = core

    def run(self, timeout: object) -> int:
        """Waits for a mailbox, and handles a batch of it; −1: all is over."""
        core = self.core
        served, wait = core.due()
        if served is not None:
            self.serve(core, served)
            return 1
        # One at a time: what else is ready is for the others, if there are some.
        for fd, _ in core.poll.poll(wait, 1 if core.most > 1 else -1):
            if fd == core.wake[0]:
                return self.leave(core)
            if fd == core.nudged[0]:
                try:
                    os.read(fd, 4096)
                except BlockingIOError:
                    # Another thread was nudged.
                    pass
                continue
            served = core.served.get(fd)
            if served is not None:
                self.serve(core, served)
        return 1

    def serve(self, core: Core, served: Served) -> None:
        if core.later:
            # While this thread is in a handler, another one minds the time.
            core.nudge()
        try:
            delay = served.turn()
        except BaseException as raised:
            # Its turn comes again, which is nobody else's affair.
            core.failures += 1
            report("the turn of a handler of %s has failed", repr(served.mailbox.pattern), raised=raised)
            delay = SLICE
        if delay is None:
            with core.lock:
                del core.served[served.fd]
            core.poll.unregister(served.fd)
            served.end()
        elif delay > 0 or (served.held and not served.resting):
            if core.most == 1 and not served.postponed:
                core.poll.modify(served.fd, 0)
            served.postponed = True
            core.postpone(served, delay)
        elif core.most > 1 or served.postponed:
            served.postponed = False
            core.poll.modify(served.fd, core.armed)

    def leave(self, core: Core) -> int:
        """The hub is closed: all that nobody serves has ended."""
        with core.lock:
            served = list(core.served.values())
        for each in served:
            # Whoever is inside a turn comes here after it.
            if each.busy.acquire(blocking=False):
                each.skip()
                each.busy.release()
                each.over.set()
        return -1


def _ends_of(served: list[Served]) -> list[Callable[[], object]]:
    """What ends them at once."""
    return [end for one in served for end in (one.cancel, one.mailbox.close, one.hurry)]


def _call_all(ends: list[Callable[[], object]]) -> None:
    for end in ends:
        try:
            end()
        except BaseException as raised:
            # Whoever waits for another one of them is to be told still.
            report("something of a hub could not be closed", raised=raised)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class Handled:
    """What a subscription and a replay with a handler have in common."""

    _served: Union[Served, Called]

    def __init__(self, hub: paceline.Hub) -> None:
        self._hub = hub

    def __call__(self, message: Union[Message, Batch]) -> Any:
        return self._served.handler(message)

    @property
    def pattern(self) -> str:
        """What comes to it."""
        return self._served.pattern

    @property
    def errors(self) -> int:
        """How often its handler has failed."""
        return self._served.errors

    @property
    def suspended(self) -> bool:
        """Whether it is suspended, because its handler has crashed too often."""
        return self._served.is_suspended()

    def resume(self) -> bool:
        """Ends its suspension now, and that of all others of its supervisor: messages are handled again, and those
        that became dead letters stay so. False: none was suspended."""
        return self._served.resume()

    @property
    def last_error(self) -> Optional[BaseException]:
        """What the handler has raised last."""
        return self._served.last_error

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended and its handler does not run; False: it has not in that time. Not for
        handlers, nor for event loops that serve it."""
        return self._served.over.wait(patience("timeout", timeout))

    def unsubscribe(self, how: str = "async") -> bool:
        raise NotImplementedError

    def __enter__(self: _H) -> _H:
        return self

    def __exit__(self, *_: object) -> None:
        self.unsubscribe("sync")

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise TypeError(f"cannot pickle a paceline.{name}: it belongs to this process")


_H = TypeVar("_H", bound=Handled)


class Subscription(Handled):
    """A handler that has subscribed. It lasts until ``unsubscribe``, or as long as its hub, also if nothing
    refers to this. Called, it is its handler. Any thread."""

    def __init__(self, hub: paceline.Hub, served: Union[Served, Called]) -> None:
        super().__init__(hub)
        self._served = served

    def stats(self) -> SubscriptionStats:
        """The counters of the subscription, until now."""
        # A suspension whose time is over ends by a look.
        suspended = self.suspended
        return replace(self._served.stats(), suspended=suspended)

    def unsubscribe(self, how: str = "async") -> bool:
        """Takes no more messages. "drain": those that wait are handled still. "async": they are discarded,
        and a handler that runs is not waited for. "sync": as "async", and waits until none runs; inside a
        handler, and for one that is served by an event loop, it does not wait. Says whether none runs or
        will run.
        """
        return self._served.unsubscribe(one_of("how", how, {each: each for each in WAYS}))

    def drain(self, within: Optional[float] = None) -> int:
        """Ends it as ``unsubscribe("drain")`` does, and waits up to ``within`` seconds (None: for ever) until all
        that waits has been handled, what waits for another attempt included. What is left then is discarded;
        a handler that still runs is not waited for. Says how many messages were left: 0 if all were handled.

        Raises DeadlockError in a handler of the hub, and in the event loop that serves it: it goes on then;
        InvalidError, ForkedError."""
        return self._served.drain(patience("within", within))


class Replay(Handled):
    """A handler that what a history has kept, and then what is published, is replayed to. It lasts until
    ``unsubscribe``, or as long as its hub, also if nothing refers to this. Called, it is its handler. Any thread."""

    _served: Served

    def __init__(self, hub: paceline.Hub, served: Served) -> None:
        super().__init__(hub)
        self._served = served

    def stats(self) -> ReplayStats:
        """Its counts. What is in the history and was not read for it is not counted."""
        stats: ReplayStats = self._served.stats()
        running = min(self._served.under_way(), stats.running)
        return replace(stats, waiting=stats.waiting + stats.running - running, running=running)

    def unsubscribe(self, how: str = "async") -> bool:
        """Ends it: what was read and not handled is discarded. There is no mailbox to drain: "drain" is as
        "async". "sync": waits until its handler does not run; inside a handler, and for one that is served by an
        event loop, it does not wait. Says whether it does not run and will not."""
        return self._served.unsubscribe(one_of("how", how, {each: each for each in WAYS}))
