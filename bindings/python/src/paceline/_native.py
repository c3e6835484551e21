"""A native pool without threads of its own, and what a Python thread pulls from it.

The pointer is given back when the last reference goes (``__del__``), never by ``close`` or
``shutdown``: so no method, on whatever thread, can meet memory that was freed.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
from collections.abc import Callable

from . import _layout as layout
from . import _lifetime
from ._library import check, error, lib, quick

#: The token that only wakes a thread, to look at what lies on Python's side.
WAKE = 0

#: The most host threads that a pool without threads takes.
_MOST_HOSTS = 1024

#: The fields of ``pace_event_t``: kind, ready, token, handle.
EVENT = struct.Struct("=IIQQ")

#: What was pulled.
Pulled = tuple[int, int, int, int]


class Native:
    """A native object of this process: its pointer, and how it is given back.

    Of a cycle that is collected anything may still be called after this, by another ``__del__``. So all
    pointers to it become NULL, which the library refuses."""

    def __init__(self, pointer: ctypes.c_void_p, free: Callable[[ctypes.c_void_p], object]) -> None:
        self.pointer = pointer
        #: Pointers to parts of it.
        self.inside: list[ctypes.c_void_p] = []
        self._free = free
        self._generation = _lifetime.generation()

    def __del__(self) -> None:
        if not sys.is_finalizing() and self._generation == _lifetime.generation():
            own = ctypes.c_void_p(self.pointer.value)
            for pointer in (self.pointer, *self.inside):
                pointer.value = None
            self._free(own)


def pool_config() -> layout.PoolConfig:
    """The defaults of a pool."""
    config = layout.PoolConfig()
    check(quick.pace_pool_config_init(ctypes.byref(config), ctypes.sizeof(config)))
    return config


class NativePool:
    """The C pool. Any thread, except where noted."""

    def __init__(self, hosts: int, config: layout.PoolConfig) -> None:
        # More hosts than that sleep beside a pool that has a thread.
        config.threads = 0 if hosts <= _MOST_HOSTS else 1
        config.max_joined = min(hosts, _MOST_HOSTS)
        config.leaders = 1
        # Threads of the package pin themselves.
        config.pin = b"none"
        pointer = ctypes.c_void_p()
        check(lib.pace_pool_new(ctypes.byref(config), ctypes.byref(pointer)))
        self.pointer = pointer
        # Without declared types ctypes takes arguments that are its own objects as they are, which
        # halves what a call costs.
        self._post = quick["pace_pull_post"]
        self._wake = ctypes.c_uint64(WAKE)
        self._generation = _lifetime.generation()
        self._tokens = itertools.count(WAKE + 1)

    def next_token(self) -> int:
        """A token that nothing else of this pool has."""
        return next(self._tokens)

    def wake(self) -> None:
        """Makes one pull return. Where nobody can be woken any more there is nobody to wake."""
        self._post(self.pointer, self._wake)

    def fileno(self) -> int:
        """Readable while there may be something to pull."""
        fd = ctypes.c_int32()
        check(quick.pace_pool_pollable(self.pointer, ctypes.byref(fd)))
        return fd.value

    def register(
        self, fd: int, interest: int, level: bool, may_block: bool, paused: bool, token: int
    ) -> int:
        options = layout.HandleOptions()
        check(quick.pace_handle_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.interest = interest
        options.level, options.may_block, options.paused = level, may_block, paused
        handle = ctypes.c_uint64()
        status = lib.pace_pull_register(
            self.pointer, fd, ctypes.byref(options), token, ctypes.byref(handle)
        )
        check(status)
        return handle.value

    def every(self, period: int, token: int) -> int:
        handle = ctypes.c_uint64()
        check(quick.pace_pull_every(self.pointer, period, token, ctypes.byref(handle)))
        return handle.value

    def after(self, delay: int, token: int) -> int:
        timer = ctypes.c_uint64()
        check(quick.pace_pull_after(self.pointer, delay, token, ctypes.byref(timer)))
        return timer.value

    def cancel_timer(self, timer: int) -> bool:
        cancelled = ctypes.c_bool()
        check(quick.pace_timer_cancel(self.pointer, timer, ctypes.byref(cancelled)))
        return cancelled.value

    def postpone_timer(self, timer: int, delay: int) -> bool:
        postponed = ctypes.c_bool()
        check(quick.pace_timer_postpone(self.pointer, timer, delay, ctypes.byref(postponed)))
        return postponed.value

    def shutdown(self, drain: int = 0) -> layout.Report:
        """Waits for up to ``drain`` nanoseconds until what stands on it has ended; then every pull ends."""
        report = layout.Report()
        report.struct_size = ctypes.sizeof(report)
        lib.pace_pool_shutdown(self.pointer, drain, ctypes.byref(report))
        return report

    def stats(self) -> layout.PoolStats:
        stats = layout.PoolStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_pool_stats(self.pointer, ctypes.byref(stats)))
        return stats

    def thread_stats(self, row: int) -> layout.ThreadStats:
        stats = layout.ThreadStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_pool_thread_stats(self.pointer, row, ctypes.byref(stats)))
        return stats

    def set_stats(self, row: int) -> layout.SetStats:
        stats = layout.SetStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_pool_set_stats(self.pointer, row, ctypes.byref(stats)))
        return stats

    def __del__(self) -> None:
        # While the interpreter is torn down the process is about to give all back; and a child
        # made by fork must not touch what is its parent's.
        pointer = getattr(self, "pointer", None)
        if pointer and not sys.is_finalizing() and self._generation == _lifetime.generation():
            # Of a cycle that is collected another __del__ may still call: NULL is refused.
            own, pointer.value = ctypes.c_void_p(pointer.value), None
            lib.pace_pool_free(own)


class Puller:
    """One thread's buffer for events. That thread only."""

    def __init__(self, native: NativePool, batch: int) -> None:
        # The pool lives as long as whoever pulls from it.
        self._native = native
        self._buffer = ctypes.create_string_buffer(EVENT.size * batch)
        self._view = memoryview(self._buffer).cast("B")
        self._count = ctypes.c_size_t()
        # As in NativePool: no declared types, and everything is made once.
        self._call = lib["pace_pool_pull"]
        self._before = (native.pointer, self._buffer, ctypes.c_size_t(batch))
        self._after = ctypes.byref(self._count)
        self._forever = ctypes.c_uint64(layout.FOREVER)

    def pull(self, timeout: int = layout.FOREVER) -> list[Pulled] | None:
        """A batch, empty when the time has passed; None: the pool has ended.

        Completes what this thread pulled before.
        """
        time = self._forever if timeout == layout.FOREVER else ctypes.c_uint64(timeout)
        status = self._call(*self._before, time, self._after)
        if status == layout.OK:
            if self._count.value == 1:
                return [EVENT.unpack_from(self._view)]
            size = self._count.value * EVENT.size
            return list(EVENT.iter_unpack(self._view[:size]))
        if status == layout.ETIMEDOUT:
            return []
        if status == layout.ESHUTDOWN:
            return None
        raise error(status)
