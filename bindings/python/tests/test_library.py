"""A library that is missing, of another version, or something else: said with every path tried."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import paceline
from support import PACKAGE, Case, run

IMPORT = """
    import os
    os.environ["PACELINE_LIBRARY"] = {path!r}
    if not os.environ["PACELINE_LIBRARY"]:
        del os.environ["PACELINE_LIBRARY"]
    try:
        from paceline import library_version
    except ImportError as error:
        print(error)
"""

WRONG_VERSION = "unsigned pace_version(void) { return 9u << 16 | 8u << 8 | 7u; }\n"
WRONG_LAYOUT = """
unsigned pace_version(void) { return 1u << 8; }
int pace_log_config_init(unsigned *size, unsigned long known) { *size = 16; return 0; }
int pace_handle_options_init(unsigned *size, unsigned long known) { *size = (unsigned)known; return 0; }
"""


HEADERS = Path(__file__).resolve().parents[3] / "include" / "paceline"


class Library(Case):
    def trouble(self, path: str) -> str:
        told = run(IMPORT.format(path=path))
        self.assertEqual(told.returncode, 0, told.stderr)
        return told.stdout

    def build(self, source: str) -> str:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("skipped, because there is no C compiler")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "wrong.c"
        path.write_text(source)
        library = str(path.with_suffix(".so"))
        subprocess.run([compiler, "-shared", "-fPIC", str(path), "-o", library], check=True)
        return library

    def test_a_library_that_is_missing(self) -> None:
        told = self.trouble("/nowhere/libpaceline.so")
        self.assertIn("PACELINE_LIBRARY names no shared library that fits", told)
        self.assertIn("/nowhere/libpaceline.so: ", told)

    def test_every_path_is_told(self) -> None:
        told = self.trouble("")
        if not told:
            self.skipTest("skipped, because a library is installed")
        for path in (PACKAGE / "libpaceline.so", "libpaceline.so.0", "libpaceline.so"):
            self.assertIn(f"  {path}: ", told)

    def test_another_version(self) -> None:
        path = self.build(WRONG_VERSION)
        self.assertIn(f"{path}: version 9.8.7, but 0.1 is needed", self.trouble(path))

    def test_another_layout(self) -> None:
        path = self.build(WRONG_LAYOUT)
        self.assertIn("pace_log_config_init knows 16 bytes of a struct of", self.trouble(path))

    def test_another_library(self) -> None:
        path = self.build("int unrelated;\n")
        self.assertIn(f"{path}: not paceline: it exports no pace_version", self.trouble(path))

    def test_what_waits_lets_go_of_the_interpreter(self) -> None:
        """Goal: a function that may wait for a handler is called through ``lib``: the handler needs the interpreter's lock.
        Method: what the header says of each that is called through ``quick``."""
        said: dict[str, str] = {}
        for header in HEADERS.glob("*.h"):
            text = header.read_text(encoding="utf-8")
            for comment, name in re.findall(
                r"/\*\*((?:(?!\*/).)*)\*/\n[^;{/]*?\b(pace_\w+)\(", text, re.DOTALL
            ):
                said[name] = re.sub(r"\s*\n \*\s*", " ", comment)
        sources = (path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
        used = {name for source in sources for name in re.findall(r"\bquick\.(pace_\w+)", source)}
        self.assertGreater(len(used & said.keys()), 100)
        waits = {name for name in used if re.search(r"\bit waits\b", said.get(name, ""), re.IGNORECASE)}
        # With a time-out of 0.
        self.assertEqual(waits - {"pace_queue_push", "pace_queue_pop_batch", "pace_workers_wait"}, set())

    def test_the_right_one(self) -> None:
        self.assertEqual(paceline.library_version[:2], (0, 1))
        self.assertTrue(paceline.library_path)


if __name__ == "__main__":
    unittest.main()
