# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord tune --across-nodes`: what goes between nodes has rows of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tune_test import BRIEFLY, GRID, SETTINGS, measurable, tuned

from conftest import Accord

__all__ = ["measurable"]  # a fixture of all tests


# Two nodes of pretence; where there is no UCX no design is there, and its calls say so.
def test_what_goes_between_nodes_is_tuned(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "ACCORD_NODE_SPLIT", "1")
    monkeypatch.setitem(SETTINGS, "ACCORD_INBOX_CALLS", "1")
    grid = ("--ranks", "2", "--min", "512K", "--max", "512K", "--across-nodes")
    done = accord("tune", "bcast", "alltoall", *grid, "--dry-run", **SETTINGS)
    # An adapter would make another design the rule's.
    by_design = {f"two-level-{design}" for design in ("passive", "active1", "active2")}
    either = {"two-level", "two-level-direct"}
    for line in done.stdout.splitlines():
        planned = {*line.split()[3:]}
        assert by_design <= planned <= by_design | either, line
    within, _ = tuned(accord, tmp_path, "bcast", *GRID, *BRIEFLY)
    table, _ = tuned(accord, tmp_path, "bcast", "alltoall", *grid, *BRIEFLY)
    across = [row for row in table["choices"] if row.get("across_nodes")]
    assert sorted(row["collective"] for row in across) == ["alltoall", "bcast"]
    assert [row for row in table["choices"] if not row.get("across_nodes")] == within["choices"]
    for point in table["points"]:
        if not point.get("across_nodes"):
            continue
        measured = {one["algorithm"] for one in point["candidates"]}
        assert by_design <= measured | {*point["left_out"]}
        where = ("--bytes", point["size_bytes"], "-n", 2, "--table", tmp_path / "table.json")
        done = accord("explain", point["collective"], "--json", *where, **SETTINGS)
        answer = json.loads(done.stdout)
        assert answer["table_says_across_nodes"]["algorithm"] == point["chosen"]
        if point["chosen"] != "auto":
            assert answer["across_nodes"] == point["chosen"]
