"""``WorkerPool``: tasks with names, priorities, retries and limits, whose functions are Python's.

Natively a task is a number: when an attempt of it is due, the number lies in a completion queue, in the order of
lanes. Host threads take attempts from there in batches, without the interpreter's lock, run them, and
complete each when it has ended. What can be had of a task natively (its limits, retries, key, rate,
delay) never needs the interpreter.

    submit: jobs[token] = what to call ──► native task ──► queue
    host:   lead: take a batch ──► ready;  popleft, run, complete ──► the Task has its end
                                    ▲ the others take from here too

Threads take turns leading: one waits at the queue, the others for ``lead``. So what was taken together is
shared: whoever gets ``lead`` looks at ``ready`` first, and an attempt waits there only while all threads
run others. How many are taken at once follows how long the last ones took, so that what is taken ahead
is small: a few milliseconds' worth.

Invariants
1. What is to be called lies in ``jobs`` before the native task exists, and is taken out by who learns of
   the task's end: from the answer to a completion, or from an end that the queue brought.
2. Each entry that was taken is in ``ready``, or with one thread. Each attempt is completed once, also
   one whose task has ended meanwhile.
3. A thread that ends leaves nothing in ``ready``: it ends when the queue says that all is over, and waits
   there only when ``ready`` is empty.
4. Threads know the Core only, so that a lost WorkerPool is collected.
5. Whatever code of the user raises, its attempt is completed, its Task ends, and the thread goes on. A thread
   of the user's has KeyboardInterrupt and SystemExit afterwards.
6. A finalizer or a signal handler may come here again in the midst of anything: a thread never waits for a lock
   that it holds, nor shares a Hand with itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future as StandardFuture
from contextlib import nullcontext
from functools import partial
from typing import Any, Optional

import paceline

from . import _layout as layout
from . import _lifetime
from ._clock import monotonic
from ._middleware import Middleware, through
from ._attempt import here
from ._completer import END, ONE, TOKEN, Completer, Job
from ._contain import interrupts, report, tell_unrun, without_frame
from ._coroutines import Coroutines
from ._runner import has_lock
from ._errors import Error, ForkedError, Full, ShutDownError
from ._hosts import (
    queue_of,
    Hosts,
    Source,
    hosts_here,
    serve_here,
)
from ._native import NOT_AT_ALL, entries_of, freed_on_failure
from ._library import check, error, lib, nanoseconds, quick
from ._future import Mark, Raised
from ._members import current
from ._log import Log
from ._policy import OverloadPolicy
from ._pool import Pool
from ._reports import ShutdownReport
from ._scaling import Scaler, Scaling
from ._task import Task

#: Of ``pace_cq_attempt_t``: id, number, status. Nothing is lent.
_ENTRY = entries_of("QII", lent="16x")

#: The most attempts that are taken at once.
_BATCH = 64
#: How long what is taken at once may take. Seconds.
_AHEAD = 0.005
#: An attempt with a limit that was taken longer ago than this has its time from now on. Seconds.
_LAIN = 0.001
#: How often who waits for room looks for some, whoever tells. Seconds.
_LOOK = 0.05


class Core(Hosts):
    """What a worker pool's threads share."""

    def __init__(
        self,
        pool: Pool,
        name: str,
        threads: int,
        config: layout.WorkersConfig,
        loop: Optional[asyncio.AbstractEventLoop],
    ) -> None:
        super().__init__(pool, name, threads)
        self.queue = queue = queue_of(pool)
        pointer, inside = ctypes.c_void_p(), pool._runner.native.pointer
        with freed_on_failure(queue.native):
            check(lib.pace_workers_new(inside, ctypes.byref(config), ctypes.byref(pointer)))
            self.native = Source(pointer, lib.pace_workers_free, queue)
            with freed_on_failure(self.native):
                check(quick.pace_cq_workers(queue.pointer, pointer, 0))
        self.jobs: dict[int, Job] = {}
        self.tokens = itertools.count(1)
        self.ready: deque[tuple[int, int, int, int, int, int]] = deque()
        self.lead = threading.RLock()
        self.capacity = 1
        self.taken_at = 0.0
        self.hands: list[Hand] = []
        #: What runs on an event loop.
        self.coroutines = Coroutines(self, loop)
        #: For threads that are none of the pool's: those that nobody uses.
        self._idle: deque[Hand] = deque()
        self.hooks: list[tuple[str, Callable[[], object]]] = []
        self.periodics: weakref.WeakSet[paceline.Periodic] = weakref.WeakSet()
        self.middleware: tuple[Middleware, ...] = ()
        #: Kept as long as native tasks may log.
        self.log: Optional[Log] = None
        #: What is done without room, unless a name or a task says otherwise.
        self.full: OverloadPolicy = "reject"
        #: How many threads take attempts; the others are parked here.
        self.active = threads
        self._parked = threading.Condition()
        self.resting = 0
        self._over = False
        self.scaler: Optional[Scaler] = None
        #: Those who wait for room.
        self._room = threading.Condition()
        self._waiters = 0
        #: What waits and may be dropped, the oldest first: tokens, for each lane. Each change is one operation, so
        #: there is a lock only where the interpreter has none. Who adds a task looks at ``begun`` afterwards.
        self.droppable: list[OrderedDict[int, Task[Any]]] = [OrderedDict() for _ in range(4)]
        self.max_droppable = 8192
        self._dropping: Any = nullcontext() if has_lock() else threading.RLock()
        # Without declared types ctypes takes arguments that are its own objects as they are.
        self.submit_one = quick["pace_workers_submit_tagged"]
        self._detach = quick["pace_workers_detach"]
        self._generation = _lifetime.generation()
        self.count_in()

    def hand(self) -> Hand:
        made = Hand(self, len(self.hands))
        self.hands.append(made)
        if self.most == 0:
            self._idle.append(made)
        return made

    def turn(self) -> int:
        self.check_idle()
        hand = self._spare()
        outer = hosts_here()
        try:
            serve_here(self)
            return hand.run(NOT_AT_ALL)
        finally:
            serve_here(outer)
            self._idle.append(hand)

    def is_forked(self) -> bool:
        return self._generation != _lifetime.generation()

    def _spare(self) -> Hand:
        try:
            return self._idle.pop()
        except IndexError:
            # A task, a finalizer or another thread is here in the midst of a turn.
            return Hand(self, -1)

    def give_back(self, id: int) -> None:
        if not sys.is_finalizing() and not self.is_forked():
            self._detach(self.native.pointer, ctypes.c_uint64(id))

    def refusal(self) -> Error:
        if self.is_forked():
            return ForkedError("the worker pool belongs to the process that this one was forked from")
        return ShutDownError("the worker pool is shut down")

    def is_inside(self) -> bool:
        return super().is_inside() or self.coroutines.is_inside()

    # --- threads that rest ---------------------------------------------------------------------------

    def scale(self, scaling: Scaling) -> None:
        scaling.check(self.most)
        self.active = scaling.min_active
        self.scaler = Scaler(scaling, self)

    def set_active(self, threads: int) -> None:
        with self._parked:
            self.active = threads
            self._parked.notify_all()

    def park(self, index: int) -> None:
        """Until this thread is active, or all is over."""
        with self._parked:
            self.resting += 1
            while index >= self.active and not self._over:
                self._parked.wait()
            self.resting -= 1

    def end_parking(self) -> None:
        if not self._over:
            with self._parked:
                self._over = True
                self._parked.notify_all()

    # --- room --------------------------------------------------------------------------------------

    def room(self, full: OverloadPolicy) -> Iterator[None]:
        """For a submission that found no room: each time that there may be some. It ends when that is to be
        given up."""
        if isinstance(full, str) and full not in ("wait", "run_here"):
            return
        # A task that waited for others could wait for itself, and so could the pool's own threads, which
        # bring what is delayed.
        member = current()
        below = member is not None and member.runner is self.pool._runner
        if below or self.is_inside() or getattr(here, "hand", None) is not None or self.most == 0:
            return
        if full == "run_here":
            helper = self._spare()
            helped = True
            try:
                while helped and not self.closed:
                    # If nothing is there to be run, there may be room by now.
                    helped = helper.help()
                    yield
            finally:
                self._idle.append(helper)
            return
        end = None if isinstance(full, str) else monotonic() + full
        while not self.closed:
            left = _LOOK if end is None else min(_LOOK, end - monotonic())
            if left <= 0:
                return
            with self._room:
                self._waiters += 1
                self._room.wait(left)
                self._waiters -= 1
            yield

    def tell_room(self) -> None:
        """Something was taken from the queue."""
        if self._waiters:
            with self._room:
                self._room.notify_all()

    def drop_for(self, lane: int) -> None:
        """Makes room among what may be dropped, for one more of that lane. Raises Full."""
        with self._dropping:
            while sum(map(len, self.droppable)) >= self.max_droppable:
                lowest = next((each for each in reversed(self.droppable[lane:]) if each), None)
                if lowest is None:
                    raise Full("as many tasks wait as may, and none of them may be dropped for this one")
                try:
                    _, task = lowest.popitem(last=False)
                except KeyError:
                    # A finalizer has dropped it in between.
                    continue
                task.drop()

    def note_droppable(self, lane: int, token: int, task: Task[Any]) -> None:
        """A task that may be dropped was accepted."""
        with self._dropping:
            self.droppable[lane][token] = task
            # It may be quicker than this.
            if task.begun:
                self.droppable[lane].pop(token, None)

    def began(self, token: int, task: Any, calls: paceline.Calls[..., Any]) -> None:
        """A first attempt begins, or a task ends without one: it waits no more."""
        if self.scaler is not None:
            self.scaler.began(token)
        if calls.full == "drop_oldest":
            with self._dropping:
                task.begun = True
                self.droppable[calls.lane].pop(token, None)

    # --- the end -----------------------------------------------------------------------------------

    def close_native(self) -> None:
        self._cancel()

    def _cancel(self) -> int:
        """Cancels what has not begun, and asks what runs to stop; says how many were cancelled. Waits for nothing."""
        report = layout.WorkersReport()
        report.struct_size = ctypes.sizeof(report)
        at = ctypes.byref(report)
        lib.pace_workers_shutdown(self.native.pointer, 0, 0, 0, at, None, None)
        return int(report.cancelled)

    def exit(self) -> None:
        # Also while a shutdown is under way, which then is over sooner.
        self.closed = True
        self.end_parking()
        cancelled = self._cancel()
        if cancelled:
            tell_unrun(cancelled, "worker pool", self.name)
        self.coroutines.close()
        self.coroutines.end()

    def shutdown(
        self, drain: Optional[float], stop: Optional[float], clean_up: Optional[float]
    ) -> ShutdownReport:
        if self.is_forked():
            raise self.refusal()
        self.closed = True
        # All may help to end what was accepted.
        self.set_active(self.most)
        for each in list(self.periodics):
            each.close()
        self.coroutines.close()
        phases = (nanoseconds(drain), nanoseconds(stop))
        if self.is_inside():
            # This thread must complete what it runs, before anybody can wait for that.
            self._apart(lambda: self._forget(phases, clean_up))
            return ShutdownReport(True, False, {}, {}, {}, ())
        if self.most:
            return self._finish(phases, clean_up)
        report: StandardFuture[ShutdownReport] = StandardFuture()

        def finish() -> None:
            try:
                report.set_result(self._finish(phases, clean_up))
            except BaseException as raised:
                report.set_exception(raised)

        self._apart(finish)
        while not report.done():
            if not self.pool._runner.threads and not self.pool._runner.closed:
                self.pool.join(0)
            if not self.run():
                time.sleep(0.001)
        while self.run():
            pass
        return report.result()

    def _forget(self, phases: tuple[int, int], clean_up: Optional[float]) -> None:
        try:
            self._finish(phases, clean_up)
        except BaseException as raised:
            report("the shutdown of the worker pool %s has failed", self.name, raised=raised)

    def _finish(self, phases: tuple[int, int], clean_up: Optional[float]) -> ShutdownReport:
        ended: dict[int, dict[str, int]] = {what: {} for what in range(layout.ENDED_STUCK + 1)}

        def tell(_: object, what: int, name: bytes, count: int, thread: int) -> None:
            names = ended.get(what)
            if names is not None:
                text = name.decode("utf-8", "replace")
                names[text] = names.get(text, 0) + count

        report = layout.WorkersReport()
        report.struct_size = ctypes.sizeof(report)
        # The one call from native code: on this thread, before the call to it returns.
        at = ctypes.byref(report)

        def wait() -> None:
            with _lifetime.called_back() as calls:
                each = _ENDED(calls.guarded(tell))
                check(lib.pace_workers_shutdown(self.native.pointer, *phases, 0, at, each, None))

        self._awaited(wait)
        # Natively a task that has ended is over, whatever its coroutine does.
        deaf = self.coroutines.end_within(phases[1])
        for name in deaf:
            ended[layout.ENDED_STUCK][name] = ended[layout.ENDED_STUCK].get(name, 0) + 1
        if self.most and not report.stuck and not deaf:
            self.join()
        # An end that comes behind that of all is told by nobody, as that of a task whose attempt is late.
        for token, job in list(self.jobs.items()):
            if job[0].look():
                self.jobs.pop(token, None)
        return ShutdownReport(
            requested=report.requested,
            drained=report.drained and not deaf,
            completed=ended[layout.ENDED_COMPLETED],
            cancelled=ended[layout.ENDED_CANCELLED],
            stuck=ended[layout.ENDED_STUCK],
            failed_hooks=self._run_hooks(clean_up),
        )

    def _run_hooks(self, clean_up: Optional[float]) -> tuple[str, ...]:
        end = None if clean_up is None else monotonic() + clean_up
        failed: list[str] = []
        interrupt: Optional[BaseException] = None
        while True:
            try:
                name, hook = self.hooks.pop()
            except IndexError:
                break
            if end is not None and monotonic() > end:
                failed.append(name)
                continue
            try:
                hook()
            except BaseException as raised:
                failed.append(name)
                # The threads of the user are not in the list.
                if interrupts(raised) and threading.current_thread() not in self.threads:
                    interrupt = raised if interrupt is None else interrupt
                else:
                    report("the clean-up %s has failed", name, raised=raised)
        if interrupt is not None:
            raise interrupt
        return tuple(failed)


