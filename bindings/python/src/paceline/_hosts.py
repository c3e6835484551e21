"""The host threads behind a Server or an Http: they take entries in batches and run their handlers.

Connections are served by the threads of the pool, which read, write and keep time without the
interpreter's lock. What happens lies in a native completion queue until a host thread takes a batch of it, runs
the handlers, and completes all of it in one call.

    pool:   read, keep time ──► queue ──► host thread: take a batch, handle, complete ──► written
                                              (two native calls, without the interpreter's lock)

What a handler raises is told once, and its connection, request or message is dealt with as one whose handler
has failed. A host thread goes on with the next event, whatever happens, and ends when all is over. Where a thread of
the user's does its work (``run``, ``attach``), KeyboardInterrupt and SystemExit are raised there after the batch.

A native object is given back when the last reference to it goes, and every thread has one: so no
thread is ever inside something that was freed. When the interpreter ends, each is told to end, and is
waited for, before anything is torn down.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from . import _layout as layout
from . import _lifetime
from ._arguments import text, within
from ._clock import monotonic
from ._contain import LEAVING, report
from ._contain import log as log
from ._errors import ForkedError, InvalidError, ShutDownError, refuse_in_loop
from ._library import SLICE as SLICE
from ._library import check, lib, nanoseconds, quick
from ._native import FOREVER, NOT_AT_ALL, NativeQueue
from ._native import Native as Native
from ._pool import Pool, members_of

#: How many events a thread takes at once. With several threads fewer, so that what one of them has
#: not handled yet does not wait while others have nothing to do.
BATCH, BATCH_OF_SEVERAL = 64, 8

#: After so many events the answers are sent.
ANSWERS = 16


def queue_of(pool: Pool) -> NativeQueue:
    """A queue where a host's threads take entries from. The threads of the pool do its work."""
    pool._runner.check_open()
    return NativeQueue(pool._runner.native.pointer, beside=True)


class Source(Native):
    """What is attached to a completion queue, which is given back after it."""

    def __init__(
        self,
        pointer: ctypes.c_void_p,
        free: Callable[[ctypes.c_void_p], object],
        queue: NativeQueue,
    ) -> None:
        super().__init__(pointer, free)
        self._queue = queue


_here = threading.local()


def hosts_here() -> Optional[Hosts]:
    """Whose host thread this is."""
    return getattr(_here, "hosts", None)


def serve_here(hosts: Optional[Hosts]) -> None:
    """From now on this is a thread of these."""
    _here.hosts = hosts


