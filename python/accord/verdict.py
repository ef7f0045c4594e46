# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""From records of the benchmark to a table: which algorithm is the fastest where, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from accord.algorithms import MEASURED_AS, MESSAGES, NET_PATHS, NET_SEND

RULE = "auto"  # what the built-in rule takes
TWO_LEVEL = "two-level"  # how what goes between nodes begins
_TWO_LEVEL_BY_PAIRS = "two-level-pairs"  # and what accord_last_path says where it goes pair by pair
# An algorithm must be better than the rule's by more than this, beyond all doubt, to take its place.
TOLERANCE = 0.02
# Of a ratio that was not measured pair by pair: two runs of one program differ so much.
_ERROR_BETWEEN_RUNS = 0.03
# A choice holds up to so many times the largest size that it was measured at.
_MEASURED_TO = 2
ELEMENT_BYTES = 4
_OF_THE_WHOLE_VECTOR = ("reduce_scatter", "reduce_scatter_block")


class Key(NamedTuple):
    """A point of the grid, its size as the benchmark counts it."""

    collective: str
    ranks: int
    size_bytes: int

    @property
    def block_bytes(self) -> int:
        """The size as the library counts it: of the block between two ranks."""
        if self.collective not in _OF_THE_WHOLE_VECTOR:
            return self.size_bytes
        share = self.size_bytes // self.ranks // ELEMENT_BYTES * ELEMENT_BYTES
        return max(ELEMENT_BYTES, share)


@dataclass(frozen=True)
class Candidate:
    """One algorithm at one point; `ratio`: its time by that of the rule, `error`: its standard error."""

    algorithm: str
    path: str
    median_us: float
    p5_us: float
    p95_us: float
    iterations: int
    ratio: float = 1.0
    error: float = 0.0
    ratios: dict[str, float] = field(default_factory=dict)  # by operation, where there are several

    @property
    def low(self) -> float:
        return self.ratio - 2 * self.error

    @property
    def high(self) -> float:
        return self.ratio + 2 * self.error


@dataclass
class Point:
    key: Key
    candidates: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # by algorithm: why it is none

    @property
    def chosen(self) -> Candidate:
        """The fastest of those that are better than the rule's for sure, else the rule's own."""
        rule = [one for one in self.candidates if one.algorithm == RULE]
        sure = [one for one in self.candidates if one.high < 1 - TOLERANCE] if rule else []
        return min(sure or rule or self.candidates, key=lambda one: one.ratio)

    def doubt(self) -> float:
        """By how much another algorithm may be better than the chosen one: beyond TOLERANCE, unclear."""
        chosen = self.chosen
        others = [one.low for one in self.candidates if one is not chosen]
        return chosen.ratio - min(others, default=chosen.ratio)

    @property
    def unclear(self) -> bool:
        return self.doubt() > TOLERANCE


def points_of(records: Iterable[dict[str, Any]], paths: Mapping[str, str]) -> list[Point]:
    """The points of records in their order; of several for the same algorithm and point the last counts.

    `paths` says by algorithm which path its calls must have taken: the library falls back in silence.
    """
    latest: dict[Key, dict[str, dict[str, dict[str, Any]]]] = {}
    for record in records:
        if "algorithm" not in record or "size_bytes" not in record:
            continue
        key = Key(str(record["operation"]), int(record["ranks"]), int(record["size_bytes"]))
        of_key = latest.setdefault(key, {})
        operation = str(record.get(MEASURED_AS, key.collective))
        of_key.setdefault(operation, {})[str(record["algorithm"])] = record
    points = [
        _mean_of({name: _point_of(key, rows, paths) for name, rows in latest[key].items()})
        for key in latest
    ]
    return [point for point in points if point.candidates]


def _mean_of(by_operation: Mapping[str, Point]) -> Point:
    """One point of what was measured by several operations: what counts is the geometric mean of the
    ratios, so that the least loss in all of them together wins, whichever way the ratios are taken of."""
    points = [*by_operation.values()]
    if len(points) == 1:
        return points[0]
    mean = Point(points[0].key)
    measured = [{one.algorithm: one for one in point.candidates} for point in points]
    for name in dict.fromkeys(name for candidates in measured for name in candidates):
        lacking = [
            f"{operation}: {point.left_out.get(name, 'not measured')}"
            for (operation, point), candidates in zip(by_operation.items(), measured, strict=True)
            if name not in candidates
        ]
        if lacking:
            mean.left_out[name] = lacking[0]
            continue
        ones = [candidates[name] for candidates in measured]
        ratio = math.prod(one.ratio for one in ones) ** (1 / len(ones))
        relative = math.hypot(*(one.error / one.ratio for one in ones)) / len(ones)
        ratios = {operation: one.ratio for operation, one in zip(by_operation, ones, strict=True)}
        mean.candidates.append(replace(ones[0], ratio=ratio, error=ratio * relative, ratios=ratios))
    for point in points:
        mean.left_out |= {k: v for k, v in point.left_out.items() if k not in mean.left_out}
    return mean


