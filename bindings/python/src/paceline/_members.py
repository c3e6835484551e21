"""The threads of a Pool: they run tasks, pull batches of events, and help each other out.

    wait ──► surplus of this thread ──► handler, one after the other ──► before the next wait all are completed
                    │ taken over, if the handler before it takes long
                    ▼
             given back to the native queue, which brings it to whoever waits next

An event that a thread has taken is out until that thread comes for the next ones. So a slow handler
would hold up the rest of its batch. Whoever gets a batch of several sees to it that one idle thread
watches: a watch sleeps for ``PATIENCE`` at a time, and what it finds waiting behind a handler that has
run for as long it gives back (``FLOW_AGAIN``), which ends the slow thread's hold.

Invariants
1. A handle's handler runs on one thread at a time: natively an event comes only after the last one
   was completed, and ``Handle._gate`` covers what natively is no event any more.
2. A batch's events wait at most about two patiences while some thread sleeps. Who fills a surplus
   looks for a watch afterwards; the watch, when it ends, looks at the surplus afterwards.
3. A descriptor is a duplicate of the user's until the native handle has ended: so neither closing a
   socket early nor a new one with the same number can meet a registration of ours.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from queue import SimpleQueue
from typing import Any, Optional, Protocol

from . import _layout as layout
from ._clock import monotonic
from ._lane import Lane
from ._contain import interrupts, report, tell_unrun
from ._runner import TASKS_PER_POLL, Runner, Task, Unhandled
from ._slow import SlowHook, SlowWatch
from ._errors import DeadlockError, ForkedError, Full, OsError, ShutDownError
from ._library import error, lib
from ._native import EVENT, FOREVER, NOT_AT_ALL, WAKE, Event, NativePool, Puller

#: How long a handler may run before others take over what waits behind it. Seconds.
PATIENCE = 0.002

#: How many events a thread takes at once.
BATCH = 16


class Flow(IntEnum):
    """A handler's answer; None is WAIT. Anything else that it returns means nothing, and is told once."""

    #: Call again when something new comes.
    WAIT = 0
    #: Call the handler again, after others had their turn.
    AGAIN = 1
    #: As WAIT, but not before ``resume``: see ``Handle.pause``.
    PAUSE = 2
    #: Deregister the handle, and do not call the handler again.
    DONE = 3


WAIT, AGAIN, PAUSE, DONE = (int(flow) for flow in Flow)

#: What is called at a thread's start or end, with its number.
Hook = Callable[[int], object]

_here = threading.local()


def current() -> Optional[Member]:
    """The member that this thread is; None outside handlers and tasks of pools."""
    return getattr(_here, "member", None)


def loop_here() -> Optional[asyncio.AbstractEventLoop]:
    """The event loop that runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class OwnThread:
    """One of a pool's own threads, for its statistics; also while it is set aside, and after its end."""

    def __init__(self, number: int, reserve: Optional[Reserve]) -> None:
        self.number = number
        #: What it runs the tasks of, if it runs nothing else.
        self.reserve = reserve
        self.name = threading.current_thread().name
        self.native_id = threading.get_native_id()
        #: "running", "waiting", "set aside" or "ended".
        self.state = "running"
        #: Where it is pinned.
        self.cpu: Optional[int] = None
        self.pin_failed = False
        #: What it has done in the native pool, as far as was asked.
        self.turns = layout.ThreadStats()
        self.books = [0, 0, 0, 0]
        #: Events that it has handled; what it has in hand is with its member.
        self.handled = 0
        self.member: Optional[Member] = None
        self._began = monotonic()
        #: For how long it has waited for something to do, in seconds, and since when it does now.
        self._waited = 0.0
        self._waits_since: Optional[float] = None

    def begins_to_wait(self, state: str) -> None:
        self._waits_since = monotonic()
        self.state = state

    def has_waited(self) -> None:
        since, self._waits_since = self._waits_since, None
        self.state = "running"
        if since is not None:
            self._waited += monotonic() - since

    def utilisation(self) -> float:
        """Which part of its time it has not waited."""
        now, since = monotonic(), self._waits_since
        waited = self._waited + (0.0 if since is None else now - since)
        return max(0.0, min(1.0, 1.0 - waited / max(now - self._began, 1e-9)))


