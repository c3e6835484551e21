"""The structures and constants of ``paceline.h``; ``tests/test_layout.py`` compares them with C."""

from __future__ import annotations

import ctypes

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
NONE = 0xFFFF_FFFF
FOREVER = 0xFFFF_FFFF_FFFF_FFFF

SOURCE_EPOLL = 0
SOURCE_RING = 1

PROMOTION_DEFERRED = 0
PROMOTION_EAGER = 1

EVENT_READY = 0
EVENT_TICK = 1
EVENT_TIMER = 2
EVENT_TASK = 3

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

COMPLETE_KEEP = 1
COMPLETE_REFUSE = 2
COMPLETE_FINISH = 4
COMPLETE_CLOSE = 8
COMPLETE_ABORT = 16
COMPLETE_FAIL = 64

REQUEST_EVENT_REQUEST = 0
REQUEST_EVENT_WRITABLE = 1
REQUEST_EVENT_PART = 2
REQUEST_EVENT_END = 3
REQUEST_EVENT_BROKEN = 4
REQUEST_EVENT_ENDED = 5

UDP_EVENT_DATAGRAM = 0
UDP_EVENT_ERROR = 1

TASK_PENDING = 0
TASK_RUNNING = 1
TASK_RETRYING = 2
TASK_COMPLETED = 3
TASK_FAILED = 4
TASK_CANCELLED = 5
TASK_TIMED_OUT = 6
TASK_REJECTED = 7

TASK_EVENT_ATTEMPT = 0
TASK_EVENT_END = 1

ADVICE_ANY = 0
ADVICE_PERMANENT = 1
ADVICE_AFTER = 2

RETRY_DEFAULT = 0
RETRY_NONE = 1
RETRY_FIXED = 2
RETRY_LINEAR = 3
RETRY_EXPONENTIAL = 4
RETRY_RANDOM = 5

OVERLOAD_DEFAULT = 0
OVERLOAD_REJECT = 1
OVERLOAD_WAIT = 2
OVERLOAD_RUN_HERE = 3
OVERLOAD_DROP_OLDEST = 4

JITTER_DEFAULT = 0
JITTER_NONE = 1
JITTER_FULL = 2
JITTER_EQUAL = 3

ENDED_COMPLETED = 0
ENDED_CANCELLED = 1
ENDED_STUCK = 2

METRIC_COUNTER = 0
METRIC_GAUGE = 1
METRIC_TIMES = 2
METRIC_BYTES = 3
METRIC_NUMBERS = 4

METRICS_JSON = 0
METRICS_PROMETHEUS = 1
METRICS_HUB = 2
METRICS_OPENMETRICS = 3
SEVERITY_INFO = 0
SEVERITY_WARNING = 1
SEVERITY_ERROR = 2
THRESHOLD_NUMBER = 0
THRESHOLD_RATE = 1
THRESHOLD_QUANTILE = 2

PRIORITY_LOW = -1
PRIORITY_NORMAL = 0
PRIORITY_HIGH = 1
PRIORITY_CRITICAL = 2

ON_EXHAUSTED_DEAD_LETTER = 0
ON_EXHAUSTED_DISCARD = 1
RESTART_ONE_FOR_ONE = 0
RESTART_ONE_FOR_ALL = 1
DEAD_FAILED = 1
DEAD_PANICKED = 2
DEAD_SUSPENDED = 3
BALANCE_ROUND_ROBIN = 0
BALANCE_LEAST_LOADED = 1
BALANCE_RANDOM = 2
REPLAY_BEGINNING = 0
REPLAY_SEQUENCE = 1
REPLAY_TIME = 2
REPLAY_LAST = 3
REPLAY_NOW = 4
DISK_GIVE_UP = 0
DISK_WAIT = 1
UNLIMITED = 0xFFFF_FFFF_FFFF_FFFF

OVERFLOW_REJECT = 0
OVERFLOW_DROP_NEWEST = 1
OVERFLOW_DROP_OLDEST = 2
OVERFLOW_CONFLATE = 3
OVERFLOW_BLOCK = 4
OVERFLOW_DEFAULT = 5
PUBLISH_NO_WAIT = 1
PUBLISH_NO_RECEIPT = 2
PUBLISH_TRY = 4

