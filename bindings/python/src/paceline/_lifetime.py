"""Fork and the interpreter's end.

Threads do not survive a fork, and nothing native may be called back or waited for once the
interpreter is being torn down. So whatever has threads is listed here, weakly: before ``threading``
joins the threads that are left, each is told to end and is waited for; in a child made by fork, each
is told that it is of no use any more. Importing makes nothing that would have to be ended.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Any, Protocol


class Living(Protocol):
    """What has threads."""

    def exit(self) -> None:
        """The interpreter ends: let threads end soon."""

    def join(self) -> object:
        """Waits until they have."""

    def forked(self) -> None:
        """This is a child made by fork, and has none of the threads."""


_living: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
_exiting = False

#: How many forks lie between the interpreter's start and this process.
_generation = 0


def enlist(living: Living) -> bool:
    """Lists it; False: the interpreter ends, and it must not begin."""
    with _lock:
        _living.add(living)
        return not _exiting


def generation() -> int:
    """Differs between a process and its children."""
    return _generation


def _exit() -> None:
    global _exiting
    with _lock:
        _exiting = True
        living = list(_living)
    for each in living:
        each.exit()
    for each in living:
        each.join()


def _before_fork() -> None:
    _lock.acquire()


def _after_fork_in_parent() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    global _lock, _living, _generation
    _generation += 1
    _lock = threading.Lock()
    inherited, _living = list(_living), weakref.WeakSet()
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
