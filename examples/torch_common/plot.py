# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Draws the time of each step from what `train.py --json FILE` has written: a panel for each net, a curve for
each backend. The legend has the median step.

python examples/torch_common/plot.py FILE PLOT.svg     (needs matplotlib)
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

Record = dict[str, Any]
COLOURS = {"accord": "#0072b2", "nccl": "#009e73", "gloo": "#d55e00"}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "accord", "font.size": 9}


def panels_of(records: list[Record]) -> dict[str, list[Record]]:
    """By what is the same for all curves of a panel."""
    panels: dict[str, list[Record]] = {}
    for record in records:
        title = f"{record['app']}, width {record['width']}, {record['ranks']} ranks"
        panels.setdefault(title, []).append(record)
    return panels


def draw(axes: Any, title: str, records: list[Record]) -> None:
    for record in records:
        steps_ms = [each / 1e3 for each in record["step_us"]]
        label = f"{record['backend']}, {statistics.median(steps_ms):.2f} ms"
        axes.plot(steps_ms, label=label, linewidth=1, color=COLOURS.get(record["backend"]))
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_xlabel("step")
    axes.set_ylabel("ms a step")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(title="median")


def main() -> None:
    records = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    panels = panels_of(records)
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure, grid = plt.subplots(
            rows, columns, figsize=(4.5 * columns, 3 * rows), layout="constrained", squeeze=False
        )
        for axes, (title, of_panel) in zip(grid.flat, panels.items(), strict=False):
            draw(axes, title, of_panel)
        for axes in list(grid.flat)[len(panels) :]:
            axes.remove()
        last = records[-1]
        where = last["machine"] or last["device"]
        figure.suptitle(f"{where}, PyTorch {last['torch']}, {last['date']}", fontsize="medium")
        figure.savefig(sys.argv[2], metadata={"Date": None})


main()
