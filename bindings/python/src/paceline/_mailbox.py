"""Mailboxes of a hub, which Python empties: ``pull``, ``for``, ``async for``."""

from __future__ import annotations

import asyncio
import ctypes
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TypeVar

import paceline

from . import _layout as layout
from ._arguments import instance, nanos, one_of, patience, some_text, text, whole, within, wrong
from ._errors import DeadlockError, Error, ShutDownError, StaleError, refuse_in_loop
from ._hosts import Source, queue_of
from ._library import check, error, in_slices, lib, nanoseconds, quick
from ._message import LARGE, Batch, Message, raw_of
from ._message_filter import MessageFilter
from ._queue import _LoopWaiters, at_most
from ._supervision import Supervisor

if TYPE_CHECKING:
    from ._subscriptions import Core
else:
    Core = Any

#: How many messages a thread takes at once where the caller does not say.
BATCH = 64
#: Of how many messages a thread keeps what it has made of them until it pulls the next, if they are small.
_KEPT = 1024

OVERFLOWS = {
    "reject": layout.OVERFLOW_REJECT,
    "drop-newest": layout.OVERFLOW_DROP_NEWEST,
    "drop-oldest": layout.OVERFLOW_DROP_OLDEST,
    "conflate": layout.OVERFLOW_CONFLATE,
    "block": layout.OVERFLOW_BLOCK,
}
WAYS = {
    "async": layout.UNSUBSCRIBE_ASYNC,
    "drain": layout.UNSUBSCRIBE_DRAIN,
    "sync": layout.UNSUBSCRIBE_SYNC,
}
_BALANCES = {
    "round-robin": layout.BALANCE_ROUND_ROBIN,
    "least-loaded": layout.BALANCE_LEAST_LOADED,
    "random": layout.BALANCE_RANDOM,
    "by-key": layout.BALANCE_BY_KEY,
    "by-header": layout.BALANCE_BY_HEADER,
}


