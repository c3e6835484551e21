"""Messages of a hub: what Python shows of them, and how they lie in memory for the library."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, repeat
from typing import Any, NamedTuple, Optional, Union

from . import _layout as layout
from ._arguments import BytesLike, data, instance, items, one_of, text, wrong
from ._hosts import base_of
from ._errors import MailboxFull
from ._library import check, error, quick

#: ``pace_message_t``: sequence, time, lost_before, key, payload, headers, priority, attempt, subscription.
MESSAGE = struct.Struct("=QQQQQQQQQiIQ")
#: ``pace_field_t``.
FIELD = struct.Struct("=QQQQ")

#: From so many bytes on a payload is copied without the interpreter's lock.
LARGE = 1 << 16

PRIORITIES = {
    "low": layout.PRIORITY_LOW,
    "normal": layout.PRIORITY_NORMAL,
    "high": layout.PRIORITY_HIGH,
    "critical": layout.PRIORITY_CRITICAL,
}
PRIORITY_NAMES = {number: name for name, number in PRIORITIES.items()}
#: Names and values, in order; of a mapping, one value each.
HeadersLike = Union[Mapping[str, str], Iterable["tuple[str, str]"]]


class Message(NamedTuple):
    """A message that has arrived. It is a copy, and may be kept."""

    #: What it was published with.
    key: str
    payload: bytes
    #: Names and values, in order.
    headers: tuple[tuple[str, str], ...]
    #: Its number in its hub, 1 for the first.
    sequence: int
    #: When it was published: nanoseconds since 1970.
    time_ns: int
    #: How many messages this subscription has lost since the one before.
    lost_before: int
    #: "low", "normal", "high" or "critical".
    priority: str
    #: Which attempt at this message it is: 1 unless the handler has failed at it before.
    attempt: int = 1

    def header(self, name: str) -> Optional[str]:
        """The first value of this name; None: there is none."""
        text("name", name)
        return next((value for each, value in self.headers if each == name), None)


class Receipt(NamedTuple):
    """What became of a publication at once: subscriptions that it matched, and of these those that will
    get it, have dropped it, and have refused it (publishing has raised MailboxFull then), and those whose dead
    letter it has become because they are suspended. Of a batch, the sums."""

    #: The message's number; of a batch, that of its last message.
    sequence: int
    matched: int
    enqueued: int
    dropped: int
    rejected: int
    dead_lettered: int = 0


class Batch:
    """Messages that came together, in order. Like them it is a copy, and never changes: mailboxes that one thread
    empties may give it the same batch. A message is made of its parts only when it is asked for, and ``payloads``
    are there at once."""

    __slots__ = ("payloads", "attempt", "_columns", "_headers", "_keys", "_messages", "_width")

    #: The payload of each message, in order.
    payloads: tuple[bytes, ...]
    #: Which attempt at these messages it is: 1 unless the handler has failed at them before.
    attempt: int
    _columns: memoryview
    _width: int
    _keys: Iterable[str]
    _headers: Iterable[tuple[tuple[str, str], ...]]
    _messages: Optional[list[Message]]

    @classmethod
    def _of(cls, words: memoryview, width: int, tokens: Optional[memoryview] = None) -> Batch:
        # Copies what the rows point to, which is lent: by columns, since a call per message costs more than all that
        # is to be done with it. A row begins every ``width`` words; ``tokens`` are those of their entries.
        self = cls()
        places, sizes = words[5::width], words[6::width].tolist()
        self.payloads = _payloads_at(places, sizes, tokens)
        self.attempt = 1
        self._columns, self._width = words, width
        self._keys = _keys_at(words[3::width].tolist(), words[4::width])
        many = words[8::width].tolist()
        self._headers = repeat(())
        if any(many):
            self._headers = list(map(_headers_at, words[7::width].tolist(), many))
        self._messages = None
        return self

    @property
    def lost(self) -> int:
        """How many messages this subscription has lost before these and between them."""
        return sum(self._columns[2 :: self._width].tolist())

    def _again(self, attempt: int) -> Batch:
        """The same for another attempt."""
        other = Batch()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.attempt, other._messages = attempt, None
        return other

    def _all(self) -> list[Message]:
        """Each of them: the list is made once, and not to be changed."""
        if self._messages is None:
            words, width, attempt = self._columns, self._width, repeat(self.attempt)
            sequence, time_ns, lost = (words[column::width].tolist() for column in range(3))
            priority = map(_PRIORITY_OF.__getitem__, words[9::width].tolist())
            parts = (
                self._keys,
                self.payloads,
                self._headers,
                sequence,
                time_ns,
                lost,
                priority,
                attempt,
            )
            self._messages = list(map(tuple.__new__, repeat(Message), zip(*parts)))
        return self._messages

    def __len__(self) -> int:
        return len(self.payloads)

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._all())

    def __repr__(self) -> str:
        return f"<paceline.Batch of {len(self)} messages>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Batch: pickle its messages, list(batch)")


#: Of a row, in words.
_WORDS = MESSAGE.size // 8


class _Priorities(dict[int, str]):
    """By the word that a row has of priority and attempt."""

    def __missing__(self, word: int) -> str:
        number = ctypes.c_int32(word & 0xFFFF_FFFF).value
        return PRIORITY_NAMES.get(number, str(number))


_PRIORITY_OF = _Priorities()


def message_of(row: bytes) -> Message:
    """A copy of what a row says, and of what it points to."""
    sequence, time_ns, lost, key, wide, payload, size, headers, many, priority, attempt, _ = (
        MESSAGE.unpack(row)
    )
    return Message(
        ctypes.string_at(key, wide).decode(),
        ctypes.string_at(payload, size) if size else b"",
        _headers_at(headers, many) if many else (),
        sequence,
        time_ns,
        lost,
        PRIORITY_NAMES.get(priority) or str(priority),
        attempt,
    )


def _keys_at(places: list[int], sizes: memoryview) -> Iterable[str]:
    if places.count(places[0]) == len(places):
        return repeat(ctypes.string_at(places[0], sizes[0]).decode())
    all = list(zip(places, sizes.tolist()))
    each = {place: ctypes.string_at(*place).decode() for place in set(all)}
    return [each[place] for place in all]


def _headers_at(place: int, many: int) -> tuple[tuple[str, str], ...]:
    raw = ctypes.string_at(place, many * FIELD.size)
    return tuple(
        (ctypes.string_at(name, size).decode(), ctypes.string_at(value, wide).decode())
        for name, size, value, wide in FIELD.iter_unpack(raw)
    )


@lru_cache(maxsize=64)
def _equal_pieces(size: int, count: int) -> Callable[[bytes], tuple[bytes, ...]]:
    return struct.Struct(f"{size}s" * count).unpack


def _payloads_at(
    places: memoryview, sizes: list[int], tokens: Optional[memoryview]
) -> tuple[bytes, ...]:
    if tokens is None:
        return _each_at(places, sizes)
    if tokens[-1] - tokens[0] == len(tokens) - 1:
        return _together_at(places, sizes)
    payloads: list[bytes] = []
    while len(payloads) < len(tokens):
        start = len(payloads)
        end = min(start + _TOGETHER, len(tokens))
        # Tokens of those that were taken together follow each other.
        while tokens[end - 1] - tokens[start] != end - 1 - start:
            end -= 1
        payloads += _together_at(places[start:end], sizes[start:end])
    return tuple(payloads)


#: So many are taken together at most.
_TOGETHER = 256


def _each_at(places: memoryview, sizes: list[int]) -> tuple[bytes, ...]:
    at = zip(places.tolist(), sizes)
    return tuple([ctypes.string_at(place, size) if size else b"" for place, size in at])


def _together_at(places: memoryview, sizes: list[int]) -> tuple[bytes, ...]:
    if max(sizes) > layout.CQ_TOGETHER:
        return _each_at(places, sizes)
    # They lie one after the other.
    together = ctypes.string_at(next(filter(None, places), 0), sum(sizes))
    if sizes.count(sizes[0]) == len(sizes):
        return _equal_pieces(sizes[0], len(sizes))(together)
    return tuple([together[end - size : end] for end, size in zip(accumulate(sizes), sizes)])


def new_receipt() -> layout.Receipt:
    receipt = layout.Receipt()
    receipt.struct_size = ctypes.sizeof(receipt)
    return receipt


def told(receipt: layout.Receipt) -> Receipt:
    return Receipt(*(getattr(receipt, name) for name in Receipt._fields))


def answered(status: int, receipt: layout.Receipt) -> Receipt:
    """The receipt of a publication. Raises what its status means, if it is not OK."""
    if status == layout.OK:
        return told(receipt)
    if status == layout.EFULL and receipt.matched:
        raise MailboxFull(str(error(status)), told(receipt))
    raise error(status)


def fields_of(headers: Optional[HeadersLike]) -> tuple[bytes, bytes, int]:
    """The native rows, the text that they point to, and how many there are."""
    if headers is None:
        return b"", b"", 0
    allowed = "pairs of text, or a mapping of text to text"
    pairs: list[Any] = items(
        "headers", headers.items() if isinstance(headers, Mapping) else headers, allowed
    )
    try:
        all = [(name.encode(), value.encode()) for name, value in pairs]
    except (AttributeError, TypeError, ValueError):
        raise wrong("headers", headers, allowed) from None
    joined = b"".join([name + value for name, value in all])
    place, rows = base_of(joined), []
    for name, value in all:
        rows.append(FIELD.pack(place, len(name), place + len(name), len(value)))
        place += len(name) + len(value)
    return b"".join(rows), joined, len(all)


def publication_of(
    headers: Optional[HeadersLike] = None, priority: str = "normal"
) -> tuple[layout.Publication, Any]:
    """As C wants it, and what it points to."""
    publication = layout.Publication()
    check(quick.pace_publication_init(ctypes.byref(publication), ctypes.sizeof(publication)))
    publication.priority = one_of("priority", priority, PRIORITIES)
    fields = fields_of(headers)
    publication.headers, publication.header_count = base_of(fields[0]) or None, fields[2]
    return publication, fields


def pieces_of(payloads: Iterable[BytesLike]) -> tuple[bytes, int, Any]:
    """Rows of a batch, how many, and what they point to."""
    all = items("payloads", payloads, "an iterable of bytes")
    if set(map(type, all)) != {bytes}:
        all = [data("payloads", each) for each in all]
    joined, sizes, rows = b"".join(all), array("Q", map(len, all)), array("Q", bytes(16 * len(all)))
    rows[0::2] = array("Q", accumulate(sizes, initial=base_of(joined)))[: len(all)]
    rows[1::2] = sizes
    return rows.tobytes(), len(all), joined


def raw_of(name: str, message: Message) -> tuple[layout.Message, Any]:
    """A message as C has it, and what it points to."""
    instance(name, message, Message)
    raw, key, fields = layout.Message(), message.key.encode(), fields_of(message.headers)
    raw.sequence, raw.time_ns, raw.lost_before = message.sequence, message.time_ns, message.lost_before
    raw.key.text, raw.key.size = base_of(key), len(key)
    raw.payload, raw.size = base_of(message.payload) or None, len(message.payload)
    raw.headers, raw.header_count = base_of(fields[0]) or None, fields[2]
    raw.priority, raw.attempt = PRIORITIES.get(message.priority, 0), message.attempt
    return raw, (key, message.payload, fields)
