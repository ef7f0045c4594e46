# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Who is in a group of c10d, and the MPI communicator of exactly these processes."""

from __future__ import annotations

import zlib
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from accord.torch.errors import DistBackendError, where
from accord.torch.meeting import missing_after, tell

if TYPE_CHECKING:
    from accord.torch.operation import Operation

_HOW_TO_START = "start it with `accord run`, mpiexec or srun, not with torchrun"


class Members:
    """One group's communicator and what its operations share."""

    def __init__(self, store: Any, rank: int, size: int, name: str, timeout: timedelta) -> None:
        self.store = store
        self.rank = rank
        self.size = size
        self.name = name
        self.timeout_s = timeout.total_seconds()
        self.comm: MPI.Comm = _communicator(self)
        self.calls = 0
        self.barriers = 0
        self.failure: Exception | None = None  # of an operation that MPI may not have finished
        self.takes_futures = False  # whether the program asked for the last call's future
        self.queue: deque[Operation] = deque()  # in the program's order, not yet started

    def where(self, operation: str) -> str:
        return where(operation, self.name, self.rank, self.size)

    def free(self) -> None:
        """Collective where all is well; a communicator with unfinished operations is left alone."""
        if self.failure is None and self.comm != MPI.COMM_NULL and not MPI.Is_finalized():
            self.comm.Free()
        self.comm = MPI.COMM_NULL


def _communicator(members: Members) -> MPI.Intracomm:
    """Each rank says which process of MPI it is, waits for the others in bounded time, then all make it.

    So a group may have any processes in any order, and who never comes is named. MPI's own call, which has
    no time-out, is made once all are there.
    """
    world = MPI.COMM_WORLD
    if members.size > world.size:
        raise DistBackendError(
            f"{members.where('init')}: MPI started {world.size} process(es) of this program, "
            f"fewer than the group has; {_HOW_TO_START}"
        )
    keys = [f"accord/{rank}" for rank in range(members.size)]
    tell(members.store, keys[members.rank], str(world.rank))
    if missing := missing_after(members.store, keys, members.timeout_s):
        raise DistBackendError(
            f"{members.where('init')}: rank(s) {missing} of the group did not come within "
            f"{members.timeout_s:g} s"
        )
    processes = [int(members.store.get(key)) for key in keys]
    group = world.group.Incl(processes)
    # Threads may make several groups at a time: the tag keeps them apart.
    tag = zlib.crc32(members.name.encode()) & 0x7FFF
    comm = world.Create_group(group, tag)
    group.Free()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    comm.Set_name(f"torch {members.name}"[:60])
    return comm
