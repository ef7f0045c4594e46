# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord tune`: measures every algorithm on this machine and writes the table that chooses among them."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from accord.algorithms import (
    MESSAGES,
    NET_SEND,
    SEND_RANKS,
    Algorithms,
    Question,
    as_table_names,
    asked_as,
    explain,
    messages_of,
    operations_of,
)
from accord.benchmark import Target, choose_target
from accord.errors import UserError
from accord.job import INTERRUPTED
from accord.launch import root_hint
from accord.mpi import Abi
from accord.paths import Home, find_home
from accord.sizes import parse_size, size_text
from accord.sweep import OutOfTimeError, Planned, Record, State, key_of, measure
from accord.table_file import check_place, with_earlier, write_table
from accord.tables import OFF, VARIABLE, file_name, user_dir
from accord.tuned_machine import TunedMachine
from accord.verdict import ELEMENT_BYTES, RULE, TWO_LEVEL, Key, Point, points_of

# Of the whole time what the timed calls take; the rest is warm-up, verification, starting ranks.
_TIMED_SHARE = 0.3
_SECONDS_MIN, _SECONDS_MAX = 0.02, 0.5
# The rest is for points that are unclear.
_FIRST_PASS_SHARE = 0.8
# Unclear points are measured again, each time this many times as long.
_LONGER = 4
_REPEATS_MAX = 2
_CONTEST = 1.25


def _sizes(smallest: int, largest: int, factor: int) -> list[int]:
    """In whole elements, as the benchmark counts."""
    if smallest < ELEMENT_BYTES:
        raise UserError(f"--min {smallest} is less than an element, {ELEMENT_BYTES} bytes")
    if smallest > largest:
        raise UserError(f"--min {smallest} is more than --max {largest}")
    sizes = [smallest // ELEMENT_BYTES * ELEMENT_BYTES]
    while sizes[-1] * factor <= largest:
        sizes.append(sizes[-1] * factor)
    return sizes


def plan_of(
    home: Home, algorithms: Algorithms, keys: list[Key], across_nodes: bool = False
) -> list[Planned]:
    """Beside the rule's every algorithm that such a call can take and that is not the rule's own. Across
    nodes these are two levels, by what goes between the nodes."""
    names = {key: [name for name in algorithms.of(key.collective) if name != RULE] for key in keys}
    questions = [
        Question(*key[:2], key.block_bytes, asked_as(key.collective, name))
        for key in keys
        for name in names[key]
    ]
    settings = {VARIABLE: OFF, "ACCORD_ALGORITHM": RULE}
    if across_nodes or any(key.collective == NET_SEND for key in keys):
        settings["ACCORD_NET_DESIGN"] = RULE
    answers = iter(explain(home.library, questions, settings))
    taken, rule = ("across_nodes", "rule_across_nodes") if across_nodes else ("algorithm", "rule")
    designs = [name for name in algorithms.of(NET_SEND) if name != RULE]
    of_levels = {TWO_LEVEL, *(f"{TWO_LEVEL}-{design}" for design in designs)}
    planned = []
    for key in keys:
        of_key = [(name, next(answers)) for name in names[key]]
        planned.append(
            Planned(
                key,
                tuple(
                    name
                    for name, answer in of_key
                    if answer[taken] == name
                    and answer[rule] != name
                    and (not across_nodes or name in of_levels)
                ),
                across_nodes,
            )
        )
    return planned


class Sweep:
    """The measuring part of a tuning: passes over the grid, until all is clear or the time is up."""

    def __init__(self, home: Home, target: Target, state: State, budget_s: float) -> None:
        self.home, self.target, self.state = home, target, state
        self.begin_s, self.budget_s = time.monotonic(), budget_s
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )

    def left_s(self, share: float = 1) -> float:
        """Until this share of the time is over."""
        return self.begin_s + share * self.budget_s - time.monotonic()

    def run(self, title: str, planned: list[Planned], seconds: float, share: float = 1) -> None:
        """Every number of ranks gets its part of the time. Small sizes come first: where the time is not
        enough for the largest ones, these go by the rule."""
        task = self.progress.add_task(title, total=len(planned))
        counts = sorted({point.key.ranks for point in planned})
        for position, ranks in enumerate(counts):
            same = [point for point in planned if point.key.ranks == ranks]
            same.sort(key=lambda point: point.key.size_bytes)
            part_s = max(0.0, self.left_s(share)) / (len(counts) - position)

            def finished(records: list[Record]) -> None:
                self.state.add(records)
                last = records[0]
                where = f"{last['operation']} {size_text(last['size_bytes'])} x {last['ranks']}"
                self.progress.update(task, advance=1, description=f"{title}: {where}")

            print(f"accord: {title}: {len(same)} points among {ranks} ranks", file=sys.stderr)
            deadline_s = time.monotonic() + part_s
            with suppress(OutOfTimeError):
                measure(self.home, self.target, same, seconds, deadline_s, finished)

    def repeat(self, planned: list[Planned], paths: dict[str, str], seconds: float) -> None:
        """The noise guard: the most doubtful first, as many as the rest of the time allows."""
        keys = {point.key for point in planned}
        for _ in range(_REPEATS_MAX):
            seconds *= _LONGER
            mine = [record for record in self.state.records if key_of(record) in keys]
            unclear = [point for point in points_of(mine, paths) if point.unclear]
            unclear.sort(key=Point.doubt, reverse=True)
            fit = int(max(0.0, self.left_s()) * _TIMED_SHARE * 2 / seconds)
            again = [_contest(point, planned[0].across_nodes) for point in unclear[:fit]]
            if not again:
                return
            self.run("unclear points", again, seconds)


