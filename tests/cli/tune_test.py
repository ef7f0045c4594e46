# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord tune` over the host runtime: the table it writes, what interrupts it, and that the table counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from accord.benchmark import targets
from accord.mpi import Abi
from accord.paths import Home

from conftest import _OPENMPI, NIGHTLY, PYTHON, Accord

SETTINGS = {"ACCORD_RUNTIME": "host", "ACCORD_REGION_BYTES": "1M", "ACCORD_INBOX_CALLS": "1"}
GRID = ("--ranks", "2", "--min", "64", "--max", "16K", "--factor", "256")
# No more than a busy machine needs to get through.
BRIEFLY = ("--budget", "100", "--seconds", "0.03")


@pytest.fixture(autouse=True)
def measurable(home: Home) -> None:
    if not any(home.bench(target.abi).is_file() for target in targets()):
        pytest.skip("no benchmark program with an MPI of this machine")


def tuned(accord: Accord, tmp_path: Path, *words: object) -> tuple[dict[str, Any], str]:
    """The table and what was printed. A busy machine may need the same command several times."""
    path = tmp_path / "table.json"
    output = ""
    for _ in range(5):
        done = accord("tune", "--output", path, *words, **SETTINGS)
        said = done.stdout + done.stderr
        output += said
        if "measured in time" not in said:
            break
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text()), output


def test_a_table_is_measured_and_then_counts(accord: Accord, tmp_path: Path) -> None:
    table, _ = tuned(accord, tmp_path, "allreduce", "alltoall", *GRID, *BRIEFLY)
    assert not (tmp_path / "table.records.jsonl").exists()
    assert table["machine"]["signature"] == "host" and table["command"].startswith("accord tune")
    assert table["settings"] == SETTINGS
    keys = [(row["collective"], row["size_bytes"]) for row in table["points"]]
    assert sorted(keys) == [
        (name, size) for name in ("allreduce", "alltoall") for size in (64, 16384)
    ]
    for point in table["points"]:
        names = [one["algorithm"] for one in point["candidates"]]
        left_out = point["left_out"]
        assert "auto" in names and point["chosen"] in names
        assert {"staged", "auto"} <= {*names, *left_out}
        wanted = "node-two-shot" if point["collective"] == "allreduce" else "node"
        assert wanted in {*names, *left_out}
        # What the library says that a call can take, it took.
        assert not [why for why in left_out.values() if "went by" in why]
        for one in point["candidates"]:
            assert one["median_us"] > 0 and one["iterations"] > 0 and one["path"] != "-"
    check_choices(accord, tmp_path, table)


def check_choices(accord: Accord, tmp_path: Path, table: dict[str, Any]) -> None:
    """What the library makes of the table is what the table's points say."""
    for point in table["points"]:
        where = ("--bytes", point["size_bytes"], "--table", tmp_path / "table.json")
        done = accord("explain", point["collective"], "--json", *where, **SETTINGS)
        answer = json.loads(done.stdout)
        assert not answer["problems"]
        assert answer["measured"]["chosen"] == point["chosen"]
        assert answer["table_says"]["algorithm"] == point["chosen"]
        if point["chosen"] == "auto":
            assert answer["origin"] == "rule"
        else:
            assert answer["origin"] == "table" and answer["algorithm"] == point["chosen"]


def test_every_algorithm_that_a_call_can_take_is_planned(accord: Accord) -> None:
    words = ("allreduce", "allgather", *GRID, "--dry-run")
    done = accord("tune", *words, **SETTINGS)
    rows = {tuple(line.split()[:3]): line.split()[3:] for line in done.stdout.splitlines()}
    shots = [f"{way}-{shot}-shot" for way in ("node", "node-direct") for shot in ("one", "two")]
    assert rows["allreduce", "2", "64"] == [
        "staged",
        "staged-pipelined",
        *shots,
        "node-direct-spread",
        "node-host",
        "packets",
    ]
    # Inboxes are the rule's own there, and an allgather is neither cut into chunks nor in shots.
    assert rows["allgather", "2", "16384"] == [
        "staged",
        "node",
        "node-direct",
        "node-host",
        "packets",
    ]
    assert len(rows) == 4
    done = accord("tune", *words, **{**SETTINGS, "ACCORD_INBOX_BYTES": "0"})
    rows = {tuple(line.split()[:3]): line.split()[3:] for line in done.stdout.splitlines()}
    assert rows["allgather", "2", "16384"] == ["staged", "node", "node-host"]
    # The benchmark measures whole elements, and its records name what it measured.
    done = accord("tune", "bcast", "--ranks", 2, "--min", 10, "--max", 40, "--dry-run", **SETTINGS)
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["8", "32"]


