# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Reductions of every dtype by every operation that PyTorch defines for it."""

from __future__ import annotations

import functools

import torch
import torch.distributed as dist
from harness import Guarded, SkippedError, all_values, case, must_equal, rank, size, values

COUNT = 1003
OPS = dist.ReduceOp
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [*INTEGERS, *FLOATS, *COMPLEX, torch.bool]


def ops_of(dtype: torch.dtype) -> list[object]:
    if dtype is torch.bool:
        return [OPS.SUM, OPS.PRODUCT, OPS.MIN, OPS.MAX, OPS.BAND, OPS.BOR, OPS.BXOR]
    if dtype.is_complex:
        return [OPS.SUM, OPS.AVG]  # PyTorch itself refuses others
    plain = [OPS.SUM, OPS.PRODUCT, OPS.MIN, OPS.MAX, OPS.AVG]
    return plain if dtype.is_floating_point else [*plain, OPS.BAND, OPS.BOR, OPS.BXOR]


_STEPS = {
    "SUM": torch.add,
    "AVG": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
_BOOL_STEPS = {"SUM": torch.logical_or, "PRODUCT": torch.logical_and}


def name_of(op: object) -> str:
    return getattr(op, "op", op).name


def reduced(parts: list[torch.Tensor], op: object) -> torch.Tensor:
    name, dtype = name_of(op), parts[0].dtype
    if dtype is torch.bool and name in ("MIN", "MAX"):
        name = {"MIN": "PRODUCT", "MAX": "SUM"}[name]
    steps = {**_STEPS, **_BOOL_STEPS} if dtype is torch.bool else _STEPS
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    total = functools.reduce(steps[name], [part.to(wide) for part in parts])
    if name == "AVG":
        if dtype.is_complex:
            total = torch.view_as_complex(torch.view_as_real(total) / size())
        else:
            total = total.div(size(), rounding_mode=None if dtype.is_floating_point else "trunc")
    return total.to(dtype)


@case
def allreduce_of_every_dtype_by_every_op() -> None:
    for dtype in ALL:
        for op in ops_of(dtype):
            box = Guarded(COUNT, dtype)
            box.tensor.copy_(values(rank(), COUNT, dtype))
            dist.all_reduce(box.tensor, op)
            box.must_be(reduced(all_values(COUNT, dtype), op))


@case
def allreduce_of_shapes_and_empty_tensors() -> None:
    for shape in [(), (1,), (0,), (3, 0), (2, 3, 4), (2, 3, 4, 5)]:
        tensor = torch.full(shape, float(rank() + 1))
        dist.all_reduce(tensor)
        must_equal(tensor, torch.full(shape, float(sum(range(1, size() + 1)))))
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    image.fill_(rank())
    dist.all_reduce(image)
    assert (image == sum(range(size()))).all()


@case
def premul_sum_multiplies_before() -> None:
    if torch.__version__ < "2":
        raise SkippedError("the factor cannot be read before PyTorch 2.0")
    from torch._C._distributed_c10d import _make_nccl_premul_sum as premul

    for dtype in FLOATS:
        for factor in (0.5, torch.tensor([0.25], dtype=dtype)):
            tensor = values(rank(), COUNT, dtype)
            dist.all_reduce(tensor, premul(factor))
            must_equal(
                tensor, reduced([part * factor for part in all_values(COUNT, dtype)], OPS.SUM)
            )


@case
def reduce_leaves_other_ranks_alone() -> None:
    for dtype in ALL:
        for op in ops_of(dtype):
            for root in range(size()):
                tensor = values(rank(), COUNT, dtype)
                dist.reduce(tensor, root, op)
                expected = reduced(all_values(COUNT, dtype), op)
                must_equal(tensor, expected if rank() == root else values(rank(), COUNT, dtype))


def scattered(dtype: torch.dtype, op: object, counts: list[int]) -> torch.Tensor:
    parts = all_values(sum(counts), dtype)
    begin = sum(counts[: rank()])
    return reduced([part[begin : begin + counts[rank()]] for part in parts], op)


@case
def reduce_scatter_of_equal_and_different_blocks() -> None:
    for counts in ([101] * size(), [each * 7 for each in range(size())]):
        for dtype in ALL:
            for op in ops_of(dtype):
                whole = values(rank(), sum(counts), dtype)
                together = [*whole.split(counts)]
                apart = [part.clone() for part in together]
                for inputs in (together, apart):
                    box = Guarded(counts[rank()], dtype)
                    dist.reduce_scatter(box.tensor, inputs, op)
                    box.must_be(scattered(dtype, op, counts))
                    must_equal(torch.cat(inputs), values(rank(), sum(counts), dtype))


@case
def reduce_scatter_tensor_also_in_place() -> None:
    for dtype in ALL:
        for op in ops_of(dtype):
            counts = [101] * size()
            source = values(rank(), sum(counts), dtype)
            box = Guarded(101, dtype)
            dist.reduce_scatter_tensor(box.tensor, source, op)
            box.must_be(scattered(dtype, op, counts))
            must_equal(source, values(rank(), sum(counts), dtype))
            own = source.view(size(), 101)[rank()]
            dist.reduce_scatter_tensor(own, source, op)
            must_equal(own, scattered(dtype, op, counts))


@case
def coalesced_calls_are_one_work() -> None:
    from torch.distributed.distributed_c10d import _coalescing_manager

    tensors = [values(rank(), 10 + each, torch.float32, each) for each in range(5)]
    if hasattr(dist, "all_reduce_coalesced"):
        copies = [tensor.clone() for tensor in tensors]
        dist.all_reduce_coalesced(copies)
        for each, tensor in enumerate(copies):
            must_equal(tensor, reduced(all_values(10 + each, torch.float32, each), OPS.SUM))
    try:
        manager = _coalescing_manager(async_ops=True)
    except TypeError:
        raise SkippedError("the coalescing manager of this PyTorch has other arguments") from None
    with manager as together:
        for tensor in tensors:
            dist.all_reduce(tensor)
    together.wait()
    for each, tensor in enumerate(tensors):
        must_equal(tensor, reduced(all_values(10 + each, torch.float32, each), OPS.SUM))
    inputs = [values(rank(), 6, torch.bfloat16, each) for each in range(3)]
    outputs = [torch.full((6 * size(),), 77, dtype=torch.bfloat16) for _ in inputs]
    with _coalescing_manager():
        for output, tensor in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, tensor)
    for each, output in enumerate(outputs):
        must_equal(output, torch.cat(all_values(6, torch.bfloat16, each)))
    blocks = [torch.full((6,), 77.0) for _ in range(3)]
    wide = [values(rank(), 6 * size(), torch.float32, each) for each in range(3)]
    with _coalescing_manager():
        for block, tensor in zip(blocks, wide, strict=True):
            dist.reduce_scatter_tensor(block, tensor)
    for each, block in enumerate(blocks):
        begin = 6 * rank()
        parts = all_values(6 * size(), torch.float32, each)
        must_equal(block, reduced([part[begin : begin + 6] for part in parts], OPS.SUM))


@case
def many_reductions_under_way_at_once() -> None:
    tensors = [values(rank(), 1 + 97 * each, torch.float32, each) for each in range(60)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for each in reversed(range(60)):
        works[each].wait()
        must_equal(tensors[each], reduced(all_values(1 + 97 * each, torch.float32, each), OPS.SUM))


@case
def long_reductions() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        tensor = values(rank(), 1 << 20, dtype)
        dist.all_reduce(tensor)
        must_equal(tensor, reduced(all_values(1 << 20, dtype), OPS.SUM))


@case
def tensors_that_require_gradients() -> None:
    parameter = torch.nn.Parameter(values(rank(), 9, torch.float16))
    for op in (OPS.SUM, OPS.AVG):
        with torch.no_grad():
            parameter.copy_(values(rank(), 9, torch.float16))
        dist.all_reduce(parameter, op)
        must_equal(parameter.detach(), reduced(all_values(9, torch.float16), op))
    dist.broadcast(parameter, 0)
