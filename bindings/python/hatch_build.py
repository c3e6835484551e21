"""Builds the shared library with cargo and puts it into the wheel.

The crate lies two folders up in the repository, and under ``crate`` in an sdist.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libpaceline.so"

#: Cargo's profile for what is installed.
PROFILE = "shipped"

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


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """For wheels: cargo. For sdists: the crate."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        crate = self.crate()
        if self.target_name == "sdist":
            included = {str(crate / part): f"crate/{part}" for part in CRATE}
            build_data["force_include"].update(included)
        elif version != "editable":
            build_data["force_include"][str(self.build(crate))] = f"paceline/{LIBRARY}"
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
            build_data["pure_python"] = False

    def crate(self) -> Path:
        """Where the crate is."""
        root = Path(self.root)
        for place in (root / "crate", root.parent.parent):
            if (place / "Cargo.toml").exists():
                return place
        raise FileNotFoundError(f"the crate is neither in {root / 'crate'} nor above {root}")

    def build(self, crate: Path) -> Path:
        """Builds the library; says where it is."""
        target = Path(os.environ.get("CARGO_TARGET_DIR") or crate / "target").resolve()
        command = ["cargo", "rustc", "--package", "paceline-c", "--profile", PROFILE, "--lib"]
        command += ["--crate-type", "cdylib", "--locked", "--target-dir", str(target)]
        try:
            subprocess.run(command, cwd=crate, check=True)
        except FileNotFoundError:
            raise RuntimeError("cargo is needed to build paceline: see https://rustup.rs") from None
        return target / PROFILE / LIBRARY
