# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""torch.distributed over any MPI: importing this registers the c10d backend `accord`.

    import accord.torch
    torch.distributed.init_process_group("accord")

Start the program as an MPI program: `accord run -n 4 python train.py`. The import starts MPI, and all
ranks of the job must make it: they agree on RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and the like, where
the environment does not have them. Needs torch 2.4 or newer, mpi4py and numpy.
"""

import torch.distributed as dist

if not dist.is_available():
    raise ImportError("this PyTorch was built without torch.distributed, which accord.torch extends")

from accord.torch.backend import BACKEND_NAME, AccordGroup, create_group
from accord.torch.barrier import monitored_barrier
from accord.torch.environment import fill_environment

__all__ = ["AccordGroup", "monitored_barrier"]

fill_environment()
if BACKEND_NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(
        BACKEND_NAME, create_group, extended_api=True, devices=["cpu", "cuda"]
    )
