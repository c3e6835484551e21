"""``Pool``: events, timers and tasks on a fixed set of Python threads."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future as StandardFuture
from dataclasses import dataclass
from enum import IntFlag
from types import TracebackType
from typing import Any, Optional, Protocol, Union

from . import _layout as layout
from ._arguments import (
    function,
    instance,
    nanos,
    number,
    one_of,
    patience,
    plain,
    some_plain,
    text,
    within,
    wrong,
)
from ._clock import monotonic
from ._counters import Audit, audit_of, waiting
from ._runner import STARTED, Posted, Unhandled
from ._errors import ForkedError, InvalidError, OsError
from ._future import Future
from ._library import check, lib, nanoseconds, quick
from ._log import Log
from ._members import Entry, Flow, Hook, Members, NormalReserve, OwnThread, current
from ._metrics import FORMATS, figures
from ._native import Native
from ._placement import Pin
from ._pool_options import Options
from ._lane import Lane, lane_of
from ._sources import Lanes
from ._slow import SlowHook
from ._scope import Scope
from ._tasks import LaneRef, Strand
from ._settings_files import Given
from ._typing import P, T


#: ``Future.__init__`` does nothing.
_new = Future.__new__


class HasFileno(Protocol):
    """A socket, a file, a queue."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


class Ready(IntFlag):
    """What a descriptor is ready for."""

    READABLE = 1
    PRIORITY = 2
    WRITABLE = 4
    ERROR = 8
    HANG_UP = 16
    READ_CLOSED = 32


class Interest(IntFlag):
    """What a handler wants to hear of. Errors and hang-ups are always told."""

    READABLE = 1
    PRIORITY = 2
    WRITABLE = 4


#: What a handler may return.
Answer = Optional[Flow]


@dataclass(frozen=True)
class ThreadStats:
    """One of the pool's own threads. Counts since the pool was made."""

    #: Its name in Python, and its number in the system, as ``top -H`` and ``/proc`` have it.
    name: str
    native_id: int
    #: "running" (a task or handler), "waiting", "set aside" (by ``set_active``) or "ended".
    state: str
    #: Which part of its time it has been running, 0.0 to 1.0. It is the time that has passed, not the time of a CPU.
    utilisation: float
    #: Tasks that it has begun, and events, timers' among them, that it has handled.
    tasks: int
    events: int
    #: The CPU that it is pinned to, and whether pinning has failed.
    cpu: Optional[int]
    pin_failed: bool
    #: The lane that it is reserved for: it runs nothing else.
    reserved: Optional[Lane]
    #: While it waited for events: how often it has led, how often handed leadership on, how often taken it from a
    #: stuck thread, and how often slept.
    terms: int
    handovers: int
    rescues: int
    parked: int


@dataclass(frozen=True)
class SetStats:
    """A handle set. ``leader`` is the ``native_id`` of the thread that leads, if one does."""

    leader: Optional[int]
    harvests: int
    surplus: int


@dataclass(frozen=True)
class Stats:
    """A pool at one moment. Each number is right; together they may be of different moments."""

    #: The pool's own threads, by their numbers.
    threads: tuple[ThreadStats, ...]
    sets: tuple[SetStats, ...]
    #: How many threads are parked now.
    parked: int
    #: Descriptors and timers that are registered natively.
    handles: int
    #: How often a thread was woken.
    wakes: int
    #: Tasks that nobody has taken.
    queued: int
    #: How many events handlers have handled.
    handled: int
    #: Exceptions that went to ``on_unhandled``.
    unhandled: int


@dataclass(frozen=True)
class Report:
    """What a shutdown came to."""

    #: Everything that was accepted has ended: nothing was cut off, cancelled or left, and no handler still runs. If it
    #: is false, the counts say what was, since the first shutdown of the pool began.
    drained: bool
    #: Called inside the pool, or in a handler of what stands on it: it ends when that has returned.
    requested: bool
    #: Tasks that were accepted and never ran.
    cancelled: int
    #: Threads that were still in a handler or task when the time was over.
    stuck: int
    #: Messages of its hubs, in mailboxes or with publishers that waited for room there, and events of its rings, which
    #: will not be handled.
    left: int = 0
    #: Of its worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that
    #: a host has pulled and not completed.
    worker_tasks: int = 0
    #: Of its servers: connections that were cut off, as they were not through.
    connections: int = 0


