# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Which table a machine takes, and what `accord explain` says of one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord import tables
from accord.checks.devices import nvidia_gpu_count
from accord.errors import UserError
from accord.paths import Home
from accord.sharing import RanksPerNode, Sharing
from accord.sizes import parse_size, size_text
from accord.tables import Found, file_name, find_table, machine_of, user_dir

from conftest import REPOSITORY, Accord, Mpi

SAMPLE = REPOSITORY / "tests" / "mpi" / "table.json"
HOST = {"ACCORD_RUNTIME": "host"}


def changed(path: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**json.loads(SAMPLE.read_text()), **changes}))
    return path


def of_user(tmp_path: Path, name: str = "here.json", **changes: Any) -> Path:
    """A table where accord run looks for the user's own."""
    return changed(tmp_path / "config" / "accord" / "tables" / name, **changes)


@pytest.mark.one_mpi
def test_a_job_gets_the_table_of_its_machine(
    mpi: Mpi, mpi_program: Callable[[Mpi], Path], launched: Accord, tmp_path: Path
) -> None:
    mine = of_user(tmp_path)
    words = ("run", "-n", 1, "--explain", mpi_program(mpi), "$ACCORD_TABLE")
    done = launched(*words, **HOST)
    assert done.stdout.strip() == f"rank 0 of 1 [{mine}]", done.stderr
    assert f"table {mine} (host)" in done.stderr


