"""``DurableQueue``: tasks that outlive the process, kept by a NATS broker, run by the threads of a worker pool.

    submit ──► broker ──► native queue ──► taking thread ──► task of the worker pool ──► its end ──► broker
                               ▲ pace_durable_take_waiting    begins, and the function is called    complete, or fail

One thread of Python's takes what has come, and never more than may be in flight. Arguments and results are JSON, or bytes
as they are: what comes from a broker must not run code, so nothing is unpickled.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import (
    Any,
    Generic as StandardGeneric,
    NamedTuple,
    Optional,
    Protocol,
    TypedDict,
    Union,
    overload,
)

import paceline

from . import _layout as layout
from . import _lifetime
from ._arguments import (
    data,
    defined_again,
    instance,
    is_coroutine_function,
    nanos,
    one_of,
    patience,
    plain,
    some_text,
    text,
    whole,
    within,
)
from ._bridge import NatsSettings, _filled, _text_of
from ._clock import monotonic
from ._contain import failure_of, report
from ._errors import (
    DurableFailure,
    Full,
    InvalidError,
    ShutDownError,
    TimeoutError,
    refuse_in_loop,
)
from ._hosts import Native
from ._library import SLICE, check, lib, nanoseconds, quick
from ._native import freed_on_failure
from ._policy import Priority, Rate, Retry, lane_of, retry_of
from ._task import PermanentFailure, RetryAfter
from ._typing import Generic, P, R, T, Unpack


#: Seconds in which what is left open is closed: when the interpreter ends, and when it is lost.
_AT_EXIT = 2.0
#: For how many seconds at most the thread that takes is away.
_TURN = 60 * 10**9
#: Seconds between looks for a result that is awaited, at first and at most; and at the broker for one that was missed.
_SOON, _LATEST, _AGAIN = 0.001, 0.05, 2.0
_MS = 10**6

_STATUSES = {
    layout.DURABLE_COMPLETED: "completed",
    layout.DURABLE_FAILED: "failed",
    layout.DURABLE_CANCELLED: "cancelled",
    layout.DURABLE_TIMED_OUT: "timed out",
}


class Job(NamedTuple):
    """An attempt of a durable task, as its function sees it: ``current_job()``."""

    #: The task's id, the same for each attempt in any process.
    id: str
    #: The name of the task, which has chosen its function.
    name: str
    #: Which attempt it is, in all processes together: 1 for the first. One counts if its process ended in it; a task that
    #: was given back before it began has had none.
    attempt: int
    #: For how many seconds the task could take still when the attempt began; None: without a deadline.
    time_left: Optional[float]


_job: ContextVar[Optional[Job]] = ContextVar("paceline_job", default=None)


def current_job() -> Optional[Job]:
    """The attempt of a durable task that runs here; None: there is none."""
    return _job.get()


class DurableReport(NamedTuple):
    """How a durable task has ended."""

    #: The id of the task in its queue.
    id: str
    #: "completed", "failed" (its last attempt has; it is a dead task), "cancelled" or "timed out" (its deadline).
    status: str
    #: What its function has returned, if it has completed, as its codec has decoded it.
    value: Any
    #: What went wrong last, as text; None if it has completed.
    failure: Optional[str]
    #: How many attempts were begun, in all processes together.
    attempts: int


class DeadTask(NamedTuple):
    """A durable task that has failed for good."""

    #: Its number among the dead of its queue, for ``resubmit`` and ``forget``.
    number: int
    id: str
    name: str
    #: What it was submitted with, encoded: of the codec "json" it is ``[[positional], {named}]``.
    arguments: bytes
    #: What went wrong at its last attempt.
    failure: str
    #: How many attempts were begun, in all processes together.
    attempts: int


# --- values as bytes ----------------------------------------------------------------------------------------------------


class DurableStats(NamedTuple):
    """How the connection of a queue is."""

    #: Whether it is connected to a broker now.
    connected: bool
    #: Why not, or what the broker has refused last; None: all is well.
    reason: Optional[str]
    #: How often it has connected to a broker.
    connects: int


def _to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class _Json:
    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        return _to_json([args, kwargs])

    def call(self, sent: bytes) -> tuple[list[Any], dict[str, Any]]:
        args, kwargs = json.loads(sent) if sent else ([], {})
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise ValueError("they are not [[positional], {named}]")
        return args, kwargs

    def result(self, value: object) -> bytes:
        return _to_json(value)

    def value(self, sent: bytes) -> Any:
        return json.loads(sent) if sent else None


class _Bytes:
    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        if kwargs or len(args) > 1:
            raise InvalidError('with codec="bytes" there is one argument, of bytes, or none')
        return data("argument", args[0]) if args else b""

    def call(self, sent: bytes) -> tuple[list[Any], dict[str, Any]]:
        return [sent], {}

    def result(self, value: object) -> bytes:
        return b"" if value is None else data("result", value)  # type: ignore[arg-type]

    def value(self, sent: bytes) -> Any:
        return sent


_Codec = Union[_Json, _Bytes]
_CODECS: dict[str, Any] = {"json": _Json(), "bytes": _Bytes()}


def _codec_of(name: str) -> _Codec:
    one_of("codec", name, dict.fromkeys(_CODECS, 0))
    codec: _Codec = _CODECS[name]
    return codec


# --- what is submitted ---------------------------------------------------------------------------------------------------


class DurableTask(StandardGeneric[T]):
    """A task that the broker has stored. Losing it changes nothing. Any thread; in an event loop, ``await`` it."""

    def __init__(
        self, queue: DurableQueue, id: str, duplicate: bool, codec: _Codec, found: bool = False
    ) -> None:
        self._queue = queue
        self._codec = codec
        # Its result comes to the process that has submitted it; others ask the broker.
        self._found = found
        self._report: Optional[DurableReport] = None
        #: Its id in its queue, for any process: see ``DurableQueue.find``.
        self.id = id
        #: Whether the broker had it already, by the unique id that it was submitted with.
        self.duplicate = duplicate

    def wait(self, timeout: Optional[float] = None) -> DurableReport:
        """Waits up to ``timeout`` seconds (None: for ever) until it has ended, also if another process has submitted it.
        Raises TimeoutError, also if it was submitted with ``ignore_result``, if the result is older than results are kept,
        and if there is no such task; ShutDownError."""
        seconds = patience("timeout", timeout)
        end = None if seconds is None else monotonic() + seconds

        def wait() -> None:
            # A closed queue ends no wait, so it is looked at now and then.
            while not self._look(lib, _left(end)):
                self._queue._check_open()
                if end is not None and monotonic() >= end:
                    reason = self._queue.reason
                    of = f"; of the broker: {reason}" if reason else ""
                    raise TimeoutError(f"durable task {self.id} has not ended in time{of}")

        if self._report is None and not self.done():
            if seconds != 0:
                refuse_in_loop("wait()", "the task itself")
            self._queue._workers._core._awaited(wait)
        assert self._report is not None
        return self._report

    def result(self, timeout: Optional[float] = None) -> T:
        """What its function has returned; waits for it as ``wait``. Raises DurableFailure: its last attempt has failed;
        CancelledError (of ``concurrent.futures``): it was cancelled; TimeoutError: its deadline was over, and as ``wait``."""
        return self._value(self.wait(timeout))

    def done(self) -> bool:
        """Whether this process knows that it has ended."""
        return self._look(quick, 0)

    def cancel(self) -> bool:
        """Has it not begin. True: it has not begun, and will not. False: an attempt of it has begun, or it has ended. It
        takes up to a second. Raises TimeoutError: neither a worker nor the broker has answered, so that it may run;
        ShutDownError."""
        cancelled, queue = ctypes.c_bool(), self._queue
        at = ctypes.byref(cancelled)
        call = lambda: check(lib.pace_durable_cancel(queue._pointer(), self.id.encode(), at))
        queue._workers._core._awaited(call)
        return cancelled.value

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        delay, again = _SOON, 0.0 if self._found else monotonic() + _AGAIN
        while not self.done():
            self._queue._check_open()
            if monotonic() >= again:
                # The broker is asked: that waits.
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, self._look, lib, _MS)
                again = monotonic() + _AGAIN
            else:
                await asyncio.sleep(delay)
                delay = min(1.5 * delay, _LATEST)
        assert self._report is not None
        return self._value(self._report)

    def _look(self, view: Any, left: int) -> bool:
        """Whether its report has come, within so many nanoseconds; in none the broker is not asked."""
        if self._report is None:
            pointer = ctypes.c_void_p()
            id, at = self.id.encode(), ctypes.byref(pointer)
            status = view.pace_durable_wait(self._queue._native.pointer, id, left, at)
            if status == layout.ETIMEDOUT:
                return False
            check(status)
            with Native(pointer, lib.pace_durable_report_free) as native:
                info = _info_of(native, layout.DurableInfo, quick.pace_durable_report_info)
                sent, failure = _bytes_at(info.bytes, info.size), _text_at(info.failure)
            status_name = _STATUSES.get(info.status, str(info.status))
            value = self._codec.value(sent) if status_name == "completed" else None
            self._report = DurableReport(self.id, status_name, value, failure, info.attempts)
        return True

    def _value(self, ended: DurableReport) -> Any:
        if ended.status == "completed":
            return ended.value
        told = f"durable task {self.id}: {ended.failure or ended.status}"
        if ended.status == "cancelled":
            raise CancelledError(told)
        raise TimeoutError(told) if ended.status == "timed out" else DurableFailure(told, ended)

    def __repr__(self) -> str:
        return f"<paceline.DurableTask {self.id!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.DurableTask: take its id, and DurableQueue.find")


def _left(end: Optional[float]) -> int:
    longest = _AGAIN + SLICE
    return nanoseconds(longest if end is None else min(longest, max(0.001, end - monotonic())))


@dataclass(frozen=True)
class _Chosen:
    """What a submission has beside its name and arguments."""

    priority: Priority = "normal"
    delay: float = 0.0
    deadline: Optional[float] = None
    attempts: Optional[int] = None
    unique: Optional[str] = None
    ignore_result: bool = False
    timeout: Optional[float] = 30.0

    def as_c(self) -> tuple[layout.Submission, int]:
        raw = layout.Submission()
        check(quick.pace_submission_init(ctypes.byref(raw), ctypes.sizeof(raw)))
        raw.lane = lane_of(self.priority)
        raw.delay_ns = nanos("delay", self.delay)
        if self.deadline is not None:
            raw.deadline_ns = nanos("deadline", self.deadline)
        if self.attempts is not None:
            raw.attempts = within("attempts", self.attempts, 1, (1 << 32) - 1)
        raw.unique = some_text("unique", self.unique)
        raw.ignore_result = bool(self.ignore_result)
        return raw, nanoseconds(patience("timeout", self.timeout))


class DurableCalls(Generic[P, T]):
    """Submits durable tasks of one name, with the same settings, whichever process runs them. Any thread."""

    def __init__(self, queue: DurableQueue, name: str, codec: _Codec, chosen: _Chosen) -> None:
        self._queue = queue
        self._codec = codec
        self._chosen = chosen
        #: The name of its tasks, which chooses the function in the process that runs them.
        self.name = name

    def options(
        self,
        *,
        priority: Optional[Priority] = None,
        delay: Optional[float] = None,
        deadline: Optional[float] = None,
        attempts: Optional[int] = None,
        unique: Optional[str] = None,
        ignore_result: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> DurableCalls[P, T]:
        """The same, whose tasks are submitted with these (None: as before). ``priority``: the lane, each of which is a
        stream of the broker. ``delay``: seconds before the first attempt.
        ``deadline``: how many seconds it may take from its submission on; after that no attempt begins. Both go by the clocks
        of submitter and worker. ``attempts``: how
        many there may be, if those are fewer than the function's retries allow. ``unique``: while the broker has one of this
        id in the same lane that was stored within the queue's window, it is that one. ``ignore_result``: none is stored.
        ``timeout``: how many seconds ``submit`` waits until the broker has stored it (30 at first). Raises InvalidError."""
        given = {
            "priority": priority,
            "delay": delay,
            "deadline": deadline,
            "attempts": attempts,
            "unique": unique,
            "ignore_result": ignore_result,
            "timeout": timeout,
        }
        chosen = replace(self._chosen, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
        chosen.as_c()
        return DurableCalls(self._queue, self.name, self._codec, chosen)

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> DurableTask[T]:
        """Stores a task, and waits until the broker has it: then it is accepted. Not in an event loop: see
        ``submit_async``. Raises TimeoutError, whose text says what stands in the way, if that is known: it is not stored
        yet, and will be when the broker takes it; Full: too many wait to
        be stored; InvalidError; TypeError: the arguments are not what the codec takes; ShutDownError, ForkedError."""
        refuse_in_loop("submit()", "task.submit_async(…)")
        return self._submit(self._codec.arguments(args, kwargs), apart=True)

    async def submit_async(self, /, *args: P.args, **kwargs: P.kwargs) -> DurableTask[T]:
        """As ``submit``, in a thread of the running loop's executor. Cancelled, it may be stored all the same."""
        sent = self._codec.arguments(args, kwargs)
        return await asyncio.get_running_loop().run_in_executor(None, self._submit, sent)

    def _submit(self, sent: bytes, apart: bool = False) -> DurableTask[T]:
        queue = self._queue
        raw, left = self._chosen.as_c()
        id, duplicate = layout.DurableId(), ctypes.c_bool()
        name, terms = text("name", self.name), ctypes.byref(raw)
        pointer, ends = queue._pointer(), (ctypes.byref(id), ctypes.byref(duplicate))
        call = lambda: check(lib.pace_durable_submit(pointer, name, terms, sent, len(sent), left, *ends))
        if apart:
            queue._workers._core._awaited(call)
        else:
            call()
        return DurableTask(queue, id.text.decode(), duplicate.value, self._codec)


