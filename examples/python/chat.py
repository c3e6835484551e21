"""A line chat: what one says, all others read: what examples/chat does, in Python.

    python examples/python/chat.py --listen 127.0.0.1:7000
    nc 127.0.0.1 7000        # as often as you like

A slow reader harms nobody: above the high mark of its output it misses lines, and when it has read
down to the low mark it is told how many.

feature: server/handlers
"""

from __future__ import annotations

import argparse
import signal
import threading
from typing import Optional

import paceline
from paceline import Conn, ConnHandler, Listen, Pool, Reason, Server, WriteStatus

#: Bytes of a line, and characters of a name.
LINE, NAME = 1024, 32
#: Marks of a connection's output: a slow reader misses lines above the second, and none below the first.
MARKS = (16 << 10, 64 << 10, 128 << 10)


class Room:
    """Who is there. A line is written to everybody under the lock, so all read one order; that holds
    nobody up, since no write waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.present: dict[str, Guest] = {}
        self.joined = self.lines = self.missed = 0

    def enter(self, guest: Guest, name: str, conn: Conn) -> bool:
        with self.lock:
            if name in self.present:
                return False
            self.joined += 1
            self.tell_others(name, f"* {name} has joined\n")
            self.present[name] = guest
            tell(conn, f"* welcome, {name}\n")
            return True

    def leave(self, name: str) -> None:
        with self.lock:
            del self.present[name]
            self.tell_others(name, f"* {name} has left\n")

    def say(self, name: str, line: str) -> None:
        with self.lock:
            self.lines += 1
            self.tell_others(name, f"{name}: {line}\n")

    def catch_up(self, guest: Guest) -> int:
        """Its output has room again: how many lines it has missed."""
        with self.lock:
            missed, guest.missed, guest.behind = guest.missed, 0, False
            return missed

    def tell_others(self, author: str, line: str) -> None:
        for name, guest in self.present.items():
            if name == author:
                continue
            if guest.behind:
                guest.missed += 1
                self.missed += 1
            else:
                guest.behind = tell(guest.conn, line) is WriteStatus.ABOVE_HIGH_MARK


class Guest(ConnHandler):
    """A connection."""

    room: Room

    def __init__(self, conn: Conn) -> None:
        self.conn = conn
        #: None before it has told one that nobody has.
        self.name: Optional[str] = None
        #: Its output was above the high mark at the last line, and what it has missed since.
        self.behind = False
        self.missed = 0

    def open(self, conn: Conn) -> None:
        tell(conn, "* your name?\n")

    def data(self, conn: Conn, data: bytes) -> int:
        start = 0
        while True:
            end = data.find(b"\n", start)
            last = None
            if max(end, len(data) if end < 0 else end) - start > LINE:
                last = "* too long a line\n"
            elif end < 0:
                return start
            else:
                last = self.line(conn, printable(data[start:end]))
            if last is not None:
                tell(conn, last)
                conn.close()
                return len(data)
            start = end + 1

    def line(self, conn: Conn, line: str) -> Optional[str]:
        """What is said last, if this ends it."""
        if line == "/quit":
            return "* bye\n"
        if self.name is not None:
            self.room.say(self.name, line)
        elif not 1 <= len(line) <= NAME:
            tell(conn, f"* a name has 1 to {NAME} characters; yours?\n")
        elif self.room.enter(self, line, conn):
            self.name = line
        else:
            tell(conn, "* somebody has that name; yours?\n")
        return None

    def writable(self, conn: Conn) -> None:
        missed = self.room.catch_up(self)
        if missed:
            tell(conn, f"* you have missed {missed} lines\n")

    def draining(self, conn: Conn) -> None:
        tell(conn, "* the chat closes\n")

    def close(self, conn: Conn, reason: Reason, detail: int) -> None:
        if self.name is not None:
            self.room.leave(self.name)


def tell(conn: Conn, line: str) -> Optional[WriteStatus]:
    """A write fails if the connection is about to close, or so full that it is to miss things anyway."""
    try:
        return conn.write(line.encode())
    except (paceline.StaleError, paceline.Full):
        return None


def printable(line: bytes) -> str:
    """No line may play tricks on the others' terminals."""
    return "".join(each for each in line.decode(errors="replace") if each.isprintable())


def main() -> None:
    parser = argparse.ArgumentParser(description="A line chat: what one says, all others read.")
    parser.add_argument("--listen", required=True, help="where: 127.0.0.1:7000, *:7000, unix:/run/chat")
    options = parser.parse_args()
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    signal.signal(signal.SIGTERM, lambda *_: interrupted.set())
    room = Guest.room = Room()
    with Pool(1) as pool:
        with Server(pool, Listen(options.listen, output_marks=MARKS), Guest) as server:
            print("listening on", server.addresses[0], flush=True)
            interrupted.wait()
            server.drain(5)
    print(f"{room.joined} joined and said {room.lines} lines; slow readers missed {room.missed}")


if __name__ == "__main__":
    main()
