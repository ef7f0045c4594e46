# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Device memory from libaccord's C interface (include/accord/accord.h). Knows nothing of arrays."""

from __future__ import annotations

import ctypes
import threading
import weakref
from functools import cache
from typing import NamedTuple

from accord.errors import UserError
from accord.paths import find_home

_DEVICE = 3  # ACCORD_MEMORY_DEVICE
_ERRORS: dict[int, type[Exception]] = {
    1: ValueError,
    2: MemoryError,
    3: RuntimeError,
    4: NotImplementedError,
}


class _Library(NamedTuple):
    functions: ctypes.CDLL
    before_mpi: bool  # it was there when the process began, so it sees the process's MPI calls


@cache
def _library() -> _Library:
    """The libaccord of this process, else the one that this package belongs to."""
    process = ctypes.CDLL(None)
    before_mpi = hasattr(process, "accord_malloc")
    if before_mpi:
        library = process
    else:
        try:
            library = ctypes.CDLL(str(find_home().library))
        except UserError as error:
            raise OSError(str(error)) from error
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.accord_malloc.argtypes = [ctypes.POINTER(pointer), size, ctypes.c_int]
    library.accord_free.argtypes = [pointer]
    library.accord_memcpy.argtypes = [pointer, pointer, size]
    library.accord_set_device.argtypes = [ctypes.c_int]
    for name in ("accord_runtime_name", "accord_last_error", "accord_last_path"):
        getattr(library, name).restype = ctypes.c_char_p
    return _Library(library, before_mpi)


def _check(code: int) -> None:
    if code != 0:
        text = _library().functions.accord_last_error().decode(errors="replace")
        raise _ERRORS.get(code, RuntimeError)(text)


class _Chosen(threading.local):
    device = 0


_chosen = _Chosen()


class Allocation:
    """Device memory that is freed when nobody refers to it any more; `address` is None for no bytes."""

    def __init__(self, size_bytes: int) -> None:
        library = _library().functions
        self.device = _chosen.device
        address = ctypes.c_void_p()
        _check(library.accord_set_device(self.device))
        _check(library.accord_malloc(ctypes.byref(address), size_bytes, _DEVICE))
        self.address = address.value
        # As the process ends MPI may still use it, so it is not freed then.
        weakref.finalize(self, library.accord_free, self.address).atexit = False


def copy(destination: int, source: int, size_bytes: int) -> None:
    """Between addresses of any two kinds of memory; the bytes have arrived when it returns."""
    _check(_library().functions.accord_memcpy(destination, source, size_bytes))


def is_before_mpi() -> bool:
    """Whether MPI calls of this process pass through Accord, because it was preloaded or linked."""
    return _library().before_mpi


def device_count() -> int:
    """The number of devices that this process sees.

    Examples
    --------
    >>> import accord
    >>> accord.device_count() >= 1
    True
    """
    return int(_library().functions.accord_device_count())


def set_device(device: int) -> None:
    """Chooses the device of all arrays that this thread makes from now on; at first it is 0.

    Parameters
    ----------
    device
        From 0 up to, and without, `device_count()`. `ValueError` for others.

    Examples
    --------
    Each rank of a node takes a device of its own, as far as there are enough:

    >>> import accord
    >>> local_rank = 0      # comm.Split_type(MPI.COMM_TYPE_SHARED).rank
    >>> accord.set_device(local_rank % accord.device_count())
    """
    _check(_library().functions.accord_set_device(device))
    _chosen.device = device


def runtime_name() -> str:
    """Where arrays are: "cuda", "hip", "level_zero", "synapse", or "host" without an accelerator.

    Examples
    --------
    >>> import accord
    >>> accord.runtime_name() in ("cuda", "hip", "level_zero", "synapse", "host")
    True
    """
    return str(_library().functions.accord_runtime_name().decode())


def last_path() -> str:
    """Which way this thread's last MPI call on device memory went: "staged", "node", ... (docs/tracing.md).

    "-" before the first, and where Accord sees no MPI calls.

    Examples
    --------
    >>> import accord
    >>> accord.last_path()
    '-'
    """
    return str(_library().functions.accord_last_path().decode())
