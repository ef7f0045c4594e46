# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A barrier that says who did not come. It goes through the store, so it works where MPI is stuck."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import torch.distributed as dist

from accord.torch.errors import DistBackendError
from accord.torch.members import Members, is_set

if TYPE_CHECKING:
    from accord.torch.backend import AccordGroup

_PAUSE_S = 0.002


def store_barrier(members: Members, timeout_s: float, wait_all_ranks: bool) -> None:
    """Rank 0 waits for all, then tells all."""
    members.barriers += 1
    prefix = f"accord/barrier/{members.barriers}"
    where = members.where(f"monitored_barrier (call {members.barriers})")
    store = members.store
    if members.rank != 0:
        store.set(f"{prefix}/{members.rank}", "here")
        try:
            # Rank 0 may need its whole time to find out.
            store.wait([f"{prefix}/end"], timedelta(seconds=timeout_s + 1))
        except RuntimeError as error:
            raise DistBackendError(f"{where}: rank 0 did not come within {timeout_s:g} s") from error
        text = store.get(f"{prefix}/end").decode()
    else:
        missing = _missing(members, prefix, timeout_s, wait_all_ranks)
        text = f"rank(s) {missing} did not come within {timeout_s:g} s" if missing else ""
        store.set(f"{prefix}/end", text or " ")
    if text.strip():
        raise DistBackendError(f"{where}: {text}")


def _missing(members: Members, prefix: str, timeout_s: float, wait_all_ranks: bool) -> list[int]:
    """Who has not come when the time is over: all of them, or the first."""
    end = time.monotonic() + timeout_s
    missing = list(range(1, members.size))
    while True:
        missing = [rank for rank in missing if not is_set(members.store, f"{prefix}/{rank}")]
        if not missing or time.monotonic() > end:
            return missing if wait_all_ranks else missing[:1]
        time.sleep(_PAUSE_S)


def monitored_barrier(
    group: AccordGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """`torch.distributed.monitored_barrier`, which in most versions of PyTorch takes groups of gloo only."""
    chosen = group if group is not None else dist.group.WORLD
    chosen.monitored_barrier(timeout, wait_all_ranks)
