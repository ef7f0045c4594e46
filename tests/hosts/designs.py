#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Compares the designs by which messages go between hosts (ACCORD_NET_DESIGN), over hosts.py, and writes tables.

Each host has a device link and a host link. Asymmetric, they have the rates of MVAPICH-PRISM's machine (SC 13: an adapter
reads 962 MB/s of device memory and writes 5,280 MB/s; device memory is copied to host memory at 6,900 MB/s), all scaled by
one factor, so that no core is a limit. Copies of the host runtime are memcpy, far faster than that: host links stand for
them. Symmetric, an adapter reads device memory as fast as it writes it.

With --machine each host has one link, whose rate is that of the machine's network, and the host runtime has copies and
adapters of that machine (src/device/host/machines.def, ACCORD_HOST_MACHINE), as many times slower as --slowdown says.

What goes between two hosts: messages from device to device, and from device to host memory; collectives and a stencil's
exchange of more ranks, written as messages; and Accord's own collectives (as in "collectives:2,2"), whose step between nodes goes
by the design. Records go to DIRECTORY/<what>-<links>.jsonl, a way a design, in place of those
of the same design that are there already.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from measuring import add_arguments, run_bench

MB_OUT_OF_DEVICE, MB_INTO_DEVICE, MB_COPIED = 962, 5280, 6900
PATIENCE_MS = 5
OUT_OF_DEVICE = {"asymmetric": MB_OUT_OF_DEVICE, "symmetric": MB_INTO_DEVICE}
MACHINES = Path(__file__).resolve().parents[2] / "src/device/host/machines.def"
MESSAGES = ["latency", "bandwidth", "bibandwidth"]
COLLECTIVES = ["alltoall", "gather", "allgather", "stencil"]
OWN = "collectives"
OWN_COLLECTIVES = ["alltoallv", "alltoall", "allgather", "bcast", "gather", "allreduce"]


@dataclass(frozen=True)
class Comparison:
    text: str
    name: str
    ranks: str
    bench: tuple[str, ...]

    @classmethod
    def of(cls, text: str, sizes: str | None) -> Comparison:
        """device, host, or the ranks of each host, as in 4,4 or collectives:4,4; sizes as in 64K,4M."""
        is_pair = text in ("device", "host")
        least, most = (sizes or ("1K,4M" if is_pair else "64K,256K")).split(",")
        size = ["--min", least, "--max", most, "--factor", "4"]
        if is_pair:
            size += ["--window", "4"]
            memory = ["--send-memory", "device", "--recv-memory", text]
            return cls(text, text, "1,1", (*MESSAGES, *size, *memory))
        if text.startswith(OWN):
            ranks = text.removeprefix(f"{OWN}:")
            name = text.replace(":", "-").replace(",", "+")
            return cls(text, name, ranks, (*OWN_COLLECTIVES, *size, "--memory", "device"))
        rest = ["--memory", "device", "--peer", "messages"]
        return cls(text, text.replace(",", "+"), text, (*COLLECTIVES, *size, *rest))


def networks() -> dict[str, int]:
    """Of each machine: what its network moves, in MB/s."""
    rows = re.findall(r"^MACHINE\((\w+), ([\d, ]+)\)", MACHINES.read_text(), re.MULTILINE)
    return {name: int(row.split(",")[7]) for name, row in rows}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument(
        "--designs", nargs="+", default=["host", "direct", "passive", "active1", "active2"]
    )
    parser.add_argument(
        "--links", nargs="+", choices=list(OUT_OF_DEVICE), default=list(OUT_OF_DEVICE)
    )
    parser.add_argument(
        "--machine",
        nargs="+",
        choices=list(networks()),
        help="machines of machines.def, instead of --links",
    )
    parser.add_argument(
        "--slowdown",
        type=int,
        default=500,
        help="how many times slower these are (default: 500)",
    )
    parser.add_argument(
        "--sizes", help="of messages and blocks, as in 64K,4M (default: as records have them)"
    )
    parser.add_argument(
        "--what",
        nargs="+",
        default=["device", "host", "2,2", "4,4", "8,8"],
        help="device, host, or ranks of each host, alone or behind collectives: (default: %(default)s)",
    )
    parser.add_argument(
        "--table",
        type=Path,
        help="what the design auto goes by, as accord tune net_send writes it (default: the rule)",
    )
    parser.add_argument("--scale", type=float, default=0.005, help="of all rates")
    parser.add_argument(
        "--seconds", default="1", help="of each point; five calls at least"
    )
    parser.add_argument("--directory", type=Path, required=True)
    return parser.parse_args()


def shape_of(options: argparse.Namespace, what: Comparison, links: str) -> list[str]:
    def rate(megabytes: float) -> str:
        return f"{round(megabytes * 8e3)}kbit"

    shape = ["--ranks", what.ranks]
    if options.machine:
        network = rate(networks()[links] / options.slowdown)
        return [*shape, "--out", network, "--in", network]
    copied = rate(MB_COPIED * options.scale)
    shape += ["--out", copied, "--in", copied]
    shape += ["--device-out", rate(OUT_OF_DEVICE[links] * options.scale)]
    return [*shape, "--device-in", rate(MB_INTO_DEVICE * options.scale)]


