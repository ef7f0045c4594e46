# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Which MPI a program uses: binaries made with every MPI here, Python programs, and what has no MPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.errors import UserError
from accord.linkage import NoMpiError, detect
from accord.mpi import Abi, abi_of_library, find_launcher, is_mpi_library

from conftest import Mpi

Build = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "abi"),
    [
        ("libmpi.so.12", Abi.MPICH),
        ("libmpich.so.12.2.2", Abi.MPICH),
        ("libmpi_cray.so.12", Abi.MPICH),
        ("libmpi_gnu_123.so.12", Abi.MPICH),
        ("libmpi.so.40", Abi.OPENMPI),
        ("libmpi.so.40.30.4", Abi.OPENMPI),
        ("libmpi_abi.so.1", Abi.STANDARD),
        ("libmpi.so.120", None),
        ("libmpi.so.20", None),
        ("libmpi_cxx.so.40", None),
        ("libmpicxx.so.12", None),
        ("libmpifort.so.12", None),
        ("libmpi_mpifh.so.40", None),
    ],
)
def test_abi_of_a_file_name(name: str, abi: Abi | None) -> None:
    assert abi_of_library(name) is abi


def test_unknown_mpis_are_told_from_bindings() -> None:
    assert is_mpi_library("libmpi.so.20") and is_mpi_library("libmpi.so.0")
    assert not is_mpi_library("libmpi_cxx.so.40") and not is_mpi_library("libmpifort.so.12")


def test_linked_binary(mpi: Mpi, mpi_program: Callable[[Mpi], Path]) -> None:
    linkage = detect([str(mpi_program(mpi))])
    assert (linkage.abi, linkage.vendor, linkage.how) == (mpi.abi, mpi.vendor, "linked")
    launcher = find_launcher(linkage.library, linkage.vendor)
    assert launcher is not None and launcher.vendor is mpi.vendor
    assert launcher.path.parent == mpi.compiler.parent, "not that MPI's own mpiexec"
    assert launcher.version, "no version read"


def test_mpi_behind_a_library_of_the_program(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    source = "#include <mpi.h>\nint f(void) { return MPI_Wtime() < 0; }"
    shared = build(mpi.compiler, source, "-shared", "-fPIC")
    library = tmp_path / "libsolver.so"
    shutil.copy(shared, library)
    lib_dir = mpi.compiler.parent.parent / "lib"
    source = "int f(void); int main(void) { return f(); }"
    program = build(
        "cc",
        source,
        str(library),
        f"-Wl,-rpath,{tmp_path}",
        f"-Wl,-rpath-link,{lib_dir}",
        "-Wl,--allow-shlib-undefined",
    )
    if str(lib_dir) == "/usr/lib":
        assert detect([str(program)]).abi is mpi.abi
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(lib_dir))
        assert detect([str(program)]).abi is mpi.abi


def test_program_behind_a_wrapper(mpi: Mpi, mpi_program: Callable[[Mpi], Path]) -> None:
    assert detect(["env", "-i", str(mpi_program(mpi)), "x"]).abi is mpi.abi


def test_python_with_mpi4py(mpi: Mpi, tmp_path: Path) -> None:
    if mpi.python is None:
        pytest.skip(f"no Python environment with mpi4py for {mpi.name}")
    linkage = detect([str(mpi.python), "script.py"])
    assert (linkage.abi, linkage.vendor, linkage.how) == (mpi.abi, mpi.vendor, "mpi4py")
    assert find_launcher(linkage.library, linkage.vendor) is not None
    script = tmp_path / "script.py"
    for line in (f"#!{mpi.python}", f"#!/usr/bin/env -S {mpi.python} -u"):
        script.write_text(f"{line}\nraise SystemExit\n")
        script.chmod(0o755)
        assert detect([str(script)]) == linkage


def test_python_without_mpi4py(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with pytest.raises(NoMpiError, match=r"cannot import mpi4py.*--mpi"):
        detect([str(tmp_path / "bare" / "bin" / "python"), "script.py"])


def _fake_mpi(build: Build, folder: Path, soname: str) -> Path:
    library = build(
        "cc", "int MPI_Init(void) { return 0; }", "-shared", "-fPIC", f"-Wl,-soname,{soname}"
    )
    shutil.copy(library, folder / soname)
    source = "int MPI_Init(void); int main(void) { return MPI_Init(); }"
    return build("cc", source, str(folder / soname), f"-Wl,-rpath,{folder}", "-Wl,--no-as-needed")


def test_unknown_abi(build: Build, tmp_path: Path) -> None:
    program = _fake_mpi(build, tmp_path, "libmpi.so.99")
    with pytest.raises(UserError, match=r"libmpi\.so\.99, an MPI whose ABI Accord does not know"):
        detect([str(program)])


def test_missing_library(build: Build, tmp_path: Path) -> None:
    program = _fake_mpi(build, tmp_path, "libmpi_abi.so.77")
    assert detect([str(program)]).abi is Abi.STANDARD
    (tmp_path / "libmpi_abi.so.77").unlink()
    with pytest.raises(UserError, match=r"libmpi_abi\.so\.77, which the loader does not find"):
        detect([str(program)])


def test_two_mpis_in_one_program(build: Build, tmp_path: Path) -> None:
    first = build("cc", "int a(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12")
    second = build(
        "cc", "int b(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"
    )
    shutil.copy(first, tmp_path / "libmpi.so.12")
    shutil.copy(second, tmp_path / "libmpi.so.40")
    source = "int a(void); int b(void); int main(void) { return a() + b(); }"
    libraries = [str(tmp_path / "libmpi.so.12"), str(tmp_path / "libmpi.so.40")]
    program = build("cc", source, *libraries, f"-Wl,-rpath,{tmp_path}")
    with pytest.raises(UserError, match=r"libmpi\.so\.12 and libmpi\.so\.40"):
        detect([str(program)])


def test_programs_without_mpi(build: Build, tmp_path: Path) -> None:
    with pytest.raises(NoMpiError, match=r"not linked to an MPI.*--mpi"):
        detect(["/bin/ls"])
    with pytest.raises(NoMpiError, match="linked statically"):
        detect([str(build("cc", "int main(void) { return 0; }", "-static"))])
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n./app\n")
    script.chmod(0o755)
    with pytest.raises(NoMpiError, match=r"script for /bin/sh.*--mpi"):
        detect([str(script)])


def test_programs_that_cannot_run(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program")
    cases = {
        str(tmp_path / "nothing"): "does not exist",
        "no-such-program-anywhere": "on PATH",
        str(tmp_path): "is a folder",
        str(text): "is not executable; try `chmod",
    }
    for program, message in cases.items():
        with pytest.raises(UserError, match=message):
            detect([program])
    script = tmp_path / "script.py"
    script.write_text("pass")
    with pytest.raises(UserError, match="run it as `python"):
        detect([str(script)])
    text.chmod(0o755)
    with pytest.raises(UserError, match="neither a binary of this machine nor a script"):
        detect([str(text)])
