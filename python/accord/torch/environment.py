# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What torchrun puts into the environment, from MPI: a launcher of MPI programs sets none of it."""

from __future__ import annotations

import os
import socket

from mpi4py import MPI


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


def _chosen_meeting_point(on_one_node: bool) -> tuple[str, str]:
    """Where the ranks' store shall be: rank 0 decides for all, and keeps what its user has set."""
    address = os.environ.get("MASTER_ADDR") or (
        "127.0.0.1" if on_one_node else socket.gethostname()
    )
    return address, os.environ.get("MASTER_PORT") or str(_free_port())


def _check_given_ranks(world: MPI.Comm) -> None:
    """One RANK that the launcher hands to all ranks would make them wait for each other for ever."""
    given = world.allgather(os.environ.get("RANK"))
    if world.size > 1 and any(given) and len({*given}) < world.size:
        raise RuntimeError(
            f"the environment variable RANK is {given} on the {world.size} ranks of this MPI job; "
            "unset RANK and WORLD_SIZE, which accord.torch takes from MPI"
        )


def fill_environment() -> None:
    """Sets what is not set. A collective call: all ranks of the job make it together."""
    world = MPI.COMM_WORLD
    _check_given_ranks(world)
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    local_rank, local_size = node.rank, node.size
    node.Free()
    on_one_node = world.allreduce(local_size, MPI.MIN) == world.size
    address, port = world.bcast(_chosen_meeting_point(on_one_node) if world.rank == 0 else None)
    values = {
        "RANK": world.rank,
        "WORLD_SIZE": world.size,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": local_size,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
    }
    for name, value in values.items():
        os.environ.setdefault(name, str(value))
