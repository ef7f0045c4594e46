# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How a job ends in which something went wrong: soon, and on all ranks, as under torchrun."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from mpi4py import MPI

_installing = threading.Lock()
_installed = False


def end_job(text: str) -> None:
    """Where MPI_Finalize would wait for ranks or calls that never come."""
    if not MPI.Is_finalized():
        print(f"{text}; ending the job", file=sys.stderr, flush=True)
        time.sleep(0.2)  # launchers may drop what they have not passed on yet
        MPI.COMM_WORLD.Abort(1)


def end_job_after_exceptions() -> None:
    """The others wait for a rank that has left with an exception, so it takes them along."""
    global _installed
    with _installing:
        if _installed or MPI.COMM_WORLD.size == 1:
            return
        _installed = True
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        sys.stdout.flush()
        end_job(f"accord: rank {MPI.COMM_WORLD.rank} ended with {kind.__name__}")

    sys.excepthook = hook
