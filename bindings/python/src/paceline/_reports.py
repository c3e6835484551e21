"""What a worker pool says of itself: figures, books, health, and how its end went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class TaskTypeStats:
    """What has happened to the tasks of a name. Counts never fall, but for ``running``."""

    submitted: int
    accepted: int
    rejected: int
    completed: int
    failed: int
    cancelled: int
    timed_out: int
    #: Those that were taken, and dropped for the sake of others.
    dropped: int
    #: Attempts that failed and were followed by another.
    retried: int
    #: Retries that their budget did not allow.
    retries_refused: int
    #: Attempts that are with a thread.
    running: int
    #: Outcomes of attempts that a retry had overtaken: they changed nothing.
    discarded: int


@dataclass(frozen=True)
class WorkerStats:
    """What one thread of a worker pool has done since the pool was made. Its submitters' own threads
    (``full="run_here"``) are not counted."""

    #: The name of the thread in Python, as ``worker`` of a TaskReport.
    worker: str
    #: "running" (an attempt), "stuck" (its time is over, or its task has ended), "waiting", "set aside" (by
    #: ``set_active`` or ``scaling``) or "ended".
    state: str
    #: The name of the task that it runs now; None: it runs none.
    task_type: Optional[str]
    #: Attempts that it has begun: those that have completed or failed, and the one that runs.
    attempts: int
    #: Attempts whose functions have returned.
    completed: int
    #: Attempts whose functions have raised.
    failed: int
    #: Seconds that its attempts took together, up to now, with what surrounds them.
    run_time: float
    #: The part of its time that this is, 0.0 to 1.0.
    utilisation: float


@dataclass(frozen=True)
class WorkersAudit:
    """Where everything that was submitted has gone. Exact at rest."""

    submitted: int
    accepted: int
    rejected: int
    completed: int
    failed: int
    cancelled: int
    timed_out: int
    dropped: int
    #: Tasks that have not ended; counted where they are, not derived.
    in_flight: int
    #: submitted = accepted + rejected, and accepted = all that has become of it.
    balances: bool


@dataclass(frozen=True)
class WorkersHealth:
    """How a worker pool is, with what is left of it."""

    #: "ready"; "degraded": some threads run what has outlived its time, or was cancelled; "stuck": all do;
    #: "draining": it takes no more tasks.
    status: str
    threads: int
    #: What those threads run, by name.
    stuck: tuple[str, ...]
    #: Threads that are active and not stuck, and those of them that run nothing now.
    capacity: int
    free: int
    #: Tasks that have not ended and do not run.
    waiting: int


@dataclass(frozen=True)
class ShutdownReport:
    """What a shutdown of a worker pool has ended, cancelled or left."""

    #: It was called inside a task, so it goes on without its caller; nothing else is known.
    requested: bool
    #: Whether everything has ended by itself.
    drained: bool
    #: How many tasks of each name completed since it began.
    completed: dict[str, int]
    #: How many tasks of each name were cancelled.
    cancelled: dict[str, int]
    #: How many had not returned.
    stuck: dict[str, int]
    #: Clean-up functions that raised, or for which there was no time.
    failed_hooks: tuple[str, ...]

    def __str__(self) -> str:
        if self.requested:
            return "requested"
        parts = ["drained" if self.drained else "not drained"]
        for what in ("completed", "cancelled", "stuck"):
            names = getattr(self, what)
            told = ", ".join(f"{count} {name}" for name, count in sorted(names.items()))
            parts.append(f"{what}: {told or 'none'}")
        if self.failed_hooks:
            parts.append(f"failed hooks: {', '.join(self.failed_hooks)}")
        return "; ".join(parts)
