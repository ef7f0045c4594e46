# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord explain`: which algorithm a collective, or a message, would take on this machine, and why."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accord import algorithms_page
from accord.algorithms import NET_SEND, Question, read_algorithms
from accord.algorithms import explain as ask
from accord.errors import UserError
from accord.paths import find_home
from accord.sharing import RanksPerNode
from accord.sizes import parse_size, size_text
from accord.tables import OFF, VARIABLE, find_table, read_table

_BY = {
    "setting": "because a setting asks for it",
    "info": "because the communicator's info asks for it",
    "table": "because the table says so",
    "rule": "by the built-in rule",
}


def _settings(named: Path | None, ranks: RanksPerNode) -> tuple[dict[str, str], str]:
    """The table to explain with: the named one, else the one that `accord run` would take."""
    if named is not None:
        return {VARIABLE: str(named.absolute())}, f"table {named}"
    found = find_table(find_home(), ranks)
    if found.warning:
        print(f"accord: {found.warning}", file=sys.stderr)
    return ({VARIABLE: found.value} if found.value else {}), found.note


def _nearest(path: str, answer: dict[str, Any]) -> dict[str, Any] | None:
    """What the table's file has of the measured point that is nearest in size."""
    try:
        points = read_table(Path(path)).get("points", [])
    except UserError:
        return None
    same = [
        point
        for point in points
        if (point.get("collective"), point.get("ranks")) == (answer["collective"], answer["ranks"])
        and not point.get("across_nodes")
    ]
    size = math.log2(max(1, answer["size_bytes"]))
    return min(same, key=lambda one: abs(math.log2(max(1, one["size_bytes"])) - size), default=None)


def _print_point(console: Console, point: dict[str, Any]) -> None:
    title = f"measured at {size_text(point['size_bytes'])} among {point['ranks']} ranks"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("algorithm", "median us", "by the rule's", ""):
        table.add_column(column)
    for one in point["candidates"]:
        name = "auto (the rule)" if one["algorithm"] == "auto" else one["algorithm"]
        ratio = f"{one['ratio']:.3f} ± {2 * one['error']:.3f}"
        mark = "chosen" if one["algorithm"] == point["chosen"] else ""
        table.add_row(name, f"{one['median_us']:.2f}", ratio, mark)
    for name, why in point.get("left_out", {}).items():
        table.add_row(name, "", "", Text(f"left out: {why}"))
    console.print(table)


def _list_algorithms(as_json: bool, as_markdown: bool) -> None:
    library = find_home().library
    algorithms = read_algorithms(library)
    if as_markdown:
        print(algorithms_page.markdown(algorithms, library), end="")
    elif as_json:
        print(json.dumps(algorithms.descriptions, indent=2))
    else:
        Console(highlight=False).print(algorithms_page.table(algorithms))


def explain(
    collective: Annotated[
        str | None,
        typer.Argument(
            help="Such as allreduce or reduce_scatter_block; or send, net_send. None: lists the algorithms."
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="BYTES",
            help="Size of the block between two ranks: all of a broadcast or a reduction, else what "
            "one rank sends another.",
        ),
    ] = "8",
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, help="Ranks.")] = 2,
    table: Annotated[
        Path | None, typer.Option(help="This table instead of the machine's own.")
    ] = None,
    info: Annotated[
        str | None,
        typer.Option(
            metavar="ALGORITHM",
            help="As if the communicator's info key accord_algorithm were this.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the list of algorithms as docs/algorithms.md.")
    ] = False,
) -> None:
    """Say which algorithm a collective would take, and why; or which algorithms there are.

    As the library chooses it where all ranks have device buffers on one node: what ACCORD_ALGORITHM asks
    for, else the communicator's info, else a table, else the built-in rule. "send" is a message from one
    rank's device memory to another's on its node, "net_send" to one's on another node.

    [bold]accord explain allreduce --bytes 64K --ranks 4[/bold]
    """
    if collective is None or as_markdown:
        _list_algorithms(as_json, as_markdown)
        return
    per_node = RanksPerNode.exactly(1 if collective == NET_SEND else ranks)
    settings, found = _settings(table, per_node)
    question = Question(collective, ranks, parse_size(size), info)
    answer = ask(find_home().library, [question], settings)[0]
    used = settings.get(VARIABLE) or os.environ.get(VARIABLE, OFF)
    point = _nearest(used, answer) if used != OFF and "table_says" in answer else None
    if as_json:
        print(json.dumps({**answer, "measured": point}, indent=2))
        return
    console = Console(highlight=False)
    for problem in answer["problems"]:
        print(f"accord: {problem}", file=sys.stderr)
    otherwise = answer.get("otherwise")
    where = f" where that can do it, else {otherwise}" if otherwise else ""
    console.print(
        f"{collective} of {size_text(answer['size_bytes'])} among {ranks}: "
        f"[bold]{answer['algorithm']}[/bold]{where}, {_BY[answer['origin']]}",
        soft_wrap=True,
    )
    if answer["asked"] not in ("auto", answer["algorithm"]) and not answer.get("as_asked"):
        console.print(f"asked for was {answer['asked']}, which such a call cannot take")
    if answer["rule"] != answer["algorithm"]:
        console.print(f"the built-in rule would take {answer['rule']}")
    if answer["collective"] != NET_SEND:
        console.print(f"where the ranks are on several nodes: {answer['across_nodes']}")
    if across := answer.get("table_says_across_nodes"):
        since = size_text(across["first_bytes"])
        print(f"for these a table says from {since} on: {across['algorithm']}")
    if says := answer.get("table_says"):
        name = "nothing better than the rule" if says["algorithm"] == "auto" else says["algorithm"]
        found += f" says from {size_text(says['first_bytes'])} on: {name}"
    if found:
        console.print(found, soft_wrap=True)
    if point:
        _print_point(console, point)
