# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The shortest way: the sum of one tensor, whose caller waits, while nothing else is under way.

Programs make this call most, and where it is short its time is all Python. Whatever does not fit takes the
way of all other calls; so does, from where it is, what takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from mpi4py import MPI

from accord.torch import device
from accord.torch.engine import Engine
from accord.torch.members import Members
from accord.torch.types import SUM, direct_sums, memory_of

_POLLS = 300  # some 100 us
_HOST_TYPES = direct_sums(on_device=False)
_DEVICE_TYPES = direct_sums(on_device=True)


def started_sum(
    engine: Engine, members: Members, tensors: Sequence[torch.Tensor], op: Any
) -> MPI.Request | None:
    """None, and nothing has happened, where the long way has to be taken."""
    if len(tensors) != 1 or op != SUM or engine.is_busy() or members.failure is not None:
        return None
    tensor = tensors[0]
    if tensor.layout is not torch.strided or not tensor.is_contiguous():
        return None
    if tensor.is_cpu:
        datatype = _HOST_TYPES.get(tensor.dtype)
    elif tensor.is_cuda and device.mpi_takes_device_memory():
        datatype = _DEVICE_TYPES.get(tensor.dtype)
        if not device.is_idle(tensor.get_device()):
            return None
    else:
        return None
    if datatype is None:
        return None
    buffer = [memory_of(tensor), tensor.numel(), datatype]
    return members.comm.Iallreduce(MPI.IN_PLACE, buffer, MPI.SUM)


def is_soon_complete(request: MPI.Request) -> bool:
    for _ in range(_POLLS):  # noqa: SIM110  a generator costs half a microsecond
        if request.Test():
            return True
    return False
