# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Plots accord_bench's JSON lines: latency and bandwidth against size, ours and each peer.

    pip install matplotlib
    python bench/plot.py bench/results/2xh200-node.jsonl docs/images/2xh200-node.svg

One panel an operation; left the time of the slowest rank in microseconds, right the bus bandwidth in GB/s.
"""

import argparse
import collections
import json
import pathlib

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "accord"  # the same file from the same figures
from matplotlib import pyplot  # noqa: E402

COLOURS = {"accord": "#d1495b", "nccl": "#30638e"}


def read(path: pathlib.Path) -> dict[str, dict[str, list[dict]]]:
    """Records by operation and way, in the order of the sizes."""
    found: dict[str, dict[str, list[dict]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in path.read_text().splitlines():
        record = json.loads(line)
        found[record["operation"]][record["way"]].append(record)
    for ways in found.values():
        for records in ways.values():
            records.sort(key=lambda record: record["size_bytes"])
    return found


def size_text(size_bytes: float, _position: int = 0) -> str:
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:g}{unit}"
    return f"{size_bytes:g}"


def draw(axes: matplotlib.axes.Axes, ways: dict[str, list[dict]], field: str) -> None:
    for way, records in ways.items():
        axes.plot([record["size_bytes"] for record in records], [record[field] for record in records],
                  marker=".", linewidth=1.2, label=way, color=COLOURS.get(way))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(size_text)
    axes.grid(alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="JSON lines of accord bench --json")
    parser.add_argument("image", type=pathlib.Path, help="SVG file to write")
    arguments = parser.parse_args()
    operations = read(arguments.results)
    figure, panels = pyplot.subplots(len(operations), 2, figsize=(9, 2.4 * len(operations)), squeeze=False)
    for (operation, ways), (latency, bandwidth) in zip(operations.items(), panels, strict=True):
        draw(latency, ways, "median_us")
        latency.set_yscale("log")
        latency.set_ylabel("us")
        latency.set_title(operation, loc="left", fontsize=10)
        draw(bandwidth, ways, "bus_bandwidth_gb_s")
        bandwidth.set_ylabel("GB/s")
        latency.legend(fontsize=8)
    figure.tight_layout()
    arguments.image.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.image, metadata={"Date": None})


if __name__ == "__main__":
    main()
