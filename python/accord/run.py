# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord run`: starts an MPI program under Accord with the program's own MPI."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from accord.discovery import installation_of
from accord.errors import UserError
from accord.launch import (
    assemble,
    choose_launcher,
    named_launcher,
    other_vendor,
    rank_prefix,
    root_hint,
    same_mpi,
)
from accord.linkage import resolve_program
from accord.mpi import Abi, Launcher
from accord.options import Segment, split_command_line
from accord.paths import find_home
from accord.sharing import ranks_per_node
from accord.tables import apply_table


def _programs(words: list[str]) -> list[Segment]:
    _, segments = split_command_line(words, {})
    for segment in segments:
        if (option := segment.file_option()) is not None:
            raise UserError(
                f"{option} names the programs in a file, which accord run cannot follow; write them "
                "on the command line, separated by `:`, or set LD_PRELOAD yourself (`accord preload`)"
            )
        if not segment.program:
            raise UserError("no program given; usage: accord run -n 4 ./app")
    return segments


def _find_mpi(
    segments: list[Segment], mpi: Abi | None, mpiexec: str | None
) -> tuple[Launcher, str]:
    """The launcher, and in words what was found out."""
    if mpi is None:
        linkage = same_mpi(segments)
        return choose_launcher(linkage, mpiexec), f"{linkage.abi.label}, {linkage.library}"
    for segment in segments:
        resolve_program(segment.program[0])
    launcher = named_launcher(mpiexec) if mpiexec else installation_of(mpi).launcher
    if mpi.vendor not in (None, launcher.vendor):
        raise UserError(other_vendor(launcher, f"{mpi.vendor.value}, as --mpi says"))
    return launcher, f"{mpi.label}, as given by --mpi"


def run(
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    mpi: Annotated[
        Abi | None,
        typer.Option(help="The program's MPI, for a program that loads it by itself."),
    ] = None,
    mpiexec: Annotated[
        str | None, typer.Option(metavar="PATH", help="Use this launcher of the program's MPI.")
    ] = None,
    bind_gpu: Annotated[
        bool,
        typer.Option(
            "--bind-gpu",
            help="Show each rank one GPU of its node, by local rank (sets CUDA_VISIBLE_DEVICES).",
        ),
    ] = False,
    gpus_per_rank: Annotated[
        int, typer.Option(min=0, help="The same with several GPUs a rank; 0 leaves them alone.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command instead of running it.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--explain", help="Say on stderr which MPI was found, then run.")
    ] = False,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Say on stderr which way each call on device memory goes, and why (ACCORD_TRACE=1).",
        ),
    ] = False,
) -> None:
    """Run an MPI program under Accord.

    Finds out which MPI the program uses (a Python program: which one mpi4py loads), starts it with that
    MPI's own mpiexec and preloads Accord into the ranks. Options that are not listed below go to mpiexec
    unchanged. The exit status is the job's.

    [bold]accord run -n 4 ./app input.dat[/bold]

    [bold]accord run -n 4 python train.py[/bold]

    If it takes the wrong word for the program, put [bold]--[/bold] before the program. Under Slurm no
    accord run is needed: [bold]LD_PRELOAD="$(accord preload)" srun ./app[/bold]
    """
    segments = _programs(words or [])
    home = find_home()
    launcher, found = _find_mpi(segments, mpi, mpiexec)
    gpus = gpus_per_rank or int(bind_gpu)
    ranks = ranks_per_node(segments, os.environ).times(max(1, gpus))
    table = apply_table(home, ranks, os.environ)  # mpiexec hands it on to the ranks
    if table.warning:
        print(f"accord: {table.warning}", file=sys.stderr)
    extra = {"ACCORD_TRACE": "1"} if trace else {}
    prefix = rank_prefix(home, gpus, os.environ, extra)
    command = assemble(launcher, segments, prefix, os.environ)
    if verbose:
        print(f"accord: {found}; {launcher.title} ({launcher.path})", file=sys.stderr)
        if table.note:
            print(f"accord: {table.note}", file=sys.stderr)
    if dry_run:
        print(shlex.join(command))
        return
    if (hint := root_hint(launcher, segments[0].options, os.environ)) is not None:
        print(f"accord: {hint}", file=sys.stderr)
    sys.stdout.flush()
    os.execv(command[0], command)
