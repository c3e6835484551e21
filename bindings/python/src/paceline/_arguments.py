"""Arguments are looked at where they come in, so that what is wrong has its own name.

Of the wrong type: TypeError. Out of range: InvalidError. Both say "name is value; allowed: what is".
"""

from __future__ import annotations

import inspect
import operator
import os
import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Optional, TypeVar, Union

from ._errors import InvalidError

T = TypeVar("T")

#: What bytes may be given as. They come back as ``bytes``.
BytesLike = Union[bytes, bytearray, memoryview]

#: The longest time that is taken: 95 years.
MOST_SECONDS = 3e9


def short(value: object) -> str:
    """A value in an error, cut off if it is long."""
    try:
        return reprlib.repr(value)
    except ValueError:
        # Python makes no text of whole numbers of thousands of digits.
        return f"an {type(value).__name__} of thousands of digits"


def wrong(name: str, value: object, allowed: str) -> TypeError:
    """What is raised for a value of the wrong type."""
    return TypeError(f"{name} is {short(value)}; allowed: {allowed}")


def text(name: str, value: str) -> bytes:
    """Text for C, which would take what is before a NUL."""
    if not isinstance(value, str):
        raise wrong(name, value, "text")
    if "\0" in value:
        raise InvalidError(f"{name} is {value!r}; allowed: text without NUL")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidError(f"{name} is {value!r}; allowed: text that can be UTF-8") from None


def some_text(name: str, value: Optional[str]) -> Optional[bytes]:
    """The same, or None."""
    return None if value is None else text(name, value)


def path(name: str, value: Union[str, bytes, os.PathLike[str]]) -> bytes:
    """A path of a file."""
    try:
        encoded = os.fsencode(value)
    except TypeError:
        raise wrong(name, value, "a path") from None
    if b"\0" in encoded:
        raise InvalidError(f"{name} is {value!r}; allowed: a path without NUL")
    return encoded


def data(name: str, value: BytesLike) -> bytes:
    """Bytes. Neither a number, of which ``bytes`` would make zeros, nor text is any."""
    if type(value) is bytes:
        return value
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise wrong(name, value, "bytes") from None


def items(name: str, value: Iterable[T], allowed: str) -> list[T]:
    """What is in an iterable."""
    # Text is made of text, which is hardly meant.
    if isinstance(value, (str, bytes, bytearray)):
        raise wrong(name, value, allowed)
    try:
        found = iter(value)
    except TypeError:
        raise wrong(name, value, allowed) from None
    return list(found)


def number(name: str, value: int, allowed: str = "a whole number") -> int:
    """A whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise wrong(name, value, allowed) from None


def within(name: str, value: int, least: int, most: int) -> int:
    """A whole number in a range."""
    whole = number(name, value)
    if not least <= whole <= most:
        raise InvalidError(f"{name} is {short(whole)}; allowed: {least} to {most}")
    return whole


def whole(name: str, value: int, bits: int = 32) -> int:
    """A whole number that C has room for."""
    own = number(name, value)
    if not 0 <= own < 1 << bits:
        raise InvalidError(f"{name} is {short(own)}; allowed: a whole number from 0 to 2**{bits} - 1")
    return own


def real(name: str, value: float, allowed: str = "a number") -> float:
    """A number."""
    # Text with digits in it is none.
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            raise InvalidError(f"{name} is {short(value)}; allowed: {allowed}") from None
    raise wrong(name, value, allowed)


def finite(name: str, value: float) -> float:
    """A number that is neither endless nor none."""
    own = real(name, value)
    if not abs(own) < float("inf"):
        raise InvalidError(f"{name} is {own}; allowed: a finite number")
    return own


def seconds(name: str, value: float, least: float = 0, most: float = MOST_SECONDS) -> float:
    """A time."""
    own = real(name, value, "seconds")
    if not least <= own <= most:
        raise InvalidError(f"{name} is {own}; allowed: {least:g} to {most:g} seconds")
    return own


def nanos(name: str, value: float, least: float = 0) -> int:
    """A time as C wants it."""
    return int(seconds(name, value, least) * 1e9)


def patience(name: str, value: Optional[float]) -> Optional[float]:
    """How long somebody waits, in seconds: None is for ever, less than nothing is nothing, and more than
    ``MOST_SECONDS``, which no wait of the system's could take, is so many."""
    if value is None:
        return value
    own = (
        value
        if type(value) is float or type(value) is int
        else real(name, value, "seconds, or None for ever")
    )
    if own != own:
        raise InvalidError(f"{name} is {value}; allowed: seconds, or None for ever")
    return max(0, min(own, MOST_SECONDS))


def function(name: str, value: Any) -> Any:
    """Something to call."""
    if not callable(value):
        raise wrong(name, value, "something to call")
    return value


def plain(name: str, value: Any) -> Any:
    """Something that runs when it is called. A call of a coroutine function, or of a generator function, only makes
    an object, and where this is used nobody would run that."""
    function(name, value)
    inner = value.__func__ if isinstance(value, staticmethod) else value
    # A class is called itself.
    called = None if isinstance(value, type) else getattr(type(value), "__call__", None)
    for each in (inner, called):
        if (
            inspect.iscoroutinefunction(each)
            or inspect.isgeneratorfunction(each)
            or inspect.isasyncgenfunction(each)
        ):
            allowed = "no coroutine or generator function, as nobody would run what it makes"
            raise wrong(name, value, allowed)
    return value


def some_plain(name: str, value: Any) -> Any:
    """The same, or None."""
    return None if value is None else plain(name, value)


def some_function(name: str, value: Any) -> Any:
    """The same, or None."""
    return None if value is None else function(name, value)


def is_coroutine_function(value: Any) -> bool:
    """Whether a call gives a coroutine: of an ``async def``, or of an object whose ``__call__`` is one."""
    return any(map(inspect.iscoroutinefunction, (value, getattr(type(value), "__call__", None))))


def defined_again(old: Any, new: Any) -> bool:
    """Whether a function takes the place of another in its module, as in a notebook's cell that is run again. One that a
    call of another function has made does not."""
    places = []
    for each in (old, new):
        inner = getattr(each, "__func__", each)
        of = inner if hasattr(inner, "__qualname__") else type(inner)
        places.append((getattr(of, "__module__", None), of.__qualname__))
    return places[0] == places[1] and "<locals>" not in places[0][1]


def keywords(owner: Any, given: Iterable[str], *settings: Any) -> None:
    """Names of settings that a class or function takes beside its own keywords: those of TypedDicts. Raises TypeError, which
    names the nearest one that there is."""
    known = {name for each in settings for name in each.__optional_keys__}
    for name in given:
        if name not in known:
            own = inspect.signature(owner).parameters.values()
            all = sorted({*known, *(each.name for each in own if each.kind is each.KEYWORD_ONLY)})
            near = get_close_matches(name, all, 1)
            where = owner.__qualname__
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(all)}"
            raise TypeError(f"{where} has no setting {name!r}: {hint}")


def instance(name: str, value: T, kind: type[Any], allowed: str = "") -> T:
    """An object of a class of paceline's."""
    if not isinstance(value, kind):
        raise wrong(name, value, allowed or f"a paceline.{kind.__name__}")
    return value


def one_of(name: str, choice: str, choices: Mapping[str, int]) -> int:
    """The number of a choice that is made by its name."""
    found = choices.get(choice) if isinstance(choice, str) else None
    if found is not None:
        return found
    allowed = ", ".join(map(repr, choices))
    if not isinstance(choice, str):
        raise wrong(name, choice, allowed)
    raise InvalidError(f"{name} is {choice!r}; allowed: {allowed}")