UNSUBSCRIBE_ASYNC = 0
UNSUBSCRIBE_DRAIN = 1
UNSUBSCRIBE_SYNC = 2

ANSWER_MORE = 1
ANSWER_CLOSE = 2
ANSWER_ERROR = 4

LENGTH_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
CONSUMED_ALL = 0xFFFF_FFFF_FFFF_FFFF
ADDRESS_SIZE = 512
INHERITED_NAME_SIZE = 256
PULLED_TOGETHER = 256

# Callbacks are never handed over by Python; their fields are pointers that stay NULL.
_CALLBACK = ctypes.c_void_p


class PoolConfig(ctypes.Structure):
    """``pace_pool_config_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("max_joined", ctypes.c_uint32),
        ("leaders", ctypes.c_uint32),
        ("source", ctypes.c_uint32),
        ("promotion", ctypes.c_uint32),
        ("watch_period_ns", ctypes.c_uint64),
        ("spin_ns", ctypes.c_uint64),
        ("lane_capacity", ctypes.c_uint32),
        ("strand_capacity", ctypes.c_uint32),
        ("max_handles", ctypes.c_uint32),
        ("pin_strict", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("pin", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("stack_size", ctypes.c_uint64),
        ("on_start", _CALLBACK),
        ("on_stop", _CALLBACK),
        ("on_slow", _CALLBACK),
        ("slow_ns", ctypes.c_uint64),
        ("hook_data", ctypes.c_void_p),
        ("hook_drop", _CALLBACK),
        ("reserve", ctypes.c_uint32 * 4),
        ("ageing_ns", ctypes.c_uint64),
        ("log", ctypes.c_void_p),
    ]


class HandleOptions(ctypes.Structure):
    """``pace_handle_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("interest", ctypes.c_uint32),
        ("level", ctypes.c_bool),
        ("may_block", ctypes.c_bool),
        ("paused", ctypes.c_bool),
        ("reserved", ctypes.c_uint8),
    ]


class Event(ctypes.Structure):
    """``pace_event_t``; batches are taken apart by :data:`EVENT` instead, which is quicker."""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("ready", ctypes.c_uint32),
        ("token", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
    ]


class Report(ctypes.Structure):
    """``pace_report_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("drained", ctypes.c_bool),
        ("requested", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 2),
        ("cancelled", ctypes.c_uint64),
        ("stuck", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("left", ctypes.c_uint64),
        ("worker_tasks", ctypes.c_uint64),
        ("connections", ctypes.c_uint64),
    ]


class PoolStats(ctypes.Structure):
    """``pace_pool_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("sets", ctypes.c_uint32),
        ("parked", ctypes.c_uint32),
        ("watch", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("handles", ctypes.c_uint64),
        ("wakes", ctypes.c_uint64),
        ("queued", ctypes.c_uint64 * 4),
    ]


class ThreadStats(ctypes.Structure):
    """``pace_thread_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("role", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("pin_failed", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("terms", ctypes.c_uint64),
        ("handovers", ctypes.c_uint64),
        ("rescues", ctypes.c_uint64),
        ("events", ctypes.c_uint64),
        ("handled", ctypes.c_uint64),
        ("tasks", ctypes.c_uint64),
        ("panics", ctypes.c_uint64),
        ("stolen", ctypes.c_uint64),
        ("parked", ctypes.c_uint64),
        ("ticks", ctypes.c_uint64),
    ]


class SetStats(ctypes.Structure):
    """``pace_set_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("leader", ctypes.c_uint32),
        ("harvests", ctypes.c_uint64),
        ("surplus", ctypes.c_uint64),
    ]


