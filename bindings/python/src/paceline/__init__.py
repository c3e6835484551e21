"""paceline: an embeddable event engine, from Python.

``Executor`` is the standard library's executor interface; ``Pool`` serves descriptors, timers and
tasks; ``WorkerPool`` runs tasks that have names, retries and limits; ``Server`` and ``Http`` serve TCP and Unix connections on it, ``Udp`` datagrams; ``Hub`` carries messages
from publishers to whoever subscribes to their keys; ``Queue`` and ``Ring`` carry short byte strings between threads. Importing makes no threads.
"""

from ._archive import Archive, LinesRead, read_lines
from ._middleware import Middleware
from ._attempt import Attempt, current_attempt
from ._counters import Audit
from ._calls import Calls, Periodic, TaskFunction
from ._dead import DeadLetter, DeadLetterStats, Redelivered
from ._errors import (
    DeadlockError,
    Empty,
    Error,
    ForkedError,
    Full,
    MailboxFull,
    GivenUpError,
    InvalidError,
    LibraryError,
    NoRespondersError,
    OsError,
    ShutDownError,
    StaleError,
    TimeoutError,
    UnsupportedError,
)
from ._executor import Executor
from ._framing import Delimited, FixedLength, Frame, LengthPrefixed
from ._future import Future
from ._history import History, HistoryStats, ReplayMailbox, ReplayStats
from ._http import Headers, Http, HttpStats, Request, RequestBody, RequestEnd, Response
from ._hub import Hub, HubAudit, Key
from ._inherited import Inherited, inherited
from ._listen import Listen
from ._library import path as library_path
from ._library import version as library_version
from ._log import Log, LogRecord, LogStats, quiet, to_logging
from ._mailbox import Latency, Mailbox, SubscriptionStats
from ._message import Batch, Message, Receipt
from ._message_filter import MessageFilter
from ._metrics import Counter, Gauge, Histogram, metrics_format
from ._notices import HubError, Threshold, Watch
from ._integrations import Service, Webhook, WebhookStats
from ._policy import Rate, Retry, RetryBudget
from ._pool import (
    Flow,
    Handle,
    Interest,
    NativeThreadStats,
    Pool,
    Ready,
    Report,
    SetStats,
    Stats,
    ThreadStats,
    Timer,
    promote_new_leader,
)
from ._publisher import Publisher, PublisherStats
from ._queue import Queue
from ._reports import TaskTypeStats, ShutdownReport, WorkersAudit, WorkersHealth
from ._ring import Ring
from ._scaling import Scaling
from ._server import (
    Admission,
    Conn,
    ConnHandler,
    DrainReport,
    Reason,
    Server,
    ServerStats,
    Timeout,
    WriteStatus,
)
from ._signals import Signals
from ._sources import Lane
from ._subscriptions import Replay, Subscription
from ._supervision import Supervisor
from ._task import PermanentFailure, RetryAfter, Task, TaskReport, TaskStatus
from ._tasks import LaneRef, Strand
from ._topic import Codec, Json, Topic
from ._udp import Datagram, Peer, Udp, UdpRef, UdpStats
from ._workers import WorkerPool

__version__ = "0.1.0"

__all__ = [
    "Admission",
    "Archive",
    "Attempt",
    "Audit",
    "Batch",
    "Calls",
    "Codec",
    "Conn",
    "ConnHandler",
    "Counter",
    "Datagram",
    "DeadLetter",
    "DeadLetterStats",
    "DeadlockError",
    "Delimited",
    "DrainReport",
    "Empty",
    "Error",
    "Executor",
    "FixedLength",
    "Flow",
    "ForkedError",
    "Frame",
    "Full",
    "MailboxFull",
    "Future",
    "Gauge",
    "GivenUpError",
    "Handle",
    "Headers",
    "Histogram",
    "History",
    "HistoryStats",
    "Http",
    "HttpStats",
    "Hub",
    "HubAudit",
    "HubError",
    "Inherited",
    "Interest",
    "InvalidError",
    "Json",
    "Key",
    "TaskTypeStats",
    "Lane",
    "LaneRef",
    "Latency",
    "LengthPrefixed",
    "LibraryError",
    "LinesRead",
    "Listen",
    "Log",
    "LogRecord",
    "LogStats",
    "Mailbox",
    "Message",
    "Middleware",
    "MessageFilter",
    "NativeThreadStats",
    "NoRespondersError",
    "OsError",
    "Peer",
    "Periodic",
    "PermanentFailure",
    "Pool",
    "Publisher",
    "PublisherStats",
    "Queue",
    "Rate",
    "Ready",
    "Reason",
    "Receipt",
    "Redelivered",
    "Replay",
    "ReplayMailbox",
    "ReplayStats",
    "Report",
    "Request",
    "RequestBody",
    "RequestEnd",
    "Response",
    "Retry",
    "RetryAfter",
    "RetryBudget",
    "Ring",
    "Scaling",
    "Server",
    "ServerStats",
    "Service",
    "SetStats",
    "ShutDownError",
    "ShutdownReport",
    "Signals",
    "StaleError",
    "Stats",
    "Strand",
    "Subscription",
    "SubscriptionStats",
    "Supervisor",
    "Task",
    "TaskFunction",
    "TaskReport",
    "TaskStatus",
    "ThreadStats",
    "Threshold",
    "Timeout",
    "TimeoutError",
    "Timer",
    "Topic",
    "Udp",
    "UdpRef",
    "UdpStats",
    "UnsupportedError",
    "Watch",
    "Webhook",
    "WebhookStats",
    "WorkerPool",
    "WorkersAudit",
    "WorkersHealth",
    "WriteStatus",
    "current_attempt",
    "inherited",
    "library_path",
    "library_version",
    "metrics_format",
    "promote_new_leader",
    "quiet",
    "read_lines",
    "to_logging",
]