def test_messages_are_tuned_as_collectives_are(accord: Accord, tmp_path: Path) -> None:
    table, _ = tuned(accord, tmp_path, "send", *GRID, *BRIEFLY)
    assert {(row["collective"], row["ranks"]) for row in table["choices"]} == {("send", 2)}
    assert [point["size_bytes"] for point in table["points"]] == [64, 16384]
    # All are measured; on a busy machine one may be left out for being slow, never for another reason.
    for point in table["points"]:
        left_out = point["left_out"]
        measured = {one["algorithm"] for one in point["candidates"]}
        assert {*left_out} | measured == {"auto", "copy-engine", "staged"}
        assert all("times as long as" in why for why in left_out.values()), left_out
    check_choices(accord, tmp_path, table)
    done = accord("tune", "send", *GRID, "--dry-run", "--ranks", "4", **SETTINGS)
    assert done.stdout.splitlines() == [
        "send 2 64 staged copy-engine",
        "send 2 16384 staged copy-engine",
    ]


def test_messages_between_nodes_are_tuned(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = accord("tune", "net_send", *GRID[2:], "--dry-run", **SETTINGS)
    assert done.stdout.splitlines()[0].split()[:3] == ["net_send", "2", "64"]
    long = done.stdout.splitlines()[-1].split()
    # The rule stages them: they are shorter than ACCORD_NET_BYTES.
    assert "staged" not in long and {"direct", "passive", "active1"} <= {*long}
    done = accord("tune", "net_send", "allreduce", *GRID, "--dry-run", **SETTINGS)
    assert done.returncode != 0 and "net_send is measured alone" in done.stderr
    # Two nodes of pretence; where there is no UCX all are staged, and say so.
    monkeypatch.setitem(SETTINGS, "ACCORD_NODE_SPLIT", "1")
    table, _ = tuned(accord, tmp_path, "net_send", *GRID[2:], *BRIEFLY)
    (row,) = table["choices"]
    assert (row["collective"], row["ranks"]) == ("net_send", 2)
    assert row["ranges"][-1]["algorithm"] == "auto"
    assert all(one["algorithm"] != "auto" for one in row["ranges"][:-1])
    for point in table["points"]:
        assert "direct" in {*point["left_out"]} | {one["algorithm"] for one in point["candidates"]}


def test_records_of_messages_between_nodes_say_so(accord: Accord, tmp_path: Path) -> None:
    words = {"operation": "latency", "size_bytes": 1 << 20}
    lines = [
        record(**words, path="net-direct"),
        record(**words, path="staged", algorithm="net_send:staged", median_us=9.0),
    ]
    done = from_lines(accord, tmp_path, *lines)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "table.json").read_text())["choices"]
    # Whatever the rule of the programs to come will be.
    assert (row["collective"], row["ranges"][0]["algorithm"]) == ("net_send", "direct")


