# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord doctor`: runs the checks of accord/checks, says what is slow or broken and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from accord.checks.accord_files import check_accord
from accord.checks.devices import accelerators, check_devices
from accord.checks.finding import Finding, State
from accord.checks.machine import check_machine
from accord.checks.ranks import check_ranks
from accord.errors import UserError
from accord.library import read_info
from accord.paths import find_home

_STYLES = {State.OK: "green", State.SLOW: "yellow", State.BROKEN: "bold red"}


def _findings(console: Console, run_ranks: bool) -> Iterator[Finding]:
    try:
        home = find_home()
        told = read_info(home.library)
    except UserError as error:
        yield Finding(
            State.BROKEN, str(error), "build Accord, or point ACCORD_HOME to a good build"
        )
        yield from check_machine(has_accelerator=False)
        return
    yield from check_accord(home, told)
    yield from check_devices(told)
    yield from check_machine(has_accelerator=bool(accelerators(told)))
    if run_ranks:
        with console.status("") as status:
            yield from check_ranks(home, status.update)


def _print(console: Console, finding: Finding) -> None:
    line = Text(f"{finding.state.value:<8}", style=_STYLES[finding.state])
    line.append(finding.text, style="default")
    console.print(line, soft_wrap=True)
    if finding.mend:
        console.print(Text(f"{'':<8}mend: {finding.mend}"), soft_wrap=True)


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the 2-rank runs.")] = False,
) -> None:
    """Check this machine: say in plain words what is slow or broken, and how to mend it.

    The last checks start two ranks with each MPI found: allreduce and messages on device memory, with
    verified results and their times beside the host MPI's own. The exit status is 1 when something is
    broken.
    """
    console = Console(highlight=False)
    count = dict.fromkeys(State, 0)
    for finding in _findings(console, run_ranks=not quick):
        count[finding.state] += 1
        _print(console, finding)
    console.print(", ".join(f"{number} {state.value}" for state, number in count.items()))
    if count[State.BROKEN]:
        raise typer.Exit(1)
