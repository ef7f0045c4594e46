# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Starts the benchmark program on an MPI of this machine. Called by the verbs bench and doctor."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from accord.discovery import installations
from accord.errors import UserError
from accord.launch import assemble, named_launcher, rank_prefix
from accord.linkage import needed_mpi
from accord.mpi import Abi, Installation, Launcher, Vendor
from accord.options import Segment
from accord.paths import Home

# Lets Open MPI 4 and 5 start more ranks than there are cores, and give a core away while they wait.
_CROWDED_OPENMPI = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclass(frozen=True)
class Target:
    """One ABI of one MPI of this machine: what the benchmark runs on."""

    installation: Installation
    abi: Abi

    @property
    def launcher(self) -> Launcher:
        return self.installation.launcher

    @property
    def library(self) -> Path:
        return self.installation.libraries[self.abi]

    @property
    def title(self) -> str:
        suffix = f" ({self.abi.label})" if self.abi is Abi.STANDARD else ""
        return self.installation.title + suffix


def core_count() -> int:
    """Cores that this process may use, a container's quota included."""
    cores = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def targets() -> list[Target]:
    return [Target(found, abi) for found in installations() for abi in sorted_abis(found)]


def sorted_abis(installation: Installation) -> list[Abi]:
    """An MPI's own ABI first."""
    return sorted(installation.libraries, key=lambda abi: abi is Abi.STANDARD)


def choose_target(home: Home, ranks: int, abi: Abi | None, mpiexec: str | None) -> Target:
    """The MPI to measure with: as the user names it, else the one that suits this many ranks.

    Of several equals a checkout takes the one that the benchmark program was built with. For an
    installation that means nothing: it looks no further than where the first mpiexec of PATH is.
    """
    found = targets()
    usable = [target for target in found if home.bench(target.abi).is_file()]
    usable.sort(key=lambda target: not _is_linked_to(home.bench(target.abi), target.library))
    if ranks > core_count():
        # MPICH spins while it waits, which takes milliseconds a call when ranks share cores.
        usable.sort(key=lambda target: target.launcher.vendor is not Vendor.OPENMPI)
    else:
        usable.sort(key=lambda target: target.abi is not Abi.MPICH)
    if home.origin != "checkout":
        folders = list(dict.fromkeys(target.launcher.path.parent for target in found))
        usable.sort(key=lambda target: folders.index(target.launcher.path.parent))
    if abi is not None:
        usable = [target for target in usable if target.abi is abi]
    if mpiexec is not None:
        path = named_launcher(mpiexec).path.resolve()
        usable = [target for target in usable if target.launcher.path.resolve() == path]
    if usable:
        return usable[0]
    named = f" with the {abi.label}" if abi else ""
    named += f" at {mpiexec}" if mpiexec else ""
    raise UserError(
        f"no benchmark program for an MPI{named}: looked for {home.bin}/accord_bench_* and for MPIs "
        "on PATH and in this Python environment"
    )


def _is_linked_to(program: Path, library: Path) -> bool:
    _, found = needed_mpi(program)
    return found is not None and found.resolve() == library.resolve()


def environment_for(target: Target, ranks: int) -> dict[str, str]:
    """The environment to start the launcher in."""
    environment = dict(os.environ)
    if target.launcher.vendor is Vendor.OPENMPI and ranks > core_count():
        for name, value in _CROWDED_OPENMPI.items():
            environment.setdefault(name, value)
    if (nvshmem := nvshmem_of_wheel()) is not None:
        environment.setdefault("ACCORD_NVSHMEM_LIBRARY", str(nvshmem))
    return environment


def nvshmem_of_wheel() -> Path | None:
    """NVSHMEM's host library where the wheel nvidia-nvshmem-cu12 or -cu13 is in this Python environment."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        library = Path(folder) / "nvshmem" / "lib" / "libnvshmem_host.so.3"
        if library.is_file():
            return library
    return None


def bench_command(
    home: Home, target: Target, ranks: int, words: list[str]
) -> contextlib.AbstractContextManager[list[str]]:
    """The command that runs the benchmark with the options `words`, valid inside the context."""
    return program_command(home, target, ranks, [str(home.bench(target.abi)), *words])


@contextlib.contextmanager
def program_command(
    home: Home, target: Target, ranks: int, words: list[str], with_accord: bool = True
) -> Iterator[list[str]]:
    """The same for a program of home.bin and its options. Without Accord it runs over the MPI alone."""
    program = Path(words[0])
    if not program.is_file():
        raise UserError(f"{program} does not exist: build Accord with this MPI")
    segment = Segment(["-n", str(ranks)], words)
    with _loader_path(program, target.library) as extra:
        prefix = rank_prefix(home, 0, os.environ, extra)
        if not with_accord:
            prefix = ["env", *(f"{name}={value}" for name, value in extra.items())]
        yield assemble(target.launcher, [segment], prefix, os.environ)


@contextlib.contextmanager
def _loader_path(program: Path, library: Path) -> Iterator[dict[str, str]]:
    """What makes the loader take this libmpi, where the program was built with another of the same ABI."""
    if _is_linked_to(program, library):
        yield {}
        return
    name, _ = needed_mpi(program)
    rest = os.environ.get("LD_LIBRARY_PATH", "")
    if (library.parent / name).exists():
        yield {"LD_LIBRARY_PATH": f"{library.parent}:{rest}".rstrip(":")}
        return
    # Debian names MPICH's library libmpich.so.12, everyone else libmpi.so.12.
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        (Path(folder) / name).symlink_to(library)
        yield {"LD_LIBRARY_PATH": f"{folder}:{library.parent}:{rest}".rstrip(":")}
