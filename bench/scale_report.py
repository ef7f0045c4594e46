# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What scale_model.py predicts: as tables and plots, and beside what was measured.

    bench/scale_report.py                                    prints the tables
    bench/scale_report.py --write docs/scale.md docs/images  renews those of the page, and its plots

The tables of the page stand between `<!-- bench/scale_report.py NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scale_model as model
from scale_model import FIGURES, ROOT, Job

sys.path.insert(0, str(ROOT / "python"))

from accord.sizes import size_text

SIZES = [8 << 3 * step for step in range(10)]  # to 1 GiB
TABLE_SIZES = [8, 4 << 10, 256 << 10, 16 << 20, 1 << 30]
GPUS = [8, 128, 2048, 16384]
# A prediction may be as many times too short or too long: at any point, and on average.
POINT_BOUND = 1.7
MEAN_BOUND = 1.1

Schedule = Callable[[int, Job], float]
SCHEDULES: dict[str, dict[str, Schedule]] = {
    "allreduce": {
        "Accord": lambda size, job: model.taken("allreduce", size, job),
        "Accord by RDMA": lambda size, job: model.taken("allreduce", size, job, direct=True),
        "NCCL ring": lambda size, job: model.nccl("ring", size, job),
        "NCCL tree": lambda size, job: model.nccl("tree", size, job),
        "leaders halve and double": lambda size, job: model.two_levels(
            "allreduce", size, job, direct=True, rounds=model.halving_rounds
        ),
    },
    "alltoall": {
        "Accord": lambda size, job: model.taken("alltoall", block_of(size, job), job),
        "Accord by RDMA": lambda size, job: model.taken(
            "alltoall", block_of(size, job), job, direct=True
        ),
        "NCCL": lambda size, job: model.nccl_alltoall(block_of(size, job), job),
        "by leaders and RDMA": lambda size, job: model.two_levels(
            "alltoall", block_of(size, job), job, direct=True
        ),
    },
}


def block_of(size: int, job: Job) -> int:
    """Of an alltoall in which a rank sends `size` in all."""
    return max(4, size // job.size)


def job_of(name: str, gpus: int) -> Job:
    return model.job_of(name, gpus // model.network(name)["ranks"])


# ---- beside what was measured ---------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    record: str
    hosts: str  # ranks of each
    schedule: str
    operation: str
    size: int
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


MEASURED: dict[str, Schedule | Callable[..., float]] = {
    "allreduce two-level": lambda size, job: model.two_levels("allreduce", size, job),
    "allreduce two-level-single-leader": lambda size, job: model.two_levels(
        "allreduce", size, job, single=True
    ),
    "allreduce two-level-direct": lambda size, job: model.two_levels(
        "allreduce", size, job, direct=True
    ),
    "allreduce nccl": lambda size, job: min(
        model.nccl("ring", size, job), model.nccl("tree", size, job)
    ),
    "alltoall pairs": model.pairs,
    "alltoall pairs-direct": lambda size, job: model.pairs(size, job, direct=True),
    "alltoall messages": model.messages,
}


def hosts_of(row: dict[str, Any]) -> tuple[str, int, float]:
    """Ranks of each host, its links, and their rate in bits a second."""
    hosts = row["hosts"]
    if isinstance(hosts, list):
        hosts = dict(zip((word.lstrip("-") for word in hosts[::2]), hosts[1::2], strict=True))
    rate = hosts.get("rate") or hosts["out"]
    number, unit = re.fullmatch(r"(\d+)([kmg])bit", rate).groups()  # type: ignore[union-attr]
    return hosts["ranks"], hosts.get("links", 1), int(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit]


def job_of_row(row: dict[str, Any], check: dict[str, Any]) -> Job:
    ranks, links, bits = hosts_of(row)
    of_each = [int(word) for word in ranks.split(",")]
    slower = re.search(r"(\d+) times slower", row["machine"]["host"] or "")
    changes: dict[str, Any] = {"machine": check["machine"]} if "machine" in check else {}
    return model.job_of(
        check["network"],
        len(of_each),
        float(slower.group(1)) if slower else 1,
        ranks=of_each[0],
        adapters=links,
        gb_s=bits / 8e9,
        **changes,
    )


def points() -> Iterator[Point]:
    for check in FIGURES["checks"]:
        for record in check.get("records") or [check["record"]]:
            rows = [json.loads(line) for line in (ROOT / record).read_text().splitlines()]
            for row in rows:
                for wanted in check["rows"]:
                    if row["operation"] != wanted["operation"] or row["way"] != wanted["way"]:
                        continue
                    job = job_of_row(row, check)
                    operation, schedule = row["operation"], wanted["schedule"]
                    predicted = MEASURED[f"{operation} {schedule}"](row["size_bytes"], job)
                    hosts, links, bits = hosts_of(row)
                    where = f"{hosts.replace(',', ' + ')}, {links} x {bits / 1e6:,.0f} Mbit/s"
                    yield Point(
                        record,
                        where,
                        schedule,
                        operation,
                        row["size_bytes"],
                        predicted,
                        row["median_us"] * model.US,
                    )


def mean_off(found: list[Point]) -> float:
    """As a factor: 1.1 where predictions are a tenth too short or too long, on average."""
    return math.exp(sum(abs(math.log(point.ratio)) for point in found) / len(found))


def check_table() -> str:
    found = list(points())
    rows: dict[tuple[str, str, str], list[Point]] = {}
    for point in found:
        rows.setdefault(
            (point.operation + " " + point.schedule, point.hosts, point.record), []
        ).append(point)
    lines = [
        "| schedule | ranks of the hosts, links | predicted / measured | record |",
        "| --- | --- | --- | --- |",
    ]
    for (schedule, hosts, record), its in rows.items():
        ratios: dict[int, list[str]] = {}
        for point in sorted(its, key=lambda point: point.size):
            ratios.setdefault(point.size, []).append(f"{point.ratio:.2f}")
        told = ", ".join(f"{size_text(size)}: {' '.join(its)}" for size, its in ratios.items())
        lines.append(f"| {schedule} | {hosts} | {told} | {Path(record).stem} |")
    worst = max(found, key=lambda point: abs(math.log(point.ratio)))
    lines += [
        "",
        f"{len(found)} points; off by a factor of {mean_off(found):.2f} on average, "
        f"{max(worst.ratio, 1 / worst.ratio):.2f} at most.",
    ]
    return "\n".join(lines) + "\n"


# ---- predictions ------------------------------------------------------------------------------------


def time_text(seconds: float) -> str:
    us = seconds / model.US
    return (
        f"{us:,.0f} µs"
        if us < 1e3
        else f"{us / 1e3:,.3g} ms"
        if us < 1e5
        else f"{us / 1e3:,.0f} ms"
    )


def prediction_table(operation: str, name: str = "alps") -> str:
    schedules = SCHEDULES[operation]
    lines = [
        f"| GPUs | size | {' | '.join(schedules)} |",
        "| --- " * (len(schedules) + 2) + "|",
    ]
    for gpus in GPUS:
        job = job_of(name, gpus)
        for size in TABLE_SIZES:
            if operation == "alltoall" and size < 4 * gpus:
                continue
            times = [schedule(size, job) for schedule in schedules.values()]
            cells = [
                f"**{time_text(one)}**" if one == min(times) else time_text(one) for one in times
            ]
            lines.append(f"| {gpus:,} | {size_text(size)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "allreduce": lambda: prediction_table("allreduce"),
    "alltoall": lambda: prediction_table("alltoall"),
    "check": check_table,
}


def renewed(text: str) -> str:
    """The page with each table as it is now."""
    return re.sub(
        r"(<!-- bench/scale_report\.py (\w+) -->\n)(.*?)(<!-- end -->)",
        lambda match: match[1] + TABLES[match[2]]() + match[4],
        text,
        flags=re.DOTALL,
    )


def plot(operation: str, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    from accord.reporting import theme
    from accord.reporting.figures import STYLE

    schedules = SCHEDULES[operation]
    colours = ["path-1", "path-3", "peer-0", "path-4", "path-0"]
    dashes = ["-", "-", "--", "--", ":"]
    if operation == "alltoall":
        colours, dashes = ["path-1", "path-3", "peer-0", "path-0"], ["-", "-", "--", ":"]
    with mpl.rc_context({**STYLE, "svg.hashsalt": "accord"}):
        figure, panels = plt.subplots(2, 2, figsize=(8.2, 5.6), sharex=True)
        for axes, gpus in zip(panels.flat, GPUS, strict=True):
            job = job_of("alps", gpus)
            sizes = [size for size in SIZES if operation == "allreduce" or size >= 4 * gpus]
            looks = zip(schedules.items(), colours, dashes, strict=True)
            for (name, schedule), colour, dash in looks:
                times = [schedule(size, job) / model.US for size in sizes]
                axes.loglog(sizes, times, dash, color=theme.light(colour), label=name, base=10)
            axes.set_title(f"{gpus:,} GPUs")
            axes.set_xticks(SIZES[::2], [size_text(size) for size in SIZES[::2]])
            axes.minorticks_off()
        for axes in panels[:, 0]:
            axes.set_ylabel("µs, predicted")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(labels))
        figure.tight_layout(rect=(0, 0.05, 1, 1))
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--write", nargs=2, type=Path, metavar=("PAGE", "FOLDER"))
    options = parser.parse_args()
    if not options.write:
        for name, table in TABLES.items():
            print(f"{name}\n\n{table()}")
        return
    page, folder = options.write
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
    for operation in SCHEDULES:
        plot(operation, folder / f"scale-{operation}.svg")


if __name__ == "__main__":
    main()
