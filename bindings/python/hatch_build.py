"""Builds the shared library with cargo and puts it into the wheel.

The crate lies two folders up in the repository, and under ``crate`` in an sdist. The environment variable
``PACELINE_FEATURES`` is ``full`` (the default), or ``core``: without archives, webhooks and systemd.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libpaceline.so"

#: What goes with each wheel, beside a list of the licences of crates.
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")

#: Cargo's profile for what is installed.
PROFILE = "shipped"

#: What every Linux with the GNU C library has (PEP 600).
SYSTEM_LIBRARIES = re.compile(
    r"lib(c|m|dl|pthread|rt|gcc_s)\.so\.\d+|ld-linux[-\w]*\.so\.\d+|ld64\.so\.\d+"
)

#: What cargo needs of the repository: the crate, and what Cargo.toml names as members.
CRATE = (
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "src",
    "include",
    "benches",
    "bindings/c",
    "examples",
    "xtask",
)


def platform_tag(library: Path) -> str:
    """The platform of the wheel: manylinux with the version of the GNU C library that the library needs, or the
    platform that this is, if it needs another C library or more than what every Linux has."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    libraries, versions = needed(library.read_bytes())
    if not platform.startswith("linux_") or not all(map(SYSTEM_LIBRARIES.fullmatch, libraries)):
        return platform
    found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version) for version in versions]
    newest = max(((int(one[1]), int(one[2])) for one in found if one), default=None)
    if newest is None:
        return platform
    return f"manylinux_{newest[0]}_{newest[1]}_{platform[len('linux_') :]}"


def needed(elf: bytes) -> tuple[set[str], set[str]]:
    """The libraries that a shared library is linked with, and the versions of their symbols that it uses.

    They are in two sections, .dynamic and .gnu.version_r; the gABI and the Linux Standard Base describe them.
    """
    if elf[:4] != b"\x7fELF":
        raise ValueError("not an ELF file")
    wide, order = elf[4] == 2, "<" if elf[5] == 1 else ">"

    def read(form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(order + form, elf, offset)

    (start,) = read("Q", 40) if wide else read("I", 32)
    size, count = read("HH", 58 if wide else 46)
    # Name, type, flags, address, offset, size, link: the section of its texts.
    sections = [read("IIQQQQI" if wide else "IIIIIII", start + size * at) for at in range(count)]

    def text(section: tuple[int, ...], at: int) -> str:
        begin = sections[section[6]][4] + at
        return elf[begin : elf.index(b"\0", begin)].decode()

    def linked(at: int) -> Iterator[int]:
        """Entries that each say, at its end, how far the next one is."""
        while True:
            yield at
            (step,) = read("I", at + 12)
            if not step:
                return
            at += step

    libraries, versions = set(), set()
    for section in sections:
        kind, offset, length = section[1], section[4], section[5]
        if kind == 6:  # SHT_DYNAMIC: pairs of a tag and a value.
            for at in range(offset, offset + length, 16 if wide else 8):
                tag, value = read("QQ" if wide else "II", at)
                if tag == 1:  # DT_NEEDED
                    libraries.add(text(section, value))
        elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed: for each library the versions of its symbols.
            for at in linked(offset):
                (first,) = read("I", at + 8)
                versions.update(text(section, *read("I", one + 8)) for one in linked(at + first))
    return libraries, versions


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """For wheels: cargo. For sdists: the crate."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        crate = self.crate()
        if self.target_name == "sdist":
            included = {str(crate / part): f"crate/{part}" for part in CRATE}
            build_data["force_include"].update(included)
        elif version != "editable":
            library = self.build(crate)
            build_data["force_include"][str(library)] = f"paceline/{LIBRARY}"
            where = f"{self.metadata.core.name}-{self.metadata.version}.dist-info/licenses"
            for licence in (*LICENCES, self.licences_of_crates(crate, library.parent)):
                build_data["force_include"][str(crate / licence)] = f"{where}/{Path(licence).name}"
            build_data["tag"] = f"py3-none-{platform_tag(library)}"
            build_data["pure_python"] = False

    def crate(self) -> Path:
        """Where the crate is."""
        root = Path(self.root)
        for place in (root / "crate", root.parent.parent):
            if (place / "Cargo.toml").exists():
                return place
        raise FileNotFoundError(f"the crate is neither in {root / 'crate'} nor above {root}")

    def features(self) -> str:
        """What is to be built."""
        features = os.environ.get("PACELINE_FEATURES", "full")
        if features not in ("full", "core"):
            raise ValueError(f"PACELINE_FEATURES is {features!r}: it must be full or core")
        return features

    def licences_of_crates(self, crate: Path, folder: Path) -> str:
        """Writes a list of the crates that the library is made of, with their licences, into a folder; its path."""
        command = ["cargo", "tree", "--package", "paceline-c", "--edges", "normal", "--locked"]
        command += ["--no-default-features", "--features", self.features()]
        command += ["--prefix", "none", "--no-dedupe", "--format", "{p}: {l}"]
        told = subprocess.run(command, cwd=crate, check=True, stdout=subprocess.PIPE, text=True)
        # Those of this repository have their folder in brackets.
        lines = sorted({line for line in told.stdout.splitlines() if line and "(/" not in line})
        listed = folder / "CRATES.txt"
        listed.write_text("\n".join(["The library is made of these crates, too:", "", *lines, ""]))
        return str(listed)

    def build(self, crate: Path) -> Path:
        """Builds the library; says where it is."""
        features = self.features()
        target = Path(os.environ.get("CARGO_TARGET_DIR") or crate / "target").resolve()
        command = ["cargo", "rustc", "--package", "paceline-c", "--profile", PROFILE, "--lib"]
        command += ["--crate-type", "cdylib", "--no-default-features", "--features", features]
        command += ["--locked", "--target-dir", str(target)]
        try:
            subprocess.run(command, cwd=crate, check=True)
        except FileNotFoundError:
            raise RuntimeError("cargo is needed to build paceline: see https://rustup.rs") from None
        return target / PROFILE / LIBRARY
