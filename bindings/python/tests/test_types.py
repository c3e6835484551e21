"""What type checkers, editors and frameworks see of the package."""

from __future__ import annotations

import ast
import ctypes
import dataclasses
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tempfile
import typing
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paceline
from paceline import _durable, _http, _listen, _subscriptions, _udp, _workers
from paceline import _layout as layout
from paceline._library import quick
from support import PACKAGE, Case

#: Modules that are generated, and not public.
GENERATED = ("_layout.py", "_signatures.py")


def own_function(found: Any) -> Any:
    """The function behind a member of a class; None: it has none of this package's."""
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if isinstance(found, property):
        found = found.fget
    is_own = inspect.isfunction(found) and found.__module__.startswith("paceline")
    return found if is_own else None


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, and every method and property of those that are classes."""
    for name in sorted([*paceline._PLACES, "ops.serve"]):
        found: Any = paceline
        for part in name.split("."):
            found = getattr(found, part)
        if inspect.isfunction(found):
            yield name, found
        if inspect.isclass(found):
            yield name, found
            for member in dir(found):
                if member.startswith("_") and not member.startswith("__"):
                    continue
                own = own_function(inspect.getattr_static(found, member))
                if own is not None:
                    yield f"{name}.{member}", own


class Hints(Case):
    def test_the_hints_of_every_public_name_can_be_had(self) -> None:
        failed = []
        for name, found in public():
            try:
                typing.get_type_hints(found)
            except Exception as raised:
                failed.append(f"{name}: {raised!r}")
        self.assertEqual(failed, [])
        self.assertGreater(len(list(public())), 500)

    def test_hints_are_what_the_oldest_python_has(self) -> None:
        """Goal: Python 3.9 can evaluate them; it has no `X | Y` for types."""
        found = []
        for path in sorted(PACKAGE.glob("*.py")):
            if path.name in GENERATED:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                hints = [getattr(node, name, None) for name in ("annotation", "returns")]
                for hint in filter(None, hints):
                    if any(isinstance(each, ast.BitOr) for each in ast.walk(hint)):
                        found.append(f"{path.name}:{hint.lineno}: {ast.unparse(hint)}")
        self.assertEqual(found, [])


#: What a checker has to accept, with the types that it has to find; a line with "# no: …" it has to refuse.
SAMPLE = """
from collections.abc import Coroutine
from typing import Any
from typing_extensions import assert_type
from concurrent.futures import Future
from paceline import DurableTask, Http, Hub, Message, Pool, Replay, Server, Subscription, Task, Udp, WorkerPool

pool = Pool(1)
workers, hub = WorkerPool(pool), Hub(pool)
queue = workers.durable("q", "nats://127.0.0.1")

@workers.task
async def bare(number: int) -> str: return ""
@workers.task(retries=3)
async def coroutine(number: int) -> str: return ""
@workers.task(retries=3)
def plain(number: int, text: str = "") -> bytes: return b""
@queue.task(retries=3)
async def durable(number: int) -> str: return ""
@workers.task(durable=queue)
def durable_plain(number: int) -> str: return ""
class Own:
    @workers.task
    def method(self, number: int) -> float: return 1.0
@hub.subscribe("key", capacity=3)
def handler(message: Message) -> None: ...

assert_type(bare.submit(1), Task[str])
assert_type(bare(1), Coroutine[Any, Any, str])
assert_type(coroutine.submit(1), Task[str])
assert_type(coroutine(1), Coroutine[Any, Any, str])
assert_type(plain.submit(1, "x"), Task[bytes])
assert_type(plain.options(retries=1).submit(1, text="x"), Task[bytes])
assert_type(plain.submit_after(1.0, 2), Task[bytes])
assert_type(plain(1), bytes)
assert_type(Own().method.submit(1), Task[float])
assert_type(durable.submit(1), DurableTask[str])
assert_type(durable(1), Coroutine[Any, Any, str])
assert_type(durable_plain.submit(1), DurableTask[str])
assert_type(handler, Subscription)
assert_type(hub.subscribe("key", factory=lambda: print, capacity=3), Subscription)
assert_type(hub.replay("key", factory=lambda: print, last=3), Replay)
assert_type(pool.submit(len, "abc"), Future[int])
Http(pool, max_body=100, idle_timeout=3)

