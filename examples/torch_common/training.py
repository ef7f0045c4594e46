# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the PyTorch examples share: options, the training loop, and what they check of its result."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import accord.torch  # noqa: F401  registers the backend

TOLERANCES = {"float32": 1e-5, "float64": 1e-10}  # relative
SENSITIVITIES = 10  # how many times what the peer differs from itself
Batch = tuple[torch.Tensor, torch.Tensor]
Trained = tuple[torch.Tensor, list[float], list[float]]


def options(description: str, steps: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--backend", default="accord", help="accord, gloo or nccl")
    parser.add_argument(
        "--peer", default="", help="train again with these, a comma between; compare the results"
    )
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--batch", type=int, default=16, help="samples a rank")
    parser.add_argument("--width", type=int, default=32, help="channels or features of the net")
    parser.add_argument("--lr", type=float, default=0.02, help="the optimiser's")
    parser.add_argument("--dtype", default="float32", choices=TOLERANCES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path, help="add a line for each training, for plot.py")
    parser.add_argument("--machine", default="", help="its name, for the record")
    parser.add_argument("--commit", default="", help="of Accord, for the record")
    return parser.parse_args()


def parameters_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1) for each in model.parameters()])


def train(
    make_model: Callable[[], nn.Module],
    make_batch: Callable[[torch.Generator], Batch],
    group: dist.ProcessGroup,
    chosen: argparse.Namespace,
    device: torch.device,
    turned: int = 0,
) -> Trained:
    """The parameters at the end; of each step the loss over all ranks, and its seconds.

    `turned`: each rank draws what the rank so many places on would draw, so other ranks add the same in
    another order.
    """
    torch.manual_seed(7)
    model = DistributedDataParallel(make_model().to(device), process_group=group)
    optimiser = torch.optim.SGD(model.parameters(), lr=chosen.lr, momentum=0.9)
    seed = 1000 + (dist.get_rank() + turned) % dist.get_world_size()
    drawn = torch.Generator().manual_seed(seed)
    losses, seconds = [], []
    for _ in range(chosen.steps):
        x, target = (part.to(device) for part in make_batch(drawn))
        begin = time.perf_counter()
        loss = nn.functional.cross_entropy(model(x), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total = loss.detach().clone()
        dist.all_reduce(total, group=group)
        losses.append(total.item() / dist.get_world_size())
        seconds.append(time.perf_counter() - begin)
    return parameters_of(model), losses, seconds


def is_equal_everywhere(parameters: torch.Tensor) -> bool:
    everybody = [torch.empty_like(parameters) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, parameters)
    return all(torch.equal(other, parameters) for other in everybody)


def falls(losses: list[float]) -> bool:
    """The last fifth of the steps against the first."""
    few = max(1, len(losses) // 5)
    return statistics.mean(losses[-few:]) < 0.8 * statistics.mean(losses[:few])


def error_between(one: torch.Tensor, other: torch.Tensor) -> float:
    return ((one - other).abs().max() / other.abs().max()).item()


def report(
    name: str, chosen: argparse.Namespace, backend: str, losses: list[float], seconds: list[float]
) -> None:
    if dist.get_rank() != 0:
        return
    median_ms = statistics.median(seconds) * 1e3
    print(
        f"{name}, {backend}: loss {losses[0]:.3f} -> {losses[-1]:.3f}, median step {median_ms:.2f} ms"
    )
    if chosen.json:
        record = {
            "app": name,
            "backend": backend,
            "machine": chosen.machine,
            "commit": chosen.commit,
            "date": time.strftime("%Y-%m-%d"),
            "ranks": dist.get_world_size(),
            "device": chosen.device,
            "dtype": chosen.dtype,
            "torch": torch.__version__,
            "batch": chosen.batch,
            "width": chosen.width,
            "losses": losses,
            "step_us": [each * 1e6 for each in seconds],
        }
        with chosen.json.open("a") as file:
            file.write(json.dumps(record) + "\n")


def prepare(chosen: argparse.Namespace) -> torch.device:
    """Chooses the GPU, and kernels that compute the same again: trainings are compared bit for bit."""
    torch.set_default_dtype(getattr(torch, chosen.dtype))
    if chosen.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        # Else each new tensor costs a kernel.
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cudnn.allow_tf32 = False
    return torch.device(chosen.device)


def equals(
    parameters: torch.Tensor, train_peer: Callable[[int], Trained], others: torch.Tensor, dtype: str
) -> bool:
    """Two ranks can add in one order only. More can in several, and a net may enlarge the last bits from
    step to step, as batch normalisation does: how much, the peer itself shows when its ranks turn."""
    allowed = TOLERANCES[dtype]
    if dist.get_world_size() > 2:
        allowed = max(allowed, SENSITIVITIES * error_between(train_peer(1)[0], others))
    error = error_between(parameters, others)
    if dist.get_rank() == 0:
        print(f"parameters differ by {error:.2g} of the largest; {allowed:.2g} may be")
    return error <= allowed


def run(
    name: str,
    chosen: argparse.Namespace,
    make_model: Callable[[], nn.Module],
    make_batch: Callable[[torch.Generator], Batch],
) -> None:
    """Trains, checks, compares; the exit status says whether all is well."""
    device = prepare(chosen)
    dist.init_process_group(chosen.backend)

    def train_by(backend: str, group: dist.ProcessGroup) -> Trained:
        trained = train(make_model, make_batch, group, chosen, device)
        report(name, chosen, backend, *trained[1:])
        return trained

    parameters, losses, _ = train_by(chosen.backend, dist.distributed_c10d._get_default_group())
    wrong = []
    if not is_equal_everywhere(parameters):
        wrong.append("ranks have different parameters")
    if not falls(losses):
        wrong.append("the loss does not fall")
    for backend in filter(None, chosen.peer.split(",")):
        group = dist.new_group(backend=backend)
        others, _, _ = train_by(backend, group)
        turn = partial(train, make_model, make_batch, group, chosen, device)
        if not equals(parameters, turn, others, chosen.dtype):
            wrong.append(f"parameters differ from {backend}'s")
    dist.destroy_process_group()
    if wrong:
        sys.exit(f"wrong: {'; '.join(wrong)}")
    if int(os.environ["RANK"]) == 0:
        print("all is well")
