# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Adds a vector of each rank in device memory, with plain mpi4py. Needs no GPU.

    accord run -n 2 python examples/python/allreduce.py

On a machine without a GPU set ACCORD_RUNTIME=host, so that calls go the ways that they go on one.
"""

import sys

import accord  # before mpi4py.MPI, which starts MPI

import numpy as np
from mpi4py import MPI

COUNT = 1 << 20

comm = MPI.COMM_WORLD
node = comm.Split_type(MPI.COMM_TYPE_SHARED)
accord.set_device(node.rank % accord.device_count())

numbers = accord.array(np.arange(COUNT, dtype=np.float64) + comm.rank)
total = accord.empty(COUNT)
comm.Allreduce(numbers, total, op=MPI.SUM)
path = accord.last_path()

ranks = comm.size
expected = np.arange(COUNT) * ranks + ranks * (ranks - 1) // 2
correct = comm.allreduce(bool((total.numpy() == expected).all()), op=MPI.LAND)
if comm.rank == 0:
    print(
        f"allreduce of {COUNT} doubles in {accord.runtime_name()} memory over {ranks} ranks: "
        f"{'correct' if correct else 'WRONG'}, by {path}"
    )
node.Free()
sys.exit(0 if correct else 1)
