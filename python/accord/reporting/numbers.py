# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How figures are written, the same on the page and in Markdown."""

from __future__ import annotations

import math


def number_text(value: float | None) -> str:
    """Three digits that count, a dash for what is not known."""
    if value is None:
        return "\N{EN DASH}"
    if not value:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def ratio_text(ratio: float) -> str:
    """Short enough for a cell."""
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.1f}" if ratio >= 9.95 else f"{ratio:.2f}"
