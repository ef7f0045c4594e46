# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord bench --app`: an application of examples/ with Accord, and the same over the MPI alone.

An application prints a JSON object a line for each case that it measures: `case` (words), `us`, `mpi_us`
(the part of it that is spent in MPI calls) and `correct`. Each way runs several times, in turns, since
runs of a program differ by more than its calls do.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from accord.benchmark import Target, environment_for, program_command
from accord.errors import UserError
from accord.launch import root_hint
from accord.options import Segment, take_options
from accord.paths import Home
from accord.sharing import ranks_per_node
from accord.tables import apply_table

_TIMEOUT_S = 600
_OURS = "accord"
_PEERS = {"mpi": [], "host": ["--memory", "host"]}

Row = dict[str, Any]


@dataclass
class Plan:
    """What is to be measured: the options that are ours, and those of the application."""

    words: list[str]
    ways: list[str]
    turns: int
    file: Path | None


def plan_of(words: list[str]) -> Plan:
    """Raises UserError for a wrong option of ours."""
    own, rest = take_options(words, {"--peer": 1, "--turns": 1, "--json": 1})
    given = [pair for word in own for pair in word.split("=", 1)]
    values: dict[str, list[str]] = {}
    for name, value in zip(given[::2], given[1::2], strict=False):
        values.setdefault(name, []).append(value)
    if len(given) % 2:
        raise UserError(f"{given[-1]} needs a value")
    peers = [peer for value in values.get("--peer", []) for peer in value.split(",")]
    for peer in peers:
        if peer not in _PEERS:
            raise UserError(f"no peer {peer}; an application has {' and '.join(_PEERS)}")
    turns = values.get("--turns", ["3"])[-1]
    if not turns.isdigit() or turns == "0":
        raise UserError(f"--turns takes a number, not {turns}")
    file = values.get("--json", [None])[-1]
    return Plan(rest, [_OURS, *dict.fromkeys(peers)], int(turns), Path(file) if file else None)


def bench_app(
    home: Home, target: Target, ranks: int, name: str, words: list[str], dry_run: bool
) -> int:
    """Exit status: 1 where a way failed or a result is wrong."""
    program = home.app(name, target.abi)
    if not program.is_file():
        raise UserError(f"no application {name}: {program} does not exist; a checkout builds it")
    plan = plan_of(words)
    rows: dict[str, list[Row]] = {way: [] for way in plan.ways}
    failed = False
    if not dry_run:
        if (hint := root_hint(target.launcher, [], os.environ)) is not None:
            print(f"accord: {hint}", file=sys.stderr)
        print(f"accord: {target.title} ({target.launcher.path}), {ranks} ranks", file=sys.stderr)
    for turn in range(1 if dry_run else plan.turns):
        # Every other turn backwards, so that no way is always the first.
        for way in plan.ways if turn % 2 == 0 else reversed(plan.ways):
            options = [str(program), *plan.words, *_PEERS.get(way, [])]
            with program_command(home, target, ranks, options, way == _OURS) as command:
                if dry_run:
                    print(shlex.join(command))
                else:
                    measured, ended_well = _run(home, target, ranks, way, command)
                    rows[way] += measured
                    failed = failed or not ended_well
    if dry_run:
        return 0
    if plan.file is not None:
        _write(plan.file, target, ranks, rows)
    Console(highlight=False).print(table(rows))
    return 1 if failed else 0


def _run(
    home: Home, target: Target, ranks: int, way: str, command: list[str]
) -> tuple[list[Row], bool]:
    """What it printed, and whether it ended well: an application fails where a result is wrong."""
    environment = environment_for(target, ranks)
    per_node = ranks_per_node([Segment(["-n", str(ranks)])], environment)
    if warning := apply_table(home, per_node, environment).warning:
        print(f"accord: {warning}", file=sys.stderr)
    pipe = subprocess.PIPE
    try:
        done = subprocess.run(
            command, env=environment, stdout=pipe, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"accord: {way}: not over after {_TIMEOUT_S} s", file=sys.stderr)
        return [], False
    if done.returncode != 0:
        print(f"accord: {way}: ended with {done.returncode}", file=sys.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return rows, done.returncode == 0 and bool(rows)


def _write(file: Path, target: Target, ranks: int, rows: dict[str, list[Row]]) -> None:
    with file.open("a") as out:
        for way, measured in rows.items():
            for row in measured:
                print(
                    json.dumps({"way": way, "mpi": target.title, "ranks": ranks, **row}), file=out
                )


def table(rows: dict[str, list[Row]]) -> Table:
    """A row for each case: the median of the turns of each way, and how many times as long a peer takes."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("case", overflow="fold")
    for way in rows:
        shown.add_column(f"{way} us", justify="right")
        shown.add_column("in MPI", justify="right")
    for way in list(rows)[1:]:
        shown.add_column(f"{way} / {_OURS}", justify="right")
    shown.add_column("result")
    cases = dict.fromkeys(row["case"] for measured in rows.values() for row in measured)
    for case in cases:
        of_case = {way: [row for row in rows[way] if row["case"] == case] for way in rows}
        times = {way: _median(of_case[way], "us") for way in rows}
        cells = [case]
        for way in rows:
            cells += [_number(times[way]), _number(_median(of_case[way], "mpi_us"))]
        for way in list(rows)[1:]:
            ours, theirs = times[_OURS], times[way]
            cells.append("-" if ours is None or theirs is None else f"{theirs / ours:.2f}")
        correct = all(row["correct"] for measured in of_case.values() for row in measured)
        shown.add_row(*cells, "ok" if correct else "WRONG")
    return shown


def _median(rows: list[Row], key: str) -> float | None:
    return statistics.median(row[key] for row in rows) if rows else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
