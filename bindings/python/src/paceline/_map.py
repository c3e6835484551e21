"""One job with many items: what ``map`` makes instead of a future for each.

Threads take items from one deque, so a slow item holds nobody up, and store each result in its place.
The consumer goes through the places in order and sleeps only at one that is still empty.

    thread:   results[i] = value          consumer:  awaited = i
              awaited == i? release                  results[i] empty? acquire

Each side writes first and then looks at what the other writes, so one of them sees the other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Optional

from ._clock import monotonic
from ._contain import without_frame
from ._runner import COMPLETED, FAILED, STARTED
from ._future import Raised

_EMPTY: Any = object()


class Job:
    """Calls ``function`` with each of ``items``."""

    def __init__(self, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]) -> None:
        self._function = function
        self._items = deque(enumerate(items))
        self.size = len(self._items)
        self._results: list[Any] = [_EMPTY] * self.size
        self._awaited = -1
        self._arrived = threading.Lock()
        self._arrived.acquire()

    def waiting(self) -> int:
        """How many items nobody has taken."""
        return len(self._items)

    def run(self, books: list[int]) -> None:
        """Works items off until there are none. Several threads at once."""
        function, results, popleft = self._function, self._results, self._items.popleft
        while True:
            try:
                place, arguments = popleft()
            except IndexError:
                return
            books[STARTED] += 1
            try:
                results[place] = function(*arguments)
            except BaseException as exception:
                results[place] = Raised(without_frame(exception))
                books[FAILED] += 1
            else:
                books[COMPLETED] += 1
            del arguments
            if self._awaited == place:
                self._wake()

    def sweep(self, exception: Optional[BaseException] = None, _: object = None) -> int:
        """Cancels what nobody has taken yet, or fails it; says how many."""
        swept = 0
        while True:
            try:
                place, _ = self._items.popleft()
            except IndexError:
                return swept
            swept += 1
            self._results[place] = Raised(CancelledError() if exception is None else exception)
            if self._awaited == place:
                self._wake()

    def _wake(self) -> None:
        # Two may find the same place awaited, one of them late.
        try:
            self._arrived.release()
        except RuntimeError:
            pass

    def results(self, timeout: Optional[float], abandoned: Callable[[int], None]) -> Iterator[Any]:
        """The results in order. Left early, it cancels what has not begun and says how many."""
        end = None if timeout is None else timeout + monotonic()
        return self._iterate(end, abandoned)

    def _iterate(self, end: Optional[float], abandoned: Callable[[int], None]) -> Iterator[Any]:
        try:
            for place in range(self.size):
                if self._results[place] is _EMPTY:
                    self._await(place, end)
                # The caller gets the only reference.
                result, self._results[place] = self._results[place], None
                if type(result) is Raised:
                    try:
                        raise result.exception
                    finally:
                        # The exception's traceback holds this frame.
                        del result
                holder = [result]
                del result
                yield holder.pop()
        finally:
            abandoned(self.sweep())

    def _await(self, place: int, end: Optional[float]) -> None:
        self._awaited = place
        while self._results[place] is _EMPTY:
            if end is None:
                self._arrived.acquire()
                continue
            left = end - monotonic()
            if left <= 0 or not self._arrived.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
                if self._results[place] is _EMPTY and end <= monotonic():
                    raise FutureTimeoutError
