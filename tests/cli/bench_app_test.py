# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord bench --app`: what it makes of its options and of what applications print, and one on two ranks."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from accord import app_ways
from accord.app_rows import Row, lines_of, table
from accord.app_ways import Way, ways_of
from accord.bench_app import plan_of
from accord.benchmark import Target
from accord.errors import UserError
from accord.mpi import Abi, Installation, Launcher, Vendor
from accord.paths import Home

from conftest import Accord


def test_options_of_the_application_are_passed_on() -> None:
    plan = plan_of(["--size", "8x8x8", "--peer", "mpi,host", "--turns=5", "--type", "r2c"])
    assert plan.words == ["--size", "8x8x8", "--type", "r2c"]
    assert plan.peers == ["mpi", "host"] and plan.turns == 5
    assert plan.file is None and plan.impi is None
    plan = plan_of(["--json", "a.json", "--peer", "host", "--peer", "host", "--impi", "there"])
    assert plan.peers == ["host"]
    assert plan.file == Path("a.json") and plan.impi == Path("there")


@pytest.mark.parametrize(
    "words", ["--peer nccl", "--turns 0", "--turns few", "--peer", "--plot picture.txt"]
)
def test_wrong_options_are_refused(words: str) -> None:
    with pytest.raises(UserError):
        plan_of(words.split())


def _row(us: float, correct: bool = True, case: str = "a case") -> Row:
    return {"case": case, "us": us, "mpi_us": us / 2, "correct": correct}


def _lines(rows: dict[str, list[Row]]) -> list[str]:
    columns = [map(str, column.cells) for column in table(rows).columns]
    return [" ".join(cells).strip() for cells in zip(*columns, strict=True)]


def test_a_way_has_medians_and_their_ratio() -> None:
    rows = {
        "accord": [_row(10), _row(30), _row(20)],
        "mpi": [_row(50), _row(40), _row(30)],
        "host": [],
    }
    assert _lines(rows) == [
        "a case accord 20.0 10.0 - ok",
        "mpi 40.0 20.0 2.00 ok",
        "host - - - -",
    ]


def test_a_wrong_result_of_any_turn_shows() -> None:
    rows = {"accord": [_row(10), _row(10, correct=False), _row(10)], "mpi": [_row(20)]}
    assert _lines(rows) == ["a case accord 10.0 5.0 - WRONG", "mpi 20.0 10.0 - ok"]


def test_a_peer_that_is_wrong_has_no_ratio() -> None:
    rows = {"accord": [_row(10)], "impi": [_row(4), _row(4, correct=False)], "host": [_row(20)]}
    assert _lines(rows)[1:] == ["impi 4.0 2.0 - WRONG", "host 20.0 10.0 2.00 ok"]


def test_staging_is_the_peer_of_all_ways_to_solve_a_problem() -> None:
    rows = {
        "accord": [_row(10, case="8x8x8 by types"), _row(20, case="8x8x8 by packed, dots device")],
        "staged": [_row(40, case="8x8x8 by staged, dots staged"), _row(7, case="9x9x9 by staged")],
        "mpi": [_row(30, case="8x8x8 by types")],
    }
    lines = lines_of(rows)
    assert [line.case for line in lines] == ["8x8x8 by types", "8x8x8 by packed, dots device"]
    assert [line.ratio("staged") for line in lines] == [4, 2]
    assert [line.ratio("mpi") for line in lines] == [3, None]


@pytest.fixture
def some_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """One with an application of either kind, on a machine with a GPU."""
    home = Home(tmp_path / "lib", tmp_path / "bin", "test")
    home.bin.mkdir()
    for name in ("accord_cg_mpich", "accord_cg_gpu_mpich", "accord_fft3d_mpich"):
        (home.bin / name).touch()
    monkeypatch.setattr(app_ways, "read_info", lambda library: {"default_runtime": "cuda"})
    return home


def _target(abi: Abi) -> Target:
    vendor = abi.vendor or Vendor.MPICH
    launcher = Launcher(Path("/mpi/bin/mpiexec"), vendor, "1.0")
    return Target(Installation(launcher, {abi: Path("/mpi/lib/libmpi.so")}), abi)


def _ways(home: Home, app: str, peers: list[str], impi: Path | None = None) -> dict[str, Way]:
    ways = ways_of(home, _target(Abi.MPICH), app, ["--size", "8x8x8"], peers, impi)
    return {way.name: way for way in ways}


def test_kernels_run_on_the_gpu_except_those_of_host_memory(some_home: Home) -> None:
    ways = _ways(some_home, "cg", ["mpi", "host", "staged"])
    assert [ways[name].program.name for name in ("accord", "mpi", "staged")] == [
        "accord_cg_gpu_mpich"
    ] * 3
    assert ways["host"].program.name == "accord_cg_mpich"
    assert ways["host"].words[-2:] == ["--memory", "host"]
    assert ways["staged"].words[2:] == ["--exchange", "staged", "--dots", "staged"]
    assert _ways(some_home, "fft3d", ["staged"])["staged"].words[2:] == ["--reshape", "staged"]


def test_without_a_gpu_programs_are_those_of_the_cpu(
    some_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_ways, "read_info", lambda library: {"default_runtime": "host"})
    assert _ways(some_home, "cg", [])["accord"].program.name == "accord_cg_mpich"


def test_an_application_that_does_not_stage_has_no_such_peer(some_home: Home) -> None:
    (some_home.bin / "accord_other_mpich").touch()
    with pytest.raises(UserError, match="no staging"):
        _ways(some_home, "other", ["staged"])