class Mark:
    """An entry of a line that is no task: a thread comes upon it when all that was before it has been taken."""

    def __init__(self, runner: Members, marks: set[Mark]) -> None:
        self._runner = runner
        self._marks = marks
        self.reached = threading.Event()
        marks.add(self)

    def entry(self) -> Task:
        """What lies in the line."""
        return self, self.run, (), None

    def run(self, books: list[int]) -> int:
        """What the thread does that comes upon it; it has run no task, which is one less than it says by that."""
        self._marks.discard(self)
        self._runner.waited_for.discard(self.reached)
        self.reached.set()
        return -1

    def sweep(self, exception: Optional[BaseException], late: list[BaseException]) -> int:
        """All before it has been swept."""
        self.run([])
        return 0

    def waiting(self) -> int:
        """It has no tasks."""
        return 0


class Reserve:
    """The threads that run nothing but tasks of one lane, and where they sleep: beside the native pool, as there is
    nothing for them. So whoever calls for a task has a thread that is free for it, and events stay others'.

    As for the others: who puts a task looks who is asleep afterwards, who announces itself looks at the tasks
    afterwards."""

    def __init__(self, tasks: deque[Task], lane: Lane, threads: int) -> None:
        self._tasks = tasks
        self.lane = lane
        self.threads = threads
        self._asleep: deque[threading.Event] = deque()

    def call(self, tasks: int) -> int:
        """Wakes as many threads as there are for so many tasks; says how many."""
        for called in range(tasks):
            try:
                self._asleep.pop().set()
            except IndexError:
                return called
        return tasks

    def call_all(self) -> None:
        """Has all look whether the pool is closed."""
        self.call(self.threads)

    def _next(self) -> Optional[Task]:
        """The first task. A mark before it has been reached; other entries of the line are for other threads."""
        place = 0
        while True:
            try:
                task = self._tasks[place]
            except IndexError:
                return None
            if task[3] is not None:
                return task
            if isinstance(task[0], Mark):
                try:
                    self._tasks.remove(task)
                except ValueError:
                    # Another thread has come upon it.
                    pass
                task[0].run([])
            else:
                place += 1

    def take(self) -> Task:
        """The next task. Raises IndexError: there is none."""
        while True:
            task = self._next()
            if task is None:
                raise IndexError("no task")
            try:
                self._tasks.remove(task)
            except ValueError:
                # Another thread has taken it.
                continue
            return task

    def rest(self, runner: Runner) -> bool:
        """Sleeps until there may be a task; False: there never will be."""
        wake = threading.Event()
        self._asleep.append(wake)
        if self._next() is None and runner.closed is None:
            wake.wait()
        else:
            try:
                self._asleep.remove(wake)
            except ValueError:
                pass
        return runner.closed is None or self._next() is not None


class Member:
    """What one thread has in its hands. Others may only take from ``surplus``."""

    __slots__ = (
        "runner",
        "own",
        "puller",
        "surplus",
        "began",
        "books",
        "handled",
        "running",
        "interrupt",
    )

    def __init__(
        self, runner: Members, puller: Puller, books: list[int], own: Optional[OwnThread] = None
    ) -> None:
        self.runner = runner
        #: None: a thread of the user's.
        self.own = own
        self.puller = puller
        self.surplus: deque[Event] = deque()
        self.began = 0.0
        self.books = books
        self.handled = 0
        self.running: Optional[Entry] = None
        #: What a handler has raised for the thread, which is the user's.
        self.interrupt: Optional[BaseException] = None

    def give_back(self) -> None:
        """Lets others have what waits behind the handler that runs."""
        while True:
            try:
                event = self.surplus.popleft()
            except IndexError:
                return
            kind, token, tag, _, _ = event
            if kind == layout.CQ_READY:
                # False: it was closed, or completed by somebody else.
                self.runner.native.queue.complete(token, AGAIN)
                entry = self.runner.entries.get(tag)
                if entry is not None and entry.closed:
                    # Nobody may get it again.
                    self.runner.end(entry)
            else:
                self.runner.tasks.append(self.runner.as_task(event))
                if self.runner.asleep and not self.runner.calling:
                    self.runner.call()


