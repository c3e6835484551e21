"""Publishers of a hub that have a name, a quota, and patterns that they may publish with."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional, Union

import paceline

from . import _layout as layout
from ._arguments import BytesLike, data, items, text
from ._hosts import Native
from ._library import check, lib, quick
from ._message import (
    HeadersLike,
    Receipt,
    answered,
    new_receipt,
    pieces_of,
    publication_of,
)
from ._policy import Rate, rate_of


class PublisherStats(NamedTuple):
    """What a publisher has done."""

    published: int
    #: Messages that were not: beyond the quota, of a key that is not allowed, or invalid.
    refused: int
    #: The sums of its receipts: enqueued, and dropped or rejected.
    enqueued: int
    lost: int


class Publisher:
    """A publisher with a name; see ``Hub.publisher``. Its limits guard against mistakes: whoever has the hub can
    publish without one. Any thread."""

    def __init__(
        self, hub: paceline.Hub, name: str, quota: Optional[Rate], allow: Iterable[str], no_wait: bool
    ) -> None:
        options = layout.PublisherOptions()
        check(quick.pace_publisher_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        if quota is not None:
            options.quota, options.quota_per_ns, options.quota_burst = rate_of("quota", quota)
        given = items("allow", allow, "an iterable of text")
        patterns = [text("allow", pattern) for pattern in given]
        options.allow = (ctypes.c_char_p * len(patterns))(*patterns)
        options.allow_count = len(patterns)
        options.no_wait = no_wait
        pointer, inside = ctypes.c_void_p(), hub._core.pointer()
        at = ctypes.byref(pointer)
        check(quick.pace_publisher_new(inside, text("name", name), ctypes.byref(options), at))
        self._native = Native(pointer, lib.pace_publisher_free)
        self._hub = hub
        self._no_wait = no_wait
        #: As it was given.
        self.name = name

    def publish(
        self,
        key: Union[paceline.Key, str],
        payload: BytesLike = b"",
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Receipt:
        """As ``Hub.publish``. Raises InvalidError also for a key that is not allowed, Full beyond the quota."""
        own, sent, receipt = self._key(key), data("payload", payload), new_receipt()
        where = own._native.pointer
        publication, kept = publication_of(headers, priority)
        core, size = self._hub._core, len(sent)
        publish, terms, at = (
            core.view(size).pace_publisher_publish,
            ctypes.byref(publication),
            ctypes.byref(receipt),
        )
        pointer = self._native.pointer
        with core.publishing():
            published = core.publish(
                where,
                lambda flags: publish(pointer, where, terms, sent, size, flags, at),
                receipt,
                self._no_wait,
            )
        del kept
        return published

    async def publish_async(
        self,
        key: Union[paceline.Key, str],
        payload: BytesLike = b"",
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Receipt:
        """As ``Hub.publish_async``. Raises as ``publish``."""
        own, sent, receipt = self._key(key), data("payload", payload), new_receipt()
        publication, kept = publication_of(headers, priority)
        core, size, pointer = self._hub._core, len(sent), self._native.pointer
        publish, where = core.view(size).pace_publisher_publish, own._native.pointer
        terms, at = ctypes.byref(publication), ctypes.byref(receipt)
        published = await core.publish_async(
            own,
            lambda flags: publish(pointer, where, terms, sent, size, flags, at),
            receipt,
            self._no_wait,
        )
        del kept
        return published

    def publish_batch(self, key: Union[paceline.Key, str], payloads: Iterable[BytesLike]) -> Receipt:
        """As ``Hub.publish_batch``. Each message takes of the quota; those before the first that is beyond it
        are published."""
        own, receipt = self._key(key), new_receipt()
        where = own._native.pointer
        pieces, count, kept = pieces_of(payloads)
        at, core = ctypes.byref(receipt), self._hub._core
        flags = core.flags(self._no_wait)
        with core.publishing():
            pointer = self._native.pointer
            status = lib.pace_publisher_publish_batch(pointer, where, pieces, count, flags, at)
        del kept
        return answered(status, receipt)

    def stats(self) -> PublisherStats:
        """The counters of the publisher, until now."""
        stats = layout.PublisherStats()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_publisher_stats(self._native.pointer, ctypes.byref(stats)))
        return PublisherStats(*(getattr(stats, name) for name in PublisherStats._fields))

    def _key(self, key: Union[paceline.Key, str]) -> paceline.Key:
        self._hub._core.pointer()
        self._hub._core.check_draining()
        return self._hub._own(key)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Publisher: it belongs to this process")
