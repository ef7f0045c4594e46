# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""docs/algorithms.md, and the table that `accord explain` shows without a collective: both from the library's registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from accord.algorithms import NET_SEND, SEND, Algorithms, Question, explain
from accord.sizes import parse_size
from accord.tables import OFF, VARIABLE

_HEAD = """# Algorithms of collectives

Made by `accord explain --markdown` from the files that `src/coll/algorithms.def` names; do not edit.

A call goes by the first of these that takes it, in this order. What may be tried follows from the call's kind, size and
number of ranks, the settings, the communicator's info and the table ([tuning.md](tuning.md)). The ranks then vote, since
only each rank knows where its buffers are. `accord explain allreduce --bytes 64K -n 4` says what one call would take,
`ACCORD_TRACE=1` what each call took and why ([tracing.md](tracing.md)).

`ACCORD_ALGORITHM`, the info key `accord_algorithm` and tables ask for an algorithm by the names below, for all collectives
or for one (`allreduce:inbox`). A call that cannot go as asked goes by the built-in rule.
"""

_MESSAGES = """## Messages

Messages on device memory have names of their own: `send:NAME` within a node, `net_send:NAME` between nodes.

| messages | names |
| --- | --- |
"""

_RULE = """## What the built-in rule takes

Among {ranks} ranks, with all buffers on devices, no table, and no setting but the defaults. Sizes are
those of the block between two ranks. Where ranks lack what an algorithm needs, the next one takes the
call. Calls in which each pair of ranks has a size of its own go by pairs (`node-pairs` and
`two-level-pairs` in traces).

"""
_SIZES = ("8", "64K", "1M", "64M")
_RANKS = 4
# Nobody asks for anything.
_UNASKED = {"ACCORD_ALGORITHM": "auto", VARIABLE: OFF}


def _by_rule(algorithms: Algorithms, library: Path) -> str:
    """A table of what each collective, and each message, goes by at some sizes."""
    calls = algorithms.calls
    asked = [Question(call, _RANKS, parse_size(size)) for call in calls for size in _SIZES]
    answers = explain(library, asked, _UNASKED)
    calls_by_way: dict[tuple[str, ...], list[str]] = {}
    for at, call in enumerate(calls):
        own = answers[at * len(_SIZES) : (at + 1) * len(_SIZES)]
        within = ["" if call == NET_SEND else one["algorithm"] for one in own]
        across = own[-1]["algorithm" if call == NET_SEND else "across_nodes"]
        way = (*within, "" if call == SEND else across)
        calls_by_way.setdefault(way, []).append(f"`{call}`")
    rows = [("calls", *_SIZES, f"{_SIZES[-1]}, several nodes"), ("---",) * (len(_SIZES) + 2)]
    rows += [(", ".join(names), *way) for way, names in calls_by_way.items()]
    return _RULE.format(ranks=_RANKS) + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _collectives(names: list[str], every: list[str]) -> str:
    return "all" if set(names) == set(every) else ", ".join(names)


def markdown(algorithms: Algorithms, library: Path) -> str:
    """The page, with a final newline."""
    parts = [_HEAD]
    for one in algorithms.descriptions:
        rows = {
            "names": ", ".join(f"`{name}`" for name in one["names"]),
            "steps": one["steps"],
            "bytes": one["bytes"],
            "where": one["where"],
            "collectives": _collectives(one["collectives"], algorithms.collectives),
        }
        table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
        parts.append(f"## {one['name']}\n\n{one['what']}\n\n| | |\n| --- | --- |\n{table}\n")
    ways = {
        "within a node": algorithms.message_paths,
        "between nodes": algorithms.net_message_paths,
    }
    rows_of_messages = "".join(
        f"| {where} | {', '.join(f'`{name}`' for name in paths)} |\n"
        for where, paths in ways.items()
    )
    return "\n".join([*parts, _MESSAGES + rows_of_messages, _by_rule(algorithms, library)])


def table(algorithms: Algorithms) -> Table:
    """For a terminal: what each does, in the order in which a call tries them."""
    shown = Table(
        title="a call takes the first that it can", title_justify="left", title_style="bold"
    )
    for column in ("algorithm", "names", "what it does"):
        shown.add_column(column)
    for one in algorithms.descriptions:
        described: dict[str, Any] = one
        shown.add_row(described["name"], ", ".join(described["names"]), described["what"])
    return shown
