# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Random calls by each algorithm there is.

    each_algorithm.py --mpiexec MPIEXEC --program PROGRAM --library LIBACCORD --plugin LIBNCCL

The names come from the library itself, so an algorithm that is added to src/coll/algorithms.def is tested by its
line there alone: all results are right, and some calls went by its path.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

RANKS = 2
CASES = 375
SEED = 20261125
TIMEOUT_S = 120
EVERYWHERE = {
    "ACCORD_RUNTIME": "host",
    "ACCORD_YIELD": "on",
    "ACCORD_TEST_WATCH_MS": "0",
    "ACCORD_INBOX_CALLS": "1",
    "ACCORD_REGION_BYTES": "64K",
    "ACCORD_CHUNK_BYTES": "1K",
    "ACCORD_PIPELINE_BYTES": "4K",
}
# What an algorithm cannot do without, by how its names begin.
NEEDS = {"two-level": {"ACCORD_NODE_SPLIT": "1", "ACCORD_UCX_TLS": "tcp"}}


def paths(library: Path) -> dict[str, str]:
    """Of each name that asks for an algorithm: what traces say of its calls."""
    accord = ctypes.CDLL(str(library))
    size = accord.accord_algorithms_json(None, 0)
    text = ctypes.create_string_buffer(size)
    accord.accord_algorithms_json(text, size)
    return {row["name"]: row["path"] for row in json.loads(text.value)["algorithms"] if row["path"]}


def run(options: argparse.Namespace, name: str, folder: Path) -> tuple[int, str, Counter[str]]:
    """The exit status of a job whose calls ask for `name`, what it printed, and its calls by their paths."""
    environment = dict(os.environ, ACCORD_ALGORITHM=name, ACCORD_TRACE_FILE=str(folder / name))
    for start, needs in NEEDS.items():
        if name.startswith(start):
            environment |= needs
    launcher = [options.mpiexec, "-n", str(RANKS), "env", f"LD_PRELOAD={options.library}"]
    cases = ["--seed", str(SEED), "--count", str(CASES * options.percent // 100), "--case-timeout", "60"]
    job = subprocess.run(
        [*launcher, options.program, *cases, "--memory", "device", "--only", "collective,reuse"],
        check=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    taken: Counter[str] = Counter()
    for trace in folder.glob(f"{name}.*.json"):
        events = json.loads(trace.read_text())["traceEvents"]
        taken.update(event["args"]["path"] for event in events if event.get("cat") == "call")
    return job.returncode, job.stdout, taken


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("mpiexec", "program", "library", "plugin"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--without", default="", help="what this machine lacks: names, with commas")
    parser.add_argument("--percent", type=int, default=100, help="of the cases")
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    os.environ.update(EVERYWHERE, ACCORD_CCL_LIBRARIES=f"nccl:{options.plugin}")
    failures = 0
    for name, path in paths(Path(options.library)).items():
        if name in options.without.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            status, output, taken = run(options, name, Path(folder))
        right = status == 0 and taken[path] > 0
        print(
            f"{name}: {'ok' if right else 'FAILED'}, {taken[path]} calls by {path}; all: {dict(taken)}"
        )
        if not right:
            failures += 1
            print(output)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
