"""``WorkerPool``: tasks with names, priorities, retries and limits, whose functions are Python's.

| file | idea |
|---|---|
| `_worker_pool.py` | the threads, and what they share |
| `_completer.py`, `_coroutines.py` | how attempts are completed; those of coroutines |
| `_calls.py` | functions whose calls are submitted; periodic ones |
| `_task.py`, `_attempt.py` | what a submitter has of a task, and what its function has of an attempt |
| `_policy.py`, `_keys.py` | settings of names and tasks; numbers for their keys |
| `_middleware.py` | middleware |
| `_scaling.py` | how many threads are active |
| `_metrics.py` | figures of a program's own |
| `_reports.py` | figures, books, health, and how the end went |
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import weakref
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import update_wrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Optional, Protocol, TypedDict, Union, overload

import paceline

from . import _layout as layout
from ._arguments import (
    defined_again,
    instance,
    is_coroutine_function,
    items,
    one_of,
    patience,
    plain,
    some_text,
    text,
    whole,
    within,
)
from ._clock import monotonic
from ._middleware import Middleware
from ._calls import HELD, Calls, Periodic, TaskFunction
from ._contain import shown
from ._completer import Completer
from ._coroutines import Coroutines
from ._worker_pool import Core, Hand
from ._errors import InvalidError
from ._hosts import Native
from ._library import check, lib, quick
from ._log import Log
from ._metrics import FORMATS, Counter, Gauge, Histogram, figures, kind_of, make
from ._policy import (
    Chosen,
    OverloadPolicy,
    Priority,
    Rate,
    Retry,
    RetryBudget,
    full_of,
    kind_config,
    retry_of,
)
from ._pool import Pool
from ._reports import TaskTypeStats, ShutdownReport, WorkersAudit, WorkersHealth, WorkerStats
from ._scaling import Scaling
from ._settings_files import Given, load
from ._typing import P, T, Unpack

if TYPE_CHECKING:
    from ._durable import DurableDecorator
else:
    DurableDecorator = Any

#: What a file says of ``full``.
_POLICIES = {
    layout.OVERLOAD_REJECT: "reject",
    layout.OVERLOAD_WAIT: "wait",
    layout.OVERLOAD_RUN_HERE: "run_here",
    layout.OVERLOAD_DROP_OLDEST: "drop_oldest",
}


#: How many threads a worker pool has that is made without a number: ``python -m paceline.worker`` may be given one.
usual_threads = 4


class TaskSettings(TypedDict, total=False):
    """What ``WorkerPool.task`` takes."""

    name: Optional[str]
    priority: Priority
    retries: Union[int, Retry, None]
    timeout: Optional[float]
    queue_timeout: Optional[float]
    deadline: Optional[float]
    soft_timeout: Optional[float]
    grace: Optional[float]
    budget: Optional[RetryBudget]
    rate: Optional[Rate]
    max_running: Optional[int]
    full: Optional[OverloadPolicy]
    overlap_retries: bool
    lease: Optional[float]
    durable: Literal[False]


class TaskDecorator(Protocol):
    """What ``WorkerPool.task`` returns without a function."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> TaskFunction[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> TaskFunction[P, T, T]: ...


