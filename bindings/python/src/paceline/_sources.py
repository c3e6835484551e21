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
from collections.abc import Mapping, Sequence
from typing import Optional

from ._clock import monotonic
from ._errors import Full
from ._lane import Lane
from ._members import Mark, Members, Reserve
from ._runner import TASKS_PER_POLL, Task


class Line:
    """The tasks of a lane or of a strand, in order, and how many it has room for: the pool's ``setting``."""

    def __init__(self, tasks: deque[Task], capacity: int, name: str, setting: str) -> None:
        self.tasks = tasks
        self.capacity = capacity
        self.name = name
        self.setting = setting
        #: Those that lie among the tasks.
        self.marks: set[Mark] = set()
        #: The one that calls who waits for room.
        self.called: Optional[Mark] = None
        #: The threads that run nothing else.
        self.reserve: Optional[Reserve] = None

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

    While lanes are aged, each fourth task is of one of them, in turn. After 8 tasks of CRITICAL up to 5 of HIGH have their turn, after 13 of these two up to 3 of NORMAL, and after 15 of
    all others one of LOW. HIGH and NORMAL gain and lose one by turns.
    """

    def __init__(self) -> None:
        #: Tasks of the lanes above that were taken, and then those of the lane in its turn.
        self._counts = [0, 0, 0, 0]
        self._odd = 0
        #: How many tasks were taken while lanes were aged.
        self._picks = 0

    def take(self, lines: tuple[Line, ...], aged: Sequence[Lane] = ()) -> Task:
        """The next task of all lanes, of which some are aged. Raises IndexError: they are empty."""
        first = old = self._for_age(aged) if aged else None
        if first is None:
            first = self._due()
        for lane in Lane if first is None else (first, *Lane):
            try:
                task = lines[lane].take()
            except IndexError:
                if lane is first is not old:
                    self._counts[lane] = 0
                continue
            if lane is old is not Lane.LOW:
                # That is beside the turns, but for the bound of LOW.
                self._counts[Lane.LOW] = min(15, self._counts[Lane.LOW] + 1)
            else:
                self._took(lane, lane is first, lines)
            return task
        raise IndexError("all were taken back")

    def _for_age(self, aged: Sequence[Lane]) -> Optional[Lane]:
        self._picks += 1
        return None if self._picks % 4 else aged[self._picks // 4 % len(aged)]

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


class Ageing:
    """Whether something waits for too long in a lane; as in the native pool.

    No task has a time. But at a look a mark is laid behind what is in a lane, and if no thread has come upon it by the
    next one, ``after`` seconds later, something has waited for that long at least. CRITICAL is never aged.
    """

    def __init__(self, after: float) -> None:
        self._after = after
        self._next_look = 0.0
        self._marks: dict[Lane, Mark] = {}
        #: The lowest first.
        self.aged: list[Lane] = []

    def look(self, lanes: Lanes) -> None:
        """Looks, if it is time to. Under the lanes' lock."""
        now = monotonic()
        if now < self._next_look:
            return
        self._next_look = now + self._after
        self.aged = [lane for lane, mark in self._marks.items() if not mark.reached.is_set()]
        self._marks = {}
        for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH):
            line = lanes.by_lane[lane]
            if lanes.waiting_in(line):
                self._marks[lane] = mark = Mark(lanes.runner, line.marks)
                lanes.lay(mark, line, len(line.tasks))


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
            if self.put(tasks[:count], line):
                tasks = tasks[count:]
                if not tasks:
                    return

    def admit(self, line: Line, count: int, waits: bool) -> int:
        """For how many of so many tasks there is room. What may wait does so until there is some; in a handler or
        task, and if it may not, there has to be room for all. Raises Full, ShutDownError, ForkedError."""
        runner = self.runner
        while self.room(line) < count:
            if runner.closed is not None:
                raise runner.refusal()
            if not waits or runner.is_inside():
                raise runner.rejected_by(
                    Full(
                        f"{line.name} is full: {line.capacity} tasks wait there, as many as may; what helps: a "
                        f"larger {line.setting}, more threads, or to submit outside of handlers and tasks, where "
                        "that waits for room"
                    )
                )
            room = self.room(line)
            if room > 0:
                return room
            called = self._mark_half_way(line)
            if not self.room(line) and runner.closed is None:
                called.wait()
        return count

    def room(self, line: Line) -> int:
        """How many tasks more may wait there."""
        return max(0, line.capacity - self.waiting_in(line))

    def waiting_in(self, line: Line) -> int:
        """How many tasks nobody has taken there."""
        return line.waiting()

    def _mark_half_way(self, line: Line) -> threading.Event:
        """What is set when there is room for half of what the line has."""
        with self._lock:
            mark = line.called
            if mark is None or mark.reached.is_set():
                mark = Mark(self.runner, line.marks)
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

    def put(self, tasks: list[Task], line: Line) -> bool:
        """Takes tasks in, in order and side by side, or raises why not. False: others have taken the room."""
        runner = self.runner
        if runner.closed is not None:
            raise runner.refusal()
        with self._lock:
            if self.room(line) < len(tasks):
                return False
            line.tasks.extend(tasks)
            runner.accepted.several(len(tasks))
            self._show()
        if runner.closed is not None:
            runner.withdraw(tasks, line.tasks)
        left = len(tasks) if line.reserve is None else len(tasks) - line.reserve.call(len(tasks))
        if left:
            runner.call_for(left)
        return True

    def waiting(self) -> int:
        """How many tasks nobody has taken."""
        return sum(line.waiting() for line in self.lines)

    def sweep(self, exception: Optional[BaseException], late: list[BaseException]) -> int:
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
    """The lanes, of which NORMAL is the runner's deque: it needs no entry. ``reserve``: how many threads run nothing
    but tasks of a lane. ``ageing``: in seconds; endless: never."""

    def __init__(self, runner: Members, reserve: Mapping[Lane, int], ageing: float) -> None:
        self.by_lane = tuple(
            Line(
                runner.tasks if lane is Lane.NORMAL else deque(),
                runner.lane_capacity,
                f"the lane {lane.name}",
                "lane_capacity",
            )
            for lane in Lane
        )
        self._normal = self.by_lane[Lane.NORMAL]
        super().__init__(runner, tuple(line for line in self.by_lane if line is not self._normal))
        self._turns = Turns()
        self._ageing = Ageing(ageing)
        for lane, threads in reserve.items():
            self.by_lane[lane].reserve = runner.reserve(self.by_lane[lane].tasks, lane, threads)

    def add_to(self, lane: Lane, tasks: list[Task], waits: bool = True) -> None:
        """Takes tasks into a lane, or raises why not."""
        self.add(tasks, self.by_lane[lane], waits)

    def admit_one(self) -> None:
        """Waits until NORMAL has room for a task, or raises why there is none."""
        self.admit(self._normal, 1, waits=True)

    def put(self, tasks: list[Task], line: Line) -> bool:
        if line is not self._normal:
            return super().put(tasks, line)
        if self.runner.closed is not None:
            raise self.runner.refusal()
        with self._lock:
            fits = self.room(line) >= len(tasks)
            if fits:
                self.runner.add_batch(tasks)
        return fits

    def lay(self, mark: Mark, line: Line, place: int) -> None:
        if line is self._normal:
            line.tasks.insert(place, mark.entry())
        else:
            super().lay(mark, line, place)

    def waiting_in(self, line: Line) -> int:
        # The deque has entries of sources besides.
        entries = len(self.runner.sources) if line is self._normal else 0
        return max(0, line.waiting() - entries)

    def enter(self) -> None:
        self.runner.tasks.appendleft(self._entry())

    def run(self, books: list[int]) -> int:
        return self.runner.run_tasks(books, 1, self._take) - 1

    def _take(self) -> Task:
        """The task whose turn it is. The entry is back before it runs, for other threads."""
        with self._lock:
            try:
                self._ageing.look(self)
                return self._turns.take(self.by_lane, self._ageing.aged)
            finally:
                self._go_on()


class Serial(Source):
    """A strand's tasks: run one at a time, in order."""

    def __init__(self, runner: Members) -> None:
        self.line = Line(deque(), runner.strand_capacity, "the strand", "strand_capacity")
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
