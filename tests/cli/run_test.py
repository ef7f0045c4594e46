# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord run` and `accord preload`, end to end with every MPI here; a tracer stands in for the library."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.discovery import installations
from accord.mpi import Abi
from accord.paths import Home

from conftest import Accord, Mpi

Program = Callable[[Mpi], Path]


def rank_lines(output: str) -> list[str]:
    """What each rank printed, in rank order; a launcher may run the lines of several into one."""
    return sorted(re.findall(r"rank \d of \d(?: \[[^\]]*\])*", output))


def preloaded(trace_file: Path) -> list[str]:
    return trace_file.read_text().splitlines() if trace_file.exists() else []


def test_ranks_run_with_the_library_and_the_launcher_without(
    mpi: Mpi, mpi_program: Program, launched: Accord, trace_file: Path
) -> None:
    program = mpi_program(mpi)
    done = launched(
        "run", "-n", 2, program, "two words", "$ACCORD_LOG", "--help", ACCORD_LOG="debug"
    )
    assert done.returncode == 0, done.stderr
    lines = [f"rank {rank} of 2 [two words] [debug] [--help]" for rank in (0, 1)]
    assert rank_lines(done.stdout) == lines
    assert preloaded(trace_file) == [str(program.resolve())] * 2


def test_exit_status_is_the_jobs(mpi: Mpi, mpi_program: Program, launched: Accord) -> None:
    assert launched("run", "-n", 2, mpi_program(mpi), "exit", 7).returncode == 7


def test_python_program(mpi: Mpi, launched: Accord, trace_file: Path) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python environment with mpi4py for {mpi.name}")
    # The newline goes out with the text: two ranks write to one pipe.
    code = "from mpi4py import MPI; print(f'{MPI.COMM_WORLD.allreduce(1)}\\n', end='', flush=True)"
    done = launched("run", "-n", 2, mpi.python, "-c", code)
    assert (done.returncode, done.stdout.split()) == (0, ["2", "2"]), done.stderr
    assert preloaded(trace_file) == [os.path.realpath(mpi.python)] * 2


def test_several_programs(
    mpi: Mpi, mpi_program: Program, launched: Accord, trace_file: Path
) -> None:
    program = mpi_program(mpi)
    done = launched("run", "-n", 1, program, "a", ":", "-n", 1, program, "b")
    assert done.returncode == 0, done.stderr
    assert rank_lines(done.stdout) == ["rank 0 of 2 [a]", "rank 1 of 2 [b]"]
    assert len(preloaded(trace_file)) == 2


def test_launcher_options_and_a_named_mpi(mpi: Mpi, launched: Accord, trace_file: Path) -> None:
    folder = Path("/tmp").resolve()
    path = f"{mpi.compiler.parent}:{os.environ['PATH']}"
    words = ["-wdir", folder, "-n", 1, "--explain", "--mpi", mpi.abi.value, "pwd"]
    done = launched("run", *words, PATH=path)
    assert done.stdout.strip() == str(folder), done.stderr
    assert "as given by --mpi" in done.stderr
    assert preloaded(trace_file) == [os.path.realpath(shutil.which("pwd") or "")]


@pytest.mark.one_mpi
def test_users_own_preload_stays_first(
    mpi: Mpi, mpi_program: Program, launched: Accord, tracer_home: Path, tmp_path: Path
) -> None:
    tool = tmp_path / "tool.so"
    shutil.copy(tracer_home / "lib" / "libaccord.so", tool)
    done = launched("run", "-n", 1, mpi_program(mpi), "$LD_PRELOAD", LD_PRELOAD=tool)
    assert done.stdout.strip() == f"rank 0 of 1 [{tool}:{tracer_home}/lib/libaccord.so]", (
        done.stderr
    )


def test_bind_gpu_gives_each_rank_its_own(mpi: Mpi, mpi_program: Program, launched: Accord) -> None:
    words = (mpi_program(mpi), "$CUDA_VISIBLE_DEVICES")
    done = launched("run", "--bind-gpu", "-n", 2, *words, CUDA_VISIBLE_DEVICES="5,GPU-abc")
    lines = rank_lines(done.stdout)
    assert lines == ["rank 0 of 2 [5]", "rank 1 of 2 [GPU-abc]"], done.stderr
    done = launched("run", "-n", 2, "--gpus-per-rank", 2, *words, CUDA_VISIBLE_DEVICES="4,5,6")
    lines = rank_lines(done.stdout)
    assert lines == ["rank 0 of 2 [4,5]", "rank 1 of 2 [6,4]"], done.stderr
    done = launched("run", "-n", 1, *words, CUDA_VISIBLE_DEVICES=None)
    assert rank_lines(done.stdout) == ["rank 0 of 1 [unset]"], "bound though not asked to"


def test_dry_run_prints_the_command(mpi: Mpi, mpi_program: Program, launched: Accord) -> None:
    program = mpi_program(mpi)
    done = launched("run", "-n", 2, "--dry-run", program, "x y")
    words = shlex.split(done.stdout)
    assert Path(words[0]).parent == mpi.compiler.parent
    assert words[1:3] == ["-n", "2"] and words[-2:] == [str(program), "x y"]


