"""Requests that event loops await.

    reply ──► completion queue, by whoever replies ──► descriptor ──► the loop's reader ──► futures

A loop has one descriptor and one reader for all that it has open at a hub, from its first request until it or
the hub is closed; no thread waits. Times are the loop's own.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import struct
import weakref
from typing import TYPE_CHECKING, Any, Optional

from . import _layout as layout
from ._errors import ShutDownError
from ._hosts import Native
from ._library import check, in_slices, lib, quick
from ._message import MESSAGE, Message, message_of

if TYPE_CHECKING:
    from ._subscriptions import Core
else:
    Core = Any

#: Of an entry before its message: kind, token, tag, status.
_HEAD = struct.Struct("=I4xQQ16xi4x")
_ROW = ctypes.sizeof(layout.CqEntry)
#: How many are taken at once.
_BATCH = 64

_Answer = asyncio.Future[Message]


class _Replies:
    """A completion queue for what becomes of requests. It stands on no pool: what stops a pool need not end it."""

    def __init__(self) -> None:
        self.pointer = ctypes.c_void_p()
        check(quick.pace_cq_new(None, None, ctypes.byref(self.pointer)))
        self._native = Native(self.pointer, lib.pace_cq_free)
        self._tags = itertools.count(1)
        self._buffer = (layout.CqEntry * _BATCH)()
        self._view = memoryview(self._buffer).cast("B")
        self._count = ctypes.c_size_t()

    def ask(self, core: Core, view: Any, key: Any, terms: Any, sent: bytes) -> tuple[int, int]:
        """Publishes a request with this native key by this view of the library; says the tag of its reply, and what it
        is given up by."""
        tag, asked = next(self._tags), ctypes.c_uint64()
        where, at = ctypes.byref(terms), ctypes.byref(asked)
        with core.publishing():
            check(
                view.pace_cq_request(self.pointer, key, where, sent, len(sent), layout.FOREVER, tag, at)
            )
        return tag, asked.value

    def take(self, view: Any, left: int) -> list[tuple[int, Optional[Message]]]:
        """Tags and replies that are there, or come in so many nanoseconds; None in the place of a reply: its hub was
        closed, or it was given up."""
        buffer, count, size = self._buffer, self._count, _HEAD.size
        try:
            status = view.pace_cq_wait(self.pointer, buffer, _BATCH, left, ctypes.byref(count))
            if status == layout.ETIMEDOUT:
                return []
            check(status)
            rows = self._view[: count.value * _ROW].tobytes()
            replies: list[tuple[int, Optional[Message]]] = []
            for at in range(0, len(rows), _ROW):
                _, _, tag, status = _HEAD.unpack_from(rows, at)
                row = rows[at + size : at + size + MESSAGE.size]
                replies.append((tag, message_of(row) if status == layout.OK else None))
            return replies
        finally:
            if count.value:
                quick.pace_cq_done(self.pointer, buffer, count)
                count.value = 0


class Asker(_Replies):
    """Asks on the main thread, which looks at signals meanwhile, one request at a time."""

    def ask_in_slices(
        self, core: Core, key: Any, terms: Any, sent: bytes, timeout: Optional[float]
    ) -> Message:
        """Publishes a request with this native key and waits for its reply."""
        mine, asked = self.ask(core, lib, key, terms, sent)
        came: dict[int, Optional[Message]] = {}

        def wait(left: int) -> int:
            came.update(self.take(lib, left))
            # Others were given up.
            return layout.OK if mine in came else layout.ETIMEDOUT

        try:
            check(in_slices(wait, timeout))
        finally:
            if mine not in came:
                quick.pace_hub_give_up(core.native.pointer, asked, None)
        reply = came[mine]
        if reply is None:
            raise ShutDownError("the hub is closed")
        return reply


class Requests(_Replies):
    """Those of one loop at one hub. In the loop's thread."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        fd = ctypes.c_int32()
        check(quick.pace_cq_fd(self.pointer, ctypes.byref(fd)))
        self._fd = fd.value
        self._open: dict[int, _Answer] = {}
        self.loop = weakref.ref(loop)
        # From now on the loop has this.
        loop.add_reader(self._fd, self._wake)

    async def await_reply(
        self, core: Core, key: Any, terms: Any, sent: bytes, timeout: Optional[float]
    ) -> Message:
        """Publishes a request with this native key, and awaits its reply."""
        loop = asyncio.get_running_loop()
        future: _Answer = loop.create_future()
        tag, asked = self.ask(core, core.view(len(sent)), key, terms, sent)
        # Only this thread looks for replies, and it has not yet.
        self._open[tag] = future
        timer = None if timeout is None else loop.call_later(timeout, _is_late, future)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if self._open.pop(tag, None) is not None:
                quick.pace_hub_give_up(core.native.pointer, asked, None)

    def _wake(self) -> None:
        taken = self.take(quick, 0)
        for tag, reply in taken:
            # None: it was given up.
            future = self._open.pop(tag, None)
            if future is None or future.done():
                continue
            if reply is None:
                future.set_exception(ShutDownError("the hub is closed"))
            else:
                future.set_result(reply)

    def close(self) -> None:
        """The hub is closed. Any thread."""
        loop = self.loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._end, loop)
        except RuntimeError:
            # The loop is closed, and nobody awaits anything.
            pass

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._fd)
        for future in self._open.values():
            if not future.done():
                future.set_exception(ShutDownError("the hub is closed"))


def _is_late(future: _Answer) -> None:
    if not future.done():
        future.set_exception(TimeoutError("no reply came in time"))
