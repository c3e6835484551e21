"""The clock by which waits end.

It is read past ``time.monotonic``, which a program's tests may freeze: a wait would never end by that.
"""

from __future__ import annotations

import time
from functools import partial

#: Seconds, as ``time.monotonic`` has them.
monotonic = partial(time.clock_gettime, time.CLOCK_MONOTONIC)
