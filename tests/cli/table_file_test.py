# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What a tuning leaves of the table and the records that it finds, and places that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accord.algorithms import Algorithms
from accord.errors import UserError
from accord.sweep import State
from accord.table_file import check_place, with_earlier, write_table
from accord.verdict import Key

ALGORITHMS = Algorithms(
    {"auto": "", "inbox": "inbox", "node": "node"},
    {"auto": "", "copy-engine": "node-p2p"},
    {"auto": "", "direct": "net-direct"},
    ["allreduce", "bcast"],
)
HEADER = {"signature": "host", "mpi": "MPICH", "settings": {}}


def row(collective: str, ranks: int, algorithm: str = "inbox") -> dict[str, Any]:
    ranges = [{"first_bytes": 0, "algorithm": algorithm}]
    return {"collective": collective, "ranks": ranks, "ranges": ranges}


def table(*rows: dict[str, Any], signature: str = "host", **settings: str) -> dict[str, Any]:
    return {
        "format": "accord-table",
        "schema": 1,
        "machine": {"signature": signature},
        "settings": settings,
        "choices": list(rows),
        "points": [{"collective": each["collective"], "ranks": each["ranks"]} for each in rows],
    }


def test_other_calls_stay_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    new = table(row("allreduce", 4, "node"))
    assert with_earlier(new, path, ALGORITHMS) == new
    kept = [row("allreduce", 2), row("bcast", 4)]
    write_table(path, table(row("allreduce", 4), *kept))
    both = with_earlier(new, path, ALGORITHMS)
    assert both["choices"] == [kept[0], row("allreduce", 4, "node"), kept[1]]
    calls = [(point["collective"], point["ranks"]) for point in both["points"]]
    assert calls == [("allreduce", 4), ("allreduce", 2), ("bcast", 4)]


@pytest.mark.parametrize(
    "earlier",
    [
        table(row("bcast", 4), signature="8 x Other"),
        table(row("bcast", 4), ACCORD_REGION_BYTES="1M"),
        table(row("bcast", 4, "of-another-version"), row("latency", 2)),
        {"format": "accord-table", "schema": 0},
    ],
    ids="machine settings names schema".split(),
)
def test_what_does_not_hold_here_goes(earlier: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_table(path, earlier)
    new = table(row("allreduce", 4))
    assert with_earlier(new, path, ALGORITHMS) == new


def test_a_place_that_cannot_be_written_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "file" / "table.json", "no table can be written"),
        (Path("/proc/table.json"), "no table can be written"),
    ]:
        with pytest.raises(UserError, match=message):
            check_place(path)
    check_place(tmp_path / "new" / "table.json")


def record(collective: str, size_bytes: int) -> dict[str, Any]:
    return {"operation": collective, "ranks": 2, "size_bytes": size_bytes, "algorithm": "auto"}


def test_records_of_another_grid_stay(tmp_path: Path) -> None:
    path = tmp_path / "records"
    state = State(path, HEADER, False)
    state.add([record("allreduce", 64), record("bcast", 64)])
    state.end({Key("allreduce", 2, 64)})
    assert State(path, HEADER, False).records == state.records
    state.end({Key("allreduce", 2, 64), Key("bcast", 2, 64)})
    assert not path.exists()


def test_a_record_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "records"
    State(path, HEADER, False).add([record("bcast", 64)])
    path.write_text(path.read_text() + json.dumps(record("bcast", 128))[:-9])
    State(path, HEADER, False).add([record("bcast", 256)])
    sizes = [each["size_bytes"] for each in State(path, HEADER, False).records]
    assert sizes == [64, 256]
