# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The backend on GPU tensors: results, order with streams, memory, contexts, training that equals gloo's.

accord run -n 2 python tests/torch/gpu.py [PART...]    on one GPU or several; prints a line for each part

Not part of ctest: it needs a GPU and a PyTorch with CUDA. Exit code 77 without. ACCORD_TEST_DEVICE=cpu tries
what needs no GPU. ACCORD_TEST_DEVICE=cuda takes the other tests here to a GPU; bench/torch_calls.py measures.
"""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from mpi4py import MPI

import accord.torch  # noqa: F401  registers the backend

DEVICE = os.environ.get("ACCORD_TEST_DEVICE", "cuda")
OPS = dist.ReduceOp
DTYPES = [
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
COUNTS = [1, 1003, 1 << 20]
STEPS = 100
world = MPI.COMM_WORLD


def values(of: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    return ((torch.arange(count, device=DEVICE) * (of + 3) + of) % 5 + 1).to(dtype)


def must(right: bool, what: str) -> None:
    if not right:
        print(f"rank {world.rank}: wrong: {what}", file=sys.stderr, flush=True)
        world.Abort(1)


def settle() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def reductions() -> None:
    steps = {OPS.SUM: torch.add, OPS.MAX: torch.maximum, OPS.PRODUCT: torch.mul}
    for dtype in DTYPES:
        for count in COUNTS:
            parts = [values(each, count, dtype) for each in range(world.size)]
            for op, step in steps.items():
                tensor = values(world.rank, count, dtype)
                dist.all_reduce(tensor, op)
                must(torch.equal(tensor, functools.reduce(step, parts)), f"{op} {dtype} {count}")
            mean = values(world.rank, count, dtype)
            if dtype.is_floating_point:
                dist.all_reduce(mean, OPS.AVG)
                expected = (sum(part.double() for part in parts) / world.size).to(dtype)
                must(torch.allclose(mean, expected), f"AVG {dtype} {count}")


def movements() -> None:
    for dtype in [*DTYPES, torch.bool]:
        for count in COUNTS:
            everything = torch.cat([values(each, count, dtype) for each in range(world.size)])
            mine = values(world.rank, count, dtype)
            whole = torch.empty(count * world.size, dtype=dtype, device=DEVICE)
            dist.all_gather_into_tensor(whole, mine)
            must(torch.equal(whole, everything), f"all_gather_into_tensor {dtype} {count}")
            apart = [torch.empty_like(mine) for _ in range(world.size)]
            dist.all_gather(apart, mine)
            must(torch.equal(torch.cat(apart), everything), f"all_gather {dtype} {count}")
            dist.broadcast(mine, 0)
            must(torch.equal(mine, values(0, count, dtype)), f"broadcast {dtype} {count}")
            turned = torch.empty_like(whole)
            dist.all_to_all_single(turned, everything)
            block = everything[world.rank * count : (world.rank + 1) * count]
            must(torch.equal(turned, block.repeat(world.size)), f"all_to_all {dtype} {count}")
            ring = torch.empty_like(mine)
            sending = dist.isend(values(world.rank, count, dtype), (world.rank + 1) % world.size)
            dist.recv(ring, (world.rank - 1) % world.size)
            sending.wait()
            left = values((world.rank - 1) % world.size, count, dtype)
            must(torch.equal(ring, left), f"ring {dtype} {count}")


@functools.cache
def _square() -> torch.Tensor:
    square = torch.randn(2048, 2048, device="cuda")
    torch.cuda.synchronize()
    return square


def _slow(tensor: torch.Tensor) -> None:
    """Some milliseconds of kernels that end in a write of the tensor."""
    for _ in range(20):
        torch.mm(_square(), _square())
    tensor.fill_(world.rank + 1)


def _total() -> float:
    return float(sum(range(1, world.size + 1)))


def streams() -> None:
    """MPI is called after the kernels before it, on any stream; what comes after wait() sees its result."""
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for count in (1, 4096, 1 << 22):
                _many_in_a_stream(count)
                _one_that_is_finished(count)


def _many_in_a_stream(count: int) -> None:
    tensors = [torch.zeros(count, device="cuda") for _ in range(4)]
    works = []
    for tensor in tensors:
        _slow(tensor)
        works.append(dist.all_reduce(tensor, async_op=True))
    for tensor, work in zip(tensors, works, strict=True):
        work.wait()
        must(bool((tensor * 2 == 2 * _total()).all()), f"a stream's order, {count}")


def _one_that_is_finished(count: int) -> None:
    """An average is divided, by a kernel on another stream."""
    half = torch.zeros(count, device="cuda", dtype=torch.float16)
    _slow(half)
    dist.all_reduce(half, OPS.AVG, async_op=True).wait()
    must(bool((half == _total() / world.size).all()), f"what finishes a result, {count}")
    _slow(half)
    future = dist.all_reduce(half, async_op=True).get_future()
    must(bool((future.wait()[0] == _total()).all()), f"a future, {count}")
    _slow(half)
    future = dist.all_reduce(half, OPS.AVG, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    must(bool((doubled.wait() == 2 * _total() / world.size).all()), f"a chained future, {count}")


def memory() -> None:
    """Tensors that nobody refers to any more are not given away while they are used."""
    count = 1 << 20
    for _ in range(30):
        works = []
        for _ in range(4):
            _slow(part := torch.empty(count, device="cuda", dtype=torch.bfloat16))
            works.append(dist.all_reduce(part, OPS.AVG, async_op=True))
            del part
            torch.full(
                (count,), 99.0, device="cuda", dtype=torch.bfloat16
            )  # where it was, if it could
        kept = [work.result()[0] for work in works]
        must(all(bool((each == _total() / world.size).all()) for each in kept), "kept memory")
    before = torch.cuda.memory_allocated()
    for _ in range(200):
        dist.all_reduce(torch.ones(count, device="cuda", dtype=torch.bfloat16), OPS.AVG)
    torch.cuda.synchronize()
    must(torch.cuda.memory_allocated() <= before + 16 * count, "memory grows")


def contexts() -> None:
    """The engine's thread makes no context on a device that the process does not use."""
    tensor = torch.ones(8, device="cuda")
    for _ in range(20):
        _slow(tensor)
        dist.all_reduce(tensor, OPS.AVG, async_op=True).get_future().wait()
    driver = ctypes.CDLL("libcuda.so.1")
    for other in range(torch.cuda.device_count()):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        driver.cuDevicePrimaryCtxGetState(other, ctypes.byref(flags), ctypes.byref(active))
        if other != torch.cuda.current_device() and active.value:
            print(f"rank {world.rank} has a context on device {other}", flush=True)


