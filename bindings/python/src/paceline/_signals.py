"""Signals of the process, for servers and worker pools that are to end gracefully.

They are the interpreter's own, and not read from a descriptor, as ``CompletionQueue.signals`` and the other languages have
it: for that every thread of the process must block them. Threads that other packages have started do not, and would have
the process ended; and children that ``subprocess`` starts would have them blocked, and not end by SIGTERM.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any, Optional

from ._arguments import items, number, patience, some_plain
from ._clock import monotonic
from ._contain import report
from ._errors import InvalidError

#: No signal: nothing more is to be told.
_END = 0

#: How long a wait stays away from Python's signal handlers at most. Seconds.
_SLICE = 0.1


class Signals:
    """Waits for SIGTERM and SIGINT, or ``signals``, so that a program can end by itself:

        with paceline.Signals() as signals:
            signals.wait()
        print(workers.shutdown(drain=10))

    ``on_signal(number)`` is called with each that comes, on a thread of its own, so it may shut down what
    it likes; what it raises is logged. Made in the main thread (RuntimeError elsewhere). ``close``, or the
    end of ``with``, puts the handlers that were there before back, and waits for ``on_signal`` if that runs.
    """

    def __init__(
        self,
        signals: Iterable[int] = (signal.SIGTERM, signal.SIGINT),
        on_signal: Optional[Callable[[int], object]] = None,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Signals are for the main thread: Python tells no other of them")
        some_plain("on_signal", on_signal)
        wanted = [
            number("signals", each) for each in items("signals", signals, "an iterable of numbers")
        ]
        # Handlers may come in the middle of anything: these queues may be entered again.
        self._arrived: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._to_tell: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._tells = on_signal is not None
        self._before: dict[int, Any] = {}
        self._teller: Optional[threading.Thread] = None
        each = None
        try:
            for each in wanted:
                self._before[each] = signal.signal(each, self._handle)
        except (OSError, ValueError) as refused:
            self.close()
            raise InvalidError(f"signals has {each!r}; allowed: one that can be handled") from refused
        if not self._before:
            raise InvalidError("signals is empty; allowed: at least one")
        if on_signal is not None:
            told = (self._to_tell, on_signal)
            self._teller = threading.Thread(
                name="paceline_signals", target=_tell, args=told, daemon=True
            )
            self._teller.start()

    def _handle(self, number: int, _: Optional[FrameType]) -> None:
        self._arrived.put(number)
        if self._tells:
            self._to_tell.put(number)

    def wait(self, timeout: Optional[float] = None) -> Optional[int]:
        """The number of the next signal that has come and that nobody has waited for; waits up to
        ``timeout`` seconds. None: none has come. Any thread, while the main thread runs Python."""
        timeout = patience("timeout", timeout)
        end = None if timeout is None else monotonic() + timeout
        while True:
            left = _SLICE if end is None else min(_SLICE, end - monotonic())
            try:
                return self._arrived.get(timeout=max(0.0, left))
            except queue.Empty:
                if left <= 0:
                    return None

    def close(self) -> None:
        """Puts the handlers that were there before back, and waits until ``on_signal`` does not run. In the main
        thread."""
        before, self._before = self._before, {}
        for number, handler in before.items():
            # None: it was not Python's, and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._tells:
            self._tells = False
            self._to_tell.put(_END)
            if self._teller is not None and self._teller is not threading.current_thread():
                self._teller.join()

    def __enter__(self) -> Signals:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def _tell(numbers: queue.SimpleQueue[int], on_signal: Callable[[int], object]) -> None:
    while True:
        number = numbers.get()
        if number == _END:
            return
        try:
            on_signal(number)
        except BaseException as raised:
            report("what was to be told of signal %s has failed", str(number), raised=raised)
