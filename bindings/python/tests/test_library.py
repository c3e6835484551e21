"""A library that is missing, of another version, or something else: said with every path tried."""

from __future__ import annotations

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

    def test_the_right_one(self) -> None:
        self.assertEqual(paceline.library_version[:2], (0, 1))
        self.assertTrue(paceline.library_path)


if __name__ == "__main__":
    unittest.main()
