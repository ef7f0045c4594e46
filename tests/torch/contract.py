# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""c10d's contract on CPU tensors: all cases, then the group's end and a second beginning.

accord run -n 3 python tests/torch/contract.py
"""

from __future__ import annotations

import warnings
from datetime import timedelta

import groups  # noqa: F401
import messages  # noqa: F401
import movements  # noqa: F401
import reductions  # noqa: F401
import torch
import torch.distributed as dist
import training  # noqa: F401
from harness import run_all, size

import accord.torch  # noqa: F401  registers the backend

warnings.simplefilter("ignore")  # PyTorch's, of calls that it is about to rename
torch.set_num_threads(1)
dist.init_process_group("accord", timeout=timedelta(seconds=60))
run_all()
dist.destroy_process_group()

if torch.__version__ >= "2":  # before, nobody tells a backend that its group ends
    dist.init_process_group("accord", timeout=timedelta(seconds=60))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size()
    dist.destroy_process_group()