class Hosts:
    """What a server's host threads share. It knows nothing of the Server or Http before it, so that a
    lost one is collected."""

    def __init__(self, pool: Pool, name: str, threads: int) -> None:
        members_of(pool)
        text("name", name)
        threads = within("threads", threads, 0, 1000)
        # While there are threads the pool is not lost.
        self.pool = pool
        self.name = name
        self.most = threads
        self.batch = BATCH if threads <= 1 else BATCH_OF_SEVERAL
        self.threads: list[threading.Thread] = []
        #: Those that wait for something in the place of others.
        self.aside: list[threading.Thread] = []
        self.closed = False
        #: How often a host thread has met with what nothing else has contained.
        self.failures = 0
        #: Without host threads: what ends the program, to be raised by ``turn``.
        self.leaving: Optional[BaseException] = None
        self.mine: Any = None
        #: The asyncio loop that does what host threads would do.
        self.loop: Any = None
        #: The stream server beneath. It belongs to what has made it.
        self.server = ctypes.c_void_p()

    # --- for the end of the pool -----------------------------------------------------------------

    def count_in(self) -> None:
        """From now on the end of the pool asks it: it has all that it needs for an answer."""
        self.pool._runner.parts.add(self)

    def serves(self) -> bool:
        return bool(self.server) and not self.closed

    def is_served_by(self, loop: Any) -> bool:
        return self.loop is loop and not self.closed

    def drain_connections(self, left: Optional[float]) -> int:
        before, report = layout.ServerStats(), layout.DrainReport()
        before.struct_size = ctypes.sizeof(before)
        check(quick.pace_server_stats(self.server, ctypes.byref(before)))
        self._drain(left, report)
        return int(report.cut_off - before.closed_cut_off)

    def remains(self, end: Optional[float]) -> bool:
        return False

    def left(self) -> int:
        return 0

    def end_handlers(self) -> None:
        """Nothing: natively all has ended."""

    # --- what differs ----------------------------------------------------------------------------

    def hand(self) -> Any:
        """What one thread needs: something with ``run(timeout)``, which says how many events it has
        handled, or −1 when all is over."""
        raise NotImplementedError

    def close_native(self) -> None:
        """Ends waits at once, and cuts connections off."""
        raise NotImplementedError

    # --- threads ---------------------------------------------------------------------------------

    def start(self) -> None:
        if not _lifetime.enlist(self):
            self.close()
            raise ShutDownError("the interpreter ends")
        if self.most == 0:
            self.mine = self.hand()
        try:
            self.make_threads(self.hand)
        except BaseException:
            self.close()
            raise

    def make_threads(self, hand: Callable[[], Any]) -> None:
        """Makes the threads. Raises RuntimeError: the system has no more of them; UnsupportedError."""
        if self.most:
            _lifetime.check_threads()
        for number in range(self.most):
            name = f"{self.name}_{number}"
            thread = threading.Thread(name=name, target=self._serve, args=(hand(),))
            thread.start()
            self.threads.append(thread)

    def _serve(self, hand: Any) -> None:
        """Until all is over. Whatever happens, it goes on with what comes next: what others have open is theirs."""
        _here.hosts = self
        again = False
        while True:
            try:
                if hand.run(FOREVER) < 0:
                    return
                again = False
            except ForkedError:
                return
            except BaseException as raised:
                self.failures += 1
                if not again:
                    report("a host thread of %s has failed, and goes on", repr(self.name), raised=raised)
                elif self.closed:
                    return
                else:
                    # What fails without an end is told once, and does not spin.
                    time.sleep(SLICE)
                again = True

    def contain(self, raised: BaseException, message: str, *arguments: object) -> None:
        """Reports what code of the user's has raised. What ends the program is raised by ``turn`` instead, where the
        thread is the user's."""
        if self.most == 0 and issubclass(type(raised), LEAVING):
            self.leaving = raised
        else:
            report(message, *arguments, raised=raised)

    def run(self) -> int:
        """On a host without threads: handles what is there; says how many events."""
        return max(0, self.turn())

    def turn(self) -> int:
        """The same; −1 when all is over. Raises KeyboardInterrupt or SystemExit if a handler has."""
        self.check_idle()
        count = None
        outer = hosts_here()
        try:
            serve_here(self)
            try:
                count = int(self.mine.run(NOT_AT_ALL))
            except BaseException as raised:
                self.leaving = raised
            if count is None:
                # A handler of a signal has raised: what was taken is handled before that is let out.
                count = int(self.mine.run(NOT_AT_ALL))
        finally:
            serve_here(outer)
        leaving, self.leaving = self.leaving, None
        if leaving is not None:
            raise leaving
        return count

    def check_idle(self) -> None:
        """There must be no threads."""
        if self.mine is None:
            raise InvalidError("this is for what has no host threads (threads=0)")

    def is_inside(self) -> bool:
        """Whether this is one of the threads."""
        return hosts_here() is self

    # --- the end ---------------------------------------------------------------------------------

    def drain_from(self, seconds: Optional[float]) -> layout.DrainReport:
        """As ``drain``, called by the program. A pool without threads is driven meanwhile, in an event loop, too."""
        if self.pool._runner.threads:
            refuse_in_loop("drain()", "adrain(…)")
        return self.drain(seconds)

    def drain(self, seconds: Optional[float]) -> layout.DrainReport:
        report = layout.DrainReport()
        report.struct_size = ctypes.sizeof(report)
        if self.is_inside():
            # This thread must complete what it has, before anybody can wait for that.
            self._apart(lambda: self._drain(seconds, layout.DrainReport()))
            report.requested = True
        elif self.most:
            self._awaited(lambda: self._drain(seconds, report))
        else:
            self._drain_here(seconds, report)
        return report

    def _drain(self, seconds: Optional[float], report: layout.DrainReport) -> None:
        report.struct_size = ctypes.sizeof(report)
        time_left = nanoseconds(seconds)
        check(lib.pace_server_drain(self.server, time_left, ctypes.byref(report)))

    def _drain_here(self, seconds: Optional[float], report: layout.DrainReport) -> None:
        """Without host threads this one handles what comes meanwhile, and drives a pool that has none
        either."""
        failed: list[BaseException] = []
        apart = self._apart(lambda: _kept(failed, lambda: self._drain(seconds, report)))
        while apart.is_alive():
            if not self.pool._runner.threads:
                self.pool.join(0)
            if not self.run():
                time.sleep(0.001)
        while self.run():
            pass
        if failed:
            # Taken out: the exception's traceback holds this frame.
            raise failed.pop()

    def _awaited(self, body: Callable[[], object]) -> None:
        """Runs what waits without Python, on a thread of its own if this is the main one, which then looks at
        signals meanwhile. What a handler of a signal raises is raised at once, and the body goes on by itself."""
        if threading.current_thread() is not threading.main_thread():
            body()
            return
        failed: list[BaseException] = []
        try:
            apart = self._apart(lambda: _kept(failed, body))
        except RuntimeError:
            # There are no more threads, or the interpreter ends.
            body()
            return
        while apart.is_alive():
            apart.join(SLICE)
        if failed:
            # Taken out: the exception's traceback holds this frame.
            raise failed.pop()

    def _apart(self, body: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(name=f"{self.name}_drain", target=body)
        thread.start()
        self.aside = [*(each for each in self.aside if each.is_alive()), thread]
        return thread

    def close(self) -> None:
        """Stops at once, and waits for nothing."""
        if not self.closed:
            self.closed = True
            self.close_native()

    def exit(self) -> None:
        """The interpreter ends."""
        self.close()

    def forked(self) -> None:
        self.closed = True
        self.threads, self.aside = [], []

    def join(self, timeout: Optional[float] = None) -> bool:
        """Waits until the threads have ended; False: they have not in that time."""
        end = None if timeout is None else monotonic() + timeout
        for thread in (*self.threads, *self.aside):
            if thread is threading.current_thread():
                continue
            while thread.is_alive():
                left = SLICE if end is None else min(SLICE, end - monotonic())
                if left <= 0:
                    return False
                thread.join(left)
        return True


def _kept(failed: list[BaseException], body: Callable[[], object]) -> None:
    """Runs it, and keeps what it raises for another thread."""
    try:
        body()
    except BaseException as raised:
        failed.append(raised)


def address_at(server: ctypes.c_void_p, index: int) -> Optional[str]:
    """Where the listener listens; None: there is no such listener."""
    buffer = ctypes.create_string_buffer(layout.ADDRESS_SIZE)
    status = quick.pace_server_address(server, index, buffer, len(buffer))
    if status == layout.EINVAL:
        return None
    check(status)
    return buffer.value.decode()


def addresses(server: ctypes.c_void_p) -> list[str]:
    """All of them."""
    found: list[str] = []
    while True:
        address = address_at(server, len(found))
        if address is None:
            return found
        found.append(address)


def base_of(data: bytes) -> int:
    """Where the bytes lie, as long as they live."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
