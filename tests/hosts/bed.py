#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Makes the records of the bed where copies cost (docs/multi-node.md), of every machine, in minutes.

A job is one machine of machines.def and one kind of traffic between two hosts (hosts.py): messages;
Accord's own collectives, with one rank a host or two; the Fourier transform of examples/fft3d (--fft3d), all
points on devices, or those of every other rank. All ways of a job take turns in one program, so that what
else the machine does meets all alike; transforms have one each. `auto` is what Accord chooses by its rule;
`tuned`, measured behind, what it chooses with the table that `accord tune` makes of such records; `host` its
two levels with messages of the host MPI between the nodes; `staged` the host MPI's own call between two
copies; then the designs.

The network of every machine is slowed to --network, and all copies by the same factor. Jobs run beside each
other, each with cores of its own. Records go to DIRECTORY/WHAT-MACHINE.jsonl, in place of what is there.
After --minutes what still runs is cut off, with what it has measured; the last lines say what is missing, and
where `auto` or `tuned` is not within 5 % of the fastest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from designs import MESSAGES, OWN_COLLECTIVES, PATIENCE_MS, networks
from measuring import CutOffError, add_arguments, run, run_bench

from accord.algorithms import NET_SEND, as_table_names
from accord.verdict import RULE, choices_of, points_of

DESIGNS = ["direct", "passive", "active1", "active2"]
# Of a job: ranks that wait, the proxies, and what the links cost.
CORES_OF_JOB = 4
FACTOR = "8"
NEAR = 1.05
CHOSEN = ("auto", "tuned")
# No size of theirs is common to all ranks, so no table has them.
PAIR_BY_PAIR = ("alltoallv",)
# A way that takes so many times as long as the fastest is left out at that size.
ONE_OF_MANY = ("--give-up", "4")


@dataclass(frozen=True)
class Traffic:
    name: str
    ranks: str  # of each host
    operations: tuple[str, ...]
    options: tuple[str, ...]
    most: str  # its largest size
    prefix: str  # of the algorithms' names
    host: str  # what the way `host` asks for

    def ways(self) -> dict[str, str]:
        """By what accord_bench calls them: what records do."""
        named = {f"{self.prefix}{design}": design for design in DESIGNS}
        return {"auto": "auto", "staged": "staged", self.host: "host", **named}


MESSAGES_OF = Traffic(
    *("messages", "1,1", tuple(MESSAGES), ("--window", "4"), "8M"),
    *("net_send:", "net_send:staged"),
)
ALL = [
    Traffic(
        "collectives-1+1",
        "1,1",
        tuple(OWN_COLLECTIVES),
        ONE_OF_MANY,
        "64M",
        "two-level-",
        "two-level-host",
    ),
    MESSAGES_OF,
    Traffic(
        "collectives-2+2",
        "2,2",
        tuple(OWN_COLLECTIVES),
        ONE_OF_MANY,
        "8M",
        "two-level-",
        "two-level-host",
    ),
]


TRANSFORM = Traffic("fft3d-2+2", "2,2", (), (), "", "two-level-", "two-level-host")
POINTS = 128  # a side; 16 bytes each
MIXED = ("auto", "staged")


@dataclass(frozen=True)
class Job:
    machine: str
    traffic: Traffic

    @property
    def name(self) -> str:
        return f"{self.traffic.name}-{self.machine}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--fft3d", help="accord_fft3d of that MPI (default: no transforms)")
    parser.add_argument("--machines", nargs="+", choices=list(networks()), default=list(networks()))
    parser.add_argument(
        "--what",
        nargs="+",
        choices=[traffic.name for traffic in (*ALL, TRANSFORM)],
        default=[traffic.name for traffic in (*ALL, TRANSFORM)],
    )
    parser.add_argument(
        "--network", type=int, default=500, help="MB/s of every host's link (default: 500)"
    )
    parser.add_argument("--least", default="32", help="smallest size (default: 32)")
    parser.add_argument(
        "--most", help="largest size of all (default: 8M, and 64M for one rank a host)"
    )
    parser.add_argument(
        "--seconds", default="0.2", help="of each size, all ways together; 5 calls at least"
    )
    parser.add_argument(
        "--minutes", type=float, default=5.5, help="that all of it may take (default: 5.5)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=max(1, len(os.sched_getaffinity(0)) // CORES_OF_JOB),
        help=f"that run beside each other (default: one for each {CORES_OF_JOB} cores)",
    )
    parser.add_argument("--directory", type=Path, required=True)
    return parser.parse_args()


