# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A rank that does not come: each wait ends in time, with an error that names the call. So does the job.

late.py call|wait|future|exception
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from mpi4py import MPI

import accord.torch  # noqa: F401

LIMIT_S = 1.5
way = sys.argv[1]
rank = MPI.COMM_WORLD.rank
begin = time.monotonic()


def must_have_ended(error: BaseException, *words: str) -> None:
    text, took = str(error), time.monotonic() - begin
    assert all(word in text for word in words), text
    assert LIMIT_S - 0.1 < took < LIMIT_S + 5, took
    print(f"ended: {text}", flush=True)


if way == "exception":
    dist.init_process_group("accord")
    if rank == 1:
        raise ValueError("rank 1 has had enough")
    dist.all_reduce(torch.ones(1))

dist.init_process_group("accord", timeout=timedelta(seconds=60))
dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=LIMIT_S))
if way == "wait":
    if rank == 0:
        begin = time.monotonic()
        try:
            dist.new_group([0, 1], timeout=timedelta(seconds=LIMIT_S))
            raise SystemExit("no error")
        except RuntimeError as error:
            must_have_ended(error, "init of group", "rank(s) [1]", f"{LIMIT_S} s")
    MPI.COMM_WORLD.Barrier()

if rank == 0:
    begin = time.monotonic()
    words = ("allreduce (call 1)", "rank 0 of 2", "group", "Timed out")
    try:
        work = dist.all_reduce(torch.ones(1000), async_op=way != "call")
        if way == "future":
            work.get_future().wait()
        elif way == "wait":
            work.wait()
        raise SystemExit("no error")
    except RuntimeError as error:
        must_have_ended(error, *words)
    try:
        dist.broadcast(torch.ones(1), 0)
        raise SystemExit("no error")
    except RuntimeError as error:
        must_have_ended(error, "broadcast", "cannot be used any more", "Timed out")
else:
    time.sleep(LIMIT_S + 6)