def test_messages_between_nodes_go_by_the_least_loss_of_latency_and_windows(
    accord: Accord, tmp_path: Path
) -> None:
    def line(operation: str, algorithm: str, median_us: float) -> dict[str, Any]:
        words = {"operation": operation, "size_bytes": 1 << 20, "median_us": median_us}
        return record(**words, algorithm=f"net_send:{algorithm}", path=f"net-{algorithm}")

    # The fastest alone, the one with the widest windows, and one that is nearly as good at both.
    times = {"active2": (8.0, 20.0), "direct": (16.0, 10.0), "passive": (9.0, 11.0)}
    latencies = [line("latency", name, us) for name, (us, _) in times.items()]
    windows = [line("bibandwidth", name, us) for name, (_, us) in times.items()]
    half = line("latency", "active1", 8.5)  # nobody knows its windows
    for lines, chosen in (
        ([*latencies, *windows, half], "passive"),
        (latencies, "active2"),
        (windows, "direct"),
    ):
        done = from_lines(accord, tmp_path, *lines)
        assert done.returncode == 0, done.stderr
        table = json.loads((tmp_path / "table.json").read_text())
        assert table["choices"][0]["ranges"][0]["algorithm"] == chosen
        (point,) = table["points"]
        if half in lines:
            assert point["left_out"] == {"active1": "bibandwidth: not measured"}
            assert point["candidates"][0]["ratios"] == {"latency": 1.125, "bibandwidth": 1.1}
        (tmp_path / "table.json").unlink()


def interrupted(tmp_path: Path, words: list[str], number: int) -> tuple[int, str, Path]:
    """Starts a tuning, and sends it a signal once two points are there."""
    environment = {**os.environ, **_OPENMPI, **SETTINGS, "PYTHONPATH": str(PYTHON)}
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *words],
        cwd=tmp_path,
        # Who is killed leaves its temporary files.
        env=environment | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    state = tmp_path / "table.records.jsonl"
    begin_s = time.monotonic()
    while not state.exists() or len(points_in(state)) < 2:
        assert process.poll() is None and time.monotonic() - begin_s < 100
        time.sleep(0.02)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output, state


def points_in(state: Path) -> set[tuple[str, int]]:
    lines = [line for line in state.read_text().splitlines()[1:] if line.endswith("}")]
    return {(row["operation"], row["size_bytes"]) for row in map(json.loads, lines)}


_SIGNALS = [signal.SIGINT, signal.SIGKILL, *([signal.SIGTERM] if NIGHTLY else [])]


@pytest.mark.parametrize("number", _SIGNALS)
def test_an_interrupted_tuning_goes_on(
    accord: Accord, tmp_path: Path, number: signal.Signals
) -> None:
    grid = [
        "bcast",
        "scatter",
        "--ranks",
        "2",
        "--min",
        "64",
        "--max",
        "1K",
        "--factor",
        "4",
        *BRIEFLY,
    ]
    words = ["tune", "--output", str(tmp_path / "table.json"), *grid]
    code, output, state = interrupted(tmp_path, words, number)
    if number != signal.SIGKILL:
        assert code == 130 and "the same command goes on from here" in output
    assert not (tmp_path / "table.json").exists()
    state.write_text(state.read_text() + '{"operation": "bcast", "size_by')
    done = sorted(points_in(state))
    before = state.read_text()
    table, output = tuned(accord, tmp_path, *grid)
    assert f"{len(done)} points were measured before" in output
    kept = {(row["collective"], row["size_bytes"]): row for row in table["points"]}
    assert len(kept) == 6
    first = json.loads(before.splitlines()[1])
    unclear = "unclear points" in output
    mine = kept[first["operation"], first["size_bytes"]]["candidates"]
    medians = [one["median_us"] for one in mine if one["algorithm"] == "auto"]
    assert unclear or medians == [round(first["median_us"], 3)]


def test_what_belongs_to_another_tuning_is_not_taken(accord: Accord, tmp_path: Path) -> None:
    state = tmp_path / "table.records.jsonl"
    state.write_text('{"signature": "8 x Other", "mpi": "MPICH", "settings": {}}\n')
    words = ("tune", "bcast", "--output", tmp_path / "table.json", *GRID, *BRIEFLY)
    done = accord(*words, **SETTINGS)
    assert done.returncode == 2 and "--fresh begins anew" in done.stderr
    assert accord(*words, "--fresh", **SETTINGS).returncode == 0


