# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A table in Markdown from records, with a caption that says where it comes from.

A row is an operation by one way, a column a size. Needs nothing but the records: no matplotlib, no jinja2.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from accord.errors import UserError
from accord.reporting.comparison import Comparison, Verdict, best, ratio_of, summarise
from accord.reporting.numbers import number_text, ratio_text
from accord.reporting.records import Operation, Sample, Section
from accord.sizes import size_text

# From here on a table shows bandwidth, as `accord bench` does.
_BANDWIDTH_BYTES_MIN = 64 << 10
# What tells sections apart, in words that a label may hold; the first ones that do are taken.
_TELLING = ("machine", "hosts", "ranks", "memory", "calls", "elements", "MPI", "Accord", "settings")
# How records.py marks ways of Accord that were asked for by name.
_BY_NAME = " (asked for)"
OURS, BEST, ALL = "ours", "best", "all"
# A variable that repeats the version before it.
_VERSION_SETTING = r" ?\b\w+_VERSION=\S+"
# More points behind than these are only counted.
_NAMED_POINTS_MAX = 8


class Unit(str, enum.Enum):
    AUTO = "auto"
    TIME = "time"
    BANDWIDTH = "bandwidth"


@dataclass(frozen=True)
class Wanted:
    """What of the records a table shows; empty lists mean all."""

    operations: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    ways: list[str] = field(default_factory=lambda: [OURS])
    against: str = BEST  # whose time by that of a row stands in brackets; empty: nothing does
    unit: Unit = Unit.AUTO
    brief: bool = False  # without the commands
    where: list[tuple[str, str]] = field(default_factory=list)  # facts that a section has


@dataclass(frozen=True)
class _Row:
    section: Section
    operation: Operation
    way: str
    samples: dict[int, Sample]


@dataclass(frozen=True)
class _Column:
    """A size, and what its figures are multiplied with to be in `unit`."""

    size_bytes: int
    is_time: bool
    unit: str
    factor: float

    def text(self, sample: Sample) -> str:
        value = sample.median_us if self.is_time else sample.bandwidth_gb_s
        return number_text(None if value is None else value * self.factor)


def table(sections: list[Section], wanted: Wanted) -> str:
    """The table and its caption. UserError where the records hold nothing of what is wanted."""
    kept = [each for each in sections if _has_facts(each, wanted.where)]
    rows = [row for each in kept for row in _rows(each, wanted)]
    sizes = wanted.sizes or sorted({size for row in rows for size in row.samples})
    rows = [row for row in rows if any(size in row.samples for size in sizes)]
    if not rows:
        raise UserError("the records hold no such operation, way or size")
    columns = _columns(rows, sizes, wanted.unit)
    labels = _labels(rows)
    units = {column.unit for column in columns}
    head = [size_text(c.size_bytes) + (f", {c.unit}" if len(units) > 1 else "") for c in columns]
    lines = [_line([next(iter(units)) if len(units) == 1 else "", *head])]
    lines.append(_line(["---"] * (len(columns) + 1)))
    for row, label in zip(rows, labels, strict=True):
        lines.append(_line([label, *(_cell(row, column, wanted.against) for column in columns)]))
    return "\n".join([*lines, "", *_caption(rows, sizes, wanted)])


def _has_facts(section: Section, where: list[tuple[str, str]]) -> bool:
    return all(text in section.facts.get(name, "") for name, text in where)


