"""Attempts whose functions are coroutines (``async def``): they run on an event loop.

The loop is the worker pool's own, on one thread that is made for the first of them, or the program's. A thread of the
pool that takes such an attempt hands it over and goes on; it is completed on the loop's thread when the coroutine has ended.

    host thread: take ──► begin ──► loop: the coroutine ──► complete ──► the Task has its end
                                      ▲ cancel: the task was cancelled or has ended, its time is over, the pool stops

Invariants
1. A Run is in ``running`` until its attempt is completed, and whoever finds that the loop is closed completes it: who
   hands over looks after it has put it there, the loop's thread after it has closed the loop.
2. Whatever a coroutine raises, its attempt is completed, and the loop of the pool goes on. A loop of the program's has
   KeyboardInterrupt and SystemExit afterwards.
3. The pool's own loop ends when all is over and nothing runs, whatever stops it before.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from . import _layout as layout
from ._attempt import coroutine
from ._clock import monotonic
from ._completer import END, ONE, TOKEN, Completer, Job
from ._contain import interrupts, report, without_frame
from ._errors import Error
from ._hosts import serve_here
from ._middleware import through_coroutine

if TYPE_CHECKING:
    from ._worker_pool import Core
else:
    Core = Any

#: How often it is asked during a shutdown which attempts are to stop. Seconds.
_LOOK = 0.05
#: Before an attempt whose time seems to be over is looked at again. Seconds.
_SHORTEST = 0.001
#: How long tasks that coroutines have left on the pool's own loop may take to end when it ends. Seconds.
_LEFT = 1.0


class Run(Completer):
    """One attempt of a coroutine."""

    def __init__(self, coroutines: Coroutines, taker: Completer, job: Job, token: int) -> None:
        super().__init__(coroutines.core)
        self.coroutines = coroutines
        self.job = job
        self.number, self.attempt, self.id = taker.number, taker.attempt, taker.id
        self.began = taker.began
        self.over = False
        self._token = token
        self._holder = job[0]
        self._task: Optional[asyncio.Task[None]] = None
        self._started = self._asked = False

    # --- on the loop's thread ----------------------------------------------------------------------

    def is_here(self) -> bool:
        """Whether its coroutine is what runs now, and not another one that it has begun."""
        return self._task is not None and asyncio.current_task() is self._task

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has the coroutine run."""
        if self.over:
            return
        if self._holder.asked or self.core.jobs.get(self._token) is not self.job:
            # Its task was cancelled, or has ended, before this could be told.
            self._asked = True
        run = self._run()
        try:
            self._task = loop.create_task(run)
            self._task.add_done_callback(self._done)
            self._look(loop)
        except BaseException as refused:
            run.close()
            self._failed(refused)

    async def _run(self) -> None:
        job = self.job
        self._started = True
        if job is None:
            return
        task, function, arguments, keywords, _ = job
        try:
            if self._asked:
                raise asyncio.CancelledError
            coroutine.set(self)
            task.worker = threading.current_thread().name
            layers = self.core.middleware
            if layers:
                call = partial(function, *arguments, **keywords)
                value = await through_coroutine(layers, self.current(job), call, self.let_out)
            else:
                value = await function(*arguments, **keywords)
        except BaseException as raised:
            self._failed(without_frame(raised))
            if interrupts(raised):
                self.let_out(raised)
            return
        self._succeeded(task, value)

    def _done(self, run: asyncio.Task[None]) -> None:
        if not run.cancelled():
            # It has been dealt with; asyncio is told so.
            run.exception()
        if not self.over:
            # It was cancelled before its first step.
            self._failed(asyncio.CancelledError())

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancels it if its time is over, and else looks again then."""
        job = self.job
        if self.over or job is None:
            return
        left = self.current(job).time_left()
        if left is None:
            return
        if left > 0 or not self.look():
            loop.call_later(max(left, _SHORTEST), self._look, loop)

    def look(self) -> bool:
        """Cancels it if it is to give up; whether it is."""
        job = self.job
        if self.over or job is None or self._asked:
            return True
        if self.current(job).cancelled:
            self._cancel()
        return self._asked

    def _cancel(self) -> None:
        """Once: a coroutine that goes on all the same is not asked again."""
        if self.over or self._asked:
            return
        self._asked = True
        if self._started and self._task is not None:
            self._task.cancel()

    def _succeeded(self, task: Any, value: Any) -> None:
        self.over = True
        coroutines, core = self.coroutines, self.core
        coroutines.completed += 1
        try:
            TOKEN.pack_into(self._end, 0, self.attempt)
            if self._complete(core.queue.pointer, self._end, ONE) == layout.OK:
                core.jobs.pop(self._token, None)
                task._outcome = value
                if task._lock is not None:
                    task.succeed(value)
        except BaseException as raised:
            self._contain(raised)
        finally:
            self._end_here()

    def _failed(self, raised: BaseException) -> None:
        self.over = True
        self.coroutines.failed += 1
        self._complete_failed(raised)

    def _complete_failed(self, raised: BaseException) -> None:
        try:
            self.fail(self._token, raised, "")
        except BaseException as failure:
            self._contain(failure)
        finally:
            self._end_here()

    def _end_here(self) -> None:
        task, self.job = self._holder, None
        if task.run is self:
            task.run = None
        self.coroutines.gone(self)

    def _contain(self, raised: BaseException) -> None:
        report("a callback of a task was left by an exception", raised=raised)

    # --- on any thread -----------------------------------------------------------------------------

    def let_out(self, raised: BaseException) -> None:
        """Raises what interrupts, if the loop is the program's."""
        if interrupts(raised) and not self.coroutines.is_own:
            raise raised

    def cancel(self) -> None:
        """Its task was cancelled, or has ended."""
        self.coroutines.tell(self._cancel)

    def lose(self) -> None:
        """There is no loop that it could run on, or go on."""
        if not self.over:
            self.over = True
            self._complete_failed(Error("the event loop of its worker pool is closed"))


