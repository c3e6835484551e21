"""The constants and structs of the C interface.

Generated from the headers in ``include``; not to be edited.
``PACELINE_BLESS=1 cargo test --test header`` renews it.
"""

from __future__ import annotations

import ctypes as c

VERSION_MAJOR = 0
VERSION_MINOR = 1
VERSION_PATCH = 0
OK = 0
EINVAL = -1
EFULL = -2
EEMPTY = -3
ETIMEDOUT = -4
ESHUTDOWN = -5
EFORKED = -6
ESTALE = -7
ECLOSING = -8
EDEADLOCK = -9
ECANCELLED = -10
EFAILED = -11
EPANIC = -12
EOS = -13
EVERSION = -14
EBUSY = -15
ENORESPONDERS = -16
EUNSUPPORTED = -17
EGIVENUP = -18
DEFAULT = 0xFFFF_FFFF
FOREVER = 0xFFFF_FFFF_FFFF_FFFF
UNLIMITED = 0xFFFF_FFFF_FFFF_FFFF
UNLIMITED32 = 0xFFFF_FFFF
NONE = 0xFFFF_FFFF
ADDRESS_SIZE = 512
FLOW_WAIT = 0
FLOW_AGAIN = 1
FLOW_PAUSE = 2
FLOW_DONE = 3
READY_READABLE = 1
READY_PRIORITY = 2
READY_WRITABLE = 4
READY_ERROR = 8
READY_HANG_UP = 16
READY_READ_CLOSED = 32
RETRY_DEFAULT = 0
RETRY_NONE = 1
RETRY_FIXED = 2
RETRY_LINEAR = 3
RETRY_EXPONENTIAL = 4
RETRY_RANDOM = 5
RETRY_CUSTOM = 6
JITTER_DEFAULT = 0
JITTER_NONE = 1
JITTER_FULL = 2
JITTER_EQUAL = 3
LOG_OFF = 0
LOG_ERROR = 1
LOG_WARN = 2
LOG_INFO = 3
LOG_DEBUG = 4
LOG_TRACE = 5
LOG_POOL = 0
LOG_NET = 1
LOG_HTTP = 2
LOG_TASK = 3
LOG_HUB = 4
LOG_HISTORY = 5
LOG_WEBHOOK = 6
LOG_SERVICE = 7
LOG_LOG = 8
LOG_U64 = 0
LOG_I64 = 1
LOG_F64 = 2
LOG_TEXT = 3
SOURCE_EPOLL = 0
SOURCE_RING = 1
PROMOTION_DEFERRED = 0
PROMOTION_EAGER = 1
LANE_CRITICAL = 0
LANE_HIGH = 1
LANE_NORMAL = 2
LANE_LOW = 3
INLINE_BYTES = 32
INTEREST_READABLE = 1
INTEREST_PRIORITY = 2
INTEREST_WRITABLE = 4
ROLE_AWAY = 0
ROLE_FOLLOWER = 1
ROLE_WATCH = 2
ROLE_LEADER = 3
ROLE_PROCESSING = 4
ROLE_TASK = 5
ROLE_PARKED = 6
REASON_PEER = 0
REASON_LOCAL = 1
REASON_ABORTED = 2
REASON_REFUSED = 3
REASON_TIMED_OUT = 4
REASON_FAILED = 5
REASON_UNCONSUMED = 6
REASON_PANICKED = 7
REASON_DRAINED = 8
REASON_CUT_OFF = 9
REASON_POOL_ENDED = 10
TIMEOUT_CONNECT = 0
TIMEOUT_IDLE = 1
TIMEOUT_READ = 2
TIMEOUT_STALL = 3
TIMEOUT_DEADLINE = 4
WRITE_STATUS_SENT = 0
WRITE_STATUS_QUEUED = 1
WRITE_STATUS_ABOVE_HIGH_MARK = 2
WRITE_STATUS_UNWANTED = 3
ACCEPT_YES = 0
ACCEPT_REFUSE = 1
TIMEOUT_ACTION_CLOSE = 0
TIMEOUT_ACTION_KEEP = 1
FILTER_READ_OPEN = 0
FILTER_READ_ENDED = 1
INHERITED_NAME_SIZE = 256
LENGTH_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
ACCESS_COMBINED = 0
ACCESS_JSON = 1
JSON_NONE = 0
JSON_NULL = 1
JSON_BOOL = 2
JSON_NUMBER = 3
JSON_TEXT = 4
JSON_ARRAY = 5
JSON_OBJECT = 6
TASK_PENDING = 0
TASK_RUNNING = 1
TASK_RETRYING = 2
TASK_COMPLETED = 3
TASK_FAILED = 4
TASK_CANCELLED = 5
TASK_TIMED_OUT = 6
TASK_REJECTED = 7
ENDED_COMPLETED = 0
ENDED_CANCELLED = 1
ENDED_STUCK = 2
ENDED_HOOK = 3
OVERLOAD_DEFAULT = 0
OVERLOAD_REJECT = 1
OVERLOAD_WAIT = 2
OVERLOAD_RUN_HERE = 3
OVERLOAD_DROP_OLDEST = 4
MISSED_TICK_SKIP = 0
MISSED_TICK_COALESCE = 1
HEALTH_READY = 0
HEALTH_DEGRADED = 1
HEALTH_STUCK = 2
HEALTH_DRAINING = 3
METRICS_JSON = 0
METRICS_PROMETHEUS = 1
METRICS_OPENMETRICS = 3
METRIC_COUNTER = 0
METRIC_GAUGE = 1
METRIC_TIMES = 2
METRIC_BYTES = 3
METRIC_NUMBERS = 4
PRIORITY_LOW = -1
PRIORITY_NORMAL = 0
PRIORITY_HIGH = 1
PRIORITY_CRITICAL = 2
DISK_GIVE_UP = 0
DISK_WAIT = 1
PUBLISH_NO_WAIT = 1
PUBLISH_NO_RECEIPT = 2
PUBLISH_TRY = 4
ON_EXHAUSTED_DEAD_LETTER = 0
ON_EXHAUSTED_DISCARD = 1
RESTART_ONE_FOR_ONE = 0
RESTART_ONE_FOR_ALL = 1
EXECUTION_SERIAL = 0
EXECUTION_INLINE = 1
EXECUTION_CONCURRENT = 2
EXECUTION_STRAND = 3
OVERFLOW_REJECT = 0
OVERFLOW_DROP_NEWEST = 1
OVERFLOW_DROP_OLDEST = 2
OVERFLOW_CONFLATE = 3
OVERFLOW_BLOCK = 4
OVERFLOW_DEFAULT = 5
UNSUBSCRIBE_ASYNC = 0
UNSUBSCRIBE_DRAIN = 1
UNSUBSCRIBE_SYNC = 2
BALANCE_ROUND_ROBIN = 0
BALANCE_LEAST_LOADED = 1
BALANCE_RANDOM = 2
BALANCE_BY_KEY = 3
BALANCE_BY_HEADER = 4
DEAD_FAILED = 1
DEAD_PANICKED = 2
DEAD_SUSPENDED = 3
SEVERITY_INFO = 0
SEVERITY_WARNING = 1
SEVERITY_ERROR = 2
REPLAY_BEGINNING = 0
REPLAY_SEQUENCE = 1
REPLAY_TIME = 2
REPLAY_LAST = 3
REPLAY_NOW = 4
METRICS_HUB = 2
THRESHOLD_NUMBER = 0
THRESHOLD_RATE = 1
THRESHOLD_QUANTILE = 2
START_AT_FIRST = 0
START_AT_NEW = 1
START_AT_SEQUENCE = 2
START_AT_TIME = 3
DURABLE_COMPLETED = 0
DURABLE_FAILED = 1
DURABLE_CANCELLED = 2
DURABLE_TIMED_OUT = 3
CONN_EVENT_OPENED = 0
CONN_EVENT_DATA = 1
CONN_EVENT_FINISHED = 2
CONN_EVENT_WRITABLE = 3
CONN_EVENT_WRITTEN = 4
CONN_EVENT_TIMED_OUT = 5
CONN_EVENT_DRAINING = 6
CONN_EVENT_CLOSED = 7
WANTED_OPENED = 1
WANTED_FINISHED = 2
WANTED_WRITABLE = 4
WANTED_WRITTEN = 8
WANTED_TIMED_OUT = 16
WANTED_DRAINING = 32
WANTED_CLOSED = 64
WANTED_ALL = 127
CQ_READY = 1
CQ_TICK = 2
CQ_TIMER = 3
CQ_TASK = 4
CQ_CONN = 5
CQ_REQUEST = 6
CQ_BODY = 7
CQ_BODY_END = 8
CQ_BODY_BROKEN = 9
CQ_BODY_WRITABLE = 10
CQ_REQUEST_ENDED = 11
CQ_DATAGRAM = 12
CQ_DATAGRAM_ERROR = 13
CQ_ATTEMPT = 14
CQ_TASK_ENDED = 15
CQ_MESSAGE = 16
CQ_REPLY = 17
CQ_RECORD = 18
CQ_SIGNAL = 19
CQ_ENDED = 20
CQ_CLIENT_GONE = 21
CQ_AGAIN = 1
CQ_TOGETHER = 256
CQ_KEEP = 1
CQ_REFUSE = 2
CQ_FINISH = 4
CQ_CLOSE = 8
CQ_ABORT = 16
CQ_HOLD = 32
CQ_FAIL = 64
CQ_MORE = 128
CQ_ERROR_PAGE = 256
CQ_AFTER = 512
CQ_PERMANENT = 1024
CQ_RETRY = 2048
CQ_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF


