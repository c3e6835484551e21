"""``Settings``: what files and the environment say of a whole service."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Optional, TypeVar

from . import _layout as layout
from ._arguments import some_text
from ._errors import InvalidError
from ._history import History
from ._library import check, lib, quick
from ._listen import Listen
from ._policy import Retry
from ._settings_files import Files, load
from ._lane import Lane

R = TypeVar("R", bound=ctypes.Structure)

_FULL = {
    layout.OVERLOAD_REJECT: "reject",
    layout.OVERLOAD_WAIT: "wait",
    layout.OVERLOAD_RUN_HERE: "run_here",
    layout.OVERLOAD_DROP_OLDEST: "drop_oldest",
}


class Settings(Files):
    """What files, JSON or YAML by their names, say of a whole service; later files win, and with ``environment``
    variables PACELINE_… win over them. ``docs/SETTINGS.md`` lists all settings. Each method gives what one object is made
    with, as far as it is set; whatever the program says itself wins::

        settings = Settings("service.yaml", "local.yaml", environment=True)
        pool = Pool(settings=settings)
        workers = WorkerPool(pool, settings=settings)
        resize = workers.task(**settings.tasks())(resize)
        hub = Hub(pool, histories=settings.histories(), **settings.hub())
        http = Http(pool, settings.listen("127.0.0.1:8080"), **settings.http())
        webhook = Webhook(**settings.webhook())

    Files are read by each method. They raise InvalidError, which tells all that is wrong.
    """

    def tasks(self) -> dict[str, Any]:
        """The arguments of ``WorkerPool.task`` that the section ``tasks`` sets."""
        raw, usual = self._loaded(
            layout.TaskTypeConfig, quick.pace_task_type_config_init, lib.pace_task_type_config_load
        )
        times = ("timeout", "queue_timeout", "deadline", "soft_timeout", "grace", "lease")
        found = {**_changed(raw, usual, "max_running"), **_times(raw, usual, *times)}
        if raw.lane != usual.lane:
            found["priority"] = Lane(raw.lane)
        if raw.full in _FULL:
            found["full"] = _FULL[raw.full]
        retry = _retry(raw.retry)
        if retry is not None:
            found["retries"] = retry
        return found

    def hub(self) -> dict[str, Any]:
        """The arguments of ``Hub`` that the section ``hub`` sets."""
        raw, usual = self._loaded(
            layout.HubOptions, quick.pace_hub_options_init, lib.pace_hub_options_load
        )
        names = ("max_payload", "dead_letters", "errors", "count_keys")
        return {
            **_changed(raw, usual, *names),
            **_times(raw, usual, "notice_interval", "stats_interval"),
        }

    def histories(self) -> tuple[History, ...]:
        """The history of the section ``history``; none if it sets nothing."""
        raw, usual = self._loaded(
            layout.HistoryOptions, quick.pace_history_options_init, lib.pace_history_options_load
        )
        counts = ("keep_count", "keep_bytes", "archive_count", "archive_bytes")
        rest = ("lines_max_size", "lines_files", "commit_messages", "process_only")
        times = ("keep_age", "archive_age", "commit_delay", "disk_wait")
        found = {**_changed(raw, usual, *counts, *rest), **_times(raw, usual, *times)}
        for name in ("pattern", "archive", "lines"):
            if getattr(raw, name) is not None:
                found[name] = os.fsdecode(getattr(raw, name))
        return (History(**found),) if found else ()

    def listen(self, address: Optional[str] = None) -> Listen:
        """The listener of the section ``server``, for ``Server`` and ``Http``: at ``server.address``, or if that is not
        set at ``address``. Raises InvalidError also if neither is there."""
        raw, usual = self._loaded(
            layout.ListenerOptions, quick.pace_listener_options_init, lib.pace_listener_options_load
        )
        some_text("address", address)
        where = address if raw.address is None else raw.address.decode()
        if where is None:
            raise InvalidError("server.address is not set; allowed: an address, or one for listen()")
        counts = ("max_connections", "max_requests", "max_unconsumed", "backlog")
        rest = ("send_buffer", "receive_buffer", "no_delay", "reuse_port", "v6_only")
        times = ("idle_timeout", "read_timeout", "stall_timeout", "linger", "keep_alive")
        found = {**_changed(raw, usual, *counts, *rest), **_times(raw, usual, *times)}
        if _changed(raw, usual, "output_low", "output_high", "output_max"):
            found["output_marks"] = (raw.output_low, raw.output_high, raw.output_max)
        return Listen(where, **found)

    def http(self) -> dict[str, Any]:
        """The arguments of ``Http`` that the section ``http`` sets."""
        raw, usual = self._loaded(
            layout.HttpOptions, quick.pace_http_options_init, lib.pace_http_options_load
        )
        counts = ("max_head", "max_target", "max_headers", "max_body", "body_rate")
        rest = ("keep_alive_requests", "max_requests")
        times = ("head_timeout", "body_timeout", "keep_alive_timeout")
        return {**_changed(raw, usual, *counts, *rest), **_times(raw, usual, *times)}

    def webhook(self) -> dict[str, Any]:
        """The arguments of ``Webhook`` that the section ``webhook`` sets: ``url`` is among them if it is set."""
        raw, usual = self._loaded(
            layout.WebhookOptions, quick.pace_webhook_options_init, lib.pace_webhook_options_load
        )
        found = {**_changed(raw, usual, "capacity"), **_times(raw, usual, "timeout")}
        for name in ("url", "proxy"):
            if getattr(raw, name) is not None:
                found[name] = getattr(raw, name).decode()
        retry = _retry(raw.retry)
        if retry is not None:
            found["retries"] = retry
        return found

    def _loaded(
        self, kind: type[R], init: Callable[[Any, int], int], call: Callable[[Any, Any, bool], int]
    ) -> tuple[R, R]:
        """What is set, and the defaults."""
        raw, usual = kind(), kind()
        for each in (raw, usual):
            check(init(ctypes.byref(each), ctypes.sizeof(each)))
        load(raw, call, self, False)
        return raw, usual


def _changed(raw: Any, usual: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(raw, name) for name in names if getattr(raw, name) != getattr(usual, name)}


def _times(raw: Any, usual: Any, *names: str) -> dict[str, Any]:
    """In seconds."""
    changed = _changed(raw, usual, *(f"{name}_ns" for name in names))
    return {name[: -len("_ns")]: value / 1e9 for name, value in changed.items()}


def _retry(raw: layout.Retry) -> Optional[Retry]:
    if raw.shape == layout.RETRY_DEFAULT:
        return None
    within = None if raw.within_ns in (0, layout.FOREVER) else raw.within_ns / 1e9
    return Retry(raw.shape, raw.retries, raw.first_ns / 1e9, raw.cap_ns / 1e9, within=within)
