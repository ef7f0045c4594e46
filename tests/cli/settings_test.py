# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Settings: whom `accord info` shows which, the pages made of them, and what a job says of wrong names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.paths import Home
from accord.settings import FILES, Page, markdown

from conftest import REPOSITORY, Accord, Mpi

Program = Callable[[Mpi], Path]

COLUMNS = 80


def row(name: str, audience: str = "user", **changed: object) -> dict[str, object]:
    told: dict[str, object] = {"name": name, "type": "bytes", "default": "1K", "value": "1K"}
    return {**told, "scope": "local", "text": "some|text", "audience": audience, **changed}


def names_in(shown: str) -> list[str]:
    """The first column of the tables."""
    return re.findall(r"^. (ACCORD_\w+) ", shown, re.MULTILINE)


def test_info_shows_the_machine(home: Home, accord: Accord) -> None:
    rows = json.loads(accord("info", "--json").stdout)["settings"]
    done = accord("info", COLUMNS=COLUMNS)
    assert names_in(done.stdout) == []
    assert f"{len(rows)} at their defaults: --all shows them" in done.stdout
    for title in ("Accord", "Devices", "MPIs"):
        assert title in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS
    assert len(done.stdout.splitlines()) < 60, "a screen or so"


def test_info_shows_what_differs_from_its_default(home: Home, accord: Accord) -> None:
    done = accord("info", ACCORD_REGION_BYTES="64M", ACCORD_LINGER_US="50", COLUMNS=COLUMNS)
    assert names_in(done.stdout) == ["ACCORD_REGION_BYTES"]
    assert "default 128M" in " ".join(done.stdout.split()) and "64M" in done.stdout


def test_info_shows_all_when_asked(home: Home, accord: Accord) -> None:
    rows = json.loads(accord("info", "--json").stdout)["settings"]
    done = accord("info", "--all", COLUMNS=COLUMNS)
    assert Counter(names_in(done.stdout)) == Counter(one["name"] for one in rows)
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS


def test_each_setting_is_on_the_page_of_its_audience() -> None:
    rows = [row("ACCORD_A"), row("ACCORD_B", "threshold"), row("ACCORD_C", "expert")]
    rows += [row("ACCORD_D", "test"), row("ACCORD_E", "of a later library")]
    users, experts = (re.findall(r"^\| `(\w+)`", markdown(rows, page), re.M) for page in Page)
    assert users == ["ACCORD_A", "ACCORD_B"]
    assert experts == ["ACCORD_C", "ACCORD_E", "ACCORD_D"]


def test_pages_link_and_name_old_names() -> None:
    text = "see docs/multi-node.md#messages and docs/tuning.md."
    page = markdown([row("ACCORD_A", text=text, old_names=["ACCORD_WAS"])], Page.USERS)
    assert "see [multi-node.md](multi-node.md#messages) and [tuning.md](tuning.md)." in page
    assert "| `ACCORD_WAS` | `ACCORD_A` |" in page


@pytest.mark.parametrize("page", list(Page))
def test_the_pages_are_up_to_date(page: Page, home: Home, accord: Accord) -> None:
    done = accord("info", "--settings-markdown", page.value)
    file = REPOSITORY / "docs" / FILES[page]
    command = f"accord info --settings-markdown {page.value} > docs/{FILES[page]}"
    assert file.read_text() == done.stdout, f"run {command}"


@pytest.mark.one_mpi
def test_a_wrong_name_is_told_once_a_job(
    mpi: Mpi, home: Home, mpi_program: Program, accord: Accord
) -> None:
    if not home.shim(mpi.abi).is_file():
        pytest.skip(f"no shim for {mpi.name} in this build")
    program = mpi_program(mpi)
    wrong = {"ACCORD_ALGORTIHM": "inbox", "ACCORD_QUICK_COPY_BYTES": "1K"}
    done = accord("run", "-n", "2", program, ACCORD_RUNTIME="host", **wrong)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "ACCORD_" in line]
    assert sorted(line.partition("[rank 0] ")[2] for line in told) == [
        "ACCORD_ALGORTIHM is no setting; the nearest is ACCORD_ALGORITHM",
        "ACCORD_QUICK_COPY_BYTES is called ACCORD_COPY_KERNEL_BYTES now",
    ]


@pytest.mark.one_mpi
def test_a_wrong_name_of_some_ranks_is_told_by_them(
    mpi: Mpi, home: Home, mpi_program: Program, accord: Accord
) -> None:
    if not home.shim(mpi.abi).is_file():
        pytest.skip(f"no shim for {mpi.name} in this build")
    program = mpi_program(mpi)
    ranks = ["-n", "1", program, ":", "-n", "1", "env", "ACCORD_LOGG=info", program]
    done = accord("run", *ranks, ACCORD_RUNTIME="host")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "ACCORD_LOGG" in line]
    assert len(told) == 1 and "[rank 1] ACCORD_LOGG is no setting" in told[0]