class Text(c.Structure):
    """``pace_text_t``"""

    _fields_ = [
        ("text", c.c_void_p),
        ("size", c.c_size_t),
    ]


class Field(c.Structure):
    """``pace_field_t``"""

    _fields_ = [
        ("name", Text),
        ("value", Text),
    ]


class Piece(c.Structure):
    """``pace_piece_t``"""

    _fields_ = [
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
    ]


class Retry(c.Structure):
    """``pace_retry_t``"""

    _fields_ = [
        ("shape", c.c_uint32),
        ("jitter", c.c_uint32),
        ("retries", c.c_uint32),
        ("reserved", c.c_uint32),
        ("first_ns", c.c_uint64),
        ("cap_ns", c.c_uint64),
        ("within_ns", c.c_uint64),
    ]


class LogField(c.Structure):
    """``pace_log_field_t``"""

    _fields_ = [
        ("name", c.c_char_p),
        ("kind", c.c_uint32),
        ("reserved", c.c_uint32),
        ("u64", c.c_uint64),
        ("i64", c.c_int64),
        ("f64", c.c_double),
        ("text", c.c_char_p),
    ]


class LogRecord(c.Structure):
    """``pace_log_record_t``"""

    _fields_ = [
        ("time_ns", c.c_uint64),
        ("level", c.c_uint32),
        ("component", c.c_uint32),
        ("event", c.c_char_p),
        ("pool", c.c_char_p),
        ("message", c.c_char_p),
        ("fields", c.c_void_p),
        ("field_count", c.c_size_t),
    ]


class LogConfig(c.Structure):
    """``pace_log_config_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("capacity", c.c_uint32),
        ("levels", c.c_char_p),
        ("file", c.c_char_p),
        ("max_size", c.c_uint64),
        ("files", c.c_uint32),
        ("cq_capacity", c.c_uint32),
        ("on_record", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class LogStats(c.Structure):
    """``pace_log_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("told", c.c_uint64),
        ("dropped", c.c_uint64),
        ("errors", c.c_uint64),
        ("last_error", c.c_char_p),
        ("queued", c.c_uint64),
    ]


class PoolConfig(c.Structure):
    """``pace_pool_config_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("threads", c.c_uint32),
        ("max_joined", c.c_uint32),
        ("leaders", c.c_uint32),
        ("source", c.c_uint32),
        ("promotion", c.c_uint32),
        ("watch_period_ns", c.c_uint64),
        ("spin_ns", c.c_uint64),
        ("lane_capacity", c.c_uint32),
        ("strand_capacity", c.c_uint32),
        ("max_handles", c.c_uint32),
        ("pin_strict", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("pin", c.c_char_p),
        ("name", c.c_char_p),
        ("stack_size", c.c_uint64),
        ("on_start", c.c_void_p),
        ("on_stop", c.c_void_p),
        ("on_slow", c.c_void_p),
        ("slow_ns", c.c_uint64),
        ("hook_data", c.c_void_p),
        ("hook_drop", c.c_void_p),
        ("reserve", c.c_uint32 * 4),
        ("ageing_ns", c.c_uint64),
        ("log", c.c_void_p),
        ("max_turn_ns", c.c_uint64),
    ]


class Report(c.Structure):
    """``pace_report_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("drained", c.c_bool),
        ("requested", c.c_bool),
        ("reserved", c.c_uint8 * 2),
        ("cancelled", c.c_uint64),
        ("stuck", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("left", c.c_uint64),
        ("worker_tasks", c.c_uint64),
        ("connections", c.c_uint64),
    ]


