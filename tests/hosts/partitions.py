#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Measures partitions that become ready over time on the bed where copies cost (docs/multi-node.md).

Runs accord_partitioned_ready over hosts.py, a machine of machines.def after the other, and writes
DIRECTORY/partitions-RANKS-MACHINE.jsonl.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from designs import networks
from measuring import add_arguments, run


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--machines", nargs="+", choices=list(networks()), default=["pcie4"])
    parser.add_argument("--slowdown", type=int, default=1600, help="of it all (default: 1600)")
    parser.add_argument("--ranks", default="1,1", help="of each host (default: 1,1)")
    parser.add_argument("--times", type=int, default=5, help="each is measured (default: 5)")
    parser.add_argument("--least", type=int, default=16, help="smallest size in KiB (default: 16)")
    parser.add_argument(
        "--most", type=int, default=1024, help="largest size in KiB (default: 1024)"
    )
    parser.add_argument("--what", choices=["send", "allreduce", "both"], default="both")
    parser.add_argument("--commit", default="", help="that libaccord.so was built from")
    parser.add_argument("--directory", type=Path, required=True)
    return parser.parse_args()


def measure(options: argparse.Namespace, machine: str) -> list[dict]:
    rate = f"{round(networks()[machine] / options.slowdown * 8e3)}kbit"
    shape = ["--ranks", options.ranks, "--out", rate, "--in", rate]
    settings = {
        "ACCORD_HOST_MACHINE": machine,
        "ACCORD_HOST_SLOWDOWN": str(options.slowdown),
        "ACCORD_HOST_DEVICES": options.ranks.split(",")[0],
    }
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as records:
        sizes = [str(options.times), str(options.least), str(options.most)]
        program = [str(Path(options.bench).absolute()), *sizes, options.what, records.name]
        return run(options, shape, program, settings, None, Path(records.name))


def as_record(options: argparse.Namespace, machine: str, record: dict) -> dict:
    hosts = len(options.ranks.split(","))
    bed = f"{hosts} hosts of a 2-core machine, as {machine}, {options.slowdown} times slower"
    flags = f"--ranks {options.ranks} --slowdown {options.slowdown} --times {options.times}"
    return {
        **record,
        "machine": {"name": bed, "host": bed, "runtime": "host"},
        "mpi_library": options.flavour,
        "settings": {},
        "accord": {"version": "0.1.0", "commit": options.commit},
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": f"partitions.py --machines {machine} {flags}",
    }


def main() -> int:
    options = arguments()
    for machine in options.machines:
        records = [as_record(options, machine, one) for one in measure(options, machine)]
        options.directory.mkdir(parents=True, exist_ok=True)
        name = f"partitions-{options.ranks.replace(',', '+')}-{machine}.jsonl"
        text = "".join(json.dumps(record) + "\n" for record in records)
        (options.directory / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
