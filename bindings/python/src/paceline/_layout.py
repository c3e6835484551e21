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


#: C's names of the structures above.
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "pace_pool_config_t": PoolConfig,
    "pace_handle_options_t": HandleOptions,
    "pace_event_t": Event,
    "pace_report_t": Report,
    "pace_pool_stats_t": PoolStats,
    "pace_thread_stats_t": ThreadStats,
    "pace_set_stats_t": SetStats,
    "pace_audit_t": Audit,
}