class Work(c.Structure):
    """``pace_work_t``"""

    _fields_ = [
        ("run", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class HandleOptions(c.Structure):
    """``pace_handle_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("interest", c.c_uint32),
        ("level", c.c_bool),
        ("may_block", c.c_bool),
        ("paused", c.c_bool),
        ("reserved", c.c_uint8),
    ]


class PoolStats(c.Structure):
    """``pace_pool_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("threads", c.c_uint32),
        ("sets", c.c_uint32),
        ("parked", c.c_uint32),
        ("watch", c.c_uint32),
        ("reserved", c.c_uint32),
        ("handles", c.c_uint64),
        ("wakes", c.c_uint64),
        ("queued", c.c_uint64 * 4),
    ]


class ThreadStats(c.Structure):
    """``pace_thread_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("role", c.c_uint32),
        ("cpu", c.c_uint32),
        ("pin_failed", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("terms", c.c_uint64),
        ("handovers", c.c_uint64),
        ("rescues", c.c_uint64),
        ("events", c.c_uint64),
        ("handled", c.c_uint64),
        ("tasks", c.c_uint64),
        ("panics", c.c_uint64),
        ("stolen", c.c_uint64),
        ("parked", c.c_uint64),
        ("ticks", c.c_uint64),
        ("native_id", c.c_uint32),
        ("reserved2", c.c_uint32),
    ]


class SetStats(c.Structure):
    """``pace_set_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("leader", c.c_uint32),
        ("harvests", c.c_uint64),
        ("surplus", c.c_uint64),
    ]


class Audit(c.Structure):
    """``pace_audit_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("balances", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("submitted", c.c_uint64),
        ("accepted", c.c_uint64),
        ("rejected", c.c_uint64),
        ("completed", c.c_uint64),
        ("failed", c.c_uint64),
        ("cancelled", c.c_uint64),
        ("in_flight", c.c_uint64),
    ]


class ConnHooks(c.Structure):
    """``pace_conn_hooks_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("open", c.c_void_p),
        ("data", c.c_void_p),
        ("finished", c.c_void_p),
        ("writable", c.c_void_p),
        ("written", c.c_void_p),
        ("timeout", c.c_void_p),
        ("notified", c.c_void_p),
        ("draining", c.c_void_p),
        ("error", c.c_void_p),
        ("close", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class FilterHooks(c.Structure):
    """``pace_filter_hooks_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("make", c.c_void_p),
        ("received", c.c_void_p),
        ("written", c.c_void_p),
        ("finish", c.c_void_p),
        ("cut_off", c.c_void_p),
        ("free", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class ListenerOptions(c.Structure):
    """``pace_listener_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("fd", c.c_int32),
        ("address", c.c_char_p),
        ("max_connections", c.c_uint64),
        ("refusal", c.c_char_p),
        ("refusal_size", c.c_size_t),
        ("max_requests", c.c_uint64),
        ("busy", c.c_char_p),
        ("busy_size", c.c_size_t),
        ("max_unconsumed", c.c_uint64),
        ("output_low", c.c_uint64),
        ("output_high", c.c_uint64),
        ("output_max", c.c_uint64),
        ("idle_timeout_ns", c.c_uint64),
        ("read_timeout_ns", c.c_uint64),
        ("stall_timeout_ns", c.c_uint64),
        ("linger_ns", c.c_uint64),
        ("keep_alive_ns", c.c_uint64),
        ("send_buffer", c.c_uint64),
        ("receive_buffer", c.c_uint64),
        ("socket_mode", c.c_uint32),
        ("backlog", c.c_uint32),
        ("no_delay", c.c_bool),
        ("v6_only", c.c_bool),
        ("reuse_port", c.c_bool),
        ("allow_half_open", c.c_bool),
        ("reserved", c.c_uint8 * 4),
        ("filter", c.c_void_p),
    ]


class Inherited(c.Structure):
    """``pace_inherited_t``"""

    _fields_ = [
        ("fd", c.c_int32),
        ("name", c.c_char * 256),
    ]


class ServerOptions(c.Structure):
    """``pace_server_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("listeners", c.c_void_p),
        ("listener_count", c.c_size_t),
        ("outgoing", c.c_void_p),
        ("connect_timeout_ns", c.c_uint64),
        ("on_exhausted", c.c_void_p),
    ]


class DrainReport(c.Structure):
    """``pace_drain_report_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("drained", c.c_bool),
        ("requested", c.c_bool),
        ("reserved", c.c_uint8 * 2),
        ("cut_off", c.c_uint64),
        ("open", c.c_uint64),
    ]


class ServerStats(c.Structure):
    """``pace_server_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("balances", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("accepted", c.c_uint64),
        ("connected", c.c_uint64),
        ("turned_away", c.c_uint64),
        ("open", c.c_uint64),
        ("closed_peer", c.c_uint64),
        ("closed_local", c.c_uint64),
        ("closed_aborted", c.c_uint64),
        ("closed_refused", c.c_uint64),
        ("closed_timed_out", c.c_uint64),
        ("closed_failed", c.c_uint64),
        ("closed_unconsumed", c.c_uint64),
        ("closed_panicked", c.c_uint64),
        ("closed_drained", c.c_uint64),
        ("closed_cut_off", c.c_uint64),
        ("closed_pool_ended", c.c_uint64),
        ("panics_in_close", c.c_uint64),
        ("exhausted", c.c_uint64),
        ("requests", c.c_uint64),
        ("answered", c.c_uint64),
        ("requests_aborted", c.c_uint64),
        ("busy", c.c_uint64),
        ("in_work", c.c_uint64),
    ]


class Frame(c.Structure):
    """``pace_frame_t``"""

    _fields_ = [
        ("body", c.c_void_p),
        ("size", c.c_size_t),
        ("length", c.c_size_t),
    ]


class HttpOptions(c.Structure):
    """``pace_http_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("max_headers", c.c_uint32),
        ("listeners", c.c_void_p),
        ("listener_count", c.c_size_t),
        ("max_head", c.c_uint64),
        ("max_target", c.c_uint64),
        ("max_body", c.c_uint64),
        ("body_rate", c.c_uint64),
        ("max_requests", c.c_uint64),
        ("head_timeout_ns", c.c_uint64),
        ("body_timeout_ns", c.c_uint64),
        ("keep_alive_timeout_ns", c.c_uint64),
        ("keep_alive_requests", c.c_uint32),
        ("reserved", c.c_uint32),
        ("on_exhausted", c.c_void_p),
        ("exhausted_data", c.c_void_p),
    ]


