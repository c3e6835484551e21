"""Statistics and books, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

from ._runner import CANCELLED, COMPLETED, FAILED, STARTED, Runner, Job


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


def audit_of(runner: Runner) -> Audit:
    """Adds the threads' books up."""
    books = [sum(column) for column in zip(*list(runner.books))]
    completed, failed, cancelled = books[COMPLETED], books[FAILED], books[CANCELLED]
    running = books[STARTED] - completed - failed - cancelled
    accepted = runner.accepted.value()
    rejected = runner.rejected
    return Audit(
        submitted=accepted + rejected,
        accepted=accepted,
        rejected=rejected,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        in_flight=waiting(runner) + running,
    )


def waiting(runner: Runner) -> int:
    """How many tasks, and items of jobs, nobody has taken."""
    jobs: set[Job] = runner.sources.copy()
    tasks = 0
    for outcome, _, _, keywords in runner.tasks.copy():
        if keywords is None:
            jobs.add(outcome)
        else:
            tasks += 1
    return tasks + sum(job.waiting() for job in jobs)
