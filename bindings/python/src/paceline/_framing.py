"""Where a message ends.

A frame looks at the bytes that ``ConnHandler.data`` was given and finds the first message in them. It keeps
no bytes: what is not consumed is shown again, so ``data`` is a loop.

    def data(self, conn, data):
        start = 0
        while (frame := self.frame.next(data, start)) is not None:
            conn.write(frame.body + b"\\n")
            start += frame.length
        return start
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from ._arguments import BytesLike, number, whole
from ._arguments import data as data_of
from ._errors import Full, InvalidError


class Frame(NamedTuple):
    """A message at the front of some bytes."""

    #: Without its delimiter or its length.
    body: bytes
    #: How many bytes it takes up, with them: what to consume.
    length: int


def _start(start: int, size: int) -> int:
    own = number("start", start)
    if not 0 <= own <= size:
        raise InvalidError(f"start is {own}; allowed: 0 to {size}, as many as there are")
    return own


def _least(name: str, value: int, least: int) -> int:
    own = whole(name, value, 63)
    if own < least:
        raise InvalidError(f"{name} is {own}; allowed: {least} or more")
    return own


class Delimited:
    """Messages that end with ``delimiter``, 1 byte or more; bodies have up to ``max`` bytes. One object per
    connection: it remembers what was searched in vain. One thread at a time."""

    __slots__ = ("_delimiter", "_max", "_searched")

    def __init__(self, delimiter: BytesLike, max: int) -> None:
        self._delimiter = data_of("delimiter", delimiter)
        if not self._delimiter:
            raise InvalidError("delimiter is b''; allowed: 1 byte or more")
        self._max = whole("max", max, 63)
        # So many bytes of the message in front hold no delimiter.
        self._searched = 0

    def next(self, data: BytesLike, start: int = 0) -> Optional[Frame]:
        """The first message behind ``start``. None: a part of one, or nothing; then ``data`` begins with it
        when more has come. Raises Full if it is longer than ``max``."""
        data = data_of("data", data)
        start = _start(start, len(data))
        delimiter = self._delimiter
        # Beyond this, a delimiter would end a body that is too long.
        most = start + self._max + len(delimiter)
        end = min(len(data), most)
        found = data.find(delimiter, start + min(self._searched, end - start), end)
        self._searched = 0
        if found >= 0:
            return Frame(data[start:found], found - start + len(delimiter))
        if end == most:
            raise Full(f"a message is longer than {self._max} bytes")
        # The last bytes may be the beginning of a delimiter.
        self._searched = max(0, end - start + 1 - len(delimiter))
        return None


class FixedLength:
    """Messages of one ``length``, 1 or more. Any threads."""

    __slots__ = ("_length",)

    def __init__(self, length: int) -> None:
        self._length = _least("length", length, 1)

    def next(self, data: BytesLike, start: int = 0) -> Optional[Frame]:
        """The first message behind ``start``. None: a part of one, or nothing."""
        data = data_of("data", data)
        end = _start(start, len(data)) + self._length
        return Frame(data[start:end], self._length) if end <= len(data) else None


class LengthPrefixed:
    """Messages with their length in front, an unsigned number of ``width`` bytes, 1 to 8, in network order,
    that does not count itself; bodies have up to ``max`` bytes. Any threads."""

    __slots__ = ("_width", "_max")

    def __init__(self, width: int, max: int) -> None:
        self._width = number("width", width)
        if not 1 <= self._width <= 8:
            raise InvalidError(f"width is {self._width}; allowed: 1 to 8")
        self._max = whole("max", max, 63)

    def next(self, data: BytesLike, start: int = 0) -> Optional[Frame]:
        """The first message behind ``start``. None: a part of one, or nothing. Raises Full if it is longer
        than ``max``, as soon as its length is there."""
        data = data_of("data", data)
        begin = _start(start, len(data)) + self._width
        if begin > len(data):
            return None
        size = int.from_bytes(data[start:begin], "big")
        if size > self._max:
            raise Full(f"a message of {size} bytes is longer than {self._max}")
        end = begin + size
        return Frame(data[begin:end], end - start) if end <= len(data) else None

    def prefix(self, length: int) -> bytes:
        """The number to write in front of a body of this length."""
        own, most = number("length", length), min(self._max, (1 << 8 * self._width) - 1)
        if not 0 <= own <= most:
            raise InvalidError(f"length is {own}; allowed: 0 to {most}")
        return own.to_bytes(self._width, "big")