class RequestBodyHooks(c.Structure):
    """``pace_request_body_hooks_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("begin", c.c_void_p),
        ("data", c.c_void_p),
        ("end", c.c_void_p),
    ]


class HttpEnd(c.Structure):
    """``pace_http_end_t``"""

    _fields_ = [
        ("status", c.c_uint32),
        ("reserved", c.c_uint32),
        ("method", Text),
        ("target", Text),
        ("duration_ns", c.c_uint64),
        ("peer", Text),
    ]


class HttpStats(c.Structure):
    """``pace_http_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("balances", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("begun", c.c_uint64),
        ("in_work", c.c_uint64),
        ("answered_upgraded", c.c_uint64),
        ("answered_successful", c.c_uint64),
        ("answered_redirected", c.c_uint64),
        ("answered_client_errors", c.c_uint64),
        ("answered_server_errors", c.c_uint64),
        ("refused_bad_request", c.c_uint64),
        ("refused_not_found", c.c_uint64),
        ("refused_method_not_allowed", c.c_uint64),
        ("refused_timed_out", c.c_uint64),
        ("refused_body_too_large", c.c_uint64),
        ("refused_target_too_long", c.c_uint64),
        ("refused_expectation", c.c_uint64),
        ("refused_head_too_large", c.c_uint64),
        ("refused_panicked", c.c_uint64),
        ("refused_unanswered", c.c_uint64),
        ("refused_not_implemented", c.c_uint64),
        ("refused_busy", c.c_uint64),
        ("refused_version", c.c_uint64),
        ("aborted_disconnected", c.c_uint64),
        ("aborted_timed_out", c.c_uint64),
        ("aborted_unfinished", c.c_uint64),
        ("aborted_closed", c.c_uint64),
        ("aborted_cut_off", c.c_uint64),
        ("panics", c.c_uint64),
    ]


class Ip(c.Structure):
    """``pace_ip_t``"""

    _fields_ = [
        ("version", c.c_uint8),
        ("reserved", c.c_uint8),
        ("port", c.c_uint16),
        ("scope", c.c_uint32),
        ("bytes", c.c_uint8 * 16),
    ]


class Datagram(c.Structure):
    """``pace_datagram_t``"""

    _fields_ = [
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
        ("length", c.c_size_t),
        ("peer", Ip),
    ]


class UdpHooks(c.Structure):
    """``pace_udp_hooks_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("data", c.c_void_p),
        ("error", c.c_void_p),
        ("close", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class UdpOptions(c.Structure):
    """``pace_udp_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("fd", c.c_int32),
        ("bind", c.c_char_p),
        ("connect", c.c_char_p),
        ("batch", c.c_uint32),
        ("max_datagram", c.c_uint32),
        ("send_buffer", c.c_uint64),
        ("receive_buffer", c.c_uint64),
        ("multicast_ttl", c.c_uint32),
        ("v6_only", c.c_bool),
        ("reuse_port", c.c_bool),
        ("broadcast", c.c_bool),
        ("multicast_loop", c.c_bool),
    ]


class UdpStats(c.Structure):
    """``pace_udp_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("received", c.c_uint64),
        ("received_bytes", c.c_uint64),
        ("truncated", c.c_uint64),
        ("errors", c.c_uint64),
        ("sent", c.c_uint64),
        ("sent_bytes", c.c_uint64),
        ("refused", c.c_uint64),
        ("failed", c.c_uint64),
        ("dropped", c.c_uint64),
    ]


class AttemptWork(c.Structure):
    """``pace_attempt_work_t``"""

    _fields_ = [
        ("run", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class Middleware(c.Structure):
    """``pace_middleware_t``"""

    _fields_ = [
        ("before", c.c_void_p),
        ("after", c.c_void_p),
        ("on_error", c.c_void_p),
        ("user_data", c.c_void_p),
        ("drop", c.c_void_p),
    ]


class WorkersConfig(c.Structure):
    """``pace_workers_config_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("max_waiting", c.c_uint32),
        ("max_queued", c.c_uint32),
        ("max_tasks", c.c_uint32),
        ("seed", c.c_uint64),
        ("scaling", c.c_bool),
        ("metrics", c.c_bool),
        ("reserved", c.c_uint8 * 2),
        ("min_active", c.c_uint32),
        ("scaling_high_ns", c.c_uint64),
        ("scaling_low_ns", c.c_uint64),
        ("scaling_period_ns", c.c_uint64),
        ("scaling_percentile", c.c_uint32),
        ("scaling_patience", c.c_uint32),
        ("name", c.c_char_p),
        ("full", c.c_uint32),
        ("max_droppable", c.c_uint32),
        ("full_wait_ns", c.c_uint64),
        ("middleware", c.c_void_p),
        ("middleware_count", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("log", c.c_void_p),
    ]


