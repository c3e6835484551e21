"""Arguments of the wrong type: a TypeError that names the argument, its value, and what is allowed. Nothing of
what is beneath shows, and nothing is done.

``Table.rows`` has a row for each call of the public interface, and ``test_the_table_is_whole`` walks the package:
what takes an argument and is neither in the table nor left out for a reason is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import inspect
import itertools
import os
import re
import tempfile
import socket
import threading
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import paceline
from paceline import (
    Archive,
    Bridge,
    Executor,
    Export,
    History,
    Http,
    Hub,
    Import,
    Listen,
    Log,
    MessageFilter,
    NatsSettings,
    Ops,
    Peer,
    Pool,
    Queue,
    Rate,
    Response,
    Retry,
    RetryBudget,
    Ring,
    Scaling,
    Server,
    Service,
    Settings,
    Signals,
    StartAt,
    Supervisor,
    Udp,
    Webhook,
    WorkerPool,
)
from paceline._arguments import patience
from support import Case

#: One of each kind. Whoever allows numbers takes bools too, as Python does.
VALUES: dict[str, Any] = {
    "none": None,
    "number": 5,
    "fraction": 0.5,
    "text": "x",
    "bytes": b"x",
    "list": [object()],
    "function": lambda *_: None,
    "object": object(),
}
#: What goes for a time: None is for ever, or no limit.
TIME, MAYBE_TIME = "number fraction", "none number fraction"

#: What a row is made of: the name of the call, the call, good arguments, and by argument which kinds are allowed.
Row = tuple[str, Callable[..., Any], dict[str, Any], dict[str, str]]


#: What programs derive from: paceline calls these.
HOOKS = ("Codec", "ConnHandler", "Middleware", "RequestBody")
#: What only paceline makes.
MADE = (
    "Admission Attempt Audit Calls CompletionEntry CompletionStats Conn ConnDetail Counter Datagram DeadLetter DeadLetterStats DrainReport Frame Future Gauge Handle Headers"
    " Histogram HistoryStats HttpStats HubAudit HubError Inherited Key LinesRead TaskTypeStats LaneRef Latency LogRecord LogStats Mailbox Message MessageFilter"
    " BridgeStats DeadTask DurableCalls DurableFunction DurableQueue DurableReport DurableStats DurableTask ExportStats ImportStats Job PendingStore Periodic RequestEnd Publisher PublisherStats Receipt Redelivered Replay ReplayMailbox ReplayStats Report Request Retry"
    " Scope ServerStats SetStats StartAt ShutdownReport SlowReport Stats Strand Subscription SubscriptionStats Task TaskFunction TaskReport ThreadStats"
    " Timer Topic UdpRef UdpStats Watch WebhookStats WorkerStats WorkersAudit WorkersHealth WriteStatus Rate"
).split()
#: What paceline's own files, and the standard executors, call.
INSIDE = (
    "Future.fail Future.set_exception Future.set_result Future.succeed_attached History.fill"
    " NatsSettings.fill"
    " Periodic.start Retry.fill Scaling.check Threshold.fill Task.end_as Task.fail_as Task.look Task.succeed"
).split()
#: Anything goes: it is handed on, it is the standard library's to look at, or the documentation says so.
ANYTHING = {
    ("Topic.publish", "value"),
    ("Topic.publish_async", "value"),
    ("Json.encode", "value"),
    ("Response.json", "value"),
    ("Calls.options", "key"),
    ("Executor.map", "chunksize"),
    ("Headers.get", "key"),
    ("Headers.get", "default"),
    ("Subscription.__call__", "message"),
    ("Replay.__call__", "message"),
    ("Server.attach", "loop"),
    ("Http.attach", "loop"),
    ("Udp.attach", "loop"),
}

#: What a library may have been built without.
WITHOUT = ("Webhook", "Bridge", "NatsSettings", "Export", "Import", "WorkerPool.durable")

#: What may wait for as long as it is told to.
WAITS = (
    "adrain close delay drain exception flush join map pop pop_batch publish pull pull_batch push request request_async result"
    " shutdown wait wait_connected"
).split()
#: Times that are unusual, in seconds: without an end, beyond what 64 bits of nanoseconds or epoll take, and less than one.
TIMES: list[float] = [
    float("inf"),
    1e300,
    10**400,
    3.1e9,
    2.9e9,
    30 * 86400.0,
    1e-12,
    5e-324,
    -1.0,
    -(10**400),
]


class Silent(paceline.ConnHandler):
    """Reads, and says nothing."""

    def data(self, conn: paceline.Conn, data: bytes) -> None:
        pass


def row(what: str, call: Callable[..., Any], good: dict[str, Any], **allowed: str) -> Row:
    return what, call, good, allowed


def awaited(call: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function, to be called by who has no loop."""

    def run(**arguments: Any) -> Any:
        async def main() -> Any:
            return await call(**arguments)

        return asyncio.run(main())

    return run


