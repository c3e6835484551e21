"""``Scope``: tasks that have all run when the block ends that has posted them.

Its tasks lie in a deque of its own. What is posted to the pool is a helper, which runs one of them if there is one still; who
ends the scope does the same until there are none, and waits for those that run. So a scope ends whatever becomes of its
helpers: the pool may be full, end, or have no thread that is free.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Optional

from ._arguments import function
from ._errors import ForkedError, Full, ShutDownError
from ._typing import P

#: Among the ends of tasks: there may be one that nobody else runs.
_LOOK = object()


class Scope:
    """Tasks that have all run when its block ends: ``with pool.scope() as scope: scope.post(work, item)``. So they may use
    what the block uses, a file or a connection, and no failure is lost: the end raises what the first task that failed
    has raised, and gives the others to ``on_unhandled``.

    The thread that ends the block runs what no thread of the pool has begun, so a scope may be used in a task, and in a pool
    without threads. An exception of the block leaves it when all tasks have run. Of the thread that makes it; tasks may
    post more."""

    __slots__ = ("_lane", "_jobs", "_lock", "_posted", "_ended", "_is_over", "_process")

    def __init__(self, lane: Any) -> None:
        # A LaneRef.
        self._lane = lane
        self._jobs: deque[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = deque()
        # A signal's handler may come back here at any place.
        self._lock = threading.RLock()
        self._posted = 0
        # One for each task that has run: what it has raised, or None.
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._is_over = False
        self._process = os.getpid()

    def post(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Has ``fn(*args, **kwargs)`` called once, by a thread of the pool or by the one that ends the scope. Any thread; it never
        waits, and a pool that is full or has ended refuses nothing. Raises ShutDownError after the scope's end."""
        function("fn", fn)
        with self._lock:
            if self._is_over:
                raise ShutDownError("the scope has ended")
            self._posted += 1
        self._jobs.append((fn, args, kwargs))
        try:
            self._lane.try_post(self._run_one)
        except (Full, ShutDownError, ForkedError):
            self._ended.put(_LOOK)

    def _run_one(self) -> bool:
        """False: all have begun."""
        try:
            fn, args, kwargs = self._jobs.popleft()
        except IndexError:
            return False
        failure: Optional[BaseException] = None
        try:
            fn(*args, **kwargs)
        except BaseException as raised:
            failure = raised
        self._ended.put(failure)
        return True

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        raised: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        first, seen = raised, 0
        while True:
            while self._run_one():
                pass
            with self._lock:
                if seen == self._posted:
                    self._is_over = True
                    break
            if os.getpid() != self._process:
                raise ForkedError(
                    "the scope was made before fork: its tasks that ran then are not in this process"
                )
            failure = self._ended.get()
            if failure is _LOOK:
                continue
            seen += 1
            if failure is not None and first is None:
                first = failure
            elif failure is not None:
                self._lane._runner.unhandled_in(failure)
        if first is not raised:
            raise first