bare.submit("x")  # no: arg-type
plain.submit()  # no: call-arg
plain.post(1, other=3)  # no: call-arg
Own().method.submit("x")  # no: arg-type
durable.submit("x")  # no: arg-type
pool.submit(len)  # no: call-arg
Http(pool, maxbody=100)  # no: call-arg
Http(pool, max_body="x")  # no: arg-type
Server(pool, max_conections=3)  # no: call-arg
Udp(pool, print, bach=3)  # no: call-arg
hub.subscribe("key", print, capasity=3)  # no: call-overload
"""


class Checked(Case):
    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    def test_a_checker_finds_the_types_of_what_is_decorated(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sample = Path(folder, "sample.py")
            sample.write_text(SAMPLE)
            command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", str(sample)]
            environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent), "MYPY_CACHE_DIR": folder}
            environment["MYPY_FORCE_COLOR"] = "0"
            told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        found = {}
        for place, code in re.findall(r"sample\.py:(\d+): error: .*\[([\w-]+)\]", told.stdout):
            # Of a coroutine that is not awaited it says that, too.
            if code != "unused-coroutine":
                found[int(place)] = code
        lines = enumerate(SAMPLE.splitlines(), 1)
        wanted = {number: line.split("# no: ")[1] for number, line in lines if "# no: " in line}
        self.assertEqual(found, wanted, told.stdout)


class Settings(Case):
    """Keywords that are not in a signature: their names, types and defaults."""

    def test_the_settings_of_a_listener_are_those_of_what_listens(self) -> None:
        fields = {field.name: field.type for field in dataclasses.fields(_listen.Listen)}
        del fields["address"]
        hints = typing.get_type_hints(_listen.ListenSettings)
        self.assertEqual(set(hints), set(fields))
        own = typing.get_type_hints(_listen.Listen)
        self.assertEqual(hints, {name: own[name] for name in fields})

    def test_overloads_have_the_keywords_of_what_runs(self) -> None:
        rows: list[tuple[Any, Any]] = [
            (paceline.WorkerPool.task, _workers.TaskSettings),
            (paceline.DurableQueue.task, _durable.DurableSettings),
            (paceline.Hub.subscribe, _subscriptions.SubscriptionSettings),
            (paceline.Hub.replay, _subscriptions.ReplaySettings),
        ]
        for call, settings in rows:
            own = inspect.signature(call).parameters.values()
            names = {each.name for each in own if each.kind is each.KEYWORD_ONLY}
            # A factory has an overload of its own.
            self.assertEqual(set(settings.__optional_keys__), names - {"factory"}, call)

    def test_a_wrong_keyword_is_refused_by_the_class_with_the_nearest_one(self) -> None:
        with paceline.Pool(1) as pool, paceline.Hub(pool) as hub:
            queue = paceline.CompletionQueue(pool)
            self.addCleanup(queue.close)
            topic, listen = hub.topic("key", paceline.Json()), paceline.Listen("127.0.0.1:0")

            def nothing(*_: Any) -> None: ...

            call: Any
            for call, name, text in (
                (lambda **own: paceline.Http(pool, **own), "maxbody", "Http .*mean max_body"),
                (lambda **own: paceline.Http(pool, listen, **own), "maxbody", "Http .*mean max_body"),
                (lambda **own: paceline.Http(pool, **own), "thread", "Http .*mean threads"),
                (
                    lambda **own: paceline.Server(pool, listen, nothing, **own),
                    "max_conections",
                    "Server .*mean max_connections",
                ),
                (lambda **own: paceline.Udp(pool, nothing, **own), "bach", "Udp .*mean batch"),
                (lambda **own: paceline.Udp(pool, nothing, **own), "qqq", "Udp .*it has batch, bro"),
                (
                    lambda **own: queue.serve(listen, 1, **own),
                    "idletimeout",
                    "CompletionQueue.serve .*mean idle_timeout",
                ),
                (
                    lambda **own: topic.subscribe(nothing, **own),
                    "capasity",
                    "Topic.subscribe .*mean capacity",
                ),
            ):
                with self.assertRaisesRegex(TypeError, f"{text}.*"):
                    call(**{name: 3})

    def test_the_help_of_a_class_has_the_defaults_of_its_limits(self) -> None:
        for owner, kind, init, settings in (
            (paceline.Http, layout.HttpOptions, quick.pace_http_options_init, _http._OWN),
            (
                paceline.Udp,
                layout.UdpOptions,
                quick.pace_udp_options_init,
                _udp.UdpSettings.__optional_keys__,
            ),
        ):
            raw = kind()
            init(ctypes.byref(raw), ctypes.sizeof(raw))
            text = re.sub(r"\s+", " ", owner.__doc__ or "")
            for name in settings:
                is_time = name.endswith("_timeout")
                value = getattr(raw, f"{name}_ns" if is_time else name)
                known = f"{value / 1e9:g} seconds" if is_time else str(value)
                if name.endswith("_buffer"):
                    known = "the system's"
                elif value >= 2**32 - 1 and not is_time:
                    known = "any number"
                said = re.search(rf"``{name}``[^)]*?\((?:[^()]*; )?(?:default:? )?([^()]*)\)", text)
                self.assertIsNotNone(said, name)
                self.assertTrue(said[1].endswith(known), (name, known, said[1]))  # type: ignore[index]


if __name__ == "__main__":
    unittest.main()