def test_a_table_from_records(accord: Accord, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    words = ("allreduce", "-n", 2, "--memory", "device", "--min", 64, "--max", 64, "--json", file)
    names = ("--algorithm", "staged", "node-two-shot", "--seconds", "0.2")
    done = accord("bench", *words, *names, **SETTINGS)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in file.read_text().splitlines()]
    paths = {row["algorithm"]: row["path"] for row in records}
    assert paths == {"auto": "inbox", "staged": "staged", "node-two-shot": "node"}
    table, _ = tuned(accord, tmp_path, "--from", file)
    (point,) = table["points"]
    assert {one["algorithm"] for one in point["candidates"]} == set(paths)
    check_choices(accord, tmp_path, table)
    config = tmp_path / "config" / "accord" / "tables"
    config.mkdir(parents=True)
    (tmp_path / "table.json").rename(config / "mine.json")
    assert accord("bench", *words, "--iterations", 5, **SETTINGS).returncode == 0
    used = json.loads(file.read_text().splitlines()[0])["table"]
    assert used == str(config / "mine.json"), "a run of the benchmark takes the machine's table"


def test_ranks_that_share_devices_get_tables_of_their_own(accord: Accord, tmp_path: Path) -> None:
    shared = {**SETTINGS, "ACCORD_TEST_EXCLUSIVE_DEVICE": "1"}
    folder = tmp_path / "config" / "accord" / "tables"
    words = ("tune", "bcast", "--ranks", 2, "--min", 64, "--max", 64, *BRIEFLY)
    for more, served in (("", {}), (" under MPS", {"ACCORD_TEST_KERNEL_SERVER": "7"})):
        signature = f"host, shared{more}"
        done = accord(*words, **shared, **served)
        assert done.returncode == 0 and f"({signature})" in done.stdout, done.stderr
        path = folder / f"{signature.lower().replace(', ', '-').replace(' ', '-')}.json"
        assert json.loads(path.read_text())["machine"]["signature"] == signature
    # One is not the other's earlier table.
    path = folder / "host-shared.json"
    done = accord(*words, "--output", path, **shared, ACCORD_HOST_DEVICES="2")
    assert done.returncode == 0 and "is of another machine" in done.stderr
    table = json.loads(path.read_text())
    assert table["machine"]["signature"] == "host"


def test_ranks_that_share_devices_are_not_tuned_with_others(accord: Accord) -> None:
    words = ("tune", "--min", 64, "--max", 64, "--dry-run")
    two = {**SETTINGS, "ACCORD_TEST_EXCLUSIVE_DEVICE": "1", "ACCORD_HOST_DEVICES": "2"}
    done = accord(*words, "--ranks", 2, "--ranks", 4, **two)
    assert done.returncode == 2 and "run accord tune once for each" in done.stderr
    assert "2 ranks have devices of their own, and 4 share devices" in done.stderr
    # A message's two ranks would have devices of their own.
    planned = {
        ranks: {
            line.split()[0] for line in accord(*words, "--ranks", ranks, **two).stdout.splitlines()
        }
        for ranks in (2, 4)
    }
    assert planned[2] - planned[4] == {"send"} and planned[4]
    done = accord(*words, "--ranks", 4, **SETTINGS | {"ACCORD_TEST_EXCLUSIVE_DEVICE": "1"})
    assert "send" in {line.split()[0] for line in done.stdout.splitlines()}
    done = accord(*words, "send", "bcast", "--ranks", 4, **two)
    assert done.returncode == 2 and "run accord tune once for each" in done.stderr
    done = accord(*words, "bcast", "--ranks", 4, SLURM_JOB_NODELIST="node[1-2]", **two)
    assert done.returncode == 2 and "run accord tune on one node" in done.stderr
    done = accord(*words, "net_send", **two)
    assert done.returncode == 0, done.stderr


