# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""From records to choices: what is a candidate, what beats the rule, what is unclear, where ranges meet."""

from __future__ import annotations

from typing import Any

import pytest

from accord.verdict import Key, Point, choices_of, measured_of, points_of

PATHS = {"auto": "", "inbox": "inbox", "node-two-shot": "node", "staged": "staged"}


def record(algorithm: str, median_us: float, **changes: Any) -> dict[str, Any]:
    ratio = {"value": median_us / 10, "error": changes.pop("error", 0.001)}
    made = {
        "operation": "allreduce",
        "ranks": 4,
        "size_bytes": 64,
        "algorithm": algorithm,
        "path": PATHS.get(algorithm) or "inbox",
        "send_memory": "device",
        "recv_memory": "device",
        "median_us": median_us,
        "p5_us": median_us * 0.9,
        "p95_us": median_us * 1.2,
        "iterations": 100,
        "verified": 64,
        "correct": True,
        **({} if algorithm == "auto" else {"ratio": ratio}),
    }
    return {**made, **changes}


def point(*records: dict[str, Any]) -> Point:
    points = points_of(records, PATHS)
    assert len(points) == 1
    return points[0]


def test_the_fastest_is_chosen() -> None:
    measured = point(record("auto", 10), record("inbox", 8), record("staged", 30))
    assert measured.chosen.algorithm == "inbox" and not measured.unclear


@pytest.mark.parametrize(("median_us", "error"), [(9.9, 0.001), (9.0, 0.05), (10, 0), (20, 0.001)])
def test_ties_within_noise_go_to_the_rule(median_us: float, error: float) -> None:
    measured = point(record("auto", 10), record("inbox", median_us, error=error))
    assert measured.chosen.algorithm == "auto"


def test_a_noisy_candidate_does_not_hide_a_sure_one() -> None:
    noisy, sure = record("staged", 8, error=0.12), record("inbox", 8.5, error=0.005)
    measured = point(record("auto", 10), noisy, sure)
    assert measured.chosen.algorithm == "inbox"
    assert measured.unclear, "the noisy one may be better still"


def test_unclear_is_what_may_be_better_by_more_than_it_matters() -> None:
    assert point(record("auto", 10), record("inbox", 9.5, error=0.03)).unclear
    assert not point(record("auto", 10), record("inbox", 9.9, error=0.004)).unclear
    assert not point(record("auto", 10), record("inbox", 12, error=0.05)).unclear
    # Between two that are both better than the rule, too.
    both = [record("inbox", 5, error=0.001), record("node-two-shot", 5.2, error=0.05)]
    assert point(record("auto", 10), *both).unclear


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"path": "staged"}, "went by staged"),
        ({"correct": False, "fault": "element 3 is wrong"}, "element 3 is wrong"),
        ({"verified": 0}, "not verified"),
        ({"not_available": "takes 9 times as long as the fastest"}, "takes 9 times"),
        ({"algorithm": "magic"}, "no algorithm of this Accord"),
        ({"send_memory": "host", "recv_memory": "host"}, "host memory"),
    ],
)
def test_what_did_not_happen_as_asked_is_no_candidate(changes: dict[str, Any], why: str) -> None:
    measured = point(record("auto", 10), {**record("inbox", 1), **changes})
    assert [one.algorithm for one in measured.candidates] == ["auto"]
    assert measured.chosen.algorithm == "auto"
    assert why in next(iter(measured.left_out.values()))


def test_of_several_records_the_last_counts_and_others_are_passed_over() -> None:
    nccl = {"operation": "allreduce", "size_bytes": 64, "ranks": 4, "way": "nccl", "median_us": 1}
    measured = point(record("auto", 10), record("inbox", 5), nccl, record("inbox", 15))
    assert measured.chosen.algorithm == "auto"
    assert len(measured.candidates) == 2


def test_records_of_different_runs_are_compared_by_their_medians() -> None:
    alone = {"ratio": None}
    measured = point(record("inbox", 7, **alone), record("staged", 30, **alone))
    assert measured.chosen.algorithm == "inbox"
    assert not points_of([record("inbox", 7, correct=False)], PATHS)
    beside = point(record("auto", 10), record("inbox", 9.7, **alone))
    assert beside.chosen.algorithm == "auto", "3 % between two runs prove nothing"


def test_ranges_meet_between_the_sizes() -> None:
    records = [
        row
        for size_bytes, inbox_us in ((16, 5), (64, 5), (256, 20), (1024, 20), (4096, 4))
        for row in (
            record("auto", 10, size_bytes=size_bytes),
            record("inbox", inbox_us, size_bytes=size_bytes),
        )
    ]
    (row,) = choices_of(points_of(reversed(records), PATHS))
    assert (row["collective"], row["ranks"]) == ("allreduce", 4)
    assert row["ranges"] == [
        {"first_bytes": 0, "algorithm": "inbox"},
        {"first_bytes": 129, "algorithm": "auto"},
        {"first_bytes": 2049, "algorithm": "inbox"},
        {"first_bytes": 8193, "algorithm": "auto"},
    ]


def test_what_was_not_measured_goes_by_the_rule() -> None:
    (row,) = choices_of(points_of([record("auto", 10), record("inbox", 5)], PATHS))
    assert row["ranges"] == [
        {"first_bytes": 0, "algorithm": "inbox"},
        {"first_bytes": 129, "algorithm": "auto"},
    ]
    (row,) = choices_of(points_of([record("auto", 10)], PATHS))
    assert row["ranges"] == [{"first_bytes": 0, "algorithm": "auto"}]


def test_sizes_are_those_of_blocks() -> None:
    assert Key("allreduce", 4, 4096).block_bytes == 4096
    assert Key("alltoall", 4, 4096).block_bytes == 4096
    assert Key("reduce_scatter_block", 4, 4096).block_bytes == 1024
    # The least that there is stands for several sizes, of which one range comes.
    assert Key("reduce_scatter_block", 4, 8).block_bytes == 4
    records = [
        record("auto", 10, operation="reduce_scatter_block", size_bytes=size_bytes)
        for size_bytes in (8, 16, 4096)
    ]
    (row,) = choices_of(points_of(records, PATHS))
    assert row["ranges"] == [{"first_bytes": 0, "algorithm": "auto"}]


def test_a_table_keeps_what_was_measured() -> None:
    kept = measured_of(point(record("auto", 10), record("inbox", 8), record("staged", 9, path="-")))
    assert kept["chosen"] == "inbox" and kept["size_bytes"] == 64
    assert [one["algorithm"] for one in kept["candidates"]] == ["inbox", "auto"]
    assert kept["candidates"][0]["median_us"] == 8 and kept["candidates"][0]["ratio"] == 0.8
    assert list(kept["left_out"]) == ["staged"]


def test_a_table_names_the_design_that_the_rule_took() -> None:
    """The rule of the programs that use it may know of none (ACCORD_NET_DESIGN)."""
    records = [
        record("auto", 10, size_bytes=size_bytes, path=path)
        for size_bytes, path in (
            (64, "staged"),
            (256, "two-level-pairs-direct"),
            (1024, "two-level-direct"),
            (4096, "two-level"),
        )
    ]
    (row,) = choices_of(points_of(records, PATHS), across_nodes=True)
    assert row["ranges"] == [
        {"first_bytes": 0, "algorithm": "auto"},
        {"first_bytes": 129, "algorithm": "two-level-direct"},
        {"first_bytes": 2049, "algorithm": "auto"},
    ]
