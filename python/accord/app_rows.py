# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What `accord bench --app` shows of the rows that applications print: medians, and ratios to peers.

A row is JSON: `case` (words), `us`, `mpi_us` and `correct`. The words of a case end with ` by HOW` where
an application has several ways to do the same.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from accord.app_ways import OURS

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One case by one way, over all turns."""

    us: float
    mpi_us: float
    correct: bool


@dataclass(frozen=True)
class Line:
    """One case by all ways that have it."""

    case: str
    cells: dict[str, Cell]

    def ratio(self, peer: str) -> float | None:
        """How many times as long as ours it takes; None where one of both is missing or wrong."""
        ours, theirs = self.cells.get(OURS), self.cells.get(peer)
        if ours is None or theirs is None or not (ours.correct and theirs.correct):
            return None
        return theirs.us / ours.us


def lines_of(rows: dict[str, list[Row]]) -> list[Line]:
    """The cases of all ways but of the peer `staged`, which does the same in another way."""
    by_case = {way: measured for way, measured in rows.items() if way != "staged"}
    if not any(by_case.values()):
        by_case = rows
    cases = dict.fromkeys(row["case"] for measured in by_case.values() for row in measured)
    return [_line(case, rows) for case in cases]


def _line(case: str, rows: dict[str, list[Row]]) -> Line:
    cells = {}
    for way, measured in rows.items():
        found = [row for row in measured if row["case"] == case]
        if not found and way == "staged":
            found = [row for row in measured if _problem(row["case"]) == _problem(case)]
        if found:
            cells[way] = Cell(
                us=statistics.median(row["us"] for row in found),
                mpi_us=statistics.median(row["mpi_us"] for row in found),
                correct=all(row["correct"] for row in found),
            )
    return Line(case, cells)


def _problem(case: str) -> str:
    return case.rpartition(" by ")[0] or case


def table(rows: dict[str, list[Row]]) -> Table:
    """A row for each case and way, with how many times as long as ours a peer takes."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("case", overflow="fold")
    shown.add_column("way", no_wrap=True)
    for heading in ("us", "in MPI", f"/ {OURS}"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("result", no_wrap=True)
    for line in lines_of(rows):
        for position, way in enumerate(rows):
            shown.add_row(line.case if position == 0 else "", way, *_texts(line, way))
    return shown


def _texts(line: Line, way: str) -> list[str]:
    cell = line.cells.get(way)
    if cell is None:
        return ["-", "-", "-", "-"]
    ratio = line.ratio(way) if way != OURS else None
    return [
        f"{cell.us:.1f}",
        f"{cell.mpi_us:.1f}",
        "-" if ratio is None else f"{ratio:.2f}",
        "ok" if cell.correct else "WRONG",
    ]
