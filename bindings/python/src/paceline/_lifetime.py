"""Fork and the interpreter's end.

Threads do not survive a fork, and nothing native may be called back or waited for once the
interpreter is being torn down. So whatever has threads is listed here, weakly: before ``threading``
joins the threads that are left, each is told to end and is waited for; in a child made by fork, each
is told that it is of no use any more. Importing makes nothing that would have to be ended.

Threads that nobody waits for are ended by the interpreter where they next take its lock. In the midst of a
native call that calls Python back that would unwind native frames, which ends the process. So the end waits
until no such thread is inside such a call, and lets none into another.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, Optional, Protocol

from ._contain import CalledBack
from ._errors import ShutDownError, UnsupportedError


class Living(Protocol):
    """What has threads."""

    def exit(self) -> None:
        """The interpreter ends: let threads end soon."""

    def join(self) -> object:
        """Waits until they have."""

    def forked(self) -> None:
        """This is a child made by fork, and has none of the threads."""


def check_threads() -> None:
    """Before a thread is made. Raises UnsupportedError: gevent or eventlet has patched ``threading``, so that it would be a
    greenlet, which waits in native code and lets no other run."""
    own = threading.get_ident
    if not isinstance(own, BuiltinFunctionType):
        patch = own.__module__.partition(".")[0]
        raise UnsupportedError(
            f"threading is patched by {patch}, and paceline needs threads; allowed: no patch, or one without threads "
            "(gevent: patch_all(thread=False), eventlet: monkey_patch(thread=False))"
        )


class AtExit:
    """Has something closed when the interpreter ends that has no threads of Python's. It does not keep it."""

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = weakref.WeakMethod(close)

    def exit(self) -> None:
        close = self._close()
        if close is not None:
            close()

    def join(self) -> None:
        """It is closed already."""

    def forked(self) -> None:
        """It is its parent's."""


#: In the order in which they were made.
_living: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
# Collecting garbage may come back here at any place.
_lock = threading.RLock()
_exiting = False

#: Calls that may call Python back, on threads that nobody waits for; and where the end waits for them.
_visits = 0
_visited = threading.Condition(_lock)

#: How many forks lie between the interpreter's start and this process.
_generation = 0


def usable_cpus() -> int:
    """How many CPUs this process may use: its affinity may allow fewer than there are."""
    count: Optional[Callable[[], Optional[int]]] = getattr(os, "process_cpu_count", None)
    if count is not None:
        return count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def enlist(living: Living) -> bool:
    """Lists it; False: the interpreter ends, and it must not begin."""
    with _lock:
        _living[living] = None
        return not _exiting


def generation() -> int:
    """Differs between a process and its children."""
    return _generation


class _Visit(CalledBack):
    """On a thread that nobody waits for: the end of the interpreter waits until the call has returned."""

    def __enter__(self) -> CalledBack:
        global _visits
        with _lock:
            if _exiting:
                raise ShutDownError("the interpreter ends")
            _visits += 1
        self._before = _generation
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        global _visits
        try:
            super().__exit__(*raised)
        finally:
            with _lock:
                # A child made by fork has none of its parent's.
                if self._before == _generation:
                    _visits -= 1
                    _visited.notify_all()


def called_back() -> CalledBack:
    """A context around a native call that calls Python back, by functions that are ``guarded`` by it: what they
    raise is raised at the end. It raises ShutDownError on a thread that nobody waits for, when the interpreter
    ends. Unlike a generator's context it leaves the attributes of what passes it alone."""
    return _Visit() if threading.current_thread().daemon else CalledBack()


def _exit() -> None:
    global _exiting
    with _lock:
        _exiting = True
        # What stands on others was made after them.
        living = [*_living][::-1]
    for each in living:
        each.exit()
    for each in living:
        each.join()
    with _lock:
        while _visits:
            _visited.wait()


def _before_fork() -> None:
    _lock.acquire()


def _after_fork_in_parent() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock, _living, _generation, _visits, _visited
    _generation += 1
    _visits, _lock = 0, threading.RLock()
    _visited = threading.Condition(_lock)
    inherited, _living = list(_living), weakref.WeakKeyDictionary()
    for each in inherited:
        each.forked()


# Runs before threads are joined, unlike what atexit registers, which is too late for threads that wait
# for more work.
getattr(threading, "_register_atexit", atexit.register)(_exit)
os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
