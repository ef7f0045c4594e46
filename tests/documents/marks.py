# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Why a block is not run: a closed list, and whether this machine has what it takes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from documents import RECORD, REPOSITORY, Block

NIGHTLY = "ACCORD_TEST_NIGHTLY"
BUILD = REPOSITORY / "build"


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Need:
    """What a block needs that not every machine has."""

    text: str
    is_here: Callable[[], bool] = _never


def _built(file: str) -> Need:
    return Need(f"build/{file} in this build", (BUILD / file).exists)


NEEDS = {
    "gpu": Need("a GPU, or a compiler for one"),
    "cluster": Need("several machines"),
    "slurm": Need("Slurm"),
    "pbs": Need("PBS"),
    "container": Need("a container runtime"),
    "module": Need("Environment Modules or Lmod"),
    "spack": Need("Spack"),
    "root": Need("root"),
    "yours": Need("files, addresses or a state of the machine that the reader has"),
    "checkout": Need("a checkout of its own: changes the build"),
    "minutes": Need(
        f"minutes: scripts/nightly runs it ({NIGHTLY}=1)", lambda: NIGHTLY in os.environ
    ),
    "pypi": Need(
        f"packages of PyPI: scripts/nightly runs it ({NIGHTLY}=1)", lambda: NIGHTLY in os.environ
    ),
    "fortran": Need("an MPI with Fortran bindings on PATH"),
    "wheel": Need("minutes and two compilers of PyPI: scripts/test_wheel does the same"),
    "torch": Need("PyTorch and mpi4py in one Python environment"),
    "jq": Need("jq", lambda: shutil.which("jq") is not None),
    "installed": Need("an Accord that is installed", (BUILD / "cmake_install.cmake").exists),
    "level_zero": _built("tests/level_zero/libaccord_ze_driver.so"),
    "hip": _built("tests/hip/lib"),
    "synapse": _built("tests/synapse/lib"),
}

# What stands before blocks that are not commands.
IN_FILE = "in"  # the block stands in this file
FRAME = "frame"  # the block is compiled in the place of the line BLOCK of this file of tests/documents/frames
FILE = "file"  # the block becomes this file, which a later block uses
OUTPUT = "output"  # what the block before prints
PICTURE = "picture"  # a drawing
MARKS = {
    "sh": ("needs",),
    "console": ("needs",),
    "text": (OUTPUT, PICTURE, "needs"),
    "mermaid": (),
    "json": (FILE,),
    "python": (FILE, IN_FILE),
    "c": (IN_FILE, FRAME, "needs"),
    "cpp": (IN_FILE, FRAME, "needs"),
    "cmake": (IN_FILE, FRAME),
    "fortran": (FRAME, "needs"),
}
RUN_WITHOUT = ("sh", "console", "mermaid")


def wrong_mark(block: Block) -> str | None:
    """What is the matter with the language and the mark of a block."""
    if block.mark == RECORD:
        return None
    if block.language not in MARKS:
        return f"language {block.language or 'missing'}; known are {', '.join(MARKS)}"
    known = ", ".join(MARKS[block.language])
    if not block.mark and block.language not in RUN_WITHOUT:
        return f"needs a mark: one of {known}"
    if block.mark and block.mark not in MARKS[block.language]:
        return f"mark {block.mark}; known for {block.language} are {known}"
    if block.mark == "needs" and block.about not in NEEDS:
        return f"needs {block.about}; known needs are {', '.join(NEEDS)}"
    return None
