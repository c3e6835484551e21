"""Which messages come into a mailbox of a hub."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from . import _layout as layout
from ._arguments import data, plain, text, whole
from ._contain import LEAVING, guarded, report
from ._hosts import Native
from ._library import check, lib, quick
from ._message import Message, message_of
from ._policy import Rate, rate_of

_TEST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(layout.Message))
#: What cannot be told.
_FAILED = -1


class MessageFilter:
    """Which messages come into a mailbox; what does not pass does not match. It is asked when a message is
    published, by native code. Filters combine with ``&``, ``|`` and ``~``; the second is not asked when the
    first decides. One may be given to several subscriptions, which share its rates.

    Raises InvalidError."""

    def __init__(self, native: Native, tests: tuple[Any, ...] = ()) -> None:
        self._native = native
        #: What it calls.
        self._tests = tests

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

    @classmethod
    def test(cls, says: Callable[[Message], object]) -> MessageFilter:
        """Messages of which a function says so. It is called by the thread that publishes, before publishing
        returns, once for each subscription that has it and with a copy of the message; of native filters
        none takes the interpreter's lock, so put them first. What it raises is logged: the message does not
        pass, nor does it pass ``~``, and counts in ``filter_failures``. KeyboardInterrupt and SystemExit are
        raised out of publishing instead, when that is over; whether the message passes is not certain then. A hub
        keeps the function until it goes."""
        plain("says", says)

        def ask(_: object, raw: Any) -> int:
            message = message_of(bytes(raw.contents))
            try:
                return 1 if says(message) else 0
            except LEAVING:
                raise
            except BaseException as raised:
                report("the function of a filter has failed", raised=raised)
                return _FAILED

        asked = _TEST(guarded(ask, _FAILED))
        pointer = ctypes.c_void_p()
        check(quick.pace_message_filter_test(asked, None, None, ctypes.byref(pointer)))
        return cls(Native(pointer, lib.pace_message_filter_free), (asked,))

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
        made = cls._made(make, *(part._native.pointer for part in parts))
        made._tests = tuple(test for part in parts for test in part._tests)
        return made

    @classmethod
    def _made(cls, make: Any, *arguments: Any) -> MessageFilter:
        pointer = ctypes.c_void_p()
        check(make(*arguments, ctypes.byref(pointer)))
        return cls(Native(pointer, lib.pace_message_filter_free))

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.MessageFilter: it belongs to this process")