def test_a_launcher_that_spreads_ranks_otherwise_is_found_out(
    accord: Accord, home: Home, tmp_path: Path
) -> None:
    if not home.bench(Abi.MPICH).is_file():
        pytest.skip("no MPICH")
    path = tmp_path / "table.json"
    words = ("tune", "bcast", "--ranks", 2, "--min", 64, "--max", 64, "--output", path)
    # Speaks of two nodes with a rank each, and MPICH knows better.
    settings = {**SETTINGS, "ACCORD_TEST_EXCLUSIVE_DEVICE": "1", "SLURM_TASKS_PER_NODE": "1(x2)"}
    done = accord(*words, *BRIEFLY, "--mpi", "mpich", **settings)
    assert done.returncode == 2 and not path.exists()
    assert 'put 2 of 2 ranks on one node; that makes no table for "host"' in done.stderr


def test_records_say_whether_their_ranks_shared_devices(accord: Accord, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"

    def tuned_from(*machines: dict[str, Any], **variables: object) -> tuple[str, str]:
        lines = [
            record(machine={"runtime": "host", "device": "", **machine}, size_bytes=64 << number)
            for number, machine in enumerate(machines)
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ("tune", "--from", file, "--output", tmp_path / "table.json")
        done = accord(*words, **SETTINGS, ACCORD_TEST_EXCLUSIVE_DEVICE="1", **variables)
        if done.returncode != 0:
            return "", done.stderr
        return json.loads((tmp_path / "table.json").read_text())["machine"]["signature"], ""

    assert tuned_from({}) == ("host, shared", "")
    assert tuned_from({"local_ranks": 1}) == ("host", "")  # two nodes
    assert tuned_from({"local_ranks": 2, "mps": False}) == ("host, shared", "")
    assert tuned_from({}, ACCORD_HOST_DEVICES="2") == ("host", "")
    server = {"ACCORD_TEST_KERNEL_SERVER": "7"}
    assert tuned_from({"mps": True}, **server) == ("host, shared under MPS", "")
    assert "line 1: measured without MPS" in tuned_from({"mps": False}, **server)[1]
    assert "line 1: measured under MPS" in tuned_from({"mps": True})[1]
    mixed = tuned_from({"local_ranks": 1}, {"local_ranks": 2})
    assert "run accord tune once for each" in mixed[1]


def record(**changes: Any) -> dict[str, Any]:
    made = {
        "operation": "allreduce",
        "ranks": 2,
        "size_bytes": 64,
        "algorithm": "auto",
        "path": "inbox",
        "send_memory": "device",
        "recv_memory": "device",
        "machine": {"runtime": "host", "device": ""},
        **{name: 5.0 for name in ("median_us", "p5_us", "p95_us")},
        "iterations": 100,
        "verified": 64,
        "correct": True,
    }
    return {name: value for name, value in {**made, **changes}.items() if value != "left out"}


def from_lines(accord: Accord, tmp_path: Path, *lines: object) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return accord("tune", "--from", file, "--output", tmp_path / "table.json", **SETTINGS)


def test_records_of_other_operations_are_passed_over(accord: Accord, tmp_path: Path) -> None:
    peer = record(way="nccl", algorithm="left out", operation="left out")
    done = from_lines(accord, tmp_path, record(), record(operation="bandwidth"), peer)
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "table.json").read_text())
    assert [row["collective"] for row in table["choices"]] == ["allreduce"]
    check_choices(accord, tmp_path, table)


def test_a_table_names_the_libraries_it_was_measured_with(
    accord: Accord, fake_nccl: Path, tmp_path: Path
) -> None:
    file = tmp_path / "records.jsonl"
    line = record(path="nccl", algorithm="nccl")
    file.write_text(json.dumps(line) + "\n")
    words = ("tune", "--from", file, "--output", tmp_path / "table.json")
    done = accord(*words, ACCORD_RUNTIME="host", ACCORD_CCL_LIBRARIES=f"nccl:{fake_nccl}")
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "table.json").read_text())
    assert int(table["machine"]["libraries"]["nccl"]) >= 21800
    (row,) = table["choices"]
    assert row["collective"] == "allreduce"
    assert row["ranges"][0] == {"first_bytes": 0, "algorithm": "nccl"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "line 2: no JSON object"),
        (5, "line 2: no JSON object"),
        (record(operation="left out"), "line 2: no 'operation'"),
        (record(p5_us=None), "line 2: "),
        (record(median_us=0), "line 2: "),
        (record(machine={"runtime": "cuda"}), "line 2: measured on the runtime cuda"),
        (record(machine={"device": "H200"}), "line 2: measured on the device H200"),
    ],
)
def test_what_is_no_record_is_named_by_its_line(
    line: object, message: str, accord: Accord, tmp_path: Path
) -> None:
    done = from_lines(accord, tmp_path, record(), line)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"holds no records of the benchmark: {message}" in done.stderr
    assert not (tmp_path / "table.json").exists()


