# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""mpi4py's own tests with arrays of Accord in the place of numpy's: every rank runs

    mpi4py_arrays.py FOLDER MODULE...

FOLDER is mpi4py's folder `test`, whose module arrayimpl lists kinds of arrays. Ends with 1 where a test
failed; rank 0 says how many ran.
"""

from __future__ import annotations

import faulthandler
import sys
import unittest
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI

import accord

LIMIT_S = 120.0  # of one test


class Flat:
    """The elements of an array in a row, as numpy's `flat`: written through."""

    def __init__(self, array: accord.Array) -> None:
        self._row = array.reshape(-1)

    def __len__(self) -> int:
        return len(self._row)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._row.numpy())

    def __getitem__(self, index: Any) -> Any:
        return self._row.numpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index] = value


def kind_of_arrays(arrayimpl: Any) -> type:
    """A class of arrays as mpi4py's tests make them. There is no long double in DLPack."""

    class DeviceArray(arrayimpl.BaseArray):  # type: ignore[misc]
        backend = "accord"
        TypeMap: ClassVar[dict[str, Any]] = {
            code: datatype
            for code, datatype in arrayimpl.ArrayNumPy.TypeMap.items()
            if code not in "gG"
        }

        def __init__(self, content: Any, typecode: str, shape: Any = None) -> None:
            if shape is None:
                shape = () if isinstance(content, int | float | complex) else len(content)
            host = np.empty(shape, typecode)
            host[...] = np.asarray(content).astype(typecode)
            self.array = accord.array(host)

        def __getitem__(self, index: Any) -> Any:
            return self.array.numpy()[index]

        @property
        def address(self) -> int:
            return self.array.address

        @property
        def typecode(self) -> str:
            return self.array.dtype.char

        @property
        def itemsize(self) -> int:
            return self.array.dtype.itemsize

        @property
        def flat(self) -> Flat:
            return Flat(self.array)

        @property
        def size(self) -> int:
            return self.array.size

    return DeviceArray


class Result(unittest.TextTestResult):
    """A test that hangs ends the job, with a trace of each rank."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()


def main() -> None:
    folder, *modules = sys.argv[1:]
    sys.path.insert(0, folder)
    # Arrays of GPUs are not looked for.
    sys.modules.update(dict.fromkeys(("cupy", "numba")))
    import arrayimpl

    arrayimpl.ArrayBackends[:] = [kind_of_arrays(arrayimpl)]
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    result = unittest.TextTestRunner(sys.stderr, resultclass=Result, verbosity=0).run(suite)
    if MPI.COMM_WORLD.rank == 0:
        print(f"mpi4py's tests: {result.testsRun} ran, {len(result.skipped)} skipped")
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
