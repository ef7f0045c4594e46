# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The simulation of many nodes: closed forms of small cases, the plans of the code, and what was measured."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "bench"))

pytest.importorskip("matplotlib")
import scale_model as model
import scale_report as report

KI, MI = model.KI, model.MI
ADD = 1e-9 / model.FIGURES["accord"]["host_reduce_gb_s"]


def test_a_chunk_on_two_nodes_takes_two_rounds() -> None:
    job = model.job_of("gpu-bed", 2, ranks=1, adapters=1, gb_s=1.25)
    size = 64 * KI
    one_round = 3 * job.overhead + job.latency + size / 2 * job.byte
    expected = job.to_host(size) + 2 * one_round + size / 2 * ADD + job.to_device(size)
    assert model.two_levels("allreduce", size, job) == pytest.approx(expected)


def test_leaders_that_share_an_adapter_wait_for_each_other() -> None:
    apart, together = (model.job_of("alps", 8, adapters=adapters) for adapters in (4, 1))
    size = 256 * MI
    link = 2 * size * 7 / 8 / 4 * apart.byte  # each leader's share, but for what stays, goes twice
    by_each = model.two_levels("allreduce", size, apart, direct=True)
    by_one = model.two_levels("allreduce", size, together, direct=True)
    assert link < by_each < 1.5 * link
    assert 4 * link < by_one < 4.5 * link


def test_chunks_overlap() -> None:
    job = model.job_of("gpu-bed", 2, ranks=1, adapters=1, gb_s=1.25)
    size = 64 * MI
    link = size * job.byte
    assert link < model.two_levels("allreduce", size, job) < 1.1 * link


def served_in_order(orders: list[list[int]]) -> int:
    """When the last message has come, if each takes 1 at both ends, and both ends serve in order."""
    arrivals: list[list[int]] = [[] for _ in orders]
    for peers in orders:
        for at, peer in enumerate(peers):
            arrivals[peer].append(at)
    ends = []
    for times in arrivals:
        free = 0
        for at in sorted(times):
            free = max(free, at) + 1
        ends.append(free)
    return max(ends)


@pytest.mark.parametrize("nodes", [2, 3, 4, 8, 33])
def test_messages_in_the_order_of_ranks_meet_at_one_node(nodes: int) -> None:
    job = model.job_of("bed", nodes, ranks=1, adapters=1, gb_s=1e-6)
    by_number = [[peer for peer in range(nodes) if peer != own] for own in range(nodes)]
    in_pairs = [
        sorted(peers, key=lambda peer: (peer + own) % nodes) for own, peers in enumerate(by_number)
    ]
    size = MI
    steps = model.messages(size, job) / (size * job.byte)
    assert steps == pytest.approx(served_in_order(by_number), rel=0.01)
    assert served_in_order(in_pairs) <= nodes


def test_a_ring_takes_as_many_hops_as_are_behind_each_other() -> None:
    job = model.job_of("alps", 3)
    protocol = {"base_us": 0.0, "near_us": 2.0, "far_us": 50.0, "efficiency": 1.0}
    hops = [(50.0 if rank % job.ranks == 0 else 2.0) * model.US for rank in range(job.size)]
    came = [0.0] * job.size
    for _ in range(2 * (job.size - 1)):
        came = [came[rank - 1] + hops[rank] for rank in range(job.size)]
    # NCCL's own count leaves out up to two of the hops between nodes.
    assert max(came) - 2 * 50 * model.US <= model.ring(0, job, protocol) <= max(came)
    carried = 2 * 11 / 12 * MI / job.adapters * job.byte
    assert model.ring(MI, job, protocol) == pytest.approx(model.ring(0, job, protocol) + carried)


def test_a_tree_is_as_deep_as_nodes_have_digits() -> None:
    protocol = {"base_us": 1.0, "near_us": 0.0, "far_us": 50.0, "efficiency": 0.5}
    for nodes, depth in ((2, 1), (8, 3), (9, 4)):
        job = model.job_of("alps", nodes)
        assert model.tree(0, job, protocol) == pytest.approx((1 + 2 * depth * 50) * model.US)


@pytest.mark.parametrize("parcel", [384 * KI, 4 * MI])
@pytest.mark.parametrize(
    ("kind", "block", "ranks"),
    [
        ("allreduce", 256 * KI, 8),
        ("allreduce", 16 * MI, 128),
        ("allreduce", 64 * MI, 2048),
        ("alltoall", 4 * KI, 32),
    ],
)
def test_plans_are_those_of_the_code(kind: str, block: int, ranks: int, parcel: int) -> None:
    program = REPOSITORY / "build" / "bin" / "accord_scale"
    if not program.exists():
        pytest.skip("no accord_scale, which bench makes")
    command = [program, "--ranks", ranks, "--node", 4, "plan", kind, block, parcel]
    made = json.loads(subprocess.check_output([str(word) for word in command], timeout=60))
    job = model.job_of("alps", ranks // 4)
    plan = model.Plan.of(kind, block, job, single=False, parcel=parcel)
    assert made["leaders"] == plan.leaders
    assert len(made["chunks"]) == plan.chunks
    rounds_of = model.grid_rounds if kind == "allreduce" else model.alltoall_rounds
    for number, chunk in enumerate(made["chunks"]):
        rounds = rounds_of(plan.chunk(number)[1] * plan.volume, job.nodes)
        assert [one["messages"] for one in chunk] == [one.messages for one in rounds]
        for one, mine in zip(chunk, rounds, strict=True):
            # Shares of the nodes are whole lines of 256 bytes.
            assert one["bytes"] == pytest.approx(mine.messages * mine.size, abs=256 * job.nodes)


def test_predictions_are_near_what_was_measured() -> None:
    points = list(report.points())
    assert len(points) >= 80
    for point in points:
        off = max(point.ratio, 1 / point.ratio)
        assert off <= report.POINT_BOUND, point
    assert report.mean_off(points) <= report.MEAN_BOUND


def test_the_page_has_what_is_predicted() -> None:
    page = (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
    for name in report.TABLES:
        assert f"<!-- bench/scale_report.py {name} -->" in page
    assert report.renewed(page) == page, "bench/scale_report.py --write docs/scale.md docs/images"
    for operation, schedules in report.SCHEDULES.items():
        plot = REPOSITORY / "docs" / "images" / f"scale-{operation}.svg"
        drawn = plot.read_text(encoding="utf-8")
        assert len(drawn) < 60_000
        for name in schedules:
            assert name in drawn
