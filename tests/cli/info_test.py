# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord info` and how the library is asked, with stub libraries and, where it is built, the real one."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from accord.errors import UserError
from accord.library import read_collective_libraries, read_info
from accord.mpi import Abi, discover
from accord.paths import Home, multiarch

from conftest import MPIS, PYTHON, REPOSITORY, Accord, Mpi

Build = Callable[..., Path]

STUB_INFO = {
    "version": "9.9.9",
    "settings": [
        {
            "name": "ACCORD_LOG",
            "type": "text",
            "default": "warn",
            "value": "debug",
            "origin": "environment",
            "scope": "local",
            "text": "error|warn: least severe message",
        }
    ],
    "runtimes": [{"name": "host", "devices": [{"name": "walled", "memory_bytes": 3 << 30}]}],
    "warnings": ["ACCORD_LOGG is no setting"],
    "later_section": {"some": "fact"},
}


def stub_library(build: Build, body: str) -> Path:
    return build("cc", "#include <stdlib.h>\n#include <string.h>\n" + body, "-shared", "-fPIC")


def json_library(build: Build, text: str) -> Path:
    body = (
        f"static const char text[] = {json.dumps(text)};\n"
        + r"""
        size_t accord_info_json(char* buffer, size_t capacity) {
          if (capacity >= sizeof text) memcpy(buffer, text, sizeof text);
          return sizeof text;
        }"""
    )
    return stub_library(build, body)


@pytest.fixture
def stub_home(build: Build, tmp_path: Path) -> Path:
    home = tmp_path / "stub"
    (home / "lib").mkdir(parents=True)
    shutil.copy(json_library(build, json.dumps(STUB_INFO)), home / "lib" / "libaccord.so")
    (home / "lib" / "libaccord_openmpi.so").touch()
    return home


def test_everything_the_library_says_is_shown(accord: Accord, stub_home: Path) -> None:
    done = accord("info", "--all", ACCORD_HOME=stub_home)
    assert done.returncode == 0, done.stderr
    words = ("9.9.9", "ACCORD_LOG", "debug", "walled", "3.0 GiB", "ACCORD_LOGG is")
    for text in (*words, "Later section", "fact"):
        assert text in done.stdout


def test_json_adds_the_mpis_found(mpi: Mpi, accord: Accord, stub_home: Path) -> None:
    done = accord("info", "--json", ACCORD_HOME=stub_home, PATH=f"{mpi.compiler.parent}:/usr/bin")
    answer = json.loads(done.stdout)
    assert answer["settings"] == STUB_INFO["settings"]
    assert answer["library"] == str(stub_home / "lib" / "libaccord.so")
    rows = [row for row in answer["mpis"] if row["abi"] == mpi.abi.value]
    rows = [row for row in rows if Path(row["mpiexec"]).parent == mpi.compiler.parent]
    assert len(rows) == 1 and rows[0]["mpi"].startswith(mpi.vendor.value)
    assert rows[0]["shim"] is (mpi.abi is Abi.OPENMPI)


def test_settings_markdown(accord: Accord, stub_home: Path) -> None:
    done = accord("info", "--settings-markdown", "users", ACCORD_HOME=stub_home)
    row = r"| `ACCORD_LOG` | text | `warn` | local | error\|warn: least severe message |"
    assert row in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("int nothing;", "cannot load .*accord_info_json"),
        ("size_t accord_info_json(char* b, size_t c) { abort(); }", "crashed"),
        ("size_t accord_info_json(char* b, size_t c) { if (c) *b = 0; return 1; }", "no JSON"),
    ],
)
def test_broken_libraries_are_explained(build: Build, body: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_info(stub_library(build, body))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "accord_ccl_json"),
        ("size_t accord_ccl_json(char* b, size_t c) { abort(); }", "crashed"),
        ("size_t accord_ccl_json(char* b, size_t c) { if (c) *b = 0; return 1; }", "no JSON"),
    ],
)
def test_collective_libraries_do_not_break_the_rest(build: Build, body: str, words: str) -> None:
    (row,) = read_collective_libraries(stub_library(build, body))
    assert row["usable"] is False and words in row["why"]


def test_files_that_are_no_library_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "libaccord.so"
    file.write_text("nothing")
    with pytest.raises(UserError, match="cannot load"):
        read_info(file)


def test_discovery_finds_each_mpi_once(mpi: Mpi) -> None:
    found = discover([each.compiler.parent.parent for each in MPIS], multiarch())
    paths = [tuple(path.resolve() for path in each.libraries.values()) for each in found]
    assert len(paths) == len(set(paths))
    mine = [each for each in found if each.launcher.path.parent == mpi.compiler.parent]
    mine = [each for each in mine if each.launcher.vendor is mpi.vendor]
    assert len(mine) == 1 and mpi.abi in mine[0].libraries


