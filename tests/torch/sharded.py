# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What newer PyTorch builds on groups: FSDP2, pipelines, functional collectives, checkpoints."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from harness import (
    SkippedError,
    all_values,
    begin,
    case,
    device,
    must_equal,
    rank,
    run_all,
    size,
    values,
)
from nets import batches, gloo, must_be_alike, net, parameters_of
from torch import nn

import accord.torch  # noqa: F401  registers the backend


def _mesh(group: dist.ProcessGroup | None) -> object:
    from torch.distributed.device_mesh import DeviceMesh

    if group is None:
        group = dist.group.WORLD
    return DeviceMesh.from_group(group, device().type)


def _fully_shard() -> Callable[..., object]:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        raise SkippedError("this PyTorch has no fully_shard") from None
    return fully_shard


def fully_sharded(group: dist.ProcessGroup | None) -> torch.Tensor:
    fully_shard = _fully_shard()
    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=_mesh(group))
    fully_shard(model, mesh=_mesh(group))
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    for x, y in batches(40):
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        optimiser.zero_grad()
    return torch.cat([each.full_tensor().detach().reshape(-1) for each in model.parameters()])


@case
def fsdp2_equals_gloo() -> None:
    peer = gloo()
    mine = fully_sharded(None)
    assert not torch.equal(mine, parameters_of(net()))
    must_be_alike(mine, fully_sharded(peer))


@case
def a_sharded_optimiser_equals_one_on_every_rank() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    def steps(make: object) -> torch.Tensor:
        model = DistributedDataParallel(net())
        optimiser = make(model.parameters())  # type: ignore[operator]
        for x, y in batches(5):
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            optimiser.zero_grad()
        return parameters_of(model)

    plain = steps(lambda parameters: torch.optim.Adam(parameters, lr=0.01))
    must_equal(
        steps(lambda parameters: ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=0.01)),
        plain,
    )


@case
def fsdp1_equals_ddp() -> None:
    """Averages are rounded elsewhere."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    def steps(model: nn.Module) -> list[float]:
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for x, y in batches(20):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.item())
        return losses

    sharded = steps(FullyShardedDataParallel(net(), device_id=device()))
    assert torch.allclose(
        torch.tensor(sharded), torch.tensor(steps(DistributedDataParallel(net()))), rtol=1e-5
    )


@case
def functional_collectives_also_compiled() -> None:
    try:
        import torch.distributed._functional_collectives as functional
    except ImportError:
        raise SkippedError("this PyTorch has no functional collectives") from None
    group = dist.group.WORLD

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = functional.all_reduce(x, "sum", group)
        everything = functional.all_gather_tensor(x * 2, 0, group)
        share = functional.reduce_scatter_tensor(everything, "sum", 0, group)
        turned = functional.all_to_all_single(everything, None, None, group)
        told = functional.broadcast(x, 0, group)
        return total + 0, everything + 0, share + 0, turned + 0, told + 0

    x = values(rank(), 6, torch.float32)
    parts = all_values(6, torch.float32)
    doubled = torch.cat(parts) * 2
    expected = [
        sum(parts),
        doubled,
        parts[rank()] * 2 * size(),
        torch.cat([parts[rank()] * 2] * size()),
        parts[0],
    ]
    for got, right in zip(program(x), expected, strict=True):
        must_equal(got + 0, right)
    for got, right in zip(torch.compile(program, backend="aot_eager")(x), expected, strict=True):
        must_equal(got, right)


@case
def a_pipeline_equals_one_process() -> None:
    try:
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    except ImportError:
        raise SkippedError("this PyTorch has no pipelines") from None
    torch.manual_seed(3)
    layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(size())]
    x, target = torch.randn(12, 8), torch.randn(12, 8)
    whole = nn.Sequential(*layers)
    loss = nn.functional.mse_loss(whole(x), target)
    loss.backward()
    expected = [each.grad.clone() for each in layers[rank()].parameters()]
    for each in whole.parameters():
        each.grad = None
    try:
        stage = PipelineStage(layers[rank()], rank(), size(), device())
    except TypeError:
        raise SkippedError("the stages of this PyTorch need more arguments") from None
    schedule = ScheduleGPipe(stage, n_microbatches=3, loss_fn=nn.functional.mse_loss)
    if rank() == 0:
        schedule.step(x) if size() > 1 else schedule.step(x, target=target)
    elif rank() == size() - 1:
        schedule.step(target=target)
    else:
        schedule.step()
    for parameter, gradient in zip(layers[rank()].parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


@case
def distributed_tensors() -> None:
    try:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    except ImportError:
        raise SkippedError("this PyTorch has no distributed tensors") from None
    mesh = _mesh(None)
    whole = torch.arange(float(size() * 2 * 3)).view(size() * 2, 3)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    must_equal(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)
    columns = distribute_tensor(whole.t().contiguous(), mesh, [Shard(0)])
    product = (sharded @ columns.redistribute(mesh, [Replicate()])).full_tensor()
    must_equal(product, whole @ whole.t())


@case
def a_checkpoint_is_loaded_by_broadcast() -> None:
    try:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    except ImportError:
        raise SkippedError("this PyTorch has no state_dict helpers") from None
    fully_shard = _fully_shard()
    source = net()
    with torch.no_grad():
        for each in source.parameters():
            each.mul_(3)
    model = net()
    fully_shard(model, mesh=_mesh(None))
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, source.state_dict() if rank() == 0 else {}, options=options)
    loaded = torch.cat([each.full_tensor().detach().reshape(-1) for each in model.parameters()])
    must_equal(loaded, parameters_of(source))


@case
def a_sharded_checkpoint_is_saved_and_loaded() -> None:
    import torch.distributed.checkpoint as checkpoint

    where: list[object] = [tempfile.mkdtemp() if rank() == 0 else None]
    dist.broadcast_object_list(where, 0)
    folder = Path(str(where[0])) / "step"
    checkpoint.save({"a": torch.arange(5.0), "model": net().state_dict()}, checkpoint_id=folder)
    state = {
        "a": torch.zeros(5),
        "model": {key: torch.zeros_like(each) for key, each in net().state_dict().items()},
    }
    checkpoint.load(state, checkpoint_id=folder)
    must_equal(state["a"], torch.arange(5.0))
    for key, each in net().state_dict().items():
        must_equal(state["model"][key], each)


if __name__ == "__main__":
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
        print(f"PyTorch {torch.__version__} is too old for these tests")
        sys.exit(77)
    begin()
    run_all()
    dist.destroy_process_group()