class DurableFunction(DurableCalls[P, T], Generic[P, T, R]):
    """A function that was decorated by ``DurableQueue.task``: called, it is itself."""

    def __init__(
        self, queue: DurableQueue, name: str, codec: _Codec, function: Callable[..., Any]
    ) -> None:
        super().__init__(queue, name, codec, _Chosen())
        self._function = function

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        called: R = self._function(*args, **kwargs)
        return called


# --- what is run ---------------------------------------------------------------------------------------------------------


class _Taker:
    """What the thread that takes has. It knows nothing of the DurableQueue before it."""

    def __init__(self, native: Native, name: str) -> None:
        self.native = native
        self.name = name
        #: By name, what runs tasks, how their arguments are encoded, and whether it begins what it runs.
        self.functions: dict[str, tuple[paceline.TaskFunction[..., Any, Any], Any, bool]] = {}
        #: By name, how often and when attempts are made; None: as usual.
        self.retries: dict[str, Optional[layout.Retry]] = {}
        #: The attempts that were submitted to the worker pool and have not ended, by the names of their tasks.
        self.held: dict[Native, str] = {}
        self.thread: Optional[threading.Thread] = None

    def ask(self) -> None:
        """From the opening on the queue takes tasks of all its functions. Raises InvalidError."""
        for name, retry in self.retries.items():
            at = None if retry is None else ctypes.byref(retry)
            check(quick.pace_durable_task_pulled(self.native.pointer, text("name", name), at))

    def start(self) -> None:
        self.thread = threading.Thread(name=f"{self.name}_taker", target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        """Until the queue has ended, or the worker pool."""
        while True:
            try:
                pointer = ctypes.c_void_p()
                status = lib.pace_durable_take_waiting(self.native.pointer, _TURN, ctypes.byref(pointer))
                if status == layout.ETIMEDOUT:
                    continue
                if status != layout.OK:
                    return
                self.begin(Native(pointer, lib.pace_job_free))
            except ShutDownError:
                return
            except Full:
                time.sleep(SLICE)
            except BaseException as raised:
                report("a durable task of queue %s could not be begun", self.name, raised=raised)
                time.sleep(SLICE)

    def begin(self, native: Native) -> None:
        """Submits it to the worker pool. What cannot be submitted is given back before this raises."""
        with freed_on_failure(native):
            try:
                self._begin(native)
            except BaseException:
                self.held.pop(native, None)
                raise

    def _begin(self, native: Native) -> None:
        info = _info_of(native, layout.JobInfo, quick.pace_job_info)
        left = None if info.time_left_ns == layout.FOREVER else info.time_left_ns / 1e9
        job = Job(_text_at(info.id) or "", _text_at(info.name) or "", info.number, left)
        calls: Any
        calls, codec, begins = self.functions[job.name]
        try:
            args, kwargs = codec.call(_bytes_at(info.arguments, info.size))
        except BaseException as raised:
            with native:
                _fail(native, f"its arguments cannot be decoded: {failure_of(raised)}", permanent=True)
            return
        if left is not None:
            calls = calls.options(deadline=max(left, 0.001))
        if not begins and not _begins(native):
            native.free()
            return
        self.held[native] = job.name
        calls.submit(native, job, args, kwargs).add_done_callback(partial(self._ended, native, codec))

    def _ended(self, native: Native, codec: _Codec, task: Any) -> None:
        """An attempt has ended. If the worker pool has cancelled it, because it ends, the task is given back."""
        try:
            with native:
                if not task.cancelled() and (task.exception(0) or task.result(0) is not _NOT_BEGUN):
                    _tell_end(native, codec, task)
        finally:
            self.held.pop(native, None)


def _tell_end(native: Native, codec: _Codec, task: Any) -> None:
    raised = task.exception(0)
    if raised is None:
        try:
            sent = codec.result(task.result(0))
        except BaseException as refused:
            _fail(native, f"its result cannot be encoded: {failure_of(refused)}", permanent=True)
            return
        _end(quick.pace_job_complete(native.pointer, sent, len(sent)))
        return
    after, kind = 0, type(raised)
    if issubclass(kind, RetryAfter):
        try:
            after = max(1, nanos("seconds", raised.seconds))
        except BaseException as refused:
            report("no delay could be had for another attempt, so there is none", raised=refused)
            after = -1
    _fail(native, failure_of(raised), issubclass(kind, PermanentFailure) or after < 0, max(0, after))


def _fail(native: Native, failure: str, permanent: bool = False, after: int = 0) -> None:
    told = failure.replace("\0", "").encode("utf-8", "replace")
    _end(quick.pace_job_fail(native.pointer, told, permanent, after))


def _end(status: int) -> None:
    if status != layout.ESTALE:
        check(status)


#: What comes of an attempt that was not to begin: it was cancelled, or given back.
_NOT_BEGUN = object()


def _begins(native: Native) -> bool:
    begun = ctypes.c_bool()
    check(lib.pace_job_begin(native.pointer, ctypes.byref(begun)))
    return begun.value


def _in_job(function: Callable[..., Any]) -> Callable[..., Any]:
    """Begins the attempt, and has ``current_job`` know it."""
    if is_coroutine_function(function):
        # It has begun: that may wait, for which a thread of coroutines is no place.
        async def run_async(native: Native, job: Job, args: list[Any], kwargs: dict[str, Any]) -> Any:
            _job.set(job)
            return await function(*args, **kwargs)

        return update_wrapper(run_async, function)

    def run(native: Native, job: Job, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not _begins(native):
            return _NOT_BEGUN
        before = _job.set(job)
        try:
            return function(*args, **kwargs)
        finally:
            _job.reset(before)

    return update_wrapper(run, function)


class DurableSettings(TypedDict, total=False):
    """What ``DurableQueue.task`` takes."""

    name: Optional[str]
    retries: Union[int, Retry, None]
    codec: str
    timeout: Optional[float]
    soft_timeout: Optional[float]
    rate: Optional[Rate]
    max_running: Optional[int]


class DurableDecorator(Protocol):
    """What ``DurableQueue.task`` returns without a function."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> DurableFunction[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> DurableFunction[P, T, T]: ...


class DurableQueue:
    """A queue of tasks that outlive the process: a NATS broker has them, and a worker with a function for a task's name runs
    it. Made by ``WorkerPool.durable``. Give it functions by ``task``. Opened by ``open``, or ``with``, it submits tasks and
    runs none; opened by ``open(work=True)``, it is a worker, too. Any thread.

        queue = workers.durable("pictures", "nats://broker:4222")

        @queue.task(retries=5)
        def resize(path, width): ...

        if __name__ == "__main__":
            with queue:
                print(resize.submit("a.png", 100).result())

    As ``pictures.py`` this submits a task, which ``python -m paceline.worker pictures:queue`` runs, as often as it is started.

    An attempt begins only after the task was stored. A task whose process dies, or is not heard of for ``ack_wait`` seconds,
    is run again elsewhere, so functions must bear that: ``current_job().id`` is the same each time. Tasks that have failed
    for good are ``dead``.

    Left open at the interpreter's end, or lost, it is closed. In a child made by fork it raises ForkedError.
    """

    def __init__(
        self,
        workers: paceline.WorkerPool,
        name: str,
        nats: Union[NatsSettings, str],
        in_flight: Optional[int],
        keep_results: float,
        ack_wait: float,
        window: float,
    ) -> None:
        core = workers._core
        broker, options = layout.BridgeOptions(), layout.DurableOptions()
        check(quick.pace_bridge_options_init(ctypes.byref(broker), ctypes.sizeof(broker)))
        check(quick.pace_durable_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        if isinstance(nats, str):
            nats = NatsSettings(nats)
        instance("nats", nats, NatsSettings, "text, or a paceline.NatsSettings").fill(broker)
        self._nats = nats
        most = 2 * max(core.most, 1)
        options.in_flight = most if in_flight is None else within("in_flight", in_flight, 1, 65536)
        options.results_ns = nanos("keep_results", keep_results, 1)
        options.ack_wait_ns = nanos("ack_wait", ack_wait)
        options.window_ns = nanos("window", window)
        pointer, encoded = ctypes.c_void_p(), text("name", name)
        if core.closed:
            raise core.refusal()
        terms = (encoded, ctypes.byref(broker), ctypes.byref(options))
        check(quick.pace_durable_new(core.native.pointer, *terms, ctypes.byref(pointer)))
        self._native = Native(pointer, lib.pace_durable_free)
        self._workers = workers
        self._taker = _Taker(self._native, name)
        #: By name, what was decorated.
        self._functions: dict[str, Callable[..., Any]] = {}
        self._opened = self._closed = False
        #: Its name, which its streams have, too: ``paceline_NAME_…``.
        self.name = name

    # --- before it is open --------------------------------------------------------------------------

    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, T]], /, **settings: Unpack[DurableSettings]
    ) -> DurableFunction[P, T, Coroutine[Any, Any, T]]: ...

    @overload
    def task(
        self, function: Callable[P, T], /, **settings: Unpack[DurableSettings]
    ) -> DurableFunction[P, T, T]: ...

    @overload
    def task(
        self, function: None = None, /, **settings: Unpack[DurableSettings]
    ) -> DurableDecorator: ...

    def task(
        self,
        function: Optional[Callable[..., Any]] = None,
        /,
        *,
        name: Optional[str] = None,
        retries: Union[int, Retry, None] = None,
        codec: str = "json",
        timeout: Optional[float] = None,
        soft_timeout: Optional[float] = None,
        rate: Optional[Rate] = None,
        max_running: Optional[int] = None,
    ) -> Any:
        """Decorates a function, so that its calls can be submitted; a worker runs them by the task's name (default: the
        function's), on the threads or the event loop of the worker pool. Before ``open``; later a function that is defined again,
        as by a notebook's cell, takes the place of the one before, with the same ``retries``. ``retries`` of None: ten attempts in
        all, after half a second and then twice as long each time. What an attempt raises fails it, with its text;
        PermanentFailure and RetryAfter are as in other tasks. ``codec``: arguments and results are JSON ("json"), or one
        argument of bytes and bytes ("bytes"). ``timeout``, ``soft_timeout``, ``rate`` and ``max_running`` are those of
        ``WorkerPool.task``, for attempts in this process. Raises InvalidError."""
        some_text("name", name)
        chosen = _codec_of(codec)
        retry = retry_of(retries)
        if retry is not None and retry.delay is not None:
            raise InvalidError(
                "retries is a Retry.custom; allowed: one that the broker's delays can follow"
            )

        def decorate(function: Callable[..., Any]) -> DurableFunction[..., Any, Any]:
            if not is_coroutine_function(function):
                plain("function", function)
            known = getattr(function, "__name__", type(function).__name__) if name is None else name
            text("name", known)
            raw = None
            if retry is not None:
                raw = layout.Retry()
                retry.fill(raw)
            self._check_new_task(known, function, raw)
            run = self._workers.task(
                name=f"{self.name}.{known}",
                retries=0,
                timeout=timeout,
                soft_timeout=soft_timeout,
                rate=rate,
                max_running=max_running,
            )(_in_job(function))
            begins = not is_coroutine_function(function)
            self._taker.functions[known], self._taker.retries[known] = (run, chosen, begins), raw
            self._functions[known] = function
            made: DurableFunction[..., Any, Any]
            made = DurableFunction(self, known, chosen, function)
            update_wrapper(made, function)
            return made

        return decorate if function is None else decorate(function)

    def schedule(
        self, label: str, when: str, calls: DurableCalls[..., Any], /, *args: Any, **kwargs: Any
    ) -> None:
        """Submits a call at times of the calendar, in the manner of cron, by UTC: "30 3 * * 1-5" is half past three from
        Monday to Friday. All processes with a schedule of this label submit one task together for each time, workers or not.
        What comes due while none of them has the queue open is not submitted later. Before ``open``, which finds a bad time. Raises InvalidError."""
        instance("calls", calls, DurableCalls, "a function that was decorated by task, or calls()")
        sent = calls._codec.arguments(args, kwargs)
        texts = (text("label", label), text("when", when), text("name", calls.name))
        check(quick.pace_durable_schedule(self._native.pointer, *texts, sent, len(sent)))

    def open(self, *, work: bool = False) -> DurableQueue:
        """Begins to connect. It does not wait for the broker, which may come later. With ``work`` this process is a worker: it
        takes tasks of the names that have functions, and runs them. Otherwise it only submits, waits and asks, so that a
        process that imports the functions of others runs none. ``with queue.open(work=True):`` closes it at the end. Raises
        InvalidError, also if it is open already, or has no functions for ``work``; OsError, ShutDownError."""
        self._check_new()
        if work and not self._taker.functions:
            raise InvalidError(
                f"work is True, and the queue {self.name!r} has no functions; allowed: one or more, by DurableQueue.task"
            )
        try:
            if work:
                self._taker.ask()
            check(lib.pace_durable_open(self._native.pointer))
        except BaseException:
            self._closed = True
            raise
        self._opened = True
        # A lost one ends by itself: its thread has what it needs.
        weakref.finalize(self, _close, self._native, 0).atexit = False
        self._at_exit = _lifetime.AtExit(self._exit)
        try:
            if not _lifetime.enlist(self._at_exit):
                raise ShutDownError("the interpreter ends")
            if work:
                self._taker.start()
        except BaseException:
            # Otherwise it would hold tasks that no thread takes.
            self.close(0)
            raise
        return self

    # --- what is submitted --------------------------------------------------------------------------

    def calls(self, name: str, codec: str = "json") -> DurableCalls[..., Any]:
        """What submits tasks of this name, which another process has a function for. If none has, they wait."""
        text("name", name)
        return DurableCalls(self, name, _codec_of(codec), _Chosen())

    def find(self, id: str, codec: str = "json") -> DurableTask[Any]:
        """The task of this id, as ``DurableTask.id`` has it, maybe of another process. It need not exist."""
        text("id", id)
        return DurableTask(self, id, False, _codec_of(codec), found=True)

    def dead(self, first: int = 1, limit: int = 100) -> list[DeadTask]:
        """Tasks that have failed for good, the oldest first, from this number on; at most ``limit``. Raises
        TimeoutError: the broker does not answer; ShutDownError."""
        found: list[DeadTask] = []
        first, limit, queue = whole("first", first, 64), whole("limit", limit), self._pointer()

        def look() -> None:
            start = first
            while len(found) < limit:
                pointer = ctypes.c_void_p()
                status = lib.pace_durable_dead(queue, start, ctypes.byref(pointer))
                if status == layout.ESTALE:
                    return
                check(status)
                with Native(pointer, lib.pace_durable_report_free) as native:
                    info = _info_of(native, layout.DurableInfo, quick.pace_durable_report_info)
                    texts = (_text_at(info.id) or "", _text_at(info.name) or "")
                    sent, failure = _bytes_at(info.bytes, info.size), _text_at(info.failure) or ""
                found.append(DeadTask(info.number, *texts, sent, failure, info.attempts))
                start = info.number + 1

        self._workers._core._awaited(look)
        return found

    def resubmit(self, number: int, codec: str = "json") -> DurableTask[Any]:
        """Submits a dead task of this number once more, as a new one, and forgets the dead one, unless the broker is away by
        then. Raises StaleError: there is none; and as ``dead`` and ``DurableCalls.submit``."""
        which, chosen = whole("number", number, 64), _codec_of(codec)
        id, queue = layout.DurableId(), self._pointer()
        at = ctypes.byref(id)
        self._workers._core._awaited(lambda: check(lib.pace_durable_resubmit(queue, which, at)))
        return DurableTask(self, id.text.decode(), False, chosen)

    def forget(self, number: int) -> None:
        """Forgets a dead task. Raises StaleError: there is none of this number; and as ``dead``."""
        which, queue = whole("number", number, 64), self._pointer()
        self._workers._core._awaited(lambda: check(lib.pace_durable_forget(queue, which)))

    def wait_connected(self, timeout: Optional[float] = None) -> bool:
        """Waits up to ``timeout`` seconds (None: for ever) until it is connected; False: it is not in that time. Nothing
        needs that. Raises ShutDownError."""
        left, queue = nanoseconds(patience("timeout", timeout)), self._pointer()
        came: list[bool] = []

        def wait() -> None:
            status = lib.pace_durable_wait_connected(queue, left)
            if status != layout.ETIMEDOUT:
                check(status)
            came.append(status == layout.OK)

        self._workers._core._awaited(wait)
        return came[0]

    @property
    def reason(self) -> Optional[str]:
        """Why nothing is stored or comes: it is not connected, or what the broker has refused last; None: all is well."""
        return _text_of(quick.pace_durable_reason, self._pointer()) or None

    def stats(self) -> DurableStats:
        """Tells how its connection is."""
        raw = _filled(layout.BridgeStats, quick.pace_durable_stats, self._pointer())
        return DurableStats(bool(raw.connected), self.reason, raw.connects)

    # --- the end -------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether it was closed: it takes no more tasks."""
        return self._closed

    def close(self, timeout: float = 10.0) -> int:
        """Ends it: it takes no more tasks, gives back those that have not begun, and waits up to ``timeout`` seconds until the
        others have ended. What has not ended then is run again elsewhere, or later. Says how many submissions, results and dead
        tasks were not stored: 0 as a rule. Calling it again is allowed. Before ``WorkerPool.shutdown``, and not in its tasks."""
        nanoseconds_left, left = nanos("timeout", timeout), [0]
        self._closed = True
        if not self._opened:
            return 0
        close = lambda: left.append(_close(self._native, nanoseconds_left))
        self._workers._core._awaited(close)
        return left[-1]

    def _exit(self) -> None:
        if not self._closed:
            self.close(_AT_EXIT)

    def _pointer(self) -> ctypes.c_void_p:
        self._check_open()
        return self._native.pointer

    def _check_new(self) -> None:
        self._check_open()
        if self._opened:
            raise InvalidError("the queue is open already")

    def _check_new_task(
        self, name: str, function: Callable[..., Any], retry: Optional[layout.Retry]
    ) -> None:
        """Once it is open, a function may only take the place of what was defined before it, with the same retries."""
        known = self._functions.get(name)
        if not self._opened or known is None or not defined_again(known, function):
            return self._check_new()
        self._check_open()
        if bytes(retry or b"") != bytes(self._taker.retries[name] or b""):
            allowed = "those that it was opened with"
            raise InvalidError(f"the queue is open already; allowed for retries of {name!r}: {allowed}")

    def _check_open(self) -> None:
        if self._closed:
            raise ShutDownError("the queue is closed")

    def __enter__(self) -> DurableQueue:
        return self if self._opened else self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.DurableQueue: it belongs to this process")


def _close(native: Native, left: int) -> int:
    lost = ctypes.c_uint64()
    check(lib.pace_durable_close(native.pointer, left, ctypes.byref(lost)))
    return lost.value


def _info_of(native: Native, kind: Any, call: Any) -> Any:
    raw = kind()
    raw.struct_size = ctypes.sizeof(raw)
    check(call(native.pointer, ctypes.byref(raw)))
    return raw


def _text_at(raw: layout.Text) -> Optional[str]:
    return ctypes.string_at(raw.text, raw.size).decode() if raw.text else None


def _bytes_at(place: Optional[int], size: int) -> bytes:
    return ctypes.string_at(place, size) if place else b""
