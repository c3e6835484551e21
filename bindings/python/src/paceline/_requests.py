"""Requests that event loops await.

    reply ──► native list, by whoever replies ──► descriptor ──► the loop's reader ──► futures

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
from ._mailbox import place
from ._message import MESSAGE, Message, messages_of

if TYPE_CHECKING:
    from ._subscriptions import Core

#: The fields of ``pace_reply_t`` before its message: token, status.
_HEAD = struct.Struct("=Qi4x")
_ROW = _HEAD.size + MESSAGE.size
#: How many are taken at once.
_BATCH = 64

_Answer = asyncio.Future[Message]


def ask_in_slices(core: Core, key: Any, terms: Any, sent: bytes, timeout: Optional[float]) -> Message:
    """Publishes a request with this native key and waits for its reply, on the main thread, which looks at signals
    meanwhile. What the reply points to is lent until this thread pulls."""
    pointer, asked = ctypes.c_void_p(), ctypes.c_uint64()
    check(quick.pace_replies_new(core.pointer(), ctypes.byref(pointer)))
    replies = Native(pointer, lib.pace_replies_free)
    with core.publishing():
        check(
            lib.pace_key_request_pulled(
                key,
                ctypes.byref(terms),
                sent,
                len(sent),
                layout.FOREVER,
                replies.pointer,
                1,
                ctypes.byref(asked),
            )
        )
    row, count, status = ctypes.create_string_buffer(_ROW), ctypes.c_size_t(), layout.ETIMEDOUT
    try:
        at = ctypes.byref(count)
        status = in_slices(
            lambda left: lib.pace_replies_pull(replies.pointer, row, 1, left, at), timeout
        )
        check(status)
    finally:
        if status != layout.OK:
            quick.pace_hub_give_up(core.native.pointer, asked.value, None)
    if _HEAD.unpack_from(row)[1] != layout.OK:
        raise ShutDownError("the hub is closed")
    return messages_of(bytes(row)[_HEAD.size :])[0]


class Requests:
    """Those of one loop at one hub. In the loop's thread."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        pointer, fd = ctypes.c_void_p(), ctypes.c_int32()
        check(quick.pace_replies_new(core.pointer(), ctypes.byref(pointer)))
        self._native = Native(pointer, lib.pace_replies_free)
        check(quick.pace_replies_pollable(pointer, ctypes.byref(fd)))
        self._fd = fd.value
        self._tokens = itertools.count(1)
        self._open: dict[int, _Answer] = {}
        self._buffer = ctypes.create_string_buffer(_ROW * _BATCH)
        self._count = ctypes.c_size_t()
        self.loop = weakref.ref(loop)
        # From now on the loop has this.
        loop.add_reader(self._fd, self._wake)

    async def ask(
        self, core: Core, key: Any, terms: Any, sent: bytes, timeout: Optional[float]
    ) -> Message:
        """Publishes a request with this native key, and awaits its reply."""
        loop = asyncio.get_running_loop()
        token = next(self._tokens)
        future: _Answer = loop.create_future()
        asked, view = ctypes.c_uint64(), core.view(len(sent))
        with core.publishing():
            check(
                view.pace_key_request_pulled(
                    key,
                    ctypes.byref(terms),
                    sent,
                    len(sent),
                    layout.FOREVER,
                    self._native.pointer,
                    token,
                    ctypes.byref(asked),
                )
            )
        # Only this thread looks for replies, and it has not yet.
        self._open[token] = future
        timer = None if timeout is None else loop.call_later(timeout, _is_late, future)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if self._open.pop(token, None) is not None:
                quick.pace_hub_give_up(core.native.pointer, asked.value, None)

    def _wake(self) -> None:
        count = _BATCH
        while count == _BATCH:
            if place.busy:
                # A pull that is interrupted still needs what it was lent; this is called again.
                return
            at = ctypes.byref(self._count)
            status = quick.pace_replies_pull(self._native.pointer, self._buffer, _BATCH, 0, at)
            count = self._count.value if status == layout.OK else 0
            self._tell(bytes(memoryview(self._buffer).cast("B")[: count * _ROW]))

    def _tell(self, rows: bytes) -> None:
        starts = range(0, len(rows), _ROW)
        heads = [_HEAD.unpack_from(rows, at) for at in starts]
        answered = [
            rows[at + _HEAD.size : at + _ROW]
            for at, (_, status) in zip(starts, heads)
            if status == layout.OK
        ]
        messages = iter(messages_of(b"".join(answered)) if answered else ())
        for token, status in heads:
            message = next(messages) if status == layout.OK else None
            # None: it was given up.
            future = self._open.pop(token, None)
            if future is None or future.done():
                continue
            if message is None:
                future.set_exception(ShutDownError("the hub is closed"))
            else:
                future.set_result(message)

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
