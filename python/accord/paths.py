# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Where Accord's own files are: the libraries, the benchmark programs, the checkout."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from accord.errors import UserError
from accord.mpi import Abi

LIBRARY_NAME = "libaccord.so"
_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Home:
    """One built or installed Accord."""

    lib: Path
    bin: Path
    origin: str

    @property
    def library(self) -> Path:
        return self.lib / LIBRARY_NAME

    def shim(self, abi: Abi) -> Path:
        return self.lib / f"libaccord_{abi.value}.so"

    def bench(self, abi: Abi) -> Path:
        return self.bin / f"accord_bench_{abi.value}"

    def app(self, name: str, abi: Abi) -> Path:
        """An application of examples/ that `accord bench --app` measures."""
        return self.bin / f"accord_{name}_{abi.value}"

    def gpu_app(self, name: str, abi: Abi) -> Path:
        """The same with its kernels compiled for GPUs."""
        return self.bin / f"accord_{name}_gpu_{abi.value}"

    def table_dirs(self) -> list[Path]:
        """Where tables of `accord tune` come with Accord: installed, and in the checkout."""
        parents = [self.bin.parent, checkout()]
        return [parent / "share" / "accord" / "tables" for parent in parents if parent is not None]


def checkout() -> Path | None:
    """Root of the source checkout this package lies in, if it does."""
    root = _PACKAGE.parent.parent
    return root if (root / "include" / "accord" / "accord.h").is_file() else None


def multiarch() -> str | None:
    """Debian's name for this architecture, as in /usr/lib/x86_64-linux-gnu."""
    name = sysconfig.get_config_var("MULTIARCH")
    return name if isinstance(name, str) and name else None


def system_library_dirs() -> list[Path]:
    prefixes = [Path(sys.prefix), Path("/usr/local"), Path("/usr")]
    names = ["lib64", "lib"]
    if (arch := multiarch()) is not None:
        names.insert(0, f"lib/{arch}")
    return [prefix / name for prefix in prefixes for name in names]


def installed() -> Path | None:
    """The prefix this package lies in, if `cmake --install` put it there: PREFIX/share/accord/python."""
    share = _PACKAGE.parent.parent
    return share.parent.parent if (share.parent.name, share.name) == ("share", "accord") else None


def importing_environment() -> dict[str, str]:
    """For a Python process that shall import this package, wherever it lies."""
    given = os.environ.get("PYTHONPATH")
    path = f"{_PACKAGE.parent}:{given}" if given else str(_PACKAGE.parent)
    return {**os.environ, "PYTHONPATH": path}


def _libraries_of_prefix(prefix: Path) -> list[Path]:
    """Folders of a prefix that may hold libraries; Debian's packages have them in lib/x86_64-linux-gnu."""
    return [prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-*"))]


def _candidates() -> list[Home]:
    homes = []
    if (prefix := installed()) is not None:
        for lib in _libraries_of_prefix(prefix):
            homes.append(Home(lib, prefix / "bin", "installation"))
    if (root := checkout()) is not None:
        homes.append(Home(root / "build" / "lib", root / "build" / "bin", "checkout"))
    homes.append(Home(_PACKAGE / "lib", _PACKAGE / "bin", "package"))
    for lib in system_library_dirs():
        prefix = lib.parent.parent if lib.parent.name == "lib" else lib.parent
        homes.append(Home(lib, prefix / "bin", "system"))
    return homes


def find_home() -> Home:
    """The Accord to use: ACCORD_HOME, else what this package came with, else the system's."""
    if named := os.environ.get("ACCORD_HOME"):
        prefix = Path(named).absolute()
        homes = [Home(lib, prefix / "bin", "ACCORD_HOME") for lib in _libraries_of_prefix(prefix)]
        for home in homes:
            if home.library.is_file():
                return home
        raise UserError(f"ACCORD_HOME is {named}, but {homes[0].library} does not exist")
    for home in _candidates():
        if home.library.is_file():
            return home
    raise UserError(
        f"{LIBRARY_NAME} is not built or not installed; build it (`make`), or set ACCORD_HOME to "
        "the folder whose lib/ holds it"
    )