def test_root_is_told_why_openmpi_refuses(mpi: Mpi, mpi_program: Program, launched: Accord) -> None:
    if os.geteuid() != 0 or not mpi.name.endswith("openmpi"):
        pytest.skip("concerns root with Open MPI")
    unset = {"OMPI_ALLOW_RUN_AS_ROOT": None, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": None}
    done = launched("run", "-n", 1, mpi_program(mpi), **unset)
    assert "accord: Open MPI does not run as root unless you allow it" in done.stderr
    assert done.returncode != 0
    done = launched("run", "--allow-run-as-root", "-n", 1, mpi_program(mpi), **unset)
    assert done.returncode == 0 and "unless you allow it" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "2"], "no program given"),
        (["-n", "2", "./missing"], "the program ./missing does not exist"),
        (["-n", "2", "ls"], "not linked to an MPI library"),
        (["-n", "2", "--mpiexec", "/no/mpiexec", "--mpi", "mpich", "ls"], "does not exist"),
        (["-n", "2", "--mpiexec", "ls", "--mpi", "mpich", "ls"], "neither MPICH nor Open MPI"),
        (["-n", "2", "--mpi", "lam", "ls"], "--mpi"),
        (["-configfile", "jobs", "-n", "2", "ls"], "names the programs in a file"),
    ],
)
def test_errors_are_one_sentence(words: list[str], message: str, launched: Accord) -> None:
    done = launched("run", *words)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.one_mpi
def test_preload_as_launcher_option_is_refused(
    mpi: Mpi, mpi_program: Program, launched: Accord
) -> None:
    done = launched("run", "-n", 1, "-x", "LD_PRELOAD=tool.so", mpi_program(mpi))
    assert done.returncode == 2 and "LD_PRELOAD in the environment" in done.stderr


def test_programs_of_two_mpis_are_refused(mpi_program: Program, launched: Accord) -> None:
    from conftest import MPIS

    other = [mpi for mpi in MPIS if mpi.abi is not MPIS[0].abi] if MPIS else []
    if not other:
        pytest.skip("needs two MPIs")
    first, second = mpi_program(MPIS[0]), mpi_program(other[0])
    done = launched("run", "-n", 1, first, ":", "-n", 1, second)
    assert done.returncode == 2 and "one job needs one MPI" in done.stderr


def test_preload_prints_the_library(launched: Accord, tracer_home: Path) -> None:
    done = launched("preload")
    assert done.stdout.strip() == str(tracer_home / "lib" / "libaccord.so")


def test_missing_library(accord: Accord, tmp_path: Path) -> None:
    done = accord("preload", ACCORD_HOME=tmp_path / "nowhere")
    assert done.returncode == 2 and "ACCORD_HOME is" in done.stderr


def test_a_launcher_of_another_vendor_is_refused(
    mpi: Mpi, mpi_program: Program, launched: Accord
) -> None:
    others = [each for each in installations() if each.launcher.vendor is not mpi.vendor]
    if not others:
        pytest.skip("needs launchers of two vendors")
    other = others[0].launcher
    ways = [[], ["--mpi", mpi.abi.value]] if mpi.abi is not Abi.STANDARD else [[]]
    for words in ways:
        done = launched("run", *words, "--mpiexec", other.path, "-n", 2, mpi_program(mpi))
        assert done.returncode == 2 and done.stdout == ""
        assert f"{other.path} is the launcher of {other.title}, and" in done.stderr
        assert f"the program's MPI is {mpi.vendor.value}" in done.stderr


@pytest.mark.one_mpi
def test_trace_reaches_the_ranks_alone(mpi: Mpi, mpi_program: Program, launched: Accord) -> None:
    words = ("-n", 2, mpi_program(mpi), "$ACCORD_TRACE")
    assert launched("run", "--trace", *words).stdout.count("[1]") == 2
    assert launched("run", *words).stdout.count("[unset]") == 2


def test_a_table_that_is_not_there_is_said_once(home: Home, mpi: Mpi, accord: Accord) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python with mpi4py over {mpi.name}")
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    done = accord("run", "-n", 2, mpi.python, "-c", program, ACCORD_TABLE="/nope", ACCORD_LOGG="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("/nope is no table") == 1, done.stderr
    assert done.stderr.count("ACCORD_LOGG is no setting") == 1, done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


def test_every_verb_has_help(accord: Accord) -> None:
    verbs = ("run", "preload", "info", "doctor", "tune", "explain", "bench", "report")
    overview = accord("--help").stdout
    assert all(verb in overview for verb in verbs)
    for verb in verbs:
        done = accord(verb, "--help", COLUMNS=80)
        assert done.returncode == 0 and f"accord {verb}" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80
    told = accord("run", "--help", COLUMNS=80).stdout
    assert "starts it with that MPI's own mpiexec" in told, "paragraphs fill their lines"
    assert accord("--version").stdout.startswith("accord 0.")
