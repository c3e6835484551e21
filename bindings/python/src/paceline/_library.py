"""Finds, checks and describes the shared library.

Two views of it: ``lib`` releases the interpreter's lock during a call, for what may wait; ``quick``
keeps it, for what takes less than letting go of the lock and getting it back would.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import time
from collections.abc import Callable
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from . import _layout as layout
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

#: What this package was written for. Until 1.0 a minor version may change anything.
MAJOR, MINOR = 0, 1

NAME = "libpaceline.so"

#: How long a wait stays away from Python's handlers of signals at most. Seconds.
SLICE = 0.1


def _candidates() -> list[str]:
    """Where the library may be, in the order of trust."""
    chosen = os.environ.get("PACELINE_LIBRARY")
    if chosen:
        return [chosen]
    beside = Path(__file__).resolve().parent / NAME
    system = [f"{NAME}.{MAJOR}", NAME]
    found = ctypes.util.find_library("paceline")
    return [str(beside), *system, *([found] if found and found not in system else [])]


def _version(lib: ctypes.CDLL) -> tuple[int, int, int]:
    lib.pace_version.restype = c_uint32
    lib.pace_version.argtypes = []
    packed = int(lib.pace_version())
    return packed >> 16, packed >> 8 & 0xFF, packed & 0xFF


def _trouble(path: str) -> str | None:
    """Why the library at ``path`` will not do; None: it does."""
    try:
        lib = ctypes.CDLL(path)
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


def _misfit(lib: ctypes.CDLL) -> str | None:
    """Compares sizes: an init tells how much of the struct it knows."""
    inits: list[tuple[str, ctypes.Structure]] = [
        ("pace_pool_config_init", layout.PoolConfig()),
        ("pace_handle_options_init", layout.HandleOptions()),
        ("pace_listener_options_init", layout.ListenerOptions()),
        ("pace_server_options_init", layout.ServerOptions()),
        ("pace_http_options_init", layout.HttpOptions()),
        ("pace_udp_options_init", layout.UdpOptions()),
        ("pace_workers_config_init", layout.WorkersConfig()),
        ("pace_log_config_init", layout.LogConfig()),
        ("pace_task_type_config_init", layout.TaskTypeConfig()),
        ("pace_task_options_init", layout.TaskOptions()),
        ("pace_publication_init", layout.Publication()),
        ("pace_hub_options_init", layout.HubOptions()),
        ("pace_subscription_options_init", layout.SubscriptionOptions()),
        ("pace_publisher_options_init", layout.PublisherOptions()),
        ("pace_history_options_init", layout.HistoryOptions()),
        ("pace_threshold_init", layout.Threshold()),
        ("pace_webhook_options_init", layout.WebhookOptions()),
    ]
    for name, struct in inits:
        init = getattr(lib, name)
        init.restype, init.argtypes = c_int32, [c_void_p, c_size_t]
        size = ctypes.sizeof(struct)
        status = init(ctypes.byref(struct), size)
        known = struct.struct_size
        if status != layout.OK or known != size:
            return f"{name} knows {known} bytes of a struct of {size} (status {status})"
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


_STATUS = c_int32
_POOL = c_void_p
_ID = c_uint64

# ctypes passes a struct of one 64-bit integer as it does the integer itself; that the C compiler's
# rules agree on this on the platforms that wheels exist for is what tests/test_layout.py shows.
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "pace_strerror": (c_char_p, [_STATUS]),
    "pace_status_name": (c_char_p, [_STATUS]),
    "pace_last_error": (c_char_p, []),
    "pace_last_os_error": (c_int32, []),
    "pace_pool_config_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_pool_config_load": (_STATUS, [c_void_p, c_char_p, c_bool]),
    "pace_pool_new": (_STATUS, [c_void_p, POINTER(_POOL)]),
    "pace_pool_shutdown": (_STATUS, [_POOL, c_uint64, c_void_p]),
    "pace_pool_free": (None, [_POOL]),
    "pace_pool_pollable": (_STATUS, [_POOL, POINTER(c_int32)]),
    "pace_pool_stats": (_STATUS, [_POOL, c_void_p]),
    "pace_pool_thread_stats": (_STATUS, [_POOL, c_uint32, c_void_p]),
    "pace_pool_set_stats": (_STATUS, [_POOL, c_uint32, c_void_p]),
    "pace_pool_audit": (_STATUS, [_POOL, c_void_p]),
    "pace_handle_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_handle_pause": (_STATUS, [_POOL, _ID]),
    "pace_handle_resume": (_STATUS, [_POOL, _ID]),
    "pace_handle_deregister": (_STATUS, [_POOL, _ID]),
    "pace_handle_is_open": (_STATUS, [_POOL, _ID, POINTER(c_bool)]),
    "pace_timer_cancel": (_STATUS, [_POOL, _ID, POINTER(c_bool)]),
    "pace_timer_postpone": (_STATUS, [_POOL, _ID, c_uint64, POINTER(c_bool)]),
    "pace_pull_register": (_STATUS, [_POOL, c_int32, c_void_p, c_uint64, POINTER(_ID)]),
    "pace_pull_every": (_STATUS, [_POOL, c_uint64, c_uint64, POINTER(_ID)]),
    "pace_pull_after": (_STATUS, [_POOL, c_uint64, c_uint64, POINTER(_ID)]),
    "pace_pull_post": (_STATUS, [_POOL, c_uint64]),
    "pace_pool_pull": (_STATUS, [_POOL, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_pull_complete": (_STATUS, [_POOL, _ID, c_int32]),
    "pace_pull_done": (_STATUS, [_POOL]),
    "pace_listener_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_server_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_server_address": (_STATUS, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "pace_server_drain": (_STATUS, [c_void_p, c_uint64, c_void_p]),
    "pace_server_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_server_conn_write": (_STATUS, [c_void_p, _ID, c_char_p, c_size_t, POINTER(c_uint32)]),
    "pace_server_conn_write_vectored": (
        _STATUS,
        [c_void_p, _ID, c_void_p, c_size_t, POINTER(c_uint32)],
    ),
    "pace_server_conn_write_tracked": (
        _STATUS,
        [c_void_p, _ID, c_char_p, c_size_t, c_uint64, POINTER(c_uint32)],
    ),
    "pace_server_conn_shutdown_write": (_STATUS, [c_void_p, _ID]),
    "pace_server_conn_close": (_STATUS, [c_void_p, _ID]),
    "pace_server_conn_abort": (_STATUS, [c_void_p, _ID]),
    "pace_server_conn_pause": (_STATUS, [c_void_p, _ID]),
    "pace_server_conn_resume": (_STATUS, [c_void_p, _ID]),
    "pace_server_conn_peer": (_STATUS, [c_void_p, _ID, c_void_p, c_size_t]),
    "pace_server_conn_local": (_STATUS, [c_void_p, _ID, c_void_p, c_size_t]),
    "pace_server_conn_queued": (_STATUS, [c_void_p, _ID, POINTER(c_size_t)]),
    "pace_pulled_new": (_STATUS, [_POOL, c_void_p, c_uint32, POINTER(c_void_p)]),
    "pace_pulled_server": (_STATUS, [c_void_p, POINTER(c_void_p)]),
    "pace_pulled_connect": (_STATUS, [c_void_p, c_char_p, c_uint32, POINTER(_ID)]),
    "pace_pulled_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_pulled_admit": (_STATUS, [c_void_p, _ID, POINTER(c_void_p)]),
    "pace_admission_answered": (_STATUS, [c_void_p]),
    "pace_admission_free": (None, [c_void_p]),
    "pace_pulled_complete": (_STATUS, [c_void_p, c_void_p, c_size_t]),
    "pace_pulled_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_pulled_close": (_STATUS, [c_void_p]),
    "pace_pulled_free": (None, [c_void_p]),
    "pace_server_cut_off": (_STATUS, [c_void_p]),
    "pace_http_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_http_new": (_STATUS, [_POOL, POINTER(c_void_p)]),
    "pace_http_fallback_pulled": (_STATUS, [c_void_p, c_void_p, c_uint32]),
    "pace_http_on_end_pulled": (_STATUS, [c_void_p, c_void_p]),
    "pace_http_route_pulled": (_STATUS, [c_void_p, c_char_p, c_char_p, c_void_p, c_uint32]),
    "pace_http_route_pulled_streaming": (
        _STATUS,
        [c_void_p, c_char_p, c_char_p, c_void_p, c_uint32],
    ),
    "pace_http_start": (_STATUS, [c_void_p, c_void_p]),
    "pace_http_server": (_STATUS, [c_void_p, POINTER(c_void_p)]),
    "pace_http_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_http_fail": (_STATUS, [c_void_p, _ID]),
    "pace_http_free": (None, [c_void_p]),
    "pace_requests_new": (_STATUS, [_POOL, POINTER(c_void_p)]),
    "pace_requests_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_requests_answer": (_STATUS, [c_void_p, c_void_p, c_size_t]),
    "pace_requests_drop": (_STATUS, [c_void_p, _ID]),
    "pace_requests_fail": (_STATUS, [c_void_p, _ID]),
    "pace_requests_read": (_STATUS, [c_void_p, _ID]),
    "pace_requests_upgrade": (
        _STATUS,
        [c_void_p, _ID, c_char_p, c_char_p, c_size_t, c_void_p, c_uint32, POINTER(_ID)],
    ),
    "pace_requests_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_requests_close": (_STATUS, [c_void_p]),
    "pace_requests_free": (None, [c_void_p]),
    "pace_inherited_take": (_STATUS, [c_void_p, c_size_t, POINTER(c_size_t)]),
    "pace_ip_read": (_STATUS, [c_char_p, c_void_p]),
    "pace_ip_text": (_STATUS, [c_char_p, c_void_p, c_size_t]),
    "pace_udp_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_udp_address": (_STATUS, [c_void_p, c_void_p, c_size_t]),
    "pace_udp_send": (_STATUS, [c_void_p, c_char_p, c_size_t]),
    "pace_udp_send_to": (_STATUS, [c_void_p, c_char_p, c_size_t, c_char_p]),
    "pace_udp_send_batch": (_STATUS, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "pace_udp_join_multicast": (_STATUS, [c_void_p, c_char_p, c_uint32]),
    "pace_udp_leave_multicast": (_STATUS, [c_void_p, c_char_p, c_uint32]),
    "pace_udp_close": (_STATUS, [c_void_p]),
    "pace_udp_is_open": (_STATUS, [c_void_p, POINTER(c_bool)]),
    "pace_udp_drain": (_STATUS, [c_void_p, c_uint64, POINTER(c_bool)]),
    "pace_udp_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_udp_pulled_new": (_STATUS, [_POOL, c_void_p, c_uint64, POINTER(c_void_p)]),
    "pace_udp_pulled_udp": (_STATUS, [c_void_p, POINTER(c_void_p)]),
    "pace_udp_pulled_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_udp_pulled_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_udp_pulled_free": (None, [c_void_p]),
    "pace_workers_config_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_workers_config_load": (_STATUS, [c_void_p, c_char_p, c_bool]),
    "pace_workers_metric": (
        _STATUS,
        [c_void_p, c_uint32, c_char_p, c_char_p, c_void_p, c_size_t, POINTER(c_void_p)],
    ),
    "pace_metric_count": (_STATUS, [c_void_p, c_uint64]),
    "pace_metric_set": (_STATUS, [c_void_p, c_double]),
    "pace_metric_change": (_STATUS, [c_void_p, c_double]),
    "pace_metric_record": (_STATUS, [c_void_p, c_uint64]),
    "pace_metric_free": (None, [c_void_p]),
    "pace_log_config_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_log_config_load": (_STATUS, [c_void_p, c_char_p, c_bool]),
    "pace_log_new": (_STATUS, [c_void_p, POINTER(c_void_p)]),
    "pace_log_install": (_STATUS, [c_void_p]),
    "pace_log_set_levels": (_STATUS, [c_void_p, c_char_p]),
    "pace_log_level": (_STATUS, [c_void_p, c_uint32, POINTER(c_uint32)]),
    "pace_log_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_log_flush": (_STATUS, [c_void_p, c_uint64]),
    "pace_log_close": (_STATUS, [c_void_p, c_uint64]),
    "pace_log_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_log_free": (None, [c_void_p]),
    "pace_quiet": (None, [c_bool]),
    "pace_log_level_name": (c_char_p, [c_uint32]),
    "pace_log_component_name": (c_char_p, [c_uint32]),
    "pace_workers_new": (_STATUS, [_POOL, c_void_p, POINTER(c_void_p)]),
    "pace_workers_shutdown": (
        _STATUS,
        [c_void_p, c_uint64, c_uint64, c_uint64, c_void_p, c_void_p, c_void_p],
    ),
    "pace_workers_free": (None, [c_void_p]),
    "pace_workers_submit_pulled": (_STATUS, [c_void_p, c_void_p, c_uint64, c_void_p, POINTER(_ID)]),
    "pace_workers_submit_pulled_batch": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, POINTER(c_size_t)],
    ),
    "pace_workers_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_workers_complete": (_STATUS, [c_void_p, c_void_p, c_size_t]),
    "pace_workers_is_cancelled": (_STATUS, [c_void_p, c_uint64, POINTER(c_bool)]),
    "pace_workers_heartbeat": (_STATUS, [c_void_p, c_uint64]),
    "pace_workers_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_workers_wait": (_STATUS, [c_void_p, _ID, c_uint64, c_void_p]),
    "pace_workers_status": (_STATUS, [c_void_p, _ID, POINTER(c_uint32)]),
    "pace_workers_cancel": (_STATUS, [c_void_p, _ID, POINTER(c_bool)]),
    "pace_workers_detach": (_STATUS, [c_void_p, _ID]),
    "pace_workers_drop": (_STATUS, [c_void_p, _ID, POINTER(c_bool)]),
    "pace_workers_audit": (_STATUS, [c_void_p, c_void_p]),
    "pace_workers_metrics": (
        _STATUS,
        [c_void_p, c_uint32, c_void_p, c_size_t, POINTER(c_size_t)],
    ),
    "pace_task_type_config_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_task_type_new": (_STATUS, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "pace_task_type_free": (None, [c_void_p]),
    "pace_task_type_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_task_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_publication_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_hub_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_hub_new": (_STATUS, [_POOL, c_void_p, POINTER(c_void_p)]),
    "pace_hub_free": (None, [c_void_p]),
    "pace_hub_key": (_STATUS, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "pace_key_free": (None, [c_void_p]),
    "pace_key_publish": (_STATUS, [c_void_p, c_char_p, c_size_t, c_uint32, c_void_p]),
    "pace_hub_publish": (_STATUS, [c_void_p, c_char_p, c_char_p, c_size_t, c_uint32, c_void_p]),
    "pace_key_publish_with": (_STATUS, [c_void_p, c_void_p, c_char_p, c_size_t, c_uint32, c_void_p]),
    "pace_key_publish_batch": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p]),
    "pace_key_await_room": (_STATUS, [c_void_p, c_uint64, c_uint64]),
    "pace_hub_publish_all": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p]),
    "pace_hub_audit": (_STATUS, [c_void_p, c_void_p]),
    "pace_hub_subscriber_count": (_STATUS, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "pace_hub_patterns": (_STATUS, [c_void_p, c_void_p, c_void_p]),
    "pace_subscription_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_hub_mailbox": (_STATUS, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "pace_mailbox_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)]),
    "pace_mailbox_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_mailbox_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_mailbox_unsubscribe": (_STATUS, [c_void_p, c_uint32, POINTER(c_bool)]),
    "pace_mailbox_free": (None, [c_void_p]),
    "pace_mailbox_bury": (_STATUS, [c_void_p, c_void_p, c_char_p, c_uint32]),
    "pace_hub_dead_letters": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_size_t)],
    ),
    "pace_hub_remove_dead_letters": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_size_t)],
    ),
    "pace_hub_redeliver": (_STATUS, [c_void_p, c_void_p, c_void_p]),
    "pace_hub_dead_letter_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_key_request": (
        _STATUS,
        [c_void_p, c_void_p, c_char_p, c_size_t, c_uint64, c_void_p],
    ),
    "pace_replies_new": (_STATUS, [c_void_p, c_void_p]),
    "pace_key_request_pulled": (
        _STATUS,
        [
            c_void_p,
            c_void_p,
            c_char_p,
            c_size_t,
            c_uint64,
            c_void_p,
            c_uint64,
            c_void_p,
        ],
    ),
    "pace_replies_pull": (_STATUS, [c_void_p, c_void_p, c_size_t, c_uint64, c_void_p]),
    "pace_replies_pollable": (_STATUS, [c_void_p, c_void_p]),
    "pace_replies_free": (None, [c_void_p]),
    "pace_hub_give_up": (_STATUS, [c_void_p, c_uint64, c_void_p]),
    "pace_hub_reply": (_STATUS, [c_void_p, c_void_p, c_char_p, c_size_t, c_void_p]),
    "pace_hub_errors": (_STATUS, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_size_t)]),
    "pace_hub_metrics": (_STATUS, [c_void_p, c_uint32, c_void_p, c_size_t, POINTER(c_size_t)]),
    "pace_hub_share_metrics": (_STATUS, [c_void_p, c_void_p]),
    "pace_threshold_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_hub_watch": (
        _STATUS,
        [
            c_void_p,
            c_void_p,
            c_uint64,
            c_void_p,
            c_size_t,
            c_void_p,
            c_void_p,
            c_void_p,
            POINTER(c_void_p),
        ],
    ),
    "pace_webhook_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_webhook_new": (_STATUS, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "pace_webhook_post": (_STATUS, [c_void_p, c_char_p, c_size_t]),
    "pace_webhook_flush": (_STATUS, [c_void_p, c_uint64]),
    "pace_webhook_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_webhook_last_error": (_STATUS, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "pace_webhook_free": (None, [c_void_p]),
    "pace_service_start": (_STATUS, [_POOL, c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "pace_service_status": (_STATUS, [c_void_p, c_char_p]),
    "pace_service_free": (None, [c_void_p]),
    "pace_watch_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_watch_free": (None, [c_void_p]),
    "pace_history_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_hub_query": (_STATUS, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_size_t)]),
    "pace_hub_history_stats": (_STATUS, [c_void_p, c_void_p, c_void_p]),
    "pace_hub_flush": (_STATUS, [c_void_p, POINTER(c_uint64)]),
    "pace_hub_replay_mailbox": (
        _STATUS,
        [c_void_p, c_char_p, c_uint32, c_uint64, POINTER(c_void_p)],
    ),
    "pace_replay_mailbox_pull": (
        _STATUS,
        [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)],
    ),
    "pace_replay_mailbox_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_replay_mailbox_bury": (_STATUS, [c_void_p, c_void_p, c_char_p, c_uint32]),
    "pace_replay_mailbox_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_replay_mailbox_end": (_STATUS, [c_void_p]),
    "pace_replay_mailbox_free": (None, [c_void_p]),
    "pace_publisher_options_init": (_STATUS, [c_void_p, c_size_t]),
    "pace_publisher_new": (_STATUS, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "pace_publisher_publish": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, c_char_p, c_size_t, c_uint32, c_void_p],
    ),
    "pace_publisher_publish_batch": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p],
    ),
    "pace_publisher_stats": (_STATUS, [c_void_p, c_void_p]),
    "pace_publisher_free": (None, [c_void_p]),
    "pace_message_filter_header": (_STATUS, [c_char_p, c_char_p, POINTER(c_void_p)]),
    "pace_message_filter_bytes": (
        _STATUS,
        [c_size_t, c_char_p, c_size_t, POINTER(c_void_p)],
    ),
    "pace_message_filter_time": (_STATUS, [c_uint64, c_uint64, POINTER(c_void_p)]),
    "pace_message_filter_rate": (_STATUS, [c_uint32, c_uint64, c_uint32, POINTER(c_void_p)]),
    "pace_message_filter_test": (
        _STATUS,
        [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)],
    ),
    "pace_message_filter_and": (_STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "pace_message_filter_or": (_STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "pace_message_filter_not": (_STATUS, [c_void_p, POINTER(c_void_p)]),
    "pace_message_filter_free": (None, [c_void_p]),
    "pace_metrics_format": (_STATUS, [c_char_p, POINTER(c_uint32), POINTER(c_char_p)]),
    "pace_queue_new": (_STATUS, [c_size_t, c_size_t, POINTER(c_void_p)]),
    "pace_queue_push": (_STATUS, [c_void_p, c_void_p, c_uint64]),
    "pace_queue_push_batch": (_STATUS, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "pace_queue_pop": (_STATUS, [c_void_p, c_void_p, c_uint64]),
    "pace_queue_pop_batch": (
        _STATUS,
        [c_void_p, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)],
    ),
    "pace_queue_pollable": (_STATUS, [c_void_p, POINTER(c_int32)]),
    "pace_queue_close": (_STATUS, [c_void_p]),
    "pace_queue_len": (_STATUS, [c_void_p, POINTER(c_size_t)]),
    "pace_queue_capacity": (_STATUS, [c_void_p, POINTER(c_size_t)]),
    "pace_queue_is_closed": (_STATUS, [c_void_p, POINTER(c_bool)]),
    "pace_queue_free": (None, [c_void_p]),
}


def _describe(lib: ctypes.CDLL) -> None:
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments


path = find()
lib = ctypes.CDLL(path)
quick = ctypes.PyDLL(path)
version = _version(lib)
for _view in (lib, quick):
    _describe(_view)

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


def in_slices(wait: Callable[[int], int], timeout: float | None) -> int:
    """The status of a native call that waits for up to so many nanoseconds, called until it has ended or ``timeout``
    seconds are over (None: for ever). In between Python calls the handlers of signals, which may raise."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE if end is None else min(SLICE, max(0.0, end - time.monotonic()))
        status = wait(nanoseconds(left))
        if status != layout.ETIMEDOUT or (end is not None and time.monotonic() >= end):
            return status


def nanoseconds(seconds: float | None) -> int:
    """A time-out as C wants it; None waits for ever."""
    if seconds is None:
        return layout.FOREVER
    if not seconds > 0:
        return 0
    return min(int(seconds * 1e9), layout.FOREVER - 1) if seconds < 1e10 else layout.FOREVER
