"""Watching a pool while it works: an operations endpoint with a live page, figures and health, by HTTP::

    pool = paceline.Pool(4)
    ops = paceline.ops.serve(pool, "127.0.0.1:9090")

Then open http://127.0.0.1:9090/ in a browser, or run ``python -m paceline.top http://127.0.0.1:9090``.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Optional

import paceline

from . import _layout as layout
from ._arguments import instance, nanos, some_text, text
from ._hosts import Native
from ._library import check, lib, quick
from ._names import Namer
from ._pool import Pool
from ._settings_files import Files, Given, files_of, load

__all__ = ["Ops", "serve"]


class Ops:
    """An operations endpoint of a pool and all that stands on it. It has a native thread of its own, so that it answers
    while every thread of the pool is busy. Any thread.

    ``address`` is where it listens: "127.0.0.1:9090", "unix:/run/ops.sock". None: what ``settings`` say, or else it is only
    to be mounted. ``token``: what requests must show as ``Authorization: Bearer`` and this, of at least 16 visible ASCII
    characters; only the page itself, which has no data, is sent without, and whether the pool is well, without reasons. None:
    only this machine is answered, without a proxy between, and nothing can be changed; an address that others reach is refused. ``blocked_after``: how many seconds (0.001 to 3600, default 0.5) a
    handler or task may hold its thread before the thread is shown as blocked; what health says does not depend on it.
    ``ready_after`` (default 5): how many seconds the oldest thing that waits in the native pool (an event, a timer that is
    due, an entry of a completion queue) may wait before the pool is not ready, so that a load balancer sends its requests
    elsewhere. ``dead_after`` (default 30): for how many seconds something must have waited there, and nothing have begun or
    ended on any thread, before the pool is dead, so that the process is started anew; choose it longer than all threads may
    compute at a time. Functions that were given to ``Pool.submit`` wait in the interpreter, where an endpoint does not see
    them. ``workers``: a worker pool that was made with ``metrics``, whose registry is shown, with the program's own figures. ``settings``: as for ``Pool``; the section ``ops`` is
    taken, and all of it is shown by ``/config``, with secrets masked. What is given here wins.

    A function that holds a thread is called as Python does (``__qualname__``; in Python 3.9 and 3.10 without its class),
    after up to 0.2 s; one that is written in C has no name.

    It ends when it is closed or lost. Raises InvalidError, TypeError, OsError, ShutDownError.

    - ``/``: a live page: who leads, who handles what, what is held up
    - ``/metrics``: all figures, as OpenMetrics or Prometheus text
    - ``/health/live``: 503 if the pool starves (``dead_after``), else 200, with reasons
    - ``/health/ready``: 503 if something waits for too long (``ready_after``), else 200, with reasons
    - ``/stats.json``, ``/errors.json``, ``/config``: figures, the last faults, settings and their origins
    - ``/curves.json``: the last 15 minutes: rates, what waits, handling times; a sample each 5 s
    - ``/events``: server-sent events, one a second, for at most 8 viewers: a ninth takes the place of the oldest
    - ``/trace?seconds=3``: a timeline of the next seconds, 1 to 30, which https://ui.perfetto.dev opens
    - ``/log-level``: the levels of the pool's log; PUT, with the token, changes them
    """

    def __init__(
        self,
        pool: Pool,
        address: Optional[str] = None,
        *,
        token: Optional[str] = None,
        blocked_after: Optional[float] = None,
        ready_after: Optional[float] = None,
        dead_after: Optional[float] = None,
        workers: Optional[paceline.WorkerPool] = None,
        settings: Given = None,
        environment: bool = False,
    ) -> None:
        instance("pool", pool, Pool)
        options = layout.OpsOptions()
        check(quick.pace_ops_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        environment = bool(environment) or (isinstance(settings, Files) and settings.environment)
        files = files_of(settings)
        load(options, lib.pace_ops_options_load, files, environment)
        if token is not None:
            options.token = text("token", token)
        if blocked_after is not None:
            options.blocked_after_ns = nanos("blocked_after", blocked_after, 0.001)
        if ready_after is not None:
            options.ready_after_ns = nanos("ready_after", ready_after, 0.001)
        if dead_after is not None:
            options.dead_after_ns = nanos("dead_after", dead_after, 0.001)
        if workers is not None:
            from ._workers import WorkerPool

            instance("workers", workers, WorkerPool)
            options.workers = workers._core.native.pointer
        shown = (ctypes.c_char_p * len(files))(*files)
        options.settings, options.settings_count = shown, len(files)
        options.environment = environment
        pointer, where = ctypes.c_void_p(), some_text("address", address)
        inside = pool._runner.native.pointer
        check(lib.pace_ops_serve(inside, where, ctypes.byref(options), ctypes.byref(pointer)))
        del shown
        self._native: Optional[Native] = Native(pointer, lib.pace_ops_free)
        self._namer = Namer(pool._runner.native)
        weakref.finalize(self, self._namer.exit).atexit = False

    def _pointer(self) -> ctypes.c_void_p:
        return self._native.pointer if self._native is not None else ctypes.c_void_p()

    @property
    def address(self) -> str:
        """Where it listens, with the port that it got. Raises InvalidError: it is only mounted, or closed."""
        room = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
        check(quick.pace_ops_address(self._pointer(), room, len(room)))
        return room.value.decode()

    def mount(self, http: paceline.Http, prefix: str = "/ops") -> None:
        """Adds its routes to a server that was not started, behind a prefix. Without a token, requests of other machines,
        and those that a proxy has passed on, are answered with 403. While the server's threads are all blocked, it is full or has
        no descriptors, they do not answer: an endpoint with an address of its own does. When this is closed, the routes
        answer with 500. Raises InvalidError if the server was started, or for a prefix that does not begin with ``/``, or
        ends in it."""
        from ._http import Http

        instance("http", http, Http)
        check(lib.pace_http_mount_ops(http._core.http.pointer, self._pointer(), text("prefix", prefix)))

    def close(self) -> None:
        """Ends it: viewers are sent away. Calling it again is allowed."""
        self._native = None
        self._namer.exit()
        self._namer.join()

    def __enter__(self) -> Ops:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Ops: it belongs to this process")


def serve(
    pool: Pool,
    address: Optional[str] = "127.0.0.1:9090",
    *,
    token: Optional[str] = None,
    blocked_after: Optional[float] = None,
    ready_after: Optional[float] = None,
    dead_after: Optional[float] = None,
    workers: Optional[paceline.WorkerPool] = None,
    settings: Given = None,
    environment: bool = False,
) -> Ops:
    """Starts an operations endpoint for a pool; see ``Ops``."""
    return Ops(
        pool,
        address,
        token=token,
        blocked_after=blocked_after,
        ready_after=ready_after,
        dead_after=dead_after,
        workers=workers,
        settings=settings,
        environment=environment,
    )