def at(call: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A function whose first parameters have no names."""

    def run(**arguments: Any) -> Any:
        first = [arguments.pop(name) for name in names]
        return call(*first, **arguments)

    return run


class Table(Case):
    def setUp(self) -> None:
        super().setUp()
        self.pool = Pool(1)
        self.addCleanup(self.pool.shutdown)
        self.hub = Hub(self.pool, histories=[History()])
        self.addCleanup(self.hub.close)

    # --- the rows ----------------------------------------------------------------------------------

    def pools(self) -> Iterator[Row]:
        pool = self.pool
        settings: dict[str, Any] = {"threads": 0}
        yield row(
            "Pool", Pool, settings, threads="none number", name="none text", max_handles="none number"
        )
        yield row(
            "Pool", Pool, settings, max_joined="none number", on_unhandled="none function", log="none"
        )
        yield row(
            "Pool", Pool, settings, pin="none text list", source="none text", promotion="none text"
        )
        sizes = {"lane_capacity": "none number", "strand_capacity": "none number"}
        told: dict[str, Any] = {"threads": 1, "on_slow": abs, "slow_limit": 1}
        yield row("Pool", Pool, told, on_slow="function", slow_limit="number fraction")
        yield row("Pool", Pool, settings, reserve="none", ageing="none number fraction", **sizes)
        hooks = {"on_thread_start": "none function", "on_thread_end": "none function"}
        yield row(
            "Pool",
            Pool,
            settings,
            watch_period=MAYBE_TIME,
            spin=MAYBE_TIME,
            max_turn=MAYBE_TIME,
            **hooks,
        )
        yield row("Pool", Pool, settings, settings="none text bytes")
        yield row("Settings.listen", Settings().listen, {"address": "x"}, address="none text")
        yield row("Pool.set_active", pool.set_active, {}, threads="number")
        names = {"fn": abs}
        for where, way in (("Pool", pool), ("LaneRef", pool.lane(1)), ("Strand", pool.strand())):
            for what in ("submit", "post", "try_submit", "try_post", "submit_batch", "post_batch"):
                yield row(f"{where}.{what}", at(getattr(way, what), "fn"), names, fn="function")
        yield row("Scope.post", at(pool.scope().post, "fn"), names, fn="function")
        with Executor(1) as executor:
            for what in ("submit", "submit_batch"):
                yield row(f"Executor.{what}", at(getattr(executor, what), "fn"), names, fn="function")
            yield row("Executor.map", at(executor.map, "fn"), names, fn="function", timeout=MAYBE_TIME)
            yield row("Executor.map", at(executor.map, "fn"), names, buffersize="none number")
        yield row("Executor", Executor, {}, max_workers="none number", thread_name_prefix="text")
        yield row("Executor", Executor, {}, initializer="none function", initargs="list text bytes")
        yield row("Pool.lane", pool.lane, {}, lane="number")
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        good: dict[str, Any] = {"io": ours, "on_ready": abs}
        yield row(
            "Pool.register", pool.register, good, io="number", on_ready="function", interest="number"
        )
        timed = at(pool.after, "seconds", "fn")
        yield row("Pool.after", timed, {"seconds": 100, "fn": abs}, seconds=TIME, fn="function")
        timed = at(pool.every, "seconds", "fn")
        yield row("Pool.every", timed, {"seconds": 100, "fn": abs}, seconds=TIME, fn="function")
        yield row("Pool.join", pool.join, {}, seconds=MAYBE_TIME)
        with Pool(1) as other:
            yield row("Timer.postpone", other.after(100, abs).postpone, {}, seconds=TIME)
            future = other.submit(abs, 1)
            for what in ("result", "exception"):
                yield row(f"Future.{what}", getattr(future, what), {}, timeout=MAYBE_TIME)
            yield row("Future.add_done_callback", future.add_done_callback, {}, fn="function")
            yield row("Pool.shutdown", other.shutdown, {}, drain=MAYBE_TIME)

    def queues(self) -> Iterator[Row]:
        queue = Queue(4)
        yield row("Queue", Queue, {}, capacity="number", max_payload="number")
        yield row("Queue.push", queue.push, {"payload": b""}, payload="bytes", timeout=MAYBE_TIME)
        yield row("Queue.push_batch", queue.push_batch, {}, payloads="")
        queue.push(b"x")
        yield row("Queue.pop", queue.pop, {}, timeout=MAYBE_TIME)
        yield row("Queue.pop_batch", queue.pop_batch, {}, most="number", timeout=MAYBE_TIME)
        yield row("Queue.pop_async", awaited(queue.pop_async), {}, most="number")
        good: dict[str, Any] = {"pool": self.pool, "handler": abs}
        sizes = {"capacity": "number", "max_payload": "number", "batch": "number"}
        yield row("Ring", Ring, good, pool="", handler="function", **sizes)
        ring = Ring(self.pool, lambda batch: None)
        yield row("Ring.publish", ring.publish, {"payload": b""}, payload="bytes", timeout=MAYBE_TIME)
        yield row("Ring.publish_batch", ring.publish_batch, {}, payloads="")

    def messages(self) -> Iterator[Row]:
        hub = self.hub
        box = hub.mailbox(">")
        hub.publish("a")
        (message,) = box.pull()
        terms = {"key": "text", "payload": "bytes", "headers": "none", "priority": "text"}
        yield row("Hub.publish", hub.publish, {"key": "a"}, **terms)
        batch = {"key": "a", "payloads": [b""]}
        yield row("Hub.publish_async", awaited(hub.publish_async), {"key": "a"}, **terms)
        yield row("Hub.publish_batch", hub.publish_batch, batch, key="text", payloads="")
        yield row("Hub.publish_all", hub.publish_all, {}, messages="")
        good = {"key": "a", "timeout": 0.0}
        yield row("Hub.request", hub.request, good, **terms, timeout=MAYBE_TIME)
        yield row("Hub.request_async", awaited(hub.request_async), good, **terms, timeout=MAYBE_TIME)
        yield row("Hub.reply", hub.reply, {"request": message}, request="", payload="bytes")
        yield row("Hub.key", hub.key, {}, text="text")
        yield row("Hub.subscriber_count", hub.subscriber_count, {}, key="text")
        publisher = hub.publisher("p")
        yield row("Hub.publisher", hub.publisher, {"name": "p"}, name="text", quota="none", allow="")
        for name, kinds in (("starts", "number"), ("per", TIME), ("burst", "number")):
            call = lambda **rate: hub.publisher("p", quota=Rate(**{"starts": 1, **rate}))
            yield row("Rate", call, {}, **{name: kinds})
        yield row("Publisher.publish", publisher.publish, {"key": "a"}, **terms)
        yield row("Publisher.publish_async", awaited(publisher.publish_async), {"key": "a"}, **terms)
        yield row("Publisher.publish_batch", publisher.publish_batch, batch, key="text", payloads="")
        topic = hub.topic("a", paceline.Json())
        yield row("Hub.topic", hub.topic, {"pattern": "a", "codec": paceline.Json()}, pattern="text")
        yield row("Hub.topic", hub.topic, {"pattern": "a", "codec": paceline.Json()}, codec="")
        published = {"key": "none text", "headers": "none", "priority": "text"}
        yield row("Topic.publish", topic.publish, {"value": 1}, **published)
        yield row("Topic.publish_async", awaited(topic.publish_async), {"value": 1}, **published)
        hooks = {"factory": "none function", "on_restart": "none function"}
        yield row("Topic.subscribe", topic.subscribe, {}, handler="function", **hooks)
        yield row("Topic.decode", topic.decode, {}, message="")
        yield row("Json.decode", paceline.Json().decode, {}, payload="bytes text")
        yield row("Message.header", message.header, {}, name="text")

    def outside(self) -> Iterator[Row]:
        url = {"url": "http://localhost"}
        settings = {"capacity": "number", "timeout": TIME, "retries": "none number"}
        yield row("Webhook", Webhook, url, **settings, url="text", headers="none", proxy="none text")
        # The library may have neither: closed ones look at their arguments, too.
        webhook, service = Webhook.__new__(Webhook), Service.__new__(Service)
        webhook._native = service._native = None
        yield row("Webhook.post", webhook.post, {}, json="bytes")
        yield row("Webhook.flush", webhook.flush, {}, timeout=MAYBE_TIME)
        given = {"token": "none text", "blocked_after": MAYBE_TIME, "workers": "none"}
        given |= {"ready_after": MAYBE_TIME, "dead_after": MAYBE_TIME}
        yield row(
            "Ops",
            Ops,
            {"pool": self.pool},
            **given,
            pool="",
            address="none text",
            settings="none text bytes",
        )
        mounted, http = Ops(self.pool), Http(self.pool, "127.0.0.1:0")
        yield row("Ops.mount", mounted.mount, {"http": http}, http="", prefix="text")
        yield row("Service", Service, {"pool": self.pool}, pool="", is_well="none function")
        yield row("Service.status", service.status, {}, text="text")

    def bridges(self) -> Iterator[Row]:
        hub, broker = self.hub, "nats://127.0.0.1:9"

        def opened(hub: Any = hub, nats: Any = broker, **given: Any) -> None:
            Bridge(hub, nats, **{"exports": ["a"], **given}).close(0)

        numbers = {"window": TIME, "window_count": "number"}
        rules = dict.fromkeys(("exports", "imports"), "")
        yield row("Bridge", opened, {}, hub="", nats="text", name="text", **numbers, **rules)
        yield row("Bridge", opened, {}, permitted="none")
        load = lambda hub=hub, settings=None, **given: Bridge.from_settings(hub, settings, **given)
        given = dict.fromkeys(("hub", "exports", "imports"), "")
        yield row("Bridge.from_settings", load, {}, settings="none text bytes", **given)
        settings = lambda **given: opened(nats=NatsSettings(**{"servers": broker, **given}))
        texts = (
            *("name", "user", "password", "password_file", "token", "token_file", "nkey_file"),
            *("credentials_file", "root_certificates", "client_certificate", "client_key"),
        )
        times = ("connect_timeout", "ping_interval", "reconnect_first", "reconnect_cap")
        told = {**dict.fromkeys(texts, "none text"), **dict.fromkeys(times, TIME)}
        yield row("NatsSettings", settings, {}, servers="text", **told)
        export = lambda **given: opened(exports=[Export(**{"pattern": "a", **given})])
        texts = ("prefix", "stream", "overflow", "spool")
        told = {**dict.fromkeys(texts, "none text"), "buffer": "number", "in_flight": "number"}
        yield row("Export", export, {}, pattern="text", **told, block=MAYBE_TIME)
        taken = lambda **given: opened(imports=[Import(**{"pattern": "a", **given})])
        texts = ("prefix", "group", "stream", "durable")
        told = {**dict.fromkeys(texts, "none text"), "buffer": "number", "in_flight": "number"}
        told.update(dict.fromkeys(("request_timeout", "ack_wait", "handle_timeout"), TIME))
        stored = {"stream": "S", "durable": "d"}
        yield row("Import", taken, stored, pattern="text", start="none", retries="none number", **told)
        yield row("StartAt.sequence", StartAt.sequence, {}, number="number")
        yield row("StartAt.time_ns", StartAt.time_ns, {}, time="number")
        # The library may have none: arguments are looked at before.
        bridge = Bridge.__new__(Bridge)
        bridge._hub = hub
        pending = paceline.PendingStore.__new__(paceline.PendingStore)
        terms = {"payload": "bytes", "headers": "none", "priority": "text"}
        good = {"key": "a"}
        with contextlib.suppress(paceline.UnsupportedError):
            rule = Export("a", stream="S", overflow="reject")
            bridge = Bridge(hub, broker, exports=[rule])
            self.addCleanup(bridge.close, 0)
            pending = bridge.publish("a")
        yield row("Bridge.publish", bridge.publish, good, key="text", **terms)
        for what in ("flush", "wait_connected"):
            yield row(f"Bridge.{what}", getattr(bridge, what), {"timeout": 0}, timeout=MAYBE_TIME)
        yield row("PendingStore.wait", pending.wait, {"timeout": 0}, timeout=MAYBE_TIME)
        yield row("Bridge.close", bridge.close, {}, timeout=TIME)

    def durable(self) -> Iterator[Row]:
        """Nothing is open: what is right is refused by the queue, or by its library."""
        workers = WorkerPool(self.pool, threads=1)
        self.addCleanup(workers.shutdown)
        good: dict[str, Any] = {"name": "a", "nats": "nats://127.0.0.1:9"}
        times = dict.fromkeys(("keep_results", "ack_wait", "window"), TIME)
        places = {"name": "text", "nats": "text", "in_flight": "none number"}
        yield row("WorkerPool.durable", workers.durable, good, **places, **times)
        yield row("WorkerPool.task", workers.task, {}, durable="none")
        # The library may have none: arguments are looked at before.
        queue = paceline.DurableQueue.__new__(paceline.DurableQueue)
        queue._workers, queue._closed, queue.name = workers, True, "a"
        with contextlib.suppress(paceline.UnsupportedError):
            queue = workers.durable(**good)
        given = {"name": "none text", "retries": "none number", "codec": "text", "rate": "none"}
        own = {"timeout": MAYBE_TIME, "soft_timeout": MAYBE_TIME, "max_running": "none number"}
        made = lambda function=abs, **given: queue.task(**given)(function)
        yield row("DurableQueue.task", made, {"name": "x"}, function="function", **given, **own)
        calls = queue.calls("a")
        yield row("DurableQueue.calls", queue.calls, {"name": "a"}, name="text", codec="text")
        yield row(
            "DurableQueue.find",
            queue.find,
            {"id": "n00000000000000000000000000000000"},
            id="text",
            codec="text",
        )
        yield row("DurableQueue.dead", queue.dead, {}, first="number", limit="number")
        yield row("DurableQueue.forget", queue.forget, {"number": 1}, number="number")
        again = {"number": 1}
        yield row("DurableQueue.resubmit", queue.resubmit, again, number="number", codec="text")
        when = {"label": "a", "when": "* * * * *", "calls": calls}
        schedule = at(queue.schedule, "label", "when", "calls")
        yield row("DurableQueue.schedule", schedule, when, label="text", when="text", calls="")
        yield row("DurableQueue.wait_connected", queue.wait_connected, {}, timeout=MAYBE_TIME)
        yield row("DurableQueue.close", queue.close, {}, timeout=TIME)
        options = {"priority": "none number text", "attempts": "none number", "unique": "none text"}
        limits = dict.fromkeys(("delay", "deadline", "timeout"), MAYBE_TIME)
        yield row("DurableCalls.options", calls.options, {}, **options, **limits)
        task = queue.find("n00000000000000000000000000000000")
        for what in ("wait", "result"):
            yield row(f"DurableTask.{what}", getattr(task, what), {"timeout": 0}, timeout=MAYBE_TIME)

    def mailboxes(self) -> Iterator[Row]:
        hub, good = self.hub, {"pattern": "a"}
        box = hub.mailbox(">")
        hub.publish("a")
        (message,) = box.pull()
        settings = {
            "pattern": "text",
            "capacity": "number",
            "overflow": "text",
            "block": MAYBE_TIME,
            "filter": "none",
            "group": "none text",
            "balance": "text",
            "balance_header": "none text",
            "unique": "none text",
        }
        yield row("Hub.mailbox", hub.mailbox, good, **settings, lease=MAYBE_TIME)
        yield row("Hub.mailbox", hub.mailbox, {**good, "acknowledged": True}, supervisor="none")
        handled = {**good, "handler": abs}
        yield row("Hub.subscribe", hub.subscribe, handled, **settings, handler="none function")
        hooks = {"on_error": "none function", "on_restart": "none function", "supervisor": "none"}
        hooks["factory"] = "none function"
        yield row("Hub.subscribe", hub.subscribe, handled, **hooks, retries="none number")
        yield row("Hub.subscribe", hub.subscribe, handled, on_failure="text", restarts="none number")
        yield row("Hub.subscribe", hub.subscribe, handled, within=TIME, batch="none number")
        yield row("Hub.subscribe", hub.subscribe, handled, execution="text", threads="number")
        suspended = {"suspension": MAYBE_TIME, "longest_suspension": TIME}
        yield row("Hub.subscribe", hub.subscribe, handled, **suspended)
        counts = {"restarts": "none number", "within": TIME}
        yield row("Supervisor", Supervisor, {}, strategy="text", **counts, **suspended)
        yield row("Mailbox.pull", box.pull, {"timeout": 0}, most="number", timeout=MAYBE_TIME)
        yield row("Mailbox.pull_async", awaited(box.pull_async), {}, most="number")
        yield row(
            "Mailbox.pull_batch", box.pull_batch, {"timeout": 0}, most="number", timeout=MAYBE_TIME
        )
        yield row("Mailbox.pull_batch_async", awaited(box.pull_batch_async), {}, most="number")
        yield row("Mailbox.unsubscribe", box.unsubscribe, {}, how="text")
        buried = {"message": "", "failure": "text", "attempts": "number"}
        yield row("Mailbox.bury", box.bury, {"message": message}, **buried)
        own = hub.mailbox("b", acknowledged=True)
        counts = dict.fromkeys(("delivered", "failed", "discarded"), "number")
        yield row("Mailbox.acknowledge", own.acknowledge, {"delivered": 0}, **counts)
        yield row("Mailbox.crashed", own.crashed, {"failure": "x"}, failure="text")
        yield row("Mailbox.suspend", own.suspend, {}, seconds=MAYBE_TIME)
        subscription = hub.subscribe("b", lambda message: None)
        yield row("Subscription.unsubscribe", subscription.unsubscribe, {}, how="text")
        yield row("Subscription.wait", subscription.wait, {}, timeout=MAYBE_TIME)
        yield row("Subscription.drain", subscription.drain, {}, within=MAYBE_TIME)
        header = {"name": "text", "value": "text"}
        yield row("MessageFilter.header", MessageFilter.header, {"name": "n", "value": "v"}, **header)
        good_bytes = {"offset": 0, "payload": b""}
        sized = {"offset": "number", "payload": "bytes"}
        yield row("MessageFilter.bytes_at", MessageFilter.bytes_at, good_bytes, **sized)
        times = {"from_ns": "number", "to_ns": "number"}
        yield row("MessageFilter.published", MessageFilter.published, {}, **times)
        yield row("MessageFilter.at_most", MessageFilter.at_most, {}, rate="")
        yield row("MessageFilter.test", MessageFilter.test, {}, says="function")

    def kept(self) -> Iterator[Row]:
        hub = self.hub
        limits = {"since_ns": "number", "limit": "none number"}
        letters = {**limits, "pattern": "none text", "reason": "none text", "subscription": "number"}
        for what in ("dead_letters", "remove_dead_letters", "redeliver"):
            yield row(f"Hub.{what}", getattr(hub, what), {}, **letters, numbers="none")
        span = {"first": "number", "last": "number", "until_ns": "number"}
        yield row("Hub.query", hub.query, {}, pattern="text", **span, **limits)
        file = {"path": "lines.json"}
        yield row(
            "Hub.export_lines", hub.export_lines, file, path="text", pattern="text", **span, **limits
        )
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        archived = History(archive=f"{folder.name}/archive.sqlite")
        Hub(self.pool, histories=[archived]).close()
        archive = Archive(str(archived.archive))
        yield row("Archive", Archive, {}, path="text")
        yield row("Archive.query", archive.query, {}, pattern="text", **span, **limits)
        yield row(
            "Archive.export_lines",
            archive.export_lines,
            file,
            path="text",
            pattern="text",
            **span,
            **limits,
        )
        source = {"history": archived, "lines": "lines.json"}
        import_lines = {"history": "", "lines": "text", "pattern": "text"}
        yield row("Archive.import_lines", archive.import_lines, source, **import_lines, **span, **limits)
        starts = {"sequence": "none number", "since_ns": "none number", "last": "none number"}
        begins = {"pattern": ">", "handler": abs}
        hooks = {"on_error": "none function", "on_restart": "none function", "supervisor": "none"}
        hooks["factory"] = "none function"
        yield row("Hub.replay", hub.replay, begins, pattern="text", handler="none function", **starts)
        yield row("Hub.replay", hub.replay, begins, **hooks, retries="none number")
        yield row(
            "Hub.replay", hub.replay, begins, on_failure="text", restarts="none number", within=TIME
        )
        yield row("Hub.replay", hub.replay, begins, suspension=MAYBE_TIME, longest_suspension=TIME)
        yield row("Hub.replay", hub.replay, begins, batch="none number")
        yield row("Hub.replay_mailbox", hub.replay_mailbox, {"pattern": ">"}, pattern="text", **starts)
        answered = {"pattern": ">", "acknowledged": True}
        yield row("Hub.replay_mailbox", hub.replay_mailbox, answered, supervisor="none")
        replay, served = hub.replay_mailbox(">"), hub.replay(">", lambda message: None, now=True)
        yield row("Replay.unsubscribe", served.unsubscribe, {}, how="text")
        yield row("Replay.wait", served.wait, {}, timeout=MAYBE_TIME)
        yield row("ReplayMailbox.pull", replay.pull, {"timeout": 0}, most="number", timeout=MAYBE_TIME)
        yield row("ReplayMailbox.pull_async", awaited(replay.pull_async), {}, most="number")
        waits = {"most": "number", "timeout": MAYBE_TIME}
        yield row("ReplayMailbox.pull_batch", replay.pull_batch, {"timeout": 0}, **waits)
        yield row("ReplayMailbox.pull_batch_async", awaited(replay.pull_batch_async), {}, most="number")
        message = paceline.Message("a", b"", (), 1, 0, 0, "normal")
        buried = {"message": "", "failure": "text", "attempts": "number"}
        yield row("ReplayMailbox.bury", replay.bury, {"message": message}, **buried)
        own = hub.replay_mailbox(">", acknowledged=True)
        counts = dict.fromkeys(("delivered", "failed", "discarded"), "number")
        yield row("ReplayMailbox.acknowledge", own.acknowledge, {"delivered": 0}, **counts)
        yield row("ReplayMailbox.crashed", own.crashed, {"failure": "x"}, failure="text")
        yield row("ReplayMailbox.suspend", own.suspend, {}, seconds=MAYBE_TIME)
        yield row("ReplayMailbox.unsubscribe", own.unsubscribe, {}, how="text")
        opened = {"threads": 1}
        sizes = dict.fromkeys("threads max_payload dead_letters errors count_keys".split(), "number")
        sizes["notice_interval"] = TIME
        sizes["stats_interval"] = MAYBE_TIME
        call = lambda pool=self.pool, **settings: Hub(pool, **settings).close()
        yield row("Hub", call, opened, pool="", histories="", name="text", **sizes)
        texts = dict.fromkeys(("severity", "event", "origin"), "text")
        yield row("Hub.errors", hub.errors, {}, **texts, **limits, after="number")
        yield row("Hub.metrics", hub.metrics, {}, format="text")
        yield row("Hub.share_metrics", hub.share_metrics, {}, workers="")
        numbers = "none number fraction"
        watched = {"thresholds": [paceline.Threshold("m", above=1)]}
        yield row("Hub.watch", hub.watch, watched, thresholds="", every=TIME, workers="none")
        for side in ({"above": 1}, {"below": 1}):
            call = lambda **given: hub.watch([paceline.Threshold(**{"metric": "m", **given})])
            parts = {"back_at": numbers, "quantile": numbers}
            yield row("Threshold", call, side, metric="text", labels="", severity="text", **parts)
            yield row("Threshold", call, side, **dict.fromkeys(side, numbers))
        counts = ("keep_count", "keep_bytes", "archive_count", "archive_bytes")
        ages = ("keep_age", "archive_age", "disk_wait")
        history = {
            **dict.fromkeys(counts, "none number"),
            **dict.fromkeys(ages, MAYBE_TIME),
            **dict.fromkeys(("archive", "lines"), "none text"),
            **dict.fromkeys(("lines_max_size", "lines_files", "commit_messages"), "number"),
            "pattern": "text",
            "commit_delay": TIME,
        }
        yield row("History", lambda **given: Hub(self.pool, histories=[History(**given)]), {}, **history)

    def workers(self) -> Iterator[Row]:
        pool = self.pool
        workers = WorkerPool(pool, threads=1, metrics=True)
        self.addCleanup(workers.shutdown)
        call = lambda pool=pool, **settings: WorkerPool(pool, **settings).shutdown()
        sizes = dict.fromkeys(("max_queued", "max_tasks", "seed"), "number")
        maybe = dict.fromkeys(("threads", "max_waiting", "max_droppable"), "none number")
        rest = {"scaling": "none", "middleware": "", "log": "none", "settings": "none text bytes"}
        rest["loop"] = "none"
        full = "none text number fraction"
        yield row("WorkerPool", call, {}, pool="", name="text", full=full, **sizes, **maybe, **rest)
        times = dict.fromkeys(
            ("timeout", "queue_timeout", "deadline", "soft_timeout", "grace"), MAYBE_TIME
        )
        both = {**times, "retries": "none number", "full": full}
        numbers = itertools.count()
        decorate = lambda **settings: workers.task(**{"name": f"task {next(numbers)}", **settings})(abs)
        yield row("WorkerPool.task", decorate, {}, name="none text", priority="text number", **both)
        counted = {"budget": "none", "rate": "none", "max_running": "none number", "lease": MAYBE_TIME}
        yield row("WorkerPool.task", decorate, {}, **counted)
        yield row("WorkerPool.task", at(workers.task(), "function"), {}, function="function")
        called = workers.task(abs)
        yield row("Calls.options", called.options, {}, priority="none text number", **both)
        yield row("Calls.options", called.options, {}, delay=MAYBE_TIME)
        yield row("Calls.submit_after", at(called.submit_after, "seconds"), {}, seconds=TIME)
        every = at(workers.every, "seconds", "calls")
        good: dict[str, Any] = {"seconds": 100, "calls": called}
        yield row("WorkerPool.every", every, good, seconds=TIME, calls="", missed="text")
        yield row("WorkerPool.set_active", workers.set_active, {}, threads="number")
        hook = {"function": abs}
        on_shutdown = {"function": "function", "name": "none text"}
        yield row("WorkerPool.on_shutdown", workers.on_shutdown, hook, **on_shutdown)
        ends = dict.fromkeys(("drain", "stop", "clean_up"), MAYBE_TIME)
        yield row("WorkerPool.shutdown", workers.shutdown, {}, **ends)
        yield row("WorkerPool.metrics", workers.metrics, {}, format="text")
        yield row("Pool.metrics", self.pool.metrics, {}, format="text")
        yield row("Pool.trace", self.pool.trace, {"time": 0.001}, time=TIME, records="number")
        yield row("Pool.add_disk", self.pool.add_disk, {}, path="text")
        yield row("metrics_format", paceline.metrics_format, {}, accept="none text")
        named = {"name": "n"}
        for what in ("counter", "gauge", "histogram"):
            figure = getattr(workers, what)
            yield row(f"WorkerPool.{what}", figure, named, name="text", help="text")
        yield row("WorkerPool.histogram", workers.histogram, named, unit="text")
        yield row("Counter.inc", workers.counter("c").inc, {}, count="number")
        yield row("Gauge.set", workers.gauge("g").set, {}, value=TIME)
        yield row("Gauge.add", workers.gauge("g").add, {}, difference=TIME)
        yield row("Histogram.record", workers.histogram("h").record, {}, value=TIME)
        sized = workers.histogram("b", unit="bytes")
        yield row("Histogram.record", sized.record, {}, value="number")
        task = workers.task(int).submit(1)
        for what in ("result", "exception", "report"):
            yield row(f"Task.{what}", getattr(task, what), {}, timeout=MAYBE_TIME)

    def policies(self) -> Iterator[Row]:
        retry = lambda made: WorkerPool(self.pool, threads=0).task(retries=made)
        times = {"exponential": ("first", "cap"), "linear": ("first", "cap"), "fixed": ("delay",)}
        for what, names in {**times, "random": ("least", "most")}.items():
            good = {"retries": 1, **dict.fromkeys(names, 1.0)}
            make = lambda what=what, **given: retry(getattr(Retry, what)(**given))
            kinds = {"retries": "number", **dict.fromkeys(names, TIME)}
            if what != "random":
                kinds["jitter"] = "none text"
            yield row(f"Retry.{what}", make, good, **kinds)
        custom = lambda **given: retry(Retry.custom(**given))
        good_custom: dict[str, Any] = {"retries": 1, "delay": abs}
        yield row("Retry.custom", custom, good_custom, retries="number", delay="function")
        limited = lambda within: retry(Retry.none().limited(within))
        yield row("Retry.limited", limited, {}, within=MAYBE_TIME)
        budget = {"ratio": TIME, "per_second": "number", "burst": "number"}
        budgeted = lambda **given: WorkerPool(self.pool, threads=0).task(budget=RetryBudget(**given))
        yield row("RetryBudget", budgeted, {}, **budget)
        scaled = lambda **given: WorkerPool(self.pool, threads=1, scaling=Scaling(**given)).shutdown()
        counts = dict.fromkeys(("min_active", "percentile", "patience"), "number")
        yield row("Scaling", scaled, {}, **counts, **dict.fromkeys(("high", "low", "period"), TIME))
        paths = dict.fromkeys(("file", "settings"), "none text bytes")
        sizes = dict.fromkeys(("max_size", "files", "capacity"), "none number")
        logged = lambda **given: Log(logger=False, **given).close()
        yield row("Log", logged, {}, callback="none function", levels="none text", **paths, **sizes)
        records = Log(logger=False)
        yield row("Log.set_levels", records.set_levels, {}, levels="text")
        for wait in ("flush", "close"):
            yield row(f"Log.{wait}", getattr(records, wait), {}, timeout=MAYBE_TIME)
        yield row("Signals", Signals, {}, signals="", on_signal="none function")
        with Signals() as signals:
            yield row("Signals.wait", signals.wait, {}, timeout=MAYBE_TIME)

    def servers(self) -> Iterator[Row]:
        pool = self.pool
        made = lambda pool=pool, **given: Server(pool, **{"handler": Silent, **given}).close()
        start = {"threads": "number", "name": "text"}
        yield row("Server", made, {}, pool="", handler="function", connect_timeout=MAYBE_TIME, **start)
        yield row("Server", made, {}, listen="text")
        timed = ("idle_timeout", "read_timeout", "stall_timeout", "linger", "keep_alive")
        sized = (
            "max_connections",
            "max_requests",
            "max_unconsumed",
            "send_buffer",
            "receive_buffer",
            "socket_mode",
            "backlog",
        )
        listen = {
            "address": "text",
            "refusal": "none bytes",
            "busy": "none bytes",
            "output_marks": "none",
            **dict.fromkeys(sized, "none number"),
            **dict.fromkeys(timed, MAYBE_TIME),
        }
        places = (f"unix:@paceline-{os.getpid()}-{number}" for number in itertools.count())
        at_listen = lambda **given: made(listen=Listen(**{"address": next(places), **given}))
        yield row("Listen", at_listen, {}, **listen)
        server = Server(pool, "127.0.0.1:0", Silent)
        self.addCleanup(server.close)
        conn = server.connect(server.addresses[0])
        good = {"address": server.addresses[0]}
        yield row("Server.connect", server.connect, good, address="text", handler="none function")
        yield row("Conn.write", conn.write, {}, data="bytes")
        yield row("Conn.write_vectored", conn.write_vectored, {}, pieces="list")
        tracked = {"data": b"", "token": 1}
        yield row("Conn.write_tracked", conn.write_tracked, tracked, data="bytes", token="number")
        delimited = {"delimiter": b"x", "max": 1}
        yield row("Delimited", paceline.Delimited, delimited, delimiter="bytes", max="number")
        yield row("FixedLength", paceline.FixedLength, {}, length="number")
        prefixed = {"width": 1, "max": 1}
        yield row("LengthPrefixed", paceline.LengthPrefixed, prefixed, width="number", max="number")
        yield row(
            "LengthPrefixed.prefix", paceline.LengthPrefixed(8, 1 << 40).prefix, {}, length="number"
        )
        frames = paceline.Delimited(b"x", 9), paceline.FixedLength(1), paceline.LengthPrefixed(1, 255)
        for each in frames:
            name = f"{type(each).__name__}.next"
            yield row(name, each.next, {"data": b"ab"}, data="bytes", start="number")
        yield row("Server.wait", server.wait, {"timeout": 0}, timeout=MAYBE_TIME)
        yield row("Server.drain", server.drain, {}, seconds=MAYBE_TIME)
        yield row("Server.adrain", awaited(server.adrain), {}, seconds=MAYBE_TIME)
        handled: dict[str, Any] = {"handler": lambda *_: None, "bind": "127.0.0.1:0"}
        bound = lambda pool=pool, **given: Udp(pool, **{**handled, **given}).close()
        places = {"bind": "none text", "connect": "none text"}
        counts = ("batch", "max_datagram", "send_buffer", "receive_buffer", "multicast_ttl")
        hooks = {"handler": "function", "on_error": "none function", "max_waiting": "number"}
        sizes = dict.fromkeys(counts, "none number")
        yield row("Udp", bound, {}, pool="", **places, **hooks, **start, **sizes)
        udp = Udp(pool, **handled)
        self.addCleanup(udp.close)
        yield row("Udp.send", udp.send, {"data": b"", "to": udp.address}, data="bytes", to="none text")
        yield row("Udp.send_batch", udp.send_batch, {}, datagrams="")
        group = {"group": "239.1.2.3"}
        for what in ("join_multicast", "leave_multicast"):
            yield row(f"Udp.{what}", getattr(udp, what), group, group="text", interface="number")
        yield row("Udp.wait", udp.wait, {"timeout": 0}, timeout=MAYBE_TIME)
        yield row("Udp.drain", udp.drain, {}, seconds=MAYBE_TIME)
        yield row("Udp.adrain", awaited(udp.adrain), {}, seconds=MAYBE_TIME)
        yield row("Peer", Peer, {}, address="text")

    def http(self) -> Iterator[Row]:
        pool = self.pool
        made = lambda pool=pool, **given: Http(pool, **given).start().close()
        numbers = (
            "max_headers",
            "keep_alive_requests",
            "max_head",
            "max_target",
            "max_body",
            "body_rate",
        )
        sizes = dict.fromkeys((*numbers, "max_requests"), "none number")
        times = dict.fromkeys(("head_timeout", "body_timeout", "keep_alive_timeout"), MAYBE_TIME)
        plain = {"pool": "", "listen": "text", "threads": "number", "name": "text"}
        yield row("Http", made, {}, **plain, **sizes, **times)
        http = Http(pool)
        for what in ("get", "post", "put", "patch", "delete"):
            routed = lambda what=what, **given: getattr(http, what)(**given)(abs)
            yield row(f"Http.{what}", routed, {}, pattern="text")
        for what in ("route", "route_streaming"):
            routed = lambda what=what, **given: getattr(http, what)(**given)(abs)
            good = {"method": "GET", "pattern": "/"}
            yield row(f"Http.{what}", routed, good, method="text", pattern="text")
        for what, taken in (("around", "middleware"), ("fallback", "handler"), ("on_end", "hook")):
            yield row(f"Http.{what}", getattr(http, what), {}, **{taken: "function"})
        yield row("Http.access_log", http.access_log, {}, format="text", log="none")
        # The pool has no log.
        http.access_log(log=paceline.Log(logger=False))
        http.start()
        self.addCleanup(http.close)
        yield row("Http.wait", http.wait, {"timeout": 0}, timeout=MAYBE_TIME)
        yield row("Http.drain", http.drain, {}, seconds=MAYBE_TIME)
        yield row("Http.adrain", awaited(http.adrain), {}, seconds=MAYBE_TIME)
        body = "text bytes list"
        answer = {"body": body, "status": "number", "length": "none number", "headers": "none"}
        yield row("Response", Response, {}, **answer)
        yield row("Response.json", Response.json, {"value": 1}, status="number")
        yield row("Response.error", Response.error, {"status": 404}, status="number", headers="none")
        pair = {"name": "A", "value": "b"}
        yield row("Response.header", Response().header, pair, name="text", value="text")
        refused: list[str] = []
        asked = Http(pool)

        @asked.get("/")
        def handler(request: paceline.Request) -> str:
            respond = row("Request.respond", request.respond, {}, response=body)
            header = row("Request.header", request.header, {}, name="text")
            good: dict[str, Any] = {"protocol": "x", "handler": Silent}
            kinds = {"protocol": "text", "handler": "function", "headers": "none"}
            upgrade = row("Request.upgrade", request.upgrade, good, **kinds)
            for each in (respond, header, upgrade):
                refused.extend(self.wrong_of(each))
            return "done"

        with asked:
            host, port = asked.addresses[0].split(":")
            with socket.create_connection((host, int(port))) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                told = b"".join(iter(lambda: client.recv(4096), b""))
        self.assertIn(b"done", told)
        self.assertEqual(refused, [])

    def completions(self) -> Iterator[Row]:
        queue = paceline.CompletionQueue(self.pool)
        self.addCleanup(queue.close)
        yield row(
            "CompletionQueue", paceline.CompletionQueue, {"pool": self.pool}, pool="", lease=MAYBE_TIME
        )
        yield row("CompletionQueue.wait", queue.wait, {"timeout": 0}, most="number", timeout=MAYBE_TIME)
        tag = {"tag": "number"}
        yield row("CompletionQueue.after", queue.after, {"seconds": 3600, "tag": 1}, seconds=TIME, **tag)
        yield row("CompletionQueue.every", queue.every, {"seconds": 3600, "tag": 1}, seconds=TIME, **tag)
        post = lambda tags: queue.post(tags)
        yield row("CompletionQueue.post", post, {"tags": 1}, tags="number")
        yield row("CompletionQueue.wake", queue.wake, {}, **tag)
        done = lambda entries: queue.done(entries)
        yield row("CompletionQueue.done", done, {}, entries="")
        entry = paceline.CompletionEntry(paceline.EntryKind.TASK, 1, 0, b"", None, False)
        texts = {"message": "none text", "data": "bytes"}
        numbers = {"flow": "number", "left": "number", "flags": "number"}
        good: dict[str, Any] = {"entry": entry}
        yield row("CompletionQueue.complete", queue.complete, good, entry="", **texts, **numbers)
        yield row("CompletionQueue.renew", queue.renew, {}, entry="")
        mail = {"mailbox": self.hub.mailbox("completions"), "tag": 1}
        yield row("CompletionQueue.mailbox", queue.mailbox, mail, mailbox="", **tag)
        io = {"io": 1 << 20, "tag": 1}
        yield row("CompletionQueue.register", queue.register, io, io="number", interest="number", **tag)
        yield row(
            "CompletionQueue.signals", queue.signals, {"numbers": [9], "tag": 1}, numbers="", **tag
        )
        places = {"listen": "127.0.0.1:0", "tag": 1}
        yield row("CompletionQueue.serve", queue.serve, places, listen="text", wanted="", **tag)

    def all_rows(self) -> Iterator[Row]:
        made = (
            self.completions,
            self.pools,
            self.queues,
            self.messages,
            self.outside,
            self.bridges,
            self.durable,
            self.mailboxes,
            self.kept,
        )
        for rows in (*made, self.workers, self.policies, self.servers, self.http):
            yield from rows()

    # --- what is done with them ----------------------------------------------------------------------

    def wrong_of(self, each: Row) -> list[str]:
        """What is not as it should be of a row."""
        what, call, good, allowed = each
        wrong = []
        for name, kinds in allowed.items():
            for kind, value in VALUES.items():
                if kind in kinds.split():
                    continue
                told = outcome(call, {**good, name: value})
                if told is None or not re.match(rf"TypeError: (\w+\.)?{name} is .*; allowed: .", told):
                    wrong.append(f"{what}({name}={kind}): {told}")
        return wrong

    def walk(self, rows: Iterator[Row]) -> None:
        wrong = [text for each in rows for text in self.wrong_of(each)]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_the_table_is_whole(self) -> None:
        known = {(what, name) for what, _, _, allowed in self.all_rows() for name in allowed}
        # Rows that are made inside a handler.
        known |= {("Request.respond", "response"), ("Request.header", "name")}
        known |= {("Request.upgrade", name) for name in ("protocol", "handler", "headers")}
        missing = [each for each in sorted(set(parameters())) if each not in known | ANYTHING]
        self.assertEqual(missing, [])
        # What is left out is still there.
        self.assertEqual(ANYTHING - set(parameters()), set())

    def test_no_time_is_too_much(self) -> None:
        """Each time is taken, or refused with the range."""
        wrong, durations = [], 0
        for what, call, good, allowed in self.all_rows():
            for name, kinds in allowed.items():
                if kinds not in (TIME, MAYBE_TIME) or what.startswith("Gauge."):
                    continue
                if what in WITHOUT and outcome(call, good):
                    # The library was built without it.
                    continue
                durations += 1
                waits = what.rpartition(".")[2] in WAITS
                for value in (float("nan"), *(() if waits else TIMES)):
                    told = outcome(call, {**good, name: value})
                    if told is None and value == value:
                        continue
                    # The range is told here, or by the library.
                    if told is None or not re.match(
                        r"InvalidError: .+ is .+(; allowed: |, but must be ).", told
                    ):
                        wrong.append(f"{what}({name}={repr(value)[:12]}): {told}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))
        self.assertGreater(durations, 60)

    def test_no_wait_is_too_long(self) -> None:
        """Beyond what the system's calls take, a wait is as long as they allow."""
        for value in TIMES:
            own = patience("timeout", value)
            assert own is not None
            self.assertTrue(0 <= own <= threading.TIMEOUT_MAX, value)
            gate = threading.Event()
            for wait in (gate.wait, threading.Thread(target=gate.wait).join):
                with contextlib.suppress(RuntimeError):
                    threading.Timer(0.01, gate.set).start()
                    wait(own)
        with self.hub.subscribe("a.b.c", abs) as subscription:
            threading.Timer(0.01, subscription.unsubscribe).start()
            self.assertTrue(subscription.wait(float("inf")))

    def test_pools(self) -> None:
        self.walk(self.pools())

    def test_queues(self) -> None:
        self.walk(self.queues())

    def test_messages(self) -> None:
        self.walk(self.messages())

    def test_what_goes_outside(self) -> None:
        self.walk(self.outside())

    def test_bridges(self) -> None:
        self.walk(self.bridges())

    def test_durable_tasks(self) -> None:
        self.walk(self.durable())

    def test_mailboxes(self) -> None:
        self.walk(self.mailboxes())

    def test_what_a_hub_keeps(self) -> None:
        self.walk(self.kept())

    def test_workers(self) -> None:
        self.walk(self.workers())

    def test_policies(self) -> None:
        self.walk(self.policies())

    def test_servers(self) -> None:
        self.walk(self.servers())

    def test_http(self) -> None:
        self.walk(self.http())


def parameters() -> Iterator[tuple[str, str]]:
    """Of all public functions: its name, by the class that has it, and that of the parameter."""
    for name in paceline.__all__:
        kind = getattr(paceline, name)
        if not inspect.isclass(kind) or issubclass(kind, (BaseException, enum.Enum)) or name in HOOKS:
            continue
        calls = [] if name in MADE else [(name, kind)]
        for method, call in inspect.getmembers(kind, callable):
            if (method == "__call__" or not method.startswith("_")) and not issubclass(kind, tuple):
                calls.append((f"{owner(kind, method)}.{method}", call))
        for what, call in calls:
            for each in inspect.signature(call).parameters.values():
                named = each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
                if (
                    named
                    and each.name != "self"
                    and "bool" not in str(each.annotation)
                    and what not in INSIDE
                ):
                    yield what, each.name


def owner(kind: type, method: str) -> str:
    """The first public class of its bases that has the method; its own name if that is not public."""
    bases = [base for base in kind.__mro__ if method in vars(base)]
    names = [base.__name__ for base in bases if base.__name__ in paceline.__all__]
    shown = names[-1] if names else kind.__name__
    return {"UdpRef": "Udp"}.get(shown, shown)


def outcome(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """What a call has raised."""
    try:
        call(**arguments)
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    return None


if __name__ == "__main__":
    unittest.main()
