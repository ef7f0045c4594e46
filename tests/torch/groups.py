# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Groups, the Work of a call, barriers, and what is refused."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from harness import SkippedError, case, device, must_equal, must_raise, rank, size, values

import accord.torch


@case
def new_groups_of_any_ranks_in_any_order() -> None:
    last = size() - 1
    pair = dist.new_group([0, last])
    alone = [dist.new_group([each]) for each in range(size())]
    turned = dist.new_group([*reversed(range(size()))])
    for _ in range(2):
        if rank() in (0, last):
            tensor = torch.tensor([float(rank())])
            dist.all_reduce(tensor, group=pair)
            assert tensor.item() == last
        tensor = torch.tensor([5.0])
        dist.all_reduce(tensor, group=alone[rank()])
        assert tensor.item() == 5
        parts = [torch.zeros(1) for _ in range(size())]
        dist.all_gather(parts, torch.tensor([float(rank())]), group=turned)
        # Whichever order this PyTorch gives the ranks of a group.
        order = (
            dist.get_process_group_ranks(turned)
            if hasattr(dist, "get_process_group_ranks")
            else None
        )
        assert order is None or [part.item() for part in parts] == order
        tensor = torch.tensor([float(rank())])
        dist.broadcast(tensor, last, group=turned)
        assert tensor.item() == last
    if rank() in (0, last):
        dist.destroy_process_group(pair)
    dist.destroy_process_group(turned)


@case
def two_groups_in_different_orders_do_not_wait_for_each_other() -> None:
    groups = [dist.new_group([*range(size())]) for _ in range(2)]
    if rank() % 2:
        groups.reverse()
    tensors = [torch.full((50_000,), float(rank())) for _ in groups]
    works = [
        dist.all_reduce(tensor, group=group, async_op=True)
        for group, tensor in zip(groups, tensors, strict=True)
    ]
    for work in works:
        work.wait()
    for tensor in tensors:
        must_equal(tensor, torch.full((50_000,), float(sum(range(size())))))