class WorkersReport(c.Structure):
    """``pace_workers_report_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("requested", c.c_bool),
        ("drained", c.c_bool),
        ("reserved", c.c_uint8 * 2),
        ("completed", c.c_uint64),
        ("cancelled", c.c_uint64),
        ("stuck", c.c_uint32),
        ("failed_hooks", c.c_uint32),
    ]


class TaskTypeConfig(c.Structure):
    """``pace_task_type_config_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("lane", c.c_uint32),
        ("retry", Retry),
        ("timeout_ns", c.c_uint64),
        ("queue_timeout_ns", c.c_uint64),
        ("deadline_ns", c.c_uint64),
        ("retry_delay", c.c_void_p),
        ("retry_data", c.c_void_p),
        ("retry_drop", c.c_void_p),
        ("retry_budget", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("budget_per_second", c.c_uint32),
        ("budget_ratio", c.c_double),
        ("budget_burst", c.c_uint32),
        ("rate_starts", c.c_uint32),
        ("rate_per_ns", c.c_uint64),
        ("rate_burst", c.c_uint32),
        ("max_running", c.c_uint32),
        ("soft_timeout_ns", c.c_uint64),
        ("grace_ns", c.c_uint64),
        ("full", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("full_wait_ns", c.c_uint64),
        ("overlap_retries", c.c_bool),
        ("reserved3", c.c_uint8 * 7),
        ("lease_ns", c.c_uint64),
    ]


class TaskOptions(c.Structure):
    """``pace_task_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("lane", c.c_uint32),
        ("retry", Retry),
        ("timeout_ns", c.c_uint64),
        ("queue_timeout_ns", c.c_uint64),
        ("deadline_ns", c.c_uint64),
        ("delay_ns", c.c_uint64),
        ("key", c.c_uint64),
        ("keyed", c.c_bool),
        ("reserved", c.c_uint8 * 7),
        ("soft_timeout_ns", c.c_uint64),
        ("grace_ns", c.c_uint64),
        ("full", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("full_wait_ns", c.c_uint64),
    ]


class TaskReport(c.Structure):
    """``pace_task_report_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("status", c.c_uint32),
        ("id", c.c_uint64),
        ("name", c.c_char_p),
        ("message", c.c_char_p),
        ("outcome", c.c_int32),
        ("attempts", c.c_uint32),
        ("queue_time_ns", c.c_uint64),
        ("run_time_ns", c.c_uint64),
        ("worker", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class TaskTypeStats(c.Structure):
    """``pace_task_type_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("submitted", c.c_uint64),
        ("accepted", c.c_uint64),
        ("rejected", c.c_uint64),
        ("completed", c.c_uint64),
        ("failed", c.c_uint64),
        ("cancelled", c.c_uint64),
        ("timed_out", c.c_uint64),
        ("dropped", c.c_uint64),
        ("retried", c.c_uint64),
        ("retries_refused", c.c_uint64),
        ("running", c.c_uint64),
        ("discarded", c.c_uint64),
    ]


class WorkersAudit(c.Structure):
    """``pace_workers_audit_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("balances", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("submitted", c.c_uint64),
        ("accepted", c.c_uint64),
        ("rejected", c.c_uint64),
        ("completed", c.c_uint64),
        ("failed", c.c_uint64),
        ("cancelled", c.c_uint64),
        ("timed_out", c.c_uint64),
        ("dropped", c.c_uint64),
        ("in_flight", c.c_uint64),
    ]


class WorkerStats(c.Structure):
    """``pace_worker_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("role", c.c_uint32),
        ("stuck", c.c_bool),
        ("reserved", c.c_uint8 * 7),
        ("task_type", c.c_char_p),
        ("attempts", c.c_uint64),
        ("completed", c.c_uint64),
        ("failed", c.c_uint64),
        ("run_time_ns", c.c_uint64),
        ("utilisation", c.c_double),
    ]


class Health(c.Structure):
    """``pace_health_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("health", c.c_uint32),
        ("threads", c.c_uint32),
        ("stuck", c.c_uint32),
        ("capacity", c.c_uint32),
        ("free", c.c_uint32),
        ("reserved_threads", c.c_uint32),
        ("reserved", c.c_uint32),
        ("queued", c.c_uint64),
    ]


class Label(c.Structure):
    """``pace_label_t``"""

    _fields_ = [
        ("name", c.c_char_p),
        ("value", c.c_char_p),
    ]


class Publication(c.Structure):
    """``pace_publication_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("priority", c.c_int32),
        ("headers", c.c_void_p),
        ("header_count", c.c_size_t),
        ("reserved", c.c_uint64),
    ]


class Message(c.Structure):
    """``pace_message_t``"""

    _fields_ = [
        ("sequence", c.c_uint64),
        ("time_ns", c.c_uint64),
        ("lost_before", c.c_uint64),
        ("key", Text),
        ("payload", c.c_void_p),
        ("size", c.c_size_t),
        ("headers", c.c_void_p),
        ("header_count", c.c_size_t),
        ("priority", c.c_int32),
        ("attempt", c.c_uint32),
        ("subscription", c.c_uint64),
    ]


class HistoryOptions(c.Structure):
    """``pace_history_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("when_full", c.c_uint32),
        ("pattern", c.c_char_p),
        ("keep_count", c.c_uint64),
        ("keep_bytes", c.c_uint64),
        ("keep_age_ns", c.c_uint64),
        ("archive", c.c_char_p),
        ("archive_count", c.c_uint64),
        ("archive_bytes", c.c_uint64),
        ("archive_age_ns", c.c_uint64),
        ("lines", c.c_char_p),
        ("lines_max_size", c.c_uint64),
        ("lines_files", c.c_uint32),
        ("commit_messages", c.c_uint32),
        ("commit_delay_ns", c.c_uint64),
        ("waiting_messages", c.c_uint64),
        ("waiting_bytes", c.c_uint64),
        ("disk_wait_ns", c.c_uint64),
        ("process_only", c.c_bool),
        ("check", c.c_bool),
        ("reserved", c.c_uint8 * 6),
    ]


class HubOptions(c.Structure):
    """``pace_hub_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("max_payload", c.c_uint64),
        ("dead_letters", c.c_uint64),
        ("histories", c.c_void_p),
        ("history_count", c.c_size_t),
        ("name", c.c_char_p),
        ("errors", c.c_uint64),
        ("notice_interval_ns", c.c_uint64),
        ("count_keys", c.c_uint64),
        ("stats_interval_ns", c.c_uint64),
    ]


class Receipt(c.Structure):
    """``pace_receipt_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("sequence", c.c_uint64),
        ("matched", c.c_uint64),
        ("enqueued", c.c_uint64),
        ("dropped", c.c_uint64),
        ("rejected", c.c_uint64),
        ("dead_lettered", c.c_uint64),
    ]


class HubAudit(c.Structure):
    """``pace_hub_audit_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("balances", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("published", c.c_uint64),
        ("matched", c.c_uint64),
        ("delivered", c.c_uint64),
        ("failed", c.c_uint64),
        ("dead_lettered", c.c_uint64),
        ("dropped", c.c_uint64),
        ("rejected", c.c_uint64),
        ("discarded", c.c_uint64),
        ("waiting", c.c_uint64),
        ("running", c.c_uint64),
        ("redelivered", c.c_uint64),
    ]


class PublishItem(c.Structure):
    """``pace_publish_item_t``"""

    _fields_ = [
        ("key", c.c_void_p),
        ("publication", c.c_void_p),
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
    ]


class PublisherOptions(c.Structure):
    """``pace_publisher_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("no_wait", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("quota", c.c_uint32),
        ("quota_burst", c.c_uint32),
        ("quota_per_ns", c.c_uint64),
        ("allow", c.POINTER(c.c_char_p)),
        ("allow_count", c.c_size_t),
    ]


class PublisherStats(c.Structure):
    """``pace_publisher_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("published", c.c_uint64),
        ("refused", c.c_uint64),
        ("enqueued", c.c_uint64),
        ("lost", c.c_uint64),
    ]


class SubscriptionOptions(c.Structure):
    """``pace_subscription_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("execution", c.c_uint32),
        ("threads", c.c_uint32),
        ("overflow", c.c_uint32),
        ("capacity", c.c_uint64),
        ("block_ns", c.c_uint64),
        ("lease_ns", c.c_uint64),
        ("by_priority", c.c_bool),
        ("acknowledged", c.c_bool),
        ("reserved", c.c_uint8 * 6),
        ("retry", Retry),
        ("on_exhausted", c.c_uint32),
        ("restarts", c.c_uint32),
        ("within_ns", c.c_uint64),
        ("supervisor", c.c_void_p),
        ("on_restart", c.c_void_p),
        ("filter", c.c_void_p),
        ("group", c.c_char_p),
        ("balance_header", c.c_char_p),
        ("balance_seed", c.c_uint64),
        ("balance", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("measured", c.c_bool),
        ("reserved3", c.c_uint8 * 7),
        ("suspension_ns", c.c_uint64),
        ("longest_suspension_ns", c.c_uint64),
        ("unique", c.c_char_p),
        ("factory", c.c_void_p),
        ("drop_handler", c.c_void_p),
    ]