class Coroutines:
    """The attempts of a worker pool that run on an event loop. Any thread."""

    def __init__(self, core: Core, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        self.core = core
        #: Whether the loop is of the pool's making.
        self.is_own = loop is None
        self._loop = loop
        self._lock = threading.RLock()
        #: By their attempts.
        self.running: dict[int, Run] = {}
        self._closing = self._ending = False
        #: The pool's own loop runs nothing more.
        self._ended = False
        #: For statistics: as those of a thread, whose attempts overlap.
        self.worker = f"{core.name}_loop"
        self.made = monotonic()
        self.busy_since: Optional[float] = None
        self.busy = 0.0
        self.completed = self.failed = 0

    def begin(self, taker: Completer, job: Job, token: int) -> None:
        """Runs the attempt that this thread has taken."""
        run = Run(self, taker, job, token)
        self.running[run.attempt] = job[0].run = run
        if self.busy_since is None:
            self.busy_since = monotonic()
        try:
            loop = self._open()
            loop.call_soon_threadsafe(run.start, loop)
        except RuntimeError:
            # It is closed, or there can be no thread for it.
            run.lose()

    def _open(self) -> asyncio.AbstractEventLoop:
        loop = self._loop
        if loop is None:
            with self._lock:
                loop = self._loop
                if loop is None:
                    loop = self._loop = asyncio.new_event_loop()
                    name = self.worker
                    thread = threading.Thread(name=name, target=self._serve, args=(loop,))
                    try:
                        thread.start()
                    except BaseException:
                        loop.close()
                        raise
                    self.core.threads.append(thread)
                    if self._closing:
                        loop.call_soon_threadsafe(self._watch)
        return loop

    def gone(self, run: Run) -> None:
        """Its attempt is completed."""
        self.running.pop(run.attempt, None)
        if not self.running:
            since, self.busy_since = self.busy_since, None
            if since is not None:
                self.busy += monotonic() - since
            if self._ending:
                self.tell(self._stop)

    def is_inside(self) -> bool:
        """Whether this is called in one of its coroutines."""
        run = coroutine.get()
        return run is not None and run.core is self.core and not run.over

    def has_ended(self) -> bool:
        """Whether no coroutine will run any more."""
        return self._is_over()

    def close(self) -> None:
        """A shutdown begins: from now on it is seen which attempts are to stop."""
        if not self._closing:
            self._closing = True
            self.tell(self._watch)

    def end(self) -> None:
        """All is over: the loop ends when nothing runs."""
        self._ending = True
        self.tell(self._stop)

    def end_within(self, nanoseconds: int) -> list[str]:
        """The same, and waits for up to so long until nothing runs. The names of what does all the same."""
        self.end()
        end = monotonic() + nanoseconds / 1e9
        while self.running and monotonic() < end:
            time.sleep(_SHORTEST)
        jobs = [run.job for run in list(self.running.values())]
        return [job[4].name for job in jobs if job is not None]

    def tell(self, callback: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # It is closed: nobody else completes what is there.
            self._lose_all()

    def _lose_all(self) -> None:
        for run in list(self.running.values()):
            run.lose()

    # --- on the loop's thread ----------------------------------------------------------------------

    def _watch(self) -> None:
        for run in list(self.running.values()):
            run.look()
        if self._loop is not None and not self._is_over():
            self._loop.call_later(_LOOK, self._watch)

    def _stop(self) -> None:
        if self.is_own and self._is_over() and not self._ended and self._loop is not None:
            self._loop.stop()

    def _is_over(self) -> bool:
        return self._ending and not self.running

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """The pool's own thread for coroutines. Whatever stops the loop, it goes on until all is over."""
        serve_here(self.core)
        asyncio.set_event_loop(loop)
        while not self._is_over() and not loop.is_closed():
            try:
                loop.run_forever()
            except BaseException as raised:
                report("the event loop of %s goes on after an exception", self.core.name, raised=raised)
        self._ended = True
        for clear in (_cancel_left, _close_generators):
            try:
                loop.run_until_complete(clear(loop))
            except BaseException as raised:
                report("the event loop of %s has not ended in order", self.core.name, raised=raised)
        try:
            loop.close()
        finally:
            self._lose_all()


async def _cancel_left(loop: asyncio.AbstractEventLoop) -> None:
    """Ends what coroutines have left on a loop."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for each in left:
        each.cancel()
    if left:
        await asyncio.wait(left, timeout=_LEFT)


async def _close_generators(loop: asyncio.AbstractEventLoop) -> None:
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
