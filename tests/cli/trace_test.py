# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""ACCORD_TRACE, ACCORD_STAGES and ACCORD_TRACE_FILE on a real program, over the host runtime."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord.paths import Home

from conftest import REPOSITORY, Accord, Mpi

RANKS = 2

# What is told does not depend on the MPI.
pytestmark = pytest.mark.one_mpi

_PROGRAM = r"""
#include <accord/accord.h>
#include <mpi.h>
#include <stdlib.h>
enum { kShort = 100, kLong = 65536 };
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void *a, *b;
  if (accord_malloc(&a, 1 << 20, ACCORD_MEMORY_DEVICE) != 0) return 1;
  if (accord_malloc(&b, 1 << 20, ACCORD_MEMORY_DEVICE) != 0) return 1;
  char* host = malloc(1 << 20);
  for (int i = 0; i < 3; i++)
    MPI_Allreduce(MPI_IN_PLACE, a, kLong, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(a, host, kShort, MPI_DOUBLE, MPI_MAX, 1, MPI_COMM_WORLD);
  MPI_Allreduce(a, b, kLong / 4, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int counts[2] = {kShort, kShort}, displacements[2] = {0, kShort};
  MPI_Allgatherv(a, kShort, MPI_INT, b, counts, displacements, MPI_INT, MPI_COMM_WORLD);
  MPI_Allreduce(a, b, kShort, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Request requests[2];
  MPI_Ibcast(a, kShort, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(MPI_IN_PLACE, b, kShort, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) MPI_Send(a, kShort, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(a, kShort, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  accord_free(a);
  accord_free(b);
  return 0;
}
"""

# The lines of rank 0 without their times, in the order in which the calls end.
_LINES = [
    "allreduce 262144 B float sum device in place, comm of 2, rank 0 -> node (this call votes)",
    "allreduce 262144 B float sum device in place, comm of 2, rank 0 -> node (this call votes)",
    "allreduce 262144 B float sum device in place, comm of 2, rank 0 -> node (voted)",
    "reduce 800 B double max device, root 1, comm of 2, rank 0 -> staged (below ACCORD_NODE_BYTES)",
    "allreduce 262144 B long_double sum device, comm of 2, rank 0"
    " -> staged (operation or type not on device)",
    "allgatherv 400 B out 800 B in int device, comm of 2, rank 0"
    " -> staged (below ACCORD_NODE_BYTES)",
    "allreduce 400 B int sum device, comm of 1, rank 0 -> staged (one rank)",
    "send 100 B byte device -> staged (point-to-point)",
]
_NON_BLOCKING = {
    "ibcast 400 B int device, root 0, comm of 2, rank 0 -> staged (below ACCORD_NODE_BYTES)",
    "iallreduce 400 B int sum device in place, comm of 2, rank 0"
    " -> staged (below ACCORD_NODE_BYTES)",
}

Run = Callable[..., str]


@pytest.fixture
def run(mpi: Mpi, home: Home, build: Callable[..., Path], accord: Accord) -> Run:
    """run(NAME=value) -> what two ranks of the program write to stderr."""
    if not home.shim(mpi.abi).is_file():
        pytest.skip(f"Accord is built without a shim for the {mpi.abi.label}")
    lib = mpi.compiler.parent.parent / "lib"
    rpath = [f"-Wl,-rpath,{home.lib}", f"-Wl,-rpath,{lib}"]
    program = build(
        mpi.compiler,
        _PROGRAM,
        f"-I{REPOSITORY / 'include'}",
        f"-L{home.lib}",
        "-laccord",
        *rpath,
        "-Wl,--no-as-needed",
    )

    def start(**settings: object) -> str:
        # Which call is the first to go straight between the buffers depends on how the ranks meet.
        settings = {"ACCORD_RUNTIME": "host", "ACCORD_DIRECT_BYTES": 0, **settings}
        done = accord("run", "-n", RANKS, program, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    return start


def lines_of(stderr: str, rank: int) -> list[str]:
    found = re.findall(rf"^accord: info: \[rank {rank}\] (.* -> .*)$", stderr, re.MULTILINE)
    assert all(re.search(r" \d+\.\d us$", line) for line in found)
    return [re.sub(r" \d+\.\d us$", "", line) for line in found]


def test_a_line_a_call_says_what_which_way_and_why(run: Run) -> None:
    stderr = run(ACCORD_TRACE=1, ACCORD_INBOX_BYTES=0)
    lines = lines_of(stderr, 0)
    assert [line for line in lines if line not in _NON_BLOCKING] == _LINES
    assert {line for line in lines if line in _NON_BLOCKING} == _NON_BLOCKING
    received = "reduce 800 B double max device to host, root 1, comm of 2, rank 1"
    assert f"{received} -> staged (below ACCORD_NODE_BYTES)" in lines_of(stderr, 1)
    assert "where the time went" not in stderr


def test_the_reasons_of_a_vote(run: Run) -> None:
    # Regions too small for a chunk: every rank declines, with the cause.
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_REGION_BYTES="1K"), 0)
    words = "group declined: node: exchange regions are too small for so many ranks"
    assert lines[0].endswith(f"-> staged (this call votes: {words})")
    assert lines[2].endswith(f"-> staged (voted: {words})")
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_NODE_BYTES=0, ACCORD_INBOX_BYTES=0), 0)
    assert lines[0].endswith("-> staged (ACCORD_NODE_BYTES is 0)")


