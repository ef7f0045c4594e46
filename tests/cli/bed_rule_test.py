# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the rule would choose on the bed, beside the bed's records: neither changes without the other."""

from __future__ import annotations

import math
import sys

import pytest

from accord.paths import Home

from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "bench"))

import bed_rule

# Of a kind of traffic: the part of its points, at least, that are within 5 % of the fastest way, and
# how much longer the rule's way may take on average.
BOUNDS = {"collectives": (0.8, 1.05), "messages": (0.75, 1.06)}


@pytest.mark.parametrize("machine", bed_rule.MACHINES)
@pytest.mark.parametrize("kind", bed_rule.KINDS)
def test_the_rule_is_near_the_fastest(home: Home, kind: str, machine: str) -> None:
    points = list(bed_rule.points(machine, bed_rule.KINDS[kind]))
    part, longer = BOUNDS[kind]
    assert len(points) >= (40 if kind == "collectives" else 9)
    far = [str(point) for point in points if point.ratio > bed_rule.NEAR]
    assert len(far) <= (1 - part) * len(points), far
    mean = math.exp(sum(math.log(point.ratio) for point in points) / len(points))
    assert mean <= longer, far


def test_each_class_of_machine_has_a_way_of_its_own(home: Home) -> None:
    mib = 1 << 20
    calls = [("allgather", 64 * mib), ("gather", 64 * mib), ("bcast", 64 * mib), ("latency", mib)]
    assert bed_rule.ways_by_rule("mic", calls) == ["active1", "active2", "host", "active2"]
    assert bed_rule.ways_by_rule("nvlink", calls) == ["direct"] * 4
    short = [("allgather", 1024), ("gather", 8 * mib), ("latency", 64 << 10)]
    assert bed_rule.ways_by_rule("mic", short) == ["staged", "host", "host"]
    assert bed_rule.ways_by_rule("pcie4", short) == ["staged", "host", "direct"]


def test_the_page_has_the_tables_of_today(home: Home) -> None:
    page = (REPOSITORY / "bench" / "results" / "bed" / "README.md").read_text()
    for kind in bed_rule.KINDS:
        assert f"<!-- bench/bed_rule.py {kind} -->" in page
    assert bed_rule.renewed(page) == page, "bench/bed_rule.py --write bench/results/bed/README.md"
