# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The figures: time and bandwidth against size, and the map of ratios. Imported only where matplotlib is.

Our own line takes the colour and marker of the path that each size went; peers are grey and dashed. A band
spans the 5th to the 95th percentile. Wrong results are not drawn.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from accord.reporting import theme
from accord.reporting.comparison import best
from accord.reporting.numbers import ratio_text
from accord.reporting.records import Operation, Sample, Section
from accord.sizes import size_text

# Any: matplotlib 3.11 types these names one by one, its predecessors as text.
STYLE: Any = {
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": theme.light("muted"),
    "axes.facecolor": theme.light("surface"),
    "figure.facecolor": theme.light("surface"),
    "text.color": theme.light("ink"),
    "axes.titlecolor": theme.light("ink"),
    "xtick.color": theme.light("muted"),
    "ytick.color": theme.light("muted"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": theme.light("grid"),
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.4,
    "lines.markersize": 4.2,
}
_MAP_STYLE: Any = {**STYLE, "axes.grid": False}
_PANEL_INCHES = (4.1, 2.75)
_PNG_DPI = 160
_BAND_ALPHA = 0.13
_SIZE_TICKS_MAX = 7
QUANTITIES = {"time": "time of the slowest rank", "bandwidth": "bus bandwidth, GB/s"}


def _point(sample: Sample, quantity: str) -> tuple[float, float, float] | None:
    """Low, middle and high end of what is drawn at one size."""
    low, high = sample.p5_us or sample.median_us, sample.p95_us or sample.median_us
    if quantity == "time":
        return low, sample.median_us, high
    if sample.bandwidth_gb_s is None:
        return None
    moved = sample.bandwidth_gb_s * sample.median_us
    return moved / high, sample.bandwidth_gb_s, moved / low


def _right(samples: dict[int, Sample]) -> list[Sample]:
    return [sample for sample in samples.values() if sample.correct]


def _line(
    axes: Axes, samples: list[Sample], quantity: str, colour: str, style: dict[str, Any]
) -> None:
    points = [(each.size_bytes, _point(each, quantity)) for each in samples]
    drawn = [(size_bytes, *point) for size_bytes, point in points if point is not None]
    if not drawn:
        return
    sizes, low, middle, high = zip(*drawn, strict=True)
    axes.fill_between(sizes, low, high, color=colour, alpha=_BAND_ALPHA, linewidth=0)
    axes.plot(sizes, middle, color=colour, **style)


def _by_path(samples: list[Sample]) -> Iterator[tuple[str, list[Sample], int]]:
    """Neighbours of one path, with the first sample after them, which the line leads to."""
    at = 0
    for path, group in groupby(samples, key=lambda sample: sample.path):
        count = len(list(group))
        yield path, samples[at : at + count + 1], count
        at += count


def _draw(axes: Axes, operation: Operation, quantity: str, section: Section) -> None:
    for way, samples in operation.peers.items():
        _line(axes, _right(samples), quantity, *_peer_style(section, way))
    slots = theme.path_slots(section.paths)
    for path, stretch, count in _by_path(_right(operation.ours)):
        colour, style = _path_style(slots[path])
        _line(axes, stretch, quantity, colour, {**style, "markevery": range(count)})
    _scale_sizes(axes, operation.sizes)
    if quantity == "time":
        _scale_times(axes)
    else:
        axes.set_ylim(bottom=0)


def _path_style(slot: int) -> tuple[str, dict[str, Any]]:
    marker = list(theme.MARKERS)[slot]
    return theme.light(f"path-{slot}"), {"marker": marker, "linewidth": 1.9, "zorder": 3}


def _peer_style(section: Section, way: str) -> tuple[str, dict[str, Any]]:
    look = theme.peer_look(section.peers.index(way))
    return theme.light(look.colour), {
        "linestyle": (0, look.dashes),
        "linewidth": 1.3,
        "marker": look.marker,
        "markersize": 3.4,
        "markerfacecolor": theme.light("surface"),
        "markeredgewidth": 0.9,
    }


def _scale_sizes(axes: Axes, sizes: list[int]) -> None:
    low, high = math.floor(math.log2(sizes[0])), math.ceil(math.log2(sizes[-1]))
    step = max(1, math.ceil((high - low) / _SIZE_TICKS_MAX))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([2.0**power for power in range(low, high + 1, step)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(int(value))))


def time_text(time_us: float, _position: object = 0) -> str:
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if time_us >= factor:
            return f"{time_us / factor:g} {unit}"
    return f"{time_us:g} µs"


def _scale_times(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = high / low < 200
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(time_text))


def _legend(figure: Figure, section: Section, operations: list[Operation], columns: int) -> None:
    """What these operations show: our paths first, then the peers."""
    slots = theme.path_slots(section.paths)
    used = dict.fromkeys(path for each in operations for path in each.paths)
    ways = dict.fromkeys(way for each in operations for way in each.peers)
    ours_name = operations[0].ours_name
    entries = []
    for path in used:
        colour, style = _path_style(slots[path])
        name = path if path == ours_name else f"{ours_name}: {path}"
        entries.append(Line2D([], [], color=colour, label=name, **style))
    for way in ways:
        colour, style = _peer_style(section, way)
        entries.append(Line2D([], [], color=colour, label=way, **style))
    figure.legend(handles=entries, loc="outside upper left", ncols=columns)


def panel(section: Section, operation: Operation, quantity: str) -> Figure:
    """One drawing for the page, which has headings and a legend of its own."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=_PANEL_INCHES, layout="constrained")
        axes = figure.subplots()
        _draw(axes, operation, quantity, section)
        axes.set_title(QUANTITIES[quantity])
        return figure


def panels(section: Section, operations: list[Operation], quantities: list[str]) -> Figure:
    """An image that stands alone: a row an operation, a column a quantity, one legend above all."""
    with matplotlib.rc_context(STYLE):
        columns, rows = len(quantities), len(operations)
        width, height = _PANEL_INCHES
        figure = Figure(figsize=(width * columns, height * rows + 0.3), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for operation, row in zip(operations, grid, strict=True):
            for quantity, axes in zip(quantities, row, strict=True):
                _draw(axes, operation, quantity, section)
                axes.set_title(f"{operation.name}: {QUANTITIES[quantity]}")
        _legend(figure, section, operations, 2 * columns)
        return figure


def ratio_map(section: Section) -> Figure:
    """Collectives down, sizes across; each cell the time of the best peer by ours."""
    operations = list(section.operations.values())
    sizes = sorted({size_bytes for each in operations for size_bytes in each.sizes})
    with matplotlib.rc_context(_MAP_STYLE):
        size = (1.9 + 0.46 * len(sizes), 0.75 + 0.3 * len(operations))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        for row, operation in enumerate(operations):
            for column, size_bytes in enumerate(sizes):
                found = best(operation, size_bytes)
                if found is not None:
                    _cell(axes, column, row, found.ratio)
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_ylim(len(operations) - 0.5, -0.5)
        axes.set_xticks(range(len(sizes)), [size_text(each) for each in sizes])
        axes.set_yticks(range(len(operations)), [each.name for each in operations])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title("time of the best peer / ours (above 1: ours is faster)")
        return figure


def _cell(axes: Axes, column: int, row: int, ratio: float) -> None:
    colour = theme.ratio_colour(ratio)
    axes.fill_between([column - 0.48, column + 0.48], row - 0.47, row + 0.47, color=colour, lw=0)
    axes.text(
        column,
        row,
        ratio_text(ratio),
        ha="center",
        va="center",
        fontsize=8,
        color=theme.text_colour(colour),
    )


def svg(figure: Figure, salt: str) -> str:
    """The figure's text, the same from the same figures; `salt` keeps its ids apart from others'."""
    file = io.StringIO()
    style: Any = {**STYLE, "svg.hashsalt": salt}
    with matplotlib.rc_context(style):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def save(figure: Figure, file: Path) -> None:
    """As SVG or PNG, by the name's ending."""
    if file.suffix.lower() == ".svg":
        file.write_text(svg(figure, file.stem), encoding="utf-8")
        return
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, format="png", dpi=_PNG_DPI, metadata={"Software": None})
