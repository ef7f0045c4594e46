# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Trains a small residual net on made-up images, each rank on images of its own.

accord run -n 2 python examples/torch_resnet/train.py --peer gloo
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch_common"))

import torch
from torch import nn
from training import Batch, options, run

CLASSES = 10
SIDE = 16


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.aside = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.main(x) + self.aside(x))


def resnet(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, CLASSES),
    )


def images(count: int, drawn: torch.Generator) -> Batch:
    """A class is the direction and the frequency of a wave under noise."""
    target = torch.randint(0, CLASSES, (count,), generator=drawn)
    row = torch.arange(SIDE).view(SIDE, 1).expand(SIDE, SIDE)
    column = row.t()
    along = torch.where((target % 2 == 0).view(-1, 1, 1), row, column)
    waves = torch.sin(along * (1 + target // 2).view(-1, 1, 1) * 0.6)
    noise = torch.randn(count, 3, SIDE, SIDE, generator=drawn)
    return waves.unsqueeze(1) + 0.3 * noise, target


chosen = options("a small residual net over several ranks", steps=40)
run("resnet", chosen, lambda: resnet(chosen.width), lambda drawn: images(chosen.batch, drawn))
