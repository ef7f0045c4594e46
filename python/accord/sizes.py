# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Sizes in bytes as people write them: 8, 64K, 1.5M, 2G."""

from __future__ import annotations

import re

from accord.errors import UserError

_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f'"{text}" is no size; write 65536, 64K, 1.5M or 2G')
    return int(float(match[1]) * (1 << _SHIFTS[match[2].upper()]))


def size_text(size_bytes: int) -> str:
    for letter in ("G", "M", "K"):
        unit = 1 << _SHIFTS[letter]
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit}{letter}"
    return str(size_bytes)
