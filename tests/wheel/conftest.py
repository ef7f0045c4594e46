# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A wheel, unpacked, and installed where nothing knows the checkout.

ACCORD_TEST_WHEEL names its file, ACCORD_TEST_BUILD the build of the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["ACCORD_TEST_BUILD"])
TIMEOUT_S = 120


@pytest.fixture(scope="session")
def wheel() -> Path:
    return Path(
        os.environ.get("ACCORD_TEST_WHEEL") or pytest.skip("no wheel named; make nightly makes one")
    )


@pytest.fixture(scope="session")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@dataclass(frozen=True)
class Installed:
    """A Python environment with the wheel, an MPI and mpi4py; `folder` is an empty one to work in."""

    venv: Path
    folder: Path

    @property
    def package(self) -> Path:
        (package,) = self.venv.glob("lib/python3*/site-packages/accord")
        return package

    def __call__(self, *words: object, **variables: object) -> str:
        """What a command prints that must succeed, in the environment of a user who has nothing else."""
        given = {"PATH": f"{self.venv}/bin:/usr/bin:/bin", "HOME": self.folder, "LC_ALL": "C"}
        done = subprocess.run(
            [*map(str, words)],
            cwd=self.folder,
            env={name: str(value) for name, value in {**given, **variables}.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout


Install = Callable[..., Installed]


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """install("mpich") makes an environment with that MPI. A proxy's settings are pip's alone."""

    def make(mpi: str) -> Installed:
        folder = tmp_path_factory.mktemp(mpi)
        venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, wheel, mpi, "mpi4py", "numpy"], cwd=folder, check=True)
        (folder / "work").mkdir()
        return Installed(venv, folder / "work")

    return make


@pytest.fixture(scope="session")
def mpich(install: Install) -> Installed:
    return install("mpich")
