# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""api/mpi_functions.json against the MPI standard in machine-readable form (pympistandard's data): no
procedure with a buffer is forgotten."""

import importlib.resources
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

# Procedures with a buffer that Accord leaves to the host MPI, and why.
LEFT_TO_THE_HOST = {
    "MPI_Alloc_mem": "gives host memory",
    "MPI_Free_mem": "frees host memory",
    "MPI_Get_address": "computes an address",
    "MPI_Win_shared_query": "gives host memory",
    "MPI_T_cvar_read": "its buffer is a variable of the program",
    "MPI_T_cvar_write": "the same",
    "MPI_T_event_copy": "the same",
    "MPI_T_event_read": "the same",
    "MPI_T_pvar_read": "the same",
    "MPI_T_pvar_readreset": "the same",
    "MPI_T_pvar_write": "the same",
}


@cache
def standard() -> dict[str, Any]:
    text = (importlib.resources.files("pympistandard.data") / "apis.json").read_text()
    return {procedure["name"]: procedure for procedure in json.loads(text).values()}


@cache
def intercepted() -> frozenset[str]:
    command = [sys.executable, str(REPOSITORY / "api" / "generate.py"), "names"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = (name for name in done.stdout.split() if not name.startswith("MPIX_"))
    return frozenset(name.removesuffix("_c") for name in names)


def test_every_procedure_with_a_buffer_is_intercepted() -> None:
    with_buffers = {
        name
        for name, procedure in standard().items()
        if procedure["attributes"]["c_expressible"]
        and not procedure["attributes"]["callback"]
        and not procedure["attributes"]["predefined_function"]
        and any("BUFFER" in parameter["kind"] for parameter in procedure["parameters"])
    }
    assert len(with_buffers) > 150
    assert with_buffers - intercepted() == LEFT_TO_THE_HOST.keys()


def test_what_is_intercepted_is_in_the_standard() -> None:
    assert intercepted() - standard().keys() == set()
