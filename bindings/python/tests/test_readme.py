"""The README's blocks of Python print what the README says, and the examples run."""

from __future__ import annotations

import ast
import re
import unittest
from pathlib import Path

from support import Case, run

PROJECT = Path(__file__).resolve().parents[1]
EXAMPLES = PROJECT.parents[1] / "examples" / "python"

BLOCKS = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", re.DOTALL)

#: What each example prints; the table of readings is long enough to be wrong in.
PRINTED = {
    "hello": "a task says 42\n"
    "ten tasks say [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]\n"
    "a timer says that 20 ms have passed: True\n"
    "the books balance: True\n",
    "echo": "1000 requests over 20 connections were echoed\n",
    "worker": "status       tasks\n"
    "COMPLETED       95\n"
    "FAILED           4\n"
    "TIMED_OUT        1\n"
    "the squares add up to 312524\n"
    "4 failed, because there is no such number\n"
    "attempts that were followed by another: 93\n"
    "the periodic task ran at least 3 times\n"
    "clean-up: the backend is told goodbye\n"
    "drained: True, stuck: 0\n"
    "the books balance: True\n",
    "hub": "hot: 24\n"
    "sum: 19048\n"
    "broken: ['temperature.cellar', 'temperature.roof'] last: ValueError('no temperature')\n"
    "adds: 2000 = 2000 delivered + 0 dead letters\n"
    "checks: 2000 = 1998 delivered + 2 dead letters\n"
    "checks was restarted 0 times\n"
    "slow lost some: True\n"
    "the books balance: True\n",
    "ring": "station  readings  lowest    mean highest\n"
    "harbour     10000     8.0    14.0    20.0\n"
    "airport     10000     5.0    11.0    17.0\n"
    "summit      10000    -9.0    -3.0     3.0\n",
}


class Readme(Case):
    def test_blocks_print_what_is_shown(self) -> None:
        text = (PROJECT / "README.md").read_text(encoding="utf-8")
        blocks = BLOCKS.findall(text)
        self.assertEqual(len(blocks), text.count("```python\n"))
        for source, printed in blocks:
            told = run(source)
            self.assertEqual((told.stdout, told.stderr), (printed, ""), source)

    def test_errors_are_what_the_table_says(self) -> None:
        import builtins
        import queue

        import paceline

        text = (PROJECT / "README.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`[\w.]+`(?:, `[\w.]+`)*) \|", text, re.M)
        self.assertEqual(len(rows), 9)
        for ours, theirs in rows:
            for name, other in zip(ours.split(", "), theirs.split(", ")):
                kind = getattr(paceline, name.strip("`"))
                other = other.strip("`")
                base = getattr(queue, other[6:]) if "." in other else getattr(builtins, other)
                self.assertTrue(issubclass(kind, base) and issubclass(kind, paceline.Error), name)


class Examples(Case):
    def setUp(self) -> None:
        super().setUp()
        if not EXAMPLES.exists():
            self.skipTest("skipped, because the examples lie outside this package")

    def example(self, name: str) -> str:
        told = run((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        return told.stdout

    def test_what_they_print(self) -> None:
        for name, printed in PRINTED.items():
            self.assertEqual(self.example(name), printed, name)

    def test_hub_history(self) -> None:
        first, *others = self.example("hub_history").splitlines()
        self.assertIn(first, ("archives: yes", "archives: not in this library"))
        self.assertEqual(
            others,
            [
                "replayed: order 1, order 2, order 3, order 4",
                "the last two: order 3, order 4",
                "recorded: True",
            ],
        )

    def test_embed(self) -> None:
        printed = self.example("embed")
        expected = ["a message: from the host", "a task says 42", "tick 1", "tick 2", "tick 3"]
        *lines, last = printed.splitlines()
        self.assertEqual(sorted(lines), sorted(expected))
        self.assertEqual(last, "over after 3 ticks and 1 message")

    def test_all_are_tested_and_as_old_as_they_may_be(self) -> None:
        names = {path.stem for path in EXAMPLES.glob("*.py")}
        # Those that serve are in test_examples.py, but for that of the README, which the newcomer's test runs.
        others = {"embed", "hub_history", "observe"}
        servers = {"readme", "http", "chat", "proxy"}
        # They are compared with those in other languages.
        compared = {"service", "roles", "turns", "orders", "tcp"}
        self.assertEqual(names, {*PRINTED, *others, *servers, *compared})
        for path in (*EXAMPLES.glob("*.py"), *PROJECT.glob("src/paceline/*.py")):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