def _trained(group: dist.ProcessGroup) -> tuple[torch.Tensor, float]:
    torch.manual_seed(1)
    layers = [torch.nn.Linear(256, 256), torch.nn.Tanh()] * 4
    net = torch.nn.Sequential(*layers, torch.nn.Linear(256, 8)).to(DEVICE)
    model = torch.nn.parallel.DistributedDataParallel(net, process_group=group, bucket_cap_mb=0.3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    drawn = torch.Generator().manual_seed(50 + world.rank)
    seconds = []
    for _ in range(STEPS):
        x = torch.randn(32, 256, generator=drawn).to(DEVICE)
        settle()
        begin = time.perf_counter()
        model(x).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        settle()
        seconds.append(time.perf_counter() - begin)
    flat = torch.cat([each.detach().reshape(-1) for each in model.parameters()])
    return flat, statistics.median(seconds)


def training() -> None:
    mine, seconds = _trained(dist.distributed_c10d._get_default_group())
    peers = ["gloo"]
    if DEVICE == "cuda" and dist.is_nccl_available() and torch.cuda.device_count() >= world.size:
        peers.append("nccl")
    for peer in peers:
        theirs, peer_seconds = _trained(dist.new_group(backend=peer))
        error = ((mine - theirs).abs().max() / theirs.abs().max()).item()
        must(error < 1e-5, f"training differs from {peer}'s by {error:.2g}")
        if world.rank == 0:
            print(f"a step: accord {seconds * 1e3:.2f} ms, {peer} {peer_seconds * 1e3:.2f} ms")


ON_ANY_DEVICE: list[Callable[[], None]] = [reductions, movements, training]
ON_GPUS: list[Callable[[], None]] = [contexts, streams, memory]


def main() -> None:
    parts = ON_ANY_DEVICE
    if DEVICE == "cuda":
        if not torch.cuda.is_available():
            print("no GPU here")
            sys.exit(77)
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        parts = [*ON_GPUS, *ON_ANY_DEVICE]
    dist.init_process_group("accord")
    chosen = sys.argv[1:] or [part.__name__ for part in parts]
    for part in parts:
        if part.__name__ not in chosen:
            continue
        begin = time.perf_counter()
        part()
        settle()
        if world.rank == 0:
            print(f"well: {part.__name__}, {time.perf_counter() - begin:.1f} s", flush=True)
    dist.destroy_process_group()


main()
