# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The words of errors: each names operation, group and rank."""

from __future__ import annotations

import torch.distributed as dist
from mpi4py import MPI

DistBackendError: type[RuntimeError] = getattr(dist, "DistBackendError", RuntimeError)  # since 2.0


def where(operation: str, group: str, rank: int, size: int) -> str:
    return f"accord: {operation} of group {group!r}, rank {rank} of {size}"


def mpi_text(error: MPI.Exception) -> str:
    return " ".join(str(error.Get_error_string()).split())


def text_of(error: Exception) -> str:
    return mpi_text(error) if isinstance(error, MPI.Exception) else str(error)