class Audit(ctypes.Structure):
    """``pace_audit_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("balances", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("submitted", ctypes.c_uint64),
        ("accepted", ctypes.c_uint64),
        ("rejected", ctypes.c_uint64),
        ("completed", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("cancelled", ctypes.c_uint64),
        ("in_flight", ctypes.c_uint64),
    ]


class ListenerOptions(ctypes.Structure):
    """``pace_listener_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("fd", ctypes.c_int32),
        ("address", ctypes.c_char_p),
        ("max_connections", ctypes.c_uint64),
        ("refusal", ctypes.c_char_p),
        ("refusal_size", ctypes.c_size_t),
        ("max_requests", ctypes.c_uint64),
        ("busy", ctypes.c_char_p),
        ("busy_size", ctypes.c_size_t),
        ("max_unconsumed", ctypes.c_uint64),
        ("output_low", ctypes.c_uint64),
        ("output_high", ctypes.c_uint64),
        ("output_max", ctypes.c_uint64),
        ("idle_timeout_ns", ctypes.c_uint64),
        ("read_timeout_ns", ctypes.c_uint64),
        ("stall_timeout_ns", ctypes.c_uint64),
        ("linger_ns", ctypes.c_uint64),
        ("keep_alive_ns", ctypes.c_uint64),
        ("send_buffer", ctypes.c_uint64),
        ("receive_buffer", ctypes.c_uint64),
        ("socket_mode", ctypes.c_uint32),
        ("backlog", ctypes.c_uint32),
        ("no_delay", ctypes.c_bool),
        ("v6_only", ctypes.c_bool),
        ("reuse_port", ctypes.c_bool),
        ("allow_half_open", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 4),
        ("filter", ctypes.c_void_p),
    ]


class ServerOptions(ctypes.Structure):
    """``pace_server_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("listeners", ctypes.c_void_p),
        ("listener_count", ctypes.c_size_t),
        ("outgoing", ctypes.c_void_p),
        ("connect_timeout_ns", ctypes.c_uint64),
        ("on_exhausted", _CALLBACK),
    ]


class ConnEvent(ctypes.Structure):
    """``pace_conn_event_t``"""

    _fields_ = [
        ("event", ctypes.c_uint64),
        ("conn", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("detail", ctypes.c_uint32),
        ("token", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    ]


class Completion(ctypes.Structure):
    """``pace_completion_t``"""

    _fields_ = [
        ("event", ctypes.c_uint64),
        ("consumed", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("wrote", ctypes.c_uint32),
        ("outcome", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
    ]


class DrainReport(ctypes.Structure):
    """``pace_drain_report_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("drained", ctypes.c_bool),
        ("requested", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 2),
        ("cut_off", ctypes.c_uint64),
        ("open", ctypes.c_uint64),
    ]


class ServerStats(ctypes.Structure):
    """``pace_server_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("balances", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "accepted",
                "connected",
                "turned_away",
                "open",
                "closed_peer",
                "closed_local",
                "closed_aborted",
                "closed_refused",
                "closed_timed_out",
                "closed_failed",
                "closed_unconsumed",
                "closed_panicked",
                "closed_drained",
                "closed_cut_off",
                "closed_pool_ended",
                "panics_in_close",
                "exhausted",
                "requests",
                "answered",
                "requests_aborted",
                "busy",
                "in_work",
            )
        ],
    ]


class HttpOptions(ctypes.Structure):
    """``pace_http_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("max_headers", ctypes.c_uint32),
        ("listeners", ctypes.c_void_p),
        ("listener_count", ctypes.c_size_t),
        ("max_head", ctypes.c_uint64),
        ("max_target", ctypes.c_uint64),
        ("max_body", ctypes.c_uint64),
        ("body_rate", ctypes.c_uint64),
        ("max_requests", ctypes.c_uint64),
        ("head_timeout_ns", ctypes.c_uint64),
        ("body_timeout_ns", ctypes.c_uint64),
        ("keep_alive_timeout_ns", ctypes.c_uint64),
        ("keep_alive_requests", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("on_exhausted", _CALLBACK),
        ("exhausted_data", ctypes.c_void_p),
    ]


