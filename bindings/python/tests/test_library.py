"""A library that is missing, of another version, or something else: said with every path tried."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
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

    def test_importing_starts_no_program(self) -> None:
        """Goal: an installed package is imported where there is no compiler and no folder that can be written. Method: the
        library lies beside the package, and nothing can be started, or made by ``tempfile``."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(PACKAGE, Path(folder) / "paceline")
            Path(folder, "paceline", "libpaceline.so").symlink_to(paceline.library_path)
            told = run(f"""
                import os, subprocess, sys, tempfile
                def refuse(*_, **__): raise FileNotFoundError("nothing is there")
                subprocess.Popen = os.posix_spawn = os.fork = tempfile._get_default_tempdir = refuse
                del os.environ["PACELINE_LIBRARY"]
                sys.path.insert(0, {folder!r})
                import paceline
                print(paceline.library_path)
            """)
        self.assertEqual(told.stdout, f"{folder}/paceline/libpaceline.so\n", told.stderr)

    def test_an_older_python_is_told_what_is_needed(self) -> None:
        told = run("""
            import sys
            sys.version_info = (3, 8, 18)
            try:
                import paceline
            except ImportError as error:
                print(error)
        """)
        expected = "paceline needs Python 3.9 or later, and this is Python 3.8.18\n"
        self.assertEqual((told.stdout, told.stderr), (expected, ""))

    @unittest.skipIf(importlib.util.find_spec("hatchling") is None, "hatchling is not installed")
    def test_a_wheel_brings_its_licences(self) -> None:
        """Method: cargo is a program that gives this library, and tells of two crates."""
        with tempfile.TemporaryDirectory() as folder:
            cargo = Path(folder, "cargo")
            cargo.write_text(
                "#!/bin/sh\n"
                f"mkdir -p {folder}/target/shipped\n"
                f'test "$1" = tree || cp {paceline.library_path} {folder}/target/shipped/\n'
                'test "$1" = tree && printf "own v0.1.0 (/here): MIT\\nzed v1: Zlib\\nacme v2: MIT\\nacme v2: MIT\\n"\n'
                "exit 0\n"
            )
            cargo.chmod(0o755)
            environment = {**os.environ, "CARGO_TARGET_DIR": f"{folder}/target"}
            environment["PATH"] = f"{folder}:{environment['PATH']}"
            command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", folder]
            root = Path(__file__).resolve().parents[1]
            subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.PIPE)
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as file:
                found = {
                    Path(name).name: file.read(name).decode()
                    for name in file.namelist()
                    if "dist-info/licenses/" in name
                }
        self.assertEqual(set(found), {"LICENSE-MIT", "LICENSE-APACHE", "CRATES.txt"})
        self.assertEqual(found["LICENSE-MIT"], (HEADERS.parents[1] / "LICENSE-MIT").read_text())
        self.assertEqual(found["CRATES.txt"].splitlines()[2:], ["acme v2: MIT", "zed v1: Zlib"])

    def test_the_right_one(self) -> None:
        self.assertEqual(paceline.library_version[:2], (0, 1))
        self.assertTrue(paceline.library_path)


if __name__ == "__main__":
    unittest.main()
