# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord bench`: measures MPI operations under Accord with an MPI of this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from typing import Annotated, Any

import typer

from accord.bench_app import bench_app
from accord.benchmark import bench_command, choose_target, environment_for
from accord.errors import UserError
from accord.job import run_job
from accord.launch import root_hint
from accord.mpi import Abi
from accord.options import PassOnCommand, Segment
from accord.paths import Home, find_home
from accord.sharing import ranks_per_node
from accord.tables import apply_table

# Where the benchmark's own help has the texts of its options.
_TEXT_COLUMN = 30


class BenchCommand(PassOnCommand):
    """Adds the benchmark program's own options to --help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        sys.stdout.flush()
        with contextlib.suppress(UserError, OSError, subprocess.TimeoutExpired):
            words = [_any_program(find_home()), "--help"]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            for line in done.stdout.splitlines():
                print(_broken(line, shutil.get_terminal_size().columns))


def _any_program(home: Home) -> str:
    for abi in Abi:
        if home.bench(abi).is_file():
            return str(home.bench(abi))
    raise UserError(f"no benchmark program in {home.bin}; build Accord with an MPI")


def _broken(line: str, width: int) -> str:
    """A line of help that ends with the terminal and goes on below the place where its text began."""
    heading = re.match(r"[a-z]+: ", line)
    start = _TEXT_COLUMN if line.startswith("  ") else heading.end() if heading else 0
    indent = " " * min(start, width // 2)
    lines = textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines)


def _wants_progress(words: list[str]) -> bool:
    given = any(word.split("=", 1)[0] == "--progress" for word in words)
    return sys.stderr.isatty() and not given


def bench(
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    ranks: Annotated[int, typer.Option("-n", "-np", "--ranks", min=1, help="Ranks.")] = 2,
    mpi: Annotated[
        Abi | None,
        typer.Option(
            help="The MPI to measure with. By default the first on PATH; of several in one folder "
            "MPICH, or Open MPI for more ranks than cores.",
            show_default=False,
        ),
    ] = None,
    mpiexec: Annotated[
        str | None, typer.Option(metavar="PATH", help="Measure with the MPI of this launcher.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command instead of running it.")
    ] = False,
    app: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Measure an application of examples/ with Accord, and over the MPI alone with --peer: on "
            "the same memory (mpi), on host memory (host), with its own staging (staged), or over Intel "
            "MPI (impi, found by --impi DIR). --turns N, --json FILE and --plot FILE.svg are for all "
            "applications; other options are the application's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure MPI operations under Accord.

    Starts the benchmark program with an MPI of this machine. Its own options stand below these.

    [bold]accord bench allreduce -n 2 --memory device --max 1M[/bold]

    [bold]accord bench all -n 4 --mpi openmpi --json results.json[/bold]

    [bold]accord bench --app fft3d -n 4 --size 64x64x64 --grid pencil --peer staged,host[/bold]
    """
    home = find_home()
    if app is not None:
        target = choose_target(home, ranks, mpi, mpiexec)
        raise typer.Exit(bench_app(home, target, ranks, app, words or [], dry_run))
    if not words:
        raise UserError("no operation given; `accord bench --help` lists them")
    if "--list" in words:
        raise typer.Exit(subprocess.run([_any_program(home), *words], check=False).returncode)
    target = choose_target(home, ranks, mpi, mpiexec)
    options = ["--progress", "on"] if _wants_progress(words) else []
    with bench_command(home, target, ranks, [*words, *options]) as command:
        if dry_run:
            print(shlex.join(command))
            return
        if (hint := root_hint(target.launcher, [], os.environ)) is not None:
            print(f"accord: {hint}", file=sys.stderr)
        print(f"accord: {target.title} ({target.launcher.path}), {ranks} ranks", file=sys.stderr)
        tidy = bool(options) and sys.stdout.isatty()
        environment = environment_for(target, ranks)
        per_node = ranks_per_node([Segment(["-n", str(ranks)])], environment)
        if warning := apply_table(home, per_node, environment).warning:
            print(f"accord: {warning}", file=sys.stderr)
        raise typer.Exit(run_job(command, environment, tidy))
