# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Arrays in device memory: their examples, who owns the memory, what mpi4py and others get of it.

In processes of their own, since libaccord reads its settings once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.paths import Home

from conftest import PYTHON, Accord, Mpi

pytest.importorskip("numpy", reason="no numpy in this Python environment")

Python = Callable[..., str]


@pytest.fixture
def python(home: Home) -> Python:
    """python(source, NAME=value...) -> what the program prints; an error fails the test."""

    def run(source: str, **variables: object) -> str:
        environment = {**os.environ, "PYTHONPATH": str(PYTHON), "ACCORD_RUNTIME": "host"}
        environment |= {name: str(value) for name, value in variables.items()}
        done = subprocess.run(
            [sys.executable, "-c", source],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_examples_of_the_docstrings(python: Python) -> None:
    told = python("""
import doctest, accord, accord.arrays, accord.device_memory
modules = accord, accord.arrays, accord.device_memory
done = [doctest.testmod(module) for module in modules]
print(sum(each.failed for each in done), all(each.attempted for each in done))
without = [name for name in accord.__all__ if ">>>" not in getattr(accord, name).__doc__]
print(without)
""")
    assert told == "0 True\n[]\n", told


def test_the_command_does_without_numpy(python: Python) -> None:
    assert python("import sys, accord.cli; print('numpy' in sys.modules)") == "False\n"


# What is device memory: libaccord knows the kind of an address only while it is allocated.
_KINDS = """
import ctypes, gc
import numpy as np
import accord
from accord.device_memory import _library

def is_device_memory(address):
    kind = ctypes.c_int()
    assert _library().functions.accord_memory_kind(ctypes.c_void_p(address), ctypes.byref(kind)) == 0
    return kind.value == 3
"""


def test_memory_lives_as_long_as_its_last_view(python: Python) -> None:
    python(
        _KINDS
        + """
a = accord.zeros((4, 8))
address = a.address
view = a[1:3].reshape(-1)[2:]
assert view.address == address + 8 * (8 + 2) and is_device_memory(address)
del a
assert is_device_memory(address)
del view
assert not is_device_memory(address)
"""
    )


def test_a_capsule_owns_the_memory(python: Python, home: Home) -> None:
    """As in a request of mpi4py, and where an error passes by."""
    python(
        _KINDS
        + """
for version in (None, (1, 0)):
    capsule = accord.ones(5).__dlpack__(stream=-1, max_version=version)
    gc.collect()
    from accord.arrays import _tensor_in
    address = _tensor_in(capsule).data
    assert is_device_memory(address)
    del capsule
    assert not is_device_memory(address)

def fails():
    capsule = accord.ones(5).__dlpack__()
    global address
    address = _tensor_in(capsule).data
    raise KeyError("the one to be seen")

try:
    fails()
except KeyError as error:
    assert error.args == ("the one to be seen",)
assert not is_device_memory(address)
""",
        LD_PRELOAD=home.library,
    )


def test_numpy_gets_copies_only(python: Python, home: Home) -> None:
    python(
        """
import copy, pickle
import numpy as np, pytest
import accord
a = accord.array(np.arange(6, dtype="int16").reshape(2, 3))
np.testing.assert_array_equal(np.asarray(a), [[0, 1, 2], [3, 4, 5]])
assert np.asarray(a, dtype=float).dtype == float
with pytest.raises(ValueError, match="only as a copy"):
    a.__array__(copy=False)
with pytest.raises((BufferError, RuntimeError)):
    np.from_dlpack(a)
with pytest.raises(TypeError):
    memoryview(a)
for b in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), a.copy()):
    assert b.address != a.address and b.dtype == a.dtype
    np.testing.assert_array_equal(b.numpy(), a.numpy())
a[1, 1:] = a[0, :2]
a[0] = np.float64(9)
np.testing.assert_array_equal(a.numpy(), [[9, 9, 9], [3, 0, 1]])
whole = accord.array(range(100000))
whole[1:] = whole[:-1]      # overlaps
np.testing.assert_array_equal(whole.numpy(), [0, *range(99999)])
with pytest.raises(ValueError):
    whole[5:5] = [1, 2]
""",
        LD_PRELOAD=home.library,
    )


def test_no_index_reads_device_memory(python: Python) -> None:
    """numpy would; the CPU may not."""
    python("""
import numpy as np, pytest
import accord
a = accord.array(np.arange(12).reshape(3, 4))
assert a[2, 3].numpy() == 11 and a[2, 3].shape == () and a[..., 1:2, 0].shape == (1,)
assert [len(row) for row in a] == [4, 4, 4]
for wrong in ([0, 1], np.array([True, False, True]), None, 1.5, "a"):
    with pytest.raises(TypeError):
        a[wrong]
for apart in (np.s_[::2], np.s_[:, 1], np.s_[::-1]):
    with pytest.raises(ValueError, match="in one piece"):
        a[apart]
with pytest.raises(IndexError):
    a[3]
assert a[3:].numpy().shape == (0, 4)
for shape in (0, (0, 3), ()):
    assert accord.zeros(shape).numpy().shape == np.zeros(shape).shape
""")


def test_errors_are_of_the_kind_that_python_expects(python: Python) -> None:
    python("""
import pytest
import accord
with pytest.raises(MemoryError, match="host runtime memory"):
    accord.empty(1 << 55, "int8")
with pytest.raises(ValueError, match="device 99"):
    accord.set_device(99)
for dtype in ("U3", object, "longdouble", ">i4", "datetime64[s]"):
    with pytest.raises(TypeError):
        accord.empty(2, dtype)
with pytest.raises(ValueError):
    accord.empty(-1)
with pytest.raises(BufferError, match="accord run"):
    accord.empty(2).__dlpack__()
""")


def test_each_thread_chooses_its_device(python: Python) -> None:
    told = python("""
import threading
import accord
accord.set_device(accord.device_count() - 1)
print(accord.device_count(), accord.zeros(2).device, accord.zeros(2)[1:].device)
threading.Thread(target=lambda: print(accord.zeros(2).device)).start()
""")
    count, chosen, of_view, of_thread = map(int, told.split())
    assert chosen == of_view == count - 1 and of_thread == 0


_STAND_INS = {
    "cuda": ("unit/fake_cuda/libcuda.so.1", 2),
    "hip": ("hip/lib/libamdhip64.so.6", 10),
    "synapse": ("synapse/lib/libSynapse.so", 12),
    "level_zero": ("level_zero/libaccord_ze_driver.so", 14),
}


@pytest.mark.parametrize("runtime", _STAND_INS)
def test_each_runtime_says_what_its_memory_is(runtime: str, python: Python, home: Home) -> None:
    file, device_type = _STAND_INS[runtime]
    library = home.library.parent.parent / "tests" / file
    if not library.is_file():
        pytest.skip(f"no stand-in for {runtime} in this build")
    loads = home.library if runtime == "level_zero" else f"{home.library}:{library}"
    told = python(
        """
import accord
a = accord.array(range(100), "float32")[10:20]
assert (a.numpy() == range(10, 20)).all()
assert a.__dlpack__(stream=1, max_version=(1, 0))
interface = getattr(a, "__cuda_array_interface__", None)
if interface:
    assert interface == {
        "shape": (10,), "typestr": "<f4", "data": (a.address, False), "version": 3,
    }
print(accord.runtime_name(), *a.__dlpack_device__(), interface is not None)
""",
        ACCORD_RUNTIME=runtime,
        LD_PRELOAD=loads,
        ZE_ENABLE_ALT_DRIVERS=library if runtime == "level_zero" else "",
    )
    assert told == f"{runtime} {device_type} 0 {runtime == 'cuda'}\n"


_PROGRAM = """
import gc
import numpy as np
from mpi4py import MPI
import accord

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
expected = sum(range(comm.size)) + comm.size

# With the type found out, and named; of each kind of element.
for dtype in ("bool", "int8", "uint16", "int32", "uint64", "float32", "float64", "complex64", "complex128"):
    a = accord.full(1000, comm.rank + 1, dtype)
    total = accord.zeros(1000, dtype)
    comm.Allreduce(a, total, op=MPI.LOR if dtype == "bool" else MPI.SUM)
    assert accord.last_path() != "-", accord.last_path()
    assert (total.numpy() == (True if dtype == "bool" else expected)).all(), dtype
a = accord.full(1000, comm.rank + 1, "float32")
comm.Allreduce(MPI.IN_PLACE, [a, MPI.FLOAT])
assert (a.numpy() == expected).all()

# Views, and a message whose array nobody else holds.
received = accord.zeros((4, 100), "int64")
request = comm.Irecv(received[1:3], source=left)
sent = comm.Isend(accord.full(200, comm.rank, "int64"), dest=right)
gc.collect()
other = accord.full(200, -1, "int64")   # would be at the address of the sent one, were it freed
MPI.Request.Waitall([request, sent])
assert received.numpy().tolist() == [[0] * 100, [left] * 100, [left] * 100, [0] * 100]

# An array that is a Python object of a message.
everywhere = comm.bcast(accord.array([1, 2, 3]) if comm.rank == 0 else None)
assert isinstance(everywhere, accord.Array) and everywhere.numpy().tolist() == [1, 2, 3]

# An error of MPI while a message holds the memory.
comm.Set_errhandler(MPI.ERRORS_RETURN)
try:
    comm.Send(a, dest=comm.size + 5)
    raise SystemExit("no error")
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_RANK

# Nothing has to be freed before MPI is.
print("well", flush=True)
"""


def test_mpi4py_takes_arrays(mpi: Mpi, home: Home, accord: Accord, tmp_path: Path) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    done = accord("run", "-n", 2, mpi.python, program, ACCORD_RUNTIME="host")
    assert done.returncode == 0 and done.stdout.count("well") == 2, done.stdout + done.stderr


# Without an accelerator, and nobody has named the host runtime: what uses device memory goes as on a GPU.
_NO_DEVICES = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}