def slowdown(options: argparse.Namespace, machine: str) -> int:
    return max(1, round(networks()[machine] / options.network))


def settings_of(options: argparse.Namespace, job: Job) -> dict[str, str]:
    times = slowdown(options, job.machine)
    return {
        "ACCORD_NET_DESIGN": "auto",
        # Each way has a communicator: what is there for all is shared by as many as meet.
        "ACCORD_DEVICE_BYTES": "2G",
        # A receiver takes as many times longer as its links are slower.
        "ACCORD_NET_PATIENCE_MS": str(PATIENCE_MS * times),
        "ACCORD_HOST_MACHINE": job.machine,
        "ACCORD_HOST_SLOWDOWN": str(times),
        "ACCORD_HOST_DEVICES": job.traffic.ranks.split(",")[0],
    }


def ways_of(traffic: Traffic) -> list[str]:
    """To be measured beside what Accord chooses. A staged message is one way, which is called host."""
    beside = ("auto", "staged") if traffic is MESSAGES_OF else ("auto",)
    return [name for name in traffic.ways() if name not in beside]


def bench_of(options: argparse.Namespace, job: Job, ways: list[str]) -> list[str]:
    traffic = job.traffic
    bench = [*traffic.options, "--memory", "device"]
    bench += ["--min", options.least, "--max", options.most or traffic.most, "--factor", FACTOR]
    # Ranks meet in their first calls.
    bench += ["--seconds", options.seconds, "--warmup", "3"]
    return [*bench, *(["--algorithm", *ways] if ways else [])]


def table_of(job: Job, found: list[dict]) -> dict:
    """As `accord tune` makes it of such records."""
    ways = [name for name in job.traffic.ways() if name.startswith("two-level")]
    paths = {name: "two-level" if name == job.traffic.host else name for name in ways}
    if job.traffic is MESSAGES_OF:
        paths = {"staged": "staged", **{design: f"net-{design}" for design in DESIGNS}}
        found = [as_table_names(one, NET_SEND) for one in found]
        found = [one for one in found if one["operation"] == NET_SEND]
    points = points_of([one for one in found if one["algorithm"] in (RULE, *paths)], paths)
    choices = [row for row in choices_of(points, True) if row["collective"] not in PAIR_BY_PAIR]
    return {
        "format": "accord-table",
        "schema": 1,
        "machine": {"runtime": "host"},
        "choices": choices,
        "points": [],
    }


def tuned(
    options: argparse.Namespace, job: Job, shape: list[str], found: list[dict], end_s: float
) -> list[dict]:
    """What Accord chooses with such a table, of operations of which that says anything."""
    table = table_of(job, found)
    says = {
        row["collective"]
        for row in table["choices"]
        if any(each["algorithm"] != RULE for each in row["ranges"])
    }
    operations = MESSAGES if NET_SEND in says else [one for one in OWN_COLLECTIVES if one in says]
    if not operations:
        return []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(table, file)
        file.flush()
        settings = settings_of(options, job)
        settings |= {"ACCORD_NET_DESIGN": "table", "ACCORD_TABLE": file.name}
        bench = [*operations, *bench_of(options, job, [])]
        limit_s = max(1.0, end_s - time.monotonic())
        made = run_bench(options, shape, bench, settings, limit_s)
    return [{**one, "algorithm": "tuned", "ours": False, "table": "tuned"} for one in made]


def transform(options: argparse.Namespace, job: Job, shape: list[str], end_s: float) -> list[dict]:
    """By pencils, a program for each way: all points on devices, or those of every other rank."""
    records: list[dict] = []
    for asked, way in job.traffic.ways().items():
        settings = {**settings_of(options, job), "ACCORD_ALGORITHM": asked}
        # A rank without a device has what all ranks exchange staged, whatever is asked for.
        for memory in ("accord", "accord,host") if asked in MIXED else ("accord",):
            program = [options.fft3d, "--memory", memory, "--size", f"{POINTS}x{POINTS}x{POINTS}"]
            program += ["--grid", "pencil", "--reshape", "alltoallw", "--repeats", "3"]
            limit_s = max(1.0, end_s - time.monotonic())
            with tempfile.NamedTemporaryFile("w") as output:
                place = Path(output.name)
                try:
                    rows = run(options, shape, program, settings, limit_s, place, output)
                except CutOffError as error:
                    raise CutOffError(records) from error
            records += [of_transform(row, way, memory) for row in rows]
    return records


