#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Measures MPI_Allreduce in two levels over hosts.py against the host MPI staged flat, and writes the table.

For each arrangement of hosts one run of accord_bench: in two levels with several leaders a host and with one, and flat,
as a careful program stages it by hand and as Accord does. The share is that of the time which the slowest link takes
at the least: in an allreduce over n hosts each sends and gets 2 (n - 1) / n of the message, over all its links.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from measuring import add_arguments, run_bench

WAYS = ["two-level", "two-level-single-leader", "staged"]
FLAT = "staged by hand"
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


@dataclass(frozen=True)
class Arrangement:
    """As in 2,2 or, with two links a host, 2,2/2."""

    ranks: str
    links: int

    @classmethod
    def of(cls, text: str) -> Arrangement:
        ranks, _, links = text.partition("/")
        return cls(ranks, int(links or 1))

    @property
    def hosts(self) -> int:
        return len(self.ranks.split(","))

    def __str__(self) -> str:
        links = f", {self.links} links each" if self.links > 1 else ""
        return f"{self.hosts} hosts of {self.ranks} ranks{links}"

    def least_us(self, size_bytes: int, rate: str, links: int) -> float:
        number, unit = re.fullmatch(r"([0-9.]+)([a-z]+)", rate).groups()
        bytes_a_second = float(number) * UNITS[unit] / 8 * links
        return 2 * (self.hosts - 1) / self.hosts * size_bytes / bytes_a_second * 1e6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--rate", default="1gbit", help="of each link and direction")
    parser.add_argument("--hosts", nargs="+", default=["2,2", "1,1,1,1", "2,2/2"])
    parser.add_argument("--min", default="1M")
    parser.add_argument("--max", default="64M")
    parser.add_argument("--iterations", default="7")
    parser.add_argument("--json", type=Path, help="where the records are added")
    return parser.parse_args()


def measure(options: argparse.Namespace, hosts: Arrangement) -> list[dict]:
    shape = ["--ranks", hosts.ranks, "--links", str(hosts.links)]
    shape += ["--out", options.rate, "--in", options.rate]
    bench = ["allreduce", "--memory", "device", "--factor", "4"]
    bench += ["--min", options.min, "--max", options.max, "--peer", "staged"]
    bench += ["--algorithm", *WAYS, "--iterations", options.iterations]
    bench += ["--warmup", "1", "--seconds", "1"]
    about = {"ranks": hosts.ranks, "links": hosts.links, "rate": options.rate}
    return [
        {**record, "hosts": about} for record in run_bench(options, shape, bench, {})
    ]


def name_of(record: dict) -> str:
    return record["algorithm"] if "algorithm" in record else FLAT


def table(hosts: Arrangement, rate: str, records: list[dict]) -> str:
    lines = [
        f"{hosts}, {rate}",
        "",
        "| bytes | two levels | of the link | less than flat | single leader | of the link | less than flat | flat by hand "
        "| flat, Accord |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for size in sorted({record["size_bytes"] for record in records}):
        took = {
            name_of(one): one["median_us"]
            for one in records
            if one["size_bytes"] == size and one.get("correct")
        }
        cells = [f"{size >> 20}M"]
        for way, links in ((WAYS[0], hosts.links), (WAYS[1], 1)):
            share = hosts.least_us(size, rate, links) / took[way]
            less = 1 - took[way] / took[FLAT]
            cells += [f"{took[way] / 1e3:.1f} ms", f"{share:.0%}", f"{less:.0%}"]
        cells += [f"{took[way] / 1e3:.1f} ms" for way in (FLAT, WAYS[2])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> int:
    options = arguments()
    for hosts in map(Arrangement.of, options.hosts):
        records = measure(options, hosts)
        if options.json:
            with options.json.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
        print(table(hosts, options.rate, records), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
