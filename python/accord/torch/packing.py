# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Lists of tensors as the one buffer that MPI's collectives take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch


def _storage_of(tensor: torch.Tensor) -> int:
    """Its address; two allocations may happen to lie beside each other."""
    if hasattr(tensor, "untyped_storage"):  # since PyTorch 2.0
        return tensor.untyped_storage().data_ptr()
    return int(tensor.storage().data_ptr())  # type: ignore[no-untyped-call]


def lie_in_a_row(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether each begins where the one before ends, as after `torch.chunk`: nothing has to be packed."""
    first = tensors[0]
    storage = _storage_of(first)
    address = first.data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != address or _storage_of(tensor) != storage:
            return False
        address += tensor.numel() * tensor.element_size()
    return True


def row_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The memory of tensors that lie in a row, as one tensor."""
    total = sum(tensor.numel() for tensor in tensors)
    return tensors[0].detach().as_strided((total,), (1,))


def packed(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """All elements, one tensor after the other: a view where they lie so."""
    if len(tensors) == 1:
        return tensors[0].detach().reshape(-1)
    if lie_in_a_row(tensors):
        return row_of(tensors)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def room_for(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, bool]:
    """Where such elements may come, and whether they have to be unpacked from there."""
    if len(tensors) == 1 or lie_in_a_row(tensors):
        return row_of(tensors), False
    total = sum(tensor.numel() for tensor in tensors)
    return tensors[0].new_empty(total), True


def unpack(row: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    begin = 0
    for tensor in tensors:
        tensor.detach().copy_(row[begin : begin + tensor.numel()].view(tensor.shape))
        begin += tensor.numel()


def places(counts: Sequence[int]) -> list[int]:
    """Where blocks of these lengths begin, one after the other."""
    return [0, *accumulate(counts)][: len(counts)]


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of contiguous tensors; MPI forbids it but for calls in place."""
    begin, other_begin = one.data_ptr(), other.data_ptr()
    end = begin + one.numel() * one.element_size()
    other_end = other_begin + other.numel() * other.element_size()
    return begin < other_end and other_begin < end
