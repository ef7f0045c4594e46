# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the tests of documents share: a folder for each document, in which its blocks run in turn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import shell
from documents import REPOSITORY

Folder = Callable[[Path], Path]


@pytest.fixture(scope="session")
def checkout() -> None:
    """What is named is looked for among the files that git has."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("no checkout of git")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation, which each document that asks for one gets a copy of; it may be moved."""
    prefix = tmp_path_factory.mktemp("installed") / "accord"
    command = ["cmake", "--install", REPOSITORY / "build", "--prefix", prefix]
    subprocess.run(command, check=True, timeout=shell.TIMEOUT_S, stdout=subprocess.DEVNULL)
    return prefix


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """folder_of(document): where its blocks run, with what the earlier ones have left."""
    if not shell.MPI.is_dir() or not (REPOSITORY / "build" / "lib" / "libaccord.so").is_file():
        pytest.skip("needs a build in build/ and the MPICH of .deps (make build)")
    made: dict[Path, Path] = {}

    def folder(document: Path) -> Path:
        if document not in made:
            made[document] = tmp_path_factory.mktemp(document.stem)
            shell.make_folder(made[document], document)
        return made[document]

    return folder
