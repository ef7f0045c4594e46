# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The order of calls with what a stream has yet to write, on a device that is played by the CPU.

Its tensors are written by a timer some time after c10d was called, as by kernels that have yet to run.

accord run -n 2 python tests/torch/queued.py [never]     never: a tensor that is not written in time
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from harness import begin, case, must_equal, must_raise, rank, run_all, size

import accord.torch
import accord.torch.backend
import accord.torch.engine

LATE_S = 0.05


class PlayedSide:
    """In the place of accord.torch.device.DeviceSide."""

    device = torch.device("cpu", 0)

    def __init__(self, write: Callable[[], None], late_s: float) -> None:
        self._is_written = False
        self._write = write
        if late_s < float("inf"):
            timer = threading.Timer(late_s, self.become_written)
            timer.daemon = True
            timer.start()
        self.finished_on: str | None = None

    def become_written(self) -> None:
        self._write()
        self._is_written = True

    def is_ready(self) -> bool:
        return self._is_written

    def on_side_stream(self, launch: Callable[[], None]) -> None:
        launch()

    def finish(self, launch: Callable[[], None]) -> None:
        self.finished_on = threading.current_thread().name
        launch()

    def make_future(self) -> torch.futures.Future[object]:
        return torch.futures.Future()

    def join(self) -> None:
        assert self._is_written


class BrokenSide(PlayedSide):
    def is_ready(self) -> bool:
        raise RuntimeError("an illegal memory access was encountered")


_next: list[PlayedSide] = []
accord.torch.backend.checks.side_of = lambda _: _next.pop(0) if _next else None
accord.torch.backend.used_on_side_stream = lambda *_: None
accord.torch.engine.work_on = lambda _: None


def reduce_late(
    tensor: torch.Tensor,
    value: float,
    op: object = dist.ReduceOp.SUM,
    group: dist.ProcessGroup | None = None,
    late_s: float = LATE_S,
) -> dist.Work:
    _next.append(PlayedSide(lambda: tensor.fill_(value), late_s))
    return dist.all_reduce(tensor, op, group=group, async_op=True)


@case
def mpi_is_called_once_the_tensor_is_written() -> None:
    total = float(sum(range(1, size() + 1)))
    for _ in range(3):
        tensors = [torch.zeros(1000) for _ in range(4)]
        works = [
            reduce_late(each, rank() + 1, late_s=LATE_S / (at + 1))  # the last is written first
            for at, each in enumerate(tensors)
        ]
        for tensor, work in zip(tensors, works, strict=True):
            assert work.wait()
            must_equal(tensor, torch.full((1000,), total))


@case
def what_comes_behind_waits_for_its_turn() -> None:
    """A call on a tensor that is written already comes after the group's earlier ones, as on all ranks."""
    tensor, other = torch.zeros(10), torch.full((20,), 2.0)
    late = LATE_S if rank() == 0 else 0.001
    work = reduce_late(tensor, 1.0, late_s=late)
    dist.all_reduce(other)
    assert work.is_completed()
    work.wait()
    must_equal(tensor, torch.full((10,), float(size())))
    must_equal(other, torch.full((20,), 2.0 * size()))


@case
def groups_do_not_wait_for_each_other() -> None:
    other = dist.new_group([*range(size())])
    slow, quick = torch.zeros(10), torch.ones(10)
    _next.append(side := PlayedSide(lambda: slow.fill_(1.0), float("inf")))
    work = dist.all_reduce(slow, async_op=True)
    dist.all_reduce(quick, group=other)  # else this one ends by its time-out
    must_equal(quick, torch.full((10,), float(size())))
    assert not work.is_completed()
    side.become_written()
    work.wait()
    must_equal(slow, torch.full((10,), float(size())))


@case
def futures_are_completed_though_nobody_waits() -> None:
    tensor = torch.zeros(100)
    done = threading.Event()
    future = reduce_late(tensor, rank() + 1.0, dist.ReduceOp.AVG).get_future()
    halved = future.then(lambda ended: (ended.value()[0] * 0.5, done.set())[0])
    assert done.wait(20)
    must_equal(halved.wait(), torch.full((100,), (size() + 1) / 4))


@case
def what_finishes_a_result_runs_in_the_devices_order() -> None:
    tensor = torch.zeros(100)
    _next.append(side := PlayedSide(lambda: tensor.fill_(4.0), LATE_S))
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    assert side.finished_on is not None
    must_equal(tensor, torch.full((100,), 4.0))


@case
def an_error_of_the_device_is_that_of_its_operation() -> None:
    """On all ranks here; a group whose other ranks have called MPI would be left waiting."""
    for ask in ("wait", "future"):
        _next.append(BrokenSide(lambda: None, 0.0))
        with must_raise(RuntimeError, "allreduce", "illegal memory access", f"rank {rank()} of"):
            work = dist.all_reduce(torch.ones(5), async_op=True)
            work.wait() if ask == "wait" else work.get_future().wait()
    tensor = torch.ones(5)
    dist.all_reduce(tensor)
    must_equal(tensor, torch.full((5,), float(size())))


def never() -> None:
    """Ends with the group's time-out; then the job ends."""
    group = dist.distributed_c10d._get_default_group()
    group.set_timeout(timedelta(seconds=1))
    work = reduce_late(torch.zeros(3), 1.0, late_s=float("inf"))
    behind = dist.all_reduce(torch.ones(3), async_op=True)
    with must_raise(RuntimeError, "allreduce (call 1)", "Timed out after 1 s: it could not start"):
        work.wait()
    with must_raise(RuntimeError, "allreduce (call 2)", "not started, since its group failed"):
        behind.wait()


begin()
if sys.argv[1:] == ["never"]:
    never()
else:
    run_all()
    dist.destroy_process_group()
