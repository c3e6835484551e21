"""paceline: an embeddable event engine, from Python.

``Executor`` is the standard library's executor interface; ``Pool`` serves descriptors, timers and
tasks; ``Queue`` and ``Ring`` carry short byte strings between threads. Importing makes no threads.
"""

from ._books import Audit
from ._errors import (
    DeadlockError,
    Empty,
    Error,
    ForkedError,
    Full,
    InvalidError,
    LibraryError,
    OsError,
    ShutDownError,
    StaleError,
    TimeoutError,
)
from ._executor import Executor
from ._future import Future
from ._library import path as library_path
from ._library import version as library_version
from ._pool import (
    Flow,
    Handle,
    Interest,
    Pool,
    Ready,
    Report,
    SetStats,
    Stats,
    ThreadStats,
    Timer,
    promote_new_leader,
)
from ._queue import Queue
from ._ring import Ring
from ._sources import Lane
from ._tasks import LaneRef, Strand

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "DeadlockError",
    "Empty",
    "Error",
    "Executor",
    "Flow",
    "ForkedError",
    "Full",
    "Future",
    "Handle",
    "Interest",
    "InvalidError",
    "Lane",
    "LaneRef",
    "LibraryError",
    "OsError",
    "Pool",
    "Queue",
    "Ready",
    "Report",
    "Ring",
    "SetStats",
    "ShutDownError",
    "StaleError",
    "Stats",
    "Strand",
    "ThreadStats",
    "TimeoutError",
    "Timer",
    "library_path",
    "library_version",
    "promote_new_leader",
]
