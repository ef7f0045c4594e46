# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Reads the JSON lines of `accord bench --json` (bench/README.md lists their keys) into sections.

A section holds what may be compared: the records of one file that share machine, ranks, element type,
memory, settings and versions. A record this cannot make sense of is named by file and line.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accord.errors import UserError
from accord.sizes import size_text


@dataclass(frozen=True)
class Sample:
    """One way at one size. Times are of the slowest rank."""

    size_bytes: int
    median_us: float
    p5_us: float | None
    p95_us: float | None
    bandwidth_gb_s: float | None  # as nccl-tests counts it
    path: str
    correct: bool
    ratio: float | None  # of peers: their time by ours, paired block by block
    ratio_error: float | None
    run: tuple[str, str]  # date and command: what was measured side by side
    by_name: bool = False  # a way of Accord that was asked for: drawn, but no peer


@dataclass
class Operation:
    name: str
    ours_name: str = "accord"
    ours: dict[int, Sample] = field(default_factory=dict)
    peers: dict[str, dict[int, Sample]] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        return sorted({*self.ours, *(size for peer in self.peers.values() for size in peer)})

    @property
    def paths(self) -> list[str]:
        """What our line went through, from small to large."""
        return list(dict.fromkeys(sample.path for sample in self.ours.values()))


@dataclass
class Section:
    file: Path
    facts: dict[str, str]
    operations: dict[str, Operation] = field(default_factory=dict)
    # What the records tell once for many: kept in the order of the file, without repetition.
    commands: dict[str, None] = field(default_factory=dict)
    dates: dict[str, None] = field(default_factory=dict)
    details: dict[str, dict[str, None]] = field(default_factory=dict)
    absent: dict[str, dict[str, None]] = field(default_factory=dict)
    # Of records without a commit: the commit that added them to the repository, so no older one.
    recorded_in: dict[str, None] = field(default_factory=dict)
    repeated: int = 0

    @property
    def source(self) -> str:
        return self.file.name

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(way for each in self.operations.values() for way in each.peers))

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(path for each in self.operations.values() for path in each.paths))

    @property
    def wrong(self) -> list[str]:
        """The points whose results were wrong, in words."""
        return [
            f"{way} {operation.name} {size_text(sample.size_bytes)}"
            for operation in self.operations.values()
            for way, samples in [(operation.ours_name, operation.ours), *operation.peers.items()]
            for sample in samples.values()
            if not sample.correct
        ]


class _RecordError(Exception):
    """What is wrong with a record; the caller knows its line."""


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise _RecordError(f"{key} is {_told(record, key)} instead of text")
    return value


def _positive(record: dict[str, Any], key: str) -> float:
    value = _number_or_none(record, key)
    if value is None or value <= 0:
        raise _RecordError(f"{key} is {_told(record, key)} instead of a positive number")
    return value


def _size(record: dict[str, Any]) -> int:
    value = record.get("size_bytes")
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise _RecordError(
            f"size_bytes is {_told(record, 'size_bytes')} instead of a positive integer"
        )
    return value


def _number_or_none(record: dict[str, Any], key: str) -> float | None:
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _RecordError(f"{key} is {_told(record, key)} instead of a number")
    return float(value)


def _told(record: dict[str, Any], key: str) -> str:
    return json.dumps(record[key])[:60] if key in record else "missing"


