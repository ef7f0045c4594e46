# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord doctor`: runs the checks of accord/checks, says what is slow or broken and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from accord.checks.accord_files import check_accord
from accord.checks.devices import accelerators, check_devices
from accord.checks.finding import Finding, State
from accord.checks.machine import check_machine
from accord.checks.ranks import check_ranks
from accord.checks.report import check_place, write_report
from accord.errors import UserError
from accord.library import read_info
from accord.paths import Home, find_home

_STYLES = {State.OK: "green", State.SLOW: "yellow", State.BROKEN: "bold red"}


def _findings(console: Console, run_ranks: bool, seen: _Seen) -> Iterator[Finding]:
    try:
        seen.home = home = find_home()
        seen.told = told = read_info(home.library)
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


@dataclass
class _Seen:
    """What the checks have found, for the report."""

    home: Home | None = None
    told: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def _print(console: Console, finding: Finding) -> None:
    line = Text(f"{finding.state.value:<8}", style=_STYLES[finding.state])
    line.append(finding.text, style="default")
    console.print(line, soft_wrap=True)
    if finding.mend:
        console.print(Text(f"{'':<8}mend: {finding.mend}"), soft_wrap=True)


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the 2-rank runs.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write what a report of a problem needs: all in one JSON file."
        ),
    ] = None,
) -> None:
    """Check this machine: say in plain words what is slow or broken, and how to mend it.

    The last checks start two ranks with each MPI found: allreduce and messages on device memory, with
    verified results and their times beside the host MPI's own. In an allocation of Slurm or PBS, too,
    they are started on this machine. The exit status is 1 when something is broken.

    The file of --report has versions, machine, MPIs, libraries, the settings that differ, the findings
    with the output of what failed, and of the environment what concerns Accord, MPI, devices and the
    job manager; names of user and machine are replaced. Read it before you send it.

    [bold]accord doctor --report report.json[/bold]
    """
    if report is not None:
        check_place(report)
    console = Console(highlight=False)
    count = dict.fromkeys(State, 0)
    seen = _Seen()
    for finding in _findings(console, not quick, seen):
        seen.findings.append(finding)
        count[finding.state] += 1
        _print(console, finding)
    if report is not None:
        write_report(report, seen.home, seen.told, seen.findings)
        console.print(f"report: {report}", soft_wrap=True)
    console.print(", ".join(f"{number} {state.value}" for state, number in count.items()))
    if count[State.BROKEN]:
        raise typer.Exit(1)
