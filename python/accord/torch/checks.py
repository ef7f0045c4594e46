# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What every call of c10d asks of its tensors. `ValueError` says what is wrong; the backend adds where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from accord.torch.device import DeviceSide, mpi_takes_device_memory

_DENSE_FORMATS = (torch.channels_last, torch.channels_last_3d)


def one(tensors: Sequence[Any]) -> Any:
    """Of a list that c10d gives, of tensors or of lists of them."""
    if len(tensors) != 1:
        raise ValueError(f"takes one tensor, got {len(tensors)}")
    return tensors[0]


def dense(tensors: Iterable[torch.Tensor]) -> None:
    """All elements lie in one piece, in whatever order: for what treats each element alike."""
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise ValueError(f"a tensor has layout {tensor.layout}; only dense tensors are taken")
        if not tensor.is_contiguous() and not any(
            tensor.dim() == dims and tensor.is_contiguous(memory_format=order)
            for dims, order in zip((4, 5), _DENSE_FORMATS, strict=True)
        ):
            raise ValueError(
                f"tensors must be contiguous; one has shape {tuple(tensor.shape)} and strides "
                f"{tensor.stride()}"
            )


def contiguous(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.layout is not torch.strided or not tensor.is_contiguous():
            dense((tensor,))
            raise ValueError(
                "tensors must be contiguous, and this call takes none in channels-last order"
            )


def same_dtype(tensors: Sequence[torch.Tensor]) -> None:
    dtype = tensors[0].dtype
    for tensor in tensors:
        if tensor.dtype is not dtype:
            raise ValueError(f"tensors must have one dtype; got {dtype} and {tensor.dtype}")


def as_many(tensors: Sequence[object], size: int, what: str) -> None:
    if len(tensors) != size:
        raise ValueError(f"needs {size} {what}, one for each rank; got {len(tensors)}")


def side_of(tensors: Sequence[torch.Tensor]) -> DeviceSide | None:
    """The stream order of the one device that the tensors are on; None on the CPU."""
    if not tensors:
        return None
    first = tensors[0]
    if len(tensors) == 1 and first.is_cpu:
        return None
    device = first.device
    for tensor in tensors[1:]:
        if tensor.device != device:
            raise ValueError(f"tensors must be on one device; got {device} and {tensor.device}")
    if device.type == "cpu":
        return None
    if device.type != "cuda":
        raise ValueError(f"takes tensors of the CPU and of CUDA devices, got {device}")
    if not mpi_takes_device_memory():
        raise ValueError(
            "a tensor is on a GPU, but Accord is not in this process; start it with `accord run`, or "
            'with LD_PRELOAD="$(accord preload)"'
        )
    return DeviceSide(device)