class SubscriptionStats(c.Structure):
    """``pace_subscription_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("matched", c.c_uint64),
        ("delivered", c.c_uint64),
        ("failed", c.c_uint64),
        ("dead_lettered", c.c_uint64),
        ("dropped", c.c_uint64),
        ("rejected", c.c_uint64),
        ("discarded", c.c_uint64),
        ("waiting", c.c_uint64),
        ("running", c.c_uint64),
        ("redelivered", c.c_uint64),
        ("filtered", c.c_uint64),
        ("restarts", c.c_uint64),
        ("number", c.c_uint64),
        ("suspended", c.c_bool),
        ("reserved2", c.c_uint8 * 7),
        ("filter_failures", c.c_uint64),
        ("latencies", c.c_uint64),
        ("latency_mean_ns", c.c_uint64),
        ("latency_p50_ns", c.c_uint64),
        ("latency_p90_ns", c.c_uint64),
        ("latency_p99_ns", c.c_uint64),
        ("latency_p999_ns", c.c_uint64),
        ("latency_max_ns", c.c_uint64),
    ]


class DeadFilter(c.Structure):
    """``pace_dead_filter_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reason", c.c_uint32),
        ("pattern", c.c_char_p),
        ("subscription", c.c_uint64),
        ("first", c.c_uint64),
        ("last", c.c_uint64),
        ("since_ns", c.c_uint64),
        ("limit", c.c_uint64),
    ]


class DeadLetter(c.Structure):
    """``pace_dead_letter_t``"""

    _fields_ = [
        ("message", Message),
        ("number", c.c_uint64),
        ("subscription", c.c_uint64),
        ("died_ns", c.c_uint64),
        ("pattern", Text),
        ("failure", Text),
        ("reason", c.c_uint32),
        ("attempts", c.c_uint32),
    ]


class Redelivered(c.Structure):
    """``pace_redelivered_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("enqueued", c.c_uint64),
        ("refused", c.c_uint64),
        ("orphaned", c.c_uint64),
    ]


class DeadLetterStats(c.Structure):
    """``pace_dead_letter_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("buried", c.c_uint64),
        ("held", c.c_uint64),
        ("forgotten", c.c_uint64),
        ("removed", c.c_uint64),
    ]


class ErrorFilter(c.Structure):
    """``pace_error_filter_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("severity", c.c_uint32),
        ("event", c.c_char_p),
        ("origin", c.c_char_p),
        ("since_ns", c.c_uint64),
        ("after", c.c_uint64),
        ("limit", c.c_uint64),
    ]


class HubError(c.Structure):
    """``pace_hub_error_t``"""

    _fields_ = [
        ("number", c.c_uint64),
        ("time_ns", c.c_uint64),
        ("event", Text),
        ("origin", Text),
        ("message", Text),
        ("severity", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class Query(c.Structure):
    """``pace_query_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("newest", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("pattern", c.c_char_p),
        ("first", c.c_uint64),
        ("last", c.c_uint64),
        ("since_ns", c.c_uint64),
        ("until_ns", c.c_uint64),
        ("limit", c.c_uint64),
    ]


class HistoryStats(c.Structure):
    """``pace_history_stats_t``"""

    _fields_ = [
        ("pattern", Text),
        ("recorded", c.c_uint64),
        ("in_memory", c.c_uint64),
        ("memory_bytes", c.c_uint64),
        ("waiting", c.c_uint64),
        ("commits", c.c_uint64),
        ("given_up", c.c_uint64),
        ("errors", c.c_uint64),
        ("read_errors", c.c_uint64),
        ("durable", c.c_uint64),
        ("lines_lost", c.c_uint64),
        ("last_error", Text),
        ("last_read_error", Text),
        ("last_lines_error", Text),
    ]


class ReplayOptions(c.Structure):
    """``pace_replay_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("from", c.c_uint32),
        ("at", c.c_uint64),
        ("retry", Retry),
        ("on_exhausted", c.c_uint32),
        ("restarts", c.c_uint32),
        ("within_ns", c.c_uint64),
        ("supervisor", c.c_void_p),
        ("on_restart", c.c_void_p),
        ("suspension_ns", c.c_uint64),
        ("longest_suspension_ns", c.c_uint64),
        ("factory", c.c_void_p),
        ("drop_handler", c.c_void_p),
        ("acknowledged", c.c_bool),
        ("reserved", c.c_uint8 * 7),
    ]


class ReplayStats(c.Structure):
    """``pace_replay_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("delivered", c.c_uint64),
        ("failed", c.c_uint64),
        ("lost", c.c_uint64),
        ("last", c.c_uint64),
        ("matched", c.c_uint64),
        ("dead_lettered", c.c_uint64),
        ("discarded", c.c_uint64),
        ("waiting", c.c_uint64),
        ("running", c.c_uint64),
        ("restarts", c.c_uint64),
        ("number", c.c_uint64),
        ("suspended", c.c_bool),
        ("reserved2", c.c_uint8 * 7),
        ("redelivered", c.c_uint64),
    ]


class OpsOptions(c.Structure):
    """``pace_ops_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("environment", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("address", c.c_char_p),
        ("token", c.c_char_p),
        ("blocked_after_ns", c.c_uint64),
        ("workers", c.c_void_p),
        ("settings", c.POINTER(c.c_char_p)),
        ("settings_count", c.c_size_t),
        ("ready_after_ns", c.c_uint64),
        ("dead_after_ns", c.c_uint64),
    ]


class HubStats(c.Structure):
    """``pace_hub_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("keys", c.c_uint64),
        ("subscriptions", c.c_uint64),
        ("suspended", c.c_uint64),
        ("publishers", c.c_uint64),
        ("dead_letters", c.c_uint64),
        ("told", c.c_uint64),
        ("lost", c.c_uint64),
        ("errors", c.c_uint64),
        ("forgotten", c.c_uint64),
    ]