def test_the_reasons_of_calls_that_fit_into_inboxes(run: Run) -> None:
    # Regions, which the long calls before it have made, are not for the short one.
    short = "reduce 800 B double max device, root 1, comm of 2, rank 0"
    lines = lines_of(run(ACCORD_TRACE=1), 0)
    seldom = "not often enough for inboxes (ACCORD_INBOX_CALLS)"
    assert f"{short} -> staged (this call votes: {seldom})" in lines
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_INBOX_CALLS=1), 0)
    assert lines[0].endswith("-> inbox (this call votes)")
    assert lines[2].endswith("-> inbox (voted)")
    assert f"{short} -> inbox (this call votes)" in lines
    # Both ranks' servers want the device for themselves: regions instead, where a call is long.
    declined = "group declined: node: ranks share a device, where kernels must not wait"
    settings = {"ACCORD_INBOX_CALLS": 1, "ACCORD_TEST_EXCLUSIVE_DEVICE": 1}
    lines = lines_of(run(ACCORD_TRACE=1, **settings), 0)
    assert lines[0].endswith("-> node (this call votes)")
    assert f"{short} -> staged (this call votes: {declined})" in lines
    # A turn would take longer than the way through host memory.
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_TEST_TURN_US=150, **settings), 0)
    assert lines[0].endswith("-> node-host (this call votes)")
    # Unless one server runs the kernels of both side by side, as under NVIDIA's MPS.
    settings = {"ACCORD_TEST_EXCLUSIVE_DEVICE": 1, "ACCORD_TEST_KERNEL_SERVER": 7}
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_INBOX_CALLS=1, **settings), 0)
    assert f"{short} -> inbox (this call votes)" in lines


def table_of(stderr: str) -> dict[tuple[str, str], dict[str, float]]:
    """By call and path, the numbers under each heading."""
    tables = stderr.split("where the time went, in us a call\n")
    assert len(tables) == 2, stderr
    heads, *rows = tables[1].strip().splitlines()
    names = re.split(r"\s{2,}", heads.strip())
    table = {}
    for row in rows:
        words = row.split()
        assert len(words) == len(names), row
        table[words[0], words[1]] = dict(zip(names[2:], map(float, words[2:])))
    return table


def test_the_table_of_the_stages(run: Run) -> None:
    table = table_of(run(ACCORD_STAGES=1))
    node = table["allreduce", "node"]
    assert node["calls"] == 3
    # What every such call goes through, and joining once.
    assert all(node[stage] > 0 for stage in ("classify", "vote", "join", "move", "reduce"))
    assert node["host MPI"] == 0
    staged = table["allreduce", "staged"]
    assert staged["calls"] == 2 and staged["move"] == 0
    assert all(staged[stage] > 0 for stage in ("copy in", "host MPI", "copy out"))
    for row in table.values():
        stages = [value for name, value in row.items() if name not in ("calls", "all")]
        assert sum(stages) == pytest.approx(row["all"], abs=0.1 * len(stages))


def test_trace_files_are_what_perfetto_reads(run: Run, tmp_path: Path) -> None:
    stderr = run(ACCORD_TRACE_FILE=tmp_path / "trace")
    assert "accord:" not in stderr
    traces: list[list[dict[str, Any]]] = []
    for rank in range(RANKS):
        file = tmp_path / f"trace.{rank}.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        trace = json.loads(file.read_text())
        assert trace["otherData"]["dropped_events"] == 0
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        assert {event["pid"] for event in events} == {rank}
        traces.append(events)
        calls = [event for event in events if event["cat"] == "call"]
        assert len(calls) == len(_LINES) + len(_NON_BLOCKING)
        for stage in (event for event in events if event["cat"] == "stage"):
            assert any(inside(stage, call) for call in calls if call["tid"] == stage["tid"])
        # Each lane shows one call at a time.
        for lane in {call["tid"] for call in calls}:
            spans = sorted((call for call in calls if call["tid"] == lane), key=lambda c: c["ts"])
            assert all(end(a) <= b["ts"] + 0.001 for a, b in zip(spans, spans[1:]))
    assert sorted(path.name for path in tmp_path.glob("trace*")) == ["trace.0.json", "trace.1.json"]
    # One clock: no rank leaves a reduction to all before the other has come.
    first, second = (next(e for e in events if e["name"] == "allreduce") for events in traces)
    assert first["ts"] <= end(second) and second["ts"] <= end(first)
    assert first["args"]["what"].startswith("262144 B float sum device in place")
    assert first["args"]["path"] == "node" and first["args"]["why"] == "this call votes"


def end(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]


def inside(stage: dict[str, Any], call: dict[str, Any]) -> bool:
    return call["ts"] <= stage["ts"] + 0.001 and end(stage) <= end(call) + 0.001


def test_nothing_is_said_unasked(run: Run, tmp_path: Path) -> None:
    assert "accord:" not in run()
    assert not list(tmp_path.glob("*.json"))


def test_who_asked_for_a_way(run: Run) -> None:
    table = REPOSITORY / "tests" / "mpi" / "table.json"
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_TABLE=table), 0)
    assert lines[0].endswith("-> node (this call votes, ACCORD_TABLE)")
    assert lines[2].endswith("-> node (voted, ACCORD_TABLE)")
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_TABLE=table, ACCORD_ALGORITHM="inbox"), 0)
    assert lines[2].endswith("-> inbox (voted, ACCORD_ALGORITHM)")
    lines = lines_of(run(ACCORD_TRACE=1, ACCORD_ALGORITHM="staged"), 0)
    assert lines[0].endswith("-> staged (ACCORD_ALGORITHM)")
