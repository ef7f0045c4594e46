# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What Accord would choose by its rule on each machine of the bed, beside what was measured there.

    bench/bed_rule.py                                        prints the tables
    bench/bed_rule.py --points                               and where the rule is not within 5 %
    bench/bed_rule.py --write bench/results/bed/README.md    renews those of the page

libaccord.so is asked as `accord explain` asks it: nothing is measured. The times are those of the records.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from accord.algorithms import NET_SEND, Question, explain
from accord.paths import find_home
from accord.sizes import size_text

RECORDS = Path(__file__).resolve().parent / "results" / "bed"
MACHINES = ("mic", "pcie4", "pcie5", "nvlink", "c2c")
MESSAGES = ("latency", "bandwidth", "bibandwidth")
COLLECTIVES = "collectives-1+1"
KINDS = {"collectives": COLLECTIVES, "messages": "messages"}
CHOSEN = ("auto", "tuned")
# Shorter messages go by no rule: latencies of the bed's network are not slowed, and so count for too little.
LEAST_MESSAGE = 64 << 10
NEAR = 1.05


@dataclass(frozen=True)
class Point:
    machine: str
    operation: str
    size_bytes: int
    way: str  # the rule's
    times: dict[str, float]  # by way; what Accord chose by itself is not among them

    @property
    def ratio(self) -> float:
        return self.times[self.way] / min(self.times.values())

    def __str__(self) -> str:
        best = min(self.times, key=self.times.__getitem__)
        size = size_text(self.size_bytes)
        return f"{self.machine}: {self.operation} of {size}: {self.way} takes {self.ratio:.2f} of {best}"


def measured(name: str) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
    """By operation and size, and way: the records of a file."""
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for line in (RECORDS / f"{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        key = record["operation"], record["size_bytes"]
        found.setdefault(key, {})[record["way"]] = record
    return found


def ways_by_rule(machine: str, calls: list[tuple[str, int]]) -> list[str]:
    """As records call them."""
    settings = {
        "ACCORD_RUNTIME": "host",
        "ACCORD_NET_DESIGN": "auto",
        "ACCORD_TABLE": "off",
        "ACCORD_HOST_MACHINE": machine,
    }
    questions = [
        Question(NET_SEND if operation in MESSAGES else operation, 2, size)
        for operation, size in calls
    ]
    answers = explain(find_home().library, questions, settings)
    staged = {"two-level": "host", NET_SEND: "host"}
    return [
        staged[NET_SEND]
        if answer["collective"] == NET_SEND and answer["across_nodes"] == "staged"
        else staged.get(answer["across_nodes"], answer["across_nodes"].removeprefix("two-level-"))
        for answer in answers
    ]


def is_as_asked(record: dict[str, Any], way: str) -> bool:
    """A call of a way that had no regions left was staged instead; it says nothing of that way."""
    return (
        way in ("staged", *CHOSEN)
        or record.get("path") != "staged"
        or record["operation"] in MESSAGES
    )


def points(machine: str, file: str) -> Iterator[Point]:
    """Where the rule's way was measured."""
    found = measured(f"{file}-{machine}")
    calls = [call for call in found if call[0] not in MESSAGES or call[1] >= LEAST_MESSAGE]
    for call, way in zip(calls, ways_by_rule(machine, calls), strict=True):
        times = {
            name: record["median_us"]
            for name, record in found[call].items()
            if name not in CHOSEN and (way == "staged" or is_as_asked(record, name))
        }
        if way in times:
            yield Point(machine, *call, way, times)


def recorded(machine: str, file: str) -> list[float]:
    """The same of `auto` as it was measured, with the rule of that time."""
    found = measured(f"{file}-{machine}")
    return [
        ways["auto"]["median_us"] / min(ways[way]["median_us"] for way in ways if way not in CHOSEN)
        for (operation, size), ways in found.items()
        if "auto" in ways and (operation not in MESSAGES or size >= LEAST_MESSAGE)
    ]


def summary(ratios: list[float]) -> str:
    near = sum(ratio <= NEAR for ratio in ratios)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{near} of {len(ratios)} | {max(ratios):.2f} | {mean:.2f}"


def table(kind: str) -> str:
    file = KINDS[kind]
    lines = [
        f"| {kind} | by the rule: within 5 % | at worst | on average "
        "| `auto` as measured: within 5 % | at worst | on average |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for machine in MACHINES:
        now = summary([point.ratio for point in points(machine, file)])
        lines.append(f"| `{machine}` | {now} | {summary(recorded(machine, file))} |")
    return "\n".join(lines) + "\n"


def renewed(text: str) -> str:
    """The page with each table as it is now."""
    return re.sub(
        r"(<!-- bench/bed_rule\.py (\w+) -->\n)(.*?)(<!-- end -->)",
        lambda match: match[1] + table(match[2]) + match[4],
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", action="store_true", help="those that are not within 5 %%")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    if options.write:
        options.write.write_text(renewed(options.write.read_text()))
        return
    for kind, file in KINDS.items():
        print(table(kind))
        for machine in MACHINES if options.points else ():
            for point in points(machine, file):
                if point.ratio > NEAR:
                    print(point)


if __name__ == "__main__":
    main()
