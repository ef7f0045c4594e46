# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How `accord bench --app` runs an application: with Accord, and its peers over an MPI alone."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from accord.benchmark import Target, program_command
from accord.errors import UserError
from accord.library import read_info
from accord.mpi import Abi, inspect_launcher
from accord.paths import Home

OURS = "accord"
# What each application calls its own staging: all that it hands to MPI then is memory of the CPU.
_STAGED = {
    "fft3d": ["--reshape", "staged"],
    "stencil3d": ["--exchange", "staged"],
    "cg": ["--exchange", "staged", "--dots", "staged"],
    "jacobi": ["--way", "staged"],
    "moe": ["--exchange", "staged"],
    "loss": ["--way", "staged"],
}
# Those that need no compiler for GPUs: they load what they need of CUDA.
_WITHOUT_NVCC = ("fft3d",)
PEERS = {
    "mpi": "the MPI alone, on the same memory",
    "host": "the MPI alone, on host memory",
    "staged": "the MPI alone, with the application's own staging",
    "impi": "Intel MPI, on the same memory",
}


@dataclass(frozen=True)
class Way:
    """A program, its options, and over which MPI it runs."""

    name: str
    mpi: str
    program: Path
    words: list[str]
    impi: Path | None = None  # the folder of Intel MPI, if it is that
    environment: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def command(self, home: Home, target: Target, ranks: int) -> Iterator[list[str]]:
        """The command that runs it, valid inside the context."""
        words = [str(self.program), *self.words]
        if self.impi is not None:
            yield [str(self.impi / "bin" / "mpiexec.hydra"), "-n", str(ranks), *words]
            return
        with program_command(home, target, ranks, words, self.name == OURS) as command:
            yield command


def ways_of(
    home: Home, target: Target, app: str, words: list[str], peers: list[str], impi: Path | None
) -> list[Way]:
    """Ours first. Raises UserError for a peer that is not to be had."""
    on_cpu = home.app(app, target.abi)
    if not on_cpu.is_file():
        raise UserError(f"no application {app}: {on_cpu} does not exist; a checkout builds it")
    has_cuda = read_info(home.library).get("default_runtime") == "cuda"
    on_gpu = home.gpu_app(app, target.abi)
    program = on_gpu if has_cuda and on_gpu.is_file() else on_cpu
    if has_cuda and program is on_cpu and app not in _WITHOUT_NVCC:
        print(
            f"accord: {on_gpu} does not exist (`ninja accord_gpu_apps`): kernels run on the CPU",
            file=sys.stderr,
        )
    ways = [Way(OURS, target.title, program, words)]
    for peer in peers:
        if peer == "host":
            ways.append(Way(peer, target.title, on_cpu, [*words, "--memory", "host"]))
        elif peer == "staged":
            ways.append(Way(peer, target.title, program, [*words, *_staging_of(app)]))
        elif peer == "impi":
            folder, environment = _intel_mpi(target, impi, has_cuda)
            ways.append(Way(peer, _title_of(folder), program, words, folder, environment))
        else:
            ways.append(Way(peer, target.title, program, words))
    return ways


def _title_of(impi: Path) -> str:
    launcher = inspect_launcher(impi / "bin" / "mpiexec.hydra")
    return f"Intel MPI {launcher.version}".strip() if launcher is not None else "Intel MPI"


def _staging_of(app: str) -> list[str]:
    if app not in _STAGED:
        raise UserError(f"{app} has no staging of its own, so no peer staged")
    return _STAGED[app]


def _intel_mpi(target: Target, folder: Path | None, has_cuda: bool) -> tuple[Path, dict[str, str]]:
    """Where it is, and what a program that was built with an MPICH needs to run over it."""
    if folder is None:
        raise UserError(
            "the peer impi needs --impi DIR, such as the Python environment that has impi-rt"
        )
    folder = folder.absolute()
    for file in ("bin/mpiexec.hydra", "lib/libmpi.so.12"):
        if not (folder / file).is_file():
            raise UserError(f"--impi {folder} is no Intel MPI: it has no {file}")
    if target.abi is not Abi.MPICH:
        raise UserError(
            f"the peer impi has the {Abi.MPICH.label}, and the program the {target.abi.label}: "
            "choose with --mpi mpich"
        )
    rest = os.environ.get("LD_LIBRARY_PATH", "")
    environment = {
        "LD_LIBRARY_PATH": f"{folder / 'lib'}:{rest}".rstrip(":"),
        "I_MPI_ROOT": str(folder),
        "I_MPI_FABRICS": "shm",
        "I_MPI_HYDRA_BOOTSTRAP": "fork",
    }
    if has_cuda:
        environment |= {"I_MPI_OFFLOAD": "1", "I_MPI_OFFLOAD_MODE": "cuda"}
    return folder, environment
