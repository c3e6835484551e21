"""Messages of a hub: what Python shows of them, and how they lie in memory for the library."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple, Optional, TypeVar, Union

from . import _layout as layout
from ._arguments import BytesLike, data, instance, items, one_of, text, wrong
from ._hosts import base_of
from ._library import check, quick

T = TypeVar("T")

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
    get it, have dropped it, and have refused it, and those whose dead letter it has become because they are
    suspended. Of a batch, the sums."""

    #: The message's number; of a batch, that of its last message.
    sequence: int
    matched: int
    enqueued: int
    dropped: int
    rejected: int
    dead_lettered: int = 0


def rows_of(buffer: Any, count: int) -> bytes:
    """The native rows of what was pulled, which still point to what is lent."""
    return bytes(memoryview(buffer).cast("B")[: count * MESSAGE.size])


def messages_of(rows: bytes) -> list[Message]:
    """Copies what the rows point to: it is lent until this thread pulls again. By columns, since a call per
    message costs more than all that is to be done with it."""
    sequence, time_ns, lost, keys, key_sizes, places, sizes, fields, many, priority, attempt, _ = zip(
        *MESSAGE.iter_unpack(rows)
    )
    return list(
        map(
            tuple.__new__,
            repeat(Message),
            zip(
                _one_each(zip(keys, key_sizes), _key_at),
                _payloads_at(places, sizes),
                map(_headers_at, fields, many) if any(many) else repeat(()),
                sequence,
                time_ns,
                lost,
                _one_each(priority, lambda number: PRIORITY_NAMES.get(number, str(number))),
                attempt,
            ),
        )
    )


def _one_each(column: Iterable[Any], shown: Callable[[Any], T]) -> Iterable[T]:
    """What is shown of each entry, of which most are the same."""
    entries = tuple(column)
    each = {entry: shown(entry) for entry in set(entries)}
    return map(each.__getitem__, entries)


def _key_at(place: tuple[int, int]) -> str:
    return ctypes.string_at(*place).decode()


def _headers_at(place: int, many: int) -> tuple[tuple[str, str], ...]:
    raw = ctypes.string_at(place, many * FIELD.size)
    return tuple(
        (ctypes.string_at(name, size).decode(), ctypes.string_at(value, wide).decode())
        for name, size, value, wide in FIELD.iter_unpack(raw)
    )


def _payloads_at(places: Sequence[int], sizes: Sequence[int]) -> Iterable[bytes]:
    if max(sizes) > layout.PULLED_TOGETHER:
        return [ctypes.string_at(place, size) if size else b"" for place, size in zip(places, sizes)]
    # They lie one after the other.
    together = ctypes.string_at(next(filter(None, places), 0), sum(sizes))
    return [together[end - size : end] for end, size in zip(accumulate(sizes), sizes)]


def new_receipt() -> layout.Receipt:
    receipt = layout.Receipt()
    receipt.struct_size = ctypes.sizeof(receipt)
    return receipt


def told(receipt: layout.Receipt) -> Receipt:
    return Receipt(*(getattr(receipt, name) for name in Receipt._fields))


def fields_of(headers: Optional[HeadersLike]) -> tuple[bytes, bytes, int]:
    """The native rows, the text that they point to, and how many there are."""
    if headers is None:
        return b"", b"", 0
    pairs: Any = headers.items() if isinstance(headers, Mapping) else headers
    try:
        all = [(name.encode(), value.encode()) for name, value in pairs]
    except (AttributeError, TypeError, ValueError):
        raise wrong("headers", headers, "pairs of text, or a mapping of text to text") from None
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
    joined, sizes = b"".join(all), list(map(len, all))
    places = accumulate(sizes, initial=base_of(joined))
    rows = struct.pack(f"={2 * len(all)}Q", *chain.from_iterable(zip(places, sizes)))
    return rows, len(all), joined


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
