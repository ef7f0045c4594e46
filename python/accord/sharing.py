# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Whether the ranks of a job share devices: what is the fastest there is not what is elsewhere.

How many ranks a node gets is the launcher's business. Where its options and the environment leave that
open, the answer is a range, and nothing is guessed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from accord.options import Segment


class Sharing(Enum):
    """What the signature of a machine says of it."""

    NONE = ""
    TURNS = "shared"
    MPS = "shared under MPS"


@dataclass(frozen=True)
class RanksPerNode:
    """The fewest and the most ranks that a node gets."""

    least: int
    most: float

    @staticmethod
    def exactly(ranks: int) -> RanksPerNode:
        return RanksPerNode(ranks, ranks)

    def times(self, devices: int) -> RanksPerNode:
        """As if each were so many."""
        return RanksPerNode(self.least * devices, self.most * devices)

    def __str__(self) -> str:
        if self.most == math.inf:
            return f"{self.least} or more"
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


def devices_of(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of the runtime that `accord info` calls the default one."""
    runtime = told.get("default_runtime")
    rows = [row for row in told.get("runtimes", []) if row.get("name") == runtime]
    return [device for row in rows for device in row.get("devices", [])]


def possible_sharing(told: Mapping[str, Any], ranks: RanksPerNode) -> list[Sharing]:
    """One, or two where it cannot be told."""
    devices = devices_of(told)
    servers = {device.get("mps") for device in devices}
    # The host runtime has devices that keep nobody waiting, unless a test wants it otherwise.
    waits = told.get("default_runtime") != "host" or bool(servers - {None})
    if ranks.most <= len(devices) or not waits:
        return [Sharing.NONE]
    shared = Sharing.MPS if servers == {True} else Sharing.TURNS
    return [shared] if ranks.least > len(devices) else [Sharing.NONE, shared]


# Options of MPICH's and Open MPI's mpiexec, without their dashes.
_TOTAL = ("n", "np", "c")
_PER_NODE = ("ppn", "perhost", "npernode", "N")
_HOSTS = ("host", "hosts", "H")
_HOST_FILES = ("f", "hostfile", "machinefile", "default-hostfile")
_OTHER_PLACES = ("rankfile", "rf", "pernode")
_MAPPING = ("map-by",)
# Environment variables that name a file of hosts, and those that tell of hosts in other ways.
_FILE_VARIABLES = (
    "HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)
_OF_JOBS = (
    "SLURM_JOB_NODELIST",
    "LSB_MCPU_HOSTS",
    "LSB_DJOB_HOSTFILE",
    "PE_HOSTFILE",
    "COBALT_NODEFILE",
    "FLUX_JOB_ID",
)

# By host how many ranks it is meant for; None: a number that nobody has said.
_Slots = dict[str, int | None]


def ranks_per_node(segments: list[Segment], environment: Mapping[str, str]) -> RanksPerNode:
    """Of a job that mpiexec starts with these options, in this environment."""
    counts = [_last_number(segment, _TOTAL) for segment in segments]
    total = None if None in counts else sum(count for count in counts if count is not None)
    per_node = _per_node(segments[0]) if len(segments) == 1 else None
    slots = _slots(segments, environment)
    if slots is not None and len(slots) == 1:
        ranks = total or per_node
        return RanksPerNode.exactly(ranks) if ranks else RanksPerNode(1, math.inf)
    if per_node is not None:
        ranks = total or per_node
        # MPICH begins again with the first host where there are more ranks.
        if slots is None or ranks <= per_node * len(slots):
            return RanksPerNode(ranks % per_node or per_node, min(per_node, ranks))
    elif total is not None and slots is not None:
        return _by_slots(total, slots)
    return RanksPerNode(1, total if total is not None else math.inf)


def _by_slots(total: int, slots: _Slots) -> RanksPerNode:
    numbers = [number for number in slots.values() if number is not None]
    if len(numbers) < len(slots) or total > sum(numbers):
        return RanksPerNode(1, total)
    least = min(numbers) if total == sum(numbers) else 1
    return RanksPerNode(least, min(total, max(numbers)))


def _last_number(segment: Segment, names: tuple[str, ...]) -> int | None:
    values = segment.values_of(names)
    return int(values[-1]) if values and values[-1].isdecimal() and int(values[-1]) else None


def _per_node(segment: Segment) -> int | None:
    if (number := _last_number(segment, _PER_NODE)) is not None:
        return number
    for value in segment.values_of(_MAPPING):
        if match := re.match(r"ppr:([1-9]\d*):node\b", value):
            return int(match[1])
    return None


def _slots(segments: list[Segment], environment: Mapping[str, str]) -> _Slots | None:
    """The hosts of the job; None where several may be meant and it is not known which."""
    if any(segment.values_of(_OTHER_PLACES) for segment in segments):
        return None
    if lists := [text for segment in segments for text in segment.values_of(_HOSTS)]:
        return _slots_of(word for text in lists for word in text.split(","))
    if files := {file for segment in segments for file in segment.values_of(_HOST_FILES)}:
        return _slots_of(_lines(files.pop())) if len(files) == 1 else None
    return _of_environment(environment)


def _of_environment(environment: Mapping[str, str]) -> _Slots | None:
    for name in _FILE_VARIABLES:
        if file := environment.get(name):
            return _slots_of(_lines(file))
    if text := environment.get("SLURM_TASKS_PER_NODE"):
        return _of_slurm(text)
    if file := environment.get("PBS_NODEFILE"):  # a line a rank
        return {**Counter(_lines(file))} or None
    if environment.get("SLURM_JOB_NUM_NODES") != "1" and any(map(environment.get, _OF_JOBS)):
        return None
    return {"this one": None}


def _of_slurm(text: str) -> _Slots | None:
    """`4(x2),3`: four on each of two nodes, three on one more."""
    slots: _Slots = {}
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return None
        slots |= {str(len(slots) + node): int(match[1]) for node in range(int(match[2] or 1))}
    return slots


def _lines(file: str) -> list[str]:
    """None where it cannot be read: the launcher will say so."""
    try:
        lines = Path(file).read_text(errors="replace").splitlines()
    except OSError:
        return []
    bare = (line.split("#", 1)[0].strip() for line in lines)
    return [line for line in bare if line]


def _slots_of(hosts: Iterable[str]) -> _Slots | None:
    """Each as `node1`, `node1:4` (MPICH, and Open MPI's command line) or `node1 slots=4` (its files)."""
    slots: _Slots = {}
    for text in hosts:
        match = re.match(r"\s*([^\s:]+)(?::(\d+)|.*?\sslots\s*=\s*(\d+))?", text)
        if match is None:
            return None
        host, number = match[1], match[2] or match[3]
        known = slots.get(host, 0)
        slots[host] = None if number is None or known is None else known + int(number)
    return slots or None