class HttpStats(ctypes.Structure):
    """``pace_http_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("balances", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "begun",
                "in_work",
                "answered_upgraded",
                "answered_successful",
                "answered_redirected",
                "answered_client_errors",
                "answered_server_errors",
                "refused_bad_request",
                "refused_not_found",
                "refused_method_not_allowed",
                "refused_timed_out",
                "refused_body_too_large",
                "refused_target_too_long",
                "refused_expectation",
                "refused_head_too_large",
                "refused_panicked",
                "refused_unanswered",
                "refused_not_implemented",
                "refused_busy",
                "refused_version",
                "aborted_disconnected",
                "aborted_timed_out",
                "aborted_unfinished",
                "aborted_closed",
                "aborted_cut_off",
                "panics",
            )
        ],
    ]


class RequestEvent(ctypes.Structure):
    """``pace_request_event_t``"""

    _fields_ = [
        ("request", ctypes.c_uint64),
        ("conn", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("route", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    ]


class Answer(ctypes.Structure):
    """``pace_answer_t``"""

    _fields_ = [
        ("request", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("headers", ctypes.c_void_p),
        ("headers_size", ctypes.c_size_t),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("status", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("wrote", ctypes.c_uint32),
        ("outcome", ctypes.c_int32),
    ]


class Inherited(ctypes.Structure):
    """``pace_inherited_t``"""

    _fields_ = [("fd", ctypes.c_int32), ("name", ctypes.c_char * INHERITED_NAME_SIZE)]


class Ip(ctypes.Structure):
    """``pace_ip_t``"""

    _fields_ = [
        ("version", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8),
        ("port", ctypes.c_uint16),
        ("scope", ctypes.c_uint32),
        ("bytes", ctypes.c_uint8 * 16),
    ]


class Datagram(ctypes.Structure):
    """``pace_datagram_t``"""

    _fields_ = [
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("length", ctypes.c_size_t),
        ("peer", Ip),
    ]


class UdpEvent(ctypes.Structure):
    """``pace_udp_event_t``"""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("os_error", ctypes.c_int32),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("length", ctypes.c_size_t),
        ("peer", Ip),
    ]


class UdpOptions(ctypes.Structure):
    """``pace_udp_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("fd", ctypes.c_int32),
        ("bind", ctypes.c_char_p),
        ("connect", ctypes.c_char_p),
        ("batch", ctypes.c_uint32),
        ("max_datagram", ctypes.c_uint32),
        ("send_buffer", ctypes.c_uint64),
        ("receive_buffer", ctypes.c_uint64),
        ("multicast_ttl", ctypes.c_uint32),
        ("v6_only", ctypes.c_bool),
        ("reuse_port", ctypes.c_bool),
        ("broadcast", ctypes.c_bool),
        ("multicast_loop", ctypes.c_bool),
    ]


class UdpStats(ctypes.Structure):
    """``pace_udp_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("received", ctypes.c_uint64),
        ("received_bytes", ctypes.c_uint64),
        ("truncated", ctypes.c_uint64),
        ("errors", ctypes.c_uint64),
        ("sent", ctypes.c_uint64),
        ("sent_bytes", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("dropped", ctypes.c_uint64),
    ]


class WorkersConfig(ctypes.Structure):
    """``pace_workers_config_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("max_waiting", ctypes.c_uint32),
        ("max_pulled", ctypes.c_uint32),
        ("max_tasks", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("scaling", ctypes.c_bool),
        ("metrics", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 2),
        ("min_active", ctypes.c_uint32),
        ("scaling_high_ns", ctypes.c_uint64),
        ("scaling_low_ns", ctypes.c_uint64),
        ("scaling_period_ns", ctypes.c_uint64),
        ("scaling_percentile", ctypes.c_uint32),
        ("scaling_patience", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("full", ctypes.c_uint32),
        ("max_droppable", ctypes.c_uint32),
        ("full_wait_ns", ctypes.c_uint64),
        ("middleware", ctypes.c_void_p),
        ("middleware_count", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("log", ctypes.c_void_p),
    ]


class Label(ctypes.Structure):
    """``pace_label_t``"""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class LogConfig(ctypes.Structure):
    """``pace_log_config_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("capacity", ctypes.c_uint32),
        ("levels", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("max_size", ctypes.c_uint64),
        ("files", ctypes.c_uint32),
        ("pull_capacity", ctypes.c_uint32),
        ("on_record", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("drop", ctypes.c_void_p),
    ]


class LogStats(ctypes.Structure):
    """``pace_log_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("told", ctypes.c_uint64),
        ("dropped", ctypes.c_uint64),
        ("errors", ctypes.c_uint64),
        ("last_error", ctypes.c_char_p),
        ("pullable", ctypes.c_uint64),
    ]


LOG_U64 = 0
LOG_I64 = 1
LOG_F64 = 2
LOG_TEXT = 3


class LogField(ctypes.Structure):
    """``pace_log_field_t``"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("u64", ctypes.c_uint64),
        ("i64", ctypes.c_int64),
        ("f64", ctypes.c_double),
        ("text", ctypes.c_char_p),
    ]


class LogRecord(ctypes.Structure):
    """``pace_log_record_t``"""

    _fields_ = [
        ("time_ns", ctypes.c_uint64),
        ("level", ctypes.c_uint32),
        ("component", ctypes.c_uint32),
        ("event", ctypes.c_char_p),
        ("pool", ctypes.c_char_p),
        ("message", ctypes.c_char_p),
        ("fields", ctypes.POINTER(LogField)),
        ("field_count", ctypes.c_size_t),
    ]


class WorkersReport(ctypes.Structure):
    """``pace_workers_report_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("requested", ctypes.c_bool),
        ("drained", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 2),
        ("completed", ctypes.c_uint64),
        ("cancelled", ctypes.c_uint64),
        ("stuck", ctypes.c_uint32),
        ("failed_hooks", ctypes.c_uint32),
    ]


