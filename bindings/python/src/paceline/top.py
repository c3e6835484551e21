"""``python -m paceline.top URL``: the live page of an operations endpoint, in a terminal.

It shows what the page shows: who leads, who handles what, what is held up. Keys: ``p`` pauses, ``q`` ends it. The
endpoint's token is read from the variable ``PACELINE_OPS_TOKEN``. With ``--once``, or without a terminal, one report is
printed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import sys
import threading
import unicodedata
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, Optional

__all__ = ["main"]

#: What a letter of a strip is shown as: a sign, which needs no colour, and the number of its colour.
_SIGNS = {
    "L": ("█", 1),
    "H": ("▅", 2),
    "W": ("▂", 3),
    "F": ("▁", 0),
    "B": ("▓", 4),
    "P": ("·", 0),
    "-": (" ", 0),
}
#: Which of several states of a second is shown.
_ORDER = "BHLWFP-"
_LEGEND = "█ leading  ▅ handling  ▂ watching  ▁ following  ▓ blocked  ! rescue"
_STRIP = 30
_CARDS = {"requests": "requests", "tasks": "tasks", "messages": "messages", "runs": "handlers and tasks"}

#: What is shown of histories.
_OF_HISTORIES = ("recorded", "waiting", "given_up")
#: What is shown of the rules of bridges.
_OF_RULES = {
    "export": ("waiting", "in_flight", "sent", "stored", "dropped", "refused"),
    "import": ("lag", "in_flight", "published", "acknowledged", "dead", "refused"),
}

#: Parts of a line: a text, and the number of its colour.
Line = list[tuple[str, int]]


class Screen:
    """What events come to, as lines. They may have anything in them: `plain` is for what is shown of them."""

    def __init__(self) -> None:
        #: By thread: a letter, or "!" for a rescue, for each of the last seconds.
        self.strips: dict[int, deque[str]] = defaultdict(lambda: deque(maxlen=_STRIP))
        self.event: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> None:
        """One more second."""
        self.event = event
        for thread in event.get("threads") or ():
            looks = thread["strip"] or "-"
            letter = max(looks, key=lambda look: (look == "B", looks.count(look), -_ORDER.find(look)))
            self.strips[thread["thread"]].append("!" if thread["rescues"] else letter)

    def lines(self) -> Iterator[Line]:
        """All of it, from the top."""
        event = self.event
        if not event:
            yield [("waiting for the first report", 0)]
            return
        health = event["health"]
        word = "ready" if health["live"] and health["ready"] else "NOT READY"
        yield [(f"paceline {event['pool']}: ", 0), (word, 2 if word == "ready" else 4)]
        for reason in health["reasons"]:
            yield [(f"  {reason}", 4)]
        yield []
        yield [(_LEGEND, 0)]
        for thread in event.get("threads") or ():
            yield self._thread(thread)
        yield []
        yield from _figures(event["figures"])
        for bridge in event.get("bridges") or ():
            yield from _bridge(bridge)
        for history in event.get("histories") or ():
            reason = history["reason"]
            told = ", ".join(
                f"{count(history[name])} {name.replace('_', ' ')}" for name in _OF_HISTORIES
            )
            yield [
                (f"history {history['pattern']} ", 0),
                (f"NOT WRITTEN: {reason}" if reason else "written", 4 if reason else 2),
                (f"  {told}", 0),
            ]
        for error in event["errors"]["errors"]:
            when = str(error.get("time"))[11:19]
            yield [(f"{when} {error.get('level')} {error.get('event')}: {error.get('message')}", 4)]

    def _thread(self, thread: dict[str, Any]) -> Line:
        number, state = thread["thread"], thread["state"]
        line: Line = [(f"{number:3} ", 0)]
        strip = self.strips[number]
        line.append((" " * (_STRIP - len(strip)), 0))
        for letter in strip:
            line.append(("!", 4) if letter == "!" else _SIGNS.get(letter, (" ", 0)))
        runs = f": {thread['running']}" if thread["running"] else ""
        lasts = f" for {time(thread['seconds'])}" if state == "blocked" else ""
        line.append((f" {state}{lasts}{runs}", 4 if state == "blocked" else 0))
        return line


def _figures(figures: dict[str, Any]) -> Iterator[Line]:
    for name, title in _CARDS.items():
        card = figures["cards"].get(name)
        if card:
            times = f"  p50 {time(card['p50'])}  p99 {time(card['p99'])}"
            yield [(f"{count(card['rate']):>8}/s {title}{times if card['p99'] is not None else ''}", 0)]
    process = figures["process"]
    memory = (process["memory"] or 0) / (1 << 20)
    yield [
        (
            f"{process['cpu'] * 100:7.0f} % CPU  {memory:.1f} MiB  {count(process['descriptors'] or 0)} descriptors",
            0,
        )
    ]
    for waiting in figures["waiting"]:
        yield [(f"{count(waiting['count']):>8} wait: {waiting['kind']} {waiting['name']}", 3)]


def _bridge(bridge: dict[str, Any]) -> Iterator[Line]:
    connected = bridge["connected"]
    state = f"connected to {bridge['server']}" if connected else "NOT CONNECTED"
    reason = f": {bridge['reason']}" if bridge["reason"] else ""
    again = max(0, bridge["connects"] - 1)
    yield [
        (f"bridge {bridge['name']} ", 0),
        (f"{state}{reason}", 2 if connected and not reason else 4),
        (f"  {count(again)} reconnects, {count(bridge['lost'])} lost", 0),
    ]
    for kind, names in _OF_RULES.items():
        for rule in bridge[f"{kind}s"]:
            told = ", ".join(f"{count(rule[name])} {name.replace('_', ' ')}" for name in names)
            yield [(f"  {kind} {rule['pattern']}: {told}", 0)]


def plain(text: str) -> str:
    """Without what would move the cursor or change colours: names may contain anything."""
    return "".join("�" if unicodedata.category(each)[0] == "C" else each for each in text)


def time(seconds: Optional[float]) -> str:
    """For people."""
    if seconds is None:
        return "-"
    for unit, name in ((1, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def count(number: float) -> str:
    """For people."""
    for unit, name in ((1e6, " M"), (1e4, " k")):
        if number >= unit:
            return f"{number / (1e3 if name == ' k' else 1e6):.3g}{name}"
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


class Replaced(ValueError):
    """To come back by itself would send another viewer away."""


def events(url: str, token: Optional[str]) -> Iterator[dict[str, Any]]:
    """What the endpoint tells, for as long as it does. Raises OSError, ValueError."""
    try:
        request = urllib.request.Request(url.rstrip("/") + "/events")
        if token:
            # Only the endpoint gets it, and not where it may redirect to.
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            for line in answer:
                if line == b"event: replaced\n":
                    raise Replaced("a newer viewer has this one's place")
                if line.startswith(b"data: "):
                    yield json.loads(line[len(b"data: ") :])
    except urllib.error.HTTPError as error:
        # A refusal says why.
        raise OSError(f"{error}: {error.read(1000).decode(errors='replace').strip()}") from error
    except http.client.HTTPException as error:
        raise ValueError(f"it does not answer as an HTTP server: {error!r}") from error


class Feed(threading.Thread):
    """Reads events, and again when the connection has ended."""

    def __init__(self, url: str, token: Optional[str]) -> None:
        super().__init__(name="paceline-top", daemon=True)
        self._url, self._token = url, token
        self.told: queue.Queue[Any] = queue.Queue(64)
        self._ended = threading.Event()

    def run(self) -> None:
        """An event, or a text that says what is wrong."""
        while not self._ended.wait(0):
            try:
                for event in events(self._url, self._token):
                    self.told.put(event)
                self.told.put("the connection has ended; trying again")
            except Replaced as error:
                self.told.put(str(error))
                break
            except (OSError, ValueError) as error:
                self.told.put(f"not connected: {error}; trying again")
            self._ended.wait(2)

    def end(self) -> None:
        """No more is read."""
        self._ended.set()


def _watch(window: Any, feed: Feed) -> None:
    """In a terminal, until ``q``."""
    import curses

    attributes = [0] * 5
    if curses.has_colors():
        curses.use_default_colors()
        for number, colour in enumerate(
            (curses.COLOR_BLUE, curses.COLOR_GREEN, curses.COLOR_MAGENTA, curses.COLOR_RED), 1
        ):
            curses.init_pair(number, colour, -1)
            attributes[number] = curses.color_pair(number)
    window.timeout(100)
    screen, paused, problem = Screen(), False, ""
    while (key := window.getch()) != ord("q"):
        paused ^= key == ord("p")
        try:
            told = feed.told.get_nowait()
        except queue.Empty:
            if key < 0:
                continue
        else:
            problem = told if isinstance(told, str) else ""
            if not problem and not paused:
                screen.take(told)
        window.erase()
        height, width = window.getmaxyx()
        top: list[Line] = [[("paused; p goes on  ", 3)]] if paused else []
        lines = top + ([[(problem, 4)]] if problem else []) + list(screen.lines())
        for row, line in enumerate(lines[: height - 1]):
            column = 0
            for text, colour in line:
                room = width - 1 - column
                if room <= 0:
                    break
                window.addnstr(row, column, plain(text), room, attributes[colour])
                column += len(text)
        window.refresh()


def main(arguments: Optional[list[str]] = None) -> int:
    """The command. Its status: 0, or 1 if the endpoint cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m paceline.top", description=__doc__)
    parser.add_argument("url", help="of the endpoint: http://127.0.0.1:9090")
    parser.add_argument("--once", action="store_true", help="print one report and end")
    given = parser.parse_args(arguments)
    token = os.environ.get("PACELINE_OPS_TOKEN")
    if given.once or not sys.stdout.isatty():
        return _print_one(given.url, token)
    import curses

    feed = Feed(given.url, token)
    feed.start()
    try:
        curses.wrapper(_watch, feed)
    except KeyboardInterrupt:
        pass
    finally:
        feed.end()
    return 0


def _print_one(url: str, token: Optional[str]) -> int:
    screen = Screen()
    try:
        for event in events(url, token):
            screen.take(event)
            break
    except (OSError, ValueError) as error:
        print(f"paceline.top: {url}: {plain(str(error))}", file=sys.stderr)
        return 1
    for line in screen.lines():
        print(plain("".join(text for text, _ in line).rstrip()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
