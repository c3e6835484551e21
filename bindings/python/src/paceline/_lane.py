"""``Lane``: how urgent tasks are."""

from __future__ import annotations

from enum import IntEnum
from typing import Union

from ._arguments import number, short
from ._errors import InvalidError


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


def lane_of(name: str, value: Union[Lane, int]) -> Lane:
    """A lane that may be given by its number."""
    allowed = "a Lane, or 0 to 3"
    own = number(name, value, allowed)
    if not 0 <= own <= 3:
        raise InvalidError(f"{name} is {short(own)}; allowed: {allowed}")
    return Lane(own)
