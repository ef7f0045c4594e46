# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Ours against the best peer: the ratio of each point, and what the points say together."""

from __future__ import annotations

import enum
import statistics
from dataclasses import dataclass

from accord.reporting.records import Operation, Sample, Section

# How far from 1 a ratio without an error of its own still counts as level.
_LEVEL_MARGIN = 0.03


class Verdict(enum.Enum):
    AHEAD = "ahead"
    LEVEL = "level"
    BEHIND = "behind"


@dataclass(frozen=True)
class Comparison:
    """Time of the fastest peer by ours, at one size."""

    operation: str
    size_bytes: int
    peer: str
    ratio: float
    error: float | None

    @property
    def verdict(self) -> Verdict:
        """Level: within two standard errors of 1, so that noise takes no side."""
        margin = _LEVEL_MARGIN if self.error is None else 2 * self.error
        if abs(self.ratio - 1) <= margin:
            return Verdict.LEVEL
        return Verdict.AHEAD if self.ratio > 1 else Verdict.BEHIND


def ratio_of(ours: Sample | None, peer: Sample) -> float | None:
    """The paired ratio of the record, else that of the medians; only of what ran side by side."""
    if ours is None or not ours.correct or not peer.correct or peer.run != ours.run:
        return None
    return peer.median_us / ours.median_us if peer.ratio is None else peer.ratio


def best(operation: Operation, size_bytes: int) -> Comparison | None:
    """Against the peer that was fastest at this size, of those whose results were right."""
    ours = operation.ours.get(size_bytes)
    found = [
        Comparison(operation.name, size_bytes, way, ratio, samples[size_bytes].ratio_error)
        for way, samples in operation.peers.items()
        if size_bytes in samples
        and not samples[size_bytes].by_name
        and (ratio := ratio_of(ours, samples[size_bytes])) is not None
    ]
    return min(found, key=lambda comparison: comparison.ratio, default=None)


def comparisons(section: Section) -> list[Comparison]:
    return [
        found
        for operation in section.operations.values()
        for size_bytes in operation.sizes
        if (found := best(operation, size_bytes)) is not None
    ]


@dataclass(frozen=True)
class Summary:
    """The points of a section together."""

    points: int
    counts: dict[Verdict, int]
    median: float
    lowest: Comparison
    highest: Comparison


def summarise(found: list[Comparison]) -> Summary | None:
    if not found:
        return None
    verdicts = [comparison.verdict for comparison in found]
    return Summary(
        points=len(found),
        counts={verdict: verdicts.count(verdict) for verdict in Verdict},
        median=statistics.median(comparison.ratio for comparison in found),
        lowest=min(found, key=lambda comparison: comparison.ratio),
        highest=max(found, key=lambda comparison: comparison.ratio),
    )
