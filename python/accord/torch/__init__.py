# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""torch.distributed over any MPI: importing this registers the c10d backend `accord`.

    import accord.torch
    torch.distributed.init_process_group("accord")

Start the program as an MPI program: `accord run -n 4 python train.py`. The import starts MPI, and all
ranks of the job must make it: they agree on RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and the like, where
the environment does not have them. Needs mpi4py, and PyTorch 1.13 or newer.
"""

import torch.distributed as dist

if not dist.is_available():
    raise ImportError(
        "this PyTorch was built without torch.distributed, which accord.torch extends"
    )

from accord.torch.backend import AccordGroup, register
from accord.torch.barrier import monitored_barrier
from accord.torch.environment import fill_environment

__all__ = ["AccordGroup", "monitored_barrier"]

fill_environment()
register()
