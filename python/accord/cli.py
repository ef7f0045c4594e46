# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The command `accord`: one verb a file, put together here."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.completion import completion_init

from accord import __version__
from accord.bench import BenchCommand, bench
from accord.doctor import doctor
from accord.ending import unwind_when_told_to_end
from accord.errors import USAGE_EXIT_CODE, UserError
from accord.explain import explain
from accord.info import info
from accord.options import LaunchCommand
from accord.preload import preload
from accord.report import report
from accord.run import run
from accord.tune import tune

COMPLETION_VARIABLE = "_ACCORD_COMPLETE"

app = typer.Typer(
    name="accord",
    help="Makes the MPI you have work on accelerator memory, without a change to the program.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"accord {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def _add(verb: Callable[..., None], **options: Any) -> None:
    """Its docstring is its help, whose paragraphs break where the terminal ends."""
    paragraphs = inspect.cleandoc(verb.__doc__ or "").split("\n\n")
    app.command(help="\n\n".join(text.replace("\n", " ") for text in paragraphs), **options)(verb)


_add(run, cls=LaunchCommand, options_metavar="[OPTIONS]")
_add(preload)
_add(info)
_add(doctor)
_add(tune)
_add(explain)
_add(bench, cls=BenchCommand, options_metavar="[OPTIONS]")
_add(report)


def main() -> None:
    if COMPLETION_VARIABLE in os.environ:  # set by what shells load for completion
        completion_init()
    unwind_when_told_to_end()
    try:
        app(prog_name="accord")
    except UserError as error:
        print(f"accord: {error}", file=sys.stderr)
        sys.exit(USAGE_EXIT_CODE)
