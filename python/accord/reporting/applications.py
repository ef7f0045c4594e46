# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The plot of `accord bench --app`: a bar for each case and way. Imported only where matplotlib is.

The dark part of a bar is spent in MPI calls. Wrong results are not drawn: their place says so.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from accord.app_rows import Line
from accord.reporting import figures, theme

_OURS_COLOUR = theme.light("path-0")
_PEER_COLOURS = [theme.light(f"path-{slot}") for slot in (1, 3, 4, 2, 5)]
_OUTSIDE_ALPHA = 0.4
_BAR_INCHES = 0.22
_WIDTH_INCHES = 7.5
_ROOM_FOR_TEXT = 0.2


def draw(file: Path, title: str, ways: list[str], lines: list[Line]) -> None:
    with matplotlib.rc_context(figures.STYLE):
        height = 1.2 + _BAR_INCHES * len(lines) * (len(ways) + 0.8)
        figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        axes = figure.subplots()
        colours = dict(zip(ways, [_OURS_COLOUR, *_PEER_COLOURS], strict=False))
        for row, line in enumerate(lines):
            for position, way in enumerate(ways):
                at = row + (position - (len(ways) - 1) / 2) / (len(ways) + 0.8)
                _bar(axes, at, 0.9 / (len(ways) + 0.8), line, way, colours[way])
        axes.set_yticks(range(len(lines)), [line.case for line in lines])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.margins(x=_ROOM_FOR_TEXT)
        axes.set_xlim(left=0)
        axes.set_xlabel("µs of the slowest rank; the dark part in MPI calls")
        axes.set_title(title)
        handles = [Patch(color=colour, label=way) for way, colour in colours.items()]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(ways))
    figures.save(figure, file)


def _bar(axes: Axes, at: float, height: float, line: Line, way: str, colour: str) -> None:
    cell = line.cells.get(way)
    if cell is None or not cell.correct:
        text = f" {way}: {'not measured' if cell is None else 'wrong result'}"
        axes.text(0, at, text, va="center", fontsize=7.5, color=theme.light("muted"))
        return
    axes.barh(at, cell.us, height, color=colour, alpha=_OUTSIDE_ALPHA)
    axes.barh(at, min(cell.mpi_us, cell.us), height, color=colour)
    ratio = line.ratio(way)
    text = f" {cell.us:.1f}" + ("" if ratio is None or way == "accord" else f" ({ratio:.2f}x)")
    axes.text(cell.us, at, text, va="center", fontsize=7.5, color=theme.light("muted"))
