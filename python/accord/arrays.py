# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Arrays in device memory, on whatever runtime there is: buffers of mpi4py, and of what takes DLPack.

They hold numbers for MPI calls and compute nothing. On a GPU, CuPy and PyTorch compute with them without a
copy (`cupy.from_dlpack(a)`). Without one the embedded host runtime gives memory that the CPU may not touch,
and numpy gets a copy.
"""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any

from accord.device_memory import (
    Allocation,
    copy,
    device_count,
    is_before_mpi,
    last_path,
    runtime_name,
    set_device,
)

try:
    import numpy as np
except ImportError as error:
    raise ImportError("arrays of Accord need numpy: pip install numpy") from error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

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

# DLPack's numbers of device types. Memory of the host runtime is no kDLCPU: the CPU may not touch it.
_DLPACK_EXTENSION = 12
_DLPACK_DEVICE_TYPES = {"cuda": 2, "hip": 10, "level_zero": 14}


class _DeviceOfTensor(ctypes.Structure):
    """The first fields of DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
    )


# Where the DLTensor begins in what a capsule of this name points to.
_TENSOR_OFFSETS_BYTES = {b"dltensor": 0, b"dltensor_versioned": 32}


class _Memory:
    """An allocation as numpy takes it: by address."""

    def __init__(self, allocation: Allocation, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.allocation = allocation
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (allocation.address, False),
            "version": 3,
        }


class Array:
    """An array in device memory, in C order. Made by `empty`, `zeros`, `ones`, `full` and `array`.

    mpi4py takes it wherever it takes a buffer, also as `[a, MPI.FLOAT]`. Indexing gives views of the same
    memory; the memory is freed when its last view is gone, and not before a request that uses it.

    Examples
    --------
    >>> import accord
    >>> a = accord.full((3, 2), 7, "int32")
    >>> a
    <accord.Array (3, 2) int32 on host:0>
    >>> a.shape, a.dtype, a.size, a.nbytes
    ((3, 2), dtype('int32'), 6, 24)
    >>> a[1] = [8, 9]
    >>> a.numpy()
    array([[7, 7],
           [8, 9],
           [7, 7]], dtype=int32)
    """

    def __init__(self, layout: NDArray[Any], device: int) -> None:
        # An array over the device's addresses. numpy does arithmetic with it, and must never read it.
        self._layout = layout
        self._device = device

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each axis."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements."""
        return self._layout.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._layout.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._layout.size

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self._layout.nbytes

    @property
    def device(self) -> int:
        """Number of the device, as `set_device` counts."""
        return self._device

    @property
    def address(self) -> int:
        """Where the first element lies in the device's memory."""
        return self._layout.ctypes.data

    def __len__(self) -> int:
        return len(self._layout)

    def __repr__(self) -> str:
        return f"<accord.Array {self.shape} {self.dtype} on {runtime_name()}:{self.device}>"

    def __getitem__(self, index: Any) -> Array:
        """A view of the same memory.

        Numbers, slices and `...` select, as in numpy, and what they select must lie in one piece:
        `ValueError` if not. An element is an array without axes.

        Examples
        --------
        >>> import accord
        >>> a = accord.array([[1, 2], [3, 4], [5, 6]])
        >>> a[1:].numpy()
        array([[3, 4],
               [5, 6]])
        >>> a[0, 1].numpy()
        array(2)
        >>> a[:, 0]
        Traceback (most recent call last):
        ValueError: (slice(None, None, None), 0) selects elements that do not lie in one piece
        """
        words = index if isinstance(index, tuple) else (index,)
        # All else would have numpy read the elements.
        words = tuple(
            word if isinstance(word, slice) or word is ... else operator.index(word)
            for word in words
        )
        # With ... an element stays a view.
        layout = self._layout[words if ... in words else (*words, ...)]
        if not layout.flags.c_contiguous:
            raise ValueError(f"{index} selects elements that do not lie in one piece")
        return Array(layout, self._device)

    def __setitem__(self, index: Any, value: ArrayLike | Array) -> None:
        """Copies numbers there, from the host or from another array; they are broadcast as in numpy.

        Examples
        --------
        >>> import accord
        >>> a = accord.zeros((2, 2), int)
        >>> a[0] = 5
        >>> a[1] = a[0]
        >>> a.numpy()
        array([[5, 5],
               [5, 5]])
        """
        target = self[index]
        if isinstance(value, Array) and _fits(value, target):
            copy(target.address, value.address, target.nbytes)
            return
        source = np.empty(target.shape, target.dtype)
        source[...] = value.numpy() if isinstance(value, Array) else np.asarray(value)
        copy(target.address, source.ctypes.data, target.nbytes)

    def numpy(self) -> NDArray[Any]:
        """A copy in host memory.

        Examples
        --------
        >>> import accord
        >>> float(accord.ones(3).numpy().sum())
        3.0
        """
        result: NDArray[Any] = np.empty(self.shape, self.dtype)
        if self.nbytes:
            copy(result.ctypes.data, self.address, self.nbytes)
        return result

    def copy(self) -> Array:
        """A copy in device memory of its own.

        Examples
        --------
        >>> import accord
        >>> a = accord.zeros(2, int)
        >>> b = a.copy()
        >>> b[:] = 1
        >>> a.numpy(), b.numpy()
        (array([0, 0]), array([1, 1]))
        """
        result = empty(self.shape, self.dtype)
        result[...] = self
        return result

    def reshape(self, *shape: int) -> Array:
        """A view of the same elements in another shape; -1 stands for what is left.

        Examples
        --------
        >>> import accord
        >>> accord.array(range(6)).reshape(2, -1).numpy()
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        return Array(self._layout.reshape(shape), self._device)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """For numpy: always a copy."""
        if copy is False:
            raise ValueError("device memory comes to numpy only as a copy")
        numbers = self.numpy()
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, as mpi4py's lower-case calls use it: by way of host memory."""
        return array, (self.numpy(),)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and number of the device."""
        return _DLPACK_DEVICE_TYPES.get(runtime_name(), _DLPACK_EXTENSION), self._device

    def __dlpack__(
        self,
        *,
        stream: Any = None,  # of any: nothing of ours is under way on a stream
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """The memory itself, for mpi4py, CuPy, PyTorch and others. It lives as long as they use it.

        `BufferError` where Accord is not in front of the process's MPI and the memory is the host runtime's:
        an MPI that got it would crash.
        """
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("arrays of Accord are given away as they are: no copies")
        if runtime_name() == "host" and not is_before_mpi():
            raise BufferError(
                "no MPI can use this memory without Accord: start with `accord run -n 2 python ...`"
            )
        versions: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
        try:
            capsule = self._layout.__dlpack__(**versions)
        except TypeError:  # numpy of before DLPack had versions
            capsule = self._layout.__dlpack__()
        # numpy's capsule owns a reference to the layout, and so to the memory; only the device is another.
        tensor = _tensor_in(capsule)
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        return capsule

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory itself, for CuPy, Numba and others; on NVIDIA GPUs only."""
        if runtime_name() != "cuda":
            raise AttributeError("no memory of a CUDA device")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, False),
            "version": 3,
        }


