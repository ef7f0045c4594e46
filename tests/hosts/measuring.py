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

HOSTS = Path(__file__).with_name("hosts.py")
SETTINGS = {
    "ACCORD_RUNTIME": "host",
    # Open MPI's put protocol has large messages go in one direction at a time.
    "OMPI_MCA_btl_tcp_flags": "send",
}


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
) -> list[dict]:
    """The records. Ends the program where it fails, as it does where a result was wrong."""
    load = round(os.getloadavg()[0], 1)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as records:
        command = [sys.executable, str(HOSTS), "--flavour", options.flavour]
        command += ["--mpiexec", options.mpiexec, "--preload", options.preload, *shape]
        command += ["--", options.bench, *bench, "--json", records.name]
        environment = {**SETTINGS, **os.environ, **settings}
        done = subprocess.run(command, env=environment, stdout=sys.stderr)
        if done.returncode != 0:
            sys.exit(done.returncode)
        text = Path(records.name).read_text()
    return [{**json.loads(line), "load_average": load} for line in text.splitlines()]
