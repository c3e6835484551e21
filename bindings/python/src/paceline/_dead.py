"""Dead letters of a hub: messages that a subscription could not deal with."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

from . import _layout as layout
from ._arguments import one_of, some_text, whole, wrong
from ._message import Message, message_of

REASONS = {
    "failed": layout.DEAD_FAILED,
    "panicked": layout.DEAD_PANICKED,
    "suspended": layout.DEAD_SUSPENDED,
}
_NAMES = {number: name for name, number in REASONS.items()}

EACH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(layout.DeadLetter))


class DeadLetter(NamedTuple):
    """A message that a subscription could not deal with. It is a copy, and may be kept."""

    message: Message
    #: Its number: 1 for the hub's first.
    number: int
    #: "failed", "panicked" (a handler in Rust), or "suspended".
    reason: str
    #: What the handler has raised at its last attempt; "": nothing is known.
    failure: str
    #: How often the handler was called with it: 0 if it came to a suspended subscription.
    attempts: int
    #: The number of the subscription that it was for, and its pattern.
    subscription: int
    pattern: str
    #: When it died: nanoseconds since 1970.
    died_ns: int


class DeadLetterStats(NamedTuple):
    """How many dead letters there were: ``buried`` is the sum of the others."""

    buried: int
    held: int
    #: For newer ones, because there were too many.
    forgotten: int
    #: To be delivered again, or not.
    removed: int


class Redelivered(NamedTuple):
    """What became of dead letters that were to be delivered again."""

    enqueued: int
    #: They are dead letters still: the mailbox is full, or the subscription suspended, or inline.
    refused: int
    #: They are dead letters still: their subscription has ended.
    orphaned: int


def filter_of(
    pattern: Optional[str],
    reason: Optional[str],
    subscription: int,
    numbers: Optional[tuple[int, int]],
    since_ns: int,
    limit: Optional[int],
) -> Optional[layout.DeadFilter]:
    """As C wants it; None: no letter can pass."""
    filter = layout.DeadFilter()
    filter.struct_size = ctypes.sizeof(filter)
    filter.pattern = some_text("pattern", pattern)
    if reason is not None:
        filter.reason = one_of("reason", reason, REASONS)
    try:
        first, last = (1, 0) if numbers is None else numbers
    except (TypeError, ValueError):
        raise wrong("numbers", numbers, "the first and the last number, or None") from None
    for what, number in (
        ("subscription", subscription),
        ("numbers", first),
        ("numbers", last),
        ("since_ns", since_ns),
        ("limit", 0 if limit is None else limit),
    ):
        whole(what, number, 64)
    if limit == 0 or (numbers is not None and last < max(first, 1)):
        return None
    filter.subscription, filter.first, filter.last = subscription, first, last
    filter.since_ns, filter.limit = since_ns, limit or 0
    return filter


def letter_of(pointer: Any) -> DeadLetter:
    """A copy of what C shows."""
    raw = pointer.contents

    def text(each: Any) -> str:
        return ctypes.string_at(each.text, each.size).decode() if each.size else ""

    message = message_of(bytes(raw.message))
    return DeadLetter(
        message,
        raw.number,
        _NAMES.get(raw.reason, str(raw.reason)),
        text(raw.failure),
        raw.attempts,
        raw.subscription,
        text(raw.pattern),
        raw.died_ns,
    )
