"""What runs around the attempts of a worker pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._attempt import Attempt, here
from ._contain import report


class Middleware:
    """Something that runs around each attempt of every task of a worker pool, on the attempt's own thread
    and within its time, by several threads at once: for tracing, limits of one's own, or looking at
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


def through(layers: tuple[Middleware, ...], attempt: Attempt, call: Callable[[], Any]) -> Any:
    """``call()``, and what is around it. What ``after`` and ``on_error`` raise is logged."""
    if not layers:
        return call()
    outer, inner = layers[0], layers[1:]
    outer.before(attempt)
    try:
        value = through(inner, attempt, call)
    except BaseException as exception:
        _contain(outer.on_error, attempt, exception)
        _contain(outer.after, attempt)
        raise
    _contain(outer.after, attempt)
    return value


def _contain(call: Callable[..., object], *args: object) -> None:
    try:
        call(*args)
    except BaseException as raised:
        here.hand.let_out(raised)
        report("%s has failed", call, raised=raised)