def _contest(point: Point, across_nodes: bool) -> Planned:
    """The point again, without what is too slow to win."""
    near = [one for one in point.candidates if one.low < _CONTEST * point.chosen.ratio]
    names = tuple(one.algorithm for one in near if one.algorithm != RULE)
    return Planned(point.key, names, across_nodes)


def _summarize(points: list[Point], path: Path, signature: str) -> None:
    better = [point for point in points if point.chosen.algorithm != RULE]
    unclear = sum(point.unclear for point in points)
    print(
        f"{len(points)} points, at {len(better)} an algorithm beats the rule's, {unclear} unclear"
    )
    for point in sorted(better, key=lambda one: one.chosen.ratio)[:10]:
        key, chosen = point.key, point.chosen
        print(
            f"  {key.collective} {size_text(key.block_bytes)} among {key.ranks}: {chosen.algorithm} "
            f"takes {chosen.ratio:.2f} of the rule's time"
        )
    print(f"table: {path} ({signature})")


def _write(machine: TunedMachine, mpi: str, points: list[Point], path: Path) -> None:
    table = with_earlier(machine.table(mpi, points), path, machine.algorithms)
    write_table(path, table)
    _summarize(points, path, machine.facts["signature"])


def _read_records(files: list[Path], machine: TunedMachine) -> list[Record]:
    """What a table can be made of: collectives the library knows, measured by a way of Accord."""
    records: list[Record] = []
    for file in files:
        try:
            lines = file.read_text().splitlines()
        except (OSError, ValueError) as error:
            raise UserError(f"{file} holds no records of the benchmark: {error}") from error
        messages = _messages_in(lines)
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = _checked(json.loads(line), messages, machine)
            except (UserError, LookupError, TypeError, ValueError, ArithmeticError) as error:
                reason = f"no {error}" if isinstance(error, KeyError) else error
                raise UserError(
                    f"{file} holds no records of the benchmark: line {number}: {reason}"
                ) from error
            records += [] if record is None else [record]
    return records


def _messages_in(lines: list[str]) -> str:
    records = []
    for line in lines:
        with suppress(ValueError):
            records.append(json.loads(line))
    return messages_of(records)


def _checked(given: Any, messages: str, machine: TunedMachine) -> Record | None:
    """None: of something else. Raises what points_of does where a figure is missing."""
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    record = as_table_names(given, messages)
    if "algorithm" not in record:
        return None
    if record["operation"] not in machine.algorithms.calls:
        return None
    where = record.get("machine", {})
    for name, here in (
        ("runtime", [machine.facts["runtime"]]),
        ("device", machine.facts["devices"]),
    ):
        if where.get(name) and where[name] not in here:
            raise UserError(f"measured on the {name} {where[name]}, which this machine has not")
    points_of([record], machine.paths)
    machine.measured_sharing(record)
    return record


