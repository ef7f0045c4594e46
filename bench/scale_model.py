# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Predicts what allreduce and alltoall take on many nodes: a simulation of Accord's schedules in LogGP.

scale_report.py prints and draws what this predicts, and compares it with what was measured.

One rank of each kind is simulated, since in these calls all nodes do the same. What serves one thing after
the other is a `Line`: a rank's core (overhead o a message, and sums), either direction of an adapter (gap g a
message, G a byte, for all ranks that share it), a copy engine, the links of a node. L is nobody's time.
Chunks, shares, rounds and the order of steps are those of src/coll/inter (`Plan` is plan.cpp's arithmetic).
Figures and where they come from: scale_model.json. Time is in seconds.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES: dict[str, Any] = json.loads((ROOT / "bench/scale_model.json").read_text())
KI = 1 << 10
MI = 1 << 20
US = 1e-6


def up_to(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


# ---- figures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copies:
    """What copies of a machine take: latency and seconds a byte."""

    latency: float
    byte: float

    def __call__(self, size: float) -> float:
        return self.latency + size * self.byte if size else 0.0


@dataclass(frozen=True)
class Job:
    nodes: int
    ranks: int  # of a node
    adapters: int
    latency: float
    overhead: float
    gap: float
    byte: float  # of an adapter
    device_byte: float  # of an adapter from device memory to device memory
    to_host: Copies
    to_device: Copies
    on_device: Copies
    is_measured: bool = True  # nodes as the record has them; else a CPU's copies

    @property
    def size(self) -> int:
        return self.nodes * self.ranks

    def within(self, operation: str, size: float) -> float:
        """A collective of the ranks of a node: `size` as accord bench means it."""
        if self.ranks == 1 or size == 0:
            return 0.0
        if not self.is_measured:
            return 2 * size * CPU_BYTE
        return interpolated(node_times(operation), size)


CPU_BYTE = 1e-9 / FIGURES["accord"]["host_copy_gb_s"]


@cache
def node_times(operation: str) -> list[tuple[int, float]]:
    """Of the shortest way on: two levels go through regions, never by inboxes."""
    lines = (ROOT / FIGURES["accord"]["node_record"]).read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    found = {
        row["size_bytes"]: row["median_us"] * US
        for row in rows
        if row["operation"] == operation and row["way"] == "accord" and row["path"] == "node-direct"
    }
    return sorted(found.items())


def interpolated(points: list[tuple[int, float]], size: float) -> float:
    if size <= points[0][0]:
        return points[0][1]
    for (low, fast), (high, slow) in itertools.pairwise(points):
        if size <= high:
            return fast + (slow - fast) * (size - low) / (high - low)
    return points[-1][1] * size / points[-1][0]


@cache
def machine(name: str) -> dict[str, float]:
    """A line of the machines that the host runtime may be."""
    text = (ROOT / "src/device/host/machines.def").read_text()
    fields = (
        "to_device_ns to_device to_host_ns to_host on_device_ns on_device peer network "
        "adapter_ns adapter_reads adapter_writes"
    ).split()
    for line in re.findall(r"^MACHINE\((.+)\)$", text, re.MULTILINE):
        found, *values = (word.strip() for word in line.split(","))
        if found == name:
            return dict(zip(fields, map(float, values), strict=True))
    raise KeyError(name)


def network(name: str) -> dict[str, Any]:
    figures = FIGURES["networks"][name]
    return {**(network(figures["like"]) if "like" in figures else {}), **figures}


def job_of(name: str, nodes: int, slowdown: float = 1, **changes: Any) -> Job:
    net = {**network(name), **changes}
    byte = 1e-9 / net["gb_s"] / net.get("efficiency", 1)
    job = Job(
        nodes=nodes,
        ranks=net["ranks"],
        adapters=net["adapters"],
        latency=net["latency_us"] * US,
        overhead=net["overhead_us"] * US,
        gap=net["gap_us"] * US,
        byte=byte,
        device_byte=byte,
        to_host=Copies(0, CPU_BYTE),
        to_device=Copies(0, CPU_BYTE),
        on_device=Copies(0, CPU_BYTE),
        is_measured=False,
    )
    if "machine" not in net:
        return job
    its = machine(net["machine"])

    def copies(kind: str) -> Copies:
        return Copies(its[kind + "_ns"] * 1e-9 * slowdown, 1e-6 / its[kind] * slowdown)

    slowest = min(its["adapter_reads"], its["adapter_writes"])
    return replace(
        job,
        device_byte=max(byte, 1e-6 / slowest * slowdown),
        to_host=copies("to_host"),
        to_device=copies("to_device"),
        on_device=copies("on_device"),
        is_measured=slowdown == 1,
    )


# ---- Accord: two levels --------------------------------------------------------------------------


@cache
def grid_of(nodes: int, line_max: int = 32) -> list[int]:
    """As grid_of of plan.h: the nodes as a grid of few dimensions."""
    factors: list[int] = []
    left = nodes
    for factor in range(2, nodes + 1):
        while left % factor == 0:
            factors.insert(0, factor)
            left //= factor
    if not factors:
        return [1]
    for dimensions in itertools.count(1):
        lines = [1] * dimensions
        for factor in factors:
            lines[lines.index(min(lines))] *= factor
        if max(lines) <= max(line_max, factors[0]):
            return lines
    raise AssertionError


@dataclass(frozen=True)
class Plan:
    """What TwoLevelPlan (src/coll/inter/plan.cpp) makes of a call."""

    block: int  # the message, or what is for one rank
    volume: int  # bytes of parcels for each byte of a block
    leaders: int
    share: int  # of a leader, of each block, in all chunks but the last
    granule: int

    @classmethod
    def of(cls, kind: str, block: int, job: Job, *, single: bool, parcel: int = 384 * KI) -> Plan:
        granule = 256
        volume = 1 if kind == "allreduce" else job.size * job.ranks
        leaders = 1 if single else job.ranks
        times = max(-(-job.nodes // 8), -(-volume // 128))
        most = max(parcel, min(4 * MI, parcel * times))
        parcels = block * volume // leaders
        wanted = min(most, max(128 * KI, -(-parcels // 4)))
        share = max(granule, wanted // volume // granule * granule)
        return cls(block, volume, leaders, share, granule)

    @property
    def chunks(self) -> int:
        return -(-self.block // (self.share * self.leaders))

    def chunk(self, number: int) -> tuple[int, int]:
        """Bytes of all leaders' shares of a block, and of the longest."""
        left = self.block - number * self.share * self.leaders
        share = min(self.share, up_to(-(-left // self.leaders), self.granule))
        return min(left, share * self.leaders), min(left, share)


class Line:
    """Serves one after the other."""

    def __init__(self) -> None:
        self.free = 0.0

    def serve(self, ready: float, seconds: float) -> float:
        self.free = max(self.free, ready) + seconds
        return self.free


@dataclass(frozen=True)
class Round:
    messages: int  # that a leader sends, and receives
    size: float
    summed: float = 0  # bytes that come and are added


Rounds = Callable[[float, int], list[Round]]


def grid_rounds(parcel: float, nodes: int) -> list[Round]:
    """Each leader with its like on every other node of its line: shares, then results (rounds.cpp)."""
    there, back = [], []
    for length in grid_of(nodes):
        parcel /= length
        there.append(Round(length - 1, parcel, parcel * (length - 1)))
        back.append(Round(length - 1, parcel))
    return there + back[::-1]


def pairwise_rounds(parcel: float, nodes: int) -> list[Round]:
    """As it was before nodes were a grid: each leader with its like on every other node."""
    part = parcel / nodes
    return [Round(nodes - 1, part, part * (nodes - 1)), Round(nodes - 1, part)]


def alltoall_rounds(parcel: float, nodes: int) -> list[Round]:
    return [Round(nodes - 1, parcel / nodes)]


def halving_rounds(parcel: float, nodes: int) -> list[Round]:
    """Not in the code: recursive halving, then doubling, between the leaders of one number."""
    steps = [parcel / 2**step for step in range(1, math.ceil(math.log2(nodes)) + 1)]
    return [Round(1, size, size) for size in steps] + [Round(1, size) for size in reversed(steps)]


class TwoLevels:
    """A leader's part of a call, as TwoLevelExchange takes it (src/coll/inter/exchange.cpp)."""

    FLIGHTS = 4  # chunks that have memory at a time
    AHEAD = 3  # that go up before the first comes down

    def __init__(
        self, kind: str, block: int, job: Job, *, direct: bool, single: bool, rounds: Rounds
    ):
        self.kind, self.job, self.direct = kind, job, direct
        self.rounds = rounds
        parcel = 4 * MI if direct else 384 * KI
        self.plan = Plan.of(kind, block, job, single=single, parcel=parcel)
        self.sharing = max(1.0, self.plan.leaders / job.adapters)
        self.core, self.out, self.into, self.node = Line(), Line(), Line(), Line()
        self.to_host, self.to_device, self.device = Line(), Line(), Line()
        self.now = 0.0

    def seconds(self) -> float:
        states = ["empty"] * self.plan.chunks
        events: list[tuple[float, int, int]] = []
        order = itertools.count()
        steps: dict[int, Iterator[float]] = {}
        up = down = 0

        def go_on(number: int) -> None:
            at = next(steps[number], None)
            if at is None:
                states[number] = "ready" if states[number] == "up" else "done"
            else:
                heapq.heappush(events, (at, next(order), number))

        while True:
            # What takes place within the node begins in one order: up, up, up, down, up, down, ...
            while down < self.plan.chunks:
                is_down = up == self.plan.chunks or up - down == self.AHEAD
                number = down if is_down else up
                before = number - self.FLIGHTS
                if is_down and states[number] != "ready":
                    break
                if not is_down and before >= 0 and states[before] != "done":
                    break
                states[number] = "down" if is_down else "up"
                steps[number] = self.go_down(number) if is_down else self.go_up(number)
                up, down = (up, down + 1) if is_down else (up + 1, down)
                go_on(number)
            if not events:
                return self.now
            self.now, _, number = heapq.heappop(events)
            go_on(number)

    def parcel(self, number: int) -> float:
        return self.plan.chunk(number)[1] * self.plan.volume

    def local(self, number: int, up: bool) -> float:
        chunk, share = self.plan.chunk(number)
        if self.kind == "alltoall":
            return self.job.within("alltoall", share * self.plan.volume / self.job.ranks)
        through = self.job.on_device(chunk) if self.job.ranks > 1 else 0.0  # the region
        if up:
            return through + self.job.within("reduce_scatter_block", chunk)
        return through + self.job.within("allgather", share)

    def go_up(self, number: int) -> Iterator[float]:
        parcel = self.parcel(number)
        yield self.node.serve(self.now, self.local(number, up=True))
        if self.direct:
            yield self.device.serve(self.now, self.job.on_device(parcel))
        else:
            yield self.to_host.serve(self.now, self.job.to_host(parcel))
        for one in self.rounds(parcel, self.job.nodes):
            yield self.exchange(one)
            if one.summed:
                yield self.add(one.summed, parcel)

    def go_down(self, number: int) -> Iterator[float]:
        parcel = self.parcel(number)
        if self.direct:
            yield self.device.serve(self.now, self.job.on_device(parcel))
        else:
            yield self.to_device.serve(self.now, self.job.to_device(parcel))
        yield self.node.serve(self.now, self.local(number, up=False))

    def exchange(self, one: Round) -> float:
        """All messages of a round at once. By RDMA each is named by a message first, then asked for."""
        job = self.job
        byte = job.device_byte if self.direct else job.byte
        service = max(job.gap, one.size * byte) * self.sharing
        calls = 4 if self.direct else 2
        posted = self.core.serve(self.now, calls * one.messages * job.overhead)
        journeys = 2 * (job.latency + job.overhead) if self.direct else 0.0
        first = posted - (one.messages - 1) * job.overhead + journeys
        self.out.serve(first, one.messages * service)
        came = self.into.serve(first + job.latency, one.messages * service)
        return max(came, posted + journeys + job.latency + service) + job.overhead

    def add(self, summed: float, parcel: float) -> float:
        figures = FIGURES["accord"]
        if self.direct:
            return self.device.serve(
                self.now, figures["launch_us"] * US + (summed + parcel) * self.job.on_device.byte
            )
        return self.core.serve(self.now, summed * 1e-9 / figures["host_reduce_gb_s"])


def two_levels(
    kind: str,
    block: int,
    job: Job,
    *,
    direct: bool = False,
    single: bool = False,
    rounds: Rounds | None = None,
) -> float:
    rounds = rounds or (grid_rounds if kind == "allreduce" else alltoall_rounds)
    return TwoLevels(kind, block, job, direct=direct, single=single, rounds=rounds).seconds()


# ---- Accord: pair by pair, and the host MPI ------------------------------------------------------


def pairs(block: int, job: Job, *, direct: bool = False) -> float:
    """An alltoall of long blocks (src/coll/pairs): no two ranks send to one at a time."""
    peers = job.size - job.ranks
    first = min(block, 64 * KI)
    piece = 8 * MI if direct else 384 * KI
    pieces = 1 + -(-(block - first) // piece)
    calls = (4 if direct else 2) * pieces * peers * job.overhead
    sharing = max(1.0, job.ranks / job.adapters)
    byte = job.device_byte if direct else job.byte
    link = peers * max(pieces * job.gap, block * byte) * sharing
    journeys = 2 * (job.latency + job.overhead) if direct else 0.0
    within = job.within("alltoall", block)
    if direct:
        return max(calls, link, within) + journeys + job.latency + 2 * job.overhead
    copies = pieces * job.to_host.latency + peers * block * job.to_host.byte
    last = min(block, piece)
    return (
        max(calls, link, copies, within)
        + job.to_host(last)
        + job.to_device(last)
        + job.latency
        + 2 * job.overhead
    )


def messages(block: int, job: Job) -> float:
    """An alltoall that is written as staged messages in the order of the ranks.

    All ranks send to the first node first: what is for the last one begins to come only once the others are
    served, and then takes as long as all that any node gets.
    """
    sharing = max(1.0, job.ranks / job.adapters)
    service = max(job.gap, block * job.byte) * sharing * job.ranks  # of a rank, for one node
    others = job.nodes - 1
    late = (others - 1) * service  # of the last node's first message
    copies = job.to_host(block) + job.to_device(block)
    calls = 2 * (job.size - 1) * job.overhead
    return max(calls, others * service + late) + copies + job.latency + 2 * job.overhead


def host_mpi(kind: str, block: int, job: Job) -> float:
    """Staged: copied to the host, by the host MPI as MPICH does it by default, and back."""
    hop = job.latency + 2 * job.overhead
    near = math.ceil(math.log2(job.ranks))  # steps within the node, which come first
    hops = math.ceil(math.log2(job.nodes)) * hop + near * 2 * job.overhead
    steps = near + math.ceil(math.log2(job.nodes))
    sharing = max(1.0, job.ranks / job.adapters)
    byte = job.byte * sharing
    adds = 1e-9 / FIGURES["accord"]["host_reduce_gb_s"]
    if kind == "allreduce":
        copies = job.to_host(block) + job.to_device(block)
        if block <= 2 * KI:
            return copies + hops + steps * block * (byte + adds)
        within = block * (1 - 1 / job.ranks)  # recursive halving begins with the nearest
        between = block / job.ranks
        carried = 2 * within * CPU_BYTE + 2 * between * byte
        return copies + 2 * hops + carried + block * adds
    total = block * job.size
    copies = job.to_host(total) + job.to_device(total)
    far = job.size - job.ranks
    if block <= 256:
        return copies + hops + steps * total / 2 * (byte + CPU_BYTE)
    calls = 2 * job.size * job.overhead
    if block <= 32 * KI:
        return copies + max(calls, far * max(job.gap, block * job.byte) * sharing) + hop
    return copies + far * (hop + block * byte)


# ---- NCCL ----------------------------------------------------------------------------------------


def ring(size: int, job: Job, protocol: dict[str, float]) -> float:
    """Twice around all ranks: each link between nodes carries 2 (P - 1) / P of what its ring has."""
    far = 2 * (job.nodes - 1) * max(protocol["far_us"] * US, job.latency + 2 * job.overhead)
    near = 2 * (job.size - job.nodes) * protocol["near_us"] * US
    carried = 2 * (job.size - 1) / job.size * size / job.adapters
    return protocol["base_us"] * US + far + near + carried * job.byte / protocol["efficiency"]


def tree(size: int, job: Job, protocol: dict[str, float]) -> float:
    """Two trees of the nodes, each with half: a node is within one of them and a leaf of the other."""
    depth = math.ceil(math.log2(job.nodes))
    far = 2 * depth * max(protocol["far_us"] * US, job.latency + 2 * job.overhead)
    near = 2 * (job.ranks - 1) * protocol["near_us"] * US
    carried = 2 * size / job.adapters
    return protocol["base_us"] * US + far + near + carried * job.byte / protocol["efficiency"]


def nccl(algorithm: str, size: int, job: Job) -> float:
    schedule = {"ring": ring, "tree": tree}[algorithm]
    protocols = FIGURES["nccl"]["protocols"].values()
    return min(schedule(size, job, protocol[algorithm]) for protocol in protocols)


def nccl_alltoall(block: int, job: Job) -> float:
    """Grouped sends and receives: a message for each peer, from the GPU's own adapter."""
    protocol = FIGURES["nccl"]["protocols"]["Simple"]["ring"]
    peers = job.size - job.ranks
    sharing = max(1.0, job.ranks / job.adapters)
    link = peers * max(job.gap, block * job.byte) * sharing
    hop = max(protocol["far_us"] * US, job.latency + 2 * job.overhead)
    return protocol["base_us"] * US + hop + max(peers * job.overhead, link)


# ---- predictions ---------------------------------------------------------------------------------


def taken(kind: str, block: int, job: Job, *, direct: bool = False) -> float:
    """What Accord takes by itself (src/coll/algorithms/two_level.cpp)."""
    if kind == "alltoall":
        return pairs(block, job, direct=direct) if block >= 64 * KI else host_mpi(kind, block, job)
    messages = max(grid_of(job.nodes))
    is_worth_it = block >= 256 * KI and block // job.ranks // messages >= 16 * KI
    return (
        two_levels(kind, block, job, direct=direct) if is_worth_it else host_mpi(kind, block, job)
    )
