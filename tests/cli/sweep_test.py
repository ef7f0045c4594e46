# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How a run of the benchmark may end; a shell stands in for the launcher."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from accord import sweep
from accord.benchmark import Target
from accord.errors import UserError
from accord.paths import Home
from accord.sweep import Planned, Record, measure
from accord.verdict import Key

NO_SLOTS = "There are not enough slots available in the system to satisfy the 64"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Record]]:
    """measured(script) -> the records that are left when the launcher is that; $1 is their file."""

    @contextlib.contextmanager
    def command(home: Any, target: Any, ranks: int, words: list[str]) -> Iterator[list[str]]:
        yield ["sh", "-c", script, "sh", words[words.index("--json") + 1]]

    script = ""
    monkeypatch.setattr(sweep, "bench_command", command)
    monkeypatch.setattr(sweep, "environment_for", lambda target, ranks: dict(os.environ))

    def run(given: str) -> list[Record]:
        nonlocal script
        script = given
        records: list[Record] = []
        home = Home(tmp_path / "lib", tmp_path / "bin", "test")
        planned = [Planned(Key("bcast", 2, 64), ())]
        deadline_s = time.monotonic() + 60
        measure(home, cast(Target, None), planned, 0.1, deadline_s, records.extend)
        return records

    return run


def written(**more: Any) -> str:
    """What a shell does to write a record."""
    point = {"operation": "bcast", "ranks": 2, "size_bytes": 64, "algorithm": "auto"}
    return f"echo '{json.dumps({**point, **more})}' >> $1"


def test_a_wrong_result_is_a_record(measured: Callable[..., list[Record]]) -> None:
    assert len(measured(written(correct=True))) == 1
    assert len(measured(f"{written(correct=False)}; exit 1")) == 1


@pytest.mark.parametrize("before", ["true", written(correct=True)], ids=["nothing", "right"])
def test_a_launcher_that_fails_is_told(before: str, measured: Callable[..., list[Record]]) -> None:
    with pytest.raises(UserError, match=f"status 1: {NO_SLOTS}"):
        measured(f"{before}; echo -------; echo {NO_SLOTS}; echo slots that were requested; exit 1")
