# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What each collective asks of MPI. A function returns a Plan; nothing is started here.

What a plan does at once (packing, converting) is done by kernels of the current stream where tensors are on a
device, so that the operation's event comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from mpi4py import MPI

from accord.torch import checks, packing
from accord.torch.members import Members
from accord.torch.types import Reduction, moved, moved_blocks, reduction

Tensors = Sequence[torch.Tensor]


@dataclass(slots=True)
class Plan:
    start: Callable[[], list[MPI.Request]]
    tensors: Tensors  # of the caller, which all are on one device
    result: list[Any]
    finish: Callable[[], None] | None = None
    temporary: Tensors = ()  # what `finish` reads


def _reduction(op: Any, tensor: torch.Tensor, members: Members) -> Reduction:
    return reduction(op, tensor.dtype, not tensor.is_cpu, members.size)


def allreduce(members: Members, tensors: Tensors, op: Any) -> Plan:
    checks.dense(tensors)
    comm = members.comm
    if len(tensors) == 1:
        tensor = tensors[0]
        how = _reduction(op, tensor, members)
        if how.is_direct:
            return Plan(
                lambda: [comm.Iallreduce(MPI.IN_PLACE, how.buffer(tensor), how.op)],
                tensors,
                [tensor],
            )
    parts = []
    for tensor in tensors:
        how = _reduction(op, tensor, members)
        tensor = tensor.detach()
        parts.append((how, tensor, tensor if how.is_plain(tensor) else how.enter(tensor)))

    def start() -> list[MPI.Request]:
        return [
            comm.Iallreduce(MPI.IN_PLACE, how.buffer(buffer), how.op) for how, _, buffer in parts
        ]

    def finish() -> None:
        for how, tensor, buffer in parts:
            how.leave(buffer, tensor)

    leaves = all(how.is_direct for how, _, _ in parts)
    return Plan(
        start,
        tensors,
        [*tensors],
        None if leaves else finish,
        [buffer for _, tensor, buffer in parts if buffer is not tensor],
    )


def broadcast(members: Members, tensors: Tensors, root: int) -> Plan:
    checks.dense(tensors)
    comm = members.comm

    def start() -> list[MPI.Request]:
        return [comm.Ibcast(moved(tensor), root) for tensor in tensors]

    return Plan(start, tensors, [*tensors])


def reduce(members: Members, tensor: torch.Tensor, root: int, op: Any) -> Plan:
    """The tensors of other ranks than the root stay as they are."""
    checks.dense([tensor])
    comm, is_root = members.comm, members.rank == root
    how = _reduction(op, tensor, members)
    plain = tensor.detach()
    buffer = plain if how.is_plain(plain) else how.enter(plain)

    def start() -> list[MPI.Request]:
        if is_root:
            return [comm.Ireduce(MPI.IN_PLACE, how.buffer(buffer), how.op, root)]
        return [comm.Ireduce(how.buffer(buffer), None, how.op, root)]

    leaves = not is_root or (buffer is plain and how.leaves_result)
    finish = None if leaves else lambda: how.leave(buffer, plain)
    return Plan(start, [tensor], [tensor], finish, [] if buffer is plain else [buffer])


def allgather(members: Members, outputs: Tensors, tensor: torch.Tensor) -> Plan:
    """Blocks may differ between ranks, if all know their sizes."""
    checks.as_many(outputs, members.size, "output tensors")
    every = [tensor, *outputs]
    checks.same_dtype(every)
    checks.contiguous(every)
    if outputs[members.rank].numel() != tensor.numel():
        raise ValueError(
            f"this rank's input has {tensor.numel()} elements, its output {outputs[members.rank].numel()}"
        )
    row, to_unpack = packing.room_for(outputs)
    block = tensor.detach()
    if packing.overlap(block, row):
        block = block.clone()
    counts = [output.numel() for output in outputs]
    start = _gather_to_all(members, block, row, counts)
    finish = (lambda: packing.unpack(row, outputs)) if to_unpack else None
    return Plan(start, every, [outputs], finish, [row] if to_unpack else [])


def _gather_to_all(
    members: Members, block: torch.Tensor, row: torch.Tensor, counts: list[int]
) -> Callable[[], list[MPI.Request]]:
    comm = members.comm
    if len(set(counts)) == 1:
        return lambda: [comm.Iallgather(moved(block), moved(row, counts[0]))]
    places = packing.places(counts)
    return lambda: [comm.Iallgatherv(moved(block), moved_blocks(row, counts, places))]


