"""Finds, checks and describes the shared library.

Two views of it: ``lib`` releases the interpreter's lock during a call, for what may wait; ``quick``
keeps it, for what takes less than letting go of the lock and getting it back would.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from . import _layout as layout
from ._clock import monotonic
from ._errors import (
    DeadlockError,
    Empty,
    Error,
    ForkedError,
    Full,
    InvalidError,
    LibraryError,
    NoRespondersError,
    OsError,
    ShutDownError,
    StaleError,
    TimeoutError,
    UnsupportedError,
)
from ._signatures import SIGNATURES

#: What this package was written for. Until 1.0 a minor version may change anything.
MAJOR, MINOR = 0, 1

NAME = "libpaceline.so"

#: How long a wait stays away from Python's handlers of signals at most. Seconds.
SLICE = 0.1


class _View(ctypes.CDLL):
    """A library whose functions get their types when they are first used. One that is asked for by an index, as
    ``lib["pace_version"]``, has none."""

    def __getattr__(self, name: str) -> Any:
        function = super().__getattr__(name)
        function.restype, *function.argtypes = SIGNATURES[name]
        return function


class _QuickView(_View, ctypes.PyDLL):
    """The same, whose functions keep the interpreter's lock."""


def _candidates() -> list[str]:
    """Where the library may be, in the order of trust."""
    chosen = os.environ.get("PACELINE_LIBRARY")
    if chosen:
        return [chosen]
    # The loader finds what the system has. ``ctypes.util.find_library`` would start a compiler, to find no more.
    return [str(Path(__file__).resolve().parent / NAME), f"{NAME}.{MAJOR}", NAME]


def _version(lib: _View) -> tuple[int, int, int]:
    packed = int(lib.pace_version())
    return packed >> 16, packed >> 8 & 0xFF, packed & 0xFF


def _trouble(path: str) -> Optional[str]:
    """Why the library at ``path`` will not do; None: it does."""
    try:
        lib = _View(path)
    except OSError as error:
        return str(error)
    try:
        version = _version(lib)
    except AttributeError:
        return "not paceline: it exports no pace_version"
    if version[:2] != (MAJOR, MINOR):
        return f"version {'.'.join(map(str, version))}, but {MAJOR}.{MINOR} is needed"
    try:
        return _misfit(lib)
    except AttributeError as error:
        return f"incomplete: {error}"


def _misfit(lib: _View) -> Optional[str]:
    """Compares sizes: an init tells how much of the struct it knows."""
    for name, struct in layout.STRUCTURES.items():
        init = f"{name.removesuffix('_t')}_init"
        if init not in SIGNATURES:
            continue
        own, size = struct(), ctypes.sizeof(struct)
        status = getattr(lib, init)(ctypes.byref(own), size)
        known = own.struct_size
        if status != layout.OK or known != size:
            return f"{init} knows {known} bytes of a struct of {size} (status {status})"
    return None


def find() -> str:
    """The path of a library that fits.

    Raises LibraryError, which lists every path that was tried and what was wrong with it.
    """
    tried = []
    for path in _candidates():
        trouble = _trouble(path)
        if trouble is None:
            return path
        tried.append(f"  {path}: {trouble}")
    told = "PACELINE_LIBRARY names" if os.environ.get("PACELINE_LIBRARY") else "There is"
    needed = f"paceline {MAJOR}.{MINOR} for Python {sys.version_info.major}.{sys.version_info.minor}"
    raise LibraryError(f"{told} no shared library that fits ({needed}). Tried:\n" + "\n".join(tried))


path = find()
lib = _View(path)
quick = _QuickView(path)
version = _version(lib)

_ERRORS: dict[int, type[Error]] = {
    layout.EINVAL: InvalidError,
    layout.EFULL: Full,
    layout.EEMPTY: Empty,
    layout.ETIMEDOUT: TimeoutError,
    layout.ESHUTDOWN: ShutDownError,
    layout.EFORKED: ForkedError,
    layout.ESTALE: StaleError,
    layout.EDEADLOCK: DeadlockError,
    layout.ENORESPONDERS: NoRespondersError,
    layout.EUNSUPPORTED: UnsupportedError,
}


def error(status: int) -> Error:
    """The exception for what this thread's last call has returned."""
    text = (quick.pace_last_error() or quick.pace_strerror(status)).decode("utf-8", "replace")
    if status == layout.EOS:
        return OsError(quick.pace_last_os_error(), text)
    return _ERRORS.get(status, Error)(text)


def check(status: int) -> None:
    """Raises what a status that is not OK means."""
    if status != layout.OK:
        raise error(status)


def in_slices(wait: Callable[[int], int], timeout: Optional[float]) -> int:
    """The status of a native call that waits for up to so many nanoseconds, called until it has ended or ``timeout``
    seconds are over (None: for ever). In between Python calls the handlers of signals, which may raise."""
    end = None if timeout is None else monotonic() + timeout
    while True:
        left = SLICE if end is None else min(SLICE, max(0.0, end - monotonic()))
        status = wait(nanoseconds(left))
        if status != layout.ETIMEDOUT or (end is not None and monotonic() >= end):
            return status


def nanoseconds(seconds: Optional[float]) -> int:
    """A time-out as C wants it; None waits for ever."""
    if seconds is None:
        return layout.FOREVER
    if not seconds > 0:
        return 0
    return min(int(seconds * 1e9), layout.FOREVER - 1) if seconds < 1e10 else layout.FOREVER