class Threshold(c.Structure):
    """``pace_threshold_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("part", c.c_uint32),
        ("severity", c.c_uint32),
        ("below", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("metric", c.c_char_p),
        ("labels", c.c_void_p),
        ("label_count", c.c_size_t),
        ("limit", c.c_double),
        ("back_at", c.c_double),
        ("quantile", c.c_double),
    ]


class Crossing(c.Structure):
    """``pace_crossing_t``"""

    _fields_ = [
        ("message", Text),
        ("figure", c.c_double),
        ("threshold", c.c_size_t),
        ("severity", c.c_uint32),
        ("crossed", c.c_bool),
        ("reserved", c.c_uint8 * 3),
    ]


class WatchStats(c.Structure):
    """``pace_watch_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("crossed", c.c_uint32),
        ("looks", c.c_uint64),
    ]


class WebhookOptions(c.Structure):
    """``pace_webhook_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("capacity", c.c_uint64),
        ("timeout_ns", c.c_uint64),
        ("retry", Retry),
        ("headers", c.c_void_p),
        ("header_count", c.c_size_t),
        ("proxy", c.c_char_p),
        ("url", c.c_char_p),
    ]


class WebhookStats(c.Structure):
    """``pace_webhook_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("posted", c.c_uint64),
        ("delivered", c.c_uint64),
        ("retried", c.c_uint64),
        ("failed", c.c_uint64),
        ("dropped", c.c_uint64),
    ]


class BridgeOptions(c.Structure):
    """``pace_bridge_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("require_tls", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("servers", c.c_char_p),
        ("name", c.c_char_p),
        ("connection_name", c.c_char_p),
        ("user", c.c_char_p),
        ("password", c.c_char_p),
        ("token", c.c_char_p),
        ("nkey_file", c.c_char_p),
        ("credentials_file", c.c_char_p),
        ("root_certificates", c.c_char_p),
        ("client_certificate", c.c_char_p),
        ("client_key", c.c_char_p),
        ("connect_timeout_ns", c.c_uint64),
        ("ping_interval_ns", c.c_uint64),
        ("reconnect_first_ns", c.c_uint64),
        ("reconnect_cap_ns", c.c_uint64),
        ("window_ns", c.c_uint64),
        ("window_count", c.c_uint64),
        ("password_file", c.c_char_p),
        ("token_file", c.c_char_p),
    ]


class BridgeExportOptions(c.Structure):
    """``pace_bridge_export_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("overflow", c.c_uint32),
        ("prefix", c.c_char_p),
        ("stream", c.c_char_p),
        ("buffer", c.c_uint64),
        ("block_ns", c.c_uint64),
        ("in_flight", c.c_uint64),
        ("spool", c.c_char_p),
    ]


class BridgeImportOptions(c.Structure):
    """``pace_bridge_import_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("start", c.c_uint32),
        ("prefix", c.c_char_p),
        ("group", c.c_char_p),
        ("stream", c.c_char_p),
        ("durable", c.c_char_p),
        ("buffer", c.c_uint64),
        ("request_timeout_ns", c.c_uint64),
        ("start_sequence", c.c_uint64),
        ("start_time_ns", c.c_uint64),
        ("retry", Retry),
        ("in_flight", c.c_uint64),
        ("ack_wait_ns", c.c_uint64),
        ("handle_timeout_ns", c.c_uint64),
    ]


class BridgeStats(c.Structure):
    """``pace_bridge_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("connected", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("connects", c.c_uint64),
        ("requests_out", c.c_uint64),
        ("requests_in", c.c_uint64),
        ("lost", c.c_uint64),
        ("exports", c.c_uint64),
        ("imports", c.c_uint64),
    ]


class BridgeExportStats(c.Structure):
    """``pace_bridge_export_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("pattern", Text),
        ("stream", Text),
        ("waiting", c.c_uint64),
        ("sent", c.c_uint64),
        ("stored", c.c_uint64),
        ("in_flight", c.c_uint64),
        ("sent_again", c.c_uint64),
        ("dropped", c.c_uint64),
        ("refused", c.c_uint64),
        ("late", c.c_uint64),
        ("turned_back", c.c_uint64),
    ]


class BridgeImportStats(c.Structure):
    """``pace_bridge_import_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("pattern", Text),
        ("stream", Text),
        ("published", c.c_uint64),
        ("acknowledged", c.c_uint64),
        ("in_flight", c.c_uint64),
        ("again", c.c_uint64),
        ("dead", c.c_uint64),
        ("lag", c.c_uint64),
        ("duplicates", c.c_uint64),
        ("turned_back", c.c_uint64),
        ("refused", c.c_uint64),
    ]


class JobInfo(c.Structure):
    """``pace_job_info_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("number", c.c_uint32),
        ("id", Text),
        ("name", Text),
        ("arguments", c.c_void_p),
        ("size", c.c_size_t),
        ("time_left_ns", c.c_uint64),
    ]


class DurableOptions(c.Structure):
    """``pace_durable_options_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("in_flight", c.c_uint32),
        ("results_ns", c.c_uint64),
        ("ack_wait_ns", c.c_uint64),
        ("window_ns", c.c_uint64),
    ]


class Submission(c.Structure):
    """``pace_submission_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("lane", c.c_uint32),
        ("delay_ns", c.c_uint64),
        ("deadline_ns", c.c_uint64),
        ("attempts", c.c_uint32),
        ("ignore_result", c.c_bool),
        ("reserved", c.c_uint8 * 3),
        ("unique", c.c_char_p),
    ]


class DurableId(c.Structure):
    """``pace_durable_id_t``"""

    _fields_ = [
        ("text", c.c_char * 40),
    ]


class DurableInfo(c.Structure):
    """``pace_durable_info_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("status", c.c_uint32),
        ("attempts", c.c_uint32),
        ("reserved", c.c_uint32),
        ("number", c.c_uint64),
        ("id", Text),
        ("name", Text),
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
        ("failure", Text),
    ]


