# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What processes tell each other through c10d's store, before and beside MPI; with a time-out.

A wait of PyTorch before 2.0 that times out leaves an answer behind, which the next call takes for its own.
There a counter beside each key is polled instead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

_PAUSE_S = 0.005


def _has_safe_waits(store: Any) -> bool:
    return hasattr(store, "check")  # came with the mended wait


def tell(store: Any, key: str, value: str) -> None:
    store.set(key, value)
    if not _has_safe_waits(store):
        store.add(f"{key}?", 1)


def is_told(store: Any, key: str) -> bool:
    if _has_safe_waits(store):
        return bool(store.check([key]))
    return int(store.add(f"{key}?", 0)) > 0


def missing_after(store: Any, keys: Sequence[str], timeout_s: float) -> list[int]:
    """Waits for all keys; which of them nobody has told when the time is over."""
    if _has_safe_waits(store):
        try:
            store.wait(list(keys), timedelta(seconds=timeout_s))
            return []
        except RuntimeError:
            return [at for at, key in enumerate(keys) if not is_told(store, key)]
    end = time.monotonic() + timeout_s
    missing = list(range(len(keys)))
    while True:
        missing = [at for at in missing if not is_told(store, keys[at])]
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(_PAUSE_S)
