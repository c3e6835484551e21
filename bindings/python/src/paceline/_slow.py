"""Handlers and tasks that take too long, and who is told of them.

A run of a function of the user's is entered when it begins. Whoever removes it tells of it: a thread that has nothing
else to do and looks while it still runs, or the thread that has run it. So it is told of once, and what ends in time is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._clock import monotonic
from ._runner import Task


@dataclass(frozen=True)
class SlowReport:
    """A handler or task that has taken longer than the ``slow_limit`` of its pool."""

    #: What Python calls the function (``__qualname__``), or the class of an object that was called.
    name: str
    #: The name of the thread that runs it.
    thread: str
    #: For how many seconds it has run so far.
    elapsed: float
    #: It has not returned yet.
    running: bool


#: Who is told.
SlowHook = Callable[[SlowReport], object]


class Run:
    """One call of a function of the user's."""

    __slots__ = ("began", "function", "thread")

    def __init__(self, function: object) -> None:
        self.function = function
        self.thread = threading.current_thread().name
        self.began = monotonic()


class NamedFor:
    """Something that is called, and told of as another function, which it calls."""

    def __init__(self, call: Callable[..., object], function: object) -> None:
        self._call = call
        self.function = function

    def __call__(self) -> object:
        return self._call()


def name_of(function: object) -> str:
    """What Python calls it; the user's own classes may say anything."""
    if isinstance(function, NamedFor):
        function = function.function
    try:
        name = getattr(function, "__qualname__", None)
    except BaseException:
        name = None
    # What the class of its class says is the user's, too.
    return name if type(name) is str else type.__getattribute__(type(function), "__qualname__")


class SlowWatch:
    """The runs of a pool that have not been told of. ``begun`` is called after each has been entered."""

    def __init__(
        self,
        limit: float,
        hook: SlowHook,
        unhandled: Callable[[BaseException], None],
        begun: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._hook = hook
        self._unhandled = unhandled
        self._begun = begun
        self.runs: set[Run] = set()

    def call(self, named_for: object, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function, and tells of it as of another if that takes too long."""
        run = Run(named_for)
        self.runs.add(run)
        try:
            self._begun()
            return function(*args, **kwargs)
        finally:
            self._look_at(run, running=False)
            self.runs.discard(run)

    def look(self) -> None:
        """Tells of what runs for too long."""
        for run in self.runs.copy():
            self._look_at(run, running=True)

    def _look_at(self, run: Run, running: bool) -> None:
        elapsed = monotonic() - run.began
        if elapsed <= self._limit:
            return
        try:
            self.runs.remove(run)
        except KeyError:
            return
        try:
            self._hook(SlowReport(name_of(run.function), run.thread, elapsed, running))
        except BaseException as raised:
            self._unhandled(raised)

    def watched(self, take: Callable[[], Task]) -> Callable[[], Task]:
        """Takes tasks as that does; their functions are watched."""

        def take_watched() -> Task:
            outcome, function, arguments, keywords = task = take()
            if keywords is None:
                # A job calls nothing of the user's but by other tasks.
                return task
            return outcome, self.call, (function, function, *arguments), keywords

        return take_watched
