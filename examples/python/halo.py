# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Heat spreads through a plate: each rank has some rows of it in device memory. Needs no GPU.

    accord run -n 2 python examples/python/halo.py

Each step the ranks exchange the rows at their borders, which are views of the plate, straight from device to
device. The arithmetic between the exchanges is numpy's here, on a copy; on a GPU let CuPy do it in place, on
cupy.from_dlpack(plate). Rank 0 compares the result with the same steps on the whole plate.
"""

import sys

import accord  # before mpi4py.MPI, which starts MPI

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, STEPS = 64, 256, 20  # rows of each rank

comm = MPI.COMM_WORLD
node = comm.Split_type(MPI.COMM_TYPE_SHARED)
accord.set_device(node.rank % accord.device_count())
above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
below = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL


def step(plate):
    """The inner rows after one step: each point becomes the mean of its four neighbours."""
    inner = plate[1:-1].copy()
    neighbours = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    inner[:, 1:-1] = neighbours / 4
    return inner


def whole_plate():
    plate = np.zeros((ROWS * comm.size + 2, COLUMNS))
    plate[0] = 100  # the upper edge is hot
    return plate


first = comm.rank * ROWS
plate = accord.array(whole_plate()[first : first + ROWS + 2])  # with a row of each neighbour
for _ in range(STEPS):
    requests = [
        comm.Irecv(plate[0], source=above),
        comm.Irecv(plate[-1], source=below),
        comm.Isend(plate[1], dest=above),
        comm.Isend(plate[-2], dest=below),
    ]
    MPI.Request.Waitall(requests)
    plate[1:-1] = step(plate.numpy())

result = accord.empty((ROWS * comm.size, COLUMNS)) if comm.rank == 0 else None
comm.Gather(plate[1:-1], result, root=0)
correct = True
if comm.rank == 0:
    expected = whole_plate()
    for _ in range(STEPS):
        expected[1:-1] = step(expected)
    correct = bool((result.numpy() == expected[1:-1]).all())
    print(f"{STEPS} steps over {comm.size} ranks: {'correct' if correct else 'WRONG'}")
node.Free()
sys.exit(0 if correct else 1)
