# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs accord_bench over hosts.py and reads what it has written; for the scripts that measure there."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

HOSTS = Path(__file__).with_name("hosts.py")
SETTINGS = {
    "ACCORD_RUNTIME": "host",
    # Open MPI's put protocol has large messages go in one direction at a time.
    "OMPI_MCA_btl_tcp_flags": "send",
}


class CutOffError(Exception):
    """A run that was ended when its time was over."""

    def __init__(self, records: list[dict]) -> None:
        super().__init__("its time was over")
        self.records = records


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--flavour", choices=["mpich", "openmpi"], required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--preload", required=True, help="libaccord.so")
    parser.add_argument("--bench", required=True, help="accord_bench of that MPI")


def run_bench(
    options: argparse.Namespace,
    shape: list[str],
    bench: list[str],
    settings: dict[str, str],
    limit_s: float | None = None,
) -> list[dict]:
    """The records. Ends the program where it fails, as it does where a result was wrong."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as records:
        program = [options.bench, *bench, "--json", records.name]
        return run(options, shape, program, settings, limit_s, Path(records.name))


def run(
    options: argparse.Namespace,
    shape: list[str],
    program: list[str],
    settings: dict[str, str],
    limit_s: float | None,
    records: Path,
    output: IO[str] = sys.stderr,
) -> list[dict]:
    """The same of any program; `records`: where they come to lie, a line each."""
    load = round(os.getloadavg()[0], 1)
    command = [sys.executable, str(HOSTS), "--flavour", options.flavour]
    command += ["--mpiexec", options.mpiexec, "--preload", options.preload, *shape]
    environment = {**SETTINGS, **os.environ, **settings}
    is_over = False
    try:
        done = subprocess.run(
            [*command, "--", *program],
            env=environment,
            stdout=output,
            timeout=limit_s,
        )
        if done.returncode != 0:
            sys.exit(done.returncode)
    except subprocess.TimeoutExpired:
        is_over = True
    # Of a run that was cut off the last line may be, too.
    lines = records.read_text().split("\n")[:-1]
    found = [
        {**json.loads(line), "load_average": load}
        for line in lines
        if line.startswith("{")
    ]
    if is_over:
        raise CutOffError(found)
    return found
