"""What can go wrong, as exceptions that are paceline's and the built-in ones at once."""

from __future__ import annotations

import builtins
import queue
import sys

import paceline


class Error(Exception):
    """The base of everything that paceline raises on its own account."""


class LibraryError(Error, ImportError):
    """The shared library is missing, of another version, or of another layout."""


class InvalidError(Error, ValueError):
    """An argument is out of range. The text names it, its value, and what is allowed."""


class Full(Error, queue.Full):
    """Something bounded has no room."""


class Empty(Error, queue.Empty):
    """A queue has nothing to give."""


class TimeoutError(Error, builtins.TimeoutError):
    """The time that was allowed has passed."""


class MailboxFull(Full):
    """A message was published, and a subscription has refused it because its mailbox is full; the text names the
    first. Others may have taken it: ``receipt`` says so."""

    def __init__(self, text: str, receipt: paceline.Receipt) -> None:
        super().__init__(text)
        #: What became of the message with all subscriptions; of a batch, of all of its messages.
        self.receipt = receipt

    def __reduce__(self) -> tuple[type[MailboxFull], tuple[str, paceline.Receipt]]:
        return type(self), (str(self), self.receipt)


class FullTimeoutError(Full, TimeoutError):
    """There was no room all the time that was allowed."""


class EmptyTimeoutError(Empty, TimeoutError):
    """There was nothing to take all the time that was allowed."""


class ShutDownError(Error, RuntimeError):
    """The pool is shut down, or the queue or ring closed."""


class ForkedError(Error, RuntimeError):
    """Used in a child made by fork. Threads do not survive fork: make a new one in the child."""


class StaleError(Error, ValueError):
    """The object that was named is gone: closed before, or ended by itself."""


class DeadlockError(Error, RuntimeError):
    """Waiting here could never end."""


class NoRespondersError(Error, LookupError):
    """Nobody subscribes to the key of a request."""


class UnsupportedError(Error, NotImplementedError):
    """The shared library was built without that, or the process does not have it: threads, if gevent has patched them."""


class GivenUpError(Error):
    """Messages that a hub's histories took are not on disk and never will be: more waited for it than may."""

    def __init__(self, text: str, messages: int) -> None:
        super().__init__(text)
        #: How many, since the hub was made.
        self.messages = messages

    def __reduce__(self) -> tuple[type[GivenUpError], tuple[str, int]]:
        return type(self), (str(self), self.messages)


class DurableFailure(Error):
    """The last attempt of a durable task has failed. The text has what it raised, as text: another process may have run it."""

    def __init__(self, text: str, report: paceline.DurableReport) -> None:
        super().__init__(text)
        #: How the task has ended.
        self.report = report

    def __reduce__(self) -> tuple[type[DurableFailure], tuple[str, paceline.DurableReport]]:
        return type(self), (str(self), self.report)


class OsError(Error, OSError):
    """A system call failed; ``errno`` says how."""


def refuse_in_loop(call: str, instead: str) -> None:
    """Raises DeadlockError if an event loop runs in this thread: a call that waits holds it up, and for ever if what it waits
    for needs the loop."""
    asyncio = sys.modules.get("asyncio")
    try:
        if asyncio is not None and asyncio.get_running_loop() is not None:
            hint = f"allowed in a coroutine: await {instead}"
            raise DeadlockError(f"{call} would hold up the event loop that runs in this thread; {hint}")
    except DeadlockError:
        raise
    except RuntimeError:
        # None runs.
        pass
