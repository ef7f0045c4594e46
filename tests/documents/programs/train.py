# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The reader's own Python program of the documents."""

from mpi4py import MPI

total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)
if MPI.COMM_WORLD.rank == 0:
    print(f"sum of ranks: {total}")
