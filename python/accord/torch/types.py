# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How tensors and reductions of PyTorch are said in MPI.

What only moves goes as unsigned integers of the element's size, so that any dtype can. A reduction needs a
type that MPI can compute with:

- bool goes as bytes: a sum is their maximum, as in PyTorch's nccl backend.
- float16 and bfloat16 are added in float32 on the CPU, since few MPIs have them and none adds them quickly;
  on a device as themselves where the MPI names the type, since Accord's kernels add them there.
- AVG is a sum that is divided afterwards; PREMUL_SUM multiplies before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from mpi4py import MPI
from torch.distributed import ReduceOp

_buffer = getattr(MPI, "buffer", None) or MPI.memory

_MOVED = {
    1: MPI.UINT8_T,
    2: MPI.UINT16_T,
    4: MPI.UINT32_T,
    8: MPI.UINT64_T,
    16: MPI.C_DOUBLE_COMPLEX,
}

_REDUCED = {
    torch.uint8: MPI.UINT8_T,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.complex64: MPI.C_FLOAT_COMPLEX,
    torch.complex128: MPI.C_DOUBLE_COMPLEX,
    torch.bool: MPI.UINT8_T,
}
for _name, _type in (("uint16", MPI.UINT16_T), ("uint32", MPI.UINT32_T), ("uint64", MPI.UINT64_T)):
    if hasattr(torch, _name):
        _REDUCED[getattr(torch, _name)] = _type

_HALVES = (torch.float16, torch.bfloat16)

_Kind: Any = ReduceOp.RedOpType  # PyTorch's own types leave out what it holds
SUM = _Kind.SUM
_OPS = {
    _Kind.SUM: MPI.SUM,
    _Kind.AVG: MPI.SUM,
    _Kind.PREMUL_SUM: MPI.SUM,
    _Kind.PRODUCT: MPI.PROD,
    _Kind.MIN: MPI.MIN,
    _Kind.MAX: MPI.MAX,
    _Kind.BAND: MPI.BAND,
    _Kind.BOR: MPI.BOR,
    _Kind.BXOR: MPI.BXOR,
}
_BOOL_OPS = {
    _Kind.SUM: MPI.MAX,
    _Kind.PRODUCT: MPI.MIN,
    _Kind.MIN: MPI.MIN,
    _Kind.MAX: MPI.MAX,
    _Kind.BAND: MPI.BAND,
    _Kind.BOR: MPI.BOR,
    _Kind.BXOR: MPI.BXOR,
}
_BITWISE = (_Kind.BAND, _Kind.BOR, _Kind.BXOR)
_ORDERED = (_Kind.MIN, _Kind.MAX)


def _device_halves() -> dict[torch.dtype, MPI.Datatype]:
    """The MPI's own types, which Accord's kernels know."""
    types = {}
    if getattr(MPI, "FLOAT16_T", MPI.DATATYPE_NULL) != MPI.DATATYPE_NULL:
        types[torch.float16] = MPI.FLOAT16_T
    bfloat16 = getattr(MPI, "BFLOAT16_T", MPI.DATATYPE_NULL)
    if bfloat16 != MPI.DATATYPE_NULL:
        types[torch.bfloat16] = bfloat16
    return types


_DEVICE_HALVES = _device_halves()


