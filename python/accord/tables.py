# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Tables of `accord tune`: the machine they are for, where they are, and which one this machine takes.

What a table means for a call only the library says (`accord explain`).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord.checks.devices import nvidia_gpu_count
from accord.errors import UserError
from accord.library import read_info
from accord.paths import Home
from accord.sharing import RanksPerNode, Sharing, devices_of, possible_sharing

FORMAT = "accord-table"
SCHEMA = 1
VARIABLE = "ACCORD_TABLE"
OFF = "off"


@dataclass(frozen=True)
class Found:
    """What ACCORD_TABLE should be (None: leave it alone), and what there is to say about it."""

    value: str | None = None
    note: str = ""  # for people who want to know
    warning: str = ""  # for everybody


def machine_of(told: dict[str, Any], sharing: Sharing = Sharing.NONE) -> dict[str, Any]:
    """The machine that `accord info` tells of. A table is for those with the same signature."""
    runtime = str(told.get("default_runtime", ""))
    devices = [str(device.get("name")) for device in devices_of(told)]
    machine = {
        "signature": "",
        "runtime": runtime,
        "devices": devices,
        "links": _links(told, runtime),
        "driver": _driver(),
        "libraries": {"accord": told.get("version", "")},
    }
    parts = ["host"]
    if runtime != "host":
        parts = [f"{number} x {name}" for name, number in sorted(Counter(devices).items())]
        parts.append(str(machine["links"]))
    parts += [sharing.value] if sharing.value else []
    machine["signature"] = ", ".join(parts)
    return machine


def _links(told: dict[str, Any], runtime: str) -> str:
    """How the devices reach each other: through each other's memory, and over links of which rank."""
    rows = [row for row in told.get("links", []) if row.get("runtime") == runtime]
    rows = [row for row in rows if row.get("from") != row.get("to")]
    if not rows:
        return "no links"
    reached = [row for row in rows if row.get("peer_access")]
    ranks = sorted({str(row.get("performance_rank")) for row in reached})
    if not reached:
        return "no peer access"
    scope = "all" if len(reached) == len(rows) else "some"
    return f"{scope} linked (rank {', '.join(ranks)})"


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    match = re.search(r"\b(\d{3}\.\d+(\.\d+)?)\b", text)
    return match[1] if match else ""


def user_dir() -> Path:
    """UserError where nothing says where that is, as for a user without a home."""
    try:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    except RuntimeError as error:
        raise UserError(f"{error}; set XDG_CONFIG_HOME to where tables shall be") from error
    return Path(base) / "accord" / "tables"


def file_name(signature: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", signature.lower()).strip("-") + ".json"


def read_table(path: Path) -> dict[str, Any]:
    """The whole file, for people; UserError where it is no table of this schema."""
    try:
        table = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is no table: {error}") from error
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise UserError(f"{path} is no table of accord tune")
    if table.get("schema") != SCHEMA:
        raise UserError(f"{path} has schema {table.get('schema')}, and this Accord reads {SCHEMA}")
    return table


def signature_of(table: dict[str, Any]) -> str:
    machine = table.get("machine")
    return str(machine.get("signature", "")) if isinstance(machine, dict) else ""


def find_table(home: Home, ranks: RanksPerNode, told: dict[str, Any] | None = None) -> Found:
    """The table for such a job on this machine: as ACCORD_TABLE says, else the user's own, else one that
    came along. `told`: what read_info says, where that is known."""
    named = os.environ.get(VARIABLE)
    if named == OFF:
        return Found()
    if named:
        return _check_named(home, Path(named), ranks, told)
    here: dict[str, Sharing] | None = None
    problems = []
    for path in _files(home):
        try:
            signature = signature_of(read_table(path))
        except UserError as error:
            problems.append(f"{error}; it is not used")
            continue
        if here is None:
            here = _signatures_here(home, ranks, told)
        if [signature] == [*here]:
            return Found(str(path), f"table {path} ({signature})", "; ".join(problems))
    return Found(None, f"{_none_for(here or {}, ranks)}: the built-in rule", "; ".join(problems))


def _none_for(here: dict[str, Sharing], ranks: RanksPerNode) -> str:
    if len(here) > 1:
        return f"no table, since whether {ranks} ranks of a node share devices cannot be told"
    return ", ".join(
        ["no table for this machine", *(kind.value for kind in here.values() if kind.value)]
    )


def _files(home: Home) -> list[Path]:
    """The user's before those that came with Accord, in each folder the newest first."""
    folders = home.table_dirs()
    with suppress(UserError):
        folders.insert(0, user_dir())
    files: list[Path] = []
    for folder in folders:
        found = [path for path in folder.glob("*.json") if path not in files]
        files += sorted(found, key=_changed_s, reverse=True)
    return files


def _changed_s(path: Path) -> float:
    """Of a link to nowhere 0: whoever reads it finds out."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0


def _check_named(home: Home, path: Path, ranks: RanksPerNode, told: dict[str, Any] | None) -> Found:
    """The library checks what it can see without a device; that it is this machine's is checked here."""
    try:
        signature, here = signature_of(read_table(path)), _signatures_here(home, ranks, told)
    except UserError as error:
        return Found(OFF, "", f"{error}; the built-in rule chooses")
    if signature in here or not here:
        return Found(None, f"table {path} ({signature})")
    this = '" or "'.join(here)
    text = f'{path} was measured on "{signature}", and this is "{this}"; the built-in rule chooses'
    return Found(OFF, "", text)


def _signatures_here(
    home: Home, ranks: RanksPerNode, told: dict[str, Any] | None
) -> dict[str, Sharing]:
    """None where it cannot be told, two where the ranks may share devices or not. Asks the library, and
    so the driver, only where there is a device."""
    is_host = os.environ.get("ACCORD_RUNTIME") == "host"
    if not is_host and nvidia_gpu_count() == 0:
        return {}
    try:
        told = told or read_info(home.library)
    except UserError:
        if not is_host:
            return {}
        told = {"default_runtime": "host"}
    kinds = possible_sharing(told, ranks)
    return {str(machine_of(told, kind)["signature"]): kind for kind in kinds}


def apply_table(home: Home, ranks: RanksPerNode, environment: MutableMapping[str, str]) -> Found:
    """find_table, put into the environment that a job is started with."""
    found = find_table(home, ranks)
    if found.value is not None:
        environment[VARIABLE] = found.value
    return found
