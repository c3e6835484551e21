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

DEFAULT = 0xFFFF_FFFF
NONE = 0xFFFF_FFFF
FOREVER = 0xFFFF_FFFF_FFFF_FFFF

SOURCE_EPOLL = 0
SOURCE_RING = 1

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

UDP_EVENT_DATAGRAM = 0
UDP_EVENT_ERROR = 1

ANSWER_MORE = 1
ANSWER_CLOSE = 2

LENGTH_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
CONSUMED_ALL = 0xFFFF_FFFF_FFFF_FFFF
ADDRESS_SIZE = 512
INHERITED_NAME_SIZE = 256

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
        ("reserved", ctypes.c_uint8 * 5),
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


#: C's names of the structures above.
STRUCTURES: dict[str, type[ctypes.Structure]] = {
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
    "pace_pool_stats_t": PoolStats,
    "pace_thread_stats_t": ThreadStats,
    "pace_set_stats_t": SetStats,
    "pace_audit_t": Audit,
}
