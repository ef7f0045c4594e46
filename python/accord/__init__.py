# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Accord in Python: the `accord` command, and arrays in device memory for mpi4py.

>>> import accord
>>> a = accord.zeros(4, "float32")          # MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, a) takes it
>>> a[1:3] = [5, 6]
>>> a.numpy()
array([0., 5., 6., 0.], dtype=float32)
"""

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.arrays import (
        Array,
        array,
        device_count,
        empty,
        full,
        last_path,
        ones,
        runtime_name,
        set_device,
        zeros,
    )

__version__ = "0.1.0"
__all__ = [
    "Array",
    "array",
    "device_count",
    "empty",
    "full",
    "last_path",
    "ones",
    "runtime_name",
    "set_device",
    "zeros",
]


def _want_device_memory() -> None:
    """Says so to a preloaded Accord, as linked programs do, best before mpi4py.MPI is imported.

    Without an accelerator, memory of the host runtime then stands in for a device's in all MPI calls. With
    one this changes nothing, and would start its driver, with which a process may no longer fork.
    """
    library = ctypes.CDLL(None)
    drivers = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
    if hasattr(library, "accord_device_count") and not any(file.exists() for file in drivers):
        library.accord_device_count()


_want_device_memory()


def __getattr__(name: str) -> object:
    # Late, since the command imports this package, too, and does without numpy.
    if name in __all__:
        from accord import arrays

        return getattr(arrays, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
