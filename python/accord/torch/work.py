# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The Work that a call of c10d returns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from accord.torch.engine import Engine
from accord.torch.errors import DistBackendError
from accord.torch.operation import Operation


class AccordWork(dist.Work):  # type: ignore[misc]  # where there is no PyTorch
    """One operation's. `wait()` returns once MPI is done; the current stream waits for what is left."""

    __slots__ = ("_engine", "_future", "_operation")

    def __init__(self, engine: Engine, operation: Operation) -> None:
        super().__init__()
        self._engine = engine
        self._operation = operation
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        operation = self._operation
        if self._future is None:
            operation.members.takes_futures = False
        if not operation.done:
            timeout_s = timeout.total_seconds() if timeout is not None else 0
            if not self._engine.wait(operation, timeout_s):
                raise DistBackendError(
                    f"{operation.describe()}: not complete after the {timeout_s:g} s that wait() was given"
                )
        if operation.error is not None:
            raise operation.error
        if operation.device is not None:
            operation.device.join()
        return True

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self._operation.done:
            self._engine.poll()
        return self._operation.done

    def is_success(self) -> bool:
        return self.is_completed() and self._operation.error is None

    def exception(self) -> Exception | None:
        return self._operation.error

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._operation.result

    def source_rank(self) -> int:
        return self._operation.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        """Completed by whoever completes the operation; on a device its value is ordered after `finish`."""
        if self._future is None:
            operation = self._operation
            operation.members.takes_futures = True
            device = operation.device
            future = device.make_future() if device is not None else torch.futures.Future()
            self._future = future

            def tell() -> None:
                try:
                    if operation.error is not None:
                        future.set_exception(operation.error)
                    elif device is not None:
                        device.on_side_stream(lambda: future.set_result(operation.result))
                    else:
                        future.set_result(operation.result)
                except RuntimeError as error:  # of the device; the engine's thread must live on
                    if not future.done():
                        future.set_exception(error)

            self._engine.on_done(operation, tell)
        return self._future


class DoneWork(dist.Work):  # type: ignore[misc]
    """Of all calls of a group that were done when they returned. c10d waits for it and drops it."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def block_current_stream(self) -> None:
        pass

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> list[torch.Tensor]:
        return []

    def get_future(self) -> torch.futures.Future[Any]:
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result([])
        return future


class ManyWorks(dist.Work):  # type: ignore[misc]
    """What was called between the two ends of a coalescing manager."""

    def __init__(self, works: Sequence[AccordWork | DoneWork]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta | None = None) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> Exception | None:
        return next((error for work in self._works if (error := work.exception())), None)

    def result(self) -> list[torch.Tensor]:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> torch.futures.Future[Any]:
        futures = [work.get_future() for work in self._works]
        return torch.futures.collect_all(futures).then(
            lambda all_of_them: [tensor for each in all_of_them.value() for tensor in each.value()]
        )
