# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Writes the table of a tuning, with what an earlier one says of calls that were not measured now."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from accord.algorithms import Algorithms
from accord.errors import UserError
from accord.tables import read_table, signature_of

_Table = dict[str, Any]


def check_place(path: Path) -> None:
    """Whether a table can be written there: asked before minutes of measuring."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; --output names the file of the table")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _cannot_write(path, error) from error


def with_earlier(table: _Table, path: Path, algorithms: Algorithms) -> _Table:
    """`table`, and from the one at `path` the collectives and numbers of ranks that it leaves out."""
    if not path.exists():
        return table
    try:
        earlier = read_table(path)
    except UserError as error:
        print(f"accord: {error}; it is replaced", file=sys.stderr)
        return table
    same_machine = signature_of(earlier) == signature_of(table)
    if not same_machine or earlier.get("settings") != table["settings"]:
        print(
            f"accord: {path} is of another machine or other settings and is replaced",
            file=sys.stderr,
        )
        return table
    known = [row for row in _rows(earlier, "choices") if _is_known(row, algorithms)]
    kept = {_calls(row) for row in known} - {_calls(row) for row in table["choices"]}
    if kept:
        names = ", ".join(sorted({str(collective) for collective, _, _ in kept}))
        print(f"accord: what {path} said of other calls stays: {names}", file=sys.stderr)
    rows = [row for row in known if _calls(row) in kept]
    points = [point for point in _rows(earlier, "points") if _calls(point) in kept]
    return {
        **table,
        "choices": sorted([*table["choices"], *rows], key=_calls),
        "points": [*table["points"], *points],
    }


def _rows(table: _Table, name: str) -> list[_Table]:
    rows = table.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _calls(row: _Table) -> tuple[str, int, bool]:
    return str(row.get("collective")), int(row.get("ranks", 0)), bool(row.get("across_nodes"))


def _is_known(row: _Table, algorithms: Algorithms) -> bool:
    """The library refuses a table with a row that it does not know, as one of another version may."""
    named = {str(each.get("algorithm")) for each in _rows(row, "ranges")}
    collective = _calls(row)[0]
    return bool(named) and named <= {*algorithms.of(collective)} and collective in algorithms.calls


def write_table(path: Path, table: _Table) -> None:
    """In one step, so that nobody reads half of it; a line for each choice and point."""
    text = "{\n"
    for name, value in table.items():
        if name in ("choices", "points"):
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
            body = f"[\n{rows}\n  ]" if rows else "[]"
        else:
            body = json.dumps(value)
        text += f'  "{name}": {body}{"" if name == "points" else ","}\n'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(text + "}\n")
        draft.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"no table can be written to {path}: {error.strerror}")
