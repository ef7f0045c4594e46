# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The examples do what they say: built and started as their first lines tell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.paths import Home

from conftest import REPOSITORY, Accord, Mpi

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def allreduce_device(mpi: Mpi, home: Home, build: Callable[..., Path]) -> Path:
    if not home.shim(mpi.abi).is_file():
        pytest.skip(f"Accord is built without a shim for the {mpi.abi.label}")
    lib = mpi.compiler.parent.parent / "lib"
    return build(
        mpi.compiler,
        (EXAMPLES / "allreduce_device.c").read_text(),
        f"-I{REPOSITORY / 'include'}",
        f"-L{home.lib}",
        "-laccord",
        f"-Wl,-rpath,{home.lib}",
        f"-Wl,-rpath,{lib}",
        "-Wl,--no-as-needed",
    )


def test_c_example(allreduce_device: Path, accord: Accord) -> None:
    done = accord("run", "-n", 2, allreduce_device)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 2 ranks: correct" in done.stdout


@pytest.mark.one_mpi
def test_c_example_linked_needs_no_preload(allreduce_device: Path, accord: Accord) -> None:
    launcher = accord("run", "--dry-run", "-n", 1, allreduce_device).stdout.split()[0]
    command = [launcher, "-n", "1", str(allreduce_device)]
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0 and "over 1 ranks: correct" in done.stdout, done.stderr


@pytest.fixture
def fortran_example(mpi: Mpi, home: Home, tmp_path: Path) -> Path:
    wrapper = mpi.compiler.with_name(mpi.compiler.name.replace("mpicc", "mpif90"))
    if not wrapper.is_file():
        pytest.skip(f"no Fortran compiler for {mpi.name}")
    if not home.shim(mpi.abi).is_file():
        pytest.skip(f"Accord is built without a shim for the {mpi.abi.label}")
    program = tmp_path / "allreduce_device"
    sources = [
        REPOSITORY / "include" / "accord" / "accord.f90",
        EXAMPLES / "allreduce_device.f90",
    ]
    link = ["-Wl,--no-as-needed", "-L", home.lib, "-laccord", f"-Wl,-rpath,{home.lib}"]
    made = subprocess.run(
        [wrapper, *sources, "-o", program, *link],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0 and not made.stderr, made.stderr
    return program


def test_fortran_example(fortran_example: Path, accord: Accord) -> None:
    done = accord("run", "-n", 2, fortran_example)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "over 2 ranks: correct" in done.stdout


def test_cupy_example_skips_with_a_reason() -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("concerns machines without a GPU")
    example = EXAMPLES / "cupy_collectives.py"
    done = subprocess.run(
        [sys.executable, example], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 77 and done.stderr.startswith("skipped: ")


def test_jax_example_trains_or_skips_with_a_reason(mpi: Mpi, home: Home, accord: Accord) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    done = accord("run", "-n", 2, mpi.python, EXAMPLES / "jax_training.py", ACCORD_RUNTIME="host")
    if "skipped: " in done.stderr:
        assert done.returncode == 77, done.stdout + done.stderr
        pytest.skip("no JAX with mpi4jax")
    assert done.returncode == 0 and ": correct" in done.stdout, done.stdout + done.stderr


_SAYS = {
    "allreduce.py": "over 2 ranks: correct, by node",
    "halo.py": "20 steps over 2 ranks: correct",
    "pi.py": "pi is about 3.14",
}


def test_all_python_examples_are_run() -> None:
    assert {path.name for path in (EXAMPLES / "python").glob("*.py")} == set(_SAYS)


@pytest.mark.parametrize("name", _SAYS)
def test_python_example(name: str, mpi: Mpi, home: Home, accord: Accord) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    example = EXAMPLES / "python" / name
    done = accord("run", "-n", 2, mpi.python, example, ACCORD_RUNTIME="host")
    assert done.returncode == 0 and _SAYS[name] in done.stdout, done.stdout + done.stderr
