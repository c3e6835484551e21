"""Code and objects of a user that misbehave, and where the package takes such: found by inspection."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import re
import sys
import textwrap
import threading
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

import paceline

# --- what is raised and returned -----------------------------------------------------------------------------


class Ordinary(Exception):
    """What well-meant code raises."""


@dataclass(frozen=True)
class Frozen(Exception):
    """Refuses attributes, ``__traceback__`` among them."""

    text: str


class Unshowable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise Ordinary("no text")

    __repr__ = __str__


class Base(BaseException):
    """Is no ``Exception``."""


class Dying(Exception):
    """Raises when it is collected."""

    def __del__(self) -> None:
        raise Ordinary("no end")


class Opaque(Exception):
    """Has no attributes at all."""

    def __getattribute__(self, name: str) -> Any:
        raise Ordinary("no attribute")


class Untrue(Exception):
    """Is neither true nor false, and equal or unequal to nothing."""

    def __bool__(self) -> bool:
        raise Ordinary("no truth")

    def __eq__(self, other: object) -> bool:
        raise Ordinary("no equal")

    def __hash__(self) -> int:
        raise Ordinary("no hash")


_DUNDERS = [
    f"__{word}__"
    for word in """
    abs add aenter aexit aiter and anext await bool bytes call ceil complex contains del delattr delitem dir
    divmod enter eq exit float floor floordiv format fspath ge getattr getitem gt hash iadd index int invert iter
    le len length_hint lt mod mul ne neg next or pos pow radd rand repr reversed round set_name setitem str sub
    truediv trunc xor reduce_ex sizeof
""".split()
]


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise Ordinary(f"no {name}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


class Falsy(Exception):
    """Is as false as an empty list."""

    def __len__(self) -> int:
        return 0


#: Each of its special methods raises.
Hostile: type[Any] = type("Hostile", (), {name: _refusing(name) for name in _DUNDERS})
#: And it has no attributes, its class included.
Closed: type[Any] = type("Closed", (Hostile,), {"__getattribute__": _refusing("__getattribute__")})

RAISED: tuple[type[BaseException], ...] = (
    Ordinary,
    Frozen,
    Unshowable,
    Untrue,
    Falsy,
    Dying,
    Opaque,
    StopIteration,
    Base,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    IndexError,
    KeyError,
    paceline.StaleError,
    paceline.ShutDownError,
    paceline.ForkedError,
    paceline.Full,
    paceline.Empty,
    paceline.TimeoutError,
)
RETURNED: tuple[type[Any], ...] = (Hostile, Closed)
#: How a user's code misbehaves, by name.
WAYS: dict[str, Any] = {
    **{f"raises {kind.__name__}": kind for kind in RAISED},
    **{f"returns {kind.__name__}": kind for kind in RETURNED},
}
assert len(WAYS) == len(RAISED) + len(RETURNED), "names are unique"


class Act:
    """What a user's code does where it is called: one of the ways, or, without, what it should. It keeps nothing
    of what it has raised or returned."""

    def __init__(self, kind: Optional[type[Any]] = None) -> None:
        self.raises = kind if kind in RAISED else None
        self.returns = kind if kind in RETURNED else None
        self.called = threading.Event()
        #: One for each call.
        self.calls: list[None] = []

    @property
    def well(self) -> bool:
        """It does what it should."""
        return self.raises is None and self.returns is None

    def __call__(self, good: Any = None) -> Any:
        self.calls.append(None)
        self.called.set()
        if self.raises is not None:
            raise self.raises("on purpose")
        return good if self.returns is None else self.returns()

    def thing(self, good: Any = None) -> Any:
        """The same as an object: nothing is raised."""
        kind = self.raises
        return self(good) if kind is None else kind("on purpose")


#: What a call needs, and what the interpreter itself asks of it.
_OF_CODE = (
    "__call__",
    "__getattr__",
    "__setattr__",
    "__setitem__",
    "__set_name__",
    "__get__",
    "__del__",
)


_Useless: type[Any] = type(
    "_Useless", (), {name: _refusing(name) for name in _DUNDERS if name not in _OF_CODE}
)


class Code(_Useless):  # type: ignore[misc]
    """A function of the user as an object, which is good for nothing but being called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class Items:
    """An iterator of one item, whose code is the user's."""

    def __init__(self, act: Act, good: Any) -> None:
        self._act, self._good, self._over = act, good, False

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        self._over = True
        return self._act(self._good)


class Fields(typing.Mapping[str, str]):
    """A mapping whose items are the user's code's."""

    def __init__(self, act: Act, **good: str) -> None:
        self._act, self._good = act, good

    def __getitem__(self, name: str) -> str:
        return self._good[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._good)

    def __len__(self) -> int:
        return len(self._good)

    def items(self) -> Any:
        return self._act(self._good.items())


