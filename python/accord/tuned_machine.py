# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The machine that `accord tune` measures: its ranks, whether they share devices, and what its table says."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from accord.algorithms import NET_SEND, SEND, SEND_RANKS, read_algorithms
from accord.checks.devices import accelerators
from accord.errors import UserError
from accord.library import read_collective_libraries, read_info
from accord.options import Segment
from accord.paths import Home
from accord.sharing import RanksPerNode, Sharing, possible_sharing, ranks_per_node
from accord.sweep import Record
from accord.tables import FORMAT, SCHEMA, VARIABLE, machine_of
from accord.verdict import Key, Point, choices_of, measured_of

COLLECTIVES = [
    "allreduce",
    "reduce_scatter_block",
    "alltoall",
    "bcast",
    "allgather",
    "gather",
    "scatter",
    "reduce",
    SEND,
]


class TunedMachine:
    """What there is to tune, and what a table says of it."""

    def __init__(self, home: Home, across_nodes: bool = False) -> None:
        self._told = read_info(home.library)
        self._across_nodes = across_nodes  # its table is for ranks on several nodes
        self.sharing = Sharing.NONE  # until share has been called
        self.facts = machine_of(self._told)
        self.algorithms = read_algorithms(home.library)
        self.paths = self.algorithms.paths
        self._collective_libraries = {
            str(row["name"]): str(row["version"])
            for row in read_collective_libraries(home.library)
            if row.get("usable") and row.get("name") in self.paths
        }

    def sharing_of(self, key: Key) -> Sharing:
        """How ranks that this command starts share devices."""
        nodes_of_pretence = "ACCORD_NODE_SPLIT" in self._settings()
        if key.collective == NET_SEND and not nodes_of_pretence:
            per_node = RanksPerNode.exactly(1)
        else:
            per_node = ranks_per_node([Segment(["-n", str(key.ranks)])], os.environ)
        return self._sharing_of(per_node)

    def measured_sharing(self, record: Record) -> Sharing:
        """How the ranks that a record was measured with did."""
        where = record.get("machine", {})
        ranks = 1 if record["operation"] == NET_SEND else int(record["ranks"])
        sharing = self._sharing_of(RanksPerNode.exactly(int(where.get("local_ranks", ranks))))
        under_mps = where.get("mps", sharing is Sharing.MPS)
        if sharing is not Sharing.NONE and under_mps != (sharing is Sharing.MPS):
            raise UserError(f"measured {'under' if under_mps else 'without'} MPS, unlike here now")
        return sharing

    def _sharing_of(self, per_node: RanksPerNode) -> Sharing:
        kinds = possible_sharing(self._told, per_node)
        if len(kinds) > 1:
            raise UserError(
                f"a node gets {per_node} ranks, as far as can be told, so whether they share its devices "
                "is open; run accord tune on one node"
            )
        return kinds[0]

    def check_measured(self, records: Iterable[Record]) -> None:
        """The launcher may have put ranks elsewhere than its options and the environment say."""
        for record in records:
            if self.measured_sharing(record) is not self.sharing:
                raise UserError(
                    f"the launcher put {record['machine']['local_ranks']} of {record['ranks']} ranks on one "
                    f'node; that makes no table for "{self.facts["signature"]}"'
                )

    def share(self, found: Iterable[tuple[int, Sharing]]) -> None:
        """What is measured is for ranks that share devices as these numbers of ranks do."""
        kinds = {kind: ranks for ranks, kind in found}
        if len(kinds) > 1:
            alone = kinds.pop(Sharing.NONE)
            (shared,) = kinds.values()
            raise UserError(
                f"{alone} ranks have devices of their own, and {shared} share devices, which takes a table "
                "of its own: run accord tune once for each"
            )
        (self.sharing,) = kinds
        self.facts = machine_of(self._told, self.sharing)

    def rank_counts(self, given: list[int] | None) -> list[int]:
        if self.facts["runtime"] == "host" and self._settings().get("ACCORD_RUNTIME") != "host":
            raise UserError(
                "no accelerator here; ACCORD_RUNTIME=host tries it with the embedded stand-in"
            )
        if given:
            return sorted(set(given))
        devices = max(2, len(accelerators(self._told)))
        counts = [2**power for power in range(1, devices.bit_length()) if 2**power <= devices]
        return sorted({*counts, devices})

    def collectives(self, given: list[str] | None, counts: list[int]) -> list[str]:
        if unknown := [name for name in given or [] if name not in self.algorithms.calls]:
            raise UserError(f"no such collective: {', '.join(unknown)}")
        if given and NET_SEND in given and given != [NET_SEND]:
            raise UserError(f"{NET_SEND} is measured alone: its two ranks are on different nodes")
        if given:
            return given
        of_message = self.sharing_of(Key(SEND, SEND_RANKS, 0))
        fits = all(self.sharing_of(Key("", ranks, 0)) is of_message for ranks in counts)
        return [name for name in COLLECTIVES if name != SEND or (fits and not self._across_nodes)]

    def header(self, mpi: str) -> Record:
        """Records under another one are of something else."""
        signature = self.facts["signature"]
        header = {"signature": signature, "mpi": mpi, "settings": self._settings()}
        return header | ({"across_nodes": True} if self._across_nodes else {})

    def table(self, mpi: str, points: list[Point]) -> dict[str, Any]:
        libraries = self.facts["libraries"] | self._collective_libraries
        libraries |= {"mpi": mpi} if mpi else {}
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "machine": {**self.facts, "libraries": libraries},
            "settings": self._settings(),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": shlex.join(["accord", *sys.argv[1:]]),
            "choices": choices_of(points, self._across_nodes),
            "points": [measured_of(point, self._across_nodes) for point in points],
        }

    def _settings(self) -> dict[str, str]:
        """Those of the environment; what is measured knows no table and no algorithm of all calls."""
        return {
            str(row["name"]): str(row["value"])
            for row in self._told.get("settings", [])
            if row.get("origin") != "default" and row["name"] not in (VARIABLE, "ACCORD_ALGORITHM")
        }
