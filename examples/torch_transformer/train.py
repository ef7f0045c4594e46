# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Trains a small transformer to go on with counting series, each rank on series of its own.

accord run -n 2 python examples/torch_transformer/train.py --peer gloo
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch_common"))

import torch
from torch import nn
from training import Batch, options, run

WORDS = 17
LENGTH = 24


class Transformer(nn.Module):
    """Says at each place which word comes next; it sees the words up to there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.next = nn.Linear(width, WORDS)
        future = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        self.register_buffer("future", future)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.layers(self.words(x) + self.places, mask=self.future)
        return self.next(seen).flatten(0, 1)


def series(count: int, drawn: torch.Generator) -> Batch:
    """Each begins and steps as it likes, modulo the number of words."""
    begin = torch.randint(0, WORDS, (count, 1), generator=drawn)
    step = torch.randint(1, 4, (count, 1), generator=drawn)
    text = (begin + step * torch.arange(LENGTH + 1)) % WORDS
    return text[:, :-1].contiguous(), text[:, 1:].flatten()


chosen = options("a small transformer over several ranks", steps=60)
run(
    "transformer",
    chosen,
    lambda: Transformer(chosen.width),
    lambda drawn: series(chosen.batch, drawn),
)