def _intel_mpi(folder: Path) -> Path:
    for file in ("bin/mpiexec.hydra", "lib/libmpi.so.12"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).touch()
    return folder


def test_intel_mpi_has_its_own_launcher_and_library(some_home: Home, tmp_path: Path) -> None:
    folder = _intel_mpi(tmp_path / "impi")
    way = _ways(some_home, "cg", ["impi"], folder)["impi"]
    with way.command(some_home, _target(Abi.MPICH), 2) as command:
        assert command[:3] == [str(folder / "bin/mpiexec.hydra"), "-n", "2"]
        assert command[3:] == [str(some_home.bin / "accord_cg_gpu_mpich"), "--size", "8x8x8"]
    assert way.environment["LD_LIBRARY_PATH"].split(":")[0] == str(folder / "lib")
    assert way.environment["I_MPI_OFFLOAD"] == "1"


def test_intel_mpi_that_is_not_there_is_refused(some_home: Home, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs --impi"):
        _ways(some_home, "cg", ["impi"])
    with pytest.raises(UserError, match=r"no bin/mpiexec\.hydra"):
        _ways(some_home, "cg", ["impi"], tmp_path)
    folder = _intel_mpi(tmp_path / "impi")
    (some_home.bin / "accord_cg_openmpi").touch()
    with pytest.raises(UserError, match="--mpi mpich"):
        ways_of(some_home, _target(Abi.OPENMPI), "cg", [], ["impi"], folder)


def test_intel_mpi_runs_the_same_program(home: Home, accord: Accord, tmp_path: Path) -> None:
    """By a launcher that stands in for Intel's: it tells its environment, and runs one rank."""
    if not home.app("cg", Abi.MPICH).is_file():
        pytest.skip("no cg for the MPICH ABI")
    folder = _intel_mpi(tmp_path / "impi")
    launcher = folder / "bin/mpiexec.hydra"
    launcher.write_text(
        '#!/bin/sh\necho "fabrics $I_MPI_FABRICS" >&2\nshift 2\nLD_LIBRARY_PATH= exec "$@"\n'
    )
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    done = accord(
        *("bench", "--app", "cg", "-n", 1, "--mpi", "mpich", "--size", "4x4x4", "--turns", 1),
        *("--repeats", 1, "--peer", "impi", "--impi", folder),
        ACCORD_RUNTIME="host",
        CUDA_VISIBLE_DEVICES="-1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fabrics shm" in done.stderr and " impi " in done.stdout


@pytest.mark.parametrize("abi", [Abi.MPICH, Abi.OPENMPI])
@pytest.mark.parametrize("app", ["stencil3d", "cg"])
def test_applications_with_kernels_end_to_end(
    app: str, abi: Abi, home: Home, accord: Accord, tmp_path: Path
) -> None:
    if not home.app(app, abi).is_file():
        pytest.skip(f"no {app} for the {abi.label}")
    file = tmp_path / "records.jsonl"
    words = ("--size", "8x7x6", "--exchange", "types,packed", "--repeats", 1, "--turns", 1)
    done = accord(
        *("bench", "--app", app, "-n", 2, "--mpi", abi.value, *words, "--peer", "staged,host"),
        *("--json", file),
        ACCORD_RUNTIME="host",
        CUDA_VISIBLE_DEVICES="-1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["way"] for record in records] == ["accord"] * 2 + ["staged"] + ["host"] * 2
    assert all(record["correct"] for record in records)


def test_the_plot_shows_all_ways(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from accord.reporting.applications import draw

    rows = {"accord": [_row(10)], "mpi": [_row(5, correct=False)], "host": [_row(20)]}
    draw(tmp_path / "plot.svg", "cg over an MPI", list(rows), lines_of(rows))
    text = (tmp_path / "plot.svg").read_text()
    assert "cg over an MPI" in text and "a case" in text
    assert "20.0 (2.00x)" in text and "mpi: wrong result" in text


@pytest.mark.parametrize("abi", [Abi.MPICH, Abi.OPENMPI])
def test_fft3d_end_to_end(abi: Abi, home: Home, accord: Accord, tmp_path: Path) -> None:
    if not home.app("fft3d", abi).is_file():
        pytest.skip(f"no fft3d for the {abi.label}")
    file = tmp_path / "records.jsonl"
    words = ("--size", "12x10x9", "--reshape", "alltoallv,messages", "--repeats", 3, "--turns", 2)
    done = accord(
        *("bench", "--app", "fft3d", "-n", 2, "--mpi", abi.value, *words, "--peer", "host"),
        *("--json", file),
        ACCORD_RUNTIME="host",
        CUDA_VISIBLE_DEVICES="-1",
    )
    if "cannot load libfftw3" in done.stderr:
        pytest.skip("no FFTW on this machine")
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(records) == 2 * 2 * 2 and all(record["correct"] for record in records)
    assert {(record["way"], record["memory"]) for record in records} == {
        ("accord", "accord host"),
        ("host", "host"),
    }


def test_a_failing_application_fails_the_bench(home: Home, accord: Accord) -> None:
    if not any(home.app("fft3d", abi).is_file() for abi in Abi):
        pytest.skip("no fft3d is built")
    done = accord("bench", "--app", "fft3d", "-n", 2, "--size", "nothing", "--turns", 1)
    assert done.returncode == 1 and "--size takes NXxNYxNZ, not nothing" in done.stderr