def memory_of(tensor: torch.Tensor) -> Any:
    """Its bytes, as mpi4py takes them."""
    return _buffer.fromaddress(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def moved(tensor: torch.Tensor, count: int | None = None) -> list[Any]:
    """A tensor as a buffer of mpi4py, of which MPI copies the bytes; `count` as in Reduction.buffer."""
    return [
        memory_of(tensor),
        tensor.numel() if count is None else count,
        _MOVED[tensor.element_size()],
    ]


def moved_blocks(tensor: torch.Tensor, counts: list[int], displacements: list[int]) -> list[Any]:
    """The same of blocks that differ: their lengths and places in elements."""
    return [memory_of(tensor), (counts, displacements), _MOVED[tensor.element_size()]]


@dataclass(frozen=True)
class Reduction:
    """How one reduction of one dtype is done by MPI."""

    op: MPI.Op
    type: MPI.Datatype
    working: torch.dtype  # what MPI gets; another one than the tensors' is converted to and fro
    factor: Any = None  # multiplies before
    divisor: int = 0  # divides afterwards, where not 0
    is_direct: bool = False  # MPI does all of it in the tensor's own memory

    def buffer(self, tensor: torch.Tensor, count: int | None = None) -> list[Any]:
        """Of a tensor that has the working dtype; `count` is that of a block, where MPI counts so."""
        return [memory_of(tensor), tensor.numel() if count is None else count, self.type]

    def enter(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor itself if MPI may have it, else another one with what MPI shall reduce."""
        if self.working is not tensor.dtype:
            tensor = tensor.to(self.working)
        return tensor if self.factor is None else tensor * self.factor

    def is_plain(self, tensor: torch.Tensor) -> bool:
        return self.working is tensor.dtype and self.factor is None

    def leave(self, result: torch.Tensor, tensor: torch.Tensor) -> None:
        """What MPI left in `result` goes to `tensor`, which may be the same one."""
        if self.divisor:
            if result.dtype.is_complex:
                torch.view_as_real(result).div_(self.divisor)  # rounds as the division of reals
            elif result.dtype.is_floating_point:
                result.div_(self.divisor)
            else:
                result.div_(self.divisor, rounding_mode="trunc")
        if result is not tensor:
            tensor.copy_(result)

    @property
    def leaves_result(self) -> bool:
        """Whether there is nothing to do afterwards to a plain tensor."""
        return not self.divisor


def _factor_of(op: ReduceOp) -> Any:
    if hasattr(op, "factor"):
        return op.factor
    state: Any = op.__getstate__()  # its pickled form, since PyTorch 2.0
    if state is None:
        raise ValueError("PREMUL_SUM does not tell its factor in this PyTorch; it needs 2.0")
    return state[1]


_PREMUL_SUM = int(_Kind.PREMUL_SUM)
_plain: dict[
    tuple[int, torch.dtype, bool, int], Reduction
] = {}  # numbers: enums of PyTorch hash slowly
_sums: dict[tuple[torch.dtype, bool], Reduction] = {}  # found soonest


def reduction(op: Any, dtype: torch.dtype, on_device: bool, size: int) -> Reduction:
    """`ValueError` for what has no meaning, such as the bitwise and of floats."""
    if op == SUM:
        found = _sums.get((dtype, on_device))
        if found is None:
            found = _sums[dtype, on_device] = _make(SUM, dtype, on_device, size, None)
        return found
    kind = getattr(op, "op", op)
    number = int(kind)
    if number == _PREMUL_SUM:
        return _make(kind, dtype, on_device, size, _factor_of(op))
    key = (number, dtype, on_device, size)
    found = _plain.get(key)
    if found is None:
        found = _plain[key] = _make(kind, dtype, on_device, size, None)
    return found


def _make(kind: Any, dtype: torch.dtype, on_device: bool, size: int, factor: Any) -> Reduction:
    ops = _BOOL_OPS if dtype is torch.bool else _OPS
    computes = dtype in _REDUCED or dtype in _HALVES
    fractional = dtype.is_floating_point or dtype.is_complex
    if (
        not computes
        or kind not in ops
        or (fractional and kind in _BITWISE)
        or (dtype.is_complex and kind in _ORDERED)
        or (factor is not None and not fractional)
    ):
        raise ValueError(f"{kind.name} of {dtype} tensors is not defined")
    divisor = size if kind == _Kind.AVG else 0
    working = dtype
    if dtype in _HALVES:
        # MPIs that have bfloat16 have sums of it only.
        adds = on_device and dtype in _DEVICE_HALVES and ops[kind] is MPI.SUM
        if adds:
            direct = factor is None and not divisor
            return Reduction(MPI.SUM, _DEVICE_HALVES[dtype], dtype, factor, divisor, direct)
        working = torch.float32
    direct = working is dtype and factor is None and not divisor
    return Reduction(ops[kind], _REDUCED[working], working, factor, divisor, direct)


def direct_sums(on_device: bool) -> dict[torch.dtype, MPI.Datatype]:
    """What MPI adds as it is."""
    types = {dtype: kind for dtype, kind in _REDUCED.items() if dtype is not torch.bool}
    return {**types, **_DEVICE_HALVES} if on_device else types
