# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord bench --app`: an application of examples/ with Accord, and the same over an MPI alone.

An application prints a JSON object a line for each case that it measures (app_rows.py). Each way runs
several times, in turns, since runs of a program differ by more than its calls do.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from accord.app_rows import Row, lines_of, table
from accord.app_ways import PEERS, Way, ways_of
from accord.benchmark import Target, environment_for
from accord.errors import UserError
from accord.launch import root_hint
from accord.options import Segment, take_options
from accord.paths import Home
from accord.sharing import ranks_per_node
from accord.tables import apply_table

_TIMEOUT_S = 600


@dataclass
class Plan:
    """What is to be measured: the options that are ours, and those of the application."""

    words: list[str]
    peers: list[str]
    turns: int
    file: Path | None
    plot: Path | None
    impi: Path | None


def plan_of(words: list[str]) -> Plan:
    """Raises UserError for a wrong option of ours."""
    options = ("--peer", "--turns", "--json", "--plot", "--impi")
    own, rest = take_options(words, dict.fromkeys(options, 1))
    given = [pair for word in own for pair in word.split("=", 1)]
    values: dict[str, list[str]] = {}
    for name, value in zip(given[::2], given[1::2], strict=False):
        values.setdefault(name, []).append(value)
    if len(given) % 2:
        raise UserError(f"{given[-1]} needs a value")
    peers = [peer for value in values.get("--peer", []) for peer in value.split(",")]
    for peer in peers:
        if peer not in PEERS:
            raise UserError(f"no peer {peer}; an application has {', '.join(PEERS)}")
    turns = values.get("--turns", ["3"])[-1]
    if not turns.isdigit() or turns == "0":
        raise UserError(f"--turns takes a number, not {turns}")
    paths = {name: Path(values[name][-1]) for name in options[2:] if name in values}
    plot = paths.get("--plot")
    if plot is not None and plot.suffix.lower() not in (".svg", ".png"):
        raise UserError(f"--plot takes a file .svg or .png, not {plot}")
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise UserError("--plot needs matplotlib: pip install matplotlib")
    return Plan(
        rest, list(dict.fromkeys(peers)), int(turns), paths.get("--json"), plot, paths.get("--impi")
    )


def bench_app(
    home: Home, target: Target, ranks: int, name: str, words: list[str], dry_run: bool
) -> int:
    """Exit status: 1 where a way failed or a result is wrong."""
    plan = plan_of(words)
    ways = ways_of(home, target, name, plan.words, plan.peers, plan.impi)
    if dry_run:
        for way in ways:
            with way.command(home, target, ranks) as command:
                print(shlex.join([*(f"{k}={v}" for k, v in way.environment.items()), *command]))
        return 0
    if (hint := root_hint(target.launcher, [], os.environ)) is not None:
        print(f"accord: {hint}", file=sys.stderr)
    print(f"accord: {target.title} ({target.launcher.path}), {ranks} ranks", file=sys.stderr)
    rows: dict[str, list[Row]] = {way.name: [] for way in ways}
    failed = False
    for turn in range(plan.turns):
        # Every other turn backwards, so that no way is always the first.
        for way in ways if turn % 2 == 0 else reversed(ways):
            measured, ended_well = _run(home, target, ranks, way)
            rows[way.name] += measured
            failed = failed or not ended_well
    if plan.file is not None:
        _write(plan.file, ways, ranks, rows)
    Console(highlight=False).print(table(rows))
    if plan.plot is not None:
        _draw(plan.plot, f"{name} over {target.title}, {ranks} ranks", rows)
    return 1 if failed else 0


def _run(home: Home, target: Target, ranks: int, way: Way) -> tuple[list[Row], bool]:
    """What it printed, and whether it ended well: an application fails where a result is wrong."""
    environment = environment_for(target, ranks)
    per_node = ranks_per_node([Segment(["-n", str(ranks)])], environment)
    if warning := apply_table(home, per_node, environment).warning:
        print(f"accord: {warning}", file=sys.stderr)
    environment |= way.environment
    pipe = subprocess.PIPE
    try:
        with way.command(home, target, ranks) as command:
            done = subprocess.run(
                command, env=environment, stdout=pipe, text=True, timeout=_TIMEOUT_S, check=False
            )
    except subprocess.TimeoutExpired:
        print(f"accord: {way.name}: not over after {_TIMEOUT_S} s", file=sys.stderr)
        return [], False
    if done.returncode != 0:
        print(f"accord: {way.name}: ended with {done.returncode}", file=sys.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return rows, done.returncode == 0 and bool(rows)


def _write(file: Path, ways: list[Way], ranks: int, rows: dict[str, list[Row]]) -> None:
    with file.open("a") as out:
        for way in ways:
            for row in rows[way.name]:
                record = {"way": way.name, "mpi": way.mpi, "ranks": ranks, **row}
                print(json.dumps(record), file=out)


def _draw(file: Path, title: str, rows: dict[str, list[Row]]) -> None:
    from accord.reporting.applications import draw  # late: matplotlib takes a second

    draw(file, title, list(rows), lines_of(rows))
    print(file)
