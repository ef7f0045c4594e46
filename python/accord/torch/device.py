# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Tensors on a GPU: how an operation is ordered with the streams of PyTorch.

MPI knows no streams. So an operation records an event on the stream that is current where c10d was called,
unless the stream is idle, and MPI is called once the event has passed. What MPI has written is there for
all streams as soon as MPI's request is complete; `Work.wait()` therefore waits on the host, unlike that of
the nccl backend. A stream that waited for a flag instead could wait for itself: with drivers before CUDA
12.1 an MPI call waits for the default stream (docs/data-order.md).

What is left to do by kernels afterwards (unpacking, dividing) runs on a stream of this module, and `join`
lets the current stream wait for it. The engine's thread has that stream as its current one.

Streams and events of PyTorch are kept here: to make them anew costs several microseconds a call.
"""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch

_handle_of_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_streams: dict[tuple[int, int], torch.cuda.Stream] = {}  # by device and handle
_making = threading.Lock()
_unused_events: defaultdict[int, list[torch.cuda.Event]] = defaultdict(list)  # by device


@cache
def _make_side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device=device)  # type: ignore[no-untyped-call]


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    with _making:  # one for all threads
        return _make_side_stream(device)


def _current_stream(index: int) -> torch.cuda.Stream:
    if _handle_of_current_stream is None:
        return torch.cuda.current_stream(index)
    key = (index, _handle_of_current_stream(index))
    stream = _streams.get(key)
    if stream is None:
        stream = _streams[key] = torch.cuda.current_stream(index)
    return stream


def _record(index: int) -> torch.cuda.Event:
    """An event on the current stream."""
    try:
        event = _unused_events[index].pop()
    except IndexError:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(_current_stream(index))  # type: ignore[no-untyped-call]
    return event


@cache
def mpi_takes_device_memory() -> bool:
    """Whether Accord is in this process, before MPI; an MPI alone would crash."""
    return hasattr(ctypes.CDLL(None), "accord_malloc")


def is_idle(index: int) -> bool:
    """Whether all that the current stream has got is done. `RuntimeError` if it is being captured."""
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("MPI calls cannot be captured in a CUDA graph")
    return bool(_current_stream(index).query())  # type: ignore[no-untyped-call]


class DeviceSide:
    """Of one operation, made on the thread that calls c10d, when all that it launches is launched."""

    __slots__ = ("_finished", "_written", "device")

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._finished: torch.cuda.Event | None = None
        self._written = None if is_idle(device.index) else _record(device.index)

    def is_ready(self) -> bool:
        """Asked by one thread at a time."""
        event = self._written
        if event is None:
            return True
        if not event.query():  # type: ignore[no-untyped-call]
            return False
        self._written = None
        _unused_events[self.device.index].append(event)
        return True

    def on_side_stream(self, launch: Callable[[], None]) -> None:
        """Runs it where its kernels go to the side stream."""
        index, stream = self.device.index, _side_stream(self.device)
        if _current_stream(index).cuda_stream == stream.cuda_stream:
            launch()
        else:
            with torch.cuda.device(index), torch.cuda.stream(stream):
                launch()

    def finish(self, launch: Callable[[], None]) -> None:
        """Likewise, and `join` waits for it."""
        self.on_side_stream(launch)
        self._finished = _side_stream(self.device).record_event()

    def make_future(self) -> torch.futures.Future[Any]:
        """Its value is ordered after what runs where it is set; who waits for it lets its own stream wait."""
        return torch.futures.Future(devices=[self.device])

    def join(self) -> None:
        """Lets the current stream wait for what `finish` launched."""
        if self._finished is not None:
            _current_stream(self.device.index).wait_event(self._finished)


def work_on(device: torch.device) -> None:
    """Of a thread of ours: each begins on device 0, where its first CUDA call would make a context."""
    torch.cuda.set_device(device)
    torch.cuda.set_stream(_side_stream(device))


def used_on_side_stream(device: torch.device, tensors: Iterable[torch.Tensor]) -> None:
    """Tells the allocator, which would else give their memory away once nobody refers to them."""
    stream = _side_stream(device)
    for tensor in tensors:
        tensor.record_stream(stream)