class Entry:
    """What a tag stands for: something registered, or a timer."""

    def __init__(
        self, runner: Members, call: Callable[[int], object], what: object, lasts: bool
    ) -> None:
        self.runner = runner
        self.call = call
        #: The function of the user's that this calls.
        self.what = what
        #: False for what runs once.
        self.lasts = lasts
        self.tag = runner.native.next_tag()
        #: The native number; 0 while it is being registered.
        self.native = 0
        #: The token of the event that was handled last.
        self.held = 0
        self.descriptor = -1
        self.closed = False
        #: It has returned what is no answer, and that was told.
        self.is_told = False
        self.gate = threading.Lock()

    def run(self, ready: int, member: Member) -> int:
        """Calls the handler; says how it goes on."""
        if self.closed:
            # Who closes it holds the gate, and perhaps waits for this thread.
            return DONE
        with self.gate:
            if self.closed:
                return DONE
            outer, member.running = member.running, self
            try:
                slow = self.runner.slow
                answer = self.call(ready) if slow is None else slow.call(self.what, self.call, ready)
                flow = WAIT if answer is None else self._flow_of(answer)
            except BaseException as exception:
                flow = DONE
                if interrupts(exception) and not self.runner.is_own():
                    member.interrupt = exception
                else:
                    self.runner.unhandled_in(exception)
            finally:
                member.running = outer
            if flow == DONE:
                self.closed = True
            return flow

    def _flow_of(self, answer: object) -> int:
        """Functions return all kinds of things: a count is no 2 of Flow's."""
        if type(answer) is Flow:
            return int(answer)
        if self.lasts and not self.is_told:
            self.is_told = True
            report(
                "%s has returned %s, which means nothing: only None and a paceline.Flow do; it is called again",
                self.what,
                answer,
                level=logging.WARNING,
            )
        return WAIT

    def end(self) -> None:
        """Natively it is no more."""
        if self.runner.entries.pop(self.tag, None) is None:
            # Another thread, or this one in the midst of a call, has ended it.
            return
        if self.descriptor >= 0:
            try:
                os.close(self.descriptor)
            except OSError as raised:
                # Somebody else has closed it, or the device fails late.
                report("a descriptor could not be closed", raised=raised)


class Part(Protocol):
    """What stands on a pool, as far as the pool's end is concerned."""

    #: The event loop that does what host threads would do.
    loop: Any

    def serves(self) -> bool:
        """Whether it is a server that runs."""

    def is_served_by(self, loop: Any) -> bool:
        """Whether handlers of it run in that event loop."""

    def drain_connections(self, left: Optional[float]) -> int:
        """A server's drain, for up to so many seconds; how many connections were cut off."""

    def remains(self, end: Optional[float]) -> bool:
        """Whether host threads have something to do before ``end`` that the native pool does not know of."""

    def left(self) -> int:
        """How many messages they have taken and not handled."""

    def end_handlers(self) -> None:
        """The pool has ended: handlers of messages begin no more."""