def _point_of(
    key: Key, by_algorithm: Mapping[str, dict[str, Any]], paths: Mapping[str, str]
) -> Point:
    point = Point(key)
    reference = by_algorithm.get(RULE, {}).get("median_us")
    if reference is None:
        medians = [row["median_us"] for row in by_algorithm.values() if "median_us" in row]
        reference = min(medians, default=1.0)
    for name, record in by_algorithm.items():
        if why := _why_none(name, record, paths):
            point.left_out[name] = why
        else:
            paired = RULE in by_algorithm
            point.candidates.append(_candidate_of(name, record, float(reference), paired))
    return point


def _why_none(name: str, record: Mapping[str, Any], paths: Mapping[str, str]) -> str:
    if "not_available" in record:
        return str(record["not_available"])
    if record.get("send_memory") == "host" and record.get("recv_memory") == "host":
        return "measured on host memory"
    if not record.get("verified") or not record.get("correct"):
        return str(record.get("fault", "its result was not verified"))
    if name != RULE and name not in paths:
        return "no algorithm of this Accord"
    if name != RULE:
        path = str(record.get("path"))
        if path.replace(_TWO_LEVEL_BY_PAIRS, TWO_LEVEL, 1) != paths[name]:
            return f"its calls went by {path}"
    return ""


def _candidate_of(
    name: str, record: Mapping[str, Any], reference_us: float, paired: bool
) -> Candidate:
    median_us = float(record["median_us"])
    ratio, error = median_us / reference_us, _ERROR_BETWEEN_RUNS
    measured = record.get("ratio") if paired else None
    if name == RULE:
        error = 0.0
    elif isinstance(measured, dict) and measured.get("value"):
        ratio = float(measured["value"])
        error = ratio * _ERROR_BETWEEN_RUNS if measured["error"] is None else measured["error"]
    return Candidate(
        algorithm=name,
        path=str(record.get("path", "")),
        median_us=median_us,
        p5_us=float(record["p5_us"]),
        p95_us=float(record["p95_us"]),
        iterations=int(record["iterations"]),
        ratio=ratio,
        error=error,
    )


def choices_of(points: Iterable[Point], across_nodes: bool = False) -> list[dict[str, Any]]:
    """The rows of a table: by collective and ranks, ranges that meet halfway between sizes.

    What is far longer than anything measured goes by the rule, whatever was the best before.
    """
    rows: dict[tuple[str, int], list[Point]] = {}
    for point in points:
        rows.setdefault((point.key.collective, point.key.ranks), []).append(point)
    return [
        {
            "collective": collective,
            "ranks": ranks,
            **_place(collective, across_nodes),
            "ranges": _ranges_of(row, across_nodes),
        }
        for (collective, ranks), row in sorted(rows.items())
    ]


def _in_table(point: Point, across_nodes: bool) -> str:
    """What is best by the rule that was measured may not be the rule of the programs to come: which
    designs there are between nodes depends on ACCORD_NET_DESIGN."""
    chosen = point.chosen
    if chosen.algorithm != RULE:
        return chosen.algorithm
    if point.key.collective == NET_SEND:
        return chosen.path.removeprefix(NET_PATHS)
    path = chosen.path.replace(_TWO_LEVEL_BY_PAIRS, TWO_LEVEL, 1)
    return path if across_nodes and path.startswith(f"{TWO_LEVEL}-") else RULE


def _ranges_of(points: list[Point], across_nodes: bool) -> list[dict[str, Any]]:
    ranges: list[dict[str, Any]] = []
    last_bytes = 0
    for point in sorted(points, key=lambda one: one.key.block_bytes):
        size_bytes, algorithm = point.key.block_bytes, _in_table(point, across_nodes)
        if size_bytes == last_bytes:
            continue  # two sizes of the benchmark whose blocks are the least there is
        if not ranges or ranges[-1]["algorithm"] != algorithm:
            first_bytes = math.isqrt(last_bytes * size_bytes) + 1 if ranges else 0
            ranges.append({"first_bytes": first_bytes, "algorithm": algorithm})
        last_bytes = size_bytes
    if ranges[-1]["algorithm"] != RULE:
        ranges.append({"first_bytes": _MEASURED_TO * last_bytes + 1, "algorithm": RULE})
    return ranges


def _rounded(ratios: Mapping[str, float]) -> dict[str, float]:
    return {operation: round(ratio, 4) for operation, ratio in ratios.items()}


def _place(collective: str, across_nodes: bool) -> dict[str, bool]:
    """What messages are for says their name."""
    return {"across_nodes": True} if across_nodes and collective not in MESSAGES else {}


def measured_of(point: Point, across_nodes: bool = False) -> dict[str, Any]:
    """A point as the table keeps it, for `accord explain` and for other choices later."""
    key = point.key
    return {
        "collective": key.collective,
        "ranks": key.ranks,
        **_place(key.collective, across_nodes),
        "size_bytes": key.block_bytes,
        "chosen": point.chosen.algorithm,
        "candidates": [
            {
                "algorithm": one.algorithm,
                "path": one.path,
                "median_us": round(one.median_us, 3),
                "p5_us": round(one.p5_us, 3),
                "p95_us": round(one.p95_us, 3),
                "iterations": one.iterations,
                "ratio": round(one.ratio, 4),
                "error": round(one.error, 4),
                **({"ratios": _rounded(one.ratios)} if one.ratios else {}),
            }
            for one in sorted(point.candidates, key=lambda one: one.ratio)
        ],
        "left_out": point.left_out,
    }