def settings_of(
    options: argparse.Namespace, what: Comparison, links: str, design: str
) -> dict[str, str]:
    # A receiver takes as many times longer as its links are slower.
    slower = options.slowdown if options.machine else 1 / options.scale
    settings = {
        "ACCORD_NET_DESIGN": design,
        "ACCORD_NET_PATIENCE_MS": str(round(PATIENCE_MS * slower)),
    }
    if design == "auto" and options.table is not None:
        settings["ACCORD_NET_DESIGN"] = "table"
        settings["ACCORD_TABLE"] = str(options.table.absolute())
    if options.machine:
        settings["ACCORD_HOST_MACHINE"] = links
        settings["ACCORD_HOST_SLOWDOWN"] = str(options.slowdown)
        settings["ACCORD_HOST_DEVICES"] = what.ranks.split(",")[0]
    return settings


def measure(
    options: argparse.Namespace, what: Comparison, links: str, design: str
) -> list[dict]:
    # Ranks meet in their first calls.
    warmup = "4" if what.name.startswith(OWN) else "1"
    bench = [*what.bench, "--seconds", options.seconds, "--warmup", warmup]
    shape = shape_of(options, what, links)
    settings = settings_of(options, what, links, design)
    found = run_bench(options, shape, bench, settings)
    return [
        in_place(options, record, what, links, design, shape)
        for record in found
        if "median_us" in record and (what.name.startswith(OWN) or is_of_design(record))
    ]


def is_of_design(record: dict) -> bool:
    """Of collectives only what is written as messages goes by a design."""
    return record["way"] == "messages" or record["operation"] in (
        *MESSAGES,
        "stencil",
    )


def in_place(
    options: argparse.Namespace,
    record: dict,
    what: Comparison,
    links: str,
    design: str,
    shape: list[str],
) -> dict:
    """As records of ways that ran beside each other, of which auto is ours."""
    hosts = len(what.ranks.split(","))
    bed = f"{links} links"
    command = f"--links {links}"
    if options.machine:
        bed = f"as {links}, {options.slowdown} times slower"
        command = f"--machine {links} --slowdown {options.slowdown}"
    return {
        **{key: record[key] for key in record if key not in ("algorithm", "ratio")},
        "way": design,
        "ours": design == "auto",
        "machine": {
            **record["machine"],
            "host": f"{hosts} hosts of one machine, {bed}",
            "name": f"{hosts} hosts of one machine, {bed}",
        },
        "mpi_library": record["mpi_library"].split(",")[0],
        "settings": {},
        "table": Path(record["table"]).name,
        "command": f"designs.py --what {what.text} {command}",
        "date": "",
        "measured": record["date"],
        "hosts": shape,
    }


def merge(file: Path, records: list[dict], design: str) -> list[dict]:
    lines = file.read_text().splitlines() if file.exists() else []
    kept = [record for record in map(json.loads, lines) if record["way"] != design]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "".join(json.dumps(record) + "\n" for record in [*kept, *records])
    )
    return [*kept, *records]


def cell(record: dict | None, operation: str) -> str:
    if record is None:
        return ""
    if operation in ("bandwidth", "bibandwidth"):
        return f"{record['bus_bandwidth_gb_s'] * 1e3:.2f} MB/s"
    return f"{record['median_us'] / 1e3:.2f} ms"


def tables(title: str, records: list[dict]) -> str:
    """A table an operation: sizes down, designs across, and how many times the first design takes of the best."""
    designs = list(dict.fromkeys(record["way"] for record in records))
    lines = [title, ""]
    for operation in dict.fromkeys(record["operation"] for record in records):
        lines.append(f"| {operation} | {' | '.join(designs)} | direct / best |")
        lines.append("| --- |" + " --- |" * (len(designs) + 1))
        found = {
            (record["size_bytes"], record["way"]): record
            for record in records
            if record["operation"] == operation
        }
        for size in sorted({size for size, _ in found}):
            row = [found.get((size, design)) for design in designs]
            times = {each["way"]: each["median_us"] for each in row if each is not None}
            ratio = (
                f"{times['direct'] / min(times.values()):.2f}" if "direct" in times else ""
            )
            cells = [cell(each, operation) for each in row]
            lines.append(f"| {size >> 10}K | {' | '.join(cells)} | {ratio} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    options = arguments()
    for links in options.machine or options.links:
        for text in options.what:
            what = Comparison.of(text, options.sizes)
            file = options.directory / f"{what.name}-{links}.jsonl"
            for design in options.designs:
                records = merge(file, measure(options, what, links, design), design)
            print(tables(f"{what.name}, {links}", records), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