def _fits(source: Array, target: Array) -> bool:
    """Whether the bytes can be copied within the device as they are. Only addresses are compared."""
    alike = (source.shape, source.dtype) == (target.shape, target.dtype)
    return alike and not np.may_share_memory(source._layout, target._layout)


def _tensor_in(capsule: object) -> _DeviceOfTensor:
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    return _DeviceOfTensor.from_address(pointer_of(capsule, name) + _TENSOR_OFFSETS_BYTES[name])


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Array:
    """An array whose elements may be anything.

    Parameters
    ----------
    shape
        Elements along each axis; a number stands for one axis.
    dtype
        Booleans, integers, floats up to 64 bits or complex numbers of these, as numpy names them.
        `TypeError` for others.

    Returns
    -------
    Array
        On the device that `set_device` has chosen. `MemoryError` where the device has too little left.

    Examples
    --------
    >>> import accord
    >>> accord.empty((2, 3), "float32").nbytes
    24
    """
    element = np.dtype(dtype)
    if element.kind not in "biufc" or element.itemsize > (16 if element.kind == "c" else 8):
        raise TypeError(f"elements of {element} cannot be given to others")
    if not element.isnative:
        raise TypeError(f"elements of {element} are in the byte order of another machine")
    extents = tuple(map(operator.index, shape)) if isinstance(shape, tuple) else (shape,)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"a shape of {extents}")
    size_bytes = element.itemsize
    for extent in extents:
        size_bytes *= extent
    allocation = Allocation(size_bytes)
    if allocation.address is None:  # nothing to point to
        return Array(np.empty(extents, element), allocation.device)
    return Array(np.asarray(_Memory(allocation, extents, element)), allocation.device)


def full(shape: int | tuple[int, ...], value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array with `value` everywhere; its type is that of the value, unless `dtype` is given.

    Examples
    --------
    >>> import accord
    >>> accord.full(2, 2.5).numpy()
    array([2.5, 2.5])
    """
    result = empty(shape, np.asarray(value).dtype if dtype is None else dtype)
    result[...] = value
    return result


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Array:
    """An array of zeros.

    Examples
    --------
    >>> import accord
    >>> accord.zeros(2).numpy()
    array([0., 0.])
    """
    return full(shape, 0, dtype)


def ones(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Array:
    """An array of ones.

    Examples
    --------
    >>> import accord
    >>> accord.ones(2, bool).numpy()
    array([ True,  True])
    """
    return full(shape, 1, dtype)


def array(numbers: ArrayLike | Array, dtype: DTypeLike | None = None) -> Array:
    """A copy of what numpy can make an array of, in device memory.

    Examples
    --------
    >>> import accord
    >>> accord.array([[1, 2], [3, 4]], "float64").numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    host = np.asarray(numbers, dtype)
    result = empty(host.shape, host.dtype)
    result[...] = host
    return result