class Retry(ctypes.Structure):
    """``pace_retry_t``"""

    _fields_ = [
        ("shape", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("retries", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("first_ns", ctypes.c_uint64),
        ("cap_ns", ctypes.c_uint64),
        ("within_ns", ctypes.c_uint64),
    ]


class TaskTypeConfig(ctypes.Structure):
    """``pace_task_type_config_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("lane", ctypes.c_uint32),
        ("retry", Retry),
        ("timeout_ns", ctypes.c_uint64),
        ("queue_timeout_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("retry_delay", _CALLBACK),
        ("retry_data", ctypes.c_void_p),
        ("retry_drop", _CALLBACK),
        ("retry_budget", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("budget_per_second", ctypes.c_uint32),
        ("budget_ratio", ctypes.c_double),
        ("budget_burst", ctypes.c_uint32),
        ("rate_starts", ctypes.c_uint32),
        ("rate_per_ns", ctypes.c_uint64),
        ("rate_burst", ctypes.c_uint32),
        ("max_running", ctypes.c_uint32),
        ("soft_timeout_ns", ctypes.c_uint64),
        ("grace_ns", ctypes.c_uint64),
        ("full", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("full_wait_ns", ctypes.c_uint64),
        ("overlap_retries", ctypes.c_bool),
        ("reserved3", ctypes.c_uint8 * 7),
        ("lease_ns", ctypes.c_uint64),
    ]


class TaskOptions(ctypes.Structure):
    """``pace_task_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("lane", ctypes.c_uint32),
        ("retry", Retry),
        ("timeout_ns", ctypes.c_uint64),
        ("queue_timeout_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("delay_ns", ctypes.c_uint64),
        ("key", ctypes.c_uint64),
        ("keyed", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 7),
        ("soft_timeout_ns", ctypes.c_uint64),
        ("grace_ns", ctypes.c_uint64),
        ("full", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("full_wait_ns", ctypes.c_uint64),
    ]


class TaskReport(ctypes.Structure):
    """``pace_task_report_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("message", ctypes.c_char_p),
        ("outcome", ctypes.c_int32),
        ("attempts", ctypes.c_uint32),
        ("queue_time_ns", ctypes.c_uint64),
        ("run_time_ns", ctypes.c_uint64),
        ("worker", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class TaskEvent(ctypes.Structure):
    """``pace_task_event_t``"""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("token", ctypes.c_uint64),
        ("attempt", ctypes.c_uint64),
        ("id", ctypes.c_uint64),
    ]


class AttemptEnd(ctypes.Structure):
    """``pace_attempt_end_t``"""

    _fields_ = [
        ("attempt", ctypes.c_uint64),
        ("outcome", ctypes.c_int32),
        ("advice", ctypes.c_uint32),
        ("after_ns", ctypes.c_uint64),
        ("message", ctypes.c_char_p),
        ("status", ctypes.c_uint32),
        ("result", ctypes.c_int32),
    ]


class TaskTypeStats(ctypes.Structure):
    """``pace_task_type_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "submitted",
                "accepted",
                "rejected",
                "completed",
                "failed",
                "cancelled",
                "timed_out",
                "dropped",
                "retried",
                "retries_refused",
                "running",
                "discarded",
            )
        ],
    ]