def test_arrays_go_from_device_to_device_by_default(
    mpi: Mpi, home: Home, accord: Accord, tmp_path: Path
) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    program = tmp_path / "program.py"
    program.write_text("""
import accord
from mpi4py import MPI

a = accord.ones(1 << 16)
for _ in range(3):
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, a)
if MPI.COMM_WORLD.rank == 0:
    print(f"{accord.runtime_name()} {accord.last_path()} {a.numpy()[-1]}")
""")
    done = accord("run", "-n", 2, mpi.python, program, **_NO_DEVICES)
    assert done.returncode == 0, done.stdout + done.stderr
    runtime, path, total = done.stdout.split()
    if runtime != "host":
        pytest.skip("an accelerator")
    # The last once the buffer is lent.
    assert path in ("node", "node-direct") and total == "8.0", done.stdout + done.stderr


def test_the_benchmark_goes_from_device_to_device_by_default(home: Home, accord: Accord) -> None:
    shape = ("--min", "8", "--max", "8", "--seconds", "0.01")
    done = accord("bench", "allreduce", "-n", 2, "--memory", "device", *shape, **_NO_DEVICES)
    assert done.returncode == 0, done.stdout + done.stderr
    if "runtime host" not in done.stdout:
        pytest.skip("an accelerator")
    assert "ok inbox" in done.stdout, done.stdout + done.stderr
