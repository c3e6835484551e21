"""What goes out of the process: webhooks, and what systemd is told."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple, Optional, Union

from . import _layout as layout
from ._arguments import BytesLike, data, instance, nanos, patience, some_plain, some_text, text, within
from ._contain import guarded, report
from ._hosts import Native, base_of
from ._library import check, in_slices, lib, quick
from ._message import HeadersLike, fields_of
from ._policy import Retry, retry_of
from ._pool import Pool


class WebhookStats(NamedTuple):
    """What a webhook has done. At rest ``posted`` is the sum of ``delivered``, ``failed`` and ``dropped``."""

    #: Bodies that it was given, and those that were answered with success (2xx).
    posted: int
    delivered: int
    #: Attempts that failed and were followed by another.
    retried: int
    #: Bodies that were given up, and those that found no room.
    failed: int
    dropped: int
    #: What the last attempt that failed has failed of.
    last_error: Optional[str] = None


class Webhook:
    """Posts JSON to a URL, from a native thread of its own, in order. Any thread; posting never waits.

    Up to ``capacity`` bodies wait (1 to 65536); more are dropped, and counted. One attempt takes up to
    ``timeout`` seconds (0.001 to 300), and one that fails is tried again as ``retries`` has it (None: 5 times,
    after a second, and twice as long after each other; ``Retry-After`` in seconds is waited for, up to an hour). ``headers`` go with each request. ``proxy`` is a URL;
    the environment is not asked. To post what a hub tells of itself:

        hub.subscribe("$SYS.>", lambda message: webhook.post(message.payload))

    When it is closed or lost, its thread ends after the attempt that is under way, and what waits is dropped:
    ``flush`` before. Raises UnsupportedError if the library was built without it, InvalidError, OsError.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Optional[HeadersLike] = None,
        capacity: int = 1024,
        timeout: float = 10.0,
        retries: Union[int, Retry, None] = None,
        proxy: Optional[str] = None,
    ) -> None:
        options = layout.WebhookOptions()
        check(quick.pace_webhook_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        options.capacity = within("capacity", capacity, 1, 1 << 16)
        options.timeout_ns = nanos("timeout", timeout, 0.001)
        retry = retry_of(retries)
        if retry is not None:
            retry.fill(options.retry)
        fields = fields_of(headers)
        options.headers, options.header_count = base_of(fields[0]) or None, fields[2]
        options.proxy = some_text("proxy", proxy)
        pointer, where = ctypes.c_void_p(), text("url", url)
        check(quick.pace_webhook_new(where, ctypes.byref(options), ctypes.byref(pointer)))
        del fields
        self._native: Optional[Native] = Native(pointer, lib.pace_webhook_free)

    def _pointer(self) -> ctypes.c_void_p:
        return self._native.pointer if self._native is not None else ctypes.c_void_p()

    def post(self, json: BytesLike) -> bool:
        """Posts these bytes, which should be JSON. False: there was no room, and they were dropped. Raises
        InvalidError: it is closed."""
        sent = data("json", json)
        status = quick.pace_webhook_post(self._pointer(), sent, len(sent))
        if status == layout.EFULL:
            return False
        check(status)
        return True

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits up to ``timeout`` seconds (None: for ever) until everything that was posted before has been
        delivered or given up; False: it was not in that time."""
        seconds = patience("timeout", timeout)
        status = in_slices(lambda left: lib.pace_webhook_flush(self._pointer(), left), seconds)
        if status == layout.ETIMEDOUT:
            return False
        check(status)
        return True

    def stats(self) -> WebhookStats:
        """What it has done so far."""
        stats, pointer = layout.WebhookStats(), self._pointer()
        stats.struct_size = ctypes.sizeof(stats)
        check(quick.pace_webhook_stats(pointer, ctypes.byref(stats)))
        room, needed = ctypes.create_string_buffer(1024), ctypes.c_size_t()
        while True:
            at = ctypes.byref(needed)
            status = quick.pace_webhook_last_error(pointer, room, len(room), at)
            if status != layout.EFULL:
                break
            room = ctypes.create_string_buffer(needed.value + 256)
        check(status)
        counts = (getattr(stats, name) for name in WebhookStats._fields[:-1])
        return WebhookStats(*counts)._replace(last_error=room.value.decode("utf-8", "replace") or None)

    def close(self) -> None:
        """Ends it. Calling it again is allowed."""
        self._native = None

    def __enter__(self) -> Webhook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Webhook: it belongs to this process")


_WELL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
#: What native timers may call still: one for each service that there was.
_asked: list[Any] = []


class Service:
    """This process as a service of systemd, which counts as ready from now on, and as stopping when this is
    closed: close it before the drain.

    If its unit has a watchdog (``WatchdogSec=``), a thread of the pool asks ``is_well()`` twice in its time, or as soon as
    one is free (None: nobody is asked). What it raises is logged, and is a no. The watchdog is fed while the last answer
    was true and the pool does not starve: while not something has waited, and nothing has begun or ended on any thread,
    for 30 seconds, or for ``dead_after`` of the pool's ``Ops`` if it has one. Where no systemd has started the process, nothing is told and nobody asks. The pool needs
    threads. Raises UnsupportedError if the library was built without it, OsError: systemd cannot be told; Full,
    ShutDownError."""

    def __init__(self, pool: Pool, is_well: Optional[Callable[[], object]] = None) -> None:
        some_plain("is_well", is_well)
        runner = instance("pool", pool, Pool)._runner
        runner.check_open()

        def ask(_: object) -> int:
            try:
                return 1 if is_well is None or is_well() else 0
            except BaseException as raised:
                report("the function that tells whether a service is well has failed", raised=raised)
                return 0

        asked = _WELL(guarded(ask, 0))
        pointer = ctypes.c_void_p()
        at = ctypes.byref(pointer)
        check(lib.pace_service_start(runner.native.pointer, asked, None, None, at))
        _asked.append(asked)
        self._native: Optional[Native] = Native(pointer, lib.pace_service_free)
        # The pool's threads ask.
        self._pool = pool

    def status(self, text: str) -> None:
        """What ``systemctl status`` shows: one line. Raises InvalidError: it is several, or this is closed."""
        pointer = self._native.pointer if self._native is not None else ctypes.c_void_p()
        check(quick.pace_service_status(pointer, _one_line(text)))

    def close(self) -> None:
        """Tells systemd that the process stops; nobody asks any more. Calling it again is allowed."""
        self._native = None

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Service: it belongs to this process")


def _one_line(line: str) -> bytes:
    return text("text", line)
