"""Files of settings, and the environment over them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any, Callable, Union

from ._arguments import items, path
from ._library import check

Path = Union[str, bytes, os.PathLike[str]]


class Files:
    """Where settings come from."""

    def __init__(self, *files: Path, environment: bool = False) -> None:
        #: The files, of which later ones win.
        self.files = tuple(path("files", each) for each in files)
        #: Whether variables win over them.
        self.environment = bool(environment)


#: What ``settings`` may be.
Given = Union[Files, Path, Iterable[Path], None]


def files_of(settings: Given) -> list[bytes]:
    """Their paths. Raises InvalidError, TypeError."""
    if isinstance(settings, Files):
        return list(settings.files)
    if settings is None:
        return []
    if isinstance(settings, (str, bytes, os.PathLike)):
        return [path("settings", settings)]
    several = items("settings", settings, "a path, several, or Settings")
    return [path("settings", each) for each in several]


def load(
    config: ctypes.Structure, call: Callable[[Any, Any, bool], int], settings: Given, environment: bool
) -> None:
    """Changes what C reads to what files and the environment say. Raises InvalidError."""
    for each in files_of(settings):
        check(call(ctypes.byref(config), each, False))
    if environment or (isinstance(settings, Files) and settings.environment):
        check(call(ctypes.byref(config), None, True))