class Handle:
    """A registered descriptor or periodic timer. Lasts until ``close``, or until its handler returns
    DONE or raises, or until the pool is shut down; dropping it changes nothing. Any thread."""

    def __init__(self, entry: Entry, pool: Pool) -> None:
        self._entry = entry
        # While there is a handle the pool is not lost.
        self._pool = pool

    def pause(self) -> None:
        """Holds further calls back; what arrives meanwhile is kept, and delivered after ``resume``.

        The handler of a level-triggered descriptor is not called at all. That of an edge-triggered one
        (``level=False``) is still told of an error or a hang-up, once in each pause. A call that has begun
        is not interrupted. Of this and ``resume``, by all threads, the last call counts. Raises StaleError if
        closed.
        """
        entry = self._entry
        check(quick.pace_handle_pause(entry.runner.native.pointer, entry.native))

    def resume(self) -> None:
        """Ends a pause, also one that the handler, which runs now, asks for by ``Flow.PAUSE`` when it returns.
        Raises StaleError if closed."""
        entry = self._entry
        check(quick.pace_handle_resume(entry.runner.native.pointer, entry.native))

    def close(self) -> bool:
        """Deregisters. No call of the handler begins after this; closing again does nothing.

        True: none runs any more either. Outside handlers this waits for that. Inside a handler of
        the same pool it does not, as two could wait for each other: False says that the handler
        still runs on another thread.
        """
        return self._entry.runner.deregister(self._entry)

    @property
    def closed(self) -> bool:
        """Whether the handle is deregistered: its handler is not called again."""
        return self._entry.closed

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Handle: it belongs to this process")