def _object(record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _RecordError(f"{key} is {_told(record, key)} instead of an object")
    return value


def _sample(record: dict[str, Any]) -> Sample:
    ratio = _object(record, "ratio")
    bandwidth = _number_or_none(record, "bus_bandwidth_gb_s")
    return Sample(
        size_bytes=_size(record),
        median_us=_positive(record, "median_us"),
        p5_us=_number_or_none(record, "p5_us"),
        p95_us=_number_or_none(record, "p95_us"),
        bandwidth_gb_s=bandwidth,
        path=str(record.get("path") or record["way"]),
        correct=record.get("correct") is not False,
        ratio=_positive(ratio, "value") if ratio else None,
        ratio_error=_number_or_none(ratio, "error"),
        run=(str(record.get("date", "")), str(record.get("command", ""))),
        by_name=_by_name(record),
    )


def _by_name(record: dict[str, Any]) -> bool:
    """Whether it is a way of Accord that was asked for beside the one that it would take."""
    return record.get("ours") is False and "algorithm" in record


def _memory(record: dict[str, Any]) -> str:
    send, receive = str(record.get("send_memory", "")), str(record.get("recv_memory", ""))
    return send if send == receive else f"{send} to {receive}"


def _joined(*words: object) -> str:
    return ", ".join(str(word) for word in words if word not in (None, ""))


def _hosts(told: object) -> str:
    """Hosts of one machine and their links, as the test bed of tests/hosts tells them."""
    if isinstance(told, dict):
        links = f"{told.get('links')} x " if told.get("links", 1) != 1 else ""
        return f"{told.get('ranks')} ranks, {links}{told.get('rate')}"
    return " ".join(str(word) for word in told) if isinstance(told, list) else ""


def _facts(record: dict[str, Any]) -> dict[str, str]:
    """What all records of a section share, in words; nothing that the record leaves out."""
    machine, accord = _object(record, "machine"), _object(record, "accord")
    settings = _object(record, "settings")
    cores = f"{machine['cores']} cores" if "cores" in machine else ""
    local = machine.get("local_ranks")
    spread = f"{local} ranks on the first" if local not in (None, record.get("ranks")) else ""
    intercepts = "" if accord.get("intercepts", True) else "not in the way of the calls"
    commit = f"commit {accord['commit']}" if accord.get("commit") else ""
    facts = {
        "machine": str(machine.get("name") or machine.get("host", "")),
        "host": str(machine.get("host", "")) if machine.get("name") else "",
        "ranks": _joined(record.get("ranks")),
        "hosts": _hosts(record.get("hosts")),
        "nodes": spread,
        "memory": _memory(record),
        "calls": str(record.get("form", "")),
        "elements": _joined(record.get("type"), record.get("op")),
        "device": _joined(machine.get("device"), machine.get("runtime")),
        "driver": str(machine.get("driver") or ""),
        "processor": _joined(machine.get("cpu"), cores),
        "MPI": " ".join(
            str(record.get("mpi_library", "")).split("\n")[0].replace(":", " ").split()
        ),
        "Accord": _joined(accord.get("version"), commit, intercepts),
        "settings": " ".join(f"{name}={value}" for name, value in sorted(settings.items())),
    }
    return {name: text for name, text in facts.items() if text}


def _add(sections: dict[tuple[str, ...], Section], file: Path, record: dict[str, Any]) -> None:
    name, way, ours = _text(record, "operation"), _text(record, "way"), record.get("ours")
    if not isinstance(ours, bool):
        raise _RecordError(f"ours is {_told(record, 'ours')} instead of true or false")
    if _by_name(record):
        way += " (asked for)"  # peers have names in common with them
    size_bytes = _size(record)
    facts = _facts(record)
    key = tuple(word for fact in facts.items() for word in fact)
    if "not_available" in record:
        section = sections.setdefault(key, Section(file, facts))
        section.absent.setdefault(way, {})[str(record["not_available"])] = None
        return
    sample = _sample(record)
    section = sections.setdefault(key, Section(file, facts))
    operation = section.operations.setdefault(name, Operation(name))
    if ours:
        operation.ours_name = way
    samples = operation.ours if ours else operation.peers.setdefault(way, {})
    section.repeated += size_bytes in samples
    samples[size_bytes] = sample
    date, command = str(record.get("date") or record.get("measured") or ""), sample.run[1]
    section.dates.update({date[:10]: None} if date else {})
    section.commands.update({command: None} if command else {})
    if recorded_in := _object(record, "accord").get("recorded_in"):
        section.recorded_in[str(recorded_in)] = None
    if detail := record.get("detail"):
        section.details.setdefault(way, {})[str(detail)] = None


def _parsed(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _RecordError(f"no JSON ({error})") from error
    if not isinstance(record, dict):
        raise _RecordError("no JSON object")
    return record


def read_sections(file: Path) -> list[Section]:
    """The sections of a file. Of a point measured twice the last counts."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise UserError(f"cannot read {file}: {reason}") from error
    sections: dict[tuple[str, ...], Section] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            _add(sections, file, _parsed(line))
        except _RecordError as error:
            raise UserError(
                f"{file}, line {number}: {error}; `accord report` reads what `accord bench --json` writes"
            ) from error
    found = [section for section in sections.values() if section.operations]
    if not found:
        raise UserError(f"{file} holds no measurements")
    for section in found:
        _sort_sizes(section)
    return found


def _sort_sizes(section: Section) -> None:
    for operation in section.operations.values():
        operation.ours = dict(sorted(operation.ours.items()))
        for way, samples in operation.peers.items():
            operation.peers[way] = dict(sorted(samples.items()))
