# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""mpi4py's own tests of buffers, on device memory of the host runtime. They come from PyPI, so they run where
`make nightly` does (ACCORD_TEST_NIGHTLY=1)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DEPENDENCIES = REPOSITORY / ".deps"

# Left out: test_pack, which compares the arrays themselves by arithmetic, and tests of windows.
MODULES = (
    *(f"test_cco_{form}" for form in ("buf", "buf_inter", "vec", "vec_inter", "ngh_buf")),
    *(f"test_cco_{form}" for form in ("nb_buf", "nb_vec", "pr_buf", "pr_vec", "pr_ngh_buf")),
    *("test_p2p_buf", "test_p2p_buf_matched", "test_p2p_buf_part"),
    *("test_msgspec", "test_msgzero", "test_io"),
)

pytestmark = pytest.mark.skipif(
    "ACCORD_TEST_NIGHTLY" not in os.environ, reason="gets mpi4py's tests from PyPI: make nightly"
)


@pytest.fixture(scope="session")
def tests_of_mpi4py() -> Path:
    """mpi4py's folder `test`, of the version that is installed."""
    interpreter = DEPENDENCIES / "mpich" / "bin" / "python"
    ask = "import mpi4py; print(mpi4py.__version__)"
    version = subprocess.check_output([interpreter, "-c", ask], text=True).strip()
    folder = DEPENDENCIES / "third-party"
    source = folder / f"mpi4py-{version}"
    if not (source / "test").is_dir():
        get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*get, "-d", folder, f"mpi4py=={version}"], check=True)
        with tarfile.open(folder / f"mpi4py-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return source / "test"


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_mpi4py(flavour: str, ranks: int, tests_of_mpi4py: Path) -> None:
    environment = {
        **os.environ,
        "ACCORD_RUNTIME": "host",
        "PYTHONPATH": str(REPOSITORY / "python"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    command = [DEPENDENCIES / "tools" / "bin" / "accord", "run", "-n", str(ranks)]
    program = [
        DEPENDENCIES / flavour / "bin" / "python",
        Path(__file__).with_name("mpi4py_arrays.py"),
    ]
    done = subprocess.run(
        [*command, *program, tests_of_mpi4py, *MODULES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    ran = re.search(r"^mpi4py's tests: (\d+) ran", done.stdout, re.MULTILINE)
    assert ran is not None and int(ran[1]) > 500, done.stdout
