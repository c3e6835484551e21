"""Statistics and books, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

from ._crew import CANCELLED, COMPLETED, FAILED, STARTED, Crew, Job


@dataclass(frozen=True)
class Audit:
    """Where everything that was submitted has gone. Counts, exact while nothing runs."""

    submitted: int
    accepted: int
    rejected: int
    completed: int
    failed: int
    cancelled: int
    #: Counted, not derived: waiting and running.
    in_flight: int

    @property
    def balances(self) -> bool:
        """submitted = accepted + rejected, and accepted = all that has become of it."""
        ended = self.completed + self.failed + self.cancelled
        return (
            self.submitted == self.accepted + self.rejected and self.accepted == ended + self.in_flight
        )


def audit_of(crew: Crew) -> Audit:
    """Adds the threads' books up."""
    books = [sum(column) for column in zip(*list(crew.books))]
    completed, failed, cancelled = books[COMPLETED], books[FAILED], books[CANCELLED]
    running = books[STARTED] - completed - failed - cancelled
    accepted = crew.accepted.value()
    rejected = crew.rejected
    return Audit(
        submitted=accepted + rejected,
        accepted=accepted,
        rejected=rejected,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        in_flight=waiting(crew) + running,
    )


def waiting(crew: Crew) -> int:
    """How many tasks, and items of jobs, nobody has taken."""
    jobs: set[Job] = crew.sources.copy()
    tasks = 0
    for outcome, _, _, keywords in crew.tasks.copy():
        if keywords is None:
            jobs.add(outcome)
        else:
            tasks += 1
    return tasks + sum(job.waiting() for job in jobs)
