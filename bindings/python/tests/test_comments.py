"""What an editor shows of a public name says more than the name does."""

from __future__ import annotations

import ast
import inspect
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

import paceline

#: A comment says at least as many words.
FEWEST = 5


def is_short(comment: str) -> bool:
    return sum(any(map(str.isalnum, word)) for word in comment.split()) < FEWEST


def commented(lines: list[str], node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The attributes of a class that have a comment above them, and this."""
    for child in node.body:
        if isinstance(child, (ast.Assign, ast.AnnAssign)):
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            row = child.lineno - 1
            above = row
            while lines[above - 1].strip().startswith("#:"):
                above -= 1
            if above < row and isinstance(target, ast.Name):
                yield target.id, " ".join(line.strip()[2:] for line in lines[above:row])


def comments() -> Iterator[tuple[str, str]]:
    """The comments of all public names: of what the package exports, its methods and its attributes."""
    exported = [getattr(paceline, name) for name in paceline.__all__]
    modules = {inspect.getsourcefile(each) for each in exported if hasattr(each, "__qualname__")}
    names = {each.__name__ for each in exported if hasattr(each, "__qualname__")}
    for path in sorted(filter(None, modules)):
        text = Path(path).read_text()
        for node in ast.parse(text).body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name not in names:
                continue
            yield node.name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                members = [(name, comment) for name, comment in commented(text.splitlines(), node)]
                for child in node.body:
                    if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        documented = ast.get_docstring(child)
                        members += [(child.name, documented)] if documented else []
                for name, comment in members:
                    if not re.match("_", name):
                        yield f"{node.name}.{name}", comment


class Comments(unittest.TestCase):
    def test_they_are_sentences(self) -> None:
        found = list(comments())
        self.assertGreater(len(found), 600)
        short = [f"{name}: {comment}" for name, comment in found if is_short(comment)]
        self.assertEqual(short, [], "\n".join(short))


if __name__ == "__main__":
    unittest.main()
