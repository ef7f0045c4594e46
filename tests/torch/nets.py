# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The small net that is trained, its data, and the peer to compare with."""

from __future__ import annotations

import torch
import torch.distributed as dist
from harness import SkippedError, device, must_equal, rank, size
from torch import nn


def gloo() -> dist.ProcessGroup:
    try:
        return dist.new_group(backend="gloo")
    except (RuntimeError, ValueError) as error:
        raise SkippedError(f"no gloo in this PyTorch: {error}") from None


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3)
    )


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    drawn = torch.Generator(device()).manual_seed(100 + rank())
    return [
        (torch.randn(8, 12, generator=drawn), torch.randint(0, 3, (8,), generator=drawn))
        for _ in range(count)
    ]


def parameters_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def must_be_alike(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Two ranks add in one order only; more ranks in another order than gloo's rings."""
    if size() == 2:
        must_equal(got, expected)
    else:
        error = (got - expected).abs().max().item() / expected.abs().max().item()
        assert error < 1e-5, error
