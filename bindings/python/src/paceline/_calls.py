"""Functions whose calls are submitted to a worker pool."""

from __future__ import annotations

import ctypes
import itertools
import threading
from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union, overload

from . import _layout as layout
from ._arguments import seconds as seconds_of
from ._clock import monotonic
from ._errors import Error, ForkedError, Full, ShutDownError
from ._contain import report, shown
from ._hosts import Native
from ._library import check, error, lib, quick
from ._policy import Chosen, OverloadPolicy, Priority, Retry, full_of, lane_of, retry_of
from ._pool import Flow, Handle, Pool
from ._reports import TaskTypeStats
from ._task import Task
from ._typing import Concatenate, Generic, P, Q, R, T

if TYPE_CHECKING:
    from ._worker_pool import Core
else:
    Core = Any

C = TypeVar("C", bound="Calls[..., Any]")

#: What holds a function that is bound otherwise than a method.
HELD = (classmethod, staticmethod)

_NOTHING: dict[str, Any] = {}
_NO_ID = ctypes.c_void_p()
_new = Task.__new__


class Calls(Generic[P, T]):
    """Submits calls of a function as tasks of one name, with the same settings. Any thread."""

    def __init__(
        self,
        core: Core,
        pool: object,
        function: Callable[..., Any],
        name: str,
        kind: Native,
        base: Chosen,
        chosen: Chosen,
    ) -> None:
        self._core = core
        # While there is a function that can be submitted, its pool is not lost.
        self._pool = pool
        self._function = function
        #: The name under which its tasks are known.
        self.name = name
        self._kind = kind
        self._base = base
        self._chosen = chosen
        options = chosen.as_c()
        self._options = options
        self._at_options = None if options is None else ctypes.byref(options)
        # What holds for its tasks, whoever has said it.
        retry = retry_of(base.retries if chosen.retries is None else chosen.retries)
        self.backoff = None if retry is None else retry.delay
        self.timeout = _finite(base.timeout if chosen.timeout is None else chosen.timeout)
        self.deadline = _finite(base.deadline if chosen.deadline is None else chosen.deadline)
        #: Its attempts run on an event loop.
        self.is_coroutine = base.is_coroutine
        self.limited = self.timeout is not None or self.deadline is not None or base.leased
        full = base.full if chosen.full is None else chosen.full
        self.full: OverloadPolicy = core.full if full is None else full
        self.lane = int(lane_of(base.priority if chosen.priority is None else chosen.priority))  # type: ignore[arg-type]
        #: A retry may begin though an attempt of them has not returned.
        self.overlaps = base.overlaps
        #: Somebody wants to know when its tasks begin.
        self.watched = core.scaler is not None or self.full == "drop_oldest"

    def options(
        self,
        *,
        priority: Optional[Priority] = None,
        retries: Union[int, Retry, None] = None,
        timeout: Optional[float] = None,
        queue_timeout: Optional[float] = None,
        deadline: Optional[float] = None,
        delay: Optional[float] = None,
        key: Optional[Hashable] = None,
        soft_timeout: Optional[float] = None,
        grace: Optional[float] = None,
        full: Optional[OverloadPolicy] = None,
    ) -> Calls[P, T]:
        """The same function, whose tasks have these in place of their name's settings (None: as it has
        it). ``delay``: not before so many seconds from then. ``key``: of tasks with equal keys (``==``)
        one runs at a time, in the order of their submission. Raises InvalidError, and what ``__hash__`` or
        ``__eq__`` of the key raises."""
        given = {
            "priority": priority,
            "retries": retries,
            "timeout": timeout,
            "queue_timeout": queue_timeout,
            "deadline": deadline,
            "delay": delay,
            "key": key,
            "soft_timeout": soft_timeout,
            "grace": grace,
            "full": full_of(full),
        }
        chosen = replace(self._chosen, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
        own = (self._core, self._pool, self._function, self.name, self._kind, self._base)
        return Calls(*own, chosen)

    def __get__(self: C, instance: object, owner: Optional[type[Any]] = None) -> C:
        """In a class it is a method, as its function would be: of an object its calls have the object first."""
        bind = getattr(type(self._function), "__get__", None)
        if bind is None or instance is None and not isinstance(self._function, HELD):
            return self
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._function = bind(self._function, instance, owner)
        if "__wrapped__" in bound.__dict__:
            bound.__dict__["__wrapped__"] = bound._function
        return bound

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Task[T]:
        """Lets a thread call the function. Raises ShutDownError, ForkedError; Full: too many tasks wait to
        be taken, or for their key, rate or time, or have not been given back, and the policy says so. It
        waits if that says so."""
        core = self._core
        if core.closed:
            raise core.refusal()
        task: Task[T] = _new(Task)
        if self.deadline is not None:
            task.due = monotonic() + (self._chosen.delay or 0)
        token = next(core.tokens)
        if self.watched:
            self._announce(token)
        core.jobs[token] = (task, self._function, args, kwargs, self)
        id = ctypes.c_uint64()
        status = core.submit_one(
            core.native.pointer,
            self._kind.pointer,
            ctypes.c_uint64(token),
            self._at_options,
            ctypes.byref(id),
        )
        if status != layout.OK:
            self._insist(token, id, status)
        task.at = (core, id.value)
        if self.watched and self.full == "drop_oldest":
            core.note_droppable(self.lane, token, task)
        return task

    def post(self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        """As ``submit``, when nobody waits for it: there is no Task, and what its last attempt raises is
        logged. It is never dropped for others."""
        core = self._core
        if core.closed:
            raise core.refusal()
        token = next(core.tokens)
        if self.watched:
            self._announce(token)
        core.jobs[token] = (_Posted(self), self._function, args, kwargs, self)
        status = core.submit_one(
            core.native.pointer,
            self._kind.pointer,
            ctypes.c_uint64(token),
            self._at_options,
            _NO_ID,
        )
        if status != layout.OK:
            self._insist(token, _NO_ID, status)

    def _announce(self, token: int) -> None:
        core = self._core
        if self.full == "drop_oldest":
            core.drop_for(self.lane)
        if core.scaler is not None and self._chosen.delay is None and self._chosen.key is None:
            core.scaler.note(token)

    def _insist(self, token: int, id: Any, status: int) -> None:
        """After a refusal: does what the policy says, or raises."""
        core = self._core
        refused = error(status)
        try:
            if isinstance(refused, Full):
                for _ in core.room(self.full):
                    status = core.submit_one(
                        core.native.pointer,
                        self._kind.pointer,
                        ctypes.c_uint64(token),
                        self._at_options,
                        id if id is _NO_ID else ctypes.byref(id),
                    )
                    if status == layout.OK:
                        return
                    refused = error(status)
                    if not isinstance(refused, Full):
                        break
            raise refused
        finally:
            # The exception's traceback holds this frame, and what was to be submitted with it.
            del refused
            if status != layout.OK:
                job = core.jobs.pop(token, None)
                if self.watched and job is not None:
                    core.began(token, job[0], self)
                job = None

    def submit_batch(self, /, *iterables: Iterable[Any]) -> list[Task[T]]:
        """A task for each call of the function with the iterables' items side by side, as for ``map``.

        Raises as ``submit`` does. If some were accepted before, they are the exception's ``tasks``.
        """
        core = self._core
        if core.closed:
            raise core.refusal()
        calls = list(zip(*iterables))
        if not calls:
            return []
        if self.watched:
            return self._one_by_one(calls)
        count = len(calls)
        tasks: list[Task[T]] = list(map(_new, repeat(Task, count)))
        if self.deadline is not None:
            due = monotonic() + (self._chosen.delay or 0)
            for task in tasks:
                task.due = due
        tokens = array("Q", itertools.islice(core.tokens, count))
        ids = array("Q", bytes(8 * count))
        jobs = zip(tasks, repeat(self._function), calls, repeat(_NOTHING), repeat(self))
        core.jobs.update(zip(tokens, jobs))
        done, accepted = 0, ctypes.c_size_t()
        room = None
        while True:
            status = lib.pace_workers_submit_tagged_batch(
                core.native.pointer,
                self._kind.pointer,
                ctypes.byref(ctypes.c_uint64.from_buffer(tokens, 8 * done)),
                count - done,
                self._at_options,
                ctypes.byref(ctypes.c_uint64.from_buffer(ids, 8 * done)),
                ctypes.byref(accepted),
            )
            until = done + accepted.value
            for task, id in zip(tasks[done:until], ids[done:until]):
                task.at = (core, id)
            done = until
            if status == layout.OK:
                return tasks
            refused = error(status)
            if room is None:
                room = core.room(self.full)
            if not isinstance(refused, Full) or next(room, room) is room:
                break
        for token in tokens[done:]:
            core.jobs.pop(token, None)
        refused.tasks = tasks[:done]  # type: ignore[attr-defined]
        try:
            raise refused
        finally:
            # The exception's traceback holds this frame.
            del refused

    def _one_by_one(self, calls: list[tuple[Any, ...]]) -> list[Task[T]]:
        tasks: list[Task[T]] = []
        submit: Callable[..., Task[T]] = self.submit
        for arguments in calls:
            try:
                tasks.append(submit(*arguments))
            except Error as refused:
                refused.tasks = tasks  # type: ignore[attr-defined]
                raise
        return tasks

    def submit_after(self, seconds: float, /, *args: P.args, **kwargs: P.kwargs) -> Task[T]:
        """As ``submit``, but not before so many seconds from now."""
        return self.options(delay=seconds_of("seconds", seconds)).submit(*args, **kwargs)


class _Posted:
    """In the place of a Task that nobody has."""

    __slots__ = ("asked", "begun", "due", "last", "run", "worker", "_calls", "_lock", "_outcome")

    def __init__(self, calls: Calls[..., Any]) -> None:
        self._calls = calls
        self._lock = None
        self._outcome: Any = None
        self.asked = self.begun = False
        self.last: Optional[BaseException] = None
        self.run: Any = None
        self.due = 0.0
        if calls.deadline is not None:
            self.due = monotonic() + (calls._chosen.delay or 0)

    def fail_as(self, end: int, exception: BaseException) -> None:
        report("a task of %s has failed", shown(self._calls.name), raised=exception)

    def end_as(self, end: int) -> None:
        """Nobody asks."""

    def look(self) -> bool:
        """Nobody asks."""
        return False


class TaskFunction(Calls[P, T], Generic[P, T, R]):
    """A function that was decorated by ``WorkerPool.task``: called, it is itself. Its types are those of its parameters, of
    its tasks' results, and of what a call gives."""

    if TYPE_CHECKING:

        @overload
        def __get__(
            self, instance: None, owner: Optional[type[Any]] = None
        ) -> TaskFunction[P, T, R]: ...

        @overload
        def __get__(
            self: TaskFunction[Concatenate[Any, Q], T, R],
            instance: object,
            owner: Optional[type[Any]] = None,
        ) -> TaskFunction[Q, T, R]: ...

        def __get__(self, instance: object, owner: Optional[type[Any]] = None) -> Any: ...

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        called: R = self._function(*args, **kwargs)
        return called

    def stats(self) -> TaskTypeStats:
        """What has happened to its tasks."""
        stats = layout.TaskTypeStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_task_type_stats(self._kind.pointer, ctypes.byref(stats)))
        return TaskTypeStats(*(getattr(stats, name) for name in TaskTypeStats.__dataclass_fields__))


def _finite(seconds: Optional[float]) -> Optional[float]:
    return None if seconds is None or seconds == float("inf") else seconds


class Periodic:
    """A task that is submitted again and again. Runs never overlap. What one fails with is logged. Any
    thread."""

    def __init__(self, calls: Calls[..., Any], args: tuple[Any, ...], coalesce: bool) -> None:
        self._calls = calls
        self._args = args
        self._coalesce = coalesce
        self._owed = False
        self._lock = threading.Lock()
        self._handle: Optional[Handle] = None
        #: The run that was submitted last.
        self.last: Optional[Task[Any]] = None
        #: How many runs were submitted.
        self.runs = 0
        #: How many ticks started none: the run before had not ended, or there was no room.
        self.missed = 0
        self.closed = False

    def start(self, pool: Pool, seconds: float) -> None:
        self._handle = pool.every(seconds, self._tick)

    def _tick(self) -> Flow:
        if not self._lock.acquire(False):
            # A run is being submitted.
            self.missed += 1
            return Flow.WAIT
        try:
            if self.closed:
                return Flow.DONE
            if self.last is not None and not self.last.done():
                self.missed += 1
                self._owed = self._coalesce
                return Flow.WAIT
            return self._submit()
        finally:
            self._lock.release()

    def _submit(self) -> Flow:
        try:
            self.last = self._calls.submit(*self._args)
        except Full:
            self.missed += 1
            return Flow.WAIT
        except (ShutDownError, ForkedError):
            self.closed = True
            return Flow.DONE
        self.runs += 1
        self.last.add_done_callback(self._ended)
        return Flow.WAIT

    def _ended(self, run: Task[Any]) -> None:
        raised = None if run.cancelled() else run.exception(0)
        if raised is not None:
            report("a run of the periodic task %s has failed", shown(self._calls.name), raised=raised)
        # If it has ended already, this is inside the tick.
        if self._owed and self._lock.acquire(False):
            try:
                if self._owed and not self.closed:
                    self._owed = False
                    self._submit()
            finally:
                self._lock.release()

    def close(self) -> None:
        """No run begins any more. One that waits is cancelled, and one that runs is asked to give up
        (``current_attempt().cancelled``). It is not waited for, as it may be a coroutine of the loop that this is
        called in: ``last.report()`` does that."""
        self.closed = True
        if self._handle is not None and not self._handle.closed:
            self._handle.close()
        if self.last is not None:
            self.last.cancel()
