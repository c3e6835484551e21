"""``Ring``: events of a fixed greatest length, published by any thread, handled in batches.

A native queue carries the payloads, and a task of the pool empties it: at most one at a time, or, in a
concurrent ring, one per thread of the pool. No call goes from native code to Python.

    publish: push, then take a permit if there is one ──► post a drain with it
    drain:   pop a batch, handle it, ... nothing left: give the permit back, then look once more

Each side writes before it looks at what the other has written, so nothing published stays behind. No lock is
held: collecting garbage, or a signal's handler, may publish at any place.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Optional

from ._arguments import BytesLike, plain, within
from ._slow import NamedFor
from ._runner import Posted, Tally
from ._errors import Empty, ShutDownError
from ._members import current
from ._pool import Pool, members_of
from ._queue import BATCH, Queue

#: How many batches a drain handles before it lets others go first.
_TURNS = 4


class Ring:
    """Hands what is published to ``handler(batch)``, a list of 1 to ``batch`` payloads. The end of ``with`` closes it,
    and waits until all of that was handled and the handler does not run; in a handler of the pool it does not wait.

    Serial, the default: in the order of publication, one batch at a time. ``concurrent``: batches go
    to any thread, unordered. What a handler raises goes to the pool's ``on_unhandled``; its batch
    counts as handled. ``capacity`` and ``max_payload`` are as for ``Queue``. Any thread may publish.
    """

    def __init__(
        self,
        pool: Pool,
        handler: Callable[[list[bytes]], object],
        *,
        capacity: int = 1024,
        max_payload: int = 63,
        batch: int = BATCH,
        concurrent: bool = False,
    ) -> None:
        # While there is a ring the pool is not lost.
        self._pool = pool
        self._runner = members_of(pool)
        self._queue = Queue(capacity, max_payload)
        self._handler = plain("handler", handler)
        self._batch = within("batch", batch, 1, sys.maxsize)
        most = max(1, len(self._runner.threads)) if concurrent else 1
        self._permits = deque([None] * most)
        self._published, self._handled = Tally(), Tally()

    def publish(self, payload: BytesLike, timeout: Optional[float] = None) -> None:
        """Publishes one event. Waits up to ``timeout`` seconds for room (None: for ever); raises
        Full, ShutDownError, InvalidError. Inside a handler of the ring's own pool: never waits."""
        self._runner.check_open()
        self._queue.push(payload, 0 if timeout != 0 and self._is_inside() else timeout)
        self._added(1)

    def publish_batch(self, payloads: Iterable[BytesLike]) -> int:
        """Publishes what there is room for, in order; says how many."""
        self._runner.check_open()
        count = self._queue.push_batch(payloads)
        if count:
            self._added(count)
        return count

    def counts(self) -> tuple[int, int]:
        """How many were published, and how many handled."""
        handled = self._handled.value()
        return self._published.value(), handled

    def close(self) -> None:
        """Publishes nothing any more, and does not wait. What was published is handled, if the pool is still there."""
        self._queue.close()

    def _settle(self) -> None:
        """Waits for the handler, as far as this thread may, and somebody else calls it."""
        runner = self._runner
        while runner.threads and not self._is_inside() and not runner.closed:
            published, handled = self._published.value(), self._handled.value()
            if handled >= published:
                break
            time.sleep(0.001)

    @property
    def closed(self) -> bool:
        """Whether the ring is closed: it takes no more items."""
        return self._queue.closed

    def _is_inside(self) -> bool:
        member = current()
        return member is not None and member.runner is self._runner

    def _added(self, count: int) -> None:
        self._published.several(count)
        self._call_drain()

    def _call_drain(self) -> None:
        try:
            self._permits.pop()
        except IndexError:
            return
        runner = self._runner
        try:
            drain = self._drain if runner.slow is None else NamedFor(self._drain, self._handler)
            runner.add((Posted(runner.unhandled_in), drain, (), {}))
        except RuntimeError:
            # The pool was shut down meanwhile: what was published stays, as it does in any queue.
            self._permits.append(None)

    def _drain(self) -> None:
        try:
            for _ in range(_TURNS):
                try:
                    batch = self._queue.pop_batch(self._batch, 0)
                except (Empty, ShutDownError):
                    break
                self._handle(batch)
        finally:
            self._permits.append(None)
            # What was pushed while this drain had the permit relies on this look.
            if len(self._queue):
                self._call_drain()

    def _handle(self, batch: list[bytes]) -> None:
        try:
            self._handler(batch)
        except BaseException as exception:
            self._runner.unhandled_in(exception)
        finally:
            self._handled.several(len(batch))

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._settle()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a paceline.Ring: it belongs to this process")
