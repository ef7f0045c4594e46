# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord report --markdown`: tables from records made here. No matplotlib, no jinja2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_test import ours, peer, record, write

from accord.errors import UserError
from accord.reporting.markdown import Unit, Wanted, table
from accord.reporting.records import read_sections

from conftest import Accord

_BY_NAME = {"algorithm": "two-level"}


def made(tmp_path: Path, *records: dict[str, Any], **wanted: Any) -> list[str]:
    file = write(tmp_path / "records.jsonl", *records)
    return table(read_sections(file), Wanted(**wanted)).split("\n")


def rows(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("|")]


def caption(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("*"))


def test_time_to_32k_bandwidth_above_and_the_ratio_to_the_best_peer(tmp_path: Path) -> None:
    records = [
        ours(8, 6.1728),
        peer(8, 3.0),
        peer(8, 2.5, way="nccl-window"),
        ours(1 << 20, 10.0, bus_bandwidth_gb_s=157.29),
        peer(1 << 20, 0.985, error=0.001),
    ]
    lines = made(tmp_path, *records)
    assert rows(lines) == [
        "| | 8, µs | 1M, GB/s |",
        "| --- | --- | --- |",
        "| allreduce | 6.17 (2.50) | 157 (0.98) |",
    ]
    said = "Of 2 points in the records Accord is ahead at 1, behind at 1 (allreduce 1M: 0.98)."
    assert said in lines[-5]
    assert lines[-3:] == ["```", "accord bench allreduce", "```"]


def test_points_say_so_of_all_sizes_of_the_records(tmp_path: Path) -> None:
    lines = made(tmp_path, ours(8), peer(8, 2), ours(64), peer(64, 0.5), sizes=[8])
    assert rows(lines)[-1] == "| allreduce | 10.0 (2.00) |"
    assert any("Of 2 points" in line and "allreduce 64: 0.50" in line for line in lines)


def test_rows_of_ways_and_the_best_peer(tmp_path: Path) -> None:
    records = [
        *(ours(8), peer(8, 3), peer(8, 2, way="nccl-window", detail="NCCL 1; NCCL_VERSION=1-2")),
        peer(8, 0.5, way="two-level", detail="by name", **_BY_NAME),  # of ours: no peer
        record("bcast", 8, "accord", 4, path="node"),
    ]
    lines = made(tmp_path, *records, ways=["ours", "best", "two-level"])
    assert rows(lines)[2:] == [
        "| allreduce, accord | 10.0 (2.00) |",
        "| allreduce, best peer | 20.0 |",
        "| allreduce, accord by two-level | 5.00 |",
        "| bcast, accord | 4.00 |",
    ]
    assert "nccl-window: NCCL 1" in caption(lines) and "NCCL_VERSION" not in caption(lines)
    assert len(rows(made(tmp_path, *records, ways=["all"]))) == 2 + 5
    assert "by name" not in caption(made(tmp_path, *records, ways=["ours", "best"]))


def test_against_a_named_way(tmp_path: Path) -> None:
    records = [ours(8), peer(8, 3), peer(8, 6, way="direct")]
    lines = made(tmp_path, *records, ways=["all"], against="direct")
    assert rows(lines)[2:] == [
        "| accord | 10.0 (6.00) |",
        "| nccl | 30.0 (2.00) |",
        "| direct | 60.0 |",
    ]
    assert "In brackets: time of `direct` / that of the row." in lines
    lines = made(tmp_path, *records, against="")
    assert rows(lines)[2:] == ["| allreduce | 10.0 |"]
    assert not any("brackets" in line for line in lines)


def test_units_are_those_of_the_figures(tmp_path: Path) -> None:
    slow = [ours(8, 2000), ours(1 << 20, 9e6, bus_bandwidth_gb_s=0.1163)]
    assert rows(made(tmp_path, *slow))[2:] == ["| allreduce | 2.00 | 116 |"]
    assert rows(made(tmp_path, *slow))[0] == "| | 8, ms | 1M, MB/s |"
    assert rows(made(tmp_path, *slow, unit=Unit.TIME))[0] == "| ms | 8 | 1M |"
    assert rows(made(tmp_path, *slow, unit=Unit.BANDWIDTH, sizes=[1 << 20]))[0] == "| MB/s | 1M |"


