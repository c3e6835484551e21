"""What the tests share."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import subprocess
import sys
import textwrap
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import paceline

PACKAGE = Path(paceline.__file__).resolve().parent

#: After so many seconds a test that hangs tells where and ends the process.
HANG = 300


class Case(unittest.TestCase):
    """A test that cannot hang."""

    def setUp(self) -> None:
        faulthandler.dump_traceback_later(HANG, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def switch_often(self) -> None:
        """Lets threads change places as often as the interpreter can, until the test ends."""
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)

    def until_collected(self, condition: Callable[[], object]) -> None:
        """Waits for what comes when garbage has been collected: again and again, as a thread that is just done with an
        object has it in its frame still."""
        self.until(lambda: gc.collect() is not None and condition())

    def until(self, holds: Callable[[], object], seconds: float = 120) -> None:
        """Waits until ``holds()``; fails if it does not in that time."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                self.fail("it did not come about")
            time.sleep(0.001)


@contextmanager
def told() -> Iterator[list[str]]:
    """What the package's log is told meanwhile: "LEVEL text"."""
    texts: list[str] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(f"{record.levelname} {record.getMessage()}")

    handler, log = Keeps(), logging.getLogger("paceline")
    before, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield texts
    finally:
        log.removeHandler(handler)
        log.propagate = before


def unrun_apart(text: str) -> str:
    """The same without the lines about tasks that were accepted and left."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "had not begun when it was left open" not in line)


def run(script: str, *options: str, timeout: float = HANG) -> subprocess.CompletedProcess[str]:
    """Runs a script in an interpreter of its own, which finds this package and this library."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    environment["PACELINE_LIBRARY"] = paceline.library_path
    # Cargo sets it for tests, and the system's search would find the library by it.
    environment.pop("LD_LIBRARY_PATH", None)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *options, "-c", textwrap.dedent(script)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=timeout,
    )
