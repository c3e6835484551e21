"""Code and objects of the user, where nothing that they do may end a thread of the package.

A handler may raise anything, and what it raises is an object of the user, too: an exception may refuse
attributes, and its ``__str__``, ``__repr__`` or ``__getattribute__`` may raise. So may a handler or a filter
of ``logging``. What is here touches such objects without letting any of that out.
"""

from __future__ import annotations

import logging
import traceback
from types import TracebackType
from typing import Optional

#: Where failures of the user's code are told. Each is told once.
log = logging.getLogger("paceline")

# Reads and writes the traceback itself, whatever the class of the exception says of its attributes.
_traceback_of = BaseException.__dict__["__traceback__"].__get__


def without_frame(exception: BaseException) -> BaseException:
    """The same exception without the outermost frame of its traceback, which is the package's own and would be
    kept alive by it."""
    trace = _traceback_of(exception)
    if trace is not None:
        BaseException.with_traceback(exception, trace.tb_next)
    return exception


def traceback_of(exception: BaseException) -> Optional[TracebackType]:
    """Its traceback, whatever its class says of its attributes."""
    trace: Optional[TracebackType] = _traceback_of(exception)
    return trace


def interrupts(exception: BaseException) -> bool:
    """Whether it is meant for the program, and not for whoever waits for a call: a thread of the user's has it."""
    return issubclass(type(exception), (KeyboardInterrupt, SystemExit))


def shown(thing: object) -> str:
    """``repr(thing)``; where that raises, the name of its type and its address."""
    # Text may be of a class of its own, whose methods are the user's, too.
    try:
        return str.__str__(repr(thing))
    except BaseException:
        return object.__repr__(thing)


def told(thing: object) -> str:
    """``str(thing)``; where that raises, the name of its type and its address."""
    try:
        return str.__str__(str(thing))
    except BaseException:
        return object.__repr__(thing)


def report(
    message: str,
    *arguments: object,
    raised: BaseException | None = None,
    level: int = logging.ERROR,
    logger: logging.Logger = log,
) -> None:
    """Writes to a log of ``logging``, with the traceback of ``raised``, and raises nothing. ``message`` has a
    ``%s`` for each argument; an argument that is no text is shown by its ``repr``."""
    try:
        if not logger.isEnabledFor(level):
            return
        texts = [each if type(each) is str else shown(each) for each in arguments]
        if raised is not None and not _can_be_formatted(raised):
            message += ": %s"
            texts.append(shown(raised))
            raised = None
        trace = None if raised is None else (type(raised), raised, _traceback_of(raised))
        logger.log(level, message, *texts, exc_info=trace)
    except BaseException:
        # A handler or a filter of the log has failed. There is no other place to tell it.
        pass


def _can_be_formatted(raised: BaseException) -> bool:
    """Whether ``logging`` can write its traceback. Else it would print an error of its own instead."""
    try:
        traceback.format_exception(type(raised), raised, _traceback_of(raised))
    except BaseException:
        return False
    return True