def test_wrong_and_missing_points_show_no_figure(tmp_path: Path) -> None:
    records = [ours(8, correct=False), peer(8, 2), ours(64), record("bcast", 64, "accord", 3)]
    assert rows(made(tmp_path, *records))[2:] == [
        "| allreduce | wrong | 10.0 |",
        "| bcast | | 3.00 |",
    ]


def test_points_that_were_not_measured_are_empty_cells(tmp_path: Path) -> None:
    lines = made(tmp_path, ours(8), ours(64), ours(512), record("bcast", 8, "accord", 3))
    assert rows(lines)[-1] == "| bcast | 3.00 | | |"


def test_labels_tell_what_differs_between_sections(tmp_path: Path) -> None:
    other_mpi = {"mpi_library": "Open MPI v5.0.11, package: more of it"}
    links = {"hosts": {"ranks": "2,2", "links": 2, "rate": "1gbit"}}
    settings = {"settings": {"ACCORD_YIELD": "on", "ACCORD_NODE_BYTES": "1"}}
    lines = made(tmp_path, ours(8), ours(8, **other_mpi), ours(8, **links), ours(8, ranks=4))
    assert [row.split(" |")[0] for row in rows(lines)[2:]] == [
        "| 2 ranks, MPICH 5.0.2",
        "| 2 ranks, Open MPI 5.0.11",
        "| 2,2 ranks, 2 x 1gbit",
        "| 4 ranks",
    ]
    lines = made(tmp_path, ours(8, settings={"ACCORD_YIELD": "on"}), ours(8, **settings))
    assert rows(lines)[-1].startswith("| `ACCORD_NODE_BYTES=1` |")
    lines = made(tmp_path, ours(8), ours(8, ranks=4), where=[("ranks", "4")])
    assert rows(lines)[2:] == ["| allreduce | 10.0 |"] and "4 ranks" in caption(lines)


def test_the_caption_says_where_the_figures_are_from(tmp_path: Path) -> None:
    machine = {"name": "4 x GPU, 8 cores (a processor)", "host": "secret", "driver": "580"}
    commit = {"version": "0.1.0", "commit": "0123456789ab-dirty"}
    lines = made(tmp_path, ours(8, machine=machine, accord=commit))
    told = caption(lines)
    for words in (
        "4 x GPU, 8 cores",
        "driver 580",
        "2 ranks",
        "MPICH 5.0.2",
        "2026-01-02",
        "records.jsonl",
    ):
        assert words in told
    assert "Accord 0.1.0, commit 0123456789ab-dirty" in told and "secret" not in told
    old = {"version": "0.1.0", "recorded_in": "ba9876543210"}
    told = caption(made(tmp_path, ours(8, accord=old)))
    assert "no commit in the records, which came with ba9876543210" in told


def test_only_commands_of_what_is_shown(tmp_path: Path) -> None:
    lines = made(tmp_path, ours(8), ours(64, command="accord bench more"), sizes=[64])
    assert "accord bench more" in lines and "accord bench allreduce" not in lines
    assert "```" not in made(tmp_path, ours(8, command=""))
    assert "```" not in made(tmp_path, ours(8), brief=True)


def test_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    for wanted in ({"operations": ["bcast"]}, {"sizes": [16]}, {"where": [("ranks", "9")]}):
        with pytest.raises(UserError, match="no such operation, way or size"):
            made(tmp_path, ours(8), **wanted)


def test_the_verb_prints_the_table_and_makes_no_page(accord: Accord, tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", ours(8), ours(2048), peer(2048, 2))
    words = ("--operations", "allreduce", "--sizes", "2K", "--ways", "ours,nccl", "--unit", "time")
    done = accord("report", "--markdown", "r.jsonl", *words)
    assert done.returncode == 0, done.stderr
    assert rows(done.stdout.split("\n"))[2:] == ["| accord | 10.0 (2.00) |", "| nccl | 20.0 |"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".html"] == []
    done = accord("report", "--markdown", "r.jsonl", "--where", "ranks")
    assert done.returncode != 0 and "is no FACT=TEXT" in done.stderr
