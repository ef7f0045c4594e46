# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Collectives and messages on CuPy arrays with plain mpi4py: nothing here knows of Accord.

    accord run -n 4 python examples/cupy_collectives.py

Needs CuPy and a GPU; leaves with status 77 and the reason where they are missing. Every rank takes the
GPU of its local rank, so several ranks may share one.
"""

import sys
import time

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


try:
    import cupy
except ImportError as error:
    skip(f"CuPy cannot be imported ({error})")
try:
    device_count = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    skip(f"no GPU ({error})")

from mpi4py import MPI  # noqa: E402 (MPI starts only where the example can run)

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
COUNT = 1 << 20


def use_local_gpu():
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    device = node.rank % device_count
    node.Free()
    cupy.cuda.Device(device).use()
    return device


def pattern(owner):
    """What rank `owner` contributes: values that are exact in float32 and differ by rank."""
    return cupy.arange(COUNT, dtype=cupy.float32) % 1000 + owner


def poisoned(count):
    return cupy.full(count, -1, dtype=cupy.float32)


# Each prepares one operation: the MPI call, the array it fills and what must then be in it.


def allreduce():
    send, result = pattern(rank), poisoned(COUNT)
    expected = sum(pattern(owner) for owner in range(ranks))
    return lambda: comm.Allreduce(send, result, op=MPI.SUM), result, expected


def alltoall():
    send = cupy.concatenate([pattern(rank * ranks + peer) for peer in range(ranks)])
    result = poisoned(COUNT * ranks)
    expected = cupy.concatenate([pattern(peer * ranks + rank) for peer in range(ranks)])
    return lambda: comm.Alltoall(send, result), result, expected


def bcast():
    result = pattern(0) if rank == 0 else poisoned(COUNT)
    return lambda: comm.Bcast(result, root=0), result, pattern(0)


def send_recv():
    """A ring in which the first rank sends first, so that plain blocking calls cannot lock."""
    send, result = pattern(rank), poisoned(COUNT)
    left, right = (rank - 1) % ranks, (rank + 1) % ranks

    def call():
        if ranks == 1:
            comm.Sendrecv(send, dest=0, recvbuf=result, source=0)
        elif rank == 0:
            comm.Send(send, dest=right)
            comm.Recv(result, source=left)
        else:
            comm.Recv(result, source=left)
            comm.Send(send, dest=right)

    return call, result, pattern(left)


def main():
    device = use_local_gpu()
    devices = comm.gather(device, root=0)
    if rank == 0:
        library = MPI.Get_library_version().splitlines()[0].rstrip("\0")
        print(f"{ranks} ranks on GPUs {devices}, {library}", flush=True)
    failures = 0
    for operation in (allreduce, alltoall, bcast, send_recv):
        call, result, expected = operation()
        cupy.cuda.get_current_stream().synchronize()  # MPI knows no streams: the data must be there
        comm.Barrier()
        start = time.perf_counter()
        call()
        seconds = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
        wrong = comm.allreduce(int(cupy.count_nonzero(result != expected)))
        failures += wrong
        if rank == 0:
            verdict = "correct" if wrong == 0 else f"{wrong} wrong elements"
            size_mib = result.nbytes / (1 << 20)
            name = operation.__name__
            print(f"{name:<10} {size_mib:6.1f} MiB {seconds * 1e3:8.2f} ms  {verdict}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
