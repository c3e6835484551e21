"""``Archive``: what a hub has written to disk, read without a hub; and files of lines."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import _layout as layout
from ._arguments import instance, text
from ._history import EACH_RECORD, History, query_of
from ._hosts import Native
from ._library import check, lib
from ._lifetime import called_back
from ._message import Message, message_of


@dataclass(frozen=True)
class LinesRead:
    """What was read of a file of lines."""

    #: Messages that were asked for.
    messages: int
    #: Lines that are no JSON, and were skipped.
    torn: int


def asked(query: layout.Query, call: Callable[[Any, Any], int]) -> list[Message]:
    """Copies of what ``call(query, each)`` shows to ``each``."""
    found: list[Message] = []

    def take(_: object, message: Any) -> None:
        found.append(message_of(bytes(message.contents)))

    with called_back() as calls:
        check(call(ctypes.byref(query), EACH_RECORD(calls.guarded(take))))
    return found


def exported(query: layout.Query, path: str, call: Callable[[Any, bytes, Any], int]) -> int:
    """How many messages ``call(query, path, count)`` has written."""
    count = ctypes.c_uint64()
    check(call(ctypes.byref(query), text("path", path), ctypes.byref(count)))
    return count.value


def read_lines(
    path: str,
    pattern: str = ">",
    *,
    first: int = 0,
    last: int = 0,
    since_ns: int = 0,
    until_ns: int = 0,
    limit: Optional[int] = None,
) -> list[Message]:
    """The messages of a file of lines of JSON (``History.lines``, ``Hub.export_lines``), in their order; which, is said
    as for ``Hub.query``. Lines that are no JSON are skipped. It reads one file: those that were rotated away are files of
    their own. Raises OsError, InvalidError."""
    query = query_of(pattern, first, last, since_ns, until_ns, limit, False)
    encoded = text("path", path)
    if limit == 0:
        return []
    return asked(query, lambda query, each: lib.pace_lines_read(encoded, query, each, None, None, None))


class Archive:
    """An archive that is read without a hub, or beside one: a file that a hub has made (``History.archive``). It is
    brought up to date if it is older. Any thread; they take turns. Raises OsError, InvalidError; UnsupportedError if the
    library was built without archives."""

    def __init__(self, path: str) -> None:
        pointer = ctypes.c_void_p()
        check(lib.pace_archive_open(text("path", path), ctypes.byref(pointer)))
        self._native = Native(pointer, lib.pace_archive_free)
        #: The file.
        self.path = path

    def query(
        self,
        pattern: str = ">",
        *,
        first: int = 0,
        last: int = 0,
        since_ns: int = 0,
        until_ns: int = 0,
        limit: Optional[int] = None,
        newest: bool = False,
    ) -> list[Message]:
        """As ``Hub.query``. Raises OsError if it cannot be read, InvalidError."""
        query = query_of(pattern, first, last, since_ns, until_ns, limit, newest)
        if limit == 0:
            return []
        pointer = self._native.pointer
        return asked(query, lambda query, each: lib.pace_archive_query(pointer, query, each, None, None))

    def export_lines(
        self,
        path: str,
        pattern: str = ">",
        *,
        first: int = 0,
        last: int = 0,
        since_ns: int = 0,
        until_ns: int = 0,
        limit: Optional[int] = None,
    ) -> int:
        """Writes messages to a new file of lines of JSON, which is there when all of it is; says how many. Which, is
        said as for ``Hub.query``. Raises OsError, InvalidError."""
        query = query_of(pattern, first, last, since_ns, until_ns, limit, False)
        pointer = self._native.pointer
        return exported(
            query, path, lambda query, path, count: lib.pace_archive_export(pointer, query, path, count)
        )

    @staticmethod
    def import_lines(
        history: History,
        lines: str,
        pattern: str = ">",
        *,
        first: int = 0,
        last: int = 0,
        since_ns: int = 0,
        until_ns: int = 0,
        limit: Optional[int] = None,
    ) -> LinesRead:
        """Makes a new archive, ``history.archive`` with its limits, of the messages of a file of lines. Which, is said
        as for ``Hub.query``. Their sequences have to grow, as those of an export do. Raises InvalidError, also if the
        archive has something in it; OsError; UnsupportedError. What was put in before a failure stays."""
        query = query_of(pattern, first, last, since_ns, until_ns, limit, False)
        options = layout.HistoryOptions()
        instance("history", history, History).fill(options)
        messages, torn = ctypes.c_uint64(), ctypes.c_uint64()
        encoded = text("lines", lines)
        counts = (ctypes.byref(messages), ctypes.byref(torn))
        check(lib.pace_archive_import(ctypes.byref(options), encoded, ctypes.byref(query), *counts))
        return LinesRead(messages.value, torn.value)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Archive: it belongs to this process")
