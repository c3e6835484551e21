"""``Queue``: a bounded queue of byte strings, for any number of threads at both ends."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any, Optional, Protocol

from . import _layout as layout
from . import _lifetime
from ._arguments import BytesLike, data, items, patience, within
from ._clock import monotonic
from ._errors import (
    Empty,
    EmptyTimeoutError,
    refuse_in_loop,
    ForkedError,
    FullTimeoutError,
    InvalidError,
    ShutDownError,
)
from ._library import check, error, lib, nanoseconds, quick

#: The longest payload, in bytes.
_MOST_PAYLOAD = 65536

#: A native item begins with the payload's length: in one byte if all lengths fit, else in three.
_LENGTHS = [bytes((length,)) for length in range(256)]
_LONG = 3

#: A buffer for payloads that is larger than this is made for those that are there. Bytes.
_LARGE_BUFFER = 65536

#: How long the main thread stays away from Python's signal handlers at most. Nanoseconds.
_SLICE = 100_000_000

#: How many payloads are popped at once where the caller does not say.
BATCH = 64

#: How many at most.
_MOST_TAKEN = 65536


def at_most(most: int) -> int:
    """How many are taken at once, if somebody wants up to so many."""
    return min(within("most", most, 1, sys.maxsize), _MOST_TAKEN)


class Queue:
    """Holds up to ``capacity`` (rounded up to a power of two) payloads of up to ``max_payload`` bytes
    (1 to 65536). First in, first out for each producer. Any thread. Payloads of a queue whose
    ``max_payload`` is 255 or less lie in memory that the queue takes at once.

    Time-outs are seconds: None waits for ever, 0 not at all. Full and Empty are the standard ones;
    after a time-out they are TimeoutError too. Once closed it refuses pushes with ShutDownError, and
    pops too when it is empty.
    """

    def __init__(self, capacity: int = 1024, max_payload: int = 63) -> None:
        max_payload = within("max_payload", max_payload, 1, _MOST_PAYLOAD)
        capacity = within("capacity", capacity, 1, 1 << 32)
        self._pointer = ctypes.c_void_p()
        self._generation = _lifetime.generation()
        self._max_payload = max_payload
        self._head = 1 if max_payload < len(_LENGTHS) else _LONG
        self._size = self._head + max_payload
        pointer = ctypes.c_void_p()
        check(lib.pace_queue_new(self._size, capacity, ctypes.byref(pointer)))
        self._pointer = pointer
        #: Who waits in which event loop; see _LoopWaiters.
        self._loops: dict[Any, _LoopWaiters] = {}

    # --- pushing ---------------------------------------------------------------------------------

    def push(self, payload: BytesLike, timeout: Optional[float] = None) -> None:
        """Appends a copy of ``payload``. Raises Full, ShutDownError, InvalidError if it is too
        long."""
        item, timeout = self._item("payload", payload), patience("timeout", timeout)
        # Most often there is room, and the attempt is shorter than letting go of the interpreter.
        status = quick.pace_queue_push(self._handle(), item, 0)
        if status == layout.EFULL and timeout != 0:
            status = self._wait(lambda time: lib.pace_queue_push(self._pointer, item, time), timeout)
            if status == layout.ETIMEDOUT:
                raise FullTimeoutError("the queue was full all the time")
        if status != layout.OK:
            raise error(status)

    def push_batch(self, payloads: Iterable[BytesLike]) -> int:
        """Appends what there is room for, in order; says how many. Raises ShutDownError, and
        InvalidError before anything is appended."""
        given = items("payloads", payloads, "an iterable of bytes")
        rows = b"".join([self._item("payloads", payload) for payload in given])
        count = len(rows) // self._size
        if not count:
            return 0
        pushed = ctypes.c_size_t()
        status = lib.pace_queue_push_batch(self._handle(), rows, count, ctypes.byref(pushed))
        if status not in (layout.OK, layout.EFULL):
            raise error(status)
        return pushed.value

    def _item(self, name: str, payload: BytesLike) -> bytes:
        own = payload if type(payload) is bytes else data(name, payload)
        length = len(own)
        if length > self._max_payload:
            raise InvalidError(f"the payload has {length} bytes; allowed: {self._max_payload}")
        head = _LENGTHS[length] if self._head == 1 else length.to_bytes(_LONG, "little")
        return (head + own).ljust(self._size, b"\0")

    # --- popping ---------------------------------------------------------------------------------

    def pop(self, timeout: Optional[float] = None) -> bytes:
        """Takes the first payload out. Raises Empty; ShutDownError when closed and empty."""
        return self.pop_batch(1, timeout)[0]

    def pop_batch(self, most: int = BATCH, timeout: Optional[float] = None) -> list[bytes]:
        """Takes up to ``most`` payloads out; waits for the first only. Raises as ``pop``."""
        most, timeout = at_most(most), patience("timeout", timeout)
        if self._size * most > _LARGE_BUFFER:
            most = max(1, min(most, len(self)))
        buffer = ctypes.create_string_buffer(self._size * most)
        popped = ctypes.c_size_t()
        reference = ctypes.byref(popped)
        status = quick.pace_queue_pop_batch(self._handle(), buffer, most, 0, reference)
        if status == layout.EEMPTY and timeout != 0:
            status = self._wait(
                lambda time: lib.pace_queue_pop_batch(self._pointer, buffer, most, time, reference),
                timeout,
            )
            if status == layout.ETIMEDOUT:
                raise EmptyTimeoutError("the queue was empty all the time")
        if status != layout.OK:
            raise error(status)
        return self._payloads(buffer, popped.value)

    def _payloads(self, buffer: Any, count: int) -> list[bytes]:
        size = self._size
        items = ctypes.string_at(buffer, size * count)
        starts = range(0, size * count, size)
        if self._head == 1:
            return [items[start + 1 : start + 1 + items[start]] for start in starts]
        bodies = [start + _LONG for start in starts]
        lengths = [int.from_bytes(items[body - _LONG : body], "little") for body in bodies]
        return [items[body : body + length] for body, length in zip(bodies, lengths)]

    def _wait(self, call: Any, timeout: Optional[float]) -> int:
        """Calls with the time-out; on the main thread in slices, so that signals are looked at."""
        refuse_in_loop("pop()", "queue.pop_async(…)")
        _lifetime.check_threads()
        if threading.current_thread() is not threading.main_thread():
            return int(call(nanoseconds(timeout)))
        end = None if timeout is None else monotonic() + timeout
        while True:
            left = layout.FOREVER if end is None else nanoseconds(end - monotonic())
            status = int(call(max(1, min(left, _SLICE))))
            if status != layout.ETIMEDOUT or left <= _SLICE:
                return status

    # --- the rest --------------------------------------------------------------------------------

    def _handle(self) -> ctypes.c_void_p:
        if self._generation != _lifetime.generation():
            raise ForkedError("the queue belongs to the process that this one was forked from")
        return self._pointer

    def close(self) -> None:
        """Refuses pushes from now on; what is in it can be popped. Wakes all who wait."""
        check(lib.pace_queue_close(self._handle()))

    @property
    def closed(self) -> bool:
        """Whether it is closed. It may still hold payloads."""
        closed = ctypes.c_bool()
        check(quick.pace_queue_is_closed(self._handle(), ctypes.byref(closed)))
        return closed.value

    @property
    def capacity(self) -> int:
        """How many payloads it holds at most."""
        capacity = ctypes.c_size_t()
        check(quick.pace_queue_capacity(self._handle(), ctypes.byref(capacity)))
        return capacity.value

    @property
    def max_payload(self) -> int:
        """The longest payload, in bytes."""
        return self._max_payload

    def __len__(self) -> int:
        length = ctypes.c_size_t()
        check(quick.pace_queue_len(self._handle(), ctypes.byref(length)))
        return length.value

    def __bool__(self) -> bool:
        return True

    def fileno(self) -> int:
        """A descriptor that is readable while there may be something to pop, for ``add_reader`` and
        ``select``; a pop that finds nothing makes it unreadable. It belongs to the queue: never read
        or close it."""
        fd = ctypes.c_int32()
        check(quick.pace_queue_pollable(self._handle(), ctypes.byref(fd)))
        return fd.value

    # --- asyncio ---------------------------------------------------------------------------------

    async def pop_async(self, most: int = BATCH) -> list[bytes]:
        """As ``pop_batch`` for ever, without holding up the running event loop."""
        while True:
            try:
                return self.pop_batch(most, 0)
            except Empty:
                await self._readable()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        waiters = self._loops.get(loop)
        if waiters is None:
            waiters = self._loops[loop] = _LoopWaiters(self, loop)
        await waiters.wait()

    def __aiter__(self) -> QueueIterator:
        return QueueIterator(self)

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Queue: it belongs to this process")

    def __del__(self) -> None:
        # As NativePool does: given back with the last reference, so that no call meets freed memory.
        pointer = getattr(self, "_pointer", None)
        if pointer and self._generation == _lifetime.generation():
            lib.pace_queue_free(pointer)


class QueueIterator:
    """Payloads as they come, until the queue is closed and empty. One task at a time."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._got: deque[bytes] = deque()

    def __aiter__(self) -> QueueIterator:
        return self

    async def __anext__(self) -> bytes:
        if not self._got:
            try:
                self._got.extend(await self._queue.pop_async())
            except ShutDownError:
                raise StopAsyncIteration from None
        return self._got.popleft()


class Waited(Protocol):
    """What tasks wait for."""

    _loops: dict[Any, _LoopWaiters]

    def fileno(self) -> int:
        """Readable while there may be something."""
        ...


class _LoopWaiters:
    """The tasks of one event loop that wait for one queue: a loop has one reader per descriptor."""

    def __init__(self, queue: Waited, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._fd = -1
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        waiter = self._loop.create_future()
        if not self._waiters:
            self._fd = self._queue.fileno()
            self._loop.add_reader(self._fd, self._wake)
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            # Still there: it was cancelled. Woken, it has no part in this any more: whoever waits
            # now does so through another one of these, with a reader of its own.
            if waiter in self._waiters:
                self._waiters.remove(waiter)
                self._rest()

    def _wake(self) -> None:
        """All look: how much there is for them nobody knows, and who finds nothing waits again."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
        self._rest()

    def _rest(self) -> None:
        if not self._waiters:
            # A loop that is closed has no readers, and what is collected with it may have no descriptor.
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            self._queue._loops.pop(self._loop, None)