def of_transform(row: dict, way: str, memory: str) -> dict:
    """As the benchmark would say it."""
    kind = {"accord": "device"}.get(memory, "device and host")
    return {
        "operation": "fft3d" if memory == "accord" else "fft3d, every other rank on the host",
        "size_bytes": POINTS**3 * 16,
        "algorithm": way,
        "ours": way == "auto",
        "median_us": row["us"],
        "in_mpi_us": row["mpi_us"],
        "correct": row["correct"],
        "ranks": 4,
        "send_memory": kind,
        "recv_memory": kind,
        "form": "blocking",
        "mpi_library": "",
        "machine": {"cores": os.cpu_count(), "runtime": "host"},
        "load_average": row["load_average"],
    }


def as_record(options: argparse.Namespace, job: Job, record: dict) -> dict:
    """As of ways that are none of Accord's algorithms: tables name them as they name designs."""
    ways = job.traffic.ways()
    times = slowdown(options, job.machine)
    bed = f"2 hosts of one machine, as {job.machine}, {times} times slower"
    made = {key: value for key, value in record.items() if key != "algorithm"}
    made |= {
        "way": ways.get(record["algorithm"], record["algorithm"]),
        "machine": {**record["machine"], "host": bed, "name": bed},
        "mpi_library": record["mpi_library"].split(",")[0],
        "settings": {},
        "command": f"bed.py --what {job.traffic.name} --machines {job.machine} --network {options.network}",
    }
    if "best_peer" in made:
        made["best_peer"] = ways.get(made["best_peer"], made["best_peer"])
    return made


def measure(options: argparse.Namespace, job: Job, end_s: float) -> list[dict]:
    rate = f"{round(networks()[job.machine] / slowdown(options, job.machine) * 8e3)}kbit"
    shape = ["--ranks", job.traffic.ranks, "--out", rate, "--in", rate]
    begun_s = time.monotonic()
    found: list[dict] = []
    why = ""
    try:
        if job.traffic is TRANSFORM:
            found = transform(options, job, shape, end_s)
        else:
            limit_s = max(1.0, end_s - begun_s)
            settings = settings_of(options, job)
            bench = [*job.traffic.operations, *bench_of(options, job, ways_of(job.traffic))]
            found = run_bench(options, shape, bench, settings, limit_s)
            found += tuned(options, job, shape, found, end_s)
    except CutOffError as error:
        found, why = [*found, *error.records], ", cut off"
    except SystemExit as error:  # of this job alone
        why = f", failed with {error.code}"
    records = [as_record(options, job, one) for one in found if "median_us" in one]
    took_s = time.monotonic() - begun_s
    print(f"{job.name}: {len(records)} records in {took_s:.0f} s{why}", flush=True)
    if records:
        options.directory.mkdir(parents=True, exist_ok=True)
        file = options.directory / f"{job.name}.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return records


def points(records: list[dict]) -> dict[tuple[str, int], dict[str, float]]:
    """By operation and size: what each way takes, in microseconds."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        key = record["operation"], record["size_bytes"]
        found.setdefault(key, {})[record["way"]] = record["median_us"]
    return found


def losses(job: Job, records: list[dict]) -> Iterator[str]:
    """Where what Accord chooses is not the fastest, nor next to it."""
    for (operation, size), times in points(records).items():
        ways = {way: us for way, us in times.items() if way not in CHOSEN}
        best = min(ways, key=lambda way: ways[way], default="")
        for chosen in CHOSEN:
            ratio = times.get(chosen, 0) / ways[best] if best else 0
            if ratio > NEAR:
                yield f"{job.name}: {operation} of {size}: {chosen} takes {ratio:.2f} of {best}"


def main() -> int:
    options = arguments()
    end_s = time.monotonic() + options.minutes * 60
    jobs = [
        Job(machine, traffic)
        for traffic in (*ALL, *([TRANSFORM] if options.fft3d else []))
        if traffic.name in options.what
        for machine in options.machines
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda job: measure(options, job, end_s), jobs))
    for job, records in zip(jobs, found, strict=True):
        lost = "\n".join(losses(job, records))
        if records:
            print(lost or f"{job.name}: auto is within {NEAR - 1:.0%} everywhere")
    missing = [job.name for job, records in zip(jobs, found, strict=True) if not records]
    if missing:
        print(f"nothing measured: {', '.join(missing)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
