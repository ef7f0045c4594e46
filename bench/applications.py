# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Makes the table and the plot of docs/applications.md from records of the applications, and where the third argument
names the folder of the applications, a plot for each.

    bench/applications.py bench/results/1xh200/apps.jsonl docs/images/applications.svg examples

A record has a row for each case, way and round. A program chooses how it exchanges, so the fastest exchange of each
way counts: Accord's, Intel MPI's, and the program's own staging over MPICH alone. Rows with a wrong result do not.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "accord"
mpl.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

_WAYS = {"accord": "Accord", "impi": "Intel MPI", "staged": "own staging"}
Best = dict[str, tuple[float, str]]  # by way: microseconds and exchange


def best_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], Best]:
    """By application, problem and whether ranks run under MPS."""
    times: dict[tuple[str, str, str, str, str], list[float]] = {}
    for row in rows:
        if not row["correct"]:
            continue
        problem, _, exchange = row["case"].partition(" by ")
        key = (row["app"], problem, row["mps"], row["way"], exchange)
        times.setdefault(key, []).append(row["us"])
    best: dict[tuple[str, str, str], Best] = {}
    for (app, problem, mps, way, exchange), all_us in times.items():
        us = statistics.median(all_us)
        ways = best.setdefault((app, problem, mps), {})
        if way not in ways or us < ways[way][0]:
            ways[way] = (us, exchange)
    return {key: ways for key, ways in best.items() if "accord" in ways}


def ratio(ways: Best, peer: str) -> float | None:
    return ways[peer][0] / ways["accord"][0] if peer in ways else None


def table(best: dict[tuple[str, str, str], Best]) -> str:
    lines = ["| application | MPS | Accord, µs | by | Intel MPI | own staging |", "| --- | --- | --- | --- | --- | --- |"]
    for (app, problem, mps), ways in best.items():
        us, exchange = ways["accord"]
        shown = [f"{value:.2f}" if (value := ratio(ways, peer)) else "" for peer in ("impi", "staged")]
        lines.append(f"| {app} {problem} | {mps} | {us:.0f} | {exchange} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines)


def plot(best: dict[tuple[str, str, str], Best], file: Path, machine: str) -> None:
    shown = {key: ways for key, ways in best.items() if key[2] == "on"}
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(shown) + 1.2))
    for shift, peer in ((0.2, "impi"), (-0.2, "staged")):
        axes.barh([i + shift for i in range(len(shown))], [ratio(ways, peer) or 0 for ways in shown.values()], 0.4, label=_WAYS[peer])
    axes.set_yticks(range(len(shown)), [f"{app} {problem}" for app, problem, _ in shown])
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel(f"time of the peer / time of Accord, {machine}, 4 ranks under MPS")
    axes.invert_yaxis()
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def plot_each(rows: list[dict[str, Any]], examples: Path) -> None:
    """examples/APP/peers.svg: the time of each exchange, under MPS."""
    for app in dict.fromkeys(row["app"] for row in rows):
        times: dict[str, dict[str, list[float]]] = {}  # by curve and case
        for row in rows:
            if row["app"] == app and row["mps"] == "on" and row["correct"]:
                problem, _, exchange = row["case"].partition(" by ")
                curve = times.setdefault(f"{_WAYS[row['way']]}, {exchange}", {})
                curve.setdefault(problem.split(" over ")[0], []).append(row["us"])
        problems = list(dict.fromkeys(problem for curve in times.values() for problem in curve))
        figure, axes = plt.subplots(figsize=(7, 0.13 * len(times) * len(problems) + 1.4))
        height = 0.85 / len(times)
        for number, (curve, of) in enumerate(sorted(times.items())):
            places = [problems.index(problem) + number * height for problem in of]
            axes.barh(places, [statistics.median(us) for us in of.values()], height, label=curve)
        axes.set_yticks([i + 0.4 for i in range(len(problems))], problems)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(f"µs, {rows[0]['machine']}, 4 ranks under MPS")
        axes.invert_yaxis()
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
        figure.tight_layout()
        figure.savefig(examples / app / "peers.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    best = best_of(rows)
    print(table(best))
    plot(best, Path(sys.argv[2]), rows[0]["machine"])
    if len(sys.argv) > 3:
        plot_each(rows, Path(sys.argv[3]))


if __name__ == "__main__":
    main()
