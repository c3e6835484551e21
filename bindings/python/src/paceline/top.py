"""``python -m paceline.top URL``: the live page of an operations endpoint, in a terminal.

It shows what the page shows: who leads, who handles what, what is held up, tables and the last 15 minutes. Keys: the
arrows, page up and down, home and end scroll; ``s`` sorts the tables by their next column, ``r`` the other way round;
``p`` pauses, ``q`` ends it. The endpoint's token is read from the variable ``PACELINE_OPS_TOKEN``. With ``--once``, or without a terminal, one report is
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
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from time import localtime, strftime
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
#: Threads that have a line, if there are more.
_ROWS = 8
_FREE = ("following", "set aside", "away", "watching")
_BARS = "▁▂▃▄▅▆▇█"
#: Samples of a curve that are one bar.
_SAMPLES = 3
_CARDS = {
    "requests": "requests",
    "tasks": "tasks",
    "messages": "messages",
    "runs": "handlers and tasks",
    "timers": "timers, late by",
}

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
        self.curves: dict[str, Any] = {}
        #: What the tables are sorted by: the number of a column, from 0 for the name; and whether the other way round.
        self.column, self.upward = 1, False

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
        if event.get("summary"):
            yield [(event["summary"], 0)]
        for reason in health["reasons"][:_ROWS]:
            yield [(f"  {reason}", 4)]
        if len(health["reasons"]) > _ROWS:
            yield [(f"  and {len(health['reasons']) - _ROWS} more", 4)]
        yield []
        yield [(_LEGEND, 0)]
        yield from self._threads(event.get("threads") or ())
        yield []
        yield from _figures(event["figures"])
        yield from self._curves()
        for table in event["figures"].get("tables") or ():
            yield from self._table(table)
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
            when, times = str(error.get("time"))[11:19], error.get("times", 1)
            more = f", {times} times" if times > 1 else ""
            yield [
                (f"{when} {error.get('level')} {error.get('event')}: {error.get('message')}{more}", 4)
            ]

    def _threads(self, threads: Sequence[dict[str, Any]]) -> Iterator[Line]:
        """Blocked ones first. Of many, those that are free are one line."""

        def rank(thread: dict[str, Any]) -> tuple[float, bool]:
            state = thread["state"]
            blocked = thread["seconds"] if state == "blocked" else 0.0
            return -blocked, len(threads) > _ROWS and state in _FREE

        ranked = sorted(threads, key=rank)
        shown = _ROWS if len(threads) > _ROWS else len(threads)
        for thread in ranked[:shown]:
            yield self._thread(thread)
        states = Counter(thread["state"] for thread in ranked[shown:])
        if states:
            told = ", ".join(f"{number} {state}" for state, number in states.most_common())
            yield [(f"    {len(threads) - shown} more threads: {told}", 0)]

    def _table(self, table: dict[str, Any]) -> Iterator[Line]:
        """Sorted by the column that was chosen; the name is cut, and figures are not."""
        columns, rows = table["columns"], list(table["rows"])
        at = self.column % (len(columns) + 1)
        if at == 0:
            rows.sort(key=lambda row: str(row["name"]), reverse=self.upward)
        else:
            is_text = columns[at - 1].get("is_text")
            none: object = "" if is_text else -1.0
            rows.sort(
                key=lambda row: none if row["cells"][at - 1] is None else row["cells"][at - 1],
                reverse=not self.upward,
            )
        mark = "^" if self.upward else "v"
        heads = [f"{each['name']}{mark if index == at else ''}" for index, each in enumerate(columns, 1)]
        yield []
        title = f"{table['name']} ({len(rows)}){mark if at == 0 else ''}"
        yield [(f"{title[:30]:30}", 1), *((f" {head:>{max(10, len(head))}}", 0) for head in heads)]
        for row in rows:
            line: Line = [(f"{str(row['name'])[:30]:30}", 0)]
            for head, column, cell in zip(heads, columns, row["cells"]):
                if column.get("is_text"):
                    line.append((f"  {cell}", 4))
                    continue
                told = "-" if cell is None else time(cell) if column["is_time"] else count(cell)
                line.append((f" {told:>{max(10, len(head))}}", 0))
            yield line
        if table["left_out"]:
            yield [(f"and {table['left_out']} more", 0)]

    def _curves(self) -> Iterator[Line]:
        """A bar for each 15 s."""
        for chart in self.curves.get("charts") or ():
            most = max((value or 0 for line in chart["lines"] for value in line["values"]), default=0)
            told = time if chart["is_time"] else count
            yield []
            yield [(f"{chart['name']}, the last 15 minutes, up to {told(most)}", 1)]
            for line in chart["lines"]:
                # From the newest on, so that a bar does not change when another comes.
                values = [value or 0 for value in reversed(line["values"])]
                tops = [max(values[at : at + _SAMPLES]) for at in range(0, len(values), _SAMPLES)]
                bars = "".join(_BARS[int(top / most * 7) if most else 0] for top in reversed(tops))
                yield [(f"{str(line['name'])[:18]:18} {bars:>60} {told(values[0])}", 2)]

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
            line: Line = [
                (f"{count(card['rate']):>8}/s {title}{times if card['p99'] is not None else ''}", 0)
            ]
            if card.get("waits_p99") is not None:
                line.append((f"  waited before: p99 {time(card['waits_p99'])}", 0))
            if card.get("failed"):
                line.append((f"  failed: {count(card['failing'])}/s, {count(card['failed'])} so far", 4))
            yield line
    process = figures["process"]
    memory = (process["memory"] or 0) / (1 << 20)
    yield [
        (
            f"{process['cpu'] * 100:7.0f} % CPU  {memory:.1f} MiB  {count(process['descriptors'] or 0)} descriptors",
            0,
        )
    ]
    if figures.get("waiting_in_all"):
        yield [(f"{count(figures['waiting_in_all']):>8} wait in all", 3)]
    for waiting in figures["waiting"]:
        line = [(f"{count(waiting['count']):>8} wait: {waiting['kind']} {waiting['name']}", 3)]
        if waiting.get("capacity") is not None:
            line.append((f", of {count(waiting['capacity'])}", 3))
        if waiting.get("oldest") is not None:
            line.append((f", the oldest for {time(waiting['oldest'])}", 3))
        if waiting.get("lost"):
            line.append((f", {count(waiting['lost'])} lost so far", 4))
        yield line


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
        with _opened(url, "/events", token) as answer:
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


def _opened(url: str, path: str, token: Optional[str]) -> Any:
    request = urllib.request.Request(url.rstrip("/") + path)
    if token:
        # Only the endpoint gets it, and not where it may redirect to.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return urllib.request.urlopen(request, timeout=30)


def curves(url: str, token: Optional[str]) -> dict[str, Any]:
    """The last 15 minutes; nothing of an endpoint that does not tell."""
    try:
        with _opened(url, "/curves.json", token) as answer:
            return dict(json.load(answer))
    except (OSError, ValueError, http.client.HTTPException):
        return {}


class Feed(threading.Thread):
    """Reads events, and again when the connection has ended."""

    def __init__(self, url: str, token: Optional[str]) -> None:
        super().__init__(name="paceline-top", daemon=True)
        self._url, self._token = url, token
        self.told: queue.Queue[Any] = queue.Queue(64)
        self.curves: dict[str, Any] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """An event, or a text that says what is wrong."""
        while not self._ended.wait(0):
            try:
                for number, event in enumerate(events(self._url, self._token)):
                    if number % 5 == 0:
                        self.curves = curves(self._url, self._token)
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
    window.keypad(True)
    screen, paused, problem, first, seen = Screen(), False, "", 0, ""
    while (key := window.getch()) != ord("q"):
        paused ^= key == ord("p")
        screen.column += key == ord("s")
        screen.upward ^= key == ord("r")
        page = max(1, window.getmaxyx()[0] - 2)
        steps = {curses.KEY_DOWN: 1, curses.KEY_UP: -1, curses.KEY_NPAGE: page, curses.KEY_PPAGE: -page}
        steps.update({curses.KEY_HOME: -first, curses.KEY_END: 1 << 30})
        first += steps.get(key, 0)
        try:
            told = feed.told.get_nowait()
        except queue.Empty:
            if key < 0:
                continue
        else:
            problem = told if isinstance(told, str) else ""
            if not problem and not paused:
                screen.take(told)
                screen.curves = feed.curves
                seen = strftime("%H:%M:%S")
        window.erase()
        height, width = window.getmaxyx()
        top: list[Line] = [[(f"paused; p goes on; last seen {seen}", 3)]] if paused else []
        if problem:
            top.append([(f"{problem}; last seen {seen}" if seen else problem, 4)])
        lines = list(screen.lines())
        room = max(1, height - 1 - len(top))
        first = max(0, min(first, len(lines) - room))
        # Figures of the past are dim.
        dim = curses.A_DIM if top else 0
        shown = [(line, 0) for line in top] + [(line, dim) for line in lines[first : first + room]]
        for row, (line, dimmed) in enumerate(shown[: height - 1]):
            column = 0
            for text, colour in line:
                room = width - 1 - column
                if room <= 0:
                    break
                window.addnstr(row, column, plain(text), room, attributes[colour] | dimmed)
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
            # Rates of a moment say little.
            if event.get("seconds", 1) < 0.5:
                continue
            screen.take(event)
            screen.curves = curves(url, token)
            break
    except (OSError, ValueError) as error:
        print(f"paceline.top: {url}: {plain(str(error))}", file=sys.stderr)
        return 1
    for line in screen.lines():
        print(plain("".join(text for text, _ in line).rstrip()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