class WorkersAudit(ctypes.Structure):
    """``pace_workers_audit_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("balances", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "submitted",
                "accepted",
                "rejected",
                "completed",
                "failed",
                "cancelled",
                "timed_out",
                "dropped",
                "in_flight",
            )
        ],
    ]


class Text(ctypes.Structure):
    """``pace_text_t``"""

    _fields_ = [("text", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Field(ctypes.Structure):
    """``pace_field_t``"""

    _fields_ = [("name", Text), ("value", Text)]


class Piece(ctypes.Structure):
    """``pace_piece_t``"""

    _fields_ = [("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Publication(ctypes.Structure):
    """``pace_publication_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_size_t),
        ("reserved", ctypes.c_uint64),
    ]


class Message(ctypes.Structure):
    """``pace_message_t``"""

    _fields_ = [
        ("sequence", ctypes.c_uint64),
        ("time_ns", ctypes.c_uint64),
        ("lost_before", ctypes.c_uint64),
        ("key", Text),
        ("payload", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_size_t),
        ("priority", ctypes.c_int32),
        ("attempt", ctypes.c_uint32),
        ("subscription", ctypes.c_uint64),
    ]


class Reply(ctypes.Structure):
    """``pace_reply_t``"""

    _fields_ = [
        ("token", ctypes.c_uint64),
        ("status", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("message", Message),
    ]


class HubOptions(ctypes.Structure):
    """``pace_hub_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("max_payload", ctypes.c_uint64),
        ("dead_letters", ctypes.c_uint64),
        ("histories", ctypes.c_void_p),
        ("history_count", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("errors", ctypes.c_uint64),
        ("notice_interval_ns", ctypes.c_uint64),
        ("count_keys", ctypes.c_uint64),
    ]


class HistoryOptions(ctypes.Structure):
    """``pace_history_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("when_full", ctypes.c_uint32),
        ("pattern", ctypes.c_char_p),
        ("keep_count", ctypes.c_uint64),
        ("keep_bytes", ctypes.c_uint64),
        ("keep_age_ns", ctypes.c_uint64),
        ("archive", ctypes.c_char_p),
        ("archive_count", ctypes.c_uint64),
        ("archive_bytes", ctypes.c_uint64),
        ("archive_age_ns", ctypes.c_uint64),
        ("lines", ctypes.c_char_p),
        ("lines_max_size", ctypes.c_uint64),
        ("lines_files", ctypes.c_uint32),
        ("commit_messages", ctypes.c_uint32),
        ("commit_delay_ns", ctypes.c_uint64),
        ("waiting_messages", ctypes.c_uint64),
        ("waiting_bytes", ctypes.c_uint64),
        ("disk_wait_ns", ctypes.c_uint64),
        ("process_only", ctypes.c_bool),
        ("check", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 6),
    ]


class ReplayStats(ctypes.Structure):
    """``pace_replay_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "delivered",
                "failed",
                "lost",
                "last",
                "matched",
                "dead_lettered",
                "discarded",
                "waiting",
                "running",
                "restarts",
                "number",
            )
        ],
        ("suspended", ctypes.c_bool),
        ("reserved2", ctypes.c_uint8 * 7),
        ("redelivered", ctypes.c_uint64),
    ]


class Query(ctypes.Structure):
    """``pace_query_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("newest", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("pattern", ctypes.c_char_p),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("since_ns", ctypes.c_uint64),
        ("until_ns", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
    ]


class HistoryStats(ctypes.Structure):
    """``pace_history_stats_t``"""

    _fields_ = [
        ("pattern", Text),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "recorded",
                "in_memory",
                "memory_bytes",
                "waiting",
                "commits",
                "given_up",
                "errors",
                "read_errors",
                "durable",
                "lines_lost",
            )
        ],
        ("last_error", Text),
        ("last_read_error", Text),
        ("last_lines_error", Text),
    ]


class Receipt(ctypes.Structure):
    """``pace_receipt_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("sequence", ctypes.c_uint64),
        ("matched", ctypes.c_uint64),
        ("enqueued", ctypes.c_uint64),
        ("dropped", ctypes.c_uint64),
        ("rejected", ctypes.c_uint64),
        ("dead_lettered", ctypes.c_uint64),
    ]


class HubAudit(ctypes.Structure):
    """``pace_hub_audit_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("balances", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "published",
                "matched",
                "delivered",
                "failed",
                "dead_lettered",
                "dropped",
                "rejected",
                "discarded",
                "waiting",
                "running",
                "redelivered",
            )
        ],
    ]