_ENDED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32
)


class Hand(Completer):
    """One thread that runs attempts."""

    def __init__(self, core: Core, index: int) -> None:
        super().__init__(core)
        #: Which of the pool's threads it is; below 0: none of them.
        self._index = index
        self._wait = lib["pace_cq_wait"]
        self._entries = ctypes.create_string_buffer(_ENTRY.size * _BATCH)
        self._view = memoryview(self._entries).cast("B")
        self._count = ctypes.c_size_t()
        #: Its thread in Python. Without threads of the pool, and of a submitter that helps, it is whichever runs what is there.
        self.worker = f"{core.name}_{index}"
        #: For its statistics: since when it is there, and, by the same clock, since when it works; how long it has
        #: worked; attempts that have returned, and that have raised.
        self.made = monotonic()
        self.busy_since: Optional[float] = None
        self.busy = 0.0
        self.completed = self.failed = 0

    def rests(self) -> str:
        """In which state it is while it runs nothing."""
        core = self.core
        if not core.most:
            return "ended" if core.closed and not core.jobs else "waiting"
        threads, index = core.threads, self._index
        if index < len(threads) and not threads[index].is_alive():
            return "ended"
        return "waiting" if index < core.active else "set aside"

    def run(self, timeout: ctypes.c_uint64) -> int:
        """Runs what was taken, or takes more; says how many entries it handled, or −1: all is over."""
        core = self.core
        if self._index >= core.active and core.most:
            core.park(self._index)
        if not core.ready:
            with core.lead:
                if not core.ready:
                    count = self._fetch(timeout)
                    if count <= 0:
                        return count
        return self._turn()

    def help(self) -> bool:
        """Runs what waits, on a thread that is none of the pool's; False: nothing was there."""
        core = self.core
        if not core.ready:
            # Who leads may wait for something to come.
            if not core.lead.acquire(timeout=_LOOK):
                return False
            try:
                if not core.ready and self._fetch(NOT_AT_ALL) <= 0:
                    return False
            finally:
                core.lead.release()
        return self._turn() > 0

    def _turn(self) -> int:
        core = self.core
        outer = getattr(here, "hand", None)
        here.hand = self
        if core.most == 0 or self._index < 0:
            self.worker = threading.current_thread().name
        self.busy_since = before = monotonic()
        try:
            done = self._work()
        finally:
            self.job = self._made = None
            here.hand = outer
            took = monotonic() - before
            self.busy_since = None
            self.busy += took
        if done:
            each = took / done
            room = int(_AHEAD / each) if each > 0 else _BATCH
            core.capacity = max(1, min(_BATCH, room, core.capacity * 2))
        return done

    def _fetch(self, timeout: ctypes.c_uint64) -> int:
        core, count, status = self.core, self._count, layout.OK
        # Else a handler of a signal has raised before what was brought was taken.
        if not count.value:
            size = ctypes.c_size_t(core.capacity)
            reference, queue = ctypes.byref(count), core.queue.pointer
            status = self._wait(queue, self._entries, size, timeout, reference)
        if status == layout.OK:
            core.taken_at = monotonic()
            ready, brought = core.ready, count.value
            entries = _ENTRY.iter_unpack(self._view[: brought * _ENTRY.size])
            # Not a call: after one the handler of a signal may raise.
            ready += entries
            count.value = 0
            core.tell_room()
            return brought
        if status == layout.ETIMEDOUT:
            return 0
        if status == layout.ESHUTDOWN:
            core.end_parking()
            return -1
        raise error(status)

    def _work(self) -> int:
        core = self.core
        jobs, done = core.jobs, 0
        pointer, complete, end, put = core.queue.pointer, self._complete, self._end, TOKEN.pack_into
        try:
            # Between the taking of an entry and the inner ``try`` no handler of a signal is called.
            for kind, attempt, token, self.id, self.number, status in iter(core.ready.popleft, None):
                done += 1
                self.attempt = attempt
                try:
                    if kind != layout.CQ_ATTEMPT:
                        self._end_of(kind, token, status)
                        continue
                    try:
                        self.job = task, function, arguments, keywords, calls = jobs[token]
                    except KeyError:
                        self.fail(token, None, "its task has ended")
                        continue
                    if calls.watched and self.number == 1:
                        core.began(token, task, calls)
                    if task.asked or calls.limited and self._is_late():
                        self.fail(token, None, "it was cancelled before it began")
                        continue
                    if calls.is_coroutine:
                        core.coroutines.begin(self, self.job, token)
                        self.job = None
                        continue
                    task.worker = self.worker
                    try:
                        if core.middleware:
                            call = partial(function, *arguments, **keywords)
                            value = through(core.middleware, self.current(self.job), call, self.let_out)
                        else:
                            value = function(*arguments, **keywords)
                    except BaseException as exception:
                        self.failed += 1
                        self.fail(token, without_frame(exception), "")
                        if interrupts(exception):
                            self.let_out(exception)
                        continue
                    self.completed += 1
                    put(end, 0, attempt)
                    if complete(pointer, end, ONE) == layout.OK:
                        del jobs[token]
                        task._outcome = value
                        if task._lock is not None:
                            task.succeed(value)
                    # Else its task has ended meanwhile, as is told by an entry, or a retry has overtaken it.
                    del value
                except BaseException as raised:
                    value = None
                    self._recover(kind, token, status, raised)
                    self.let_out(raised)
                    report("a callback of a task was left by an exception", raised=raised)
        except IndexError:
            return done
        raise AssertionError("the queue has no end")

    def _recover(self, kind: int, token: int, status: int, raised: BaseException) -> None:
        """After an exception that nothing has caught, as a handler of a signal may raise one anywhere on the main
        thread: the entry is dealt with all the same, and who waits is told."""
        jobs, job = self.core.jobs, self.job
        if kind != layout.CQ_ATTEMPT:
            self._end_of(kind, token, status)
        elif job is None:
            # The attempt is completed, and its Task was told.
            return
        elif jobs.get(token) is not job:
            task = job[0]
            if task._lock is not None and type(task._outcome) not in (Mark, Raised):
                task.succeed(task._outcome)
        else:
            end = END.unpack_from(self._end)
            if end[0] == self.attempt and end[5] == layout.TASK_RETRYING:
                return
            self.fail(token, raised, "")
            if jobs.get(token) is job and self.stale and not job[4].overlaps:
                del jobs[token]
                job[0].fail_as(layout.TASK_FAILED, raised)

    def _is_late(self) -> bool:
        """Of an attempt that has a limit: whether that was over before it could begin here. If it lay here
        for long, its time begins now."""
        self.began = monotonic()
        if self.began - self.core.taken_at < _LAIN:
            return False
        job = self.job
        assert job is not None
        attempt = self.current(job)
        if attempt.cancelled:
            return True
        attempt.heartbeat()
        return False

    def _end_of(self, kind: int, token: int, status: int) -> None:
        if kind == layout.CQ_ENDED:
            # It comes to one thread, which has the others end.
            self.core.queue.close()
            self.core.coroutines.end()
        job = self.core.jobs.pop(token, None)
        if job is not None:
            task, calls = job[0], job[4]
            if calls.watched:
                self.core.began(token, task, calls)
            if task.run is not None:
                task.run.cancel()
            task.end_as(status)
