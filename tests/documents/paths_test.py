# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Tables that say which way calls go say what the library says. That of docs/algorithms.md is made by it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from accord.algorithms import Algorithms, Question, explain, read_algorithms
from accord.errors import UserError
from accord.paths import find_home

import shell
from documents import REPOSITORY

_LONG_BYTES = 64 << 20
_RANKS = 4
_UNASKED = {"ACCORD_ALGORITHM": "auto", "ACCORD_TABLE": "off"}
_WORDS = {"broadcast": "bcast"}


@pytest.fixture(scope="module")
def algorithms() -> Algorithms:
    try:
        return read_algorithms(find_home().library)
    except UserError as error:
        pytest.skip(str(error))


def _rows(document: str, head: str) -> dict[str, list[str]]:
    """The table of a document under the row `head`: its first cell, and the others."""
    text = (REPOSITORY / "docs" / document).read_text(encoding="utf-8")
    start = text.index(f"\n{head}\n") + 1
    lines = text[start:].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def _collectives(words: str) -> set[str]:
    """`allgather(v), alltoall(v, w)` as the library names them."""
    found: set[str] = set()
    for base, more in re.findall(r"([a-z]+(?:_[a-z]+)*)(?:\(([^)]*)\))?", words):
        name = _WORDS.get(base, base)
        found |= {name, *(f"{name}{suffix.strip()}" for suffix in more.split(",") if suffix)}
    return found


def _long(algorithms: Algorithms, answer: str) -> dict[str, str]:
    asked = [Question(name, _RANKS, _LONG_BYTES) for name in algorithms.collectives]
    answers = explain(find_home().library, asked, _UNASKED)
    return {name: one[answer] for name, one in zip(algorithms.collectives, answers, strict=True)}


def test_guide_names_what_goes_between_devices(algorithms: Algorithms) -> None:
    rows = _rows("guide.md", "| calls | within a node |")
    (words,) = (cell for cell in rows if cell.startswith("broadcast"))
    ways = _long(algorithms, "algorithm")
    assert _collectives(words.split(";")[0]) == {name for name in ways if ways[name] != "staged"}
    assert "staged" not in ways.values()


def test_page_of_nodes_names_what_goes_in_two_levels(algorithms: Algorithms) -> None:
    words = _rows("multi-node.md", "| | |")["which"][0]
    words = words.split("; blocking")[0].replace("scan and exscan", "scan, exscan")
    ways = _long(algorithms, "across_nodes")
    named = _collectives(re.sub(r" if all .*", "", words))
    assert named == {name for name in ways if ways[name] != "staged"}


def test_page_of_plugins_names_what_a_library_carries(
    algorithms: Algorithms, tmp_path: Path
) -> None:
    """As calls go that ask for a stand-in of NCCL."""
    stand_in = REPOSITORY / "build" / "tests" / "ccl" / "libfake_nccl.so"
    if not shell.MPI.is_dir() or not stand_in.is_file():
        pytest.skip("needs MPICH, and the stand-in for NCCL")
    rows = _rows("plugins.md", "| collective | by NCCL's |")
    named = {name: how[0] for cell, how in rows.items() for name in _collectives(cell)}
    measured = [name for name in algorithms.collectives if not name.startswith("neighbor_")]
    assert {"scan", "exscan"} <= {name for name, how in named.items() if how == "not"}
    command = (
        f"ACCORD_RUNTIME=host ACCORD_CCL_LIBRARIES=nccl:{stand_in} ACCORD_ALGORITHM=nccl accord bench "
        f"{' '.join(measured)} -n 2 --memory device --min 64K --max 64K --iterations 8 --json records"
    )
    (tmp_path / "home").mkdir()
    shell.run("plugins.md", [], [command], tmp_path)
    records = map(json.loads, (tmp_path / "records").read_text().splitlines())
    paths = {record["operation"]: record["path"] for record in records}
    by_library = {name for name in measured if named.get(name, "not") != "not"}
    assert {name for name, path in paths.items() if path == "nccl"} == by_library
    assert paths.keys() == set(measured)


def _names(rows: dict[str, list[str]]) -> set[str]:
    return {name for cell in rows for name in re.findall(r"`([\w-]+)`", cell)}


def test_page_of_traces_names_all_paths(algorithms: Algorithms) -> None:
    named = _names(_rows("tracing.md", "| path | the data goes |"))
    libraries = set(algorithms.descriptions[0]["names"])
    told = set(algorithms.paths.values()) - {""} - libraries
    designs = set(algorithms.net_message_paths) - {"auto", "staged"}
    told |= {f"two-level-pairs-{design}" for design in designs}
    assert named - libraries == told | {"node-pairs", "two-level-pairs", "host", "posted"}
    sources = "".join(file.read_text() for file in (REPOSITORY / "src").rglob("*.[hc]*"))
    assert all(f'"{name}"' in sources for name in named - told - libraries)


def test_page_of_traces_names_reasons_that_there_are() -> None:
    reasons = (REPOSITORY / "src" / "coll" / "select" / "reasons.h").read_text()
    words = [
        part.strip("…: ")
        for cell in _rows("tracing.md", "| why | meaning |")
        for part in re.findall(r"`([^`]+)`", cell)
    ]
    assert [part for part in words if part.removeprefix(", ") not in reasons] == []


def test_page_of_tuning_names_the_ways_of_messages(algorithms: Algorithms) -> None:
    named = _names(_rows("tuning.md", "| way of a message | |"))
    assert named == set(algorithms.message_paths) - {"auto"}


def test_page_of_nodes_names_all_designs(algorithms: Algorithms) -> None:
    named = _names(_rows("multi-node.md", "| design | how a message goes |"))
    assert named == set(algorithms.net_message_paths) - {"auto", "staged"}