class SubscriptionOptions(ctypes.Structure):
    """``pace_subscription_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("execution", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("overflow", ctypes.c_uint32),
        ("capacity", ctypes.c_uint64),
        ("block_ns", ctypes.c_uint64),
        ("lease_ns", ctypes.c_uint64),
        ("by_priority", ctypes.c_bool),
        ("unique", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 6),
        ("retry", Retry),
        ("on_exhausted", ctypes.c_uint32),
        ("restarts", ctypes.c_uint32),
        ("within_ns", ctypes.c_uint64),
        ("supervisor", ctypes.c_void_p),
        ("on_restart", ctypes.c_void_p),
        ("filter", ctypes.c_void_p),
        ("group", ctypes.c_char_p),
        ("balance_header", ctypes.c_char_p),
        ("balance_seed", ctypes.c_uint64),
        ("balance", ctypes.c_uint32),
        ("reserved2", ctypes.c_uint32),
        ("measured", ctypes.c_bool),
        ("reserved3", ctypes.c_uint8 * 7),
        ("suspension_ns", ctypes.c_uint64),
        ("longest_suspension_ns", ctypes.c_uint64),
    ]


class SubscriptionStats(ctypes.Structure):
    """``pace_subscription_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "matched",
                "delivered",
                "failed",
                "dead_lettered",
                "dropped",
                "rejected",
                "discarded",
                "waiting",
                "running",
                "redelivered",
                "filtered",
                "restarts",
                "number",
            )
        ],
        ("suspended", ctypes.c_bool),
        ("reserved2", ctypes.c_uint8 * 7),
        *[
            (name, ctypes.c_uint64)
            for name in (
                "filter_failures",
                "latencies",
                "latency_mean_ns",
                "latency_p50_ns",
                "latency_p90_ns",
                "latency_p99_ns",
                "latency_p999_ns",
                "latency_max_ns",
            )
        ],
    ]


class WebhookOptions(ctypes.Structure):
    """``pace_webhook_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("capacity", ctypes.c_uint64),
        ("timeout_ns", ctypes.c_uint64),
        ("retry", Retry),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_size_t),
        ("proxy", ctypes.c_char_p),
    ]


class WebhookStats(ctypes.Structure):
    """``pace_webhook_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *[(name, ctypes.c_uint64) for name in ("posted", "delivered", "retried", "failed", "dropped")],
    ]