class Latency(NamedTuple):
    """How long messages took from publishing until they were pulled, or a thread or loop took them for their
    handler: how many there were, and seconds. Percentiles are good to two digits."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks for here
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


def latency_of(stats: layout.SubscriptionStats) -> Latency:
    names = ("mean", *Latency._fields[2:])
    return Latency(stats.latencies, *(getattr(stats, f"latency_{name}_ns") / 1e9 for name in names))


@dataclass(frozen=True)
class SubscriptionStats:
    """What became of the messages that a subscription's pattern matched. Exact while nothing is under
    way."""

    matched: int
    #: Those that were pulled, or, where that is acknowledged, dealt with; those that its handler has dealt with.
    delivered: int
    #: Those that its handler has failed at for good, and that are no dead letters.
    failed: int
    #: Those that a full mailbox has dropped or conflated, and has refused.
    dropped: int
    rejected: int
    #: Those that waited when it ended.
    discarded: int
    #: Those that wait, and that were pulled and are not acknowledged, or that its handler's thread has taken.
    waiting: int
    running: int
    #: Those that have become dead letters, and those of ``matched`` that were dead letters before.
    dead_lettered: int = 0
    redelivered: int = 0
    #: Those that its filter has kept away; they do not count as matched.
    filtered: int = 0
    #: How often its handler was restarted.
    restarts: int = 0
    #: Its number, which no other subscription of its hub has or had.
    number: int = 0
    #: Those of ``filtered`` at which a function of its filter has failed.
    filter_failures: int = 0
    #: The time from publishing to the handler, if the subscription is ``measured``; else None.
    latency: Optional[Latency] = None
    #: Whether it is suspended now, because its handler has crashed too often.
    suspended: bool = False

    @property
    def balances(self) -> bool:
        """Whether every message that matched is in exactly one of the others."""
        ended = self.delivered + self.failed + self.dropped + self.rejected + self.discarded
        return self.matched == ended + self.dead_lettered + self.waiting + self.running


#: Of an entry, in words: its size, and where its message begins.
_WIDTH = ctypes.sizeof(layout.CqEntry) // 8
_MESSAGE = layout.CqEntry.detail.offset // 8
#: Up to so many messages are taken at once as a rule.
_USUAL = 1024
#: Its kind, in its first word.
_KIND = 0xFFFF_FFFF
_ENDED = layout.CQ_ENDED

# Without declared types ctypes takes arguments that are its own objects as they are, which takes less time.
_wait, _look, _done = lib["pace_cq_wait"], quick["pace_cq_wait"], quick["pace_cq_done"]
_NOT_AT_ALL = ctypes.c_uint64(0)


class _Place:
    """Where a thread pulls to."""

    __slots__ = (
        *("most", "busy", "buffer", "words", "wanted", "count", "at"),
        *("hub", "found", "sequences", "lost"),
    )

    def __init__(self) -> None:
        self.most, self.busy = 0, False
        self.buffer: Any = None
        self.words = memoryview(b"")
        self.wanted, self.count = ctypes.c_size_t(), ctypes.c_size_t()
        self.at = ctypes.byref(self.count)
        #: The hub whose messages were pulled last, and these.
        self.hub: Optional[object] = None
        self.found: Optional[Batch] = None
        self.sequences = self.lost = self.words

    def room(self, most: int) -> None:
        self.buffer = (layout.CqEntry * most)()
        self.words = memoryview(self.buffer).cast("B").cast("Q")
        self.most = most

    def ends(self, count: int) -> bool:
        """Whether the last of so many entries says that nothing more comes."""
        return count > 0 and self.words[(count - 1) * _WIDTH] & _KIND == _ENDED

    def batch(self, hub: object, count: int) -> Batch:
        """The messages that were pulled last, from a mailbox of the hub of this identity. Where a thread empties
        several mailboxes the same messages come again: of one hub, rows of the same numbers are of equal messages, as a
        number is given to one message only."""
        words, end, found = self.words, count * _WIDTH, self.found
        if (
            found is not None
            and hub is self.hub
            and words[_MESSAGE:end:_WIDTH] == self.sequences
            and words[_MESSAGE + 2 : end : _WIDTH] == self.lost
        ):
            return found
        copy = memoryview(words[:end].tobytes()).cast("Q")
        rows = copy[_MESSAGE:]
        found = Batch._of(rows, _WIDTH, copy[1::_WIDTH])
        if count <= _KEPT and sum(rows[6::_WIDTH].tolist()) <= LARGE:
            self.hub, self.found = hub, found
            self.sequences, self.lost = rows[::_WIDTH], rows[2::_WIDTH]
        return found


class _Here(threading.local):
    # Of the class: there is no moment at which it is missing.
    place: Optional[_Place] = None


_here = _Here()


def place() -> _Place:
    """Where this thread pulls to."""
    found = _here.place
    if found is None:
        found = _here.place = _Place()
    return found


@dataclass(frozen=True)
class Settings:
    """What a mailbox is made with."""

    capacity: int
    overflow: str
    by_priority: bool
    filter: Optional[MessageFilter]
    group: Optional[str]
    balance: str
    #: How long a publisher waits for room, in seconds; None: without a limit.
    block: Optional[float] = None
    measured: bool = False
    lease: Optional[float] = None
    #: For the balance "by-header": its name.
    balance_header: Optional[str] = None
    #: No other of the pattern has the same.
    unique: Optional[str] = None
    #: Whoever pulls says what became of each message.
    acknowledged: bool = False
    #: It counts the crashes of the handler, with those of others if it has others.
    supervisor: Optional[Supervisor] = None

    def native(self) -> layout.SubscriptionOptions:
        options = layout.SubscriptionOptions()
        check(quick.pace_subscription_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.overflow = one_of("overflow", self.overflow, OVERFLOWS)
        options.capacity = within("capacity", self.capacity, 1, 1 << 24)
        options.by_priority = self.by_priority
        options.block_ns = layout.FOREVER if self.block is None else nanos("block", self.block)
        options.measured = self.measured
        if self.lease is not None:
            options.lease_ns = nanos("lease", self.lease, 0.001)
        if self.filter is not None:
            options.filter = instance("filter", self.filter, MessageFilter)._native.pointer
        options.balance = one_of("balance", self.balance, _BALANCES)
        options.group = some_text("group", self.group)
        options.balance_header = some_text("balance_header", self.balance_header)
        options.unique = some_text("unique", self.unique)
        options.acknowledged = self.acknowledged
        options.supervisor = supervisor_of(self.supervisor)
        return options


def _said(failure: str) -> bytes:
    """As C has it: what was raised may say anything."""
    return failure.replace("\0", "").encode("utf-8", "replace")


def supervisor_of(given: Optional[Supervisor]) -> Optional[ctypes.c_void_p]:
    """As C has it."""
    return None if given is None else instance("supervisor", given, Supervisor)._native.pointer


class Pulled:
    """What mailboxes of subscriptions and of replays have in common."""

    def __init__(
        self,
        core: Core,
        pattern: str,
        pointer: ctypes.c_void_p,
    ) -> None:
        try:
            self._queue = queue = queue_of(core.pool)
        except BaseException:
            # Otherwise it would be subscribed, and nobody could pull.
            lib.pace_mailbox_free(pointer)
            raise
        self._pointer = queue.pointer
        self._native = Source(pointer, lib.pace_mailbox_free, queue)
        # What is pulled first takes this along, and attaches it, so a CompletionQueue can have it until then.
        self._to_attach = [lib.pace_cq_mailbox]
        self._runner = core.pool._runner
        #: What is raised when it has ended.
        self._over: type[Error] = ShutDownError
        self._identity = core.identity
        self._loops: dict[Any, _LoopWaiters] = {}
        #: What comes to it.
        self.pattern = pattern

    def pull_batch(self, most: int = BATCH, timeout: Optional[float] = None) -> Optional[Batch]:
        """As ``pull``, and quicker where messages are many: what came is one ``Batch``, whose ``payloads`` cost less
        than messages. None: none has come. Raises as ``pull``."""
        # What is usual needs no function that checks it.
        if type(most) is not int or not 0 < most <= _USUAL:
            most = at_most(most)
        if timeout is not None:
            timeout = patience("timeout", timeout)
        here = _here.place or place()
        if here.busy:
            # In a signal's handler, or a destructor: the entries beneath would be overwritten.
            raise DeadlockError("this thread is inside a pull already")
        here.busy, count, pointer = True, here.count, self._pointer
        try:
            if self._to_attach:
                self._attach()
            if most > here.most:
                here.room(most)
            here.wanted.value = most
            # Most often there is something, and looking is shorter than letting go of the interpreter.
            status = _look(pointer, here.buffer, here.wanted, _NOT_AT_ALL, here.at)
            if status == layout.ETIMEDOUT and timeout != 0:
                status = self._wait(here, timeout)
            if status == layout.OK:
                messages = count.value
                if here.words[(messages - 1) * _WIDTH] & _KIND == _ENDED:
                    messages -= 1
                    self._end()
                if messages:
                    return here.batch(self._identity, messages)
                status = layout.ESHUTDOWN
        except BaseException:
            # The handler of a signal has raised.
            if here.ends(count.value):
                self._end()
            raise
        finally:
            if count.value:
                _done(pointer, here.buffer, count)
                count.value = 0
            here.busy = False
        if status == layout.ETIMEDOUT:
            return None
        if status == layout.ESHUTDOWN:
            raise self._over(f"the mailbox of {self.pattern!r} has ended, and nothing is left")
        raise error(status)

    def _wait(self, here: _Place, timeout: Optional[float]) -> int:
        """On the main thread in slices, so that signals are looked at."""
        refuse_in_loop("pull()", "mailbox.pull_async(…)")

        def wait(left: int) -> int:
            time = ctypes.c_uint64(left)
            return int(_wait(self._pointer, here.buffer, here.wanted, time, here.at))

        if threading.current_thread() is threading.main_thread():
            return in_slices(wait, timeout)
        return wait(nanoseconds(timeout))

    def _attach(self) -> None:
        try:
            attach = self._to_attach.pop()
        except IndexError:
            # Another thread does.
            return
        status = attach(self._queue.pointer, self._native.pointer, 0)
        if status != layout.OK:
            self._to_attach.append(attach)
            raise error(status)

    def _end(self) -> None:
        """That it has ended comes to one thread, which has the others end."""
        if self._runner.closed is None:
            self._over = StaleError
        self._queue.close()

    def fileno(self) -> int:
        """A descriptor that is readable while a message may wait, or it has ended. It belongs to the mailbox: never
        read or close it."""
        if self._to_attach:
            self._attach()
        return self._queue.fileno()

    def pull(self, most: int = BATCH, timeout: Optional[float] = None) -> list[Message]:
        """Waits up to ``timeout`` seconds (None: for ever) for a message, and takes up to ``most`` (65536
        at most) of those that are there, in order. Empty: none has come.

        Raises StaleError when it has ended and nothing is left, ShutDownError when the pool has while this
        waited, InvalidError, ForkedError.
        """
        found = self.pull_batch(most, timeout)
        return found._all().copy() if found else []

    async def pull_async(self, most: int = BATCH) -> list[Message]:
        """As ``pull`` for ever, without holding up the running event loop."""
        return (await self.pull_batch_async(most))._all().copy()

    async def pull_batch_async(self, most: int = BATCH) -> Batch:
        """As ``pull_batch`` for ever, without holding up the running event loop."""
        while True:
            found = self.pull_batch(most, 0)
            if found:
                return found
            await self._changed()

    async def _changed(self) -> None:
        """Waits until there may be something to pull, or to be looked at."""
        loop = asyncio.get_running_loop()
        waiters = self._loops.get(loop)
        if waiters is None:
            waiters = self._loops[loop] = _LoopWaiters(self, loop)
        await waiters.wait()

    def __iter__(self) -> Iterator[Message]:
        """Messages as they come, until it or the pool has ended. Leaving early loses none."""
        while True:
            try:
                found = self.pull(1)
            except (StaleError, ShutDownError):
                return
            yield from found

    def __aiter__(self: _M) -> _M:
        return self

    async def __anext__(self) -> Message:
        try:
            return (await self.pull_async(1))[0]
        except (StaleError, ShutDownError):
            raise StopAsyncIteration from None

    def bury(self, message: Message, failure: str = "", attempts: int = 1) -> None:
        """Makes a message that was pulled here a dead letter, after so many attempts: it counts as that then,
        and no longer as delivered or running. Raises InvalidError: it cannot have come from here; ForkedError."""
        attempts = within("attempts", attempts, 0, (1 << 32) - 1)
        raw, kept = raw_of("message", message)
        if not isinstance(failure, str):
            raise wrong("failure", failure, "text")
        said = _said(failure) or None
        pointer = self._native.pointer
        check(quick.pace_mailbox_bury(pointer, ctypes.byref(raw), said, attempts))
        del kept

    def acknowledge(self, delivered: int = 1, failed: int = 0, discarded: int = 0) -> None:
        """Of a mailbox that is ``acknowledged``: says what became of the messages that were pulled first, in the order in
        which they were pulled: dealt with, failed for good, and thrown away. Raises InvalidError for more than were
        pulled and are not acknowledged; ForkedError."""
        counts = (delivered, failed, discarded)
        counts = map(whole, ("delivered", "failed", "discarded"), counts, (64, 64, 64))
        check(quick.pace_mailbox_acknowledge(self._native.pointer, *counts))

    def crashed(self, failure: str) -> bool:
        """Of a mailbox that is ``acknowledged``: your handler has crashed. That counts as a restart by the
        ``supervisor`` of the mailbox, and is told under ``$SYS.subscription.restarted`` and by ``Hub.errors``. True:
        you restart the handler and go on. False: that was once too often, so it and all others of the supervisor are
        suspended as other handlers would be; what was pulled is yours still. Raises InvalidError, ForkedError."""
        if not isinstance(failure, str):
            raise wrong("failure", failure, "text")
        return self._crashed(failure) is None

    def _crashed(self, failure: str) -> Optional[float]:
        """For how many seconds it is suspended then; None: not at all."""
        lasts = ctypes.c_uint64()
        pointer = self._native.pointer
        check(lib.pace_mailbox_crashed(pointer, _said(failure), ctypes.byref(lasts)))
        if lasts.value == layout.FOREVER:
            return math.inf
        return lasts.value / 1e9 if lasts.value else None

    def catch_up(self) -> bool:
        """To be asked before your handler gets a message. True: it is to be restarted first, because another of its
        supervisor has crashed and all are restarted, or because a suspension has ended; that counts as a restart.
        Raises ForkedError."""
        return self._catch_up()[0]

    def _catch_up(self) -> tuple[bool, bool]:
        """The same, and whether it is suspended."""
        restarts, suspended = ctypes.c_bool(), ctypes.c_bool()
        at = ctypes.byref(restarts), ctypes.byref(suspended)
        check(quick.pace_mailbox_catch_up(self._native.pointer, *at))
        return restarts.value, suspended.value

    @property
    def suspended(self) -> bool:
        """Whether it is suspended. Raises ForkedError."""
        suspended = ctypes.c_bool()
        pointer = self._native.pointer
        check(quick.pace_mailbox_catch_up(pointer, None, ctypes.byref(suspended)))
        return suspended.value

    def suspend(self, seconds: Optional[float] = None) -> bool:
        """Suspends it as a supervisor would, for so long (None: until ``resume``): what waits for a subscription, and
        what comes, becomes dead letters; what comes to a replay stays in the history, and nothing can be pulled. What was
        pulled is yours still. False: it was suspended, or has ended. Raises InvalidError, ForkedError."""
        lasts = layout.FOREVER if seconds is None else nanos("seconds", seconds)
        suspended = ctypes.c_bool()
        check(lib.pace_mailbox_suspend(self._native.pointer, lasts, ctypes.byref(suspended)))
        return suspended.value

    def resume(self) -> bool:
        """Ends a suspension. False: there was none. Raises ForkedError."""
        resumed = ctypes.c_bool()
        check(lib.pace_mailbox_resume(self._native.pointer, ctypes.byref(resumed)))
        return resumed.value

    def unsubscribe(self, how: str = "async") -> bool:
        """Ends it: no more messages come. Those that wait for a subscription can be pulled still ("drain"), or are
        discarded ("async", and "sync", which is the same here); whether nothing is left. Once it has ended,
        nothing."""
        ended = ctypes.c_bool()
        way = one_of("how", how, WAYS)
        check(quick.pace_mailbox_unsubscribe(self._native.pointer, way, ctypes.byref(ended)))
        return ended.value

    def close(self) -> None:
        """Ends it; what waits is discarded, and who waits in ``pull`` gets StaleError."""
        self.unsubscribe()

    def __enter__(self: _M) -> _M:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise TypeError(f"cannot pickle a paceline.{name}: it belongs to this process")


_M = TypeVar("_M", bound=Pulled)


class Mailbox(Pulled):
    """A subscription that you empty: ``pull``, ``for``, ``async for``. Any thread, any number of them.

    It lasts until ``unsubscribe`` or ``close``, until its lease runs out, or until it or its hub is lost.
    """

    def __init__(
        self,
        core: Core,
        hub: Optional[paceline.Hub],
        pattern: str,
        settings: Settings,
    ) -> None:
        options = settings.native()
        pointer, encoded = ctypes.c_void_p(), text("pattern", pattern)
        inside = core.pointer()
        core.keep_filter(settings.filter)
        # Others of its supervisor may be about to give up what is Python's.
        check(lib.pace_hub_mailbox(inside, encoded, ctypes.byref(options), ctypes.byref(pointer)))
        super().__init__(core, pattern, pointer)
        # While there is a mailbox its hub is not lost; those behind handlers belong to it.
        self._hub = hub
        self._measured = settings.measured

    def stats(self) -> SubscriptionStats:
        """The counters of the mailbox, until now."""
        stats = layout.SubscriptionStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_mailbox_stats(self._native.pointer, ctypes.byref(stats)))
        names = list(SubscriptionStats.__dataclass_fields__)[:-2]
        latency = latency_of(stats) if self._measured else None
        values = (getattr(stats, name) for name in names)
        return SubscriptionStats(*values, latency=latency, suspended=bool(stats.suspended))
