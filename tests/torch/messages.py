# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Messages: tags, any source, batches, lengths that do not fit, objects."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from harness import Guarded, SkippedError, case, must_equal, must_raise, rank, size, values
from movements import DTYPES


def neighbours() -> tuple[int, int]:
    return (rank() - 1) % size(), (rank() + 1) % size()


@case
def a_ring_of_every_dtype_and_length() -> None:
    left, right = neighbours()
    for dtype in DTYPES:
        for count in (0, 1, 1000, 100_000):
            box = Guarded(count, dtype)
            sending = dist.isend(values(rank(), count, dtype), right)
            dist.recv(box.tensor, left)
            sending.wait()
            box.must_be(values(left, count, dtype))


@case
def tags_keep_messages_apart() -> None:
    left, right = neighbours()
    sent = [dist.isend(values(rank(), 8, torch.int32, tag), right, tag=tag) for tag in range(5)]
    for tag in (3, 0, 4, 1, 2):
        tensor = torch.full((8,), 77, dtype=torch.int32)
        dist.recv(tensor, left, tag=tag)
        must_equal(tensor, values(left, 8, torch.int32, tag))
    for work in sent:
        work.wait()


@case
def any_source_says_who_it_was() -> None:
    if rank() == 0:
        seen = set()
        for _ in range(size() - 1):
            tensor = torch.full((6,), 77.0)
            source = dist.recv(tensor)
            must_equal(tensor, values(source, 6, torch.float32))
            seen.add(source)
        assert seen == {*range(1, size())}
    else:
        dist.send(values(rank(), 6, torch.float32), 0)
    dist.barrier()  # what others send next would come from any source, too


@case
def a_batch_in_which_all_receive_first() -> None:
    left, right = neighbours()
    boxes = [Guarded(20_000, torch.float32) for _ in range(2)]
    batch = [
        dist.P2POp(dist.irecv, boxes[0].tensor, left),
        dist.P2POp(dist.irecv, boxes[1].tensor, right),
        dist.P2POp(dist.isend, values(rank(), 20_000, torch.float32, 1), left),
        dist.P2POp(dist.isend, values(rank(), 20_000, torch.float32, 2), right),
    ]
    # Of two ranks both messages come from the same one, in the order in which it sent them.
    salts = (1, 2) if size() == 2 else (2, 1)
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    boxes[0].must_be(values(left, 20_000, torch.float32, salts[0]))
    boxes[1].must_be(values(right, 20_000, torch.float32, salts[1]))


@case
def a_long_message_travels_while_its_sender_computes() -> None:
    """The engine's thread lets MPI make progress where nobody waits."""
    folder = [tempfile.mkdtemp(prefix="accord-") if rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    received = Path(str(folder[0])) / "received"
    dist.barrier()
    # A program that takes futures wakes the thread by that, or it looks by itself.
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
    if rank() == 0:
        sending = dist.isend(torch.ones(4_000_000), 1)
        end = time.monotonic() + 20
        while not received.exists():
            assert time.monotonic() < end, "nothing comes before the sender waits for it"
            time.sleep(0.01)
        sending.wait()
        shutil.rmtree(received.parent)
    elif rank() == 1:
        dist.recv(torch.empty(4_000_000), 0)
        received.touch()


@case
def a_shorter_or_longer_message_is_an_error() -> None:
    for sent, expected in ((3, 5), (5, 3)):
        if rank() == 0:
            dist.send(torch.ones(sent), 1, tag=sent)
        elif rank() == 1:
            with must_raise(RuntimeError, "recv from 0", "rank 1 of"):
                dist.recv(torch.ones(expected), 0, tag=sent)


@case
def lists_of_objects() -> None:
    if not hasattr(dist, "send_object_list"):
        raise SkippedError("this PyTorch sends no objects")
    if rank() == 0:
        dist.send_object_list([{"a": [1, 2]}, "text"], 1)
    elif rank() == 1:
        got: list[object] = [None, None]
        assert dist.recv_object_list(got, 0) == 0
        assert got == [{"a": [1, 2]}, "text"]
