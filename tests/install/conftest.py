# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the tests of an installation share: a prefix that was made elsewhere and moved, and how to use it.

ACCORD_TEST_BUILD, ACCORD_TEST_CMAKE and ACCORD_TEST_MPI name the build, its cmake and the prefix of an MPI.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["ACCORD_TEST_BUILD"])
CMAKE = os.environ["ACCORD_TEST_CMAKE"]
MPI = Path(os.environ["ACCORD_TEST_MPI"])
TIMEOUT_S = 60


def _make_python() -> Path:
    """An interpreter with typer and rich, but without the checkout's `accord`."""
    folder = Path(tempfile.mkdtemp(prefix="accord-python-"))
    atexit.register(shutil.rmtree, folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python3"


PYTHON = _make_python()

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def plain_environment(**variables: object) -> dict[str, str]:
    """That of a user who knows nothing of the checkout."""
    folders = f"{PYTHON.parent}:/usr/bin:/bin"
    given = {"PATH": folders, "HOME": "/nonexistent", "LC_ALL": "C"}
    return {**given, **{name: str(value) for name, value in variables.items()}}


def finished(*words: object, cwd: Path | None = None, **variables: object) -> str:
    """What a command prints that must succeed."""
    done = subprocess.run(
        [*map(str, words)],
        cwd=cwd,
        env=plain_environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def tool(name: str) -> str:
    return shutil.which(name) or pytest.skip(f"no {name} on this machine")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the prefix was made; nothing is there any more."""
    return tmp_path_factory.mktemp("made") / "prefix"


@pytest.fixture(scope="session")
def prefix(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    finished(CMAKE, "--install", BUILD, "--prefix", made)
    moved = tmp_path_factory.mktemp("moved") / "accord"
    made.rename(moved)
    return moved


@pytest.fixture
def accord(prefix: Path, tmp_path: Path) -> Run:
    """accord(word, ..., NAME=value) runs the installed command in an empty folder."""

    def run(*words: object, **variables: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(prefix / "bin" / "accord"), *map(str, words)],
            cwd=tmp_path,
            env=plain_environment(XDG_CONFIG_HOME=tmp_path, **variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    return run