def _line(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _rows(section: Section, wanted: Wanted) -> Iterator[_Row]:
    for operation in section.operations.values():
        if wanted.operations and operation.name not in wanted.operations:
            continue
        measured = {operation.ours_name: operation.ours, **operation.peers}
        for way in _ways(operation, wanted.ways, measured):
            if way == BEST:
                yield _Row(section, operation, way, _best_samples(operation))
            elif way in measured:
                yield _Row(section, operation, way, measured[way])


def _ways(
    operation: Operation, wanted: list[str], measured: dict[str, dict[int, Sample]]
) -> list[str]:
    """Names as the records have them; of two that differ in "(asked for)" alone the peer's."""
    if ALL in wanted:
        return [way for way in measured if measured[way]]
    names = [operation.ours_name if way == OURS else way for way in wanted]
    return [_known(name, measured) for name in names]


def _known(name: str, measured: dict[str, dict[int, Sample]]) -> str:
    asked_for = name + _BY_NAME
    return asked_for if name not in measured and asked_for in measured else name


def _best_samples(operation: Operation) -> dict[int, Sample]:
    found = {size: best(operation, size) for size in operation.sizes}
    return {
        size: operation.peers[each.peer][size] for size, each in found.items() if each is not None
    }


def _columns(rows: list[_Row], sizes: list[int], unit: Unit) -> list[_Column]:
    is_time = {size: _is_time(rows, size, unit) for size in sizes}
    times = [s.median_us for row in rows for n, s in row.samples.items() if is_time.get(n)]
    rates = [
        sample.bandwidth_gb_s or 0
        for row in rows
        for size, sample in row.samples.items()
        if is_time.get(size) is False
    ]
    time = ("ms", 1e-3) if times and min(times) >= 1000 else ("µs", 1.0)
    rate = ("MB/s", 1e3) if rates and max(rates) < 1 else ("GB/s", 1.0)
    return [
        _Column(size, of_time, *(time if of_time else rate)) for size, of_time in is_time.items()
    ]


def _is_time(rows: list[_Row], size_bytes: int, unit: Unit) -> bool:
    samples = [row.samples[size_bytes] for row in rows if size_bytes in row.samples]
    if unit is not Unit.AUTO:
        return unit is Unit.TIME
    return size_bytes < _BANDWIDTH_BYTES_MIN or any(not each.bandwidth_gb_s for each in samples)


def _cell(row: _Row, column: _Column, against: str) -> str:
    sample = row.samples.get(column.size_bytes)
    if sample is None:
        return ""
    if not sample.correct:
        return "wrong"
    ratio = _ratio(row, sample, against)
    return column.text(sample) + ("" if ratio is None else f" ({ratio_text(ratio)})")


def _ratio(row: _Row, sample: Sample, against: str) -> float | None:
    """How many times as fast as `against` this sample is: paired where the record is, else of the medians."""
    operation, size_bytes = row.operation, sample.size_bytes
    if not against or row.way in (against, BEST):
        return None
    if against == BEST:
        if row.way != operation.ours_name:
            return None
        found = best(operation, size_bytes)
        return None if found is None else found.ratio
    name = operation.ours_name if against == OURS else _known(against, operation.peers)
    others = operation.ours if name == operation.ours_name else operation.peers.get(name, {})
    other = others.get(size_bytes)
    if other is None or not other.correct or other is sample:
        return None
    if sample is operation.ours.get(size_bytes):
        return ratio_of(sample, other)
    return other.median_us / sample.median_us


def _labels(rows: list[_Row]) -> list[str]:
    """Operation, what tells the sections apart, way: nothing that is the same in all rows."""
    sections = _sections(rows)
    prefixes = {id(each): _prefix(each, sections) for each in sections}
    names = {row.operation.name for row in rows}
    ways = {_way_text(row) for row in rows}
    return [
        ", ".join(
            part
            for part in (
                row.operation.name if len(names) > 1 or len(rows) == 1 else "",
                prefixes[id(row.section)],
                _way_text(row) if len(ways) > 1 else "",
            )
            if part
        )
        for row in rows
    ]


def _sections(rows: list[_Row]) -> list[Section]:
    return list({id(row.section): row.section for row in rows}.values())


def _way_text(row: _Row) -> str:
    if row.way == BEST:
        return "best peer"
    name = row.way.removesuffix(_BY_NAME)
    return name if name == row.way else f"{row.operation.ours_name} by {name}"


def _prefix(section: Section, sections: list[Section]) -> str:
    parts: list[str] = []
    alike = sections
    for name in _TELLING:
        if len(alike) == 1:
            break
        told = section.facts.get(name, "")
        others = [each for each in alike if each.facts.get(name, "") == told]
        if len(others) < len(alike):
            parts.append(_fact_text(name, told, alike))
            alike = others
    if len(alike) > 1 and len({each.source for each in alike}) > 1:
        parts.append(section.source.removesuffix(".jsonl"))
    return ", ".join(part for part in parts if part)


def _fact_text(name: str, told: str, alike: list[Section]) -> str:
    if name == "ranks":
        return f"{told} ranks"
    if name == "settings":
        common = set.intersection(*(set(each.facts.get(name, "").split()) for each in alike))
        return " ".join(f"`{word}`" for word in told.split() if word not in common)
    return _mpi_text(told) if name == "MPI" else told


def _caption(rows: list[_Row], sizes: list[int], wanted: Wanted) -> list[str]:
    """Machine, versions, date, commit, records and commands of what the table shows."""
    sections = _sections(rows)
    runs = {row.samples[size].run for row in rows for size in sizes if size in row.samples}
    commands = [run[1] for run in sorted(runs) if run[1]]
    ranks, recorded = _values(sections, "ranks"), _union(each.recorded_in for each in sections)
    facts = [
        *_values(sections, "machine"),
        *([f"{' or '.join(ranks)} ranks"] if ranks else []),
        *(f"driver {told}" for told in _values(sections, "driver")),
        *(_mpi_text(told) for told in _values(sections, "MPI")),
        *_peer_details(sections, rows, wanted.against),
        *(_values(sections, "settings") if len(sections) == 1 else []),
        *(f"Accord {told}" for told in _values(sections, "Accord")),
        *_union(each.dates for each in sections),
        *([f"no commit in the records, which came with {', '.join(recorded)}"] if recorded else []),
        *(f"`{name}`" for name in _union([str(each.file)] for each in sections)),
    ]
    lines = [f"*{' · '.join(facts)}.*", *_brackets(rows, wanted.against)]
    if wanted.brief or not commands:
        return lines
    return [*lines, "", "```", *dict.fromkeys(commands), "```"]


def _values(sections: list[Section], name: str) -> list[str]:
    return _union([each.facts[name]] for each in sections if name in each.facts)


def _union(many: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(each for one in many for each in one))


def _mpi_text(told: str) -> str:
    """Name and version of the MPIs that are known to tell more."""
    match = re.match(r"(MPICH|Open MPI)\D*([\d.]+)", told)
    return f"{match[1]} {match[2]}" if match else told


def _peer_details(sections: list[Section], rows: list[_Row], against: str) -> list[str]:
    """Versions and settings of the peers that stand in the table or behind its brackets."""
    named = {row.way for row in rows} | {against}
    return _union(
        [f"{way}: {re.sub(_VERSION_SETTING, '', detail)}" for detail in details]
        for section in sections
        for way, details in section.details.items()
        if way in named or (BEST in named and not way.endswith(_BY_NAME))
    )


def _brackets(rows: list[_Row], against: str) -> list[str]:
    """What stands in brackets; against the best peer also what all points of these operations say."""
    if against and against != BEST:
        return ["", f"In brackets: time of `{against}` / that of the row."]
    ours = {id(row.operation): row.operation for row in rows if row.way == row.operation.ours_name}
    found = [
        comparison
        for operation in ours.values()
        for size in operation.sizes
        if (comparison := best(operation, size)) is not None
    ]
    summary = summarise(found)
    if not against or summary is None:
        return []
    counts = ", ".join(f"{verdict.value} at {n}" for verdict, n in summary.counts.items() if n)
    behind = [_point(each) for each in found if each.verdict is Verdict.BEHIND]
    which = f" ({', '.join(behind)})" if 0 < len(behind) <= _NAMED_POINTS_MAX else ""
    sizes = "point" if summary.points == 1 else "points"
    return [
        "",
        "In brackets: time of the fastest peer / ours. "
        f"Of {summary.points} {sizes} in the records Accord is {counts}{which}.",
    ]


def _point(comparison: Comparison) -> str:
    point = f"{comparison.operation} {size_text(comparison.size_bytes)}"
    return f"{point}: {ratio_text(comparison.ratio)}"
