"""Files of settings, and the environment over them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any, Callable, Union

from ._arguments import items, path
from ._library import check

Path = Union[str, bytes, "os.PathLike[str]"]


class Files:
    """Where settings come from."""

    def __init__(self, *files: Path, environment: bool = False) -> None:
        #: The files, of which later ones win.
        self.files = tuple(path("files", each) for each in files)
        #: Whether variables win over them.
        self.environment = bool(environment)


#: What ``settings`` may be.
Given = Union[Files, Path, Iterable[Path], None]


def load(
    config: ctypes.Structure, call: Callable[[Any, Any, bool], int], settings: Given, environment: bool
) -> None:
    """Changes what C reads to what files and the environment say. Raises InvalidError."""
    if isinstance(settings, Files):
        files, environment = list(settings.files), environment or settings.environment
    elif settings is None:
        files = []
    elif isinstance(settings, (str, bytes, os.PathLike)):
        files = [path("settings", settings)]
    else:
        several = items("settings", settings, "a path, several, or Settings")
        files = [path("settings", each) for each in several]
    for each in files:
        check(call(ctypes.byref(config), each, False))
    if environment:
        check(call(ctypes.byref(config), None, True))
