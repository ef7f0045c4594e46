# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What moves without being computed with: any dtype, blocks of any sizes, guards around the outputs."""

from __future__ import annotations

import torch
import torch.distributed as dist
from harness import Guarded, all_values, case, must_equal, rank, size, values

COUNT = 517
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


def drawn(dtype: torch.dtype, count: int, of: int) -> torch.Tensor:
    return values(of, count, dtype)


@case
def broadcast_from_every_root() -> None:
    for dtype in DTYPES:
        for root in range(size()):
            box = Guarded(COUNT, dtype)
            if rank() == root:
                box.tensor.copy_(values(root, COUNT, dtype))
            dist.broadcast(box.tensor, root)
            box.must_be(values(root, COUNT, dtype))


@case
def narrow_floats_move() -> None:
    for name in ("float8_e4m3fn", "float8_e5m2"):
        if hasattr(torch, name):
            tensor = values(rank(), COUNT, torch.uint8).view(getattr(torch, name))
            dist.broadcast(tensor, size() - 1)
            must_equal(tensor.view(torch.uint8), values(size() - 1, COUNT, torch.uint8))


@case
def all_gather_apart_in_a_row_and_of_different_sizes() -> None:
    for dtype in DTYPES:
        for counts in ([COUNT] * size(), [3 * each for each in range(size())]):
            expected = [values(each, counts[each], dtype) for each in range(size())]
            mine = values(rank(), counts[rank()], dtype)
            boxes = [Guarded(count, dtype) for count in counts]
            dist.all_gather([box.tensor for box in boxes], mine)
            for box, part in zip(boxes, expected, strict=True):
                box.must_be(part)
            box = Guarded(sum(counts), dtype)
            dist.all_gather([*box.tensor.split(counts)], mine)
            box.must_be(torch.cat(expected))
            must_equal(mine, values(rank(), counts[rank()], dtype))


@case
def all_gather_from_ones_own_output() -> None:
    outputs = [torch.full((5,), 77.0) for _ in range(size())]
    outputs[rank()].copy_(values(rank(), 5, torch.float32))
    dist.all_gather(outputs, outputs[rank()])
    must_equal(torch.cat(outputs), torch.cat(all_values(5, torch.float32)))
    whole = torch.full((size(), 5), 77.0)
    whole[rank()] = values(rank(), 5, torch.float32)
    dist.all_gather([*whole], whole[rank()])
    must_equal(whole.view(-1), torch.cat(all_values(5, torch.float32)))


@case
def all_gather_into_tensor_also_in_place() -> None:
    for dtype in DTYPES:
        expected = torch.cat(all_values(COUNT, dtype))
        box = Guarded(COUNT * size(), dtype)
        dist.all_gather_into_tensor(box.tensor, values(rank(), COUNT, dtype))
        box.must_be(expected)
        box = Guarded(COUNT * size(), dtype)
        own = box.tensor.view(size(), COUNT)[rank()]
        own.copy_(values(rank(), COUNT, dtype))
        dist.all_gather_into_tensor(box.tensor, own)
        box.must_be(expected)
    # From the place of another rank, which MPI forbids.
    whole = torch.full((size(), 5), 77.0)
    other = whole[(rank() + 1) % size()]
    other.copy_(values(rank(), 5, torch.float32))
    dist.all_gather_into_tensor(whole, other)
    must_equal(whole.view(-1), torch.cat(all_values(5, torch.float32)))
    stacked = torch.empty(size(), 2, 3)
    dist.all_gather_into_tensor(stacked, torch.full((2, 3), float(rank())))
    assert [part.unique().item() for part in stacked] == [*range(size())]


@case
def all_gather_coalesced_lists_ranks_first() -> None:
    inputs = [values(rank(), 4 + each, torch.int32, each) for each in range(3)]
    outputs = [[torch.full_like(tensor, 77) for tensor in inputs] for _ in range(size())]
    dist.all_gather_coalesced(outputs, inputs)
    for of, each_rank in enumerate(outputs):
        for each, tensor in enumerate(each_rank):
            must_equal(tensor, values(of, 4 + each, torch.int32, each))


@case
def gather_to_every_root() -> None:
    for dtype in DTYPES:
        for root in range(size()):
            boxes = [Guarded(COUNT, dtype) for _ in range(size())]
            outputs = [box.tensor for box in boxes] if rank() == root else None
            dist.gather(values(rank(), COUNT, dtype), outputs, root)
            if rank() == root:
                for each, box in enumerate(boxes):
                    box.must_be(values(each, COUNT, dtype))


@case
def scatter_from_every_root() -> None:
    for dtype in DTYPES:
        for root in range(size()):
            box = Guarded(COUNT, dtype)
            inputs = all_values(COUNT, dtype) if rank() == root else None
            dist.scatter(box.tensor, inputs, root)
            box.must_be(values(rank(), COUNT, dtype))


def block(of: int, to: int, dtype: torch.dtype, uneven: bool) -> torch.Tensor:
    return values(of, (of * 3 + to * 5) % 7 if uneven else 11, dtype, to)


@case
def all_to_all_of_lists() -> None:
    for dtype in DTYPES:
        for uneven in (False, True):
            inputs = [block(rank(), to, dtype, uneven) for to in range(size())]
            expected = [block(of, rank(), dtype, uneven) for of in range(size())]
            boxes = [Guarded(part.numel(), dtype) for part in expected]
            dist.all_to_all([box.tensor for box in boxes], inputs)
            for box, part in zip(boxes, expected, strict=True):
                box.must_be(part)


@case
def all_to_all_single_with_splits_and_without() -> None:
    for dtype in DTYPES:
        for uneven in (False, True):
            inputs = [block(rank(), to, dtype, uneven) for to in range(size())]
            expected = [block(of, rank(), dtype, uneven) for of in range(size())]
            box = Guarded(sum(part.numel() for part in expected), dtype)
            splits = ([part.numel() for part in expected], [part.numel() for part in inputs])
            dist.all_to_all_single(box.tensor, torch.cat(inputs), *(splits if uneven else ()))
            box.must_be(torch.cat(expected))
    rows = torch.arange(size() * 2 * 3, dtype=torch.float32).view(size() * 2, 3) + 100 * rank()
    output = torch.full_like(rows, 77)
    dist.all_to_all_single(output, rows)
    expected = [rows[2 * rank() : 2 * rank() + 2] + 100 * (of - rank()) for of in range(size())]
    must_equal(output, torch.cat(expected))


@case
def objects() -> None:
    mine = {"rank": rank(), "text": "x" * (10 * rank())}
    everybody = [{"rank": each, "text": "x" * (10 * each)} for each in range(size())]
    gathered: list[object] = [None] * size()
    dist.all_gather_object(gathered, mine)
    assert gathered == everybody
    root = size() - 1
    at_root: list[object] | None = [None] * size() if rank() == root else None
    dist.gather_object(mine, at_root, root)
    assert at_root is None or at_root == everybody
    told: list[object] = [mine, "b"]
    dist.broadcast_object_list(told, root)
    assert told == [everybody[root], "b"]
    mine_only: list[object] = [None]
    dist.scatter_object_list(mine_only, everybody if rank() == root else None, root)
    assert mine_only == [mine]
