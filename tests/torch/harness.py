# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the cases of c10d's contract share: their list, their values, and how results are compared.

Every rank can say what every other rank sends, so expected values need no communication. With
ACCORD_TEST_DEVICE=cuda all tensors are on a GPU.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from mpi4py import MPI

POISON = 77
DEVICE = os.environ.get("ACCORD_TEST_DEVICE", "cpu")
CASES: list[Callable[[], None]] = []


class SkippedError(Exception):
    """With the reason."""


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES.append(function)
    return function


def begin() -> None:
    """What each program of cases does first."""
    warnings.simplefilter("ignore")  # PyTorch's, of calls that it is about to rename
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.set_default_device(torch.device("cuda", torch.cuda.current_device()))
    dist.init_process_group("accord", timeout=timedelta(seconds=60))


def device() -> torch.device:
    return torch.empty(0).device


def rank() -> int:
    return dist.get_rank()


def size() -> int:
    return dist.get_world_size()


def values(of_rank: int, count: int, dtype: torch.dtype, salt: int = 0) -> torch.Tensor:
    """From 1 to 5: products of three of them are exact in every dtype. Of bools both."""
    numbers = (torch.arange(count) * (of_rank + 3) + of_rank + salt) % 5 + 1
    return (numbers % 2 == 0) if dtype is torch.bool else numbers.to(dtype)


def all_values(count: int, dtype: torch.dtype, salt: int = 0) -> list[torch.Tensor]:
    return [values(each, count, dtype, salt) for each in range(size())]


class Guarded:
    """A poisoned tensor inside of a longer one, whose ends must stay as they are."""

    MARGIN = 4

    def __init__(self, count: int, dtype: torch.dtype) -> None:
        self.dtype = dtype
        whole = torch.full((count + 2 * self.MARGIN,), POISON % 2, dtype=torch.uint8)
        self._whole = whole.to(dtype)
        self._whole.fill_(1 if dtype is torch.bool else POISON)
        self._before = self._whole.clone()
        self.tensor = self._whole[self.MARGIN : self.MARGIN + count]

    def must_be(self, expected: torch.Tensor) -> None:
        must_equal(self.tensor, expected)
        for ends in (slice(None, self.MARGIN), slice(-self.MARGIN, None)):
            must_equal(self._whole[ends], self._before[ends])


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(-1).view(torch.uint8)


def must_equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Bit for bit, and of one dtype and shape."""
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if got.numel() and not torch.equal(bytes_of(got), bytes_of(expected)):
        raise AssertionError(f"got {got.flatten()[:12]}, expected {expected.flatten()[:12]}")


@contextmanager
def must_raise(kind: type[Exception], *words: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        text = str(error)
        missing = [word for word in words if word not in text]
        assert not missing, f"{missing} not in: {text}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def run_all() -> None:
    """Whoever fails ends the job, since the others would wait for it."""
    done = skipped = 0
    for function in CASES:
        try:
            function()
            done += 1
        except SkippedError as reason:
            skipped += 1
            if rank() == 0:
                print(f"skipped {function.__module__}.{function.__name__}: {reason}")
        except BaseException:
            print(
                f"rank {rank()} failed in {function.__module__}.{function.__name__}",
                file=sys.stderr,
            )
            traceback.print_exc()
            sys.stderr.flush()
            MPI.COMM_WORLD.Abort(1)
    if rank() == 0:
        print(f"{done} cases of {len(CASES)} on {size()} ranks, {skipped} skipped", flush=True)
