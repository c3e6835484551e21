"""``Hub``: publish/subscribe by keys, whose mailboxes Python empties.

Publishing puts a message into the native mailbox of every subscription whose pattern matches its key. Whoever has
a ``Mailbox`` pulls batches of it, and the mailboxes behind handlers are emptied by host threads, in turn. Native code calls
only handlers that ask for it, by their execution.

| file | idea |
|---|---|
| `_mailbox.py` | mailboxes, to be emptied by whoever has them |
| `_subscriptions.py`, `_supervision.py` | handlers and their threads; what becomes of those that fail |
| `_called.py` | handlers that native code calls: inline, concurrent, on the strand |
| `_message.py`, `_message_filter.py`, `_topic.py` | messages, which of them come in, and values in their place |
| `_publisher.py` | publishers with names and quotas |
| `_requests.py` | requests that event loops await |
| `_history.py`, `_dead.py` | what was kept: messages, and those that nobody could deal with |
| `_notices.py` | what the hub tells of itself: errors, figures, thresholds |
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Optional, Union, overload

from . import _layout as layout
from ._arguments import (
    BytesLike,
    data,
    function,
    instance,
    is_coroutine_function,
    items,
    one_of,
    patience,
    plain,
    some_function,
    some_plain,
    text,
    wrong,
)
from ._arguments import within as within_range
from ._called import EXECUTIONS, Called
from ._dead import EACH, DeadLetter, DeadLetterStats, Redelivered, filter_of, letter_of
from ._errors import DeadlockError, GivenUpError, InvalidError, refuse_in_loop
from ._archive import asked, exported
from ._history import (
    EACH_HISTORY,
    History,
    HistoryStats,
    ReplayMailbox,
    query_of,
    start_of,
    stats_of,
)
from ._hosts import Native, base_of
from ._library import check, error, lib, nanoseconds, quick
from ._lifetime import called_back
from ._mailbox import Mailbox, Settings, place
from ._message import (
    HeadersLike,
    Message,
    Receipt,
    answered,
    message_of,
    new_receipt,
    pieces_of,
    publication_of,
    raw_of,
    told,
)
from ._message_filter import MessageFilter
from ._notices import (
    EACH_ERROR,
    HubError,
    Threshold,
    Watch,
    error_filter,
    error_of,
    metrics_of,
)
from ._policy import Rate, Retry
from ._pool import Pool
from ._publisher import Publisher
from ._subscriptions import (
    TURN,
    Core,
    FailureHook,
    HandlerFactory,
    MessageHandler,
    Replay,
    ReplaySettings,
    RestartHook,
    Served,
    Subscription,
    SubscriptionSettings,
)
from ._supervision import Supervisor, Terms, terms_of
from ._topic import Codec, T, Topic
from ._typing import Unpack
from ._workers import WorkerPool


@dataclass(frozen=True)
class HubAudit:
    """The counters of a hub. Exact while nothing is under way. What a handler's thread has pulled counts as running until
    the hub is told what became of it: after each batch."""

    published: int
    matched: int
    delivered: int
    failed: int
    dead_lettered: int
    dropped: int
    rejected: int
    discarded: int
    waiting: int
    running: int
    redelivered: int
    #: Whether every message that matched is accounted for.
    balances: bool


class Key:
    """A key that was looked up once: publishing with it is quicker than with its text. Any thread."""

    def __init__(self, core: Core, given: str, name: str = "text") -> None:
        pointer, encoded = ctypes.c_void_p(), text(name, given)
        check(quick.pace_hub_key(core.pointer(), encoded, ctypes.byref(pointer)))
        self._native = Native(pointer, lib.pace_key_free)
        self._core = core
        #: As it was given.
        self.text = given

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<paceline.Key {self.text!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Key: it belongs to this process")


_EACH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, layout.Text, ctypes.c_size_t)


def first_of(
    handler: Optional[MessageHandler], factory: Optional[HandlerFactory]
) -> Optional[MessageHandler]:
    """The handler to begin with, if there is one. Raises InvalidError: there are two; and what the factory raises."""
    if factory is None:
        return handler
    if handler is not None:
        raise InvalidError("handler is given beside a factory, which makes it")
    made = factory()
    function("what the factory makes", made)
    return made


def _loop_of(handler: MessageHandler) -> Optional[asyncio.AbstractEventLoop]:
    """The loop that is to serve it; None: a thread is. Raises RuntimeError: no loop runs here; TypeError: a call
    would not run it."""
    if is_coroutine_function(handler):
        return asyncio.get_running_loop()
    plain("handler", handler)
    return None


def _turn_of(batch: Optional[int], usual: int) -> int:
    """How many messages are taken at once."""
    return usual if batch is None else within_range("batch", batch, 1, 1 << 16)


class Hub:
    """Publish/subscribe by keys like "orders.eu.created". Any thread, also inside handlers.

    In a pattern ``*`` stands for one token, a final ``>`` for one or more, and neither stands beside other characters
    of its token. Each subscription has a mailbox of its own, and what is done when that is full is its own choice: the
    new message is refused ("reject"), or dropped ("drop-newest"), or the oldest is ("drop-oldest"), or of each key only the newest is kept
    ("conflate"), or its publisher waits ("block"). By default nothing is lost unseen: publishers wait for room in
    the mailbox of a handler, and publishing raises MailboxFull where it may not wait, or a mailbox refuses.

    Handlers are called by ``threads`` threads of the hub (default 4), made with the first handler; with several of them,
    a slow handler holds up its own messages only. One that fails is counted and touches nobody else; the
    message becomes one of up to ``dead_letters`` dead letters (then the oldest is forgotten for the newest),
    unless the subscription has it otherwise. ``histories`` keep what is published, for ``query`` and ``replay``.

    What the hub tells of itself are messages, too, of JSON, under ``$SYS.``, with headers ``event`` and ``severity``; losses of the same kind are told
    once in ``notice_interval`` seconds (0.001 to 3600). Up to ``errors`` of what went wrong stay for ``errors()``.
    Of up to ``count_keys`` keys it is counted how often each was published, for ``metrics()``, where ``name``
    is the label of the hub's figures. Each ``stats_interval`` seconds (0.01 to 86400; None: never) its statistics are
    published under ``$SYS.hub.statistics``, and written to the pool's log.

    Left open at the interpreter's end, or lost, it is closed. In a child made by fork it raises ForkedError.
    Raises InvalidError, Full, ShutDownError.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        threads: int = 4,
        max_payload: int = 16 << 20,
        dead_letters: int = 10_000,
        histories: Iterable[History] = (),
        name: str = "paceline-hub",
        errors: int = 1024,
        notice_interval: float = 1.0,
        count_keys: int = 0,
        stats_interval: Optional[float] = None,
    ) -> None:
        self._core = core = Core(
            pool,
            threads,
            name,
            max_payload,
            dead_letters,
            histories,
            errors,
            notice_interval,
            count_keys,
            stats_interval,
        )
        # A lost hub ends by itself.
        self._lost = weakref.ref(self, lambda _: core.close())

    # --- publishing ------------------------------------------------------------------------------

    def key(self, text: str) -> Key:
        """Looks a key up: tokens with dots between them, without blanks, ``*``, ``>`` and control
        characters; those that begin with ``$`` are the hub's. Raises InvalidError."""
        return Key(self._core, text)

    def publish(
        self,
        key: Union[Key, str],
        payload: BytesLike = b"",
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
        no_wait: bool = False,
    ) -> Receipt:
        """Copies the payload once, for all who subscribe. Up to 64 headers of up to 65536 bytes in all; ``priority``
        is "low", "normal", "high" or "critical", and counts for mailboxes that are ``by_priority``. It waits while a
        full mailbox asks for that ("block"), but not in a task or handler of a pool or of what stands on one, nor
        where an event loop runs, nor with ``no_wait``; signals are looked at meanwhile. If a history on disk has no
        room it writes there, or waits for up to ``History.disk_wait`` seconds, also in an event loop. While the pool
        drains, only tasks and handlers of the pool, and of what stands on it, may publish.

        Raises MailboxFull: a mailbox has refused it, and all others have got it, as its ``receipt`` says. Nobody got
        it otherwise: InvalidError: a bad key, too large a payload; Full: a history on disk had no room;
        ShutDownError, ForkedError."""
        core = self._core
        if core.calls_back:
            with core.publishing():
                return self._publish(key, payload, headers, priority, no_wait)
        return self._publish(key, payload, headers, priority, no_wait)

    def _publish(
        self,
        key: Union[Key, str],
        payload: BytesLike,
        headers: Optional[HeadersLike],
        priority: str,
        no_wait: bool,
    ) -> Receipt:
        core, sent, receipt = self._core, data("payload", payload), new_receipt()
        if core.runner.draining:
            core.check_draining()
        pointer, size, at = core.pointer(), len(sent), ctypes.byref(receipt)
        view = core.view(size)
        if headers is None and priority == "normal" and not no_wait:
            flags = layout.PUBLISH_TRY
            if isinstance(key, str):
                status = view.pace_hub_publish(pointer, text("key", key), sent, size, flags, at)
            else:
                status = view.pace_key_publish(self._own(key)._native.pointer, sent, size, flags, at)
            if status == layout.OK:
                return told(receipt)
            if status != layout.ETIMEDOUT:
                return answered(status, receipt)
        own, (publication, kept) = self._own(key), publication_of(headers, priority)
        publish, where, terms = (
            view.pace_key_publish_with,
            own._native.pointer,
            ctypes.byref(publication),
        )
        published = core.publish(
            where, lambda flags: publish(where, terms, sent, size, flags, at), receipt, no_wait
        )
        del kept
        return published

    async def publish_async(
        self,
        key: Union[Key, str],
        payload: BytesLike = b"",
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
        no_wait: bool = False,
    ) -> Receipt:
        """As ``publish``, and while a full mailbox has publishers wait, this waits without holding up the running event
        loop; what waits with the same key is published in order. In an ``async def`` handler of the hub it does not wait.
        Cancelled while it waits, it publishes nothing. Raises as ``publish``, and ShutDownError when the hub is closed
        meanwhile."""
        core, sent, receipt = self._core, data("payload", payload), new_receipt()
        core.check_draining()
        core.pointer()
        own, (publication, kept) = self._own(key), publication_of(headers, priority)
        where, terms, at, size = (
            own._native.pointer,
            ctypes.byref(publication),
            ctypes.byref(receipt),
            len(sent),
        )
        publish = core.view(size).pace_key_publish_with
        published = await core.publish_async(
            own, lambda flags: publish(where, terms, sent, size, flags, at), receipt, no_wait
        )
        del kept
        return published

    def publish_batch(
        self, key: Union[Key, str], payloads: Iterable[BytesLike], no_wait: bool = False
    ) -> Receipt:
        """Publishes messages of one key, in order; the receipt is the sum of theirs. It waits as ``publish`` does, but
        signals are looked at when it is over. Raises as ``publish``. MailboxFull: all were published, and its
        ``receipt`` says how many deliveries were refused; Full: those before that were; else none was."""
        self._core.pointer()
        self._core.check_draining()
        receipt, own = new_receipt(), self._own(key)
        pieces, count, kept = pieces_of(payloads)
        at, flags = ctypes.byref(receipt), self._core.flags(no_wait)
        with self._core.publishing():
            status = lib.pace_key_publish_batch(own._native.pointer, pieces, count, flags, at)
        del kept
        return answered(status, receipt)

    def publish_all(self, messages: Iterable[tuple[Any, ...]]) -> Receipt:
        """Publishes up to 1024 messages, each ``(key, payload)``, ``(key, payload, headers)`` or ``(key, payload,
        headers, priority)``, of one key or several: every mailbox takes its own of them, or nobody gets any. They
        are in order for each subscription; the receipt is the sum of theirs. A mailbox that drops or conflates
        has taken a message, and one with a filter must have room also for what that keeps away.

        Raises Full: a mailbox would refuse, or a history has no room; InvalidError as ``publish``, and for a key
        that a group subscribes to; ShutDownError, ForkedError. Nobody got anything then."""
        pointer, receipt = self._core.pointer(), new_receipt()
        self._core.check_draining()
        all = items("messages", messages, "an iterable of tuples")
        rows = (layout.PublishItem * len(all))()
        kept: list[Any] = []
        for row, message in zip(rows, all):
            if not isinstance(message, tuple) or not 2 <= len(message) <= 4:
                raise wrong("messages", message, "(key, payload), and headers and a priority")
            own, sent = self._own(message[0]), data("payload", message[1])
            publication, fields = publication_of(*message[2:])
            row.key, row.publication = own._native.pointer, ctypes.addressof(publication)
            row.bytes, row.size = base_of(sent) or None, len(sent)
            kept.append((own, sent, publication, fields))
        with self._core.publishing():
            check(lib.pace_hub_publish_all(pointer, rows, len(all), 0, ctypes.byref(receipt)))
        del kept
        return told(receipt)

    def publisher(
        self,
        name: str,
        *,
        quota: Optional[Rate] = None,
        allow: Iterable[str] = (),
        no_wait: bool = False,
    ) -> Publisher:
        """A publisher of this name, which is for people to read: it may publish as often as ``quota`` says, and
        with keys that one of the patterns of ``allow`` matches (none: all); with ``no_wait`` it never waits for
        room. Raises InvalidError, ShutDownError."""
        return Publisher(self, name, quota, allow, no_wait)

    def request(
        self,
        key: Union[Key, str],
        payload: BytesLike = b"",
        timeout: Optional[float] = None,
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Message:
        """Publishes a request, and waits up to ``timeout`` seconds (None: for ever) for the reply of whoever is
        first.

        Raises DeadlockError: an event loop runs in this thread, see ``request_async``; NoRespondersError: nobody subscribes to the key; Full: nobody who does has taken it; TimeoutError;
        and as ``publish``."""
        self._core.pointer()
        refuse_in_loop("request()", "hub.request_async(…)")
        self._core.check_draining()
        own, sent, reply = self._own(key), data("payload", payload), layout.Message()
        publication, kept = publication_of(headers, priority)
        timeout = patience("timeout", timeout)
        left, at = nanoseconds(timeout), ctypes.byref(reply)
        here = place()
        if here.busy:
            raise DeadlockError("this thread is inside a pull already")
        here.busy = True
        try:
            if threading.current_thread() is threading.main_thread():
                asker, pointer = self._core.asker(), own._native.pointer
                return asker.ask_in_slices(self._core, pointer, publication, sent, timeout)
            terms, size = ctypes.byref(publication), len(sent)
            with self._core.publishing():
                check(lib.pace_key_request(own._native.pointer, terms, sent, size, left, at))
            return message_of(bytes(reply))
        finally:
            here.busy = False
            del kept

    async def request_async(
        self,
        key: Union[Key, str],
        payload: BytesLike = b"",
        timeout: Optional[float] = None,
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Message:
        """As ``request``, without holding up the running event loop: it has one descriptor for all that it has
        asked of a hub, and no thread waits. Cancelled, it gives the request up. Raises as ``request``, and
        ShutDownError when the hub is closed meanwhile; it may be called in a handler of the hub."""
        core, loop = self._core, asyncio.get_running_loop()
        core.check_draining()
        requests = core.requests_of(loop)
        own, sent = self._own(key), data("payload", payload)
        publication, kept = publication_of(headers, priority)
        try:
            timeout = patience("timeout", timeout)
            return await requests.await_reply(core, own._native.pointer, publication, sent, timeout)
        finally:
            del kept

    def reply(self, request: Message, payload: BytesLike = b"") -> Receipt:
        """Replies to a request; the first reply counts. Raises InvalidError: it is none; ShutDownError."""
        raw, kept = raw_of("request", request)
        sent, receipt = data("payload", payload), new_receipt()
        where, at = ctypes.byref(raw), ctypes.byref(receipt)
        check(quick.pace_hub_reply(self._core.pointer(), where, sent, len(sent), at))
        del kept
        return told(receipt)

    def _own(self, key: Union[Key, str]) -> Key:
        if isinstance(key, str):
            return Key(self._core, key, "key")
        if not isinstance(key, Key):
            raise wrong("key", key, "text, or a paceline.Key")
        if key._core is not self._core:
            raise InvalidError(f"key is {key!r} of another hub; allowed: text, or a key of this one")
        return key

    # --- subscribing -----------------------------------------------------------------------------

    def mailbox(
        self,
        pattern: str,
        *,
        capacity: int = 1024,
        overflow: str = "reject",
        block: Optional[float] = None,
        by_priority: bool = False,
        lease: Optional[float] = None,
        filter: Optional[MessageFilter] = None,
        group: Optional[str] = None,
        balance: str = "round-robin",
        balance_header: Optional[str] = None,
        unique: Optional[str] = None,
        measured: bool = False,
        acknowledged: bool = False,
        supervisor: Optional[Supervisor] = None,
    ) -> Mailbox:
        """Subscribes with a mailbox for up to ``capacity`` messages, 1 to 2^24, that you empty. It ends when
        nobody has pulled for ``lease`` seconds (None: never). Only what passes ``filter`` comes in. With a
        ``group``, each message goes to one of the pattern's subscriptions that have the same: "round-robin",
        "least-loaded" or "random"; then there is no filter. "by-key", and "by-header" with the value of the header
        ``balance_header``, each key goes to one of them, in order, also while members come and go: for handlers, and for
        mailboxes that are ``acknowledged``. It is refused if the pattern has a subscription of the same ``unique``. For the overflow "block", a publisher waits for up to
        ``block`` seconds (None: without a limit), where it may; the default is to refuse, because the thread that
        pulls may be the one that publishes. With ``measured`` its ``stats`` tell how
        long messages have waited. With ``acknowledged`` what was pulled counts as running until ``acknowledge`` or
        ``bury``, and the subscription ends after the last; the ``supervisor`` counts what ``crashed`` tells, together with
        others. Raises InvalidError, ShutDownError, ForkedError."""
        settings = Settings(
            capacity,
            overflow,
            by_priority,
            filter,
            group,
            balance,
            block,
            measured,
            lease,
            balance_header,
            unique,
            acknowledged,
            supervisor,
        )
        mailbox = Mailbox(self._core, self, pattern, settings)
        self._core.add_mailbox(mailbox)
        return mailbox

    @overload
    def subscribe(
        self, pattern: str, handler: MessageHandler, **settings: Unpack[SubscriptionSettings]
    ) -> Subscription: ...

    @overload
    def subscribe(
        self, pattern: str, *, factory: HandlerFactory, **settings: Unpack[SubscriptionSettings]
    ) -> Subscription: ...

    @overload
    def subscribe(
        self, pattern: str, handler: None = None, **settings: Unpack[SubscriptionSettings]
    ) -> Callable[[MessageHandler], Subscription]: ...

    def subscribe(
        self,
        pattern: str,
        handler: Optional[MessageHandler] = None,
        *,
        capacity: int = 1024,
        overflow: str = "block",
        block: Optional[float] = None,
        by_priority: bool = False,
        filter: Optional[MessageFilter] = None,
        group: Optional[str] = None,
        balance: str = "round-robin",
        balance_header: Optional[str] = None,
        unique: Optional[str] = None,
        measured: bool = False,
        on_error: Optional[FailureHook] = None,
        retries: Union[int, Retry, None] = None,
        on_failure: str = "dead-letter",
        on_restart: Optional[RestartHook] = None,
        factory: Optional[HandlerFactory] = None,
        restarts: Optional[int] = 3,
        within: float = 5.0,
        suspension: Optional[float] = 1.0,
        longest_suspension: float = 60.0,
        supervisor: Optional[Supervisor] = None,
        batch: Optional[int] = None,
        execution: str = "serial",
        threads: int = 1,
    ) -> Any:
        """Calls ``handler(message)``, one message at a time, in order. Without a handler it is a decorator.

        With ``batch`` (1 to 65536) it is called with a ``Batch`` of up to so many messages, which is quicker: what
        follows then holds for the batch. It is tried again as a whole, and each of its messages becomes a dead
        letter.

        An ``async def`` handler is served by the event loop that runs here, and ends with it; others by a
        thread of the hub. A thread takes 16 to 256 messages at once, more of those that are handled quickly, and
        one with ``by_priority`` or "conflate"; each subscription of a thread has a descriptor. The mailbox is as
        ``mailbox`` has it, but that by default publishers wait for room ("block").

        What a handler raises is counted, kept as ``last_error``, and given to ``on_error(message,
        exception)``, or logged with its traceback: failures of the same kind once a second, with their number; as a warning
        if the message is tried again, else as an error. It is tried again as ``retries`` has it (no other comes until
        then), and then it becomes a dead letter, or is dropped ("discard") and counted as failed. An ``Exception``
        has no other consequence. What is none (SystemExit, say) is a crash: the handler is restarted, for which
        ``on_restart(exception, count)`` is called, on the thread that calls the handler. More than ``restarts``
        (None: any number) in ``within`` seconds suspend it for ``suspension`` seconds (None: until ``resume``),
        which is logged: what waits and what comes meanwhile becomes dead letters. Each suspension lasts twice as
        long as the one before, up to ``longest_suspension``, until the handler was sound for as long as that. With
        a ``supervisor`` restarts are counted together with those of others, and all are suspended as it says; the
        exception is None when another has crashed, and after a suspension.

        With a ``factory`` in place of a handler, ``factory()`` makes the handler: once now, and anew for the first message
        after each restart, so that none is called again when it has crashed. ``on_restart`` may return the new handler
        instead; None: the same goes on. If that fails, whatever it raises, the message has failed, which counts as
        another restart, and the next message has it called again. All are coroutine functions, or none.

        ``execution`` is where the handler runs. "serial": as above. "inline": in the publisher's thread, before
        publishing returns, with no mailbox; several publishers may be in it at once. "concurrent": on up to ``threads``
        threads of the pool at once, 1 to 1024; messages begin in the order of the mailbox. "strand": on the pool, one at
        a time with all others of the hub that have this, whatever their keys, in the one order in which the messages
        were published. Only a serial handler has batches, as native code brings others one message at a time, or is an
        ``async def``, as no loop runs where others are called; retries need a "serial" or "concurrent" one. Where several
        calls run at once, those that have begun go on with the handler before when another is made. KeyboardInterrupt
        and SystemExit of an inline one are raised out of publishing, too. A message costs about five times as much with
        "inline", "concurrent" and "strand" as with "serial" (29 µs were measured): native code calls Python for each one,
        and a serial handler's thread takes them in batches.

        Raises as ``mailbox``, OsError, and RuntimeError: no loop runs here.
        """
        one_of("execution", execution, EXECUTIONS)
        threads = within_range("threads", threads, 1, 1024)
        if execution != "serial":
            if batch is not None:
                raise InvalidError(f"batch is {batch!r}; allowed: None with execution={execution!r}")
        some_plain("on_error", on_error)
        some_function("handler", handler)
        times = (restarts, within, suspension, longest_suspension)
        terms = terms_of(retries, on_failure, on_restart, *times, supervisor, factory)
        settings = Settings(
            capacity,
            overflow,
            by_priority,
            filter,
            group,
            balance,
            block,
            measured,
            balance_header=balance_header,
            unique=unique,
            acknowledged=True,
            supervisor=terms.supervisor,
        )

        def decorate(function: MessageHandler) -> Subscription:
            if execution == "serial":
                return self._subscribe(pattern, function, settings, on_error, terms, batch)
            plain("handler", function)
            own = (function, replace(settings, acknowledged=False), execution, threads)
            return Subscription(self, Called(self._core, pattern, *own, on_error, terms))

        handler = first_of(handler, factory)
        return decorate if handler is None else decorate(handler)

    def _subscribe(
        self,
        pattern: str,
        handler: MessageHandler,
        settings: Settings,
        on_error: Optional[FailureHook],
        terms: Terms,
        batch: Optional[int],
    ) -> Subscription:
        function("handler", handler)
        usual = 1 if settings.by_priority or settings.overflow == "conflate" else TURN
        turn = _turn_of(batch, usual)
        loop = _loop_of(handler)
        mailbox = Mailbox(self._core, None, pattern, settings)
        served = Served(self._core, mailbox, handler, on_error, terms, turn, batch is not None)
        served.begin(loop)
        return Subscription(self, served)

    def topic(self, pattern: str, codec: Codec[T]) -> Topic[T]:
        """The topic of a key, or of all keys that a pattern matches: its messages are values of one type, which
        the codec turns into bytes (``encode(value)``) and back (``decode(payload)``); ``Json()`` is one."""
        return Topic(self, pattern, codec)

    # --- history ---------------------------------------------------------------------------------

    def query(
        self,
        pattern: str = ">",
        *,
        first: int = 0,
        last: int = 0,
        since_ns: int = 0,
        until_ns: int = 0,
        limit: Optional[int] = None,
        newest: bool = False,
    ) -> list[Message]:
        """What a history has kept of keys that the pattern matches, in order: with sequences from ``first`` to
        ``last`` (0: any), published from ``since_ns`` to ``until_ns`` (0: any), in nanoseconds since 1970; at
        most so many, the oldest or the ``newest``. Raises InvalidError, also if no history keeps all that the
        pattern matches; OsError if the archive cannot be read."""
        query = query_of(pattern, first, last, since_ns, until_ns, limit, newest)
        if limit == 0:
            return []
        pointer = self._core.native.pointer
        return asked(query, lambda query, each: lib.pace_hub_query(pointer, query, each, None, None))

    def export_lines(
        self,
        path: str,
        pattern: str = ">",
        *,
        first: int = 0,
        last: int = 0,
        since_ns: int = 0,
        until_ns: int = 0,
        limit: Optional[int] = None,
    ) -> int:
        """Writes what a history has kept to a new file of lines of JSON, which is there when all of it is; says how
        many messages. Which, is said as for ``query``. ``Archive.import_lines`` makes an archive of the file, which
        another hub can go on with. Raises as ``query``; OsError if the file cannot be written."""
        query = query_of(pattern, first, last, since_ns, until_ns, limit, False)
        pointer = self._core.native.pointer
        return exported(
            query, path, lambda query, path, count: lib.pace_hub_export(pointer, query, path, count)
        )

    @overload
    def replay(
        self, pattern: str, handler: MessageHandler, **settings: Unpack[ReplaySettings]
    ) -> Replay: ...

    @overload
    def replay(
        self, pattern: str, *, factory: HandlerFactory, **settings: Unpack[ReplaySettings]
    ) -> Replay: ...

    @overload
    def replay(
        self, pattern: str, handler: None = None, **settings: Unpack[ReplaySettings]
    ) -> Callable[[MessageHandler], Replay]: ...

    def replay(
        self,
        pattern: str,
        handler: Optional[MessageHandler] = None,
        *,
        sequence: Optional[int] = None,
        since_ns: Optional[int] = None,
        last: Optional[int] = None,
        now: bool = False,
        on_error: Optional[FailureHook] = None,
        retries: Union[int, Retry, None] = None,
        on_failure: str = "dead-letter",
        on_restart: Optional[RestartHook] = None,
        factory: Optional[HandlerFactory] = None,
        restarts: Optional[int] = 3,
        within: float = 5.0,
        suspension: Optional[float] = 1.0,
        longest_suspension: float = 60.0,
        supervisor: Optional[Supervisor] = None,
        batch: Optional[int] = None,
    ) -> Any:
        """Calls ``handler(message)`` with what a history has kept of keys that the pattern matches, and then with
        what is published, each message once, in order: from the beginning, or from this sequence, this time
        (nanoseconds since 1970), the ``last`` so many messages, or from ``now`` on. What was no longer kept when
        its turn came is in ``lost_before``. Without a handler it is a decorator.

        Who calls the handler, what a ``batch`` and a ``factory`` are, and what happens when it fails, is as with ``subscribe``, but
        that what comes while it is suspended stays in the history, and is handled after ``resume``. Its dead
        letters are delivered again as long as it lasts. Raises as ``query`` and ``subscribe``, ShutDownError."""
        some_plain("on_error", on_error)
        some_function("handler", handler)
        times = (restarts, within, suspension, longest_suspension)
        terms = terms_of(retries, on_failure, on_restart, *times, supervisor, factory)
        start = start_of(sequence, since_ns, last, now)

        def decorate(function: MessageHandler) -> Replay:
            return self._replay(pattern, function, start, on_error, terms, batch)

        handler = first_of(handler, factory)
        return decorate if handler is None else decorate(handler)

    def _replay(
        self,
        pattern: str,
        handler: MessageHandler,
        start: tuple[int, int],
        on_error: Optional[FailureHook],
        terms: Terms,
        batch: Optional[int],
    ) -> Replay:
        function("handler", handler)
        turn = _turn_of(batch, TURN)
        loop = _loop_of(handler)
        mailbox = ReplayMailbox(self._core, pattern, start, True, terms.supervisor)
        served = Served(self._core, mailbox, handler, on_error, terms, turn, batch is not None)
        served.begin(loop)
        return Replay(self, served)

    def replay_mailbox(
        self,
        pattern: str,
        *,
        sequence: Optional[int] = None,
        since_ns: Optional[int] = None,
        last: Optional[int] = None,
        now: bool = False,
        acknowledged: bool = False,
        supervisor: Optional[Supervisor] = None,
    ) -> ReplayMailbox:
        """As ``replay``, with a mailbox that you empty. With ``acknowledged`` what was pulled counts as running until
        ``acknowledge`` or ``bury``, the hub has its figures, and the ``supervisor`` counts what ``crashed`` tells.
        Raises as ``query``, ShutDownError."""
        start = start_of(sequence, since_ns, last, now)
        mailbox = ReplayMailbox(self._core, pattern, start, acknowledged, supervisor)
        self._core.add_mailbox(mailbox)
        return mailbox

    def flush(self) -> None:
        """Writes everything that was published before to all archives. When it returns, every message that the hub's
        histories have taken before the call is on disk. Raises OsError: what could not be written is tried again later;
        GivenUpError, which has the number, if messages were given up since the hub was made: all others are on disk."""
        core = self._core

        def flush() -> None:
            # On the thread that waits, which has the last error.
            given_up = ctypes.c_uint64()
            status = lib.pace_hub_flush(core.native.pointer, ctypes.byref(given_up))
            if status == layout.EGIVENUP:
                raise GivenUpError(str(error(status)), given_up.value)
            check(status)

        core._awaited(flush)

    def history_stats(self) -> list[HistoryStats]:
        """What each history has done, in the order in which they were given."""
        found: list[HistoryStats] = []
        with called_back() as calls:
            each = EACH_HISTORY(calls.guarded(lambda _, stats: found.append(stats_of(stats))))
            check(quick.pace_hub_history_stats(self._core.native.pointer, each, None))
        return found

    # --- dead letters ----------------------------------------------------------------------------

    def dead_letters(
        self,
        pattern: Optional[str] = None,
        *,
        reason: Optional[str] = None,
        subscription: int = 0,
        numbers: Optional[tuple[int, int]] = None,
        since_ns: int = 0,
        limit: Optional[int] = None,
    ) -> list[DeadLetter]:
        """Copies of the dead letters that all conditions hold for, the oldest first: whose key the pattern
        matches; that died of this ``reason`` ("failed", "panicked" or "suspended"); that were for the
        ``subscription`` of this number (see its ``stats``); with ``numbers`` from the first to the last; that
        died at ``since_ns`` or later, in nanoseconds since 1970; at most ``limit``. Raises InvalidError."""
        wanted = filter_of(pattern, reason, subscription, numbers, since_ns, limit)
        return self._letters(lib.pace_hub_dead_letters, wanted)

    def remove_dead_letters(
        self,
        pattern: Optional[str] = None,
        *,
        reason: Optional[str] = None,
        subscription: int = 0,
        numbers: Optional[tuple[int, int]] = None,
        since_ns: int = 0,
        limit: Optional[int] = None,
    ) -> list[DeadLetter]:
        """As ``dead_letters``, and takes them out."""
        wanted = filter_of(pattern, reason, subscription, numbers, since_ns, limit)
        return self._letters(lib.pace_hub_remove_dead_letters, wanted)

    def redeliver(
        self,
        pattern: Optional[str] = None,
        *,
        reason: Optional[str] = None,
        subscription: int = 0,
        numbers: Optional[tuple[int, int]] = None,
        since_ns: int = 0,
        limit: Optional[int] = None,
    ) -> Redelivered:
        """Delivers dead letters once more, each to the subscription or the replay that it was for and to no other,
        behind what waits there. The conditions are those of ``dead_letters``. Raises InvalidError, ShutDownError."""
        filter = filter_of(pattern, reason, subscription, numbers, since_ns, limit)
        done = layout.Redelivered()
        done.struct_size = ctypes.sizeof(done)
        if filter is not None:
            at = ctypes.byref(done)
            check(lib.pace_hub_redeliver(self._core.pointer(), ctypes.byref(filter), at))
        return Redelivered(done.enqueued, done.refused, done.orphaned)

    def dead_letter_stats(self) -> DeadLetterStats:
        """How many dead letters there were."""
        stats = layout.DeadLetterStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_hub_dead_letter_stats(self._core.native.pointer, ctypes.byref(stats)))
        return DeadLetterStats(*(getattr(stats, name) for name in DeadLetterStats._fields))

    def _letters(self, ask: Any, filter: Optional[layout.DeadFilter]) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        if filter is not None:
            with called_back() as calls:
                each = EACH(calls.guarded(lambda _, letter: found.append(letter_of(letter))))
                check(ask(self._core.native.pointer, ctypes.byref(filter), each, None, None))
        return found

    # --- books, and the end ----------------------------------------------------------------------

    def subscriber_count(self, key: str) -> int:
        """How many subscriptions get messages of this key. Raises InvalidError."""
        count = ctypes.c_size_t()
        pointer = self._core.native.pointer
        check(quick.pace_hub_subscriber_count(pointer, text("key", key), ctypes.byref(count)))
        return count.value

    def patterns(self) -> dict[str, int]:
        """What is subscribed to, sorted, with the number of subscriptions."""
        found: dict[str, int] = {}

        def take(_: object, pattern: layout.Text, count: int) -> None:
            found[ctypes.string_at(pattern.text, pattern.size).decode()] = count

        with called_back() as calls:
            each = _EACH(calls.guarded(take))
            check(quick.pace_hub_patterns(self._core.native.pointer, each, None))
        return found

    def errors(
        self,
        *,
        severity: str = "warning",
        event: str = "",
        origin: str = "",
        since_ns: int = 0,
        after: int = 0,
        limit: Optional[int] = None,
    ) -> list[HubError]:
        """What went wrong of late, the oldest first: at least as bad as ``severity`` ("warning" or "error");
        whose event and origin begin so; at this time or later, in nanoseconds since 1970; with greater numbers
        than ``after``; at most so many, the latest. Raises InvalidError."""
        found: list[HubError] = []
        raw = error_filter(severity, event, origin, since_ns, after, limit)
        if limit != 0:
            with called_back() as calls:
                each = EACH_ERROR(calls.guarded(lambda _, error: found.append(error_of(error))))
                pointer = self._core.native.pointer
                check(lib.pace_hub_errors(pointer, ctypes.byref(raw), each, None, None))
        return found

    def stats(self) -> dict[str, Any]:
        """All its figures as they are now: its books, ``subscriptions``, ``publishers``, ``key_counts``,
        ``dead_letters``, ``notices``, ``histories``. Times are in seconds."""
        stats: dict[str, Any] = json.loads(metrics_of(self._core.native, "hub"))
        return stats

    def metrics(self, format: str = "prometheus") -> str:
        """Its figures for others, as text ("prometheus" or "openmetrics": ``metrics_format``) or
        "json"; or all of them as JSON ("hub"). Raises InvalidError."""
        return metrics_of(self._core.native, format)

    def share_metrics(self, workers: WorkerPool) -> None:
        """Tells its figures with those of a worker pool that was made with ``metrics=True``, for as long as the
        hub lives. Raises InvalidError: it was not."""
        inside = instance("workers", workers, WorkerPool)._core.native.pointer
        check(quick.pace_hub_share_metrics(self._core.native.pointer, inside))

    def watch(
        self,
        thresholds: Iterable[Threshold],
        *,
        every: float = 1.0,
        workers: Optional[WorkerPool] = None,
    ) -> Watch:
        """Watches figures of the hub, or of a worker pool that was made with ``metrics=True``: looks at them
        each ``every`` seconds (0.001 to 86400), and publishes a notice when one of up to 1024 thresholds is
        crossed, and when its figure is back: ``$SYS.threshold.crossed`` and ``$SYS.threshold.cleared``. Raises
        InvalidError, Full, ShutDownError."""
        inside = None
        if workers is not None:
            inside = instance("workers", workers, WorkerPool)._core.native
        self._core.pointer()
        return Watch(self._core.native, inside, every, thresholds)

    def audit(self) -> HubAudit:
        """The counters of all messages, and whether they balance."""
        audit = layout.HubAudit()
        audit.struct_size = ctypes.sizeof(audit)
        check(quick.pace_hub_audit(self._core.native.pointer, ctypes.byref(audit)))
        return HubAudit(*(getattr(audit, name) for name in HubAudit.__dataclass_fields__))

    @property
    def closed(self) -> bool:
        """Whether the hub is closed: it takes no more messages."""
        return self._core.closed

    def close(self) -> None:
        """Ends all subscriptions; what waits is discarded. Waits until no handler of a thread runs, but
        not inside one. Then its histories are written, and their files closed: another hub can open them. Calling it
        again is allowed. Raises OsError if an archive cannot be written."""
        self._core.close()
        if not self._core.is_inside():
            self._core.join()
        status = lib.pace_hub_close_histories(self._core.native.pointer)
        if status != layout.EFORKED:
            check(status)

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Hub: it belongs to this process")
