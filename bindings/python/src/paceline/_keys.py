"""Numbers for the keys of tasks: equal keys have the same one, unequal keys never, as long as they are in use.

The native side tells keys apart by a number. Python's hash is one that unequal keys may share (-1 and -2 do), so it
is only the first that is tried. A key is in use while somebody holds its Key: the options of a submission, which
their waiting and running tasks hold.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Hashable
from typing import Optional

_NUMBERS = 1 << 64


class Key:
    """A key in use."""

    __slots__ = ("key", "number", "__weakref__")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.number = 0


_Row = tuple["weakref.ref[Key]", ...]


class Keys:
    """All that are in use. Any thread. Keys are compared without a lock, as their code is the user's."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: By hash.
        self._found: dict[int, _Row] = {}
        self._numbers: dict[int, weakref.ref[Key]] = {}
        #: Those that are no more, with their hashes and numbers. A collection may add some at any place.
        self._ended: deque[tuple[int, int, weakref.ref[Key]]] = deque()

    def renew(self) -> None:
        """In a child made by fork."""
        self._lock = threading.RLock()

    def of(self, key: Hashable) -> Key:
        """The Key of all that equal it. Raises what its ``__hash__`` or ``__eq__`` raises."""
        own = hash(key)
        while True:
            row = self._found.get(own, ())
            known = _equal(key, row)
            if known is not None:
                return known
            with self._lock:
                if self._found.get(own, ()) is row:
                    return self._add(key, own, row)
            # Another thread was quicker, perhaps with an equal one.

    def _add(self, key: Hashable, own: int, row: _Row) -> Key:
        self._sweep()
        made = Key(key)
        number = own % _NUMBERS
        ended = self._ended
        where = weakref.ref(made, lambda gone: ended.append((own, number, gone)))
        while self._numbers.setdefault(number, where) is not where:
            number = (number + 1) % _NUMBERS
        made.number = number
        self._found[own] = (*self._found.get(own, ()), where)
        return made

    def _sweep(self) -> None:
        while self._ended:
            own, number, gone = self._ended.popleft()
            self._numbers.pop(number, None)
            rest = tuple(each for each in self._found.get(own, ()) if each is not gone)
            if rest:
                self._found[own] = rest
            else:
                self._found.pop(own, None)


def _equal(key: Hashable, row: _Row) -> Optional[Key]:
    for each in row:
        known = each()
        if known is not None and (known.key is key or known.key == key):
            return known
    return None


#: Of this process.
keys = Keys()
os.register_at_fork(after_in_child=keys.renew)
