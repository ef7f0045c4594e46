# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""c10d's contract: all cases, or those of some files, then the group's end and a second beginning.

accord run -n 3 python tests/torch/contract.py [reductions|movements|messages|groups|training ...]
"""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from harness import begin, run_all, size
from mpi4py import MPI

import accord.torch  # noqa: F401  registers the backend

begin()
for subject in sys.argv[1:] or ["reductions", "movements", "messages", "groups", "training"]:
    importlib.import_module(subject)
run_all()
dist.destroy_process_group()

if torch.__version__ >= "2":  # before, nobody tells a backend that its group ends
    MPI.COMM_WORLD.Barrier()  # rank 0 serves the old store until its group has ended
    dist.init_process_group("accord", timeout=timedelta(seconds=60))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size()
    dist.destroy_process_group()
