# What type checkers and editors know of the package: __init__.py loads each name when it is first used.

from ._archive import (
    Archive as Archive,
    LinesRead as LinesRead,
    read_lines as read_lines,
)
from ._attempt import (
    Attempt as Attempt,
    current_attempt as current_attempt,
)
from ._bridge import (
    Bridge as Bridge,
    BridgeStats as BridgeStats,
    Export as Export,
    ExportStats as ExportStats,
    Import as Import,
    ImportStats as ImportStats,
    NatsSettings as NatsSettings,
    PendingStore as PendingStore,
    StartAt as StartAt,
)
from ._calls import (
    Calls as Calls,
    Periodic as Periodic,
    TaskFunction as TaskFunction,
)
from ._counters import Audit as Audit
from ._cq import (
    Complete as Complete,
    CompletionEntry as CompletionEntry,
    CompletionQueue as CompletionQueue,
    CompletionStats as CompletionStats,
    ConnDetail as ConnDetail,
    ConnEvent as ConnEvent,
    EntryKind as EntryKind,
)
from ._dead import (
    DeadLetter as DeadLetter,
    DeadLetterStats as DeadLetterStats,
    Redelivered as Redelivered,
)
from ._durable import (
    DeadTask as DeadTask,
    DurableCalls as DurableCalls,
    DurableFunction as DurableFunction,
    DurableQueue as DurableQueue,
    DurableReport as DurableReport,
    DurableStats as DurableStats,
    DurableTask as DurableTask,
    Job as Job,
    current_job as current_job,
)
from ._errors import (
    DeadlockError as DeadlockError,
    DurableFailure as DurableFailure,
    Empty as Empty,
    Error as Error,
    ForkedError as ForkedError,
    Full as Full,
    GivenUpError as GivenUpError,
    InvalidError as InvalidError,
    LibraryError as LibraryError,
    MailboxFull as MailboxFull,
    NoRespondersError as NoRespondersError,
    OsError as OsError,
    ShutDownError as ShutDownError,
    StaleError as StaleError,
    TimeoutError as TimeoutError,
    UnsupportedError as UnsupportedError,
)
from ._executor import Executor as Executor
from ._framing import (
    Delimited as Delimited,
    FixedLength as FixedLength,
    Frame as Frame,
    LengthPrefixed as LengthPrefixed,
)
from ._future import Future as Future
from ._history import (
    History as History,
    HistoryStats as HistoryStats,
    ReplayMailbox as ReplayMailbox,
    ReplayStats as ReplayStats,
)
from ._http import (
    Headers as Headers,
    Http as Http,
    HttpStats as HttpStats,
    Request as Request,
    RequestBody as RequestBody,
    RequestEnd as RequestEnd,
    Response as Response,
)
from ._hub import (
    Hub as Hub,
    HubAudit as HubAudit,
    Key as Key,
)
from ._inherited import (
    Inherited as Inherited,
    inherited as inherited,
)
from ._integrations import (
    Service as Service,
    Webhook as Webhook,
    WebhookStats as WebhookStats,
)
from ._library import (
    path as library_path,
    version as library_version,
)
from ._listen import Listen as Listen
from ._log import (
    Log as Log,
    LogRecord as LogRecord,
    LogStats as LogStats,
    quiet as quiet,
    to_logging as to_logging,
)
from ._mailbox import (
    Latency as Latency,
    Mailbox as Mailbox,
    SubscriptionStats as SubscriptionStats,
)
from ._message import (
    Batch as Batch,
    Message as Message,
    Receipt as Receipt,
)
from ._message_filter import MessageFilter as MessageFilter
from ._metrics import (
    Counter as Counter,
    Gauge as Gauge,
    Histogram as Histogram,
    metrics_format as metrics_format,
)
from ._middleware import Middleware as Middleware
from ._notices import (
    HubError as HubError,
    Threshold as Threshold,
    Watch as Watch,
)
from ._policy import (
    Rate as Rate,
    Retry as Retry,
    RetryBudget as RetryBudget,
)
from ._pool import (
    Flow as Flow,
    Handle as Handle,
    Interest as Interest,
    Pool as Pool,
    promote_new_leader as promote_new_leader,
    Ready as Ready,
    Report as Report,
    SetStats as SetStats,
    Stats as Stats,
    ThreadStats as ThreadStats,
    Timer as Timer,
)
from ._publisher import (
    Publisher as Publisher,
    PublisherStats as PublisherStats,
)
from ._queue import Queue as Queue
from ._reports import (
    ShutdownReport as ShutdownReport,
    TaskTypeStats as TaskTypeStats,
    WorkersAudit as WorkersAudit,
    WorkerStats as WorkerStats,
    WorkersHealth as WorkersHealth,
)
from ._ring import Ring as Ring
from ._scaling import Scaling as Scaling
from ._server import (
    Admission as Admission,
    Conn as Conn,
    ConnHandler as ConnHandler,
    DrainReport as DrainReport,
    Reason as Reason,
    Server as Server,
    ServerStats as ServerStats,
    Timeout as Timeout,
    WriteStatus as WriteStatus,
)
from ._scope import Scope as Scope
from ._signals import Signals as Signals
from ._settings import Settings as Settings
from ._lane import Lane as Lane
from ._slow import SlowReport as SlowReport
from ._subscriptions import (
    Replay as Replay,
    Subscription as Subscription,
)
from ._supervision import Supervisor as Supervisor
from ._task import (
    PermanentFailure as PermanentFailure,
    RetryAfter as RetryAfter,
    Task as Task,
    TaskReport as TaskReport,
    TaskStatus as TaskStatus,
)
from ._tasks import (
    LaneRef as LaneRef,
    Strand as Strand,
)
from ._topic import (
    Codec as Codec,
    Json as Json,
    Topic as Topic,
)
from ._udp import (
    Datagram as Datagram,
    Peer as Peer,
    Udp as Udp,
    UdpRef as UdpRef,
    UdpStats as UdpStats,
)
from ._workers import WorkerPool as WorkerPool
from . import ops as ops
from .ops import Ops as Ops

__version__: str
__all__: list[str]
