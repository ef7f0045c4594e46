# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Whether the ranks of a job share devices: what launchers' options and job managers say of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from accord.options import split_command_line
from accord.sharing import RanksPerNode, Sharing, possible_sharing, ranks_per_node


def ranks_of(words: str, **environment: str) -> tuple[int, float]:
    _, segments = split_command_line(words.split(), {})
    ranks = ranks_per_node(segments, environment)
    return ranks.least, ranks.most


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("-n 8 -- ./a", (8, 8)),
        ("--np=8 -- ./a", (8, 8)),
        ("-ppn 4 -n 8 -- ./a", (8, 8)),  # all hosts are this one
        ("-N 4 -- ./a", (4, 4)),
        ("-n 2 -- ./a : -n 6 -- ./b", (8, 8)),
        ("-n 2 -- ./a : ./b", (1, math.inf)),
        ("-- ./a -n 8", (1, math.inf)),
        ("-n 0 -- ./a", (1, math.inf)),
        ("-n 8 -host node1 -- ./a", (8, 8)),
        ("-n 8 -hosts node1,node2 -- ./a", (1, 8)),
        ("-n 8 -hosts node1,node2 -ppn 4 -- ./a", (4, 4)),
        ("-n 6 -hosts node1,node2 -ppn 4 -- ./a", (2, 4)),
        ("-n 3 -hosts node1,node2 -ppn 4 -- ./a", (3, 3)),
        ("-n 8 -hosts node1,node2 -ppn 2 -- ./a", (1, 8)),  # MPICH begins again with node1
        ("-n 8 -H node1:4,node2:4 -- ./a", (4, 4)),
        ("-n 6 -H node1:4,node2:4 -- ./a", (1, 4)),
        ("-n 12 -H node1:4,node2:4 -- ./a", (1, 12)),
        ("-n 8 -H node1,node1:3,node2:4 -- ./a", (1, 8)),
        ("-n 8 -f nowhere -- ./a", (1, 8)),
        ("-n 8 -f nowhere -ppn 4 -- ./a", (4, 4)),
        ("-f nowhere -npernode 4 -- ./a", (4, 4)),
        ("-n 8 -f nowhere --map-by ppr:4:node:PE=2 -- ./a", (4, 4)),
        ("-n 8 -f nowhere --map-by ppr:4:package -- ./a", (1, 8)),
        ("-n 8 -f nowhere -ppn 4 -- ./a : -n 8 -ppn 4 -- ./b", (1, 16)),
        ("-n 8 -rankfile file -- ./a", (1, 8)),
    ],
)
def test_ranks_of_a_node_by_options(words: str, ranks: tuple[int, float]) -> None:
    assert ranks_of(words) == ranks


@pytest.mark.parametrize(
    ("lines", "ranks"),
    [
        ("node1:4\nnode2:4\n", (4, 4)),
        ("# of the cluster\nnode1 slots=4 max_slots=8\n\nnode2 slots=4\n", (4, 4)),
        ("node1 slots = 6\nnode2 slots = 2\n", (2, 6)),
        ("node1\nnode2\n", (1, 8)),
        ("node1\n", (8, 8)),
        ("", (1, 8)),
    ],
)
def test_ranks_of_a_node_by_a_file_of_hosts(
    lines: str, ranks: tuple[int, float], tmp_path: Path
) -> None:
    file = tmp_path / "hosts"
    file.write_text(lines)
    assert ranks_of(f"-n 8 -hostfile {file} -- ./a") == ranks
    assert ranks_of("-n 8 -- ./a", HYDRA_HOST_FILE=str(file)) == ranks
    assert ranks_of("-n 8 -host node9 -- ./a", HYDRA_HOST_FILE=str(file)) == (8, 8)


def test_ranks_of_a_node_in_an_allocation(tmp_path: Path) -> None:
    words = "-n 8 -- ./a"
    assert ranks_of(words, SLURM_TASKS_PER_NODE="8") == (8, 8)
    assert ranks_of(words, SLURM_TASKS_PER_NODE="1") == (8, 8)  # on the one node that there is
    assert ranks_of(words, SLURM_TASKS_PER_NODE="4(x2)") == (4, 4)
    assert ranks_of(words, SLURM_TASKS_PER_NODE="3(x2),2") == (2, 3)
    assert ranks_of(words, SLURM_TASKS_PER_NODE="8(x2)") == (1, 8)
    assert ranks_of(words, SLURM_TASKS_PER_NODE="1(x2)") == (1, 8)
    assert ranks_of(words, SLURM_TASKS_PER_NODE="many") == (1, 8)
    assert ranks_of(words, SLURM_JOB_NODELIST="node[1-2]", SLURM_JOB_NUM_NODES="2") == (1, 8)
    assert ranks_of(words, SLURM_JOB_NODELIST="node1", SLURM_JOB_NUM_NODES="1") == (8, 8)
    assert ranks_of(words, LSB_MCPU_HOSTS="node1 4 node2 4") == (1, 8)
    file = tmp_path / "nodes"
    file.write_text("node1\n" * 4 + "node2\n" * 4)
    assert ranks_of(words, PBS_NODEFILE=str(file)) == (4, 4)
    assert ranks_of(words, PBS_NODEFILE=str(tmp_path / "gone")) == (1, 8)


def told(runtime: str, *devices: dict[str, Any]) -> dict[str, Any]:
    others = {"name": "other", "devices": [{"mps": True}] * 8}
    return {
        "default_runtime": runtime,
        "runtimes": [others, {"name": runtime, "devices": [*devices]}],
    }


def test_ranks_share_where_they_are_more_than_devices() -> None:
    turns, served = ({"name": "GPU", "mps": mps} for mps in (False, True))

    def kinds(machine: dict[str, Any], least: int, most: float) -> list[Sharing]:
        return possible_sharing(machine, RanksPerNode(least, most))

    four = told("cuda", turns, turns, turns, turns)
    assert kinds(four, 4, 4) == [Sharing.NONE]
    assert kinds(four, 1, 4) == [Sharing.NONE]
    assert kinds(four, 5, 5) == [Sharing.TURNS]
    assert kinds(four, 5, 9) == [Sharing.TURNS]
    assert kinds(four, 1, 8) == kinds(four, 4, math.inf) == [Sharing.NONE, Sharing.TURNS]
    assert kinds(told("cuda", served), 1, 1) == [Sharing.NONE]
    assert kinds(told("cuda", served), 2, 2) == [Sharing.MPS]
    assert kinds(told("cuda", served), 1, 2) == [Sharing.NONE, Sharing.MPS]
    assert kinds(told("cuda", served, turns), 3, 3) == [Sharing.TURNS]
    # Of a vendor without such a service.
    assert kinds(told("hip", {"name": "GPU"}), 2, 2) == [Sharing.TURNS]
    # The host runtime's keeps nobody waiting, unless a test wants that.
    assert kinds(told("host", {"name": "CPU"}), 1, math.inf) == [Sharing.NONE]
    assert kinds(told("host", turns), 2, 2) == [Sharing.TURNS]


def test_ranks_that_have_several_devices_share_sooner() -> None:
    machine = told("cuda", *[{"name": "GPU", "mps": False}] * 4)
    two = RanksPerNode.exactly(2)
    assert possible_sharing(machine, two.times(2)) == [Sharing.NONE]
    assert possible_sharing(machine, two.times(3)) == [Sharing.TURNS]
    assert str(two) == "2" and str(RanksPerNode(1, 8)) == "1 to 8"
    assert str(RanksPerNode(1, math.inf).times(2)) == "2 or more"
