"""Tasks that lie beside the runner's deque: in the lanes, and in strands.

The problem: threads take tasks from one deque, and what a plain submission costs must not grow by a
choice of lanes. So whatever has tasks of its own, a *source*, puts an entry into the deque, for a
thread to come upon: a strand's at the back, so that it waits its turn, and the lanes' at the front,
so that no task begins without a look at them.

    put:   append to the line             thread:  takes the entry out of the deque
           idle? then not any more                 lanes:   take one task, put the entry back, run it
             the entry into the deque              strand:  run some, put the entry back
                                                   nothing left: idle, look at the line once more

Invariants
1. A source's entry is in the deque, or in the hands of one thread, or ``_idle`` holds None. Whoever
   pops that None puts the entry there. For a strand this is what makes it serial; nobody waits.
2. Who puts looks at ``_idle`` afterwards; who becomes idle looks at the lines afterwards. One of the
   two sees the other.
3. A line and the entry change together under ``_lock``: who has put has an entry that others can see,
   or a thread that is not done, so what was accepted before a shutdown is seen by it. Re-entrant, as
   collecting garbage may put at any place; hence ``_idle`` is popped, not read and then written.
4. In ``runner.sources`` is who is not idle: there a sweep and the books find also what lies behind a
   task that runs. A child made by fork is refused before the lock, which a lost thread may hold.
"""

from __future__ import annotations

import threading
from collections import deque
from enum import IntEnum
from typing import Optional

from ._runner import TASKS_PER_POLL, Runner, Task


class Lane(IntEnum):
    """How urgent a task is. In a lane tasks start in the order in which they were accepted. The higher
    lane is preferred and never starves the lower."""

    #: Before everything else: for the few tasks that others wait for.
    CRITICAL = 0
    #: Before ordinary tasks, but for their turns.
    HIGH = 1
    #: Ordinary work, and where tasks go that name no lane.
    NORMAL = 2
    #: What can wait while there is anything else to do.
    LOW = 3


class Turns:
    """When a lower lane comes before higher ones, so that it does not starve; as in the native pool.

    After 8 tasks of CRITICAL up to 5 of HIGH have their turn, after 13 of these two up to 3 of NORMAL, and after 15 of
    all others one of LOW. HIGH and NORMAL gain and lose one by turns.
    """

    def __init__(self) -> None:
        #: Tasks of the lanes above that were taken, and then those of the lane in its turn.
        self._counts = [0, 0, 0, 0]
        self._odd = 0

    def take(self, lines: tuple[deque[Task], ...]) -> Task:
        """The next task of all lanes. Raises IndexError: they are empty."""
        first = self._due()
        for lane in Lane if first is None else (first, *Lane):
            try:
                task = lines[lane].popleft()
            except IndexError:
                if lane is first:
                    self._counts[lane] = 0
                continue
            self._took(lane, lane is first, lines)
            return task
        raise IndexError("all were taken back")

    def _due(self) -> Optional[Lane]:
        _, high, normal, low = self._counts
        if low >= 15:
            return Lane.LOW
        if normal >= 13 - self._odd:
            return Lane.NORMAL
        return Lane.HIGH if high >= 8 else None

    def _took(self, lane: Lane, in_turn: bool, lines: tuple[deque[Task], ...]) -> None:
        _, high, normal, low = self._counts
        # A lane has to wait for its turn only while it has something.
        low = min(15, low + 1) if lane is not Lane.LOW and lines[Lane.LOW] else 0
        if lane is Lane.CRITICAL or lane is Lane.HIGH:
            normal = min(13 - self._odd, normal + 1) if lines[Lane.NORMAL] else 0
        if lane is Lane.CRITICAL:
            high = min(8, high + 1) if lines[Lane.HIGH] else 0
        elif lane is Lane.HIGH:
            high = high + 1 if in_turn and high + 1 < 13 - self._odd else 0
        elif lane is Lane.NORMAL and in_turn:
            normal += 1
            if normal >= 15:
                normal, self._odd = 0, 1 - self._odd
        elif not in_turn:
            high = normal = 0
        self._counts = [0, high, normal, low]


class Source:
    """What lanes and strands have in common."""

    def __init__(self, runner: Runner, lines: tuple[deque[Task], ...]) -> None:
        self.runner = runner
        self.lines = lines
        self._idle: deque[None] = deque((None,))
        self._lock = threading.RLock()

    def put(self, tasks: list[Task], line: deque[Task]) -> None:
        """Takes tasks in, in order and side by side, or raises why not."""
        runner = self.runner
        if runner.closed is not None:
            raise runner.refusal()
        with self._lock:
            line.extend(tasks)
            runner.accepted.several(len(tasks))
            self._show()
        if runner.closed is not None:
            runner.withdraw(tasks, line)
        runner.call_for(len(tasks))

    def waiting(self) -> int:
        """How many tasks nobody has taken."""
        return sum(map(len, self.lines))

    def sweep(self, exception: BaseException | None, late: list[BaseException]) -> int:
        """Cancels, or fails, those; says how many. Takes no lock: the child of a fork may do it."""
        swept = sum(self.runner.sweep_line(line, exception, late) for line in self.lines)
        self.runner.sources.discard(self)
        return swept

    def run(self, books: list[int]) -> int:
        """What a thread does that comes upon the entry; says how many tasks more than one it ran."""
        raise NotImplementedError

    def enter(self) -> None:
        """Puts the entry into the deque."""
        raise NotImplementedError

    def _entry(self) -> Task:
        return self, self.run, (), None

    def _show(self) -> None:
        """Puts the entry where threads look, unless there is one. Under the lock."""
        try:
            self._idle.pop()
        except IndexError:
            return
        self.runner.sources.add(self)
        self.enter()

    def _go_on(self) -> bool:
        """By who has the entry in hand, under the lock: it goes back into the deque if there is more."""
        if any(self.lines):
            self.enter()
            return True
        self.runner.sources.discard(self)
        self._idle.append(None)
        if any(self.lines):
            self._show()
        return False


class Lanes(Source):
    """The lanes beside NORMAL, which is the runner's deque."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner, (deque(), deque(), deque()))
        critical, high, low = self.lines
        self._by_lane = (critical, high, runner.tasks, low)
        self._turns = Turns()

    def add(self, tasks: list[Task], lane: Lane) -> None:
        """Takes tasks into a lane, or raises why not."""
        if lane is Lane.NORMAL:
            self.runner.add_batch(tasks)
        else:
            self.put(tasks, self._by_lane[lane])

    def enter(self) -> None:
        self.runner.tasks.appendleft(self._entry())

    def run(self, books: list[int]) -> int:
        return self.runner.run_tasks(books, 1, self._take) - 1

    def _take(self) -> Task:
        """The task whose turn it is. The entry is back before it runs, for other threads."""
        with self._lock:
            try:
                return self._turns.take(self._by_lane)
            finally:
                self._go_on()


class Serial(Source):
    """A strand's tasks: run one at a time, in order."""

    def __init__(self, runner: Runner) -> None:
        self.line: deque[Task] = deque()
        super().__init__(runner, (self.line,))

    def add(self, tasks: list[Task]) -> None:
        """Appends tasks, or raises why not."""
        self.put(tasks, self.line)

    def enter(self) -> None:
        self.runner.tasks.append(self._entry())

    def run(self, books: list[int]) -> int:
        runner = self.runner
        try:
            return runner.run_tasks(books, TASKS_PER_POLL, self.line.popleft) - 1
        finally:
            with self._lock:
                goes_on = self._go_on()
            # This thread may turn to an event first.
            if goes_on and runner.asleep and not runner.calling:
                runner.call()