class CqReady(c.Structure):
    """``pace_cq_ready_t``"""

    _fields_ = [
        ("handle", c.c_uint64),
        ("ready", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class CqConn(c.Structure):
    """``pace_cq_conn_t``"""

    _fields_ = [
        ("conn", c.c_uint64),
        ("event", c.c_uint32),
        ("detail", c.c_uint32),
        ("number", c.c_uint64),
    ]


class CqRequest(c.Structure):
    """``pace_cq_request_t``"""

    _fields_ = [
        ("conn", c.c_uint64),
        ("request", c.c_uint64),
    ]


class CqDatagram(c.Structure):
    """``pace_cq_datagram_t``"""

    _fields_ = [
        ("length", c.c_size_t),
        ("peer", Ip),
        ("os_error", c.c_int32),
    ]


class CqAttempt(c.Structure):
    """``pace_cq_attempt_t``"""

    _fields_ = [
        ("id", c.c_uint64),
        ("number", c.c_uint32),
        ("status", c.c_uint32),
    ]


class CqDetail(c.Union):
    """``pace_cq_detail_t``"""

    _fields_ = [
        ("ready", CqReady),
        ("conn", CqConn),
        ("request", CqRequest),
        ("datagram", CqDatagram),
        ("attempt", CqAttempt),
        ("message", Message),
        ("record", LogRecord),
        ("signal", c.c_int32),
    ]


class CqEntry(c.Structure):
    """``pace_cq_entry_t``"""

    _fields_ = [
        ("kind", c.c_uint32),
        ("flags", c.c_uint32),
        ("token", c.c_uint64),
        ("tag", c.c_uint64),
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
        ("status", c.c_int32),
        ("reserved", c.c_uint32),
        ("detail", CqDetail),
    ]


class CqConfig(c.Structure):
    """``pace_cq_config_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("beside", c.c_bool),
        ("leased_when_renewed", c.c_bool),
        ("reserved", c.c_uint8 * 2),
        ("lease_ns", c.c_uint64),
    ]


class CqStats(c.Structure):
    """``pace_cq_stats_t``"""

    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("brought", c.c_uint64),
        ("completed", c.c_uint64),
        ("withdrawn", c.c_uint64),
        ("out", c.c_uint64),
    ]


class CqCompletion(c.Structure):
    """``pace_cq_completion_t``"""

    _fields_ = [
        ("token", c.c_uint64),
        ("flags", c.c_uint32),
        ("answer", c.c_uint32),
        ("bytes", c.c_void_p),
        ("size", c.c_size_t),
        ("headers", c.c_void_p),
        ("headers_size", c.c_size_t),
        ("length", c.c_uint64),
        ("after_ns", c.c_uint64),
        ("message", c.c_char_p),
        ("error", c.c_int32),
        ("status", c.c_uint32),
        ("result", c.c_int32),
        ("reserved", c.c_uint32),
    ]


#: By their names in C.
STRUCTURES: dict[str, type[c.Structure | c.Union]] = {
    "pace_text_t": Text,
    "pace_field_t": Field,
    "pace_piece_t": Piece,
    "pace_retry_t": Retry,
    "pace_log_field_t": LogField,
    "pace_log_record_t": LogRecord,
    "pace_log_config_t": LogConfig,
    "pace_log_stats_t": LogStats,
    "pace_pool_config_t": PoolConfig,
    "pace_report_t": Report,
    "pace_work_t": Work,
    "pace_handle_options_t": HandleOptions,
    "pace_pool_stats_t": PoolStats,
    "pace_thread_stats_t": ThreadStats,
    "pace_set_stats_t": SetStats,
    "pace_audit_t": Audit,
    "pace_conn_hooks_t": ConnHooks,
    "pace_filter_hooks_t": FilterHooks,
    "pace_listener_options_t": ListenerOptions,
    "pace_inherited_t": Inherited,
    "pace_server_options_t": ServerOptions,
    "pace_drain_report_t": DrainReport,
    "pace_server_stats_t": ServerStats,
    "pace_frame_t": Frame,
    "pace_http_options_t": HttpOptions,
    "pace_request_body_hooks_t": RequestBodyHooks,
    "pace_http_end_t": HttpEnd,
    "pace_http_stats_t": HttpStats,
    "pace_ip_t": Ip,
    "pace_datagram_t": Datagram,
    "pace_udp_hooks_t": UdpHooks,
    "pace_udp_options_t": UdpOptions,
    "pace_udp_stats_t": UdpStats,
    "pace_attempt_work_t": AttemptWork,
    "pace_middleware_t": Middleware,
    "pace_workers_config_t": WorkersConfig,
    "pace_workers_report_t": WorkersReport,
    "pace_task_type_config_t": TaskTypeConfig,
    "pace_task_options_t": TaskOptions,
    "pace_task_report_t": TaskReport,
    "pace_task_type_stats_t": TaskTypeStats,
    "pace_workers_audit_t": WorkersAudit,
    "pace_worker_stats_t": WorkerStats,
    "pace_health_t": Health,
    "pace_label_t": Label,
    "pace_publication_t": Publication,
    "pace_message_t": Message,
    "pace_history_options_t": HistoryOptions,
    "pace_hub_options_t": HubOptions,
    "pace_receipt_t": Receipt,
    "pace_hub_audit_t": HubAudit,
    "pace_publish_item_t": PublishItem,
    "pace_publisher_options_t": PublisherOptions,
    "pace_publisher_stats_t": PublisherStats,
    "pace_subscription_options_t": SubscriptionOptions,
    "pace_subscription_stats_t": SubscriptionStats,
    "pace_dead_filter_t": DeadFilter,
    "pace_dead_letter_t": DeadLetter,
    "pace_redelivered_t": Redelivered,
    "pace_dead_letter_stats_t": DeadLetterStats,
    "pace_error_filter_t": ErrorFilter,
    "pace_hub_error_t": HubError,
    "pace_query_t": Query,
    "pace_history_stats_t": HistoryStats,
    "pace_replay_options_t": ReplayOptions,
    "pace_replay_stats_t": ReplayStats,
    "pace_ops_options_t": OpsOptions,
    "pace_hub_stats_t": HubStats,
    "pace_threshold_t": Threshold,
    "pace_crossing_t": Crossing,
    "pace_watch_stats_t": WatchStats,
    "pace_webhook_options_t": WebhookOptions,
    "pace_webhook_stats_t": WebhookStats,
    "pace_bridge_options_t": BridgeOptions,
    "pace_bridge_export_options_t": BridgeExportOptions,
    "pace_bridge_import_options_t": BridgeImportOptions,
    "pace_bridge_stats_t": BridgeStats,
    "pace_bridge_export_stats_t": BridgeExportStats,
    "pace_bridge_import_stats_t": BridgeImportStats,
    "pace_job_info_t": JobInfo,
    "pace_durable_options_t": DurableOptions,
    "pace_submission_t": Submission,
    "pace_durable_id_t": DurableId,
    "pace_durable_info_t": DurableInfo,
    "pace_cq_ready_t": CqReady,
    "pace_cq_conn_t": CqConn,
    "pace_cq_request_t": CqRequest,
    "pace_cq_datagram_t": CqDatagram,
    "pace_cq_attempt_t": CqAttempt,
    "pace_cq_detail_t": CqDetail,
    "pace_cq_entry_t": CqEntry,
    "pace_cq_config_t": CqConfig,
    "pace_cq_stats_t": CqStats,
    "pace_cq_completion_t": CqCompletion,
}