class Timer:
    """Something that runs once, later. Dropping it changes nothing. Any thread."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def cancel(self) -> bool:
        """True: it will not run. False: it has run, runs, or was cancelled before."""
        entry = self._entry
        if entry.closed or not entry.runner.native.cancel_timer(entry.native):
            return False
        entry.closed = True
        entry.end()
        return True

    def postpone(self, seconds: float) -> bool:
        """Puts it off until ``seconds`` from now, which must not be earlier than it was due (then
        nothing changes). False: too late."""
        entry = self._entry
        return not entry.closed and entry.runner.native.postpone_timer(
            entry.native, nanos("seconds", seconds)
        )

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Timer: it belongs to this process")


class Pool:
    """A leader/followers pool whose threads are Python's.

    ``threads`` (default: the number of CPUs that the process may use, at most 4) follow, lead, and run tasks and handlers. With
    0 there are none: a host calls ``join``, when ``fileno`` is readable or for a time. Handlers and
    posted tasks that raise are reported through ``on_unhandled(exception)``, by default
    ``threading.excepthook``, and the thread goes on; SystemExit, which that leaves out, and what callbacks
    raise, are logged. A handler that raises is deregistered. ``log`` is told what happens in it, and in
    all that stands on it. All methods may be called by any
    thread, also inside handlers, except where noted.

    ``pin`` says on which CPU each thread runs: "none" (the system decides; the default), "compact" (one cache of level 3
    is filled after the other), "spread" (packages, caches and cores in turn), or CPUs, as "0,2,4-7" or numbers, which
    the threads get in turn. ``pin_strict``: a thread that cannot be pinned makes this raise OsError; otherwise only
    ``stats`` tells. Of other pools' CPUs it does not know.

    ``on_thread_start(number)`` is called on each of the pool's threads first of all, ``on_thread_end(number)`` last of
    all; numbers begin with 0. What they raise goes to ``on_unhandled``, and the thread goes on.

    ``on_slow(report)`` is told, by a SlowReport, of each handler and task that takes longer than ``slow_limit``, 0.00001 to
    86,400 seconds: once while it still runs, or when it returns if that is earlier or no thread was free to watch. It
    must be quick and must not block. What it raises goes to ``on_unhandled``. With it the clock is read around every
    handler and task, and an idle thread looks every ``watch_period`` while any runs.

    ``source``: "epoll" (the default), or "ring", which has no descriptors, only tasks, timers and rings, and waits
    without one. ``promotion``: "deferred" (the default), or "eager" for handlers that always block: before each event is
    handled another thread is woken to lead, and others take over what waits behind it. ``spin``: for so many
    seconds, 0 (the default) to 0.1, a thread that waits for events asks for them again and again before it sleeps.
    ``max_turn``: how long a thread works on ready work, in seconds, 0.00001 to 1, before it looks at everything that
    waits; by default 0.001. ``watch_period``: how long a handler may run, in seconds, 0.00001 to 1, before others take over what waits behind
    it; by default 0.002.

    ``settings`` is a file, JSON or YAML by its name, several, of which later ones win, or Settings, whose section ``pool`` says what is not given here, and
    ``environment`` lets variables PACELINE_POOL_… win over it. InvalidError tells all that is wrong in them; the settings
    leaders (but 1) and stack_size are, for a pool of Python's threads.

    ``name`` ("paceline") is what threads are called by, with their numbers; ``max_joined`` (4; 1 to 16) how many
    threads may be in ``join`` at once; ``max_handles`` (4,194,304) how many handles and timers there may be.

    ``lane_capacity`` (8192) is how many tasks may wait in each lane, and ``strand_capacity`` (1024) in each strand: 2 to
    2**24. Threads that submit at the same moment may exceed it by one each.

    ``reserve`` adds threads that run nothing but tasks of a lane, as {Lane.CRITICAL: 1}, 0 to 48 for each: with all
    others inside long tasks these still start at once. They handle no events, and are the last by number. ``ageing``:
    once something has waited in a lane for so many seconds, 0.001 to 3600, by default 1, each fourth task is of that lane,
    or of such lanes in turn, until it has begun; it is noticed between one and two times this. CRITICAL never ages.
    ``math.inf``: nothing does.

    Unlike in the other languages there is one handle set, which one thread at a time waits at: threads leave the native
    pool to run Python, so a second set could have no thread that waits at it.

    A pool left open at the interpreter's end is shut down: what runs is waited for, what has not
    begun is cancelled. One that is lost, so that no name, handle, ring, lane or strand refers to it,
    runs what was accepted and ends. In a child made by fork it raises ForkedError.
    """

    def __init__(
        self,
        threads: Optional[int] = None,
        *,
        name: Optional[str] = None,
        max_handles: Optional[int] = None,
        max_joined: Optional[int] = None,
        on_unhandled: Optional[Unhandled] = None,
        log: Optional[Log] = None,
        pin: Optional[Pin] = None,
        pin_strict: Optional[bool] = None,
        source: Optional[str] = None,
        promotion: Optional[str] = None,
        spin: Optional[float] = None,
        max_turn: Optional[float] = None,
        watch_period: Optional[float] = None,
        lane_capacity: Optional[int] = None,
        strand_capacity: Optional[int] = None,
        reserve: Optional[Mapping[Lane, int]] = None,
        ageing: Optional[float] = None,
        on_slow: Optional[SlowHook] = None,
        slow_limit: Optional[float] = None,
        on_thread_start: Optional[Hook] = None,
        on_thread_end: Optional[Hook] = None,
        settings: Given = None,
        environment: bool = False,
    ) -> None:
        for hook, function_of_it in (
            ("on_unhandled", on_unhandled),
            ("on_slow", on_slow),
            ("on_thread_start", on_thread_start),
            ("on_thread_end", on_thread_end),
        ):
            some_plain(hook, function_of_it)
        options = Options(settings, environment)
        cpus = options.take(
            threads,
            name,
            max_handles,
            max_joined,
            pin,
            pin_strict,
            source,
            promotion,
            spin,
            max_turn,
            watch_period,
            lane_capacity,
            strand_capacity,
            reserve,
            ageing,
        )
        limit = options.limit(on_slow, slow_limit)
        if log is not None:
            options.config.log = instance("log", log, Log).native.pointer
        #: It tells as long as there are pools that have it.
        self._log = log
        members = NormalReserve if Lane.NORMAL in options.reserve else Members
        self._runner = runner = members(
            options.threads,
            options.name,
            on_unhandled,
            options.max_joined,
            options.config,
            cpus,
            on_thread_start,
            on_thread_end,
            options.patience,
        )
        if runner.closed is not None:
            raise runner.refusal()
        if on_slow is not None:
            runner.report_slow(limit, on_slow)
        self._lanes = Lanes(runner, options.reserve, options.ageing)
        # A lost pool, one that nothing refers to, ends by itself.
        self._lost = weakref.ref(self, lambda _: runner.close("shutdown"))
        runner.announce_host()
        while runner.missing:
            runner.spawn()
        runner.spawn_reserved()
        if options.pin_strict:
            try:
                runner.check_pinned()
            except OsError:
                runner.exit()
                raise

    # --- tasks -----------------------------------------------------------------------------------

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> StandardFuture[T]:
        """Lets a thread call ``fn(*args, **kwargs)``; the future has what comes of it.

        While its lane is full, ``lane_capacity``, this waits; in a handler or task of the pool, or of what stands on it,
        it never waits: it raises Full. Raises ShutDownError, a RuntimeError, after ``shutdown``, also if that begins
        meanwhile; ForkedError.
        """
        if not callable(fn):
            function("fn", fn)
        future: Future[T] = _new(Future)
        runner = self._runner
        if len(runner.tasks) >= runner.lane_capacity:
            self._lanes.admit_one()
        runner.add((future, fn, args, kwargs))
        return future

    def post(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """As ``submit``, when nobody waits for it. What it raises goes to ``on_unhandled``."""
        function("fn", fn)
        runner = self._runner
        if len(runner.tasks) >= runner.lane_capacity:
            self._lanes.admit_one()
        runner.add((Posted(runner.unhandled_in), fn, args, kwargs))

    def try_submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> StandardFuture[T]:
        """As ``submit``, and never waits. Raises Full, ShutDownError, ForkedError."""
        return self.lane(Lane.NORMAL).try_submit(fn, *args, **kwargs)

    def try_post(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """As ``post``, and never waits. Raises Full, ShutDownError, ForkedError."""
        self.lane(Lane.NORMAL).try_post(fn, *args, **kwargs)

    def submit_batch(
        self, fn: Callable[..., T], /, *iterables: Iterable[Any]
    ) -> list[StandardFuture[T]]:
        """A future for each call of ``fn`` with the iterables' items side by side.

        Those that there is no room for wait until there is some. In a handler or task this raises Full instead, and none
        of them is taken."""
        return self.lane(Lane.NORMAL).submit_batch(fn, *iterables)

    def post_batch(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> None:
        """As ``submit_batch``, when nobody waits for it."""
        self.lane(Lane.NORMAL).post_batch(fn, *iterables)

    def lane(self, lane: Union[Lane, int]) -> LaneRef:
        """The same methods, for tasks that are more or less urgent than others.

        The most urgent lane that has a task begins it first. So that none starves, the lower lanes have turns: after
        8 tasks of CRITICAL up to 5 of HIGH begin, after 13 of these two up to 3 of NORMAL, and after 15 of all others
        one of LOW. So when all lanes have tasks, of 64 that begin 32 are CRITICAL, 18 HIGH, 10 NORMAL and 4 LOW, and
        of 17 in a row one is LOW whatever waits in the others. A strand's turn, of up to 32 tasks, is one NORMAL task here. While a thread looks which
        task is next, others may begin NORMAL ones. Raises InvalidError.
        """
        return LaneRef(self, self._lanes, lane_of("lane", lane))

    def scope(self) -> Scope:
        """Tasks that have all run when a block ends: ``with pool.scope() as scope: scope.post(work, item)``."""
        return self.lane(Lane.NORMAL).scope()

    def strand(self) -> Strand:
        """A new strand: tasks that run one at a time, in order. Raises ShutDownError, ForkedError."""
        self._runner.check_open()
        return Strand(self, self._runner)

    # --- events ----------------------------------------------------------------------------------

    def register(
        self,
        io: Union[HasFileno, int],
        on_ready: Callable[[Any, Ready], Answer],
        *,
        interest: Interest = Interest.READABLE,
        level: bool = True,
        may_block: bool = False,
        paused: bool = False,
    ) -> Handle:
        """Calls ``on_ready(io, ready)`` whenever ``io``, a socket or descriptor, is ready.

        One call at a time. Edge-triggered (``level=False``), ``io`` must be non-blocking, and the
        handler must go on until BlockingIOError before it returns. ``may_block``: others take over
        what waits behind the handler before it is called. ``io`` is kept alive, and its descriptor
        duplicated, until the handle is closed: close the handle before, or with, ``io``.

        Raises OsError if it cannot be waited for (regular files cannot), InvalidError, Full when
        ``max_handles`` are in use, ShutDownError, ForkedError.
        """
        if isinstance(io, int):
            fd = io
        elif callable(getattr(io, "fileno", None)):
            fd = io.fileno()
        else:
            raise wrong("io", io, "a socket, something with fileno(), or a descriptor")
        wanted = number("interest", interest, "paceline.Interest")

        def call(ready: int) -> Answer:
            return on_ready(io, Ready(ready))

        plain("on_ready", on_ready)
        entry = self._runner.register(fd, call, on_ready, wanted, level, may_block, paused)
        return Handle(entry, self)

    def after(self, seconds: float, fn: Callable[..., object], /, *args: Any) -> Timer:
        """Calls ``fn(*args)`` once, ``seconds`` from now. Raises InvalidError, ShutDownError."""
        plain("fn", fn)
        delay = nanos("seconds", seconds)
        return Timer(self._runner.after(delay, lambda _: _nothing(fn(*args)), fn))

    def every(self, seconds: float, fn: Callable[..., Answer], /, *args: Any) -> Handle:
        """Calls ``fn(*args)`` every ``seconds`` (at least 0.000001), first after one period, until it
        returns DONE or raises. Runs that were missed are skipped. Raises as ``after``."""
        plain("fn", fn)
        period = nanos("seconds", seconds)
        return Handle(self._runner.every(period, lambda _: fn(*args), fn), self)

    def set_active(self, threads: int) -> None:
        """Lets only the first ``threads`` of the pool's own threads work: 1 to as many as there are. The others finish
        what they are at, and wait outside until more are wanted, or the pool is shut down. Raises InvalidError,
        ShutDownError, ForkedError. Any thread, also in handlers; it does not wait."""
        runner = self._runner
        runner.check_open()
        if runner.most == 0:
            raise InvalidError("set_active is for pools that have threads")
        runner.set_active(within("threads", threads, 1, runner.most))

    # --- hosts -----------------------------------------------------------------------------------

    def fileno(self) -> int:
        """A descriptor that is readable while a ``join(0)`` would find something. For a pool without
        threads; it belongs to the pool: never read or close it. Raises InvalidError if it has some."""
        self._runner.check_open()
        if self._runner.threads:
            raise InvalidError("fileno is for pools without threads")
        return self._runner.native.queue.fileno()

    def join(self, seconds: Optional[float] = 0) -> int:
        """Lets this thread take part: runs what there is, or waits for something for up to
        ``seconds`` (None: for ever) and runs that; says how many tasks and events it ran.

        KeyboardInterrupt and SystemExit out of a task or handler are raised here, when its future has them
        or its handle is closed; what else was found is left to the next call. Raises DeadlockError inside a handler or task, Full when ``max_joined`` are here already.
        """
        runner = self._runner
        if runner.closed == "forked":
            raise ForkedError("the pool belongs to the process that this one was forked from")
        seconds = patience("seconds", seconds)
        end = None if seconds is None else monotonic() + seconds
        while True:
            left = None if end is None else max(0.0, end - monotonic())
            ran = runner.take_part(left)
            over = runner.closed is not None or end is not None and monotonic() >= end
            if ran or over:
                return ran

    # --- the end, and books ----------------------------------------------------------------------

    def shutdown(self, drain: Optional[float] = 0) -> Report:
        """Accepts nothing more from anybody, and lets what was accepted end, for up to ``drain`` seconds (None: as
        long as it takes; 0: as ``stop_now``). Then it cancels what has not begun, and ends events, timers and threads.

        In this order: tasks; then what stands on the pool: servers answer the requests that they have taken and
        close their connections, worker pools run their tasks with the retries that are due in time, hubs deliver
        what was published; others than tasks and handlers may publish no more, and get ShutDownError. Connections
        that are not through in time are cut off, and counted. What has host threads of its own, or none, has to go on
        pulling meanwhile.

        Waits for what runs as long. Inside a handler of the pool, or of what stands on it, it is only a request: it
        waits for nothing, and the rest is done by a thread of its own. Calling it again is allowed."""
        drain = patience("drain", drain)
        return self._end(drain)

    def stop_now(self) -> Report:
        """As ``shutdown``, without a drain: what has not begun is cancelled, and connections are cut off."""
        return self._end(0.0)

    def _end(self, drain: Optional[float], longest: Optional[float] = None) -> Report:
        """Without a ``drain``, what stands on the pool may take ``longest``."""
        runner = self._runner
        waits = drain is None or drain > 0
        if not waits:
            runner.close("shutdown")
        elif not any(part.serves() for part in list(runner.parts)):
            runner.drain()
        inside = current()
        if inside is not None and inside.runner is runner or waits and runner.is_host_here():
            cancelled = 0
            if waits:
                self._end_apart(drain, longest)
            else:
                cancelled = runner.stop()
            return _report(runner, cancelled, 0, requested=True)
        end = None if drain is None else monotonic() + drain
        if waits:
            self._drain(end, end if longest is None else monotonic() + longest)
        cancelled = runner.stop()
        drained = not waits or runner.ended is None or bool(runner.ended.drained)
        grace = None if end is None else max(0.0, end - monotonic())
        runner.join(_GRACE if grace is not None and grace < _GRACE else grace)
        stuck = sum(thread.is_alive() for thread in runner.threads)
        return _report(runner, cancelled, stuck, drained=drained)

    def _end_apart(self, drain: Optional[float], longest: Optional[float]) -> None:
        try:
            ends = threading.Thread(name="paceline_shutdown", target=self._end, args=(drain, longest))
            ends.start()
        except RuntimeError:
            # There are no more threads, or the interpreter ends: what runs now is the last.
            self._runner.stop()

    def _drain(self, end: Optional[float], end_of_parts: Optional[float]) -> None:
        """What stands on the pool has until its own end, in which what is the pool's own may still be under way."""
        runner = self._runner

        def left() -> Optional[float]:
            return None if end_of_parts is None else max(0.0, end_of_parts - monotonic())

        def hubs_remain() -> bool:
            late = end_of_parts is not None and monotonic() >= end_of_parts
            return not late and any(part.remains(end_of_parts) for part in list(runner.parts))

        # Their handlers may want the pool's threads.
        runner.drain_servers(left())
        runner.drain()
        runner.await_until(lambda: runner.is_through() and not hubs_remain(), end)
        runner.drain_natively(nanoseconds(left()))
        # What its last tasks have published.
        runner.await_until(lambda: not hubs_remain(), end)

    def metrics(self, format: str = "prometheus") -> str:
        """Its native figures and those of all that stands on it (servers, HTTP by route, datagram sockets, worker pools,
        hubs, completion queues), those of the process and the system, and those of the file systems of ``add_disk``, as text
        ("prometheus" or "openmetrics": ``metrics_format``) or "json". ``WorkerPool.metrics`` has these and its own.
        Raises InvalidError."""
        pointer = self._runner.native.pointer
        wanted = one_of("format", format, FORMATS)
        return figures(wanted, lambda *room: lib.pace_pool_metrics(pointer, *room))

    def add_disk(self, path: str) -> None:
        """From now on ``metrics`` tells the free space and the size of the file system that the path is on, and so do
        those of worker pools on this pool. Raises OsError if there is no such path."""
        check(lib.pace_pool_disk(self._runner.native.pointer, text("path", path)))

    def trace(self, time: float, *, records: int = 65536) -> str:
        """Records for ``time`` seconds, up to 3600, what each thread of the pool does: terms of leadership, waits, parking, native
        handlers by name with how long they took, and who woke, relieved or rescued whom. The text is JSON of the Trace
        Event format, which https://ui.perfetto.dev and chrome://tracing open. Tasks and handlers in Python are taken from
        the pool as data, so they are in it as gaps between these. The calling thread sleeps meanwhile. A thread keeps its
        last ``records`` records, 64 to 2**24, of 32 bytes each. Raises InvalidError, also if the pool is recorded already,
        and ShutDownError."""
        asked, kept = nanos("time", time), within("records", records, 64, 1 << 24)
        raw = ctypes.c_void_p()
        check(lib.pace_pool_trace(self._runner.native.pointer, asked, kept, ctypes.byref(raw)))
        with Native(raw, lib.pace_trace_free) as trace:
            json = layout.Text()
            check(quick.pace_trace_json(trace.pointer, ctypes.byref(json)))
            return ctypes.string_at(json.text, json.size).decode()

    def stats(self) -> Stats:
        """How the pool is doing. For people and dashboards; ``audit`` is for tests."""
        runner = self._runner
        native = runner.native
        pool = native.stats()
        rows = [native.thread_stats(row) for row in range(pool.threads)]
        by_id = {row.native_id: row for row in rows}
        sets = [native.set_stats(row) for row in range(pool.sets)]
        return Stats(
            threads=tuple(
                _thread_stats(own, by_id.get(own.native_id))
                for _, own in sorted(runner.own.copy().items())
            ),
            sets=tuple(
                SetStats(
                    leader=None if row.leader == layout.NONE else rows[row.leader].native_id,
                    harvests=row.harvests,
                    surplus=row.surplus,
                )
                for row in sets
            ),
            parked=pool.parked,
            handles=pool.handles,
            wakes=pool.wakes,
            queued=waiting(runner),
            handled=runner.handled_before + sum(each.handled for each in runner.members),
            unhandled=runner.unhandled,
        )

    def audit(self) -> Audit:
        """The books of tasks; exact while nothing runs. Events and timers are not in them."""
        return audit_of(self._runner)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        # What stands on the pool may wait for somebody who does not come any more.
        self._end(None, _LAST_DRAIN) if kind is None else self._end(0.0)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Pool: it has threads of this process")


