# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The table of docs/scale.md is what the record says."""

from __future__ import annotations

import json

from documents import REPOSITORY

_RECORD = REPOSITORY / "bench" / "results" / "scale" / "after.jsonl"
_PAGE = REPOSITORY / "docs" / "scale.md"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _bytes(count: int) -> str:
    if count < 1e3:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def test_table_is_what_the_record_says() -> None:
    rows: dict[str, list[str]] = {}
    for line in _RECORD.read_text().splitlines():
        figure = json.loads(line)
        cell = _bytes(figure["bytes"])
        if figure["seconds"] != 0:
            cell = f"{_time(figure['seconds'])}, {cell}"
        rows.setdefault(figure["what"], []).append(cell)
    text = _PAGE.read_text()
    for what, cells in rows.items():
        assert f"| {what} | {' | '.join(cells)} |" in text, f"the record says {what}: {cells}"
