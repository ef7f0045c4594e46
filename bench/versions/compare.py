#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Small calls of several versions of Accord beside each other, on GPUs.

    mpicc -O2 small_calls.c -o small_calls -ldl
    compare.py --rounds 7 BASE=/path/libaccord.so NEW=/path/libaccord.so ... > outcome.json

Each round runs every version once, in turn forwards and backwards, so that what the machine does
meanwhile hits all of them. A version's figure is the geometric mean, over the collectives and
sizes, of the median ratio to the first one. Give the base twice under two names: their ratio is the
noise. Lines for people go to standard error.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
Figures = dict[str, float]  # median in microseconds, by collective and size


def measure(mpiexec: str, ranks: int, library: str) -> Figures:
    command = [mpiexec, "-n", str(ranks), "env", f"LD_PRELOAD={library}", str(HERE / "small_calls")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{library}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    words = [line.split() for line in done.stdout.splitlines()]
    return {f"{name} {size}": float(median) for name, size, median, _ in words}


def summary(base: list[Figures], own: list[Figures]) -> dict[str, object]:
    calls = list(base[0])
    ratios = {call: [b[call] / a[call] for a, b in zip(base, own, strict=True)] for call in calls}
    of_rounds = [statistics.geometric_mean(each) for each in zip(*ratios.values(), strict=True)]
    return {
        "ratio": statistics.geometric_mean(statistics.median(each) for each in ratios.values()),
        "of_rounds": of_rounds,
        "median_us": {call: statistics.median(figures[call] for figures in own) for call in calls},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="+", metavar="NAME=LIBRARY")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mpiexec", default="mpiexec")
    arguments = parser.parse_args()
    libraries = dict(version.split("=", 1) for version in arguments.versions)
    seen: dict[str, list[Figures]] = {name: [] for name in libraries}
    for number in range(arguments.rounds):
        for name in list(libraries)[:: 1 if number % 2 == 0 else -1]:
            seen[name].append(measure(arguments.mpiexec, arguments.ranks, libraries[name]))
    base = seen[next(iter(libraries))]
    outcome = {name: summary(base, figures) for name, figures in seen.items()}
    for name, figures in outcome.items():
        print(f"{name:16} {figures['ratio']:.3f} {figures['median_us']}", file=sys.stderr)
    json.dump(outcome, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