class Number:
    """A whole number that a user's code gives."""

    def __init__(self, act: Act, good: int) -> None:
        self._act, self._good = act, good

    def __index__(self) -> int:
        return int(self._act(self._good))


class Path:
    """A path that a user's code gives."""

    def __init__(self, act: Act, good: str) -> None:
        self._act, self._good = act, good

    def __fspath__(self) -> str:
        result: str = self._act(self._good)
        return result


class Socket:
    """Something with a descriptor that a user's code gives."""

    def __init__(self, act: Act, good: int) -> None:
        self._act, self._good = act, good

    def fileno(self) -> int:
        result: int = self._act(self._good)
        return result


class Key:
    """A key that collides with all others of its kind, and is equal as the user's code says."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        result: bool = self._act(self is other)
        return result


# --- where the package takes them ---------------------------------------------------------------------------

#: Annotations by which code of the user comes in.
_TAKEN = frozenset(
    """Any AsyncIterable AsyncIterator Awaitable BaseException Buffer Callable Coroutine Exception Generator
    Hashable Iterable Iterator Mapping P PathLike Sequence Unpack object""".split()
)
_WORD = re.compile(r"[A-Za-z_]\w*")


def _public() -> dict[str, Any]:
    return {name: getattr(paceline, name) for name in paceline.__all__}


@functools.lru_cache(None)
def _named(word: str) -> Any:
    """What a name means in the package: some are known to the type checker only where they are used, and are Any there."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("paceline.")]
    found = [vars(module)[word] for module in modules if word in vars(module)]
    return next((each for each in found if each is not Any), None)


def _methods(kind: type[Any]) -> Iterator[tuple[str, type[Any], Callable[..., Any]]]:
    """Name, owner and function of what a class of the package offers."""
    for name in dir(kind):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        owner = next((each for each in kind.__mro__ if name in vars(each)), object)
        member = vars(owner).get(name)
        member = getattr(member, "__func__", member)
        if owner.__module__.startswith("paceline") and inspect.isfunction(member):
            yield name, owner, member


def _does_nothing(function: Callable[..., Any]) -> bool:
    """Its body is a description, or says that it is for others to write."""
    try:
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return False
    body = [
        each
        for each in tree.body
        if not isinstance(each, ast.Pass)
        and not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    return not body or isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.dump(body[0])


def _is_protocol(thing: Any) -> bool:
    return bool(getattr(thing, "_is_protocol", False))


@functools.lru_cache(None)
def _is_for_users_to_write(kind: Any) -> bool:
    return any(_does_nothing(each) for name, _, each in _methods(kind) if not name.startswith("__"))


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else repr(annotation)


def _takes(annotation: str, depth: int = 0) -> bool:
    """Whether code of the user comes in by it."""
    for word in set(_WORD.findall(annotation)):
        if word in _TAKEN:
            return True
        thing = _named(word)
        if isinstance(thing, typing.TypeVar) or _is_protocol(thing):
            return True
        if typing.get_origin(thing) is not None:
            # It is an alias.
            if depth < 4 and _takes(repr(thing), depth + 1):
                return True
        elif inspect.isclass(thing) and thing.__module__.startswith("paceline"):
            if _is_for_users_to_write(thing):
                return True
    return False


def _is_internal(annotation: str) -> bool:
    """Whether no user has such a thing."""
    public = list(_public().values())
    words = set(_WORD.findall(annotation))
    kinds = [thing for thing in map(_named, words) if inspect.isclass(thing)]
    own = [kind for kind in kinds if kind.__module__.startswith("paceline") and not _is_protocol(kind)]
    return "ctypes" in words or any(kind not in public for kind in own)


def _places_of(name: str, function: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    required = [
        _text(each.annotation)
        for each in own
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    if name.endswith(".__init__") and any(map(_is_internal, required)):
        # The package makes these itself.
        return
    for each in own:
        if _takes(_text(each.annotation)):
            yield f"{name}:{each.name}"
    if "Callable" in _text(signature.return_annotation):
        yield f"{name}()"


def places() -> set[str]:
    """Where code of the user comes in: "Pool.submit:fn" is a parameter, "Http.get()" what is returned and called
    with it, "Middleware.before" a method that the user writes."""
    found: set[str] = set()
    for name, thing in _public().items():
        if not inspect.isclass(thing):
            if inspect.isfunction(thing):
                found.update(_places_of(name, thing))
            continue
        written = _is_for_users_to_write(thing)
        for method, owner, function in _methods(thing):
            if owner is not thing and owner in _public().values():
                # It is found there.
                continue
            if not written:
                found.update(_places_of(f"{name}.{method}", function))
            elif not (_is_protocol(thing) and method == "__init__"):
                found.add(f"{name}.{method}")
    return found
