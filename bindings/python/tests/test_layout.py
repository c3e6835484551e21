"""Structures and constants as a C compiler sees them in the header."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from paceline import _layout as layout
from paceline import _completer, _http, _lane, _pool, _server, _udp, _worker_pool
from support import Case

HEADER = Path(__file__).resolve().parents[3] / "include" / "paceline.h"

#: Python's constants whose C name is not PACE_ and the same.
NAMED = {
    **{f"PACE_FLOW_{flow.name}": int(flow) for flow in _pool.Flow},
    **{f"PACE_READY_{ready.name}": int(ready) for ready in _pool.Ready},
    **{f"PACE_INTEREST_{interest.name}": int(interest) for interest in _pool.Interest},
    **{f"PACE_LANE_{lane.name}": int(lane) for lane in _lane.Lane},
    **{f"PACE_WRITE_STATUS_{wrote.name}": int(wrote) for wrote in _server.WriteStatus},
    **{f"PACE_TIMEOUT_{kind.name}": int(kind) for kind in _server.Timeout},
    **{f"PACE_REASON_{reason.name}": int(reason) for reason in _server.Reason},
}


def constants() -> dict[str, int]:
    plain = {
        f"PACE_{name}": value
        for name, value in vars(layout).items()
        if name.isupper() and isinstance(value, int)
    }
    return {**plain, **NAMED}


def named(struct: type[ctypes.Structure | ctypes.Union]) -> list[Any]:
    """The fields that have a name in C: an anonymous union has none."""
    return [field for field in struct._fields_ if field[0] not in getattr(struct, "_anonymous_", ())]


def program() -> str:
    lines = ["#include <stdio.h>", f'#include "{HEADER}"', "int main(void) {"]
    for name, struct in layout.STRUCTURES.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for field in named(struct):
            lines.append(
                f'    printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}, {field[0]}),'
                f" sizeof((({name} *)0)->{field[0]}));"
            )
    for name in constants():
        lines.append(f'    printf("{name} %llu\\n", (unsigned long long)(long long){name});')
    return "\n".join([*lines, "    return 0;", "}", ""])


def expected() -> list[str]:
    lines = []
    for name, struct in layout.STRUCTURES.items():
        lines.append(f"{name} {ctypes.sizeof(struct)}")
        for field in named(struct):
            place = getattr(struct, field[0])
            lines.append(f"{name}.{field[0]} {place.offset} {place.size}")
    lines.extend(f"{name} {value % (1 << 64)}" for name, value in constants().items())
    return lines


#: Passes an id as C does, by value in a struct, to a function that Python calls with an integer.
BY_VALUE = """
#include "%s"
uint64_t take(void *first, pace_handle_t handle, int32_t last) {
    return first == 0 && last == 7 ? handle.id : 0;
}
"""


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class Layout(Case):
    def setUp(self) -> None:
        super().setUp()
        found = compiler()
        if found is None:
            self.skipTest("skipped, because there is no C compiler")
        if not HEADER.exists():
            self.skipTest("skipped, because the header lies outside this package")
        self.compiler = found
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, source: str, *options: str) -> str:
        path = self.folder / "layout.c"
        path.write_text(source)
        output = str(self.folder / "layout")
        subprocess.run([self.compiler, "-std=c11", str(path), "-o", output, *options], check=True)
        return output

    def test_sizes_offsets_and_constants(self) -> None:
        told = subprocess.run([self.compile(program())], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(told.stdout.splitlines(), expected())

    def test_ids_by_value_are_integers(self) -> None:
        library = ctypes.CDLL(self.compile(BY_VALUE % HEADER, "-shared", "-fPIC"))
        library.take.restype = ctypes.c_uint64
        library.take.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32]
        for number in (1, 0xFEDC_BA98_7654_3210):
            self.assertEqual(library.take(None, number, 7), number)


class Rows(Case):
    """What is packed and unpacked without ctypes."""

    def test_entries_of_a_completion_queue(self) -> None:
        entry = layout.CqEntry(kind=1, token=2, tag=3, bytes=4, size=5, status=-1, reserved=9)
        detail = entry.detail
        front = (1, 2, 3, 4, 5)
        detail.conn = layout.CqConn(conn=6, event=7, detail=8, number=9)
        self.assertEqual(_server._ENTRY.unpack(entry), (*front, 6, 7, 8, 9))
        detail.request = layout.CqRequest(conn=6, request=7)
        self.assertEqual(_http._ENTRY.unpack(entry), (*front, 6, 7))
        peer = layout.Ip.from_buffer_copy(bytes(range(24)))
        detail.datagram = layout.CqDatagram(length=6, peer=peer, os_error=-7)
        self.assertEqual(_udp._ENTRY.unpack(entry), (*front, 6, bytes(range(24)), -7))
        detail.attempt = layout.CqAttempt(id=6, number=7, status=8)
        self.assertEqual(_worker_pool._ENTRY.unpack(entry), (1, 2, 3, 6, 7, 8))

    def test_completions(self) -> None:
        size = ctypes.sizeof(layout.CqCompletion)

        def read(row: bytes) -> dict[str, Any]:
            self.assertEqual(len(row), size)
            completion = layout.CqCompletion.from_buffer_copy(row)
            names = [name for name, _ in layout.CqCompletion._fields_ if name != "message"]
            values = {name: getattr(completion, name) for name in names}
            return {name: value for name, value in values.items() if value}

        of_conn = _server._COMPLETION.pack(1, 2, 3, 4, 5, 6, -7)
        names = ("token", "flags", "bytes", "size", "length", "status", "result")
        self.assertEqual(read(of_conn), dict(zip(names, (1, 2, 3, 4, 5, 6, -7))))
        of_request = _http._ANSWER.pack(1, 2, 3, 4, 5, 6, 7, -8)
        names = ("token", "flags", "answer", "bytes", "size", "headers", "headers_size", "result")
        self.assertEqual(read(of_request), dict(zip(names, (1, 2, 3, 4, 5, 6, 7, -8))))
        message = ctypes.create_string_buffer(b"why")
        of_attempt = _completer.END.pack(1, 2, 3, ctypes.addressof(message), 5, 6, -7)
        names = ("token", "flags", "after_ns", "error", "status", "result")
        self.assertEqual(read(of_attempt), dict(zip(names, (1, 2, 3, 5, 6, -7))))
        completion = layout.CqCompletion.from_buffer_copy(of_attempt)
        self.assertEqual(completion.message, b"why")


if __name__ == "__main__":
    unittest.main()
