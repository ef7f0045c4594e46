# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""One call of c10d on its way through MPI: not started, started, done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from mpi4py import MPI

from accord.torch.device import DeviceSide
from accord.torch.errors import DistBackendError, mpi_text
from accord.torch.members import Members

if TYPE_CHECKING:
    from accord.torch.collectives import Plan


class Operation:
    """Its plan's `start` makes MPI's non-blocking calls; `finish`, if any, does the rest after these.

    The fields are the engine's, under its lock, until `done`.
    """

    __slots__ = (
        "callbacks",
        "deadline",
        "device",
        "done",
        "error",
        "limit_s",
        "members",
        "name",
        "number",
        "plan",
        "requests",
        "result",
        "source",
        "status",
    )

    def __init__(
        self,
        name: str,
        members: Members,
        plan: Plan,
        device: DeviceSide | None = None,
        status: MPI.Status | None = None,
    ) -> None:
        self.name = name
        self.members = members
        self.plan: Plan | None = plan  # keeps the tensors that MPI reads or writes
        self.result = plan.result
        self.device = device
        self.status = status  # of a receive
        members.calls += 1
        self.number = members.calls
        self.limit_s = 0.0
        self.deadline = 0.0
        self.requests: list[MPI.Request] = []
        self.done = False
        self.error: Exception | None = None
        self.source = -1
        self.callbacks: list[Callable[[], None]] = []

    def let_it_take(self, timeout_s: float) -> None:
        """From now on; 0 or less: as long as the group says."""
        self.limit_s = timeout_s if timeout_s > 0 else self.members.timeout_s
        self.deadline = time.monotonic() + self.limit_s

    def describe(self) -> str:
        return self.members.where(f"{self.name} (call {self.number})")

    def fail(self, text: str, cause: BaseException | None = None) -> None:
        self.error = DistBackendError(f"{self.describe()}: {text}")
        self.error.__cause__ = cause

    def is_ready(self) -> bool:
        """Whether what wrote the tensors on a device has finished, or failed."""
        try:
            return self.device is None or self.device.is_ready()
        except RuntimeError as error:  # of a kernel; no later call of CUDA works in this process
            self.fail(f"the device reports: {error}", error)
            return True

    def begin(self) -> None:
        if self.error is not None:
            return
        try:
            self.requests = self.plan.start()  # type: ignore[union-attr]
        except MPI.Exception as error:
            self.fail(mpi_text(error), error)
        except Exception as error:  # of mpi4py; it may come up in the engine's thread
            self.fail(str(error), error)

    def is_complete(self) -> bool:
        """Lets MPI make progress; also true after an error."""
        if self.error is not None:
            return True
        try:
            requests = self.requests
            if len(requests) != 1:
                return bool(MPI.Request.Testall(requests))
            complete = requests[0].Test(self.status)
            if complete and self.status is not None:
                self._look_at_message(self.status)
            return bool(complete)
        except MPI.Exception as error:
            self.fail(mpi_text(error), error)
            return True

    def _look_at_message(self, status: MPI.Status) -> None:
        """MPI takes a shorter message without a word, and leaves the rest of the tensor as it was."""
        self.source = status.Get_source()
        tensor: torch.Tensor = self.result[0]
        expected = tensor.numel() * tensor.element_size()
        if (came := status.Get_elements(MPI.BYTE)) != expected:
            self.fail(f"got {came} bytes from rank {self.source} for a tensor of {expected}")

    def complete_here(self) -> None:
        """Of its caller, who has waited: kernels that finish the result go to the caller's stream."""
        self.done = True
        self._finish(None)

    def complete(self) -> None:
        """Outside of the engine's lock, by one thread alone: it may run functions of the user."""
        self._finish(self.device)

    def _finish(self, device: DeviceSide | None) -> None:
        if self.error is not None:
            return
        finish = self.plan.finish  # type: ignore[union-attr]
        if finish is not None:
            try:
                if device is None:
                    finish()
                else:
                    device.finish(finish)
            except Exception as error:
                self.fail(f"its result could not be stored: {error}", error)
                return
        self.plan = None
