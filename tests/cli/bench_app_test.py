# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord bench --app`: what it makes of its options and of what applications print, and one on two ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accord.bench_app import plan_of, table
from accord.errors import UserError
from accord.mpi import Abi
from accord.paths import Home

from conftest import Accord


def test_options_of_the_application_are_passed_on() -> None:
    plan = plan_of(["--size", "8x8x8", "--peer", "mpi,host", "--turns=5", "--type", "r2c"])
    assert plan.words == ["--size", "8x8x8", "--type", "r2c"]
    assert plan.ways == ["accord", "mpi", "host"] and plan.turns == 5 and plan.file is None
    assert plan_of(["--json", "a.json", "--peer", "host", "--peer", "host"]).ways == [
        "accord",
        "host",
    ]


@pytest.mark.parametrize("words", ["--peer nccl", "--turns 0", "--turns few", "--peer"])
def test_wrong_options_are_refused(words: str) -> None:
    with pytest.raises(UserError):
        plan_of(words.split())


def _row(us: float, correct: bool = True) -> dict[str, object]:
    return {"case": "a case", "us": us, "mpi_us": us / 2, "correct": correct}


def test_a_row_has_medians_and_their_ratio() -> None:
    rows = {
        "accord": [_row(10), _row(30), _row(20)],
        "mpi": [_row(50), _row(40), _row(30)],
        "host": [],
    }
    cells = [list(column.cells) for column in table(rows).columns]
    wanted = ["a case", "20.0", "10.0", "40.0", "20.0", "-", "-", "2.00", "-", "ok"]
    assert cells == [[cell] for cell in wanted]


def test_a_wrong_result_of_any_turn_shows() -> None:
    rows = {"accord": [_row(10), _row(10, correct=False), _row(10)]}
    assert list(table(rows).columns[-1].cells) == ["WRONG"]


@pytest.mark.parametrize("abi", [Abi.MPICH, Abi.OPENMPI])
def test_fft3d_end_to_end(abi: Abi, home: Home, accord: Accord, tmp_path: Path) -> None:
    if not home.app("fft3d", abi).is_file():
        pytest.skip(f"no fft3d for the {abi.label}")
    file = tmp_path / "records.jsonl"
    words = ("--size", "12x10x9", "--reshape", "alltoallv,messages", "--repeats", 3, "--turns", 2)
    done = accord(
        *("bench", "--app", "fft3d", "-n", 2, "--mpi", abi.value, *words, "--peer", "host"),
        *("--json", file),
        ACCORD_RUNTIME="host",
        CUDA_VISIBLE_DEVICES="-1",
    )
    if "cannot load libfftw3" in done.stderr:
        pytest.skip("no FFTW on this machine")
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(records) == 2 * 2 * 2 and all(record["correct"] for record in records)
    assert {(record["way"], record["memory"]) for record in records} == {
        ("accord", "accord host"),
        ("host", "host"),
    }


def test_a_failing_application_fails_the_bench(home: Home, accord: Accord) -> None:
    if not any(home.app("fft3d", abi).is_file() for abi in Abi):
        pytest.skip("no fft3d is built")
    done = accord("bench", "--app", "fft3d", "-n", 2, "--size", "nothing", "--turns", 1)
    assert done.returncode == 1 and "--size takes NXxNYxNZ, not nothing" in done.stderr
