"""What runs around the attempts of a worker pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ._attempt import Attempt
from ._contain import report


class Middleware:
    """Something that runs around each attempt of every task of a worker pool, on the attempt's own thread
    and within its time, by several threads at once (on that of the event loop for coroutines): for tracing, limits of one's own, or looking at
    failures. Derive from it what you need.

        first.before, second.before, the function, second.on_error, second.after, first.on_error, first.after
    """

    def before(self, attempt: Attempt) -> None:
        """Before the function. What it raises refuses the attempt, which fails as if the function had
        raised that."""

    def after(self, attempt: Attempt) -> None:
        """After the function, if ``before`` let the attempt pass, whatever came of it."""

    def on_error(self, attempt: Attempt, exception: BaseException) -> None:
        """Before ``after``, if the attempt has failed: by the function, or because another middleware,
        between this one and the function, has refused it."""


#: Raises what interrupts, on a thread of the user's.
LetOut = Callable[[BaseException], None]


def through(
    layers: tuple[Middleware, ...], attempt: Attempt, call: Callable[[], Any], let_out: LetOut
) -> Any:
    """``call()``, and what is around it. What ``after`` and ``on_error`` raise is logged."""
    if not layers:
        return call()
    outer, inner = layers[0], layers[1:]
    outer.before(attempt)
    try:
        value = through(inner, attempt, call, let_out)
    except BaseException as exception:
        _contain(let_out, outer.on_error, attempt, exception)
        _contain(let_out, outer.after, attempt)
        raise
    _contain(let_out, outer.after, attempt)
    return value


async def through_coroutine(
    layers: tuple[Middleware, ...],
    attempt: Attempt,
    call: Callable[[], Awaitable[Any]],
    let_out: LetOut,
) -> Any:
    """The same for a coroutine, which is awaited."""
    if not layers:
        return await call()
    outer, inner = layers[0], layers[1:]
    outer.before(attempt)
    try:
        value = await through_coroutine(inner, attempt, call, let_out)
    except BaseException as exception:
        _contain(let_out, outer.on_error, attempt, exception)
        _contain(let_out, outer.after, attempt)
        raise
    _contain(let_out, outer.after, attempt)
    return value


def _contain(let_out: LetOut, call: Callable[..., object], *args: object) -> None:
    try:
        call(*args)
    except BaseException as raised:
        let_out(raised)
        report("%s has failed", call, raised=raised)
