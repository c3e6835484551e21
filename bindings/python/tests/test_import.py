"""``import paceline`` loads nothing but the package; what defines a name is loaded when the name is first used."""

from __future__ import annotations

import ast
import unittest

import paceline
from support import PACKAGE, Case, run

LOADED = """
    import sys
    before = set(sys.modules)
    import paceline
    print(*sorted(set(sys.modules) - before))
"""

EACH_FIRST = """
    import os, paceline, traceback
    for module in sorted(paceline._NAMES):
        child = os.fork()
        if child == 0:
            try:
                getattr(paceline, paceline._NAMES[module][0])
            except BaseException:
                print(module, traceback.format_exc(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
"""


class Import(Case):
    def test_the_package_alone_is_loaded(self) -> None:
        told = run(LOADED)
        self.assertEqual((told.stdout, told.stderr), ("paceline\n", ""))

    def test_any_module_can_be_the_first(self) -> None:
        """Goal: no order of first uses fails on modules that import each other. Method: each in a process of its own."""
        told = run(EACH_FIRST)
        self.assertEqual((told.returncode, told.stdout, told.stderr), (0, "", ""))

    def test_every_name_is_there(self) -> None:
        for name in paceline.__all__:
            self.assertIsNotNone(getattr(paceline, name), name)
        self.assertLess(set(paceline.__all__), set(dir(paceline)))

    def test_a_name_that_does_not_exist_is_told(self) -> None:
        with self.assertRaisesRegex(AttributeError, "module 'paceline' has no attribute 'Poool'"):
            getattr(paceline, "Poool")

    def test_editors_are_told_the_same_names(self) -> None:
        stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        told = {name.asname: (node.module, name.name) for node in imports for name in node.names}
        modules = tuple(name for name, (module, _) in told.items() if module is None)
        self.assertEqual(modules, paceline._MODULES)
        named = {name: place for name, place in told.items() if name not in modules}
        self.assertEqual(named, paceline._PLACES)


if __name__ == "__main__":
    unittest.main()
