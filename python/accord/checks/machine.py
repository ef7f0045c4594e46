# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Checks of the machine: cores, shared memory, locked memory, reading another process's memory."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from accord.benchmark import core_count
from accord.checks.finding import Finding, State

_MIB = 1 << 20
_SHM_NEEDED_BYTES = 1 << 30
_MEMLOCK_NEEDED_BYTES = 64 * _MIB


def check_machine(has_accelerator: bool) -> Iterator[Finding]:
    yield _check_cores()
    yield _check_shared_memory(Path("/dev/shm"))
    yield _check_locked_memory(has_accelerator)
    yield _check_peer_reads()


def _check_cores() -> Finding:
    cores = core_count()
    if cores >= 8:
        return Finding(State.OK, f"{cores} cores")
    return Finding(
        State.OK,
        f"{cores} core{'s' if cores > 1 else ''}: run at most {cores} MPICH ranks, which spin while they "
        "wait; for more ranks use Open MPI with OMPI_MCA_mpi_yield_when_idle=1",
    )


def _check_shared_memory(folder: Path) -> Finding:
    mend = "mount a tmpfs there; in a container start it with a larger --shm-size, such as 4g"
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return Finding(State.BROKEN, f"no shared memory: {folder}: {error.strerror}", mend)
    if not os.access(folder, os.W_OK):
        return Finding(State.BROKEN, f"{folder} cannot be written by this user", mend)
    free_bytes = status.f_bavail * status.f_frsize
    text = f"{folder} has {free_bytes // _MIB} MiB free"
    if free_bytes < _SHM_NEEDED_BYTES:
        return Finding(
            State.SLOW, f"{text}: MPIs fall back to slower ways, or fail, without 1 GiB", mend
        )
    return Finding(State.OK, text)


def _check_locked_memory(has_accelerator: bool) -> Finding:
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit_bytes == resource.RLIM_INFINITY:
        return Finding(State.OK, "locked memory is not limited")
    text = f"locked memory is limited to {limit_bytes // _MIB} MiB"
    network = any(Path("/sys/class/infiniband").glob("*"))
    if limit_bytes >= _MEMLOCK_NEEDED_BYTES or not (network or has_accelerator):
        return Finding(
            State.OK,
            f"{text}, enough without an accelerator or an RDMA network"
            if not (network or has_accelerator)
            else text,
        )
    return Finding(
        State.SLOW,
        f"{text}: networks and drivers may be unable to register buffers",
        "`ulimit -l unlimited`, in a container --ulimit memlock=-1",
    )


class _IoVector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read_from(pid: int, buffer: ctypes.Array[ctypes.c_char]) -> int:
    """Reads the bytes at the address of `buffer` in another process; 0 or an errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = ctypes.create_string_buffer(len(buffer))
    local = _IoVector(ctypes.addressof(here), len(here))
    remote = _IoVector(ctypes.addressof(buffer), len(buffer))
    count = libc.process_vm_readv(
        ctypes.c_int(pid),
        ctypes.byref(local),
        ctypes.c_ulong(1),
        ctypes.byref(remote),
        ctypes.c_ulong(1),
        ctypes.c_ulong(0),
    )
    if count == len(buffer) and here.raw == buffer.raw:
        return 0
    return ctypes.get_errno() or 255


def _sibling_read_errno() -> int:
    """Whether one child of ours can read another's memory, as ranks of one job do; 0 or an errno."""
    buffer = ctypes.create_string_buffer(b"readable by the peer", 64)
    release_read, release_write = os.pipe()
    owner = os.fork()
    if owner == 0:
        os.close(release_write)
        os.read(release_read, 1)  # returns when the parent closes its end
        os._exit(0)
    reader = os.fork()
    if reader == 0:
        os._exit(_read_from(owner, buffer) & 255)
    _, status = os.waitpid(reader, 0)
    os.close(release_read)
    os.close(release_write)
    os.waitpid(owner, 0)
    return os.waitstatus_to_exitcode(status)


def _check_peer_reads() -> Finding:
    error = _sibling_read_errno()
    if error == 0:
        return Finding(
            State.OK, "ranks can read each other's memory (CMA): one copy per host message"
        )
    reason = os.strerror(error) if 0 < error < 255 else "the bytes did not arrive"
    return Finding(
        State.SLOW,
        f"ranks cannot read each other's memory (CMA: {reason}): large host messages take two copies",
        "`sysctl kernel.yama.ptrace_scope=0`; in a container add --cap-add=SYS_PTRACE",
    )
