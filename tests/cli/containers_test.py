# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Ranks in containers of their own share device memory: namespaces in the place of a container runtime.

Each rank has a network and mounts of its own, in which the libraries lie read-only at a place of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from accord.paths import Home

from conftest import _OPENMPI, PYTHON, REPOSITORY, Accord, Mpi

EXAMPLE = REPOSITORY / "examples" / "python" / "allreduce.py"

_CONTAINER = """#!/bin/sh
place=$1/${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}
shift
mount --make-rprivate /
mount --bind {libraries} $place && mount -o remount,bind,ro $place || exit 1
exec env LD_PRELOAD=$place/libaccord.so "$@"
"""


# Open MPI starts in no network of its own, without Accord either.
@pytest.mark.parametrize("namespaces", ["--mount", "--mount --ipc", "--mount --net"])
def test_ranks_in_containers(
    namespaces: str, mpi: Mpi, home: Home, accord: Accord, tmp_path: Path
) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    if "--net" in namespaces and mpi.name == "openmpi":
        pytest.skip("Open MPI does not start in a network without interfaces")
    unshare = [shutil.which("unshare") or "unshare", *namespaces.split()]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no namespaces here: {tried.stderr.strip()}")
    container = tmp_path / "container.sh"
    container.write_text(_CONTAINER.format(libraries=home.lib))
    for rank in ("0", "1"):
        (tmp_path / rank).mkdir()
    launcher = accord("run", "--dry-run", "-n", 2, mpi.python, "-c", "pass").stdout.split()[0]
    words = ["-n", "2", *unshare, "sh", container, tmp_path, mpi.python, EXAMPLE]
    done = subprocess.run(
        [launcher, *map(str, words)],
        env=job_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 2 ranks: correct, by node" in done.stdout, done.stdout + done.stderr


def job_environment() -> dict[str, str]:
    return {**os.environ, **_OPENMPI, "ACCORD_RUNTIME": "host", "PYTHONPATH": str(PYTHON)}
