"""Sockets that a supervisor has opened: the protocol of sd_listen_fds(3)."""

from __future__ import annotations

import ctypes
import os

from . import _layout as layout
from ._library import check, lib

#: So many are asked for at once.
_SOME = 16


class Inherited:
    """A socket from a supervisor. Give it to a Server, an Http or a Listen as the address, to a Udp as
    ``bind``, or to ``socket.socket(fileno=inherited.detach())``. It is closed when it is lost; servers
    have their own duplicate by then."""

    __slots__ = ("name", "_fd")

    def __init__(self, name: str, fd: int) -> None:
        #: The unit, or its ``FileDescriptorName=``; "unknown" if it has no name.
        self.name = name
        self._fd = fd

    def fileno(self) -> int:
        """Its descriptor; −1 when it is closed."""
        return self._fd

    def detach(self) -> int:
        """Its descriptor, which is the caller's to close from here on."""
        fd, self._fd = self._fd, -1
        return fd

    def close(self) -> None:
        """Closes it. Once it is closed, nothing."""
        fd = self.detach()
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<paceline.Inherited {self.name!r} fd={self._fd}>"


def inherited() -> list[Inherited]:
    """The sockets that systemd, or whoever speaks its protocol, has passed to this process, in their
    order. None if there are none, if they were meant for another process, or if they were taken before:
    a socket is given once. Call it early.

    Raises InvalidError, which names the variable that makes no sense, and OSError for a descriptor that
    is not open, or no socket.
    """
    found: list[Inherited] = []
    room = (layout.Inherited * _SOME)()
    count = ctypes.c_size_t(_SOME)
    while count.value == _SOME:
        check(lib.pace_inherited_take(room, _SOME, ctypes.byref(count)))
        for each in room[: count.value]:
            found.append(Inherited(each.name.decode("utf-8", "replace"), each.fd))
    return found
