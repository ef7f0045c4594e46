# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord info`: every setting, device runtimes, collective libraries, and the MPIs of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accord.algorithms import MESSAGES, read_algorithms
from accord.discovery import installations
from accord.errors import UserError
from accord.library import read_collective_libraries, read_info
from accord.mpi import Installation
from accord.paths import Home, find_home

_SETTING_COLUMNS = ("name", "type", "default", "value", "origin", "scope", "text")


def _rows(info: dict[str, Any], section: str) -> list[dict[str, Any]]:
    rows = info.get(section, [])
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _show(value: object, column: str = "") -> str:
    if column.endswith("_bytes") and isinstance(value, int):
        return f"{value / (1 << 30):.1f} GiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return "" if value is None else str(value)


def _table(title: str, rows: list[dict[str, Any]], columns: list[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        style = "bold" if row.get("origin") not in (None, "default") else ""
        table.add_row(*(Text(_show(row.get(column), column)) for column in columns), style=style)
    return table


def _columns_of(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def mpi_rows(home: Home, found: list[Installation]) -> list[dict[str, Any]]:
    """One row per ABI of each MPI found, with whether Accord can serve it."""
    return [
        {
            "mpi": installation.title,
            "abi": abi.value,
            "library": str(library),
            "mpiexec": str(installation.launcher.path),
            "shim": home.shim(abi).is_file(),
        }
        for installation in found
        for abi, library in installation.libraries.items()
    ]


def _settings_markdown(rows: list[dict[str, Any]]) -> str:
    def cell(row: dict[str, Any], column: str) -> str:
        return _show(row.get(column)).replace("|", r"\|")

    lines = [
        "# Settings",
        "",
        "Environment variables, read once when the program starts. Made by",
        "`accord info --settings-markdown` from `src/base/config.def`; do not edit.",
        "",
        "Scope `local`: ranks may differ. Scope `equal`: the same on all ranks, which MPI_Init checks.",
        "",
        "| name | type | default | scope | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        name, default = f"`{cell(row, 'name')}`", f"`{cell(row, 'default')}`"
        cells = [name, cell(row, "type"), default, cell(row, "scope"), cell(row, "text")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def device_rows(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The devices of all runtimes, one row each."""
    return [
        {"runtime": runtime.get("name"), "device": number, **device}
        for runtime in _rows(told, "runtimes")
        for number, device in enumerate(_rows(runtime, "devices"))
    ]


def _tables(answer: dict[str, Any]) -> Iterator[Table]:
    """Single facts stand together in the first table; then one for each list of rows."""
    facts = {key: value for key, value in answer.items() if not isinstance(value, (list, dict))}
    facts = {key: value for key, value in facts.items() if value not in (None, "")}
    yield _table("Accord", [{"what": k, "is": v} for k, v in facts.items()], ["what", "is"])
    sections = {key: value for key, value in answer.items() if isinstance(value, (list, dict))}
    if "runtimes" in sections:
        mpis = sections.pop("mpis", [])
        bare = [
            {k: v for k, v in row.items() if k != "devices"} for row in _rows(answer, "runtimes")
        ]
        sections |= {"runtimes": bare, "devices": device_rows(answer), "mpis": mpis}
    for section, value in sections.items():
        title = section.replace("_", " ").capitalize()
        if isinstance(value, dict):
            yield _table(title, [{"what": k, "is": v} for k, v in value.items()], ["what", "is"])
        elif section == "mpis" and not value:
            yield _table("MPIs", [{"mpi": "none found on PATH or in this environment"}], ["mpi"])
        elif value:
            rows = [row if isinstance(row, dict) else {section: row} for row in value]
            known = _SETTING_COLUMNS if section == "settings" else ()
            columns = [c for c in known if c in _columns_of(rows)] or _columns_of(rows)
            yield _table("MPIs" if section == "mpis" else title, rows, columns)


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    settings_markdown: Annotated[
        bool,
        typer.Option(
            "--settings-markdown", help="Print the settings as docs/settings.md has them."
        ),
    ] = False,
) -> None:
    """Show every setting, device runtimes, collective libraries, and the MPIs of this machine.

    A setting's origin says where its value came from: its default, or the environment.
    """
    home = find_home()
    told = read_info(home.library)
    if settings_markdown:
        print(_settings_markdown(_rows(told, "settings")))
        return
    answer: dict[str, Any] = {"library": str(home.library), "found_by": home.origin, **told}
    with suppress(UserError):  # a library of before they had names
        names = read_algorithms(home.library)
        answer["algorithms"] = list(names.collective_paths)
        answer["algorithms_of_messages"] = {name: list(names.of(name)) for name in MESSAGES}
    answer["collective_libraries"] = read_collective_libraries(home.library)
    answer["mpis"] = mpi_rows(home, installations())
    if as_json:
        print(json.dumps(answer, indent=2))
    else:
        console = Console()
        for table in _tables(answer):
            console.print(table)