class PublishItem(ctypes.Structure):
    """``pace_publish_item_t``"""

    _fields_ = [
        ("key", ctypes.c_void_p),
        ("publication", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
    ]


class PublisherOptions(ctypes.Structure):
    """``pace_publisher_options_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("no_wait", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("quota", ctypes.c_uint32),
        ("quota_burst", ctypes.c_uint32),
        ("quota_per_ns", ctypes.c_uint64),
        ("allow", ctypes.POINTER(ctypes.c_char_p)),
        ("allow_count", ctypes.c_size_t),
    ]


class PublisherStats(ctypes.Structure):
    """``pace_publisher_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("published", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("enqueued", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
    ]


class DeadFilter(ctypes.Structure):
    """``pace_dead_filter_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("pattern", ctypes.c_char_p),
        ("subscription", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("since_ns", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
    ]


class DeadLetter(ctypes.Structure):
    """``pace_dead_letter_t``"""

    _fields_ = [
        ("message", Message),
        ("number", ctypes.c_uint64),
        ("subscription", ctypes.c_uint64),
        ("died_ns", ctypes.c_uint64),
        ("pattern", Text),
        ("failure", Text),
        ("reason", ctypes.c_uint32),
        ("attempts", ctypes.c_uint32),
    ]


class DeadLetterStats(ctypes.Structure):
    """``pace_dead_letter_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("buried", ctypes.c_uint64),
        ("held", ctypes.c_uint64),
        ("forgotten", ctypes.c_uint64),
        ("removed", ctypes.c_uint64),
    ]


class Redelivered(ctypes.Structure):
    """``pace_redelivered_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("enqueued", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("orphaned", ctypes.c_uint64),
    ]


class ErrorFilter(ctypes.Structure):
    """``pace_error_filter_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("severity", ctypes.c_uint32),
        ("event", ctypes.c_char_p),
        ("origin", ctypes.c_char_p),
        ("since_ns", ctypes.c_uint64),
        ("after", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
    ]


class HubError(ctypes.Structure):
    """``pace_hub_error_t``"""

    _fields_ = [
        ("number", ctypes.c_uint64),
        ("time_ns", ctypes.c_uint64),
        ("event", Text),
        ("origin", Text),
        ("message", Text),
        ("severity", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Threshold(ctypes.Structure):
    """``pace_threshold_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("part", ctypes.c_uint32),
        ("severity", ctypes.c_uint32),
        ("below", ctypes.c_bool),
        ("reserved", ctypes.c_uint8 * 3),
        ("metric", ctypes.c_char_p),
        ("labels", ctypes.c_void_p),
        ("label_count", ctypes.c_size_t),
        ("limit", ctypes.c_double),
        ("back_at", ctypes.c_double),
        ("quantile", ctypes.c_double),
    ]


class WatchStats(ctypes.Structure):
    """``pace_watch_stats_t``"""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("crossed", ctypes.c_uint32),
        ("looks", ctypes.c_uint64),
    ]


#: C's names of the structures above.
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "pace_text_t": Text,
    "pace_field_t": Field,
    "pace_piece_t": Piece,
    "pace_publication_t": Publication,
    "pace_message_t": Message,
    "pace_hub_options_t": HubOptions,
    "pace_receipt_t": Receipt,
    "pace_hub_audit_t": HubAudit,
    "pace_subscription_options_t": SubscriptionOptions,
    "pace_subscription_stats_t": SubscriptionStats,
    "pace_webhook_options_t": WebhookOptions,
    "pace_webhook_stats_t": WebhookStats,
    "pace_publish_item_t": PublishItem,
    "pace_publisher_options_t": PublisherOptions,
    "pace_publisher_stats_t": PublisherStats,
    "pace_dead_filter_t": DeadFilter,
    "pace_dead_letter_t": DeadLetter,
    "pace_dead_letter_stats_t": DeadLetterStats,
    "pace_redelivered_t": Redelivered,
    "pace_error_filter_t": ErrorFilter,
    "pace_hub_error_t": HubError,
    "pace_threshold_t": Threshold,
    "pace_watch_stats_t": WatchStats,
    "pace_history_options_t": HistoryOptions,
    "pace_query_t": Query,
    "pace_history_stats_t": HistoryStats,
    "pace_workers_config_t": WorkersConfig,
    "pace_label_t": Label,
    "pace_log_config_t": LogConfig,
    "pace_log_stats_t": LogStats,
    "pace_log_field_t": LogField,
    "pace_log_record_t": LogRecord,
    "pace_workers_report_t": WorkersReport,
    "pace_retry_t": Retry,
    "pace_task_type_config_t": TaskTypeConfig,
    "pace_task_options_t": TaskOptions,
    "pace_task_report_t": TaskReport,
    "pace_task_event_t": TaskEvent,
    "pace_attempt_end_t": AttemptEnd,
    "pace_task_type_stats_t": TaskTypeStats,
    "pace_workers_audit_t": WorkersAudit,
    "pace_inherited_t": Inherited,
    "pace_ip_t": Ip,
    "pace_datagram_t": Datagram,
    "pace_udp_event_t": UdpEvent,
    "pace_udp_options_t": UdpOptions,
    "pace_udp_stats_t": UdpStats,
    "pace_http_options_t": HttpOptions,
    "pace_http_stats_t": HttpStats,
    "pace_request_event_t": RequestEvent,
    "pace_answer_t": Answer,
    "pace_listener_options_t": ListenerOptions,
    "pace_server_options_t": ServerOptions,
    "pace_conn_event_t": ConnEvent,
    "pace_completion_t": Completion,
    "pace_drain_report_t": DrainReport,
    "pace_server_stats_t": ServerStats,
    "pace_pool_config_t": PoolConfig,
    "pace_handle_options_t": HandleOptions,
    "pace_event_t": Event,
    "pace_report_t": Report,
    "pace_reply_t": Reply,
    "pace_pool_stats_t": PoolStats,
    "pace_thread_stats_t": ThreadStats,
    "pace_set_stats_t": SetStats,
    "pace_audit_t": Audit,
}
