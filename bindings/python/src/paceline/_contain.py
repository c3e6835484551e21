"""Code and objects of the user, where nothing that they do may end a thread of the package.

A handler may raise anything, and what it raises is an object of the user, too: an exception may refuse
attributes, and its ``__str__``, ``__repr__`` or ``__getattribute__`` may raise. So may a handler or a filter
of ``logging``. What is here touches such objects without letting any of that out.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Optional

from ._clock import monotonic

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
    raised: Optional[BaseException] = None,
    level: int = logging.ERROR,
    logger: logging.Logger = log,
) -> None:
    """Writes to a log of ``logging``, with the traceback of ``raised``, and raises nothing. ``message`` has a
    ``%s`` for each argument; an argument that is no text is shown by its ``repr``."""
    keep(message, *arguments, raised=raised, level=level)
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


def keep(
    message: str, *arguments: object, raised: Optional[BaseException] = None, level: int = logging.ERROR
) -> None:
    """Has it among the last faults of the process, which operations endpoints show, and counted. Raises nothing."""
    if level < logging.WARNING:
        return
    try:
        from ._library import quick

        what = message % tuple(each if type(each) is str else shown(each) for each in arguments)
        if raised is not None:
            what += f": {shown(raised)}"
        what = what.replace("\0", "\N{REPLACEMENT CHARACTER}")
        quick.pace_note_fault(what.encode("utf-8", "replace"), level >= logging.ERROR)
    except BaseException:
        # There is no other place to tell it.
        pass


class Failures:
    """Reports what may fail by the thousand: of each cause at most one a second, with how many there were since the last.
    Several threads may use it."""

    #: Seconds between two reports of a cause, and how many causes are told apart.
    _PAUSE, _MOST = 1.0, 64

    def __init__(self) -> None:
        # A handler of a signal may come back here.
        self._lock = threading.RLock()
        #: By cause: when it was reported, how many there were since, what they are, and what keeps the cause's ids.
        self._causes: dict[Any, list[Any]] = {}

    def report(self, message: str, *arguments: object, raised: BaseException, level: int) -> None:
        """As the function ``report``."""
        cause, kept = _cause_of(raised)
        with self._lock:
            row = self._causes.get((level, *cause))
            now, more = monotonic(), 0
            if row is not None:
                if now - row[0] < self._PAUSE:
                    row[1] += 1
                    keep(message, *arguments, raised=raised, level=level)
                    return
                more = row[1]
            elif len(self._causes) >= self._MOST:
                self.end()
            self._causes[(level, *cause)] = [now, 0, (message, arguments, level), kept]
        message += f" [{more} more of this kind since the last line]" if more else ""
        report(message, *arguments, raised=raised, level=level)

    def end(self) -> None:
        """Reports how many there were since the last."""
        with self._lock:
            rows, self._causes = list(self._causes.values()), {}
        for _, more, (message, arguments, level), _ in rows:
            if more:
                report(f"{message} [{more} more of this kind]", *arguments, level=level)


def _cause_of(raised: BaseException) -> tuple[tuple[int, ...], object]:
    """What equal failures share: their type, and the place that has raised them; and what is to be kept for its ids to
    stay its own."""
    trace = _traceback_of(raised)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind, code = type(raised), None if trace is None else trace.tb_frame.f_code
    return (id(kind), id(code), 0 if trace is None else trace.tb_lineno), (kind, code)


def tell_unrun(count: int, what: str, name: str) -> None:
    """Tasks were accepted by what was left open, to the interpreter's end or by everybody."""
    tasks = f"{count} of the tasks"
    ending = "had not begun when it was left open, and will not run: end it by `with` or `shutdown`"
    report(f"{tasks} of the {what} %s {ending}", name, level=logging.WARNING)


def _can_be_formatted(raised: BaseException) -> bool:
    """Whether ``logging`` can write its traceback. Else it would print an error of its own instead."""
    try:
        traceback.format_exception(type(raised), raised, _traceback_of(raised))
    except BaseException:
        return False
    return True


