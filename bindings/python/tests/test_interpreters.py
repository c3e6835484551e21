"""Interpreters that are not the usual one: subinterpreters are refused, free-threaded ones are served."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
import unittest

import paceline
from support import PACKAGE, Case, run

SUBINTERPRETERS = r"""
    try:
        import _interpreters as interpreters
        kinds = [("legacy",), ("isolated",)]
    except ImportError:
        import _xxsubinterpreters as interpreters
        kinds = [()]
    script = "import paceline\ntry: paceline.Pool\nexcept ImportError as error: print(error, flush=True)"
    for kind in kinds:
        made = interpreters.create(*kind)
        told = interpreters.run_string(made, script)
        if told is not None:
            print(told)
        interpreters.destroy(made)
    print("and in the main one:")
    import paceline
    with paceline.Pool(1) as pool:
        print(pool.submit(pow, 2, 10).result())
"""

FREE_THREADED = """
    import sys, threading
    import paceline
    with paceline.Executor(4) as executor, paceline.Pool(4) as pool:
        hub = paceline.Hub(pool)
        seen, all_seen = [], threading.Event()
        def see(message):
            seen.append(message.payload)
            if len(seen) == 1000:
                all_seen.set()
        hub.subscribe("a", see)
        futures = [executor.submit(pow, each, 2) for each in range(1000)]
        for each in range(1000):
            hub.publish("a", b"%d" % each)
        print(sum(each.result() for each in futures), all_seen.wait(120), len(set(seen)))
    print(sys._is_gil_enabled())
"""


class Interpreters(Case):
    def test_subinterpreters_are_refused(self) -> None:
        told = run(SUBINTERPRETERS)
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        refused, _, accepted = told.stdout.partition("and in the main one:\n")
        error = "paceline does not run in a subinterpreter: use it in the main interpreter of a process"
        self.assertEqual((set(refused.splitlines()), accepted), ({error}, "1024\n"))

    def test_free_threaded_interpreters_are_served(self) -> None:
        found = [name for name in ("python3.13t", "python3.14t") if shutil.which(name)]
        if not found:
            self.skipTest("skipped, because there is no free-threaded Python")
        environment = {
            **os.environ,
            "PYTHONPATH": str(PACKAGE.parent),
            "PACELINE_LIBRARY": paceline.library_path,
        }
        for name in found:
            told = subprocess.run(
                [name, "-c", textwrap.dedent(FREE_THREADED)],
                env=environment,
                capture_output=True,
                text=True,
            )
            self.assertEqual((told.stdout, told.stderr), ("332833500 True 1000\nFalse\n", ""), name)


if __name__ == "__main__":
    unittest.main()
