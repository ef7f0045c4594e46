# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Draws what `accord bench --app fft3d --json FILE` has written: the time of cubes against their size.

python examples/fft3d/plot.py FILE PLOT.svg     (needs matplotlib)
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

STYLES = {"alltoallv": "o", "alltoallw": "s", "messages": "^"}
COLOURS = {"accord": "tab:blue", "mpi": "tab:orange", "host": "tab:grey"}

times: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
for line in Path(sys.argv[1]).read_text().splitlines():
    record = json.loads(line)
    size, kind, *_, reshape = record["case"].split()
    if kind == "c2c":
        times[record["way"], reshape][int(size.split("x")[0])].append(record["mpi_us"])

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for (way, reshape), by_size in times.items():
    sizes = sorted(by_size)
    medians = [statistics.median(by_size[size]) for size in sizes]
    marks = {"marker": STYLES[reshape], "color": COLOURS[way]}
    axes.plot(sizes, medians, label=f"{way}, {reshape}", **marks)
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xlabel("points along each axis")
axes.set_ylabel("µs in MPI, forward and backward")
axes.grid(visible=True, alpha=0.3)
axes.legend()
plt.rcParams["svg.hashsalt"] = "accord"  # the same picture from the same records
figure.savefig(sys.argv[2], metadata={"Date": None})