class WorkerPool:
    """A worker pool over ``pool``, whose threads keep time and order; its tasks run on ``threads`` host
    threads (None: 4, or what ``python -m paceline.worker`` was given), without a native call into Python.

    ``@workers.task(…)`` makes a function one whose calls can be submitted. Other keywords, all optional:
    ``max_waiting`` (tasks that may wait for their key, and for the rate of each name: 65,536),
    ``max_queued`` (that may wait for a thread: 2**20), ``max_tasks`` (Tasks that may be held at once:
    2**22), ``seed`` (of the jitter), ``metrics`` (count for ``metrics()``), ``middleware`` (what runs
    around each attempt, the first outermost), ``log`` (a Log for its tasks in place of the pool's: each end of a task is
    a record of it at the level debug, with ``id``, ``name``, ``attempts``, ``queue_ns``, ``run_ns`` and ``thread``).

    ``full`` is what is done with a task for which there is no room, unless its name or itself says
    otherwise: "reject" (default: an event loop that submits is not held up, and nobody waits for room that
    his own Tasks take), it raises Full; "wait", its submitter waits, or for so many seconds at
    most; "run_here", its submitter runs what waits until there is room. Inside a task, and on the threads of
    ``pool``, the last two raise Full: they could wait for themselves. "drop_oldest": once ``max_droppable`` (8192) tasks of this policy
    wait, the oldest of the lowest lane ends as REJECTED, for one of its own lane or a higher one.

    ``scaling`` adapts the number of active threads to how long tasks wait, see Scaling; ``set_active`` sets
    it. The others are parked, and cost nothing.

    ``settings`` is a file, JSON or YAML by its name, several, or Settings, whose section ``workers`` says what is not given here
    (``full``, ``max_waiting``, ``max_droppable``, ``min_active``), and with ``environment`` variables
    PACELINE_WORKERS_… win over it. What is wrong in them is named by an InvalidError, all at once.

    Calls of a coroutine function (``async def``) run on an event loop: ``loop``, which the program runs, or None for one
    of the worker pool's own, on a thread of its own, which is made for the first such call. They hold none of the
    ``threads``: ``max_running`` of their name bounds how many are under way. Retries, limits and reports are as for other
    tasks; a coroutine that is to give up is cancelled (it gets asyncio.CancelledError, once). It must not block.

    A thread takes what is quick in batches. How long an attempt may take counts from when a thread took
    it; a function that ignores that it was cancelled cannot be killed: who waits in ``result`` gets
    TimeoutError all the same, callbacks and coroutines when a thread is free, and ``health`` says so. Left open at the interpreter's end, or lost, what has not begun is cancelled and
    what runs is asked to stop, and waited for. With ``threads=0`` you call ``run`` when ``fileno`` is
    readable. In a child made by fork it raises ForkedError. All methods may be called by any thread.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        threads: Optional[int] = None,
        name: str = "workers",
        max_waiting: Optional[int] = None,
        max_queued: int = 1 << 20,
        max_tasks: int = 1 << 22,
        max_droppable: Optional[int] = None,
        full: Optional[OverloadPolicy] = None,
        seed: int = 0,
        metrics: bool = False,
        scaling: Optional[Scaling] = None,
        middleware: Iterable[Middleware] = (),
        log: Optional[Log] = None,
        loop: Optional[asyncio.AbstractEventLoop] = None,
        settings: Given = None,
        environment: bool = False,
    ) -> None:
        layers = tuple(items("middleware", middleware, "an iterable of paceline.Middleware"))
        for layer in layers:
            instance("middleware", layer, Middleware)
            for method in ("before", "after", "on_error"):
                plain(f"middleware.{method}", getattr(layer, method))
        if scaling is not None:
            instance("scaling", scaling, Scaling)
        if log is not None:
            instance("log", log, Log)
        if loop is not None:
            instance("loop", loop, asyncio.AbstractEventLoop, "an event loop of asyncio")
        config = layout.WorkersConfig()
        check(quick.pace_workers_config_init(ctypes.byref(config), ctypes.sizeof(config)))
        load(config, lib.pace_workers_config_load, settings, environment)
        if max_waiting is not None:
            config.max_waiting = whole("max_waiting", max_waiting)
        if max_droppable is not None:
            config.max_droppable = within("max_droppable", max_droppable, 1, 1 << 24)
        full = full_of(full) or _POLICIES.get(config.full, "reject")
        if scaling is None and config.scaling:
            scaling = Scaling(min_active=config.min_active)
        # Threads and room are this side's.
        config.scaling, config.full = False, layout.OVERLOAD_DEFAULT
        config.max_queued = whole("max_queued", max_queued)
        config.max_tasks = whole("max_tasks", max_tasks)
        config.seed = whole("seed", seed, 64)
        config.metrics = metrics
        config.name = text("name", name)
        if log is not None:
            config.log = log.native.pointer
        self._functions: dict[str, TaskFunction[..., Any, Any]] = {}
        self._durable: list[weakref.ref[paceline.DurableQueue]] = []
        count = usual_threads if threads is None else threads
        self._core = core = Core(pool, name, count, config, loop)
        core.middleware, core.log, core.full = layers, log, full
        core.max_droppable = config.max_droppable or core.max_droppable
        if scaling is not None:
            core.scale(scaling)
        # A lost worker pool ends by itself. It and its functions refer to each other, and of such a cycle
        # a weak reference's own callback would not be called.
        weakref.finalize(self, core.exit).atexit = False
        core.start()

    # --- tasks -------------------------------------------------------------------------------------

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, T]], /, **settings: Unpack[TaskSettings]
    ) -> TaskFunction[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def task(
        self, function: Callable[P, T], /, **settings: Unpack[TaskSettings]
    ) -> TaskFunction[P, T, T]: ...

    @overload
    def task(self, function: None = None, /, **settings: Unpack[TaskSettings]) -> TaskDecorator: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: Optional[str] = None,
        retries: Union[int, Retry, None] = None,
        timeout: Optional[float] = None,
        soft_timeout: Optional[float] = None,
        rate: Optional[Rate] = None,
        max_running: Optional[int] = None,
        durable: Union[paceline.DurableQueue, Literal[True]],
    ) -> DurableDecorator: ...

    def task(
        self,
        function: Optional[Callable[..., Any]] = None,
        /,
        *,
        name: Optional[str] = None,
        priority: Priority = "normal",
        retries: Union[int, Retry, None] = None,
        timeout: Optional[float] = None,
        queue_timeout: Optional[float] = None,
        deadline: Optional[float] = None,
        soft_timeout: Optional[float] = None,
        grace: Optional[float] = None,
        budget: Optional[RetryBudget] = None,
        rate: Optional[Rate] = None,
        max_running: Optional[int] = None,
        full: Optional[OverloadPolicy] = None,
        overlap_retries: bool = False,
        lease: Optional[float] = None,
        durable: Union[paceline.DurableQueue, bool] = False,
    ) -> Any:
        """Decorates a function, so that its calls can be submitted as tasks of a name (default: the
        function's). In a class it is a method, whose calls have the object; a classmethod or a staticmethod is
        decorated from outside. The calls of a coroutine function (``async def``) run on an event loop, see WorkerPool; a generator function is refused. Times are seconds; None means no limit.

        ``retries``: how many, with exponential delays, or a Retry. ``timeout``: how long each attempt may
        take, ``queue_timeout``: how long a task may wait for the first one, ``deadline``: how long it may
        take in all; after ``soft_timeout`` an attempt is only asked to give up; ``grace`` (default: one
        second) is how long an attempt whose time is over, and that another might follow, may take to return.
        ``budget`` bounds the retries of the name, ``rate`` how many attempts start, ``max_running`` how many
        run at once; ``full`` is what is done when there is no room. With ``overlap_retries`` an attempt whose
        ``timeout`` is over does not hold up the next one, which starts when a thread is free: both may run at
        once, and what the one that was overtaken comes to is discarded and counted.
        After ``lease`` (1 ms or more) without ``current_attempt().heartbeat()`` the thread of an attempt counts
        as gone: the attempt has failed, and a retry may run beside it if the thread was not gone. None: it is
        waited for.
        ``durable``: its tasks are those of this DurableQueue, see ``DurableQueue.task``; True: of the one that this has.

        Raises InvalidError; also if another function of this name has other settings already. If the same one is defined
        again with other settings, as by a notebook's cell, its tasks have a name of their own, "f#2", and those of before
        go on as they were. What is known of a name is kept as long as the pool, so let names be few.
        """
        some_text("name", name)
        if durable:
            usual = (priority, queue_timeout, deadline, grace, budget, full, overlap_retries, lease)
            if usual != ("normal", None, None, None, None, None, False, None):
                allowed = "name, retries, timeout, soft_timeout, rate and max_running"
                raise InvalidError(f"durable is given; allowed beside it: {allowed}")
            return self._durable_of(durable).task(
                function,
                name=name,
                retries=retries,
                timeout=timeout,
                soft_timeout=soft_timeout,
                rate=rate,
                max_running=max_running,
            )
        base = Chosen(
            priority,
            retries,
            timeout,
            queue_timeout,
            deadline,
            full=full_of(full),
            overlaps=bool(overlap_retries) or lease is not None,
            leased=lease is not None,
        )
        config = kind_config(
            priority=priority,
            retry=retry_of(retries),
            timeout=timeout,
            queue_timeout=queue_timeout,
            deadline=deadline,
            soft_timeout=soft_timeout,
            grace=grace,
            budget=budget,
            rate=rate,
            max_running=max_running,
            overlap_retries=overlap_retries,
            lease=lease,
        )

        def decorate(function: Callable[..., Any]) -> TaskFunction[..., Any, Any]:
            # Only what they hold can be called before they are bound.
            inner = function.__func__ if isinstance(function, HELD) else function
            own = base
            if is_coroutine_function(inner):
                own = replace(base, is_coroutine=True)
            else:
                plain("function", inner)
            called = getattr(inner, "__qualname__", type(inner).__qualname__)
            known, kind = self._kind_of(called if name is None else name, config, function)
            made: TaskFunction[..., Any, Any]
            made = TaskFunction(self._core, self, function, known, kind, own, Chosen())
            update_wrapper(made, inner)
            self._functions[known] = made
            return made

        return decorate if function is None else decorate(function)

    def _kind_of(
        self, name: str, config: layout.TaskTypeConfig, function: Callable[..., Any]
    ) -> tuple[str, Native]:
        """The task type of a function, and its name: the first free one of f, f#2, f#3 … if it is defined again."""
        for number in itertools.count(1):
            known, pointer = name if number == 1 else f"{name}#{number}", ctypes.c_void_p()
            where, encoded = self._core.native.pointer, text("name", known)
            try:
                check(
                    lib.pace_task_type_new(where, encoded, ctypes.byref(config), ctypes.byref(pointer))
                )
                return known, Native(pointer, lib.pace_task_type_free)
            except InvalidError as refused:
                if not str(refused).startswith("task type is "):
                    raise
            earlier = self._functions.get(known)
            if earlier is None or not defined_again(earlier._function, function):
                allowed = "another name, or the settings that it has"
                raise InvalidError(
                    f"there is a task {known!r} already with other settings; allowed: {allowed}"
                ) from None
        raise AssertionError

    def _durable_of(self, durable: Union[paceline.DurableQueue, bool]) -> paceline.DurableQueue:
        from ._durable import DurableQueue

        if durable is not True:
            return instance("durable", durable, DurableQueue, "a paceline.DurableQueue, or a bool")  # type: ignore[arg-type]
        queues = [queue for each in self._durable if (queue := each()) is not None]
        if len(queues) != 1:
            allowed = "True where the worker pool has one durable queue, or which of them"
            raise InvalidError(
                f"durable is True, and there are {len(queues)} queues; allowed: {allowed}"
            )
        return queues[0]

    def durable(
        self,
        name: str,
        nats: Union[paceline.NatsSettings, str],
        *,
        in_flight: Optional[int] = None,
        keep_results: float = 3600.0,
        ack_wait: float = 30.0,
        window: float = 120.0,
    ) -> paceline.DurableQueue:
        """A queue of tasks that outlive the process, kept by a NATS broker: its address, or NatsSettings. ``name``: 1 to 182
        bytes, that of a task 1 to 200, both together up to 205, without blanks, control characters, ``.*>/%`` and a
        backslash. The tasks run on the threads of this, and the loop of its coroutines. Any process with a queue of this name runs them. ``in_flight``: how
        many tasks of each name and lane may be taken and not ended (None: twice its threads); ``keep_results``: for how many
        seconds results are kept, 1 or more; ``ack_wait``: after how many seconds without a sign of life the broker gives a
        task to another process, 0.1 to 86400; ``window``: for how many seconds a unique id is known. Close it before the
        shutdown. Raises InvalidError, ShutDownError; UnsupportedError if the library was built without it."""
        from ._durable import DurableQueue

        queue = DurableQueue(self, name, nats, in_flight, keep_results, ack_wait, window)
        self._durable.append(weakref.ref(queue))
        return queue

    def every(
        self, seconds: float, calls: Calls[..., Any], /, *args: Any, missed: str = "skip"
    ) -> Periodic:
        """Submits a call of a decorated function every ``seconds``, first after one period, until the
        Periodic is closed or this is shut down. Each run is a task of its own. ``missed``: ticks that come
        while a run has not ended are left out ("skip"), or one run makes up for them as soon as it has
        ("coalesce"). What a run fails with is logged. Raises InvalidError, ShutDownError."""
        coalesce = bool(one_of("missed", missed, {"skip": 0, "coalesce": 1}))
        instance("calls", calls, Calls, "a function that was decorated by task, or its options")
        core = self._core
        if core.closed:
            raise core.refusal()
        periodic = Periodic(calls, args, coalesce)
        periodic.start(core.pool, seconds)
        core.periodics.add(periodic)
        return periodic

    # --- hosts -------------------------------------------------------------------------------------

    def set_active(self, threads: int) -> None:
        """Lets only the first so many threads take tasks, 1 to all; the others finish what they are at, and
        park until more are wanted."""
        core = self._core
        wanted = within("threads", threads, 1, core.most)
        if core.closed:
            raise core.refusal()
        core.set_active(wanted)

    @property
    def active(self) -> int:
        """How many threads take tasks."""
        return self._core.active

    def fileno(self) -> int:
        """Readable while ``run`` would find something, with ``threads=0``."""
        return self._core.queue.fileno()

    def run(self) -> int:
        """Runs what is there; says how many attempts and ends. With ``threads=0``. KeyboardInterrupt and
        SystemExit out of a task are raised here, when the task has failed with them; what else was taken is
        left to the next call."""
        return self._core.run()

    # --- the end, and books ------------------------------------------------------------------------

    def on_shutdown(
        self, function: Callable[[], object], name: Optional[str] = None
    ) -> Callable[[], object]:
        """Has ``function()`` called at the end of a shutdown, what was registered last first. It may be
        used as a decorator."""
        plain("function", function)
        some_text("name", name)
        called: Optional[str] = name or getattr(function, "__qualname__", None)
        self._core.hooks.append((called or shown(function), function))
        return function

    def shutdown(
        self,
        drain: Optional[float] = 30,
        stop: Optional[float] = 5,
        clean_up: Optional[float] = 5,
    ) -> ShutdownReport:
        """Refuses new tasks; lets what was accepted end for up to ``drain`` seconds (None: as long as it
        takes); then cancels what has not begun and asks what runs to stop, for up to ``stop``; then calls
        what was given to ``on_shutdown``, up to ``clean_up`` (one that has begun is waited for). The pool
        beneath goes on. Inside a task it is a request. KeyboardInterrupt and SystemExit out of what was given
        to ``on_shutdown`` are raised when all were called."""
        times = patience("drain", drain), patience("stop", stop), patience("clean_up", clean_up)
        return self._core.shutdown(*times)

    def stats(self) -> dict[str, TaskTypeStats]:
        """What has happened to the tasks of each name."""
        return {name: each.stats() for name, each in list(self._functions.items())}

    def worker_stats(self) -> list[WorkerStats]:
        """What each of its threads has done, by their numbers; with ``threads=0`` one entry for those that call
        ``run``. Behind them there is one for all coroutines, if there were some: its times are those in which at
        least one was under way. Raises ForkedError."""
        core = self._core
        if core.is_forked():
            raise core.refusal()
        rows = [_worker_stats(hand) for hand in list(core.hands)]
        coroutines = core.coroutines
        if coroutines.completed or coroutines.failed or coroutines.running:
            rows.append(_loop_stats(coroutines))
        return rows

    def audit(self) -> WorkersAudit:
        """The books of what was submitted; exact while nothing runs."""
        audit = layout.WorkersAudit()
        audit.struct_size = ctypes.sizeof(audit)
        check(quick.pace_workers_audit(self._core.native.pointer, ctypes.byref(audit)))
        return WorkersAudit(*(getattr(audit, name) for name in WorkersAudit.__dataclass_fields__))

    def health(self) -> WorkersHealth:
        """How it is. Raises ForkedError."""
        core = self._core
        running = [(hand, hand.job) for hand in list(core.hands)]
        busy = [(hand, job) for hand, job in running if job is not None]
        stuck = tuple(job[4].name for hand, job in busy if _is_stuck(hand))
        status = "ready" if not stuck else "stuck" if len(stuck) == len(running) else "degraded"
        return WorkersHealth(
            status="draining" if core.closed else status,
            threads=core.most,
            stuck=stuck,
            capacity=max(0, core.active - len(stuck)),
            free=max(0, core.active - len(busy)),
            waiting=max(0, len(core.jobs) - len(busy) - len(core.coroutines.running)),
        )

    def metrics(self, format: str = "prometheus") -> str:
        """Its figures, its pool's, the process's and the system's, as text ("prometheus" or
        "openmetrics": ``metrics_format``) or "json". Raises InvalidError if it was made without
        ``metrics=True``."""
        pointer = self._core.native.pointer
        wanted = one_of("format", format, FORMATS)
        return figures(wanted, lambda *room: lib.pace_workers_metrics(pointer, *room))

    def counter(self, name: str, help: str = "", **labels: str) -> Counter:
        """A figure of the program's own that only grows, in ``metrics``; the same one for the same name and
        labels. A name has letters, digits and underscores, and does not end as text formats end theirs
        (_total, _sum …). Raises InvalidError: it is none, is of another kind, or this was made without
        ``metrics=True``; Full for more than 16384."""
        return Counter(make(self._core.native, layout.METRIC_COUNTER, name, help, labels))

    def gauge(self, name: str, help: str = "", **labels: str) -> Gauge:
        """One that goes up and down. As ``counter``."""
        return Gauge(make(self._core.native, layout.METRIC_GAUGE, name, help, labels))

    def histogram(self, name: str, help: str = "", *, unit: str = "seconds", **labels: str) -> Histogram:
        """How values are distributed: ``unit`` is "seconds", "bytes" or "numbers". As ``counter``."""
        return Histogram(make(self._core.native, kind_of(unit), name, help, labels), unit)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.shutdown(drain=None if kind is None else 0)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.WorkerPool: it has threads of this process")


def _worker_stats(hand: Hand) -> WorkerStats:
    # What runs is read first: if it ends meanwhile, it counts once more rather than not at all.
    job, since = hand.job, hand.busy_since
    completed, failed = hand.completed, hand.failed
    if job is not None:
        state = "stuck" if _is_stuck(hand) else "running"
    else:
        state = hand.rests()
    now = monotonic()
    run_time = hand.busy + (0.0 if since is None else max(0.0, now - since))
    return WorkerStats(
        worker=hand.worker,
        state=state,
        task_type=None if job is None else job[4].name,
        attempts=completed + failed + (job is not None),
        completed=completed,
        failed=failed,
        run_time=run_time,
        utilisation=min(1.0, run_time / max(now - hand.made, 1e-9)),
    )


def _loop_stats(coroutines: Coroutines) -> WorkerStats:
    runs, since = list(coroutines.running.values()), coroutines.busy_since
    completed, failed = coroutines.completed, coroutines.failed
    jobs = [job for job in (run.job for run in runs) if job is not None]
    state = "waiting" if not coroutines.has_ended() else "ended"
    if jobs:
        state = "stuck" if any(map(_is_stuck, runs)) else "running"
    now = monotonic()
    run_time = coroutines.busy + (0.0 if since is None else max(0.0, now - since))
    return WorkerStats(
        worker=coroutines.worker,
        state=state,
        task_type=jobs[0][4].name if jobs else None,
        attempts=completed + failed + len(jobs),
        completed=completed,
        failed=failed,
        run_time=run_time,
        utilisation=min(1.0, run_time / max(now - coroutines.made, 1e-9)),
    )


def _is_stuck(hand: Completer) -> bool:
    answer = ctypes.c_bool()
    queue, reference = hand.core.queue.pointer, ctypes.byref(answer)
    status = quick.pace_cq_is_cancelled(queue, hand.attempt, reference)
    if status == layout.ESTALE:
        # It has ended since.
        return False
    check(status)
    return answer.value