def test_the_mpi_of_the_environment_comes_before_the_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command that is called by its path may stand in an environment that is not on PATH."""
    for place, version in (("system", "4.0"), ("environment", "5.0"), ("module", "4.3")):
        launcher = tmp_path / place / "bin" / "mpiexec"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(f"#!/bin/sh\necho 'HYDRA build details: Version: {version}'\n")
        launcher.chmod(0o755)
        (tmp_path / place / "lib").mkdir()
        (tmp_path / place / "lib" / "libmpi.so.12").touch()
    system, module = tmp_path / "system" / "bin", tmp_path / "module" / "bin"
    monkeypatch.setattr("accord.mpi._SYSTEM_FOLDERS", (system,))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("PATH", f"{system}:/nowhere")
    assert [each.launcher.version for each in discover([], None)] == ["5.0", "4.0"]
    monkeypatch.setenv("PATH", f"{system}:{module}")
    assert [each.launcher.version for each in discover([], None)] == ["4.3", "5.0", "4.0"]


_SECONDS = [
    (["info"], b"asking libaccord.so for settings"),
    (["report", REPOSITORY / "bench/results/4xh200-node.jsonl"], b"drawing the page"),
]


@pytest.mark.parametrize(("words", "message"), _SECONDS, ids=["info", "report"])
def test_a_terminal_is_told_what_takes_time(
    words: list[str], message: bytes, home: Home, libraries: None, tmp_path: Path
) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=end,
    )
    os.close(end)
    told = b""
    with suppress(OSError):  # all have closed the other end
        while data := os.read(terminal, 65536):
            told += data
    os.close(terminal)
    assert process.wait(60) == 0 and message in told


def test_the_real_library(home: Home, accord: Accord) -> None:
    done = accord("info", "--json", ACCORD_LOG="info")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    settings = {row["name"]: row for row in answer["settings"]}
    assert settings["ACCORD_LOG"]["value"] == "info"
    assert settings["ACCORD_LOG"]["origin"] == "environment"
    assert settings["ACCORD_ENABLE"]["origin"] == "default"
    declared = re.findall(
        r"^SETTING\((\w+),", (REPOSITORY / "src/base/config.def").read_text(), re.MULTILINE
    )
    assert set(settings) == {f"ACCORD_{name.upper()}" for name in declared}
    assert any(row["name"] == "host" and row["devices"] for row in answer["runtimes"])
    assert {"auto", "staged", "inbox", "node-direct-two-shot"} <= set(answer["algorithms"])
    assert {"nccl", "rccl"} <= {row["name"] for row in answer["collective_libraries"]}


def test_the_devices_of_level_zero(home: Home, accord: Accord) -> None:
    build = home.library.parent.parent
    driver = build / "tests" / "level_zero" / "libaccord_ze_driver.so"
    cache = build / "CMakeCache.txt"
    if not driver.is_file() or not cache.is_file():
        pytest.skip("no test driver for Level Zero in this build")
    loader = re.search(r"^ACCORD_LEVEL_ZERO_LOADER:\w+=(.+)/", cache.read_text(), re.MULTILINE)
    assert loader

    def told(drivers: object) -> dict[str, Any]:
        done = accord("info", "--json", ZE_ENABLE_ALT_DRIVERS=drivers, LD_LIBRARY_PATH=loader[1])
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["runtimes"]
        (row,) = [row for row in rows if row["name"] == "level_zero"]
        return row

    names = [device["name"] for device in told(driver)["devices"]]
    assert names == ["Level Zero test device 0", "Level Zero test device 1"]
    assert "problem" not in told(driver)
    broken = told("libm.so.6")
    assert broken["devices"] == [] and "zeInit" in broken["problem"]


def test_the_devices_of_hip(home: Home, accord: Accord) -> None:
    folder = home.library.parent.parent / "tests" / "hip" / "lib"
    if not (folder / "libamdhip64.so.6").is_file():
        pytest.skip("no stand-in for HIP in this build")

    def told(**environment: object) -> dict[str, Any]:
        done = accord("info", "--json", LD_LIBRARY_PATH=folder, ACCORD_RUNTIME="hip", **environment)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["default_runtime"] == "hip"
        (row,) = [row for row in answer["runtimes"] if row["name"] == "hip"]
        return row

    good = told()
    assert [device["name"] for device in good["devices"]] == ["AMD stand-in 0", "AMD stand-in 1"]
    assert "problem" not in good
    broken = told(ACCORD_TEST_HIP_FAIL="hipInit:1+")
    assert broken["devices"] == [] and "hipInit" in broken["problem"]


def test_a_driver_of_nvidia_that_does_not_start(home: Home, accord: Accord) -> None:
    driver = home.library.parent.parent / "tests" / "unit" / "fake_cuda" / "libcuda.so.1"
    if not driver.is_file():
        pytest.skip("no stand-in for CUDA's driver in this build")

    def problem(**environment: object) -> str:
        done = accord("info", "--json", LD_PRELOAD=driver, **environment)
        assert done.returncode == 0, done.stderr
        (row,) = [row for row in json.loads(done.stdout)["runtimes"] if row["name"] == "cuda"]
        return str(row.get("problem", ""))

    assert problem() == ""
    assert problem(FAKE_CUDA_NO_INIT="1").startswith("cuda cuInit: ")


def test_info_says_whether_mps_serves(home: Home, accord: Accord, tmp_path: Path) -> None:
    driver = home.library.parent.parent / "tests" / "unit" / "fake_cuda" / "libcuda.so.1"
    if not driver.is_file():
        pytest.skip("no stand-in for CUDA's driver in this build")
    (tmp_path / "control").touch()  # of the daemon

    def told(runtime: str, **environment: object) -> set[object]:
        done = accord("info", "--json", **environment)
        assert done.returncode == 0, done.stderr
        (row,) = [row for row in json.loads(done.stdout)["runtimes"] if row["name"] == runtime]
        return {device.get("mps") for device in row["devices"]}

    served = {"FAKE_CUDA_MPS": "1", "CUDA_MPS_PIPE_DIRECTORY": tmp_path}
    assert told("cuda", LD_PRELOAD=driver) == {False}
    assert told("cuda", LD_PRELOAD=driver, **served) == {True}
    assert told("host") == {None}
    assert told("host", ACCORD_TEST_EXCLUSIVE_DEVICE="1") == {False}
    assert told("host", ACCORD_TEST_EXCLUSIVE_DEVICE="1", ACCORD_TEST_KERNEL_SERVER="7") == {True}
    assert " mps " in accord("info", LD_PRELOAD=driver, **served).stdout


def test_the_devices_of_synapse(home: Home, accord: Accord) -> None:
    folder = home.library.parent.parent / "tests" / "synapse" / "lib"
    if not (folder / "libSynapse.so").is_file():
        pytest.skip("no stand-in for Synapse in this build")

    def told(**environment: object) -> dict[str, Any]:
        asked = {"LD_LIBRARY_PATH": folder, "ACCORD_RUNTIME": "synapse", **environment}
        done = accord("info", "--json", **asked)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["default_runtime"] == "synapse"
        (row,) = [row for row in answer["runtimes"] if row["name"] == "synapse"]
        return row

    good = told(ACCORD_TEST_SYNAPSE_DEVICES="3")
    assert [device["name"] for device in good["devices"]] == ["Gaudi 2"] * 3
    assert "problem" not in good
    broken = told(ACCORD_TEST_SYNAPSE_FAIL="synInitialize:1+")
    assert broken["devices"] == [] and "synInitialize" in broken["problem"]
    missing = told(LD_LIBRARY_PATH="/nowhere")
    assert missing["devices"] == [] and "libSynapse.so" in missing["problem"]


def test_a_collective_library_that_is_not_there(home: Home, accord: Accord) -> None:
    done = accord("info", "--json", ACCORD_CCL_LIBRARIES="nccl:/nowhere/libnccl.so")
    rows = {row["name"]: row for row in json.loads(done.stdout)["collective_libraries"]}
    assert rows["nccl"]["usable"] is False and "/nowhere/libnccl.so" in rows["nccl"]["why"]


def test_a_collective_library_is_shown_as_it_was_found(fake_nccl: Path, accord: Accord) -> None:
    done = accord("info", "--json", ACCORD_CCL_LIBRARIES=f"nccl:{fake_nccl}")
    rows = {row["name"]: row for row in json.loads(done.stdout)["collective_libraries"]}
    nccl = rows["nccl"]
    assert nccl["usable"] and nccl["version"] >= 21800
    assert Path(nccl["path"]).samefile(fake_nccl)
    assert isinstance(nccl["functions"], str)
    shown = accord("info", ACCORD_CCL_LIBRARIES=f"nccl:{fake_nccl}").stdout
    assert str(nccl["version"]) in shown


def test_the_page_of_algorithms_is_up_to_date(home: Home, accord: Accord) -> None:
    done = accord("explain", "--markdown")
    page = REPOSITORY / "docs" / "algorithms.md"
    assert page.read_text() == done.stdout, f"run accord explain --markdown > {page}"


def test_explain_without_a_collective_lists_the_algorithms(home: Home, accord: Accord) -> None:
    shown = accord("explain").stdout
    described = json.loads(accord("explain", "--json").stdout)
    names = [one["name"] for one in described]
    assert names == ["library", "packets", "inbox", "two-level", "node-host", "node", "staged-pipelined", "staged"]
    assert all(name in shown for name in names)
    known = set(json.loads(accord("info", "--json").stdout)["algorithms"])
    assert {name for one in described if one["name"] != "library" for name in one["names"]} <= known
