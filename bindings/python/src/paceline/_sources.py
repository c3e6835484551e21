"""Tasks that lie beside the runner's deque: in the lanes, and in strands.

The problem: threads take tasks from one deque, and what a plain submission costs must not grow by a
choice of lanes. So whatever has tasks of its own, a *source*, puts an entry into the deque, for a
thread to come upon: a strand's at the back, so that it waits its turn, and the lanes' at the front,
so that no task begins without a look at them.

    put:   append to the line             thread:  takes the entry out of the deque
           idle? then not any more                 lanes:   take one task, put the entry back, run it
             the entry into the deque              strand:  run some, put the entry back
                                                   nothing left: idle, look at the line once more

A line, which is a lane's tasks or a strand's, has a bound. Who finds it full and waits lays a *mark* into it, half-way
to its end: an entry that is no task, and that wakes all who wait when a thread comes upon it. So a task costs nothing
more for those who wait, and a thread and who submits do not wake each other for each task.

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

from ._errors import Full
from ._members import Members
from ._runner import TASKS_PER_POLL, Task


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


class Mark:
    """An entry of a line that is no task: a thread comes upon it when all that was before it has been taken."""

    def __init__(self, runner: Members, line: Line) -> None:
        self._runner = runner
        self._line = line
        self.reached = threading.Event()
        line.marks.add(self)

    def entry(self) -> Task:
        """What lies in the line."""
        return self, self.run, (), None

    def run(self, books: list[int]) -> int:
        """What the thread does that comes upon it; it has run no task, which is one less than it says by that."""
        self._line.marks.discard(self)
        self._runner.waited_for.discard(self.reached)
        self.reached.set()
        return -1

    def sweep(self, exception: BaseException | None, late: list[BaseException]) -> int:
        """All before it has been swept."""
        self.run([])
        return 0

    def waiting(self) -> int:
        """It has no tasks."""
        return 0


class Line:
    """The tasks of a lane or of a strand, in order, and how many it has room for."""

    def __init__(self, tasks: deque[Task], capacity: int, name: str) -> None:
        self.tasks = tasks
        self.capacity = capacity
        self.name = name
        #: Those that lie among the tasks.
        self.marks: set[Mark] = set()
        #: The one that calls who waits for room.
        self.called: Optional[Mark] = None

    def waiting(self) -> int:
        """How many tasks nobody has taken."""
        return max(0, len(self.tasks) - len(self.marks))

    def take(self) -> Task:
        """The next task. Raises IndexError: there is none."""
        while True:
            task = self.tasks.popleft()
            if not isinstance(task[0], Mark):
                return task
            task[0].run([])


class Turns:
    """When a lower lane comes before higher ones, so that it does not starve; as in the native pool.

    After 8 tasks of CRITICAL up to 5 of HIGH have their turn, after 13 of these two up to 3 of NORMAL, and after 15 of
    all others one of LOW. HIGH and NORMAL gain and lose one by turns.
    """

    def __init__(self) -> None:
        #: Tasks of the lanes above that were taken, and then those of the lane in its turn.
        self._counts = [0, 0, 0, 0]
        self._odd = 0

    def take(self, lines: tuple[Line, ...]) -> Task:
        """The next task of all lanes. Raises IndexError: they are empty."""
        first = self._due()
        for lane in Lane if first is None else (first, *Lane):
            try:
                task = lines[lane].take()
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

    def _took(self, lane: Lane, in_turn: bool, lines: tuple[Line, ...]) -> None:
        _, high, normal, low = self._counts
        # A lane has to wait for its turn only while it has something.
        low = min(15, low + 1) if lane is not Lane.LOW and lines[Lane.LOW].tasks else 0
        if lane is Lane.CRITICAL or lane is Lane.HIGH:
            normal = min(13 - self._odd, normal + 1) if lines[Lane.NORMAL].tasks else 0
        if lane is Lane.CRITICAL:
            high = min(8, high + 1) if lines[Lane.HIGH].tasks else 0
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

    def __init__(self, runner: Members, lines: tuple[Line, ...]) -> None:
        self.runner = runner
        self.lines = lines
        self._idle: deque[None] = deque((None,))
        self._lock = threading.RLock()

    def add(self, tasks: list[Task], line: Line, waits: bool = True) -> None:
        """Takes tasks in, in order, as there is room, or raises why not."""
        while True:
            count = self.admit(line, len(tasks), waits)
            self.put(tasks[:count], line)
            if count == len(tasks):
                return
            tasks = tasks[count:]

    def admit(self, line: Line, count: int, waits: bool) -> int:
        """For how many of so many tasks there is room. What may wait does so until there is some; in a handler or
        task, and if it may not, there has to be room for all. Raises Full, ShutDownError, ForkedError."""
        runner = self.runner
        while self.room(line) < count:
            if runner.closed is not None:
                raise runner.refusal()
            if not waits or runner.is_inside():
                raise runner.rejected_by(
                    Full(f"{line.name} is full: {line.capacity} tasks wait there, as many as may")
                )
            room = self.room(line)
            if room > 0:
                return room
            called = self._mark_half_way(line)
            if self.room(line) <= 0 and runner.closed is None:
                called.wait()
        return count

    def room(self, line: Line) -> int:
        """How many tasks more may wait there."""
        return line.capacity - line.waiting()

    def _mark_half_way(self, line: Line) -> threading.Event:
        """What is set when there is room for half of what the line has."""
        with self._lock:
            mark = line.called
            if mark is None or mark.reached.is_set():
                mark = Mark(self.runner, line)
                try:
                    self.runner.waited_for.add(mark.reached)
                    self.lay(mark, line, len(line.tasks) // 2)
                    line.called = mark
                except BaseException:
                    # A handler of a signal has raised, and it may lie nowhere.
                    mark.run([])
                    raise
        # Perhaps all was taken meanwhile.
        self.runner.call_for(1)
        return mark.reached

    def lay(self, mark: Mark, line: Line, place: int) -> None:
        """Puts a mark among the tasks, where a thread will see it. Under the lock."""
        line.tasks.insert(place, mark.entry())
        self._show()

    def put(self, tasks: list[Task], line: Line) -> None:
        """Takes tasks in, in order and side by side, or raises why not."""
        runner = self.runner
        if runner.closed is not None:
            raise runner.refusal()
        with self._lock:
            line.tasks.extend(tasks)
            runner.accepted.several(len(tasks))
            self._show()
        if runner.closed is not None:
            runner.withdraw(tasks, line.tasks)
        runner.call_for(len(tasks))

    def waiting(self) -> int:
        """How many tasks nobody has taken."""
        return sum(line.waiting() for line in self.lines)

    def sweep(self, exception: BaseException | None, late: list[BaseException]) -> int:
        """Cancels, or fails, those; says how many. Takes no lock: the child of a fork may do it."""
        swept = sum(self.runner.sweep_line(line.tasks, exception, late) for line in self.lines)
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
        if self._has_tasks():
            self.enter()
            return True
        self.runner.sources.discard(self)
        self._idle.append(None)
        if self._has_tasks():
            self._show()
        return False

    def _has_tasks(self) -> bool:
        return any(line.tasks for line in self.lines)


class Lanes(Source):
    """The lanes, of which NORMAL is the runner's deque: it needs no entry."""

    def __init__(self, runner: Members) -> None:
        self._by_lane = tuple(
            Line(
                runner.tasks if lane is Lane.NORMAL else deque(),
                runner.lane_capacity,
                f"the lane {lane.name}",
            )
            for lane in Lane
        )
        self._normal = self._by_lane[Lane.NORMAL]
        super().__init__(runner, tuple(line for line in self._by_lane if line is not self._normal))
        self._turns = Turns()

    def add_to(self, lane: Lane, tasks: list[Task], waits: bool = True) -> None:
        """Takes tasks into a lane, or raises why not."""
        self.add(tasks, self._by_lane[lane], waits)

    def admit_one(self) -> None:
        """Waits until NORMAL has room for a task, or raises why there is none."""
        self.admit(self._normal, 1, waits=True)

    def put(self, tasks: list[Task], line: Line) -> None:
        if line is self._normal:
            self.runner.add_batch(tasks)
        else:
            super().put(tasks, line)

    def lay(self, mark: Mark, line: Line, place: int) -> None:
        if line is self._normal:
            line.tasks.insert(place, mark.entry())
        else:
            super().lay(mark, line, place)

    def room(self, line: Line) -> int:
        # The deque has entries of sources besides.
        entries = len(self.runner.sources) if line is self._normal else 0
        return super().room(line) + entries

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

    def __init__(self, runner: Members) -> None:
        self.line = Line(deque(), runner.strand_capacity, "the strand")
        super().__init__(runner, (self.line,))

    def enter(self) -> None:
        self.runner.tasks.append(self._entry())

    def run(self, books: list[int]) -> int:
        runner = self.runner
        try:
            return runner.run_tasks(books, TASKS_PER_POLL, self.line.tasks.popleft) - 1
        finally:
            with self._lock:
                goes_on = self._go_on()
            # This thread may turn to an event first.
            if goes_on and runner.asleep and not runner.calling:
                runner.call()
