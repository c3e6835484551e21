"""The Python threads behind an Executor or a Pool, and how they sleep and are woken.

The problem: a token through the native pool for every task would cost more than an empty task. So
tasks lie in a deque on Python's side, whose ``append`` and ``popleft`` are atomic, and a native token
is posted only when somebody sleeps and nobody has been called yet. A thread without work sleeps in
``pace_cq_wait``, which lets go of the interpreter's lock.

    submit:  append the task            thread:  popleft, run, until there is nothing
             asleep and not calling?             announce: append to asleep
               pop one of asleep                 look at the deque once more
               post a token            ───────►  pull, calling = False, look again

Invariants
1. Whoever appends a task looks at ``asleep`` afterwards; whoever announces itself looks at the tasks
   afterwards. One of the two sees the other.
2. Announcements and tokens are anonymous: of those between announcing and coming back, each has its
   announcement in ``asleep`` or a token on its way. Tokens too many only wake somebody for nothing.
3. ``calling`` means that a token is on its way. Whoever takes it clears ``calling`` before it looks
   at the tasks; whoever finds nobody to call clears it and looks at both once more. So who skips the
   call because of it relies on somebody who looks later.
4. A task that is accepted runs: ``closed`` is looked at after appending too, and the task is taken
   back, unless a thread has taken it already. Threads look at ``closed`` before the deque.
5. Threads know the runner only, never what stands before it, so that a lost Executor is collected.
6. No thread of the runner ends by what code of the user raises: its future has it, or the hook, or the log. A
   thread of the user's that takes part has KeyboardInterrupt and SystemExit besides, once the books are right.

All of this holds where single operations on deques and attributes are atomic and seen in one order,
as under the interpreter's lock and, by their own locks, in free-threaded builds.
"""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures._base import LOGGER
from concurrent.futures.thread import BrokenThreadPool
from typing import Any, Optional, Protocol

from . import _layout as layout
from . import _lifetime
from ._arguments import text
from ._contain import interrupts, keep, report, traceback_of, without_frame
from ._errors import Error, ForkedError
from ._future import Mark
from ._native import EVENT, FOREVER, NativePool, Puller, pool_config

#: Columns of a thread's books.
STARTED, COMPLETED, FAILED, CANCELLED = range(4)

#: How many tasks a thread runs before it looks at events.
TASKS_PER_POLL = 32

#: How a pool's hook hears of what was raised and has no future to go to.
Unhandled = Callable[[BaseException], object]


#: How long a thread pauses after something unexpected, which may last. Seconds.
_PAUSE = 0.01

#: Which runner this thread belongs to.
_here = threading.local()


def report_unhandled(exception: BaseException) -> None:
    """Hands it to ``threading.excepthook``, as if it had ended this thread. That leaves SystemExit out, so the
    log has it, and what makes the hook fail. Raises nothing."""
    if issubclass(type(exception), SystemExit):
        report("a task or handler was left by an exception", raised=exception)
        return
    trace = traceback_of(exception)
    try:
        keep("a task or handler was left by an exception", raised=exception)
        arguments = (type(exception), exception, trace, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(arguments))
    except BaseException as failure:
        report("a task or handler was left by an exception", raised=exception)
        report("threading.excepthook has failed", raised=failure)


class Posted:
    """Stands in a task where a future would: nobody waits for it, and nobody attaches."""

    __slots__ = ("_outcome", "_unhandled")

    _lock = None

    def __init__(self, unhandled: Callable[[BaseException], None]) -> None:
        self._unhandled = unhandled

    def fail(self, exception: BaseException) -> None:
        self._unhandled(exception)

    def cancel(self) -> bool:
        return True

    def set_running_or_notify_cancel(self) -> bool:
        return False


#: Who waits, what to call, and with what. Without keywords (None) it is a job: it is called with the
#: thread's books, keeps them itself, raises nothing, and may return how many tasks more than one it
#: ran. Who waits is a Future, a Posted, or the job.
Outcome = Any
Task = tuple[Outcome, Callable[..., Any], tuple[Any, ...], Optional[dict[str, Any]]]


