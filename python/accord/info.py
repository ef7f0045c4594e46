# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord info`: the machine and its MPIs, device runtimes, collective libraries, and the settings."""

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
from accord.benchmark import core_count
from accord.discovery import installations
from accord.errors import UserError
from accord.library import read_collective_libraries, read_info
from accord.mpi import Installation
from accord.paths import Home, find_home
from accord.settings import (
    FILES,
    Page,
    is_changed,
    markdown,
    sections_of,
    shown_text,
    shown_value,
)


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
        table.add_row(*(Text(_show(row.get(column), column)) for column in columns))
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


def device_rows(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The devices of all runtimes, one row each."""
    return [
        {"runtime": runtime.get("name"), "device": number, **device}
        for runtime in _rows(told, "runtimes")
        for number, device in enumerate(_rows(runtime, "devices"))
    ]


def _settings_table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Names whole, so that they can be copied; the rest shares what is left of the line."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("meaning", overflow="fold")
    for row in rows:
        cells = (_show(row.get("name")), shown_value(row), shown_text(row))
        table.add_row(*map(Text, cells), style="bold" if is_changed(row) else "")
    return table


def _brief_tables(answer: dict[str, Any]) -> Iterator[Table]:
    """The machine, and what differs from the default: what fits a screen."""
    version = f"{answer.get('version', '')} of commit {answer.get('commit') or 'unknown'}"
    facts = {
        "accord": version,
        "library": f"{answer['library']} (found by {answer['found_by']})",
        "memory of accord_malloc": answer.get("default_runtime"),
        "cores": core_count(),
        "problems": answer.get("problems"),
        "warnings": "\n".join(map(str, answer.get("warnings") or [])),
    }
    facts |= {
        f"problem of {row.get('name')}": row["problem"]
        for row in [*_rows(answer, "runtimes"), *_rows(answer, "missing_runtimes")]
        if row.get("problem")
    }
    rows = [{"what": name, "is": fact} for name, fact in facts.items() if fact not in (None, "")]
    yield _table("Accord", rows, ["what", "is"])
    devices = device_rows(answer)
    yield _table("Devices", devices, [name for name in _columns_of(devices) if name != "uuid"])
    mpis = answer["mpis"] or [{"mpi": "none found on PATH or in this environment"}]
    columns = [name for name in _columns_of(mpis) if name != "mpiexec"]
    yield _table("MPIs", mpis, columns)
    if libraries := [row for row in _rows(answer, "collective_libraries") if row.get("usable")]:
        yield _table("Collective libraries", libraries, ["name", "version", "path"])
    settings = _rows(answer, "settings")
    changed = [row for row in settings if is_changed(row)]
    count = f"{len(settings) - len(changed)} at their defaults: --all shows them"
    if changed:
        yield _settings_table(f"Settings that differ ({count})", changed)
    else:
        yield _table("Settings", [{"which": count}], ["which"])


def _tables(answer: dict[str, Any]) -> Iterator[Table]:
    """All there is. Single facts stand together in the first table; then one for each list of rows."""
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
        if section == "settings":
            for title, rows in sections_of(_rows(answer, "settings")):
                yield _settings_table(title, rows)
            continue
        title = section.replace("_", " ").capitalize()
        if isinstance(value, dict):
            yield _table(title, [{"what": k, "is": v} for k, v in value.items()], ["what", "is"])
        elif section == "mpis" and not value:
            yield _table("MPIs", [{"mpi": "none found on PATH or in this environment"}], ["mpi"])
        elif value:
            rows = [row if isinstance(row, dict) else {section: row} for row in value]
            yield _table("MPIs" if section == "mpis" else title, rows, _columns_of(rows))


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all settings, runtimes, links and libraries.")
    ] = False,
    settings_markdown: Annotated[
        Page | None,
        typer.Option(
            "--settings-markdown",
            help="Print a page of the documents instead: "
            + ", ".join(f"{page.value} (docs/{FILES[page]})" for page in Page),
        ),
    ] = None,
) -> None:
    """Show this machine as Accord sees it, and the settings that differ from their default.

    --all shows the rest: all settings by whom they are for, device runtimes and links, algorithms, and
    the collective libraries that are not there. --json has all of it, and says where a value came from.
    """
    home = find_home()
    told = read_info(home.library)
    if settings_markdown is not None:
        print(markdown(_rows(told, "settings"), settings_markdown), end="")
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
        for table in _tables(answer) if everything else _brief_tables(answer):
            console.print(table)
