# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Builds the mpiexec command that runs a program under Accord. Called by the verbs run, bench and doctor.

Only the ranks get LD_PRELOAD, never the launcher: `env` stands before the program and sets it, which
every launcher carries unchanged to every node.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from accord.errors import UserError
from accord.linkage import Linkage, detect
from accord.mpi import Launcher, Vendor, find_launcher, inspect_launcher
from accord.options import Segment
from accord.paths import Home

_BIND_SCRIPT = Path(__file__).resolve().parent / "bind_gpu.sh"
_ROOT_VARIABLES = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


def preload_value(home: Home, environment: Mapping[str, str]) -> str:
    """LD_PRELOAD for a rank. Accord comes after what is there, so that PMPI tools see the user's calls."""
    library = str(home.library)
    if " " in library or ":" in library:
        raise UserError(f"{library} cannot be preloaded: its path holds a space or a colon")
    given = environment.get("LD_PRELOAD", "")
    if library in given.replace(":", " ").split():
        return given
    return f"{given}:{library}" if given else library


def choose_launcher(linkage: Linkage, named: str | None) -> Launcher:
    if named is not None:
        launcher = named_launcher(named)
        if launcher.vendor is not linkage.vendor:
            raise UserError(other_vendor(launcher, f"{linkage.vendor.value}, {linkage.library}"))
        return launcher
    found = find_launcher(linkage.library, linkage.vendor)
    if found is None:
        raise UserError(
            f"found no mpiexec of {linkage.vendor.value} for {linkage.library}; name it with "
            "--mpiexec, or under Slurm start the program with "
            '`LD_PRELOAD="$(accord preload)" srun ...`'
        )
    return found


def other_vendor(launcher: Launcher, mpi: str) -> str:
    """Why this launcher is refused: each rank would take itself for the only one."""
    return (
        f"{launcher.path} is the launcher of {launcher.title}, and the program's MPI is {mpi}: leave "
        "--mpiexec out, or name a launcher of that MPI"
    )


def named_launcher(name: str) -> Launcher:
    for folder in [""] if "/" in name else os.get_exec_path():
        path = Path(folder) / name
        if path.is_file() and os.access(path, os.X_OK):
            if (launcher := inspect_launcher(path.absolute())) is not None:
                return launcher
            raise UserError(f"{path} --version names neither MPICH nor Open MPI")
    raise UserError(f"the launcher {name} does not exist")


def same_mpi(segments: list[Segment]) -> Linkage:
    """The MPI that all programs of the command share."""
    found = [(segment.program[0], detect(segment.program)) for segment in segments]
    first_name, first = found[0]
    for name, linkage in found[1:]:
        if linkage.abi is not first.abi:
            raise UserError(
                f"{first_name} uses the {first.abi.label} and {name} the {linkage.abi.label}: one job "
                "needs one MPI"
            )
    return first


def rank_prefix(
    home: Home,
    gpus_per_rank: int,
    environment: Mapping[str, str],
    extra: Mapping[str, str] | None = None,
) -> list[str]:
    """The words before the program: set the environment of the rank, then execute it."""
    words = ["sh", str(_BIND_SCRIPT), str(gpus_per_rank)] if gpus_per_rank else []
    words += ["env", *(f"{name}={value}" for name, value in (extra or {}).items())]
    return [*words, f"LD_PRELOAD={preload_value(home, environment)}"]


def _forwarded(
    launcher: Launcher, given: Collection[str], environment: Mapping[str, str]
) -> list[str]:
    """Options that carry the settings to other nodes: Open MPI does so for named variables only."""
    if launcher.vendor is not Vendor.OPENMPI:
        return []
    named = {word.split("=", 1)[0] for word in given}
    names = sorted(name for name in environment if name.startswith("ACCORD_") and name not in named)
    return [word for name in names for word in ("-x", name)]


def root_hint(
    launcher: Launcher, given: Collection[str], environment: Mapping[str, str]
) -> str | None:
    """What to say before Open MPI refuses to run as root; whether it may is the user's decision."""
    if launcher.vendor is not Vendor.OPENMPI or os.geteuid() != 0:
        return None
    if "--allow-run-as-root" in given or all(
        environment.get(name) == "1" for name in _ROOT_VARIABLES
    ):
        return None
    return (
        "Open MPI does not run as root unless you allow it: set "
        + " and ".join(f"{name}=1" for name in _ROOT_VARIABLES)
        + ", or pass --allow-run-as-root"
    )


def assemble(
    launcher: Launcher,
    segments: list[Segment],
    prefix: list[str],
    environment: Mapping[str, str],
) -> list[str]:
    """mpiexec OPTIONS PREFIX PROGRAM [: OPTIONS PREFIX PROGRAM ...]."""
    command = [str(launcher.path)]
    for position, segment in enumerate(segments):
        if any(word == "LD_PRELOAD" or word.startswith("LD_PRELOAD=") for word in segment.options):
            raise UserError(
                "give LD_PRELOAD in the environment, not as a launcher option: accord run adds its "
                "library to it"
            )
        command += [":"] if position else []
        command += [*segment.options, *_forwarded(launcher, segment.options, environment)]
        command += [*prefix, *segment.program]
    return command
