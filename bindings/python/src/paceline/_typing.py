"""Types for the parameters of functions, and what takes their place when a Python that has none evaluates a hint."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")
#: What a call gives. Of a coroutine function that is its coroutine, whose result is T.
R = TypeVar("R")

if TYPE_CHECKING:
    from typing import Generic as Generic

    from typing_extensions import Concatenate as Concatenate
    from typing_extensions import ParamSpec
    from typing_extensions import Unpack as Unpack

    P = ParamSpec("P")
    Q = ParamSpec("Q")
else:

    class _Anything:
        def __class_getitem__(cls, item: Any) -> Any:
            return Any

    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        Unpack = _Anything

    if sys.version_info >= (3, 10):
        from typing import Concatenate, Generic, ParamSpec

        P = ParamSpec("P")
        Q = ParamSpec("Q")
    else:
        Concatenate = _Anything

        class Generic:
            __slots__ = ()

            def __class_getitem__(cls, item: Any) -> Any:
                return cls

        class _Parameters(list):
            """In the place of the list in Callable[[…], …]."""

            args = kwargs = Any

        P = Q = _Parameters()