#: How long a shutdown without time waits for threads that are about to end. Seconds.
_GRACE = 0.1


#: How long the end of ``with`` waits at most for what stands on the pool. Seconds.
_LAST_DRAIN = 30.0


def _report(
    runner: Members, cancelled: int, stuck: int, *, requested: bool = False, drained: bool = True
) -> Report:
    ended = runner.ended or layout.Report()
    # In mailboxes, or in the hands of host threads.
    left = runner.left
    if left is None:
        left = ended.left + sum(part.left() for part in list(runner.parts))
    connections = ended.connections + runner.connections
    lost = left + ended.worker_tasks + connections
    return Report(
        drained=drained and not (requested or cancelled or stuck or lost),
        requested=requested,
        cancelled=cancelled,
        stuck=stuck,
        left=left,
        worker_tasks=ended.worker_tasks,
        connections=connections,
    )


def _thread_stats(own: OwnThread, row: Optional[layout.ThreadStats]) -> ThreadStats:
    member = own.member
    if row is not None:
        # It may lose its place in the native pool to a host, but counts never fall.
        own.turns = row
    turns = own.turns
    return ThreadStats(
        name=own.name,
        native_id=own.native_id,
        state=own.state,
        utilisation=own.utilisation(),
        tasks=own.books[STARTED],
        events=own.handled + (0 if member is None else member.handled),
        cpu=own.cpu,
        pin_failed=own.pin_failed,
        terms=turns.terms,
        handovers=turns.handovers,
        rescues=turns.rescues,
        parked=turns.parked,
        reserved=None if own.reserve is None else own.reserve.lane,
    )


def promote_new_leader() -> None:
    """Inside a handler of a pool, or a task: "I am about to block". Other threads take over the events that this one has
    pulled and not handled. Elsewhere it does nothing. Any thread; it does not wait.

    Leadership itself needs no hand-over here: a thread of Python's leads only while it waits for events, and has left
    before its handlers run."""
    member = current()
    if member is not None:
        member.give_back()


def _nothing(_: object) -> None:
    """What a one-shot timer's function returns is no answer."""


def members_of(pool: Pool) -> Members:
    """The threads of a pool that somebody has given."""
    return instance("pool", pool, Pool)._runner