def failure_of(raised: BaseException) -> str:
    """The name of its type and what it says, as "KeyError: 'x'"."""
    name: str = _name_of(type(raised))
    # What is derived from ``str`` may do anything when it is used.
    return f"{name}: {str.__str__(told(raised))}"


# Reads the name, whatever the metaclass says of it.
_name_of = type.__dict__["__name__"].__get__

#: What is not for the package to keep, on a thread of the user's: the program is to end.
LEAVING = (KeyboardInterrupt, SystemExit)


class CalledBack:
    """A native call that calls Python back on the thread that has made it: a context around it.

    No exception can pass native code. What a function of ``guarded`` raises is therefore kept, none of them is
    called any more, and the exception is raised when the native call has returned. On the main thread a handler
    of a signal may raise at the very beginning of such a function, which no ``try`` inside of it is around. ctypes
    gives that exception to ``sys.unraisablehook``, and it is taken from there.
    """

    def __init__(self) -> None:
        self.raised: Optional[BaseException] = None
        #: As ``raised``, but other functions are called still.
        self.left: Optional[BaseException] = None
        self._outer: Callable[[], Optional[CalledBack]] = _nothing

    def keep(self, raised: BaseException) -> None:
        """Raises it at the end. The first counts."""
        if self.raised is None:
            self.raised = raised

    def leave(self, raised: BaseException) -> None:
        """The same for what has been dealt with otherwise: other functions are called still."""
        if self.left is None:
            self.left = raised

    def guarded(self, function: Callable[..., Any], instead: Any = None) -> Callable[..., Any]:
        """The same function for native code; ``instead`` is what it returns when it has raised, and after that."""
        return guarded(function, instead, self)

    def __enter__(self) -> CalledBack:
        # Weakly: one whose end was interrupted is not found any more.
        self._outer, _here.calls = _here.calls, weakref.ref(self)
        if (
            threading.current_thread() is threading.main_thread()
            and sys.unraisablehook is not _unraisable
        ):
            _main.hook, sys.unraisablehook = sys.unraisablehook, _unraisable
        return self

    def __exit__(self, *_: object) -> None:
        _here.calls = self._outer
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self._outer() is None and sys.unraisablehook is _unraisable:
            sys.unraisablehook = _main.hook
        raised = self.raised or self.left
        if raised is not None:
            raise raised


def _nothing() -> Optional[CalledBack]:
    return None


class _Here(threading.local):
    """Finds the innermost native call of this thread that calls Python back; whether this thread is in the hook that was
    there before this module's."""

    calls: Callable[[], Optional[CalledBack]] = staticmethod(_nothing)
    busy = False


_here = _Here()


def here() -> Optional[CalledBack]:
    """The innermost native call of this thread that calls Python back, and has a context."""
    return _here.calls()


class _Main:
    """The hook that was there before this module's."""

    hook: Callable[[Any], object] = staticmethod(sys.unraisablehook)


_main = _Main()


def _unraisable(unraisable: Any) -> None:
    """In the place of ``sys.unraisablehook`` while the main thread is in such a call."""
    trace, calls = unraisable.exc_traceback, _here.calls()
    if calls is not None and trace is not None and trace.tb_frame.f_code is _GUARD:
        calls.keep(unraisable.exc_value)
    elif _here.busy:
        # The hook before it has called this one.
        sys.__unraisablehook__(unraisable)
    else:
        _here.busy = True
        try:
            _main.hook(unraisable)
        finally:
            _here.busy = False


def guarded(
    function: Callable[..., Any], instead: Any = None, calls: Optional[CalledBack] = None
) -> Callable[..., Any]:
    """A function that native code may call: it raises nothing. What ``function`` raises is kept by ``calls``
    (None: by the innermost of the thread; where there is none it is reported)."""

    def guard(*arguments: Any) -> Any:
        try:
            kept = calls or _here.calls()
            if kept is not None and kept.raised is not None:
                return instead
            return function(*arguments)
        except BaseException as raised:
            kept = calls or _here.calls()
            if kept is None:
                report("a function that the library has called has failed", raised=raised)
            else:
                kept.keep(raised)
            return instead

    return guard


#: By its code a traceback tells that an exception has left such a function.
_GUARD = guarded(id).__code__
