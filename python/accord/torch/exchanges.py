# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Gather, scatter, all-to-all and messages: the calls that move blocks of chosen ranks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from mpi4py import MPI

from accord.torch import checks, packing
from accord.torch.collectives import Plan, Tensors
from accord.torch.members import Members
from accord.torch.types import moved, moved_blocks


def _equal_sizes(tensors: Tensors, other: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.numel() != other.numel():
            raise ValueError(
                f"tensors must have one size; got {tensor.numel()} and {other.numel()} elements"
            )


def gather(members: Members, outputs: Tensors, tensor: torch.Tensor, root: int) -> Plan:
    comm = members.comm
    if members.rank != root:
        if outputs:
            raise ValueError(f"takes output tensors at the root, rank {root}, only")
        checks.contiguous([tensor])
        return Plan(lambda: [comm.Igather(moved(tensor), None, root)], [tensor], [[]])
    checks.as_many(outputs, members.size, "output tensors")
    every = [tensor, *outputs]
    checks.same_dtype(every)
    checks.contiguous(every)
    _equal_sizes(outputs, tensor)
    row, to_unpack = packing.room_for(outputs)
    block = tensor.detach().clone() if packing.overlap(tensor, row) else tensor

    def start() -> list[MPI.Request]:
        return [comm.Igather(moved(block), moved(row, block.numel()), root)]

    finish = (lambda: packing.unpack(row, outputs)) if to_unpack else None
    return Plan(start, every, [outputs], finish, [row] if to_unpack else [])


def scatter(members: Members, output: torch.Tensor, inputs: Tensors, root: int) -> Plan:
    comm = members.comm
    if members.rank != root:
        if inputs:
            raise ValueError(f"takes input tensors at the root, rank {root}, only")
        checks.contiguous([output])
        return Plan(lambda: [comm.Iscatter(None, moved(output), root)], [output], [output])
    checks.as_many(inputs, members.size, "input tensors")
    every = [output, *inputs]
    checks.same_dtype(every)
    checks.contiguous(every)
    _equal_sizes(inputs, output)
    row = packing.packed(inputs)
    if packing.overlap(output, row):
        row = row.clone()

    def start() -> list[MPI.Request]:
        return [comm.Iscatter(moved(row, output.numel()), moved(output), root)]

    return Plan(start, every, [output])


def alltoall(members: Members, outputs: Tensors, inputs: Tensors) -> Plan:
    """Blocks of any sizes."""
    checks.as_many(outputs, members.size, "output tensors")
    checks.as_many(inputs, members.size, "input tensors")
    every = [*outputs, *inputs]
    checks.same_dtype(every)
    checks.contiguous(every)
    source = packing.packed(inputs)
    row, to_unpack = packing.room_for(outputs)
    if packing.overlap(source, row):
        source = source.clone()
    sent = [tensor.numel() for tensor in inputs]
    received = [tensor.numel() for tensor in outputs]
    comm = members.comm

    def start() -> list[MPI.Request]:
        return [
            comm.Ialltoallv(
                moved_blocks(source, sent, packing.places(sent)),
                moved_blocks(row, received, packing.places(received)),
            )
        ]

    finish = (lambda: packing.unpack(row, outputs)) if to_unpack else None
    return Plan(start, every, [*outputs], finish, [row] if to_unpack else [])


def _block_lengths(tensor: torch.Tensor, splits: Sequence[int], size: int, what: str) -> list[int]:
    """In elements, of splits along the first axis; none given: equal ones."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise ValueError(f"the {what}'s first axis, {rows}, does not divide by {size} ranks")
        splits = [rows // size] * size
    checks.as_many(splits, size, f"{what} split sizes")
    if sum(splits) != rows:
        raise ValueError(
            f"the {what} split sizes add up to {sum(splits)}, its first axis is {rows}"
        )
    per_row = tensor.numel() // rows if rows else 0
    return [count * per_row for count in splits]


def alltoall_single(
    members: Members,
    output: torch.Tensor,
    tensor: torch.Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
) -> Plan:
    comm, size = members.comm, members.size
    every = [output, tensor]
    checks.same_dtype(every)
    checks.contiguous(every)
    received = _block_lengths(output, output_splits, size, "output")
    sent = _block_lengths(tensor, input_splits, size, "input")
    source = tensor.detach().clone() if packing.overlap(tensor, output) else tensor

    def start() -> list[MPI.Request]:
        # Only what all ranks know decides: splits that happen to be equal here may differ elsewhere.
        if output_splits or input_splits:
            return [
                comm.Ialltoallv(
                    moved_blocks(source, sent, packing.places(sent)),
                    moved_blocks(output, received, packing.places(received)),
                )
            ]
        return [comm.Ialltoall(moved(source, sent[0]), moved(output, received[0]))]

    return Plan(start, every, [output])


def send(members: Members, tensor: torch.Tensor, to: int, tag: int) -> Plan:
    checks.dense([tensor])
    comm = members.comm
    return Plan(lambda: [comm.Isend(moved(tensor), to, tag)], [tensor], [tensor])


def receive(members: Members, tensor: torch.Tensor, source: int, tag: int) -> Plan:
    checks.dense([tensor])
    comm = members.comm
    return Plan(lambda: [comm.Irecv(moved(tensor), source, tag)], [tensor], [tensor])
