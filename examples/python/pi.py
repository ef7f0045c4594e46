# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Pi by throwing darts: each rank counts its hits, one element for each round. Needs no GPU.

accord run -n 2 python examples/python/pi.py
"""

import sys

import accord  # before mpi4py.MPI, which starts MPI

import numpy as np
from mpi4py import MPI

ROUNDS, DARTS = 16, 50_000

comm = MPI.COMM_WORLD
random = np.random.default_rng(comm.rank)
hits = accord.zeros(ROUNDS, np.int64)
for number in range(ROUNDS):
    x, y = random.random((2, DARTS))
    hits[number] = np.count_nonzero(x * x + y * y < 1)

comm.Allreduce(MPI.IN_PLACE, hits, op=MPI.SUM)

pi = 4 * float(hits.numpy().sum()) / (ROUNDS * DARTS * comm.size)
if comm.rank == 0:
    print(f"pi is about {pi:.3f}, by {comm.size} ranks with memory of {accord.runtime_name()}")
sys.exit(0 if abs(pi - np.pi) < 0.01 else 1)
