"""Which CPU each thread of a Pool is pinned to.

CPUs are sorted, and threads get them from the front of the list, again and again. Of two CPUs of one core the second
comes after all other cores. ``compact`` fills one cache of level 3 after the other; ``spread`` takes packages, then
caches, then cores in turn.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count
from typing import Any, Union

from ._arguments import items, number
from ._errors import InvalidError

#: Where threads are pinned: "none", "compact", "spread", a list as "0,2,4-7", or the numbers of CPUs.
Pin = Union[str, Iterable[int]]

#: Where the system describes its CPUs.
_CPUS = "/sys/devices/system/cpu"

_ALLOWED = 'allowed: "none", "compact", "spread", or CPUs of this machine, as "0,2,4-7" or [0, 2]'


def planned(pin: Pin) -> list[int]:
    """The CPUs that threads get in turn; none: they are not pinned. Raises InvalidError, TypeError."""
    if isinstance(pin, str):
        if pin == "none":
            return []
        if pin in ("compact", "spread"):
            return _in_order(pin == "spread")
        cpus = _parsed(pin)
    else:
        cpus = [number("pin", each) for each in items("pin", pin, "text, or numbers of CPUs")]
    known = _online()
    wrong = [each for each in cpus if each not in known]
    if wrong or not cpus:
        raise InvalidError(f"pin is {pin!r}; {_ALLOWED}, which has {sorted(known)}")
    return cpus


def _parsed(text: str) -> list[int]:
    """What a list as the kernel writes it stands for."""
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(last) < 1 << 16):
            raise InvalidError(f"pin is {text!r}; {_ALLOWED}")
        cpus += range(int(first), int(last) + 1)
    return cpus


def _online() -> set[int]:
    try:
        return set(_parsed(_read("online")))
    except (OSError, InvalidError):
        return os.sched_getaffinity(0)


def _read(name: str) -> str:
    with open(f"{_CPUS}/{name}", encoding="ascii") as file:
        return file.read().strip()


def _place(cpu: int) -> tuple[str, str, str]:
    """Package, cache of level 3 and core of a CPU. What the system does not tell is one for all."""

    def told(name: str, otherwise: str) -> str:
        try:
            return _read(f"cpu{cpu}/{name}")
        except OSError:
            return otherwise

    package = told("topology/physical_package_id", "")
    core = told("topology/core_id", str(cpu))
    return package, told("cache/index3/shared_cpu_list", package), core


def _in_order(spread: bool) -> list[int]:
    """The CPUs that this thread may use, in the order in which threads get them."""
    places = {cpu: _place(cpu) for cpu in sorted(os.sched_getaffinity(0))}
    # How many of the same core, cores of the same cache, and caches of the same package came before.
    siblings, cores, caches = _ranks(), _ranks(), _ranks()
    ranked: list[tuple[Any, ...]] = []
    for cpu, (package, cache, core) in places.items():
        sibling = siblings(cpu, (package, cache, core))
        in_cache = cores((package, cache, core), (package, cache))
        in_package = caches((package, cache), package)
        order = (in_cache, in_package, package) if spread else (package, in_package, in_cache)
        ranked.append((sibling, *order, cpu))
    return [cpu for *_, cpu in sorted(ranked)]


def _ranks() -> Any:
    """Numbers things within their groups, in the order in which they come up."""
    seen: dict[Any, int] = {}
    groups: dict[Any, count[int]] = {}

    def rank(thing: Any, group: Any) -> int:
        if thing not in seen:
            seen[thing] = next(groups.setdefault(group, count()))
        return seen[thing]

    return rank