class Members(Runner):
    """A runner that handles events too."""

    def __init__(
        self,
        threads: int,
        name: str,
        unhandled: Optional[Unhandled],
        guests: int,
        config: layout.PoolConfig,
        cpus: Sequence[int] = (),
        on_start: Optional[Hook] = None,
        on_end: Optional[Hook] = None,
        patience: Optional[int] = None,
    ) -> None:
        self.slow: Optional[SlowWatch] = None
        #: How many tasks each lane, and each strand, has room for.
        self.lane_capacity: int = config.lane_capacity
        self.strand_capacity: int = config.strand_capacity
        #: What those wait for who wait for room.
        self.waited_for: set[threading.Event] = set()
        #: Others take over what waits behind each handler before it is called.
        self.eager = config.promotion == layout.PROMOTION_EAGER
        native = NativePool(threads + guests, config)
        #: How long a handler may run before others take over what waits behind it. Nanoseconds.
        self.patience = _PATIENCE_NS if patience is None else patience
        self._cpus = cpus
        self._on_start, self._on_end = on_start, on_end
        #: What has become of each thread's pinning: None, or why it has failed.
        self._pinned: SimpleQueue[Optional[OSError]] = SimpleQueue()
        #: The pool's own threads.
        self.own: dict[int, OwnThread] = {}
        #: Those of them that run nothing but tasks of one lane.
        self.reserves: list[Reserve] = []
        #: How many of the others work: the first ones.
        self.active = threads
        #: What wakes those that are set aside.
        self._aside: list[SimpleQueue[None]] = []
        self.entries: dict[int, Entry] = {}
        self.members: list[Member] = []
        self.watching = False
        #: Tokens on their way for whom nobody waits any more.
        self.unclaimed: deque[None] = deque()
        #: Events of threads that have left.
        self.handled_before = 0
        #: Threads go on pulling, for the sake of what stands on the pool, though nothing new is accepted.
        self.draining = False
        #: What stands on the pool and has threads of its own.
        self.parts: weakref.WeakSet[Part] = weakref.WeakSet()
        #: Connections that drains of servers have cut off.
        self.connections = 0
        #: How the native pool has ended.
        self.ended: Optional[layout.Report] = None
        #: How many messages were left then: in mailboxes, or in the hands of host threads.
        self.left: Optional[int] = None
        super().__init__(threads, name, native=native, unhandled=unhandled)

    def _why_not(self) -> Exception:
        refusal = super()._why_not()
        if self.closed == "forked":
            return refusal
        return ShutDownError(*refusal.args)

    def is_inside(self) -> bool:
        """Whether what runs here is a task or handler of the pool, or of what stands on it."""
        member = current()
        if member is not None and member.runner is self or self.is_host_here():
            return True
        loop = loop_here()
        return loop is not None and any(part.is_served_by(loop) for part in list(self.parts))

    def is_host_here(self) -> bool:
        """Whether this is a thread, or the event loop, that serves what stands on the pool: nobody else completes what
        it has in hand."""
        from ._hosts import hosts_here

        hosts = hosts_here()
        if hosts is not None and hosts.pool._runner is self:
            return True
        loop = loop_here()
        return loop is not None and any(part.loop is loop and part.serves() for part in list(self.parts))

    # --- registering -----------------------------------------------------------------------------

    def check_open(self) -> None:
        if self.closed == "forked":
            raise ForkedError("the pool belongs to the process that this one was forked from")
        if self.closed is not None:
            raise ShutDownError("the pool is shut down")

    def register(
        self,
        fd: int,
        call: Callable[[int], object],
        what: object,
        interest: int,
        level: bool,
        may_block: bool,
        paused: bool,
    ) -> Entry:
        self.check_open()
        if may_block:
            call = _giving_back(call)
        entry = Entry(self, call, what, lasts=True)
        entry.descriptor = os.dup(fd)
        self.entries[entry.tag] = entry
        try:
            entry.native = self.native.queue.register(
                entry.descriptor, interest, level, may_block, paused, entry.tag
            )
        except BaseException:
            entry.end()
            raise
        return entry

    def every(self, period: int, call: Callable[[int], object], what: object) -> Entry:
        self.check_open()
        entry = Entry(self, call, what, lasts=True)
        return self._enter(entry, lambda: self.native.queue.every(period, entry.tag))

    def after(self, delay: int, call: Callable[[int], object], what: object) -> Entry:
        self.check_open()
        entry = Entry(self, call, what, lasts=False)
        return self._enter(entry, lambda: self.native.queue.after(delay, entry.tag))

    def _enter(self, entry: Entry, register: Callable[[], int]) -> Entry:
        self.entries[entry.tag] = entry
        try:
            entry.native = register()
        except BaseException:
            entry.end()
            raise
        return entry

    def deregister(self, entry: Entry) -> bool:
        """Ends it: no call begins after this. True: none runs any more either.

        Inside a handler of this pool it does not wait for another thread's, which could wait for
        this one in turn.
        """
        with self._lock:
            if entry.closed:
                return True
            entry.closed = True
        if self.closed == "forked":
            raise ForkedError("the pool belongs to the process that this one was forked from")
        member = current()
        inside = member is not None and member.runner is self
        self.end(entry)
        mine = member is not None and member.running is entry
        if not mine and not entry.gate.acquire(blocking=not inside):
            # Its handler runs on another thread, which ends it afterwards.
            return False
        try:
            # It was handled, and is out still.
            self._complete(entry, entry.held, DONE)
        finally:
            if not mine:
                entry.gate.release()
        return True

    def end(self, entry: Entry) -> None:
        """Ends natively what was closed. If an event of it is out, whoever has it has nothing to do with it any more;
        if that still lies in the native queue, whoever takes it ends it."""
        status = lib.pace_handle_deregister(self.native.pointer, entry.native)
        if status in (layout.OK, layout.ESTALE, layout.ESHUTDOWN):
            entry.end()
        elif status != layout.ECLOSING:
            raise error(status)
        else:
            for member in self.members:
                for _, token, tag, _, _ in member.surplus.copy():
                    if tag == entry.tag:
                        self._complete(entry, token, DONE)

    def _complete(self, entry: Entry, token: int, flow: int) -> None:
        """Answers for an event, unless that was done before."""
        if self.native.queue.complete(token, flow) and flow == DONE:
            entry.end()

    # --- the threads -----------------------------------------------------------------------------

    def puller(self) -> Puller:
        return Puller(self.native.queue, EVENT, BATCH, is_done=True)

    def _serve(self, number: list[int]) -> None:
        reserve = self._reserve_of(number[0])
        own = _here.own = self.own[number[0]] = OwnThread(number[0], reserve)
        self.enter()
        self._pin(own)
        try:
            self._call_hook(self._on_start, own)
            super()._serve(number)
        finally:
            self._call_hook(self._on_end, own)
            own.begins_to_wait("ended")
            # Which refers to this.
            own.member = None

    def _pin(self, own: OwnThread) -> None:
        """Pins this thread, if that was asked for."""
        if not self._cpus:
            return
        cpu = self._cpus[own.number % len(self._cpus)]
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError as refused:
            own.pin_failed = True
            self._pinned.put(refused)
        else:
            own.cpu = cpu
            self._pinned.put(None)

    def check_pinned(self) -> None:
        """Waits until all threads have been pinned. Raises OsError if one could not be."""
        for _ in self.threads.copy() if self._cpus else ():
            refused = self._pinned.get()
            if refused is not None:
                raise OsError(
                    refused.errno, f"a thread could not be pinned (pin_strict): {refused.strerror}"
                )

    def _call_hook(self, hook: Optional[Hook], own: OwnThread) -> None:
        """Calls a hook inside of the pool. What it raises goes where that of a posted task goes."""
        if hook is None:
            return
        _here.member = Member(self, self.puller(), [0, 0, 0, 0], own)
        try:
            hook(own.number)
        except BaseException as raised:
            self.unhandled_in(raised)
        finally:
            _here.member = None

    def set_active(self, threads: int) -> None:
        """Lets only the first ``threads`` of the pool's own threads work. The others finish what they are at."""
        self.active = threads
        # Whoever sleeps looks at the number; whoever sets itself aside has looked after it was listed here.
        self.call_all()
        self.call_back()

    def call_back(self) -> None:
        """Has those that are set aside look whether they still are."""
        for wake in self._aside:
            wake.put(None)

    def close(self, why: str) -> None:
        super().close(why)
        self.call_back()
        for reserve in self.reserves:
            reserve.call_all()
        for called in self.waited_for.copy():
            # There will be no room.
            called.set()

    def _is_too_many(self, own: Optional[OwnThread]) -> bool:
        if own is None or own.reserve is not None:
            return False
        return own.number >= self.active and self.closed is None

    def _set_aside(self, member: Member, own: OwnThread) -> None:
        """Waits outside of everything until more threads are to work, or the pool is closed."""
        self._leave(member)
        # What this thread was called for is others' now.
        if self.tasks and self.asleep and not self.calling:
            self.call()
        wake: SimpleQueue[None] = SimpleQueue()
        with self._lock:
            self._aside = [*self._aside, wake]
        own.begins_to_wait("set aside")
        while self._is_too_many(own):
            wake.get()
        own.has_waited()
        with self._lock:
            self._aside = [each for each in self._aside if each is not wake]
        self._begin(member)

    def _begin(self, member: Member) -> None:
        # From its first pull on a drain waits for this thread.
        first = member.puller.pull(NOT_AT_ALL)
        self._join(member)
        if first > 0:
            self.sort(member, 0)
            self.run_events(member)

    def work(self, books: list[int], puller: Puller) -> None:
        own: OwnThread = _here.own
        own.books = books
        member = own.member = Member(self, puller, books, own)
        try:
            if own.reserve is not None:
                self._join(member)
                return self._work_for(own.reserve, books, own)
            self._begin(member)
            while True:
                if self._is_too_many(own):
                    self._set_aside(member, own)
                polls = self.run_tasks(books, TASKS_PER_POLL) >= TASKS_PER_POLL
                if not (self.poll(member) if polls else self.rest_as(member)):
                    return
                self.run_events(member)
        finally:
            self._leave(member)

    def reserve(self, tasks: deque[Task], lane: Lane, threads: int) -> Reserve:
        """Makes threads that run nothing but those tasks, when the others have been made."""
        reserve = Reserve(tasks, lane, threads)
        self.reserves.append(reserve)
        return reserve

    def spawn_reserved(self) -> None:
        """Makes them. Their numbers come after the others'."""
        number = self.most
        for each in self.reserves:
            for _ in range(each.threads):
                thread = threading.Thread(
                    name=f"{self._name}_{number}", target=self._serve, args=([number],)
                )
                thread.start()
                self.threads.add(thread)
                number += 1

    def _reserve_of(self, number: int) -> Optional[Reserve]:
        first = self.most
        for each in self.reserves:
            if first <= number < first + each.threads:
                return each
            first += each.threads
        return None

    def _work_for(self, reserve: Reserve, books: list[int], own: OwnThread) -> None:
        while True:
            self.run_tasks(books, take=reserve.take)
            own.begins_to_wait("waiting")
            goes_on = reserve.rest(self)
            own.has_waited()
            if not goes_on:
                return

    def _join(self, member: Member) -> None:
        _here.member = member
        with self._lock:
            self.members = [*self.members, member]

    def _leave(self, member: Member) -> None:
        _here.member = None
        member.give_back()
        member.puller.done()
        with self._lock:
            self.members = [each for each in self.members if each is not member]
            self.handled_before += member.handled
            if member.own is not None:
                member.own.handled += member.handled
            member.handled = 0

    def poll(self, member: Member) -> bool:
        """Looks for events while there are tasks."""
        goes_on = member.puller.pull(NOT_AT_ALL) >= 0
        if goes_on:
            self.sort(member, 0)
        # What is accepted still runs.
        return goes_on or bool(self.tasks)

    def rest_as(self, member: Member, longest: int = layout.FOREVER) -> bool:
        """As ``rest``, and as the watch, if there is something to watch."""
        over = self.closed is not None and not self.draining
        if over and not self.tasks:
            return False
        own = member.own
        if own is not None:
            # Before the look at who is active: see `sort`.
            own.begins_to_wait("waiting")
        self.asleep.append(None)
        if self.tasks or over or self._is_too_many(own):
            try:
                self.asleep.pop()
                if own is not None:
                    own.has_waited()
                return True
            except IndexError:
                pass
        watches = self._takes_watch(member)
        if watches:
            longest = min(longest, self.patience)
        time_out = FOREVER if longest == layout.FOREVER else ctypes.c_uint64(longest)
        goes_on = member.puller.pull(time_out) >= 0
        if own is not None:
            own.has_waited()
        if watches:
            self.watching = False
            self._relieve(member)
        if goes_on:
            self.sort(member, 1)
        return goes_on

    def sort(self, member: Member, announced: int) -> None:
        """Takes what has come into the surplus, and calls a watch if there is more than one."""
        tokens, entries = 0, member.puller.entries
        while entries:
            # A handler of a signal may raise in between: it is taken twice then, but not lost.
            if entries[0][2] == WAKE:
                tokens += 1
            else:
                member.surplus.append(entries[0])
            entries.popleft()
        if tokens:
            self.calling = False
        if tokens != announced:
            self._settle(tokens - announced)
        if tokens and self.active < self.most and self._has_too_many():
            # It was one's of those, which sleeps still.
            self.call_all()
        if len(member.surplus) > 1 and not self.watching and self.asleep and not self.calling:
            self.call()

    def _settle(self, surplus: int) -> None:
        """Keeps announcements and tokens in step with those who sleep (invariant 2 of the runner).

        A token too many was somebody else's, whose announcement it becomes again. Who comes back
        without a token takes an announcement, or, if there is none, notes that a token is coming.
        """
        for _ in range(surplus):
            try:
                self.unclaimed.pop()
            except IndexError:
                self.asleep.append(None)
                if self.closed is not None and not self.draining:
                    self.call_all()
        for _ in range(-surplus):
            try:
                self.asleep.pop()
            except IndexError:
                self.unclaimed.append(None)

    def _has_too_many(self) -> bool:
        """Whether threads that are to be set aside sleep beside work."""
        owns = (each.own for each in self.members)
        return any(own is not None and own.state == "waiting" and self._is_too_many(own) for own in owns)

    def _takes_watch(self, member: Member) -> bool:
        """Becomes the watch if somebody has a surplus, or runs what may be slow, and there is no watch (invariant 2)."""
        watched = self.slow is not None and self.slow.runs
        if self.watching or not (watched or any(m.surplus for m in self.members if m is not member)):
            return False
        self.watching = True
        return True

    def report_slow(self, limit: float, hook: SlowHook) -> None:
        """From now on the hook is told of what takes longer than ``limit`` seconds."""
        self.slow = SlowWatch(limit, hook, self.unhandled_in, self._call_watch)

    def _call_watch(self) -> None:
        """Something begins that may be slow: an idle thread watches."""
        if not self.watching and self.asleep and not self.calling:
            self.call()

    def run_tasks(
        self, books: list[int], most: int = sys.maxsize, take: Optional[Callable[[], Task]] = None
    ) -> int:
        if self.slow is not None:
            take = self.slow.watched(take or self.tasks.popleft)
        return super().run_tasks(books, most, take)

    def _relieve(self, member: Member) -> None:
        """Takes over from whoever is held up, and tells of what is slow."""
        if self.slow is not None:
            self.slow.look()
        now = monotonic()
        for each in self.members:
            if each is not member and each.surplus and now - each.began > self.patience / 1e9:
                each.give_back()

    def run_events(self, member: Member) -> None:
        """Handles this thread's surplus, as far as nobody takes over."""
        while True:
            try:
                event = member.surplus.popleft()
            except IndexError:
                return
            if member.surplus:
                member.began = monotonic()
            self.handle(event, member)

    def handle(self, event: Event, member: Member) -> None:
        """Runs one event's handler, and completes it if that is not enough that is done before the next wait."""
        _, token, tag, handle, ready = event
        entry = self.entries.get(tag)
        if entry is None:
            return
        entry.held = token
        # It may come before the registering call has returned.
        entry.native = entry.native or handle
        member.handled += 1
        if self.eager:
            member.give_back()
        flow = entry.run(ready, member)
        if entry.closed:
            # Who has closed it meanwhile has not waited for this thread.
            flow = DONE
        if flow == WAIT and entry.lasts:
            return
        if not entry.lasts:
            entry.end()
        else:
            # Inside its own handler it may have been closed, and completed, already.
            self._complete(entry, token, flow)
        if member.interrupt is not None:
            raise member.interrupt

    def as_task(self, event: Event) -> Any:
        """A timer's event, to be run by whoever is free."""

        def run(_: list[int]) -> None:
            member = current()
            if member is not None:
                self.handle(event, member)

        return _Deferred(), run, (), None

    # --- hosts and the end -----------------------------------------------------------------------

    def take_part(self, seconds: Optional[float]) -> int:
        """What ``Pool.join`` does: this thread is a member until something was done or time is up."""
        if current() is not None:
            raise error_inside("join")
        books = [0, 0, 0, 0]
        self.books.append(books)
        member = Member(self, self.puller(), books)
        try:
            self._join(member)
            return self._take_part(member, seconds)
        finally:
            # Before any call, after which a handler of a signal may raise.
            _here.member = None
            self._leave(member)
            self.fold(books)

    def _take_part(self, member: Member, seconds: Optional[float]) -> int:
        end = None if seconds is None else monotonic() + seconds
        try:
            while True:
                ran = self.run_tasks(member.books, TASKS_PER_POLL)
                over = ran > 0 or end is not None and monotonic() >= end
                goes_on = self.poll(member) if over else self.rest_as(member, self._host_wait(end))
                ran += len(member.surplus)
                self.run_events(member)
                if ran or not goes_on or over:
                    return ran
        finally:
            self.announce_host()

    def attend(self, what: threading.Thread) -> None:
        """In a pool without threads: this one is a member as long as that one runs."""
        books = [0, 0, 0, 0]
        self.books.append(books)
        member = Member(self, self.puller(), books)
        try:
            self._join(member)
            # From its first pull on a drain waits for this thread.
            goes_on = self.poll(member)
            what.start()
            while what.is_alive():
                self.run_events(member)
                self.run_tasks(books, TASKS_PER_POLL)
                goes_on = goes_on and self.rest_as(member, _PATIENCE_NS)
                if not goes_on:
                    what.join(PATIENCE)
        finally:
            _here.member = None
            self._leave(member)
            self.fold(books)

    def announce_host(self) -> None:
        """In a pool without threads an announcement stands for the host, so that tasks call it."""
        if self.most == 0:
            if not self.asleep:
                self.asleep.append(None)
            if self.tasks and not self.calling:
                self.call()

    def _host_wait(self, end: Optional[float]) -> int:
        """Nanoseconds. The main thread looks for signals now and then, which a native wait hides."""
        slice_ = SIGNAL_SLICE if threading.current_thread() is threading.main_thread() else None
        left = None if end is None else max(0.0, end - monotonic())
        waits = [each for each in (left, slice_) if each is not None]
        return int(min(waits) * 1e9) if waits else layout.FOREVER

    def exit(self) -> None:
        """The interpreter ends: what has not begun is cancelled, which is told, and events end."""
        self.draining = False
        self.close("exit")
        try:
            cancelled = self.stop()
            if cancelled:
                tell_unrun(cancelled, "pool", self._name)
        except BaseException as raised:
            report("a callback was left by an exception", raised=raised)

    def drain(self) -> None:
        """Nothing new is accepted. Threads go on until ``stop``."""
        self.draining = True
        self.close("shutdown")

    def is_through(self) -> bool:
        """Whether all that was accepted has ended, and every thread is where a drain waits for it."""
        with self._lock:
            started, completed, failed, cancelled = (sum(column) for column in zip(*self.books))
            here = len(self.members) >= sum(thread.is_alive() for thread in self.threads)
        return here and self.accepted.value() <= completed + failed + cancelled

    def drain_natively(self, drain: int) -> None:
        """Waits until what stands on the pool has ended: servers, worker pools, hubs. It runs without Python, so
        the main thread, which has signals to look at, and one that takes part itself, have another thread wait."""
        if self.ended is not None or self.closed == "forked":
            return

        def end() -> None:
            self.ended = self.native.shutdown(drain)

        on_main = threading.current_thread() is threading.main_thread()
        if self.threads and not on_main:
            return end()
        apart = threading.Thread(name=f"{self._name}_drain", target=end)
        try:
            if not self.threads:
                return self.attend(apart)
            apart.start()
        except RuntimeError:
            # There are no more threads, or the interpreter ends.
            return end()
        while apart.is_alive():
            apart.join(SIGNAL_SLICE)

    def drain_servers(self, left: Optional[float]) -> None:
        """Has all servers answer what they have taken, for up to so many seconds; then they are cut off."""

        def drain(part: Part) -> None:
            cut_off = part.drain_connections(left)
            with self._lock:
                self.connections += cut_off

        apart = []
        for part in list(self.parts):
            if part.serves():
                thread = threading.Thread(name=f"{self._name}_drain", target=drain, args=(part,))
                try:
                    thread.start()
                except RuntimeError:
                    # There are no more threads, or the interpreter ends.
                    drain(part)
                else:
                    apart.append(thread)
        self.await_until(lambda: not any(thread.is_alive() for thread in apart), None)

    def await_until(self, over: Callable[[], bool], end: Optional[float]) -> None:
        """Waits for something, or ``end``; in a pool without threads this one takes part meanwhile."""
        while self.closed != "forked" and not over():
            if end is not None and monotonic() >= end:
                return
            if not any(thread.is_alive() for thread in self.threads) and self.ended is None:
                try:
                    self.take_part(PATIENCE)
                except Full:
                    time.sleep(PATIENCE)
            else:
                time.sleep(PATIENCE)

    def stop(self) -> int:
        """Cancels what has not begun and ends the native pool; says how many were cancelled."""
        self.draining = False
        try:
            return self.sweep()
        finally:
            last = self.native.shutdown()
            if self.ended is None:
                self.ended = last
            else:
                # Host threads may have taken since what was left.
                self.ended.left, self.ended.drained = last.left, last.drained
            parts = list(self.parts)
            if self.left is None:
                self.left = last.left + sum(part.left() for part in parts)
            for part in parts:
                part.end_handlers()
            for entry in list(self.entries.values()):
                entry.closed = True
                entry.end()


class NormalReserve(Members):
    """Members of which some are reserved for NORMAL: what others do for nothing, a plain submission has to call them."""

    def add(self, task: Task) -> None:
        super().add(task)
        self._call_reserved(1)

    def add_batch(self, tasks: list[Task]) -> None:
        super().add_batch(tasks)
        self._call_reserved(len(tasks))

    def _call_reserved(self, tasks: int) -> None:
        for reserve in self.reserves:
            if reserve.lane is Lane.NORMAL:
                reserve.call(tasks)


class _Deferred:
    """In the place of a job: one timer's event."""

    def sweep(self, *_: object) -> int:
        return 0

    def waiting(self) -> int:
        return 0


#: How long the main thread stays away from Python's signal handlers at most. Seconds.
SIGNAL_SLICE = 0.1

_PATIENCE_NS = int(PATIENCE * 1e9)


def _giving_back(call: Callable[[int], object]) -> Callable[[int], object]:
    """For a handler that may block: others have what waits behind it."""

    def giving_back(ready: int) -> object:
        member = current()
        if member is not None:
            member.give_back()
        return call(ready)

    return giving_back


def error_inside(what: str) -> Exception:
    """For what would wait for itself."""
    return DeadlockError(f"{what} was called inside a handler or task of a pool")