def test_root_is_told_what_open_mpi_asks_for(accord: Accord, home: Home) -> None:
    if os.geteuid() != 0 or not home.bench(Abi.OPENMPI).is_file():
        pytest.skip("only root meets this, with Open MPI")
    asked_for = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"))
    done = accord("tune", "bcast", *GRID, *BRIEFLY, "--mpi", "openmpi", **SETTINGS, **asked_for)
    assert done.returncode == 2 and "Open MPI does not run as root unless" in done.stderr
    assert "the benchmark ended with status 1: " in done.stderr


def test_what_cannot_be_measured_does_not_wait_for_ever(accord: Accord, tmp_path: Path) -> None:
    grid = ("--ranks", 2, "--min", 64, "--max", "64G", "--factor", 1 << 30)
    table, output = tuned(accord, tmp_path, "bcast", *grid, *BRIEFLY)
    assert [point["size_bytes"] for point in table["points"]] == [64]
    assert "were not measured in time" not in output
    assert not (tmp_path / "table.records.jsonl").exists()


def test_what_cannot_win_is_not_measured_further(accord: Accord, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    words = ("allreduce", "-n", 2, "--memory", "device", "--min", 64, "--max", 64, "--json", file)
    names = ("--algorithm", "staged", "node-one-shot", "node-two-shot", "--give-up", 1)
    done = accord("bench", *words, *names, "--iterations", 5, **SETTINGS)
    assert done.returncode == 0, done.stderr
    ours, *others = [json.loads(line) for line in file.read_text().splitlines()]
    assert ours["algorithm"] == "auto" and "median_us" in ours
    # All but the fastest.
    left = [row for row in others if "times as long as the fastest" in row.get("not_available", "")]
    assert len(left) in (2, 3) and all("median_us" not in row for row in left)


@pytest.mark.parametrize(
    ("words", "settings", "message"),
    [
        (["allredcue"], SETTINGS, "no such collective: allredcue"),
        (["--max", "many"], SETTINGS, '"many" is no size'),
        (["--min", "0"], SETTINGS, "--min 0 is less than an element"),
        (["--min", "1K", "--max", "512"], SETTINGS, "--min 1024 is more than --max 512"),
        (["--output", "."], SETTINGS, "is a folder; --output names"),
        (["--output", "/proc/nowhere/table.json"], SETTINGS, "no table can be written to"),
        (["--from", "nowhere"], SETTINGS, "holds no records"),
        ([], {"CUDA_VISIBLE_DEVICES": ""}, "ACCORD_RUNTIME=host tries it"),
    ],
)
def test_errors_are_one_sentence(
    accord: Accord, words: list[str], settings: dict[str, str], message: str
) -> None:
    done = accord("tune", *words, **settings)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_a_small_budget_gives_what_was_measured(accord: Accord, tmp_path: Path) -> None:
    """The whole grid takes minutes; on a busy machine the first point takes more than a second."""
    for budget_s in (1, 4, 16):
        words = ("--ranks", 2, "--budget", budget_s, "--output", tmp_path / "table.json")
        done = accord("tune", *words, **SETTINGS)
        if done.returncode == 0:
            break
    assert done.returncode == 0 and "were not measured in time" in done.stdout, done.stderr
    assert json.loads((tmp_path / "table.json").read_text())["points"]
