# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""A wheel: what it holds, and that it works in a fresh environment, without the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from binaries import is_elf, problems, symbols, version_of
from conftest import BUILD, REPOSITORY, Install, Installed

_MIB = 1 << 20
_PROGRAMS = (
    "lib/accord_proxy",
    *(f"bin/accord_bench_{abi}" for abi in ("mpich", "openmpi", "abi")),
)
_LIBRARIES = ("libaccord.so", *(f"libaccord_{abi}.so" for abi in ("mpich", "openmpi", "abi")))


def _tag(wheel: Path) -> str:
    (tag,) = re.findall(r"-py3-none-manylinux_(\d+_\d+)_x86_64\.whl$", wheel.name)
    return str(tag)


def test_is_for_machines_of_2018_and_short(wheel: Path) -> None:
    assert version_of(_tag(wheel)) <= (2, 28)
    assert wheel.stat().st_size <= 30 * _MIB


def test_its_binaries_keep_what_the_name_promises(wheel: Path, unpacked: Path) -> None:
    binaries = {
        file.relative_to(unpacked / "accord"): file
        for file in unpacked.rglob("*")
        if is_elf_file(file)
    }
    expected = {*_PROGRAMS, *(f"lib/{name}" for name in _LIBRARIES)}
    assert {str(name) for name in binaries} == expected
    for name, file in binaries.items():
        assert problems(file, version_of(_tag(wheel))) == [], name


def is_elf_file(file: Path) -> bool:
    return file.is_file() and is_elf(file)


def test_nothing_in_it_leads_back_to_where_it_was_made(unpacked: Path) -> None:
    for file in unpacked.rglob("*"):
        assert not file.is_file() or str(REPOSITORY).encode() not in file.read_bytes(), file


def test_has_tables_headers_and_licences(unpacked: Path) -> None:
    tables = {file.name for file in (REPOSITORY / "share" / "accord" / "tables").glob("*.json")}
    assert {file.name for file in (unpacked / "accord/share/accord/tables").iterdir()} == tables
    headers = {file.name for file in (REPOSITORY / "include" / "accord").iterdir()}
    assert {file.name for file in (unpacked / "accord/include/accord").iterdir()} == headers
    assert {file.name for file in unpacked.glob("*.dist-info/licenses/*")} == {
        "LICENSE",
        "THIRD_PARTY.md",
    }


def test_command_uses_what_came_with_it(mpich: Installed) -> None:
    told = json.loads(mpich("accord", "info", "--json"))
    assert told["library"] == str(mpich.package / "lib" / "libaccord.so")
    assert told["found_by"] == "package"
    for name in _PROGRAMS:
        assert (mpich.package / name).stat().st_mode & stat.S_IXUSR, name


_AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": 1,
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1,
    "ACCORD_RUNTIME": "host",
}


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_python_programs_run(mpi: str, install: Install, mpich: Installed) -> None:
    """They end with code 1 where they find a result wrong."""
    env = mpich if mpi == "mpich" else install(mpi)
    for source in sorted((REPOSITORY / "examples" / "python").glob("*.py")):
        shutil.copy(source, env.folder / "app.py")
        told = env("accord", "run", "-n", 2, "python", "app.py", **_AS_ROOT)
        assert "2 ranks" in told, source
        if source.stem == "allreduce":
            assert ": correct, by " in told and "by staged" not in told


def test_bench_verifies_results(mpich: Installed) -> None:
    words = ("bench", "allreduce", "-n", 2, "--memory", "device", "--max", "1M")
    told = mpich("accord", *words, ACCORD_RUNTIME="host")
    rows = re.findall(r"^ +\w+ +[\d.]+ [mun]?s .*\| +(\w+) ", told, re.MULTILINE)
    assert len(rows) > 5 and set(rows) == {"ok"}, told


@pytest.mark.parametrize(
    "call", ["throws", "callbacks requests", "conformance --count 300"]
)
def test_programs_of_another_compiler_work_with_it(call: str, mpich: Installed) -> None:
    """Their exceptions go through Accord's functions, which have a C++ library of their own."""
    name, *options = call.split()
    words = [BUILD / "bin" / f"accord_{name}_mpich", *options]
    settings = {"ACCORD_P2P_BYTES": 1, "ACCORD_NODE_BYTES": 1, "ACCORD_PROGRESS_THREAD": "off"}
    mpich("accord", "run", "-n", 2, *words, ACCORD_RUNTIME="host", **settings)


def test_its_sources_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """But for names inside kernels, which nvcc makes of the folder that it works in."""
    again = os.environ.get("ACCORD_TEST_WHEEL_AGAIN") or pytest.skip("no second wheel named")
    assert Path(again).name == wheel.name
    first, second = (zipfile.ZipFile(file) for file in (wheel, again))
    assert first.namelist() == second.namelist()
    for name in first.namelist():
        if name.startswith(("accord/lib/", "accord/bin/")):
            one, other = (
                Path(each.extract(name, tmp_path / str(i)))
                for i, each in enumerate((first, second))
            )
            assert symbols(one) == symbols(other), name
        elif not name.endswith("/RECORD"):
            assert first.read(name) == second.read(name), name
