# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Times all_reduce of torch.distributed over the backends accord, gloo and nccl, and checks every result.

accord run -n 2 python bench/torch_calls.py --json FILE --machine "2 x H100" --commit COMMIT

Two operations: `all_reduce`, the call and the wait for its result; and `all_reduce, the call alone`, what an
asynchronous call costs the host. Backends take turns, block by block. A sample is the mean of the calls of a
block, on the slowest rank. The records have the keys of `accord bench --json`, so `accord report` reads them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI

import accord.torch  # noqa: F401  registers the backend
from accord import __version__

world = MPI.COMM_WORLD
WAITED, CALL = "all_reduce", "all_reduce, the call alone"
SIZES = [8, *(1 << bits for bits in (10, 13, 15, 16, 18, 20, 22, 24, 26))]
Call = Callable[[], float]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="times of all_reduce over several backends")
    parser.add_argument("--backends", default="accord,gloo,nccl")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--max", type=int, default=64 << 20, help="bytes of the longest tensor")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a backend at a size")
    parser.add_argument(
        "--limit", type=float, default=120, help="seconds; then larger sizes are left out"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--machine", default=platform.machine(), help="its name in words")
    parser.add_argument("--commit", default="", help="what libaccord.so was built from")
    parser.add_argument("--mps", default="", help="on or off, where ranks share a GPU")
    return parser.parse_args()


def groups(chosen: argparse.Namespace) -> dict[str, dist.ProcessGroup]:
    """Of the backends that can run here; nccl takes no two ranks on one GPU."""
    found = {}
    for name in chosen.backends.split(","):
        if name == "accord":
            found[name] = dist.group.WORLD
        elif name == "nccl" and (
            chosen.device != "cuda"
            or torch.cuda.device_count() < int(os.environ["LOCAL_WORLD_SIZE"])
        ):
            continue
        else:
            found[name] = dist.new_group(backend=name)
    return found


def waited(group: dist.ProcessGroup, tensor: torch.Tensor) -> Call:
    on_device = tensor.is_cuda

    def call() -> float:
        begin = time.perf_counter()
        dist.all_reduce(tensor, group=group)
        if on_device:
            torch.cuda.current_stream().synchronize()
        return time.perf_counter() - begin

    return call


def alone(group: dist.ProcessGroup, tensor: torch.Tensor) -> Call:
    on_device = tensor.is_cuda

    def call() -> float:
        begin = time.perf_counter()
        work = dist.all_reduce(tensor, group=group, async_op=True)
        took = time.perf_counter() - begin
        work.wait()
        if on_device:
            torch.cuda.current_stream().synchronize()
        return took

    return call


def block(call: Call, calls: int) -> float:
    """The mean of its calls, of the slowest rank."""
    world.Barrier()
    mean = sum(call() for _ in range(calls)) / calls
    return float(world.allreduce(mean, MPI.MAX))


def measure(calls: dict[str, Call], blocks: int, seconds: float) -> dict[str, list[float]]:
    """Blocks A B, B A, A B, ... after a warm-up that says how many calls a block may have."""
    counts = {}
    for name, call in calls.items():
        block(call, 3)
        one = block(call, 3)
        counts[name] = max(1, min(200, int(seconds / blocks / one)))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for at in range(blocks):
        order = list(calls) if at % 2 == 0 else list(reversed(calls))
        for name in order:
            taken[name].append(block(calls[name], counts[name]))
    return taken


def is_right(group: dist.ProcessGroup, tensor: torch.Tensor) -> bool:
    """Every element of a result on data that no call has seen; small integers, so the sum is exact."""
    places = torch.arange(tensor.numel(), device=tensor.device) % 7
    tensor.copy_(places + world.rank + 1)
    dist.all_reduce(tensor, group=group)
    expected = places * world.size + sum(range(1, world.size + 1))
    right = torch.equal(tensor, expected.to(tensor.dtype))
    tensor.zero_()
    return bool(world.allreduce(right, MPI.LAND))


def facts(chosen: argparse.Namespace) -> dict[str, Any]:
    machine: dict[str, Any] = {"name": chosen.machine, "cores": os.cpu_count()}
    memory = "host"
    if chosen.device == "cuda":
        memory = "device"
        machine.update(device=torch.cuda.get_device_name(), runtime="cuda")
    return {
        "ranks": world.size,
        "type": "float32",
        "op": "sum",
        "form": "torch.distributed",
        "send_memory": memory,
        "recv_memory": memory,
        "machine": machine,
        "accord": {"version": __version__, "commit": chosen.commit},
        "settings": {"MPS": chosen.mps} if chosen.mps else {},
        "mpi_library": MPI.Get_library_version().split("\n")[0].strip("\0 "),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["torch_calls.py", *sys.argv[1:]]).replace(str(chosen.json), "FILE"),
    }


def detail(name: str) -> str:
    version = f"PyTorch {torch.__version__}"
    if name == "nccl":
        version += f", NCCL {'.'.join(str(part) for part in torch.cuda.nccl.version())}"
    return version


def ratio(theirs: list[float], ours: list[float]) -> dict[str, float]:
    """Their time by ours, the median over the blocks, and its standard error."""
    pairs = [a / b for a, b in zip(theirs, ours, strict=True)]
    error = 1.25 * statistics.stdev(pairs) / len(pairs) ** 0.5
    return {"value": statistics.median(pairs), "error": error}


def records(
    operation: str, size: int, taken: dict[str, list[float]], right: dict[str, bool]
) -> list[dict[str, Any]]:
    made = []
    for name, samples in taken.items():
        median = statistics.median(samples)
        record = {
            "operation": operation,
            "size_bytes": size,
            "way": name,
            "ours": name == "accord",
            "median_us": median * 1e6,
            "min_us": min(samples) * 1e6,
            "max_us": max(samples) * 1e6,
            "blocks": len(samples),
            "correct": right[name],
            "detail": detail(name),
        }
        if operation == WAITED:
            record["bus_bandwidth_gb_s"] = 2 * size * (world.size - 1) / world.size / median / 1e9
        if name != "accord" and "accord" in taken:
            record["ratio"] = ratio(samples, taken["accord"])
        made.append(record)
    return made


def tell(operation: str, size: int, made: list[dict[str, Any]]) -> None:
    row = ", ".join(
        f"{each['way']} {each['median_us']:.1f} us" + ("" if each["correct"] else " WRONG")
        for each in made
    )
    print(f"{operation}, {size} B: {row}", flush=True)


def main() -> None:
    chosen = arguments()
    if chosen.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("accord")
    ways, shared, all_right = groups(chosen), facts(chosen), True
    begin = time.monotonic()
    for size in (each for each in SIZES if each <= chosen.max):
        tensor = torch.zeros(size // 4, device=chosen.device)
        for operation, make in ((WAITED, waited), (CALL, alone)):
            calls = {name: make(group, tensor) for name, group in ways.items()}
            taken = measure(calls, chosen.blocks, chosen.seconds)
            right = {name: is_right(group, tensor) for name, group in ways.items()}
            all_right = all_right and all(right.values())
            made = records(operation, size, taken, right)
            if world.rank == 0:
                tell(operation, size, made)
                if chosen.json:
                    with chosen.json.open("a") as file:
                        file.writelines(json.dumps({**each, **shared}) + "\n" for each in made)
        if world.bcast(time.monotonic() - begin) > chosen.limit:
            break
    dist.destroy_process_group()
    sys.exit(0 if all_right else "a result was wrong")


main()
