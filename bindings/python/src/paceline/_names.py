"""What threads of Python run, by the names that Python has for it, for an operations endpoint.

The native pool sees that a thread of Python handles what it was brought, and not which function that is. To say so for
each call would cost more than a tenth of a short task. So a thread looks, as long as there is an endpoint, which function
each thread is in, and names that natively: it is found by the frames of the thread, and handlers pay nothing for it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any, Optional

from . import _lifetime
from ._contain import report
from ._library import quick

#: Between two looks, in seconds: an endpoint calls a thread blocked after half a second, unless it was told otherwise.
_PERIOD = 0.2

#: Whose functions are no handlers: ours, and those of the event loop that calls them.
_OURS, _LOOP = (os.path.dirname(file) + os.sep for file in (__file__, asyncio.__file__))


def _name(code: CodeType) -> str:
    # Python 3.9 and 3.10 know a code by its plain name only.
    return str(getattr(code, "co_qualname", code.co_name))


def running(frame: Optional[FrameType]) -> Optional[str]:
    """The function of the user's that our code has called in the thread whose innermost frame this is. None: there is none,
    or it is written in C."""
    found = called = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OURS):
            # A handler may have called us, and we another function: the outermost one is the handler.
            found, called = called or found, None
        elif not file.startswith(_LOOP):
            called = frame.f_code
        frame = frame.f_back
    return None if found is None else _name(found)


class Namer:
    """Names what threads handle until it ends, or the native pool does."""

    def __init__(self, native: Any) -> None:
        self._native = weakref.ref(native)
        self._over = threading.Event()
        self._thread = threading.Thread(name="paceline_names", target=self._run)
        _lifetime.check_threads()
        if _lifetime.enlist(self):
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._over.wait(_PERIOD) and self._look():
                pass
        except BaseException as raised:
            report("what threads run has no names any more", raised=raised)

    def _look(self) -> bool:
        """False: the pool has been freed."""
        native = self._native()
        if native is None:
            return False
        frames = sys._current_frames()
        for thread in threading.enumerate():
            name, number = running(frames.get(thread.ident or 0)), thread.native_id
            if name is not None and number is not None:
                # It fails if the thread is no host of this pool, or has ended what it did.
                quick.pace_pool_name_host(native.pointer, number, name.encode("utf-8", "replace"))
        return True

    def exit(self) -> None:
        self._over.set()

    def join(self) -> None:
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def forked(self) -> None:
        self._over.set()