class Job(Protocol):
    """What several threads share."""

    def waiting(self) -> int:
        """How many of its items nobody has taken."""
        ...

    def sweep(self, exception: Optional[BaseException], late: list[BaseException]) -> int:
        """Cancels, or fails, those; says how many. What callbacks interrupt this thread with is to be raised
        when all is swept."""
        ...


def has_lock() -> bool:
    """Whether the interpreter has a lock, so that single operations of its own types are atomic."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


class Tally:
    """Counts without a lock where the interpreter has one. Any thread, also inside of another count."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._several = 0
        self._count = itertools.count()
        self.one: Callable[[], object] = self._count.__next__
        if not has_lock():
            self.one = lambda: self.several(1)

    def renew(self) -> None:
        """In a child made by fork."""
        self._lock = threading.RLock()

    def several(self, count: int) -> None:
        with self._lock:
            self._several += count

    def value(self) -> int:
        # A count shows where it stands, and only that way without counting.
        seen = int(repr(self._count)[len("count(") : -1])
        return seen + self._several


class Runner:
    """Up to ``most`` threads and the tasks that they share."""

    def __init__(
        self,
        most: int,
        name: str,
        native: Optional[NativePool] = None,
        initializer: Optional[Callable[..., object]] = None,
        initargs: tuple[Any, ...] = (),
        unhandled: Optional[Unhandled] = None,
    ) -> None:
        self.tasks: deque[Task] = deque()
        #: What has tasks of its own waiting, also while a thread has its entry of the deque in hand.
        self.sources: set[Job] = set()
        self.asleep: deque[None] = deque()
        self.calling = False
        #: The threads that are about to wake a sleeper.
        self.callers: set[int] = set()
        #: Why nothing is accepted any more: "shutdown", "exit", "broken", "forked".
        self.closed: Optional[str] = None
        self.threads: set[threading.Thread] = set()
        #: How many threads may still be made.
        self.missing = most
        self.accepted = Tally()
        self.rejected = 0
        self.unhandled = 0
        self.books: list[list[int]] = []
        self._on_unhandled = report_unhandled if unhandled is None else unhandled
        self.most = most
        self._name = name
        self._native = native
        self._initializer = initializer
        self._initargs = initargs
        # Guards threads, closed, and the counts of what is rare. Never held while a task runs.
        # Re-entrant, because collecting garbage may close a runner at any place.
        self._lock = threading.RLock()
        self._swept = [0, 0, 0, 0]
        self.books.append(self._swept)
        if not _lifetime.enlist(self):
            self.closed = "exit"

    # --- by whoever has work ---------------------------------------------------------------------

    def rejected_by(self, refusal: Exception) -> Exception:
        """Counts a task that is refused for this."""
        with self._lock:
            self.rejected += 1
        return refusal

    def refusal(self) -> Exception:
        """Why nothing is accepted, as the standard library says it."""
        return self.rejected_by(self._why_not())

    def _why_not(self) -> Exception:
        if self.closed == "broken":
            return BrokenThreadPool(_BROKEN)
        if self.closed == "forked":
            return ForkedError("the pool belongs to the process that this one was forked from")
        when = "interpreter shutdown" if self.closed == "exit" else "shutdown"
        return RuntimeError("cannot schedule new futures after " + when)

    def add(self, task: Task) -> None:
        """Takes a task in, or raises why not. ``Executor.submit`` has this spelled out."""
        if self.closed is not None:
            raise self.refusal()
        self.tasks.append(task)
        self.accepted.one()
        if self.closed is not None:
            self.withdraw([task], self.tasks)
        if self.asleep:
            if not self.calling:
                self.call()
        elif self.missing:
            self.grow([task])
        if self.callers:
            self.call_again()

    def add_batch(self, tasks: list[Task]) -> None:
        """Takes tasks in, in order, or raises why not."""
        if self.closed is not None:
            raise self.refusal()
        self.tasks.extend(tasks)
        self.accepted.several(len(tasks))
        if self.closed is not None:
            self.withdraw(tasks, self.tasks)
        self.call_for(len(tasks), tasks)

    def add_job(self, job: Task, hands: int, items: int) -> None:
        """Takes in a job that up to ``hands`` threads can share."""
        if self.closed is not None:
            raise self.refusal()
        self.accepted.several(items)
        self.tasks.extend([job] * min(hands, self.most))
        if self.closed is not None:
            self.sweep()
            raise self.refusal()
        try:
            self.call_for(hands, [job] * hands)
        except Exception:
            self.accepted.several(min(hands, self.most) - items)
            raise

    def grow(self, added: Sequence[Task]) -> bool:
        """Makes one more thread, if there may be one, for what was added. Raises why it cannot, if there is no thread: then
        nobody runs what was added. Otherwise those that there are do."""
        try:
            return self.spawn()
        except Exception as refused:
            if self.threads or not self.take_back(added, self.tasks):
                return False
            self.rejected_by(refused)
            raise

    def call_for(self, count: int, added: Sequence[Task] = ()) -> None:
        """Sees to it that somebody comes for ``count`` new tasks; who comes calls the next. Raises as ``grow``."""
        while self.missing and len(self.asleep) < count:
            count -= 1
            if not self.grow(added):
                break
        if self.asleep and not self.calling:
            self.call()
        if self.callers:
            self.call_again()

    def withdraw(self, added: list[Task], line: deque[Task]) -> None:
        """The runner was closed while tasks were added: takes back what no thread has (invariant 4)."""
        if self.take_back(added, line):
            raise self.refusal()

    def take_back(self, added: Sequence[Task], line: deque[Task]) -> int:
        """Takes out again what no thread has; says how many."""
        taken_back = 0
        for task in added:
            try:
                line.remove(task)
                taken_back += 1
            except ValueError:
                pass
        self.accepted.several(-taken_back)
        return taken_back

    def fold(self, books: list[int]) -> None:
        """Adds the books of a thread that was here for a while to those of nobody's."""
        with self._lock:
            for column, count in enumerate(books):
                self._swept[column] += count
            # By identity: others' may be equal. New ones come at the end, so the place stays right.
            place = next(place for place, each in enumerate(self.books) if each is books)
            del self.books[place]

    def cancelled(self, count: int) -> None:
        """Enters tasks that were cancelled by others than threads into the books."""
        with self._lock:
            self._swept[STARTED] += count
            self._swept[CANCELLED] += count

    def call(self) -> None:
        """Wakes one sleeper (invariant 3)."""
        me = threading.get_ident()
        nested = me in self.callers
        try:
            self.callers.add(me)
            while True:
                self.calling = True
                try:
                    self.asleep.pop()
                except IndexError:
                    self.calling = False
                    if not (self.tasks and self.asleep):
                        break
                else:
                    self.native.wake()
                    break
        except BaseException:
            # A handler of a signal has raised: there may be no token on its way.
            self.native.wake()
            raise
        finally:
            if not nested:
                self.callers.discard(me)

    def call_again(self) -> None:
        """A finalizer or a signal handler has work, perhaps in the midst of a call, whose token is not on its way
        before that goes on: it is called for apart."""
        if threading.get_ident() in self.callers:
            self.native.wake()

    def call_all(self) -> None:
        """Wakes every sleeper, to look at ``closed``."""
        while True:
            try:
                self.asleep.pop()
            except IndexError:
                return
            self.native.wake()

    @property
    def native(self) -> NativePool:
        """The native pool. The first thread that is made, or the owner, has made it."""
        assert self._native is not None
        return self._native

    def spawn(self) -> bool:
        """Makes one more thread, if there may be one. Raises RuntimeError: the system has none; UnsupportedError."""
        _lifetime.check_threads()
        with self._lock:
            if not self._may_spawn():
                return False
            if self._native is None:
                # One more than the threads: a host that joins for a while.
                config = pool_config()
                config.name = text("name", self._name)
                # Without descriptors and timers a thread without work sleeps on a futex.
                config.source = layout.SOURCE_RING
                native = NativePool(self.most + 1, config)
                self._native = self._native or native
            number: list[int] = []
            thread = threading.Thread(target=self._serve, args=(number,))
            # A finalizer or a signal handler may have come here in the midst of that, and made the last one.
            if not self._may_spawn():
                return False
            self.missing = missing = self.missing - 1
            try:
                number.append(self.most - 1 - missing)
                thread.name = f"{self._name}_{number[0]}"
                thread.start()
            except BaseException:
                self.missing += 1
                raise
            self.threads.add(thread)
            return True

    def _may_spawn(self) -> bool:
        if not self.missing or self.closed is None:
            return self.missing > 0
        # What was accepted just before it was closed runs, also if there is no thread yet.
        return self.closed == "shutdown" and not self.threads and len(self.tasks) > 0

    def unhandled_in(self, exception: BaseException) -> None:
        """Counts and reports what nobody waits for. The hook's own failure goes to the default."""
        with self._lock:
            self.unhandled += 1
        if self._on_unhandled is not report_unhandled:
            keep("a task or handler was left by an exception", raised=exception)
        try:
            self._on_unhandled(exception)
        except BaseException as failure:
            report_unhandled(failure)

    def is_own(self) -> bool:
        """Whether this is one of the runner's threads, and not one of the user's."""
        return getattr(_here, "runner", None) is self

    def contain(self, outcome: Outcome, raised: BaseException) -> None:
        """What was raised where an outcome was handed on. A thread of the user's has what interrupts."""
        if interrupts(raised) and not self.is_own():
            raise raised
        if issubclass(type(raised), Exception):
            # Somebody else may have ended it.
            report("Exception in worker", raised=raised, level=logging.CRITICAL, logger=LOGGER)
        else:
            report("exception calling callback for %s", outcome, raised=raised, logger=LOGGER)

    # --- the end ---------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Accepts nothing any more. What is accepted still runs, and the threads end after it."""
        with self._lock:
            if self.closed is None or why == "broken":
                self.closed = why
        if self._native is not None:
            self.call_all()
        if self.callers:
            # This may be in the midst of a call: the sleeper that was taken for it has no token yet, and may be waited for.
            self.call_again()

    def exit(self) -> None:
        """The interpreter ends: what is pending runs. Raises nothing."""
        self.close("exit")

    def forked(self) -> None:
        self.closed = "forked"
        self.missing = 0
        # A thread that is gone may have held them.
        self._lock = threading.RLock()
        self.accepted.renew()

    def join(self, timeout: Optional[float] = None) -> bool:
        """Waits until the threads have ended; False: they have not in that time."""
        for thread in list(self.threads):
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self.threads)

    def sweep(self, exception: Optional[BaseException] = None) -> int:
        """Cancels what nobody has taken yet, or fails it; says how many. What a callback interrupts with is
        raised when all is swept."""
        late: list[BaseException] = []
        swept = self.sweep_line(self.tasks, exception, late)
        for source in self.sources.copy():
            swept += source.sweep(exception, late)
        with self._lock:
            self._swept[STARTED] += swept
            self._swept[CANCELLED if exception is None else FAILED] += swept
        if late:
            raise late[0]
        return swept

    def sweep_line(
        self, line: deque[Task], exception: Optional[BaseException], late: list[BaseException]
    ) -> int:
        """Cancels, or fails, what lies there, and what its jobs hold; says how many."""
        swept = 0
        while True:
            try:
                outcome, _, _, keywords = line.popleft()
            except IndexError:
                return swept
            if keywords is None:
                swept += outcome.sweep(exception, late)
                continue
            swept += 1
            try:
                _end_unrun(outcome, exception)
            except BaseException as raised:
                try:
                    self.contain(outcome, raised)
                except BaseException as interrupt:
                    late.append(interrupt)

    # --- the threads -----------------------------------------------------------------------------

    def _serve(self, number: list[int]) -> None:
        """What a thread does from its start to its end. ``number`` has the thread's, from 0."""
        self.enter()
        if self._initializer is not None:
            try:
                self._initializer(*self._initargs)
            except BaseException as raised:
                report("Exception in initializer:", raised=raised, level=logging.CRITICAL, logger=LOGGER)
                self.close("broken")
                self.sweep(BrokenThreadPool(_BROKEN))
                return
        books = [0, 0, 0, 0]
        self.books.append(books)
        puller = self.puller()
        while True:
            try:
                self.work(books, puller)
                return
            except BaseException as raised:
                report("Exception in worker", raised=raised, level=logging.CRITICAL, logger=LOGGER)
                if issubclass(type(raised), Error):
                    # The native pool has refused to be pulled from.
                    return
                time.sleep(_PAUSE)

    def enter(self) -> None:
        """From now on the current thread is one of the runner's."""
        _here.runner = self

    def puller(self) -> Puller:
        """A thread's own way to the native pool."""
        return Puller(self.native.queue, EVENT, 1)

    def work(self, books: list[int], puller: Puller) -> None:
        """Runs tasks, and sleeps when there are none, until the runner is closed."""
        while True:
            self.run_tasks(books)
            if not self.rest(puller):
                return

    def run_tasks(
        self, books: list[int], most: int = sys.maxsize, take: Optional[Callable[[], Task]] = None
    ) -> int:
        """Runs up to ``most`` tasks, from the deque or as ``take`` gives them (IndexError: no more);
        says how many. A job counts for what it ran, so it may be more."""
        tasks, asleep = self.tasks, self.asleep
        popleft = take or tasks.popleft
        runs = Mark(threading.get_ident())
        ran = 0
        while ran < most:
            try:
                outcome, function, arguments, keywords = popleft()
            except IndexError:
                break
            ran += 1
            if tasks and asleep and not self.calling:
                self.call()
            try:
                if keywords is None:
                    ran += function(books) or 0
                else:
                    books[STARTED] += 1
                    # The future's protocol, in place: write, then look whether anybody cares.
                    outcome._outcome = runs
                    if outcome._lock is not None and not outcome.claim_attached():
                        books[CANCELLED] += 1
                        outcome.set_running_or_notify_cancel()
                    else:
                        try:
                            result = function(*arguments, **keywords)
                        except BaseException as exception:
                            books[FAILED] += 1
                            self._fail(outcome, exception)
                        else:
                            books[COMPLETED] += 1
                            outcome._outcome = result
                            if outcome._lock is not None:
                                outcome.succeed_attached(result)
                            result = None
            except BaseException as raised:
                result = None
                self.contain(outcome, raised)
            # While this thread sleeps nothing is kept alive by it.
            outcome = function = arguments = keywords = None  # type: ignore[assignment]
        return ran

    def _fail(self, outcome: Outcome, exception: BaseException) -> None:
        """Hands an exception on, without the frame of the thread's loop, which would live as long."""
        without_frame(exception)
        interrupting = interrupts(exception) and not self.is_own()
        if not (interrupting and type(outcome) is Posted):
            outcome.fail(exception)
        if interrupting:
            raise exception

    def rest(self, puller: Puller) -> bool:
        """Sleeps until there may be something; False: there never will be."""
        if self.closed is not None and not self.tasks:
            return False
        self.asleep.append(None)
        if self.tasks or self.closed is not None:
            # Somebody came between (invariant 1). Who finds no announcement has a token coming.
            try:
                self.asleep.pop()
                return True
            except IndexError:
                pass
        if puller.pull(FOREVER) < 0:
            return False
        # Nothing else is posted here but what wakes.
        puller.entries.clear()
        self.calling = False
        return True


_BROKEN = "A thread initializer failed, the thread pool is not usable anymore"


def _end_unrun(outcome: Outcome, exception: Optional[BaseException]) -> None:
    """Cancels what no thread has taken, or fails it."""
    if exception is None:
        try:
            outcome.cancel()
        finally:
            # Tells those who wait for several.
            outcome.set_running_or_notify_cancel()
        return
    outcome._outcome = Mark(threading.get_ident())
    if outcome._lock is None or outcome.claim_attached():
        outcome.fail(exception)
    else:
        outcome.set_running_or_notify_cancel()
