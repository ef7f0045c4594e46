# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""An ordinary mpi4py program; afterwards asks the toy shim what it saw.

mpi4py calls the large-count forms where the MPI has them, so both kinds of call are checked.
"""

import ctypes
import os
import sys
from array import array

from mpi4py import MPI


def exchange(comm: MPI.Comm) -> None:
    received = array("i", [-1])
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    request = comm.Irecv(received, source=left)
    comm.Send(array("i", [comm.rank]), dest=right)
    request.Wait()
    assert received[0] == left, received
    total = array("i", [-1])
    comm.Allreduce(array("i", [comm.rank]), total)
    assert total[0] == comm.size * (comm.size - 1) // 2, total


def toy_count(function: str) -> int:
    """Calls that the toy shim saw; -1: it is not in this process."""
    try:
        shim = ctypes.CDLL(os.environ["TOY_SHIM"], mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return -1
    return shim.toy_count(function.encode())


def main() -> int:
    exchange(MPI.COMM_WORLD)
    exchange(MPI.COMM_WORLD)
    expected = int(os.environ["TOY_COUNT"])
    for function in ("MPI_Send", "MPI_Allreduce"):
        found = toy_count(function)
        if found != expected:
            print(f"FAILED: {function} was counted {found} times, expected {expected}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