@pytest.fixture
def find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Found]:
    """find(value, least, most) -> what find_table says where ACCORD_TABLE is that, of so many ranks a node."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ACCORD_RUNTIME", "host")
    home = Home(tmp_path / "home" / "lib", tmp_path / "home" / "bin", "test")

    def run(named: object = "", least: int = 2, most: float = 0) -> Found:
        monkeypatch.setenv("ACCORD_TABLE", str(named))
        return find_table(home, RanksPerNode(least, most or least))

    return run


def test_the_users_own_counts_before_one_that_came_along(
    find: Callable[..., Found], tmp_path: Path
) -> None:
    assert find() == Found(None, "no table for this machine: the built-in rule")
    shipped = changed(tmp_path / "home" / "share" / "accord" / "tables" / "host.json")
    of_user(tmp_path, "other.json", machine={"signature": "8 x Other", "runtime": "cuda"})
    assert find() == Found(str(shipped), f"table {shipped} (host)")
    of_user(tmp_path, "of_none.json", machine={"runtime": "host"})
    mine = of_user(tmp_path)
    assert find().value == str(mine)
    newer = of_user(tmp_path, "newer.json")
    os.utime(mine, (0, 0))
    assert find().value == str(newer)


def test_without_an_accelerator_no_table_is_looked_at(
    find: Callable[..., Found], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if nvidia_gpu_count() > 0:
        pytest.skip("there is one here")
    monkeypatch.setenv("ACCORD_RUNTIME", "auto")
    of_user(tmp_path)
    of_user(tmp_path, "of_none.json", machine={"runtime": "host"})
    assert find().value is None


def test_a_damaged_table_is_told_and_passed_over(
    find: Callable[..., Found], tmp_path: Path
) -> None:
    mine = of_user(tmp_path)
    os.utime(mine, (0, 0))
    damaged = of_user(tmp_path, "damaged.json")
    damaged.write_text(damaged.read_text()[:100])
    old = of_user(tmp_path, "old.json", schema=0)
    found = find()
    assert found.value == str(mine)
    assert f"{damaged} is no table" in found.warning and f"{old} has schema 0" in found.warning


def test_odd_files_end_no_search(find: Callable[..., Found], tmp_path: Path) -> None:
    mine = of_user(tmp_path)
    nowhere = mine.with_name("nowhere.json")
    nowhere.symlink_to(tmp_path / "gone.json")
    deep = mine.with_name("deep.json")
    deep.write_text("[" * 200_000)
    found = find()
    assert found.value == str(mine)
    assert f"{deep} is no table" in found.warning
    mine.unlink()
    assert f"{nowhere} is no table" in find().warning


def test_a_user_without_a_home(
    find: Callable[..., Found], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    shipped = changed(tmp_path / "home" / "share" / "accord" / "tables" / "host.json")
    assert find().value == str(shipped)
    with pytest.raises(UserError, match="set XDG_CONFIG_HOME"):
        user_dir()


def test_a_named_table_counts_and_must_be_of_this_machine(
    find: Callable[..., Found], tmp_path: Path
) -> None:
    of_user(tmp_path)
    named = changed(tmp_path / "named.json")
    assert find(named) == Found(None, f"table {named} (host)")
    assert find("off") == Found()
    other = changed(tmp_path / "other.json", machine={"signature": "8 x Other", "runtime": "cuda"})
    found = find(other)
    assert found.value == "off" and 'on "8 x Other", and this is "host"' in found.warning
    found = find(tmp_path / "nowhere.json")
    assert found.value == "off" and "nowhere.json is no table" in found.warning


def told(names: list[str], links: list[tuple[int, int, bool]]) -> dict[str, Any]:
    return {
        "default_runtime": "cuda",
        "runtimes": [
            {"name": "cuda", "devices": [{"name": name} for name in names]},
            {"name": "host", "devices": [{"name": "embedded"}]},
        ],
        "links": [
            {"runtime": "cuda", "from": a, "to": b, "peer_access": peer, "performance_rank": 0}
            for a, b, peer in links
        ],
    }


def test_a_signature_names_devices_number_and_links() -> None:
    pair = [(0, 0, True), (0, 1, True), (1, 0, True)]
    signature = machine_of(told(["H200", "H200"], pair))["signature"]
    assert signature == "2 x H200, all linked (rank 0)"
    assert file_name(signature) == "2-x-h200-all-linked-rank-0.json"
    apart = [(a, b, False) for a, b, _ in pair]
    assert machine_of(told(["H200", "H200"], apart))["signature"] == "2 x H200, no peer access"
    assert machine_of(told(["A", "B"], pair))["signature"] == "1 x A, 1 x B, all linked (rank 0)"
    assert machine_of(told(["A"], []))["signature"] == "1 x A, no links"
    served = machine_of(told(["A"], []), Sharing.MPS)["signature"]
    assert served == "1 x A, no links, shared under MPS"


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """gpus(number, mps): so many are here, under MPS or not."""

    def make(number: int, mps: bool) -> None:
        machine = told(["H200"] * number, [])
        for device in machine["runtimes"][0]["devices"]:
            device["mps"] = mps
        monkeypatch.setenv("ACCORD_RUNTIME", "auto")
        monkeypatch.setattr(tables, "nvidia_gpu_count", lambda: number)
        monkeypatch.setattr(tables, "read_info", lambda library: machine)

    return make


def test_ranks_that_share_devices_have_tables_of_their_own(
    find: Callable[..., Found], gpus: Callable[..., None], tmp_path: Path
) -> None:
    signatures = [f"2 x H200, no links{more}" for more in ("", ", shared", ", shared under MPS")]
    alone, turns, served = (
        of_user(tmp_path, file_name(signature), machine={"signature": signature})
        for signature in signatures
    )
    assert served.name == "2-x-h200-no-links-shared-under-mps.json"
    for mps, shared, other in ((False, turns, served), (True, served, turns)):
        gpus(2, mps)
        assert find("", 1).value == find("", 2).value == find("", 1, 2).value == str(alone)
        assert find("", 3).value == find("", 3, 8).value == str(shared)
        open_found = find("", 2, 8)
        assert open_found.value is None and "whether 2 to 8 ranks of a node" in open_found.note
        # Named ones, too, are for one kind of jobs.
        assert find(alone, 2).value is find(shared, 4).value is None
        for named, ranks in ((alone, 4), (shared, 2), (other, 4), (other, 2)):
            found = find(named, ranks)
            assert found.value == "off" and "was measured on" in found.warning
        # What may fit is the user's word against nothing.
        assert find(alone, 1, 8).value is find(shared, 1, 8).value is None
        assert find(other, 1, 8).value == "off"
        shared.unlink()
        assert "no table for this machine, shared" in find("", 4).note
        shared.write_text(other.read_text().replace(signatures[2], signatures[1]))


@pytest.mark.one_mpi
def test_a_job_gets_the_table_of_ranks_that_share_as_its_own_do(
    mpi: Mpi, mpi_program: Callable[[Mpi], Path], home: Home, accord: Accord, tmp_path: Path
) -> None:
    turns = of_user(
        tmp_path, "turns.json", machine={"signature": "host, shared", "runtime": "host"}
    )
    served = of_user(
        tmp_path, "mps.json", machine={"signature": "host, shared under MPS", "runtime": "host"}
    )
    alone = of_user(tmp_path, "alone.json")

    def said(words: list[object], **variables: object) -> str:
        settings = {**HOST, "ACCORD_TEST_EXCLUSIVE_DEVICE": "1", **variables}
        done = accord("run", *words, "--explain", "--dry-run", mpi_program(mpi), **settings)
        assert done.returncode == 0, done.stderr
        return done.stderr

    under_mps = {"ACCORD_TEST_KERNEL_SERVER": "7"}
    assert f"table {alone} (host)" in said(["-n", 1])
    assert f"table {turns} (host, shared)" in said(["-n", 2])
    assert f"table {served} (host, shared under MPS)" in said(["-n", 2], **under_mps)
    assert f"table {alone} (host)" in said(["-n", 2], ACCORD_HOST_DEVICES="2")
    assert f"table {turns} (host, shared)" in said(["-n", 3], ACCORD_HOST_DEVICES="2")
    by_pairs = said(["-n", 2, "--gpus-per-rank", 2], ACCORD_HOST_DEVICES="2")
    assert f"table {turns} (host, shared)" in by_pairs
    assert "whether 1 to 2 ranks of a node share devices" in said(["-host", "a,b", "-n", 2])
    assert f"table {alone} (host)" in said(["-host", "a,b", "-n", 2], ACCORD_HOST_DEVICES="2")
    text = said(["-n", 2], ACCORD_TABLE=turns, **under_mps)
    assert f'{turns} was measured on "host, shared", and this is "host, shared under MPS"' in text
    assert f"table {turns} (host, shared)" in said(["-n", 2], ACCORD_TABLE=turns)
    # And accord explain, of so many ranks.
    for ranks, path in ((1, alone), (2, turns)):
        words = ("explain", "allreduce", "--bytes", "64K", "-n", ranks)
        done = accord(*words, **HOST, ACCORD_TEST_EXCLUSIVE_DEVICE="1")
        assert f"table {path} (host" in done.stdout, done.stderr


def test_explain_names_who_chose_and_why(home: Home, accord: Accord) -> None:
    def explained(*words: object, **variables: object) -> dict[str, Any]:
        done = accord("explain", "allreduce", "--json", *words, **{**HOST, **variables})
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    by_table = ("--bytes", "64K", "--table", SAMPLE)
    answer = explained(*by_table)
    assert (answer["algorithm"], answer["origin"]) == ("node-two-shot", "table")
    assert answer["table_says"] == {"first_bytes": 4096, "algorithm": "node-two-shot"}
    assert answer["rule"] == "inbox"
    answer = explained(*by_table, "--info", "allreduce:staged-pipelined")
    assert (answer["algorithm"], answer["origin"]) == ("staged-pipelined", "info")
    answer = explained(*by_table, "--info", "staged", ACCORD_ALGORITHM="node-one-shot")
    assert (answer["algorithm"], answer["origin"]) == ("node-one-shot", "setting")
    answer = explained("--bytes", "64K")
    assert (answer["algorithm"], answer["origin"]) == ("inbox", "rule")
    assert answer["across_nodes"] == "staged"
    assert explained("--bytes", "64M")["across_nodes"] == "two-level"
    answer = explained("--bytes", "64K", ACCORD_INBOX_BYTES="0", ACCORD_DIRECT_BYTES="0")
    assert answer["algorithm"] == "node-one-shot"
    assert "otherwise" not in answer
    answer = explained("--bytes", "64K", ACCORD_ALGORITHM="nccl")
    assert (answer["algorithm"], answer["otherwise"]) == ("nccl", "inbox")
    answer = explained(*by_table, "--ranks", "3")
    assert answer["origin"] == "rule" and "table_says" not in answer


def test_explain_a_message(home: Home, accord: Accord, tmp_path: Path) -> None:
    def explained(size: str, *words: object, **variables: object) -> dict[str, Any]:
        done = accord("explain", "send", "--json", "--bytes", size, *words, **HOST | variables)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    by_size = {size: explained(size)["algorithm"] for size in ("4", "64K", "4M")}
    assert by_size == {"4": "staged", "64K": "copy-kernel", "4M": "copy-engine"}
    answer = explained("64K", "--info", "send:copy-engine")
    assert (answer["algorithm"], answer["origin"]) == ("copy-engine", "info")
    answer = explained("64K", "--info", "copy-engine")
    assert answer["origin"] == "rule" and "none of the algorithms" in answer["problems"][0]
    answer = explained("64K")
    assert (answer["ranks"], answer["across_nodes"]) == (2, "staged")
    ranges = [
        {"first_bytes": 0, "algorithm": "staged"},
        {"first_bytes": 4096, "algorithm": "copy-engine"},
    ]
    row = {"collective": "send", "ranks": 2, "ranges": ranges}
    table = {**json.loads(SAMPLE.read_text()), "choices": [row], "points": []}
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    answer = explained("64K", "--table", path)
    assert (answer["algorithm"], answer["origin"]) == ("copy-engine", "table")
    assert answer["table_says"] == {"first_bytes": 4096, "algorithm": "copy-engine"}
    path.write_text(json.dumps({**table, "choices": [{**row, "ranks": 4}]}))
    answer = explained("64K", "--table", path)
    assert answer["origin"] == "rule" and "a message has two ranks" in answer["problems"][0]
    shown = accord("explain", "send", "--bytes", "64K", **HOST).stdout
    assert "send of 64K among 2: copy-kernel, by the built-in rule" in shown


def test_explain_a_message_between_nodes(home: Home, accord: Accord, tmp_path: Path) -> None:
    def explained(size: str, *words: object, **variables: object) -> dict[str, Any]:
        done = accord("explain", "net_send", "--json", "--bytes", size, *words, **HOST | variables)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    answer = explained("1M")
    assert (answer["algorithm"], answer["origin"]) == ("staged", "rule")
    by_rule = "direct" if list(Path("/dev/infiniband").glob("uverbs*")) else "staged"
    for size, way in (("32K", "staged"), ("64K", by_rule)):
        assert explained(size, ACCORD_NET_DESIGN="auto")["algorithm"] == way
    answer = explained("1M", ACCORD_NET_DESIGN="passive")
    assert (answer["algorithm"], answer["origin"]) == ("passive", "setting")
    assert "ACCORD_NET_DESIGN is passive" in answer["reason"]
    assert explained("1K", ACCORD_NET_DESIGN="passive")["algorithm"] == "staged"
    by_name = {"ACCORD_NET_DESIGN": "passive", "ACCORD_ALGORITHM": "net_send:direct"}
    assert explained("1K", **by_name)["algorithm"] == "direct"
    answer = explained("1M", "--info", "net_send:active1")
    assert (answer["algorithm"], answer["origin"]) == ("active1", "info")
    ranges = [
        {"first_bytes": 0, "algorithm": "staged"},
        {"first_bytes": 8192, "algorithm": "direct"},
    ]
    row = {"collective": "net_send", "ranks": 2, "ranges": ranges}
    path = tmp_path / "table.json"
    path.write_text(json.dumps({**json.loads(SAMPLE.read_text()), "choices": [row], "points": []}))
    answer = explained("8K", "--table", path)
    assert (answer["algorithm"], answer["origin"]) == ("direct", "table")
    assert answer["table_says"] == {"first_bytes": 8192, "algorithm": "direct"}
    assert explained("8K", "--table", path, ACCORD_NET_DESIGN="host")["algorithm"] == "staged"
    words = ("send", "--bytes", "8K", "--table", path)
    shown = accord("explain", *words, **HOST).stdout
    assert "where the ranks are on several nodes: direct" in shown


def test_explain_in_words(home: Home, accord: Accord, tmp_path: Path) -> None:
    points = [
        {
            "collective": "allreduce",
            "ranks": 2,
            "size_bytes": size_bytes,
            "chosen": "node-two-shot",
            "candidates": [
                {"algorithm": "node-two-shot", "median_us": us, "ratio": 0.5, "error": 0.01},
                {"algorithm": "auto", "median_us": 2 * us, "ratio": 1.0, "error": 0.0},
            ],
            "left_out": {"staged": "takes 9 times as long as the fastest"},
        }
        for size_bytes, us in ((16384, 11.5), (65536, 12.5))
    ]
    mine = of_user(tmp_path, points=points)
    done = accord("explain", "allreduce", "--bytes", "50K", **HOST)
    assert done.returncode == 0, done.stderr
    assert "allreduce of 50K among 2: node-two-shot, because the table says so" in done.stdout
    assert "the built-in rule would take inbox" in done.stdout
    assert f"table {mine} (host) says from 4K on: node-two-shot" in done.stdout
    assert "measured at 64K" in done.stdout and "12.50" in done.stdout and "chosen" in done.stdout
    assert "left out: takes 9 times" in done.stdout
    done = accord("explain", "allreduce", "--bytes", "64M", "--info", "inbox", **HOST)
    assert "asked for was inbox, which such a call cannot take" in done.stdout
    done = accord("explain", "allreduce", "--bytes", "64M", "--info", "nccl", **HOST)
    assert "nccl where that can do it, else node-direct-spread, because the comm" in done.stdout


def test_explain_tells_what_is_wrong(home: Home, accord: Accord, tmp_path: Path) -> None:
    wrong = changed(tmp_path / "wrong.json", choices=[{"collective": "allreduce", "ranks": 2}])
    done = accord("explain", "allreduce", "--bytes", "8", "--table", wrong, **HOST)
    assert done.returncode == 0 and "by the built-in rule" in done.stdout
    assert "allreduce among 2 without ranges; the built-in rule chooses" in done.stderr
    for words, message in [
        (["allredcue", "--bytes", "8"], "no collective that Accord knows"),
        (["allreduce", "--bytes", "many"], '"many" is no size'),
    ]:
        done = accord("explain", *words, **HOST)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_sizes_as_people_write_them() -> None:
    for text, size_bytes in [("8", 8), ("64K", 65536), ("1.5M", 3 << 19), ("2GiB", 2 << 30)]:
        assert parse_size(text) == size_bytes
    for size_bytes, text in [(8, "8"), (1000, "1000"), (4096, "4K"), (3 << 19, "1536K")]:
        assert size_text(size_bytes) == text
    for wrong in ("", "K", "-1", "8X"):
        with pytest.raises(UserError):
            parse_size(wrong)