def _measure(sweep: Sweep, planned: list[Planned], paths: dict[str, str], seconds: float) -> None:
    missing = [point for point in planned if sweep.state.lacks(point)]
    if len(missing) < len(planned):
        done = len(planned) - len(missing)
        print(f"accord: {done} points were measured before", file=sys.stderr)
    try:
        with sweep.progress:
            if missing:
                sweep.run("measuring", missing, seconds, _FIRST_PASS_SHARE)
            sweep.repeat(planned, paths, seconds)
    except (KeyboardInterrupt, SystemExit):
        print("accord: interrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _path_of(machine: TunedMachine, output: Path | None) -> Path:
    return output or user_dir() / file_name(machine.facts["signature"])


def tune(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(help="Collectives, or send; by default the eight usual ones and send."),
    ] = None,
    ranks: Annotated[
        list[int] | None,
        typer.Option("-n", "--ranks", min=2, help="Ranks; repeat it. By default 2, 4, … devices."),
    ] = None,
    smallest: Annotated[str, typer.Option("--min", help="Smallest size.")] = "8",
    largest: Annotated[str, typer.Option("--max", help="Largest size.")] = "256M",
    factor: Annotated[int, typer.Option(min=2, help="From one size to the next.")] = 4,
    budget: Annotated[
        float, typer.Option(min=1, help="Seconds that all of it should take, about.")
    ] = 300,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds for each point, instead of what the budget gives."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The table; by default where accord run finds it.")
    ] = None,
    records: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Measure nothing, take these records of accord bench --json."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what an interrupted tuning has measured.")
    ] = False,
    mpi: Annotated[Abi | None, typer.Option(help="The MPI to measure with.")] = None,
    mpiexec: Annotated[
        str | None, typer.Option(metavar="PATH", help="Measure with the MPI of this launcher.")
    ] = None,
    across_nodes: Annotated[
        bool,
        typer.Option(
            "--across-nodes",
            help="The ranks are on several nodes: measure what goes between these.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the points instead of measuring them.")
    ] = False,
) -> None:
    """Measure every algorithm on this machine and write the table that chooses among them.

    Each collective, size and number of ranks is measured by every algorithm that can do it, all in one
    run, with verified results; where the fastest is in doubt, again and longer. The table holds what was
    measured, too. When it is interrupted, the same command goes on where it was. Ranks that share devices
    get a table of their own, and another one under NVIDIA's MPS.

    [bold]accord tune[/bold]

    [bold]accord tune allreduce alltoall --ranks 4 --budget 120[/bold]
    """
    home = find_home()
    machine = TunedMachine(home, across_nodes)
    if records:
        read = _read_records(records, machine)
        points = points_of(read, machine.paths)
        if not points:
            raise UserError("no record names an algorithm of Accord on device memory")
        machine.share((int(one["ranks"]), machine.measured_sharing(one)) for one in read)
        _write(machine, "", points, _path_of(machine, output))
        return
    counts = machine.rank_counts(ranks)
    names = machine.collectives(collectives, counts)
    sizes = _sizes(parse_size(smallest), parse_size(largest), factor)
    keys = [
        Key(name, count, size)
        for count in counts
        for name in names
        for size in sizes
        if name not in MESSAGES
    ]
    keys += [Key(name, SEND_RANKS, size) for name in names if name in MESSAGES for size in sizes]
    machine.share((key.ranks, machine.sharing_of(key)) for key in keys)
    path = _path_of(machine, output)
    planned = plan_of(home, machine.algorithms, keys, across_nodes)
    if dry_run:
        for point in planned:
            print(*point.key, *point.algorithms)
        return
    measurements = sum(len(operations_of(key.collective)) for key in keys)
    share_s = budget * _TIMED_SHARE / measurements
    seconds = seconds or min(_SECONDS_MAX, max(_SECONDS_MIN, share_s))
    check_place(path)
    target = choose_target(home, max(key.ranks for key in keys), mpi, mpiexec)
    if (hint := root_hint(target.launcher, [], os.environ)) is not None:
        print(f"accord: {hint}", file=sys.stderr)
    state = State(path.with_suffix(".records.jsonl"), machine.header(target.title), fresh)
    _measure(Sweep(home, target, state, budget), planned, machine.paths, seconds)
    mine = [record for record in state.records if key_of(record) in {*keys}]
    machine.check_measured(mine)
    points = points_of(mine, machine.paths)
    if not points:
        raise UserError("no point was measured in time; give it more with --budget")
    _write(machine, target.title, points, path)
    if left := sum(state.lacks(point) for point in planned):
        print(f"{left} points were not measured in time: the same command measures them")
    else:
        state.end({*keys})
