# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The MPIs of this machine: their ABIs, their launchers, and where to find both.

Knows nothing of Accord's own files except the checkout's .deps, where the build keeps test MPIs.
"""

from __future__ import annotations

import enum
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class Vendor(enum.Enum):
    """Family of a launcher: how it takes options and forwards the environment."""

    MPICH = "MPICH"
    OPENMPI = "Open MPI"


class Abi(enum.Enum):
    """Binary interface of an MPI library; the value is also the name of Accord's shim for it."""

    MPICH = "mpich"
    OPENMPI = "openmpi"
    STANDARD = "abi"

    @property
    def label(self) -> str:
        return {"mpich": "MPICH ABI", "openmpi": "Open MPI ABI", "abi": "MPI 5 standard ABI"}[
            self.value
        ]

    @property
    def vendor(self) -> Vendor | None:
        """Whose launcher starts its programs; None: of either."""
        return {"mpich": Vendor.MPICH, "openmpi": Vendor.OPENMPI}.get(self.value)


# Cray and others put the compiler's name into the name of the library.
_ABI_PATTERNS = (
    (Abi.MPICH, re.compile(r"libmpi(ch|_(cray|gnu|intel|amd|aocc|nvidia|pgi)\w*)?\.so\.12(\.|$)")),
    (Abi.OPENMPI, re.compile(r"libmpi\.so\.40(\.|$)")),
    (Abi.STANDARD, re.compile(r"libmpi_abi\.so\.\d+(\.|$)")),
)
# Where distributions put theirs.
_SYSTEM_FOLDERS = (Path("/usr/bin"), Path("/bin"))
_ANY_MPI = re.compile(r"libmpi(ch|_mt|_abi)?\.so(\.\d+)*$")


def abi_of_library(name: str) -> Abi | None:
    """The ABI that a file name such as libmpi.so.40.30.4 stands for, if it is one we serve."""
    for abi, pattern in _ABI_PATTERNS:
        if pattern.match(name):
            return abi
    return None


def is_mpi_library(name: str) -> bool:
    """Whether a file name is that of an MPI library, of whatever ABI (C++ and Fortran bindings are none)."""
    return abi_of_library(name) is not None or _ANY_MPI.match(name) is not None


@dataclass(frozen=True)
class Launcher:
    path: Path
    vendor: Vendor
    version: str  # "" where the launcher does not say

    @property
    def title(self) -> str:
        return f"{self.vendor.value} {self.version}".strip()


@cache
def inspect_launcher(path: Path) -> Launcher | None:
    """What `path --version` says it is; None for a launcher that is neither MPICH's nor Open MPI's."""
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode(errors="replace")
    if re.search(r"open ?mpi|openrte|prte", text, re.IGNORECASE):
        found = re.search(r"\(.*\)\s+(\d+\.\d+[\w.]*)", text)
        return Launcher(path, Vendor.OPENMPI, found.group(1) if found else "")
    if re.search(r"hydra|mpich|intel\(r\) mpi", text, re.IGNORECASE):
        found = re.search(r"version:?\s+(\d+\.\d+[\w.]*)", text, re.IGNORECASE)
        return Launcher(path, Vendor.MPICH, found.group(1) if found else "")
    return None


def launcher_names(vendor: Vendor | None) -> list[str]:
    """File names that a launcher may have, the most telling first (Debian adds the MPI's name)."""
    telling = {Vendor.MPICH: ["mpiexec.mpich"], Vendor.OPENMPI: ["mpiexec.openmpi"]}
    names = telling[vendor] if vendor else [name for each in Vendor for name in telling[each]]
    return [*names, "mpiexec", *([] if vendor is Vendor.OPENMPI else ["mpiexec.hydra"]), "mpirun"]


def _launchers_in(folder: Path, vendor: Vendor | None) -> Iterator[Launcher]:
    for name in launcher_names(vendor):
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            launcher = inspect_launcher(path)
            if launcher is not None and vendor in (None, launcher.vendor):
                yield launcher


def path_folders() -> list[Path]:
    return [Path(entry) for entry in os.get_exec_path() if entry]


def find_launcher(library: Path, vendor: Vendor) -> Launcher | None:
    """The launcher that belongs to an MPI library: in the bin folder above it, else on PATH."""
    real = library.resolve()
    folders = [parent / "bin" for start in (real, library) for parent in list(start.parents)[:4]]
    for folder in [*dict.fromkeys(folders), *path_folders()]:
        for launcher in _launchers_in(folder, vendor):
            return launcher
    return None


@dataclass(frozen=True)
class Installation:
    """One MPI of this machine: a launcher and the libraries beside it."""

    launcher: Launcher
    libraries: dict[Abi, Path]

    @property
    def title(self) -> str:
        return self.launcher.title


def _library_folders(prefix: Path, arch: str | None) -> list[Path]:
    names = ["lib", "lib64", "lib/release"]
    if arch is not None:
        names.insert(0, f"lib/{arch}")
    return [prefix / name for name in names]


def _libraries_of(launcher: Launcher, arch: str | None) -> dict[Abi, Path]:
    served = {Vendor.MPICH: Abi.MPICH, Vendor.OPENMPI: Abi.OPENMPI}[launcher.vendor]
    found: dict[Abi, Path] = {}
    # The launcher may be reached through links (Debian's alternatives, a module's bin folder).
    for prefix in dict.fromkeys(
        (launcher.path.parent.parent, launcher.path.resolve().parent.parent)
    ):
        for folder in _library_folders(prefix, arch):
            if not folder.is_dir():
                continue
            for path in sorted(folder.glob("libmpi*.so.*")):
                abi = abi_of_library(path.name)
                # One folder may hold libraries of both (Debian): take this launcher's own.
                if abi in (served, Abi.STANDARD) and abi is not None:
                    found.setdefault(abi, path)
    return found


def discover(extra_prefixes: list[Path], arch: str | None) -> list[Installation]:
    """Every MPI on PATH, in the current Python environment and under `extra_prefixes`, each once.

    The system's come last of PATH and environment: who has another one has got it to use it.
    """
    folders = [*path_folders(), Path(sys.prefix) / "bin"]
    if venv := os.environ.get("VIRTUAL_ENV"):
        folders.append(Path(venv) / "bin")
    folders.sort(key=lambda folder: folder in _SYSTEM_FOLDERS)
    folders += [prefix / "bin" for prefix in extra_prefixes]
    seen: set[tuple[Path, ...]] = set()
    installations = []
    for folder in dict.fromkeys(folders):
        if not folder.is_dir():
            continue
        for launcher in _launchers_in(folder, None):
            libraries = _libraries_of(launcher, arch)
            key = tuple(path.resolve() for path in libraries.values())
            if key and key not in seen:
                seen.add(key)
                installations.append(Installation(launcher, libraries))
    return installations
