# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The map of rooms in ARCHITECTURE.md is the one that tests/unit/layers_test.py checks includes against."""

from __future__ import annotations

import re
import runpy

from documents import REPOSITORY, blocks

_SPECIAL = {("shim", "preload")}  # one header; the page says so in words


def _arrows(graph: str) -> dict[str, set[str]]:
    """What each room points to; dotted arrows are no includes."""
    arrows: dict[str, set[str]] = {}
    for left, right in re.findall(r"^ *([\w &]+) --> ([\w &]+)$", graph, re.MULTILINE):
        for room in re.findall(r"\w+", left):
            arrows.setdefault(room, set()).update(re.findall(r"\w+", right))
    return arrows


def _reached(room: str, arrows: dict[str, set[str]]) -> set[str]:
    below = arrows.get(room, set())
    return below.union(*(_reached(one, arrows) for one in below))


def test_map_of_rooms() -> None:
    (graph,) = (
        block.text
        for block in blocks(REPOSITORY / "ARCHITECTURE.md")
        if block.text.startswith("graph ")
    )
    allowed = runpy.run_path(str(REPOSITORY / "tests" / "unit" / "layers_test.py"))["BELOW"]
    arrows = _arrows(graph)
    for room, below in allowed.items():
        assert _reached(room, arrows) == {one for one in below if (room, one) not in _SPECIAL}, room
