# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Training over Accord ends with the parameters that gloo's ends with, bit for bit on two ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from harness import case, must_equal, rank, size
from nets import batches, gloo, must_be_alike, net, parameters_of
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 100


def trained(group: dist.ProcessGroup | None, accumulate: int = 1) -> torch.Tensor:
    """The parameters after STEPS steps, with buckets so small that there are several."""
    model = DistributedDataParallel(net(), process_group=group, bucket_cap_mb=0.005)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for x, y in batches(STEPS):
        for part in range(accumulate - 1):
            with model.no_sync():
                nn.functional.cross_entropy(model(x + part), y).backward()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    return parameters_of(model)


@case
def ddp_equals_gloo() -> None:
    peer = gloo()
    mine = trained(None)
    everybody = [torch.empty_like(mine) for _ in range(size())]
    dist.all_gather(everybody, mine)
    for other in everybody:
        must_equal(other, mine)
    assert not torch.equal(mine, parameters_of(net()))
    must_be_alike(mine, trained(peer))


@case
def ddp_with_accumulated_gradients_equals_gloo() -> None:
    peer = gloo()
    must_be_alike(trained(None, accumulate=3), trained(peer, accumulate=3))


@case
def parameters_come_from_rank_0() -> None:
    model = net()
    if rank() != 0:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(9)
    wrapped = DistributedDataParallel(model)
    must_equal(parameters_of(wrapped), parameters_of(net()))