def allgather_into(members: Members, outputs: Tensors, inputs: Tensors) -> Plan:
    """Each input goes to a block of each rank's output, which the input may be itself."""
    comm, size = members.comm, members.size
    checks.as_many(outputs, len(inputs), "outputs")
    checks.contiguous([*outputs, *inputs])
    parts: list[tuple[Any, torch.Tensor, int]] = []
    for output, tensor in zip(outputs, inputs, strict=True):
        checks.same_dtype([output, tensor])
        if output.numel() != tensor.numel() * size:
            raise ValueError(
                f"the output must have {size} times the input's elements; it has {output.numel()}, "
                f"the input {tensor.numel()}"
            )
        own = output.data_ptr() + members.rank * tensor.numel() * tensor.element_size()
        source: Any = tensor.detach()
        if tensor.data_ptr() == own and tensor.numel() > 0:
            source = MPI.IN_PLACE
        elif packing.overlap(tensor, output):
            source = source.clone()
        parts.append((source, output, tensor.numel()))

    def start() -> list[MPI.Request]:
        return [
            comm.Iallgather(
                source if source is MPI.IN_PLACE else moved(source), moved(output, count)
            )
            for source, output, count in parts
        ]

    return Plan(start, [*outputs, *inputs], [*outputs])


def reduce_scatter(members: Members, output: torch.Tensor, inputs: Tensors, op: Any) -> Plan:
    """Blocks may differ between ranks."""
    checks.as_many(inputs, members.size, "input tensors")
    every = [output, *inputs]
    checks.same_dtype(every)
    checks.contiguous(every)
    if inputs[members.rank].numel() != output.numel():
        raise ValueError(
            f"this rank's output has {output.numel()} elements, its input {inputs[members.rank].numel()}"
        )
    comm = members.comm
    counts = [tensor.numel() for tensor in inputs]
    how, source, result = _reduced_block(members, output, packing.packed(inputs), op)

    def start() -> list[MPI.Request]:
        if len(set(counts)) == 1:
            sent = how.buffer(source, counts[0])
            return [comm.Ireduce_scatter_block(sent, how.buffer(result), how.op)]
        return [comm.Ireduce_scatter(how.buffer(source), how.buffer(result), counts, how.op)]

    finish = _leaving([(how, result, output)])
    return Plan(start, every, [output], finish, [] if result is output else [result])


def _reduced_block(
    members: Members, output: torch.Tensor, source: torch.Tensor, op: Any
) -> tuple[Reduction, torch.Tensor, torch.Tensor]:
    """How, from what, and into what: the output, unless its dtype or its place forbids."""
    how = _reduction(op, output, members)
    source = source.detach()
    if not how.is_plain(source):
        source = how.enter(source)
    if how.working is not output.dtype or packing.overlap(output, source):
        return how, source, torch.empty_like(output, dtype=how.working)
    return how, source, output


def _leaving(
    parts: list[tuple[Reduction, torch.Tensor, torch.Tensor]],
) -> Callable[[], None] | None:
    if all(result is output and how.leaves_result for how, result, output in parts):
        return None

    def finish() -> None:
        for how, result, output in parts:
            plain = output.detach()
            how.leave(plain if result is output else result, plain)

    return finish


def reduce_scatter_from(members: Members, outputs: Tensors, inputs: Tensors, op: Any) -> Plan:
    """Each output gets this rank's block of the sum of all ranks' inputs."""
    comm, size = members.comm, members.size
    checks.as_many(outputs, len(inputs), "outputs")
    checks.contiguous([*outputs, *inputs])
    parts = []
    for output, tensor in zip(outputs, inputs, strict=True):
        checks.same_dtype([output, tensor])
        if tensor.numel() != output.numel() * size:
            raise ValueError(
                f"the input must have {size} times the output's elements; it has {tensor.numel()}, "
                f"the output {output.numel()}"
            )
        parts.append((*_reduced_block(members, output, tensor, op), output))

    def start() -> list[MPI.Request]:
        return [
            comm.Ireduce_scatter_block(
                how.buffer(source, result.numel()), how.buffer(result), how.op
            )
            for how, source, result, _ in parts
        ]

    return Plan(
        start,
        [*outputs, *inputs],
        [*outputs],
        _leaving([(how, result, output) for how, _, result, output in parts]),
        [
            tensor
            for _, source, result, output in parts
            if result is not output
            for tensor in (source, result)
        ],
    )


def barrier(members: Members) -> Plan:
    comm = members.comm
    return Plan(lambda: [comm.Ibarrier()], [], [])