@case
def threads_with_a_group_each() -> None:
    groups = [dist.new_group([*range(size())]) for _ in range(3)]
    results = [torch.full((1000,), float(rank())) for _ in groups]

    def work(each: int) -> None:
        for _ in range(10):
            dist.all_reduce(results[each], dist.ReduceOp.MAX, group=groups[each])

    threads = [threading.Thread(target=work, args=(each,)) for each in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for tensor in results:
        must_equal(tensor, torch.full((1000,), float(size() - 1)))


@case
def a_device_mesh() -> None:
    try:
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError:
        raise SkippedError("this PyTorch has no device mesh") from None
    mesh = init_device_mesh(device().type, (1, size()), mesh_dim_names=("outer", "inner"))
    tensor = torch.tensor([rank() + 1.0])
    dist.all_reduce(tensor, group=mesh["inner"].get_group())
    assert tensor.item() == sum(range(1, size() + 1))
    dist.all_reduce(tensor, group=mesh["outer"].get_group())
    assert tensor.item() == sum(range(1, size() + 1))


@case
def a_work_has_a_future_and_says_when_it_is_done() -> None:
    tensor = values(rank(), 1000, torch.float32)
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    must_equal(doubled.wait(), tensor * 2)
    assert work.is_completed() and work.is_success() and work.exception() is None
    must_equal(work.result()[0], tensor)
    # The engine completes futures though nobody waits.
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future()
    end = time.monotonic() + 20
    while not future.done():
        assert time.monotonic() < end
        time.sleep(0.001)
    # A future that is asked for late.
    assert work.get_future().done() and work.wait()


@case
def blocking_calls_go_on_beside_a_pending_one() -> None:
    """Alone they are made by their caller at once, else like all others."""
    left, right = (rank() - 1) % size(), (rank() + 1) % size()
    came = torch.zeros(3)
    for pending in (False, True):
        receiving = dist.irecv(came, left, tag=3) if pending else None
        half = torch.full((10,), float(rank()), dtype=torch.bfloat16)
        dist.all_reduce(half, dist.ReduceOp.MAX)
        must_equal(half, torch.full((10,), size() - 1.0, dtype=torch.bfloat16))
        parts = [torch.zeros(2) for _ in range(size())]
        dist.all_gather(parts, torch.full((2,), float(rank())))
        must_equal(torch.stack(parts)[:, 0], torch.arange(float(size())))
        if receiving is not None:
            dist.send(torch.full((3,), float(rank())), right, tag=3)
            receiving.wait()
            must_equal(came, torch.full((3,), float(left)))


@case
def a_blocking_call_by_hand_returns_a_work() -> None:
    options = dist.AllreduceOptions()
    if not hasattr(options, "asyncOp"):
        raise SkippedError("this PyTorch does not say whether the caller waits")
    options.asyncOp = False
    tensor = torch.ones(4)
    work = dist.distributed_c10d._get_default_group().allreduce([tensor], options)
    assert work.wait()
    must_equal(tensor, torch.full((4,), float(size())))
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.get_future().done()


@case
def a_wait_may_be_shorter_than_the_call() -> None:
    if rank() == 0:
        work = dist.irecv(torch.empty(3), 1, tag=9)
        with must_raise(RuntimeError, "recv from 1", "rank 0 of", "0.05 s"):
            work.wait(timedelta(seconds=0.05))
        assert not work.is_completed()
        dist.barrier()
        work.wait()
    else:
        dist.barrier()
        if rank() == 1:
            dist.send(torch.ones(3), 0, tag=9)


@case
def barriers_wait_for_all() -> None:
    for late in range(size()):
        if rank() == late:
            time.sleep(0.1)
        came = torch.tensor([time.monotonic()], dtype=torch.float64)
        dist.barrier()
        left = time.monotonic()
        dist.broadcast(came, late)
        assert left >= came.item()
        accord.torch.monitored_barrier()


@case
def a_monitored_barrier_names_who_is_missing() -> None:
    missing = size() - 1
    dist.barrier()
    if rank() != missing:
        with must_raise(RuntimeError, "monitored_barrier", f"[{missing}]"):
            accord.torch.monitored_barrier(timeout=timedelta(seconds=1.5), wait_all_ranks=True)
        dist.barrier()
    else:
        dist.barrier()
        # It comes late and learns that it was missed.
        with must_raise(RuntimeError, "monitored_barrier", f"[{missing}]"):
            accord.torch.monitored_barrier(timeout=timedelta(seconds=5))


@case
def what_cannot_be_done_is_refused_by_name() -> None:
    here = ("accord:", f"rank {rank()} of {size()}", "group")
    with must_raise(ValueError, "allreduce", "contiguous", *here):
        dist.all_reduce(torch.ones(4, 4).t()[1:])
    with must_raise(ValueError, "broadcast", "contiguous", *here):
        dist.broadcast(torch.ones(4, 4)[:, 0], 0)
    with must_raise(ValueError, "send to 0", "contiguous", *here):
        dist.distributed_c10d._get_default_group().send([torch.ones(6)[::2]], 0, 0)
    with must_raise(ValueError, "all_gather", "contiguous", *here):
        dist.all_gather([torch.ones(2, 2).t() for _ in range(size())], torch.ones(2, 2))
    with must_raise(ValueError, "allreduce", "BAND of torch.float32", *here):
        dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND)
    with must_raise(ValueError, "allreduce", "MAX of torch.complex64", *here):
        dist.distributed_c10d._get_default_group().allreduce(
            [torch.ones(3, dtype=torch.complex64)], _options_with(dist.ReduceOp.MAX)
        )
    with must_raise(ValueError, "all_gather_into_tensor", "elements", *here):
        dist.all_gather_into_tensor(torch.ones(size() * 3 + 1), torch.ones(3))
    with must_raise(ValueError, "allreduce", "layout", *here):
        dist.distributed_c10d._get_default_group().allreduce([torch.eye(3).to_sparse()])
    with must_raise(RuntimeError, "send to 99", "rank", *here):
        dist.distributed_c10d._get_default_group().send([torch.ones(3)], 99, 0)
    # After all these the group is as good as before.
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size()


def _options_with(op: object) -> object:
    from torch._C._distributed_c10d import AllreduceOptions

    options = AllreduceOptions()
    options.reduceOp = op
    return options


@case
def the_group_is_named() -> None:
    assert dist.get_backend() == "accord"
    assert dist.is_backend_available("accord") if hasattr(dist, "is_backend_available") else True
    group = dist.distributed_c10d._get_default_group()
    assert (group.rank(), group.size(), group.name()) == (rank(), size(), "accord")
