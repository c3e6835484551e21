"""What type checkers, editors and frameworks see of the package."""

from __future__ import annotations

import ast
import inspect
import typing
import unittest
from collections.abc import Iterator
from typing import Any

import paceline
from support import PACKAGE, Case

#: Modules that are generated, and not public.
GENERATED = ("_layout.py", "_signatures.py")


def own_function(found: Any) -> Any:
    """The function behind a member of a class; None: it has none of this package's."""
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if isinstance(found, property):
        found = found.fget
    is_own = inspect.isfunction(found) and found.__module__.startswith("paceline")
    return found if is_own else None


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, and every method and property of those that are classes."""
    for name in sorted([*paceline._PLACES, "ops.serve"]):
        found: Any = paceline
        for part in name.split("."):
            found = getattr(found, part)
        if inspect.isfunction(found):
            yield name, found
        if inspect.isclass(found):
            yield name, found
            for member in dir(found):
                if member.startswith("_") and not member.startswith("__"):
                    continue
                own = own_function(inspect.getattr_static(found, member))
                if own is not None:
                    yield f"{name}.{member}", own


class Hints(Case):
    def test_the_hints_of_every_public_name_can_be_had(self) -> None:
        failed = []
        for name, found in public():
            try:
                typing.get_type_hints(found)
            except Exception as raised:
                failed.append(f"{name}: {raised!r}")
        self.assertEqual(failed, [])
        self.assertGreater(len(list(public())), 500)

    def test_hints_are_what_the_oldest_python_has(self) -> None:
        """Goal: Python 3.9 can evaluate them; it has no `X | Y` for types."""
        found = []
        for path in sorted(PACKAGE.glob("*.py")):
            if path.name in GENERATED:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                hints = [getattr(node, name, None) for name in ("annotation", "returns")]
                for hint in filter(None, hints):
                    if any(isinstance(each, ast.BitOr) for each in ast.walk(hint)):
                        found.append(f"{path.name}:{hint.lineno}: {ast.unparse(hint)}")
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
