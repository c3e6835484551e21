"""paceline: an embeddable event engine, from Python.

``Executor`` is the standard library's executor interface; ``Pool`` serves descriptors, timers and
tasks; ``Server`` and ``Http`` serve TCP and Unix connections on it, ``Udp`` datagrams; ``Queue`` and
``Ring`` carry short byte strings between threads. Importing makes no threads.
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
from ._http import Headers, Http, HttpStats, Request, RequestBody, Response
from ._inherited import Inherited, inherited
from ._listen import Listen
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
from ._server import (
    Conn,
    ConnHandler,
    DrainReport,
    Reason,
    Server,
    ServerStats,
    Timeout,
    Wrote,
)
from ._sources import Lane
from ._tasks import LaneRef, Strand
from ._udp import Datagram, Peer, Udp, UdpRef, UdpStats

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Conn",
    "ConnHandler",
    "Datagram",
    "DeadlockError",
    "DrainReport",
    "Empty",
    "Error",
    "Executor",
    "Flow",
    "ForkedError",
    "Full",
    "Future",
    "Handle",
    "Headers",
    "Http",
    "HttpStats",
    "Inherited",
    "Interest",
    "InvalidError",
    "Lane",
    "LaneRef",
    "LibraryError",
    "Listen",
    "OsError",
    "Peer",
    "Pool",
    "Queue",
    "Ready",
    "Reason",
    "Report",
    "Request",
    "RequestBody",
    "Response",
    "Ring",
    "Server",
    "ServerStats",
    "SetStats",
    "ShutDownError",
    "StaleError",
    "Stats",
    "Strand",
    "ThreadStats",
    "Timeout",
    "TimeoutError",
    "Timer",
    "Udp",
    "UdpRef",
    "UdpStats",
    "Wrote",
    "inherited",
    "library_path",
    "library_version",
    "promote_new_leader",
]
