# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A barrier that says who did not come. It goes through the store, so it works where MPI is stuck."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from accord.torch.errors import DistBackendError
from accord.torch.meeting import missing_after, tell
from accord.torch.members import Members

if TYPE_CHECKING:
    from accord.torch.backend import AccordGroup


def store_barrier(members: Members, timeout_s: float, wait_all_ranks: bool) -> None:
    """Rank 0 waits for all, then tells all."""
    members.barriers += 1
    prefix = f"accord/barrier/{members.barriers}"
    where = members.where(f"monitored_barrier (call {members.barriers})")
    store = members.store
    if members.rank != 0:
        tell(store, f"{prefix}/{members.rank}", "here")
        # Rank 0 may need its whole time to find out.
        if missing_after(store, [f"{prefix}/end"], timeout_s + 1):
            raise DistBackendError(f"{where}: rank 0 did not come within {timeout_s:g} s")
        text = store.get(f"{prefix}/end").decode()
    else:
        keys = [f"{prefix}/{rank}" for rank in range(1, members.size)]
        missing = [at + 1 for at in missing_after(store, keys, timeout_s)]
        missing = missing if wait_all_ranks else missing[:1]
        text = f"rank(s) {missing} did not come within {timeout_s:g} s" if missing else ""
        tell(store, f"{prefix}/end", text or " ")
    if text.strip():
        raise DistBackendError(f"{where}: {text}")


def monitored_barrier(
    group: AccordGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """`torch.distributed.monitored_barrier`, which in most versions of PyTorch takes groups of gloo only."""
    chosen: Any = group if group is not None else dist.group.WORLD
    chosen.monitored_barrier(timeout, wait_all_ranks)
