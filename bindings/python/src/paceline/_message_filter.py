"""Which messages come into a mailbox of a hub."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _layout as layout
from ._arguments import data, text, whole
from ._hosts import Native
from ._library import check, lib, quick
from ._policy import Rate, rate_of


class MessageFilter:
    """Which messages come into a mailbox; what does not pass does not match. It is asked when a message is
    published, by native code. Filters combine with ``&``, ``|`` and ``~``; the second is not asked when the
    first decides. One may be given to several subscriptions, which share its rates.

    What only Python can tell is for the handler to look at. Raises InvalidError."""

    def __init__(self, native: Native) -> None:
        self._native = native

    @classmethod
    def header(cls, name: str, value: str) -> MessageFilter:
        """Messages that have a header of this name with this value."""
        texts = text("name", name), text("value", value)
        return cls._made(quick.pace_message_filter_header, *texts)

    @classmethod
    def bytes_at(cls, offset: int, payload: bytes) -> MessageFilter:
        """Messages whose payload has these bytes, ``offset`` bytes after its beginning."""
        own = data("payload", payload)
        return cls._made(quick.pace_message_filter_bytes, whole("offset", offset, 64), own, len(own))

    @classmethod
    def published(cls, from_ns: int = 0, to_ns: int = layout.FOREVER) -> MessageFilter:
        """Messages that are published at ``from_ns`` or later and before ``to_ns``: nanoseconds since 1970."""
        span = whole("from_ns", from_ns, 64), whole("to_ns", to_ns, 64)
        return cls._made(quick.pace_message_filter_time, *span)

    @classmethod
    def at_most(cls, rate: Rate) -> MessageFilter:
        """No more messages than that. It uses one up whenever it is asked: put it last."""
        return cls._made(quick.pace_message_filter_rate, *rate_of("rate", rate))

    def __and__(self, other: MessageFilter) -> MessageFilter:
        return self._of(quick.pace_message_filter_and, self, other)

    def __or__(self, other: MessageFilter) -> MessageFilter:
        return self._of(quick.pace_message_filter_or, self, other)

    def __invert__(self) -> MessageFilter:
        return self._of(quick.pace_message_filter_not, self)

    @classmethod
    def _of(cls, make: Any, *parts: MessageFilter) -> MessageFilter:
        if not all(isinstance(part, MessageFilter) for part in parts):
            refused: MessageFilter = NotImplemented
            return refused
        return cls._made(make, *(part._native.pointer for part in parts))

    @classmethod
    def _made(cls, make: Any, *arguments: Any) -> MessageFilter:
        pointer = ctypes.c_void_p()
        check(make(*arguments, ctypes.byref(pointer)))
        return cls(Native(pointer, lib.pace_message_filter_free))

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.MessageFilter: it belongs to this process")
