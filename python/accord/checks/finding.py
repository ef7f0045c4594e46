# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What a check says."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    OK = "ok"
    SLOW = "slow"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One line of `accord doctor`."""

    state: State
    text: str
    mend: str = ""
    output: str = ""  # of the program that failed, for a report
