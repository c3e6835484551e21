"""``Executor``: the standard interface to a pool of threads."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future as StandardFuture
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from threading import Thread
from typing import Any, Optional

from ._arguments import function, number, patience, some_plain, text, wrong
from ._clock import monotonic
from ._counters import Audit, audit_of
from ._lifetime import usable_cpus
from ._runner import Runner, Task
from ._future import Future, new_batch
from ._map import Job
from ._typing import P, T


_new = Future.__new__
_NOTHING: dict[str, Any] = {}


class Executor(ThreadPoolExecutor):
    """Behaves as ``concurrent.futures.ThreadPoolExecutor`` does, and costs less per task. It is one by its
    class, for those who insist on it, as ``loop.set_default_executor`` does; its threads and all of its methods
    are its own.

    Threads are made when work finds nobody idle, up to ``max_workers`` (default: the number of CPUs
    that the process may use and 4, at most 32), named ``thread_name_prefix`` and a number.
    ``initializer(*initargs)`` runs first on each; if it raises, the executor is broken. All methods may be
    called by any thread.
    """

    def __init__(
        self,
        max_workers: Optional[int] = None,
        thread_name_prefix: str = "",
        initializer: Optional[Callable[..., object]] = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        # Not super().__init__(), which makes what only its methods need.
        if max_workers is None:
            max_workers = min(32, usable_cpus() + 4)
        if number("max_workers", max_workers) <= 0:
            raise ValueError("max_workers must be greater than 0")
        some_plain("initializer", initializer)
        text("thread_name_prefix", thread_name_prefix)
        if not isinstance(initargs, Iterable):
            raise wrong("initargs", initargs, "a tuple")
        self._max_workers = max_workers
        if not thread_name_prefix:
            # As the standard one's, which tools look for.
            number_of_it = ThreadPoolExecutor._counter()  # type: ignore[attr-defined]
            thread_name_prefix = f"ThreadPoolExecutor-{number_of_it}"
        self._thread_name_prefix = thread_name_prefix
        self._runner = runner = Runner(
            max_workers,
            self._thread_name_prefix,
            initializer=initializer,
            initargs=initargs,
        )
        # A lost executor ends as the standard one does: what is pending still runs.
        self._lost = weakref.ref(self, lambda _: runner.close("shutdown"))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> StandardFuture[T]:
        """Lets a thread call ``fn(*args, **kwargs)``; the future has what comes of it.

        Raises RuntimeError after ``shutdown`` and at the interpreter's end, BrokenThreadPool after a
        failed initializer, ForkedError in a child made by fork.
        """
        if not callable(fn):
            raise wrong("fn", fn, "something to call")
        # This is Runner.add, in place: it is what a task costs.
        runner = self._runner
        if runner.closed is not None:
            raise runner.refusal()
        future: Future[T] = _new(Future)
        task: Task = (future, fn, args, kwargs)
        runner.tasks.append(task)
        runner.accepted.one()
        if runner.closed is not None:
            runner.withdraw([task], runner.tasks)
        if runner.asleep:
            if not runner.calling:
                runner.call()
        elif runner.missing:
            runner.grow([task])
        if runner.callers:
            runner.call_again()
        return future

    def submit_batch(
        self, fn: Callable[..., T], /, *iterables: Iterable[Any]
    ) -> list[StandardFuture[T]]:
        """As ``map``, but gives a future for each call. Raises as ``submit`` does, for all of them."""
        function("fn", fn)
        calls = list(zip(*iterables))
        futures: list[StandardFuture[T]] = new_batch(len(calls))
        tasks: list[Task] = list(zip(futures, repeat(fn), calls, repeat(_NOTHING)))
        self._runner.add_batch(tasks)
        return futures

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
        buffersize: Optional[int] = None,
    ) -> Iterator[T]:
        """The results of ``fn`` for the iterables' items side by side, in order.

        The iterables are read at once, unless ``buffersize`` says how many calls may be ahead of the
        results. ``timeout`` seconds from now on, waiting raises TimeoutError. What has not begun when
        the iterator ends early is cancelled. ``chunksize`` is there for other executors.
        """
        function("fn", fn)
        timeout = patience("timeout", timeout)
        if buffersize is not None:
            return self._map_ahead(fn, iterables, timeout, buffersize)
        job = Job(fn, zip(*iterables))
        runner = self._runner
        runner.add_job((job, job.run, (), None), job.size, job.size)
        return job.results(timeout, runner.cancelled)

    def _map_ahead(
        self,
        fn: Callable[..., T],
        iterables: tuple[Iterable[Any], ...],
        timeout: Optional[float],
        buffersize: int,
    ) -> Iterator[T]:
        number("buffersize", buffersize, "a whole number, or None")
        if buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        end = None if timeout is None else timeout + monotonic()
        calls = zip(*iterables)
        ahead = deque(self.submit(fn, *args) for args in itertools.islice(calls, buffersize))
        return _iterate_ahead(weakref.ref(self), fn, calls, ahead, end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts nothing more. What is accepted runs, or, if it has not begun, is cancelled: those who wait
        for several, as ``concurrent.futures.wait`` does, are told at once.

        With ``wait``, returns when all threads have ended.
        """
        runner = self._runner
        runner.close("shutdown")
        if cancel_futures:
            runner.sweep()
        if wait:
            runner.join()

    def audit(self) -> Audit:
        """The books of what was submitted; exact while nothing runs."""
        return audit_of(self._runner)

    # What the standard executor has under these names.

    @property
    def _threads(self) -> set[Thread]:  # type: ignore[override]
        return self._runner.threads

    @property
    def _shutdown(self) -> bool:  # type: ignore[override]
        return self._runner.closed is not None

    @property
    def _broken(self) -> bool:  # type: ignore[override]
        return self._runner.closed == "broken"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Executor: it has threads of this process")


def _iterate_ahead(
    executor: Callable[[], Optional[Executor]],
    fn: Callable[..., T],
    calls: Iterator[tuple[Any, ...]],
    ahead: deque[StandardFuture[T]],
    end: Optional[float],
) -> Iterator[T]:
    """For each result that goes out, one call comes in, while the executor is there."""
    try:
        while ahead:
            submitter = executor()
            if submitter is not None:
                ahead.extend(submitter.submit(fn, *args) for args in itertools.islice(calls, 1))
            del submitter
            yield _result(ahead.popleft(), end)
    finally:
        for future in ahead:
            future.cancel()


def _result(future: StandardFuture[T], end: Optional[float]) -> T:
    """Its result, or it is cancelled; keeps no reference to it."""
    try:
        return future.result(None if end is None else end - monotonic())
    finally:
        future.cancel()
        del future
