"""A native pool without threads of its own, completion queues, and what a Python thread takes from them.

What threads share is freed when the last reference to it goes (``__del__``), never by ``close`` or
``shutdown``: so no method, on whatever thread, can meet memory that was freed. What only one thread uses at a time, such as
the attempt of a durable task or a report, is freed by name (``Native.free``, or ``with``), on every path: an exception, a traceback that
somebody keeps, or a reference cycle may hold the last reference for any time. A constructor that fails frees what it has made
(``freed_on_failure``), as nobody else has it.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Optional

from . import _layout as layout
from . import _lifetime
from ._library import check, error, lib, quick

#: The token that only wakes a thread, to look at what lies on Python's side.
WAKE = 0

#: The most host threads that a pool without threads takes.
_MOST_HOSTS = 1024

#: Times for a wait.
FOREVER, NOT_AT_ALL = ctypes.c_uint64(layout.FOREVER), ctypes.c_uint64(0)


#: How a native object is given back.
Free = Callable[[ctypes.c_void_p], object]


class Native:
    """A native object of this process: its pointer, and how it is freed: by ``free``, at the end of a ``with``, or with the
    last reference.

    Of a cycle that is collected anything may still be called after this, by another ``__del__``. So all
    pointers to it become NULL, which the library refuses."""

    def __init__(self, pointer: ctypes.c_void_p, free: Free) -> None:
        self.pointer = pointer
        #: Pointers to parts of it.
        self.inside: list[ctypes.c_void_p] = []
        # A list gives its last to one thread only, with the interpreter's lock and without it.
        self._free = [free]
        self._generation = _lifetime.generation()

    def free(self) -> None:
        """Frees it, unless that was done before, or it belongs to the parent of this process. No other thread may use it any
        more."""
        try:
            free = self._free.pop()
        except IndexError:
            return
        if self._generation == _lifetime.generation():
            own = ctypes.c_void_p(self.pointer.value)
            for pointer in (self.pointer, *self.inside):
                pointer.value = None
            free(own)

    def __enter__(self) -> Native:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.free()


@contextmanager
def freed_on_failure(*natives: Native) -> Iterator[None]:
    """Frees these, the first one first, if what is inside raises: a traceback would keep them as long as it lives."""
    try:
        yield
    except BaseException:
        for native in natives:
            native.free()
        raise


class NativeQueue:
    """A native completion queue. With ``beside`` threads that wait do no work of the pool's. ``lease``: nanoseconds; it
    begins when an entry is renewed."""

    def __init__(
        self, pool: ctypes.c_void_p, beside: bool, lease: int = 0, free: Optional[Free] = None
    ) -> None:
        config = layout.CqConfig()
        check(quick.pace_cq_config_init(ctypes.byref(config), ctypes.sizeof(config)))
        config.beside, config.lease_ns, config.leased_when_renewed = beside, lease, True
        #: Of all functions whose names begin with pace_cq_.
        self.pointer = ctypes.c_void_p()
        check(lib.pace_cq_new(pool, ctypes.byref(config), ctypes.byref(self.pointer)))
        self.native = Native(self.pointer, free or lib.pace_cq_free)

    def fileno(self) -> int:
        """Readable while a wait would not sleep."""
        fd = ctypes.c_int32()
        check(quick.pace_cq_fd(self.pointer, ctypes.byref(fd)))
        return fd.value

    def close(self) -> None:
        """Ends all waits, at once and for ever."""
        lib.pace_cq_close(self.pointer)

    def register(
        self, fd: int, interest: int, level: bool, may_block: bool, paused: bool, tag: int
    ) -> int:
        options = layout.HandleOptions()
        check(quick.pace_handle_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.interest = interest
        options.level, options.may_block, options.paused = level, may_block, paused
        handle = ctypes.c_uint64()
        status = lib.pace_cq_register(self.pointer, fd, ctypes.byref(options), tag, ctypes.byref(handle))
        check(status)
        return handle.value

    def every(self, period: int, tag: int) -> int:
        handle = ctypes.c_uint64()
        check(quick.pace_cq_every(self.pointer, period, tag, ctypes.byref(handle)))
        return handle.value

    def after(self, delay: int, tag: int) -> int:
        timer = ctypes.c_uint64()
        check(quick.pace_cq_after(self.pointer, delay, tag, ctypes.byref(timer)))
        return timer.value

    def complete(self, token: int, flow: int) -> bool:
        """Answers for an event that is out; False: it is not."""
        made = layout.CqCompletion(token=token, answer=flow)
        status = quick.pace_cq_complete(self.pointer, ctypes.byref(made), 1)
        return bool(status == layout.OK)


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
        self._native = native = Native(pointer, lib.pace_pool_free)
        with freed_on_failure(native):
            #: What happens in the pool, for its Python threads, which are its threads while they wait.
            self.queue = NativeQueue(pointer, beside=False)
        # Without declared types ctypes takes arguments that are its own objects as they are, which
        # halves what a call costs.
        self._post = quick["pace_cq_wake"]
        self._wake = ctypes.c_uint64(WAKE)
        self._tags = itertools.count(WAKE + 1)

    def next_tag(self) -> int:
        """A tag that nothing else of this pool has."""
        return next(self._tags)

    def wake(self) -> None:
        """Makes one wait return. Where nobody can be woken any more there is nobody to wake."""
        self._post(self.queue.pointer, self._wake)

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


def entries_of(detail: str, lent: str = "QQ") -> struct.Struct:
    """The layout of ``pace_cq_entry_t``: kind, token, tag, bytes and size unless ``lent`` passes over them, and what
    ``detail`` takes of its member of this name."""
    front = f"=I4xQQ{lent}8x{detail}"
    return struct.Struct(f"{front}{ctypes.sizeof(layout.CqEntry) - struct.calcsize(front)}x")


#: What a pool brings: kind, token, tag, handle, and what a descriptor is ready for.
Event = tuple[int, int, int, int, int]

#: Its layout.
EVENT = entries_of("QI", lent="16x")


class Puller:
    """One thread's buffer for entries. That thread only."""

    def __init__(
        self, queue: NativeQueue, row: struct.Struct, batch: int, is_done: bool = False
    ) -> None:
        # Without declared types ctypes takes arguments that are its own objects as they are.
        self._call = lib["pace_cq_wait"]
        self._done = quick["pace_cq_done"] if is_done else None
        self._row = row
        self._buffer = ctypes.create_string_buffer(row.size * batch)
        self._view = memoryview(self._buffer).cast("B")
        #: Those that were taken and not handled. ``iter(entries.popleft, None)`` gives each without a call, after
        #: which a handler of a signal could raise and lose it; it ends with IndexError.
        self.entries: deque[Any] = deque()
        self._count = ctypes.c_size_t()
        #: How many are to be completed with nothing to say before the next are taken.
        self._out = ctypes.c_size_t()
        self._queue = queue
        self._before = (queue.pointer, self._buffer, ctypes.c_size_t(batch))
        self._after = ctypes.byref(self._count)

    def pull(self, timeout: ctypes.c_uint64) -> int:
        """How many lie in ``entries``; 0: none came; −1: it is over."""
        entries, count = self.entries, self._count
        # Else a handler of a signal has raised before all was handled.
        if not entries and not count.value:
            self.done()
            status = self._call(*self._before, timeout, self._after)
            if status == layout.ETIMEDOUT:
                return 0
            if status == layout.ESHUTDOWN:
                return -1
            if status != layout.OK:
                raise error(status)
        rows = self._row.iter_unpack(self._view[: count.value * self._row.size])
        self._out.value = count.value
        # No call: nothing comes in between.
        entries += rows
        count.value = 0
        return len(entries)

    def done(self) -> None:
        """Completes, with nothing to say, what was taken last and is out still."""
        if self._done is not None and self._out.value:
            self._done(self._queue.pointer, self._buffer, self._out)
            self._out.value = 0
