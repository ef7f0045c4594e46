# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The commit that a build carries, from git to `accord info` and the records of `accord bench`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from accord.library import read_info
from accord.paths import Home

from conftest import REPOSITORY, Accord

_COMMIT = re.compile(r"[0-9a-f]{12}(-dirty)?")


def _git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ["git", *names, "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _written(folder: Path, *words: str) -> str:
    """The commit in the file that the build's script makes for the sources in `folder`."""
    file = folder.parent / "commit.cpp"
    script = REPOSITORY / "cmake" / "WriteCommit.cmake"
    values = (f"-Dsource={folder}", f"-Doutput={file}", *words)
    subprocess.run(["cmake", *values, "-P", str(script)], check=True)
    return re.findall(r'return "(.*)";', file.read_text())[0]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A checkout of one commit, which has a tag, too."""
    for tool in ("git", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine")
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "file").write_text("one\n")
    _git(folder, "init", "-q")
    _git(folder, "add", "file")
    _git(folder, "commit", "-q", "-m", "one")
    _git(folder, "tag", "-a", "v1", "-m", "v1")
    return folder


def test_a_checkout_tells_its_commit_and_what_differs(sources: Path) -> None:
    head = _git(sources, "rev-parse", "HEAD")[:12]
    assert _written(sources) == head
    (sources / "new").write_text("not git's\n")
    assert _written(sources) == head
    (sources / "file").write_text("two\n")
    assert _written(sources) == f"{head}-dirty"


def test_sources_without_git_tell_nothing_but_what_is_given(sources: Path) -> None:
    copied = sources / "copied"  # git would tell the commit of the folder around it
    copied.mkdir()
    assert _written(copied) == ""
    assert _written(copied, "-Dcommit=0123456789ab") == "0123456789ab"


def test_what_did_not_change_is_not_written_anew(sources: Path) -> None:
    _written(sources)
    file = sources.parent / "commit.cpp"
    before = file.stat().st_mtime_ns
    _written(sources)
    assert file.stat().st_mtime_ns == before


def test_records_tell_the_commit_of_the_library(home: Home, accord: Accord, tmp_path: Path) -> None:
    commit = read_info(home.library)["commit"]
    assert not (REPOSITORY / ".git").exists() or _COMMIT.fullmatch(commit)
    file = tmp_path / "records.jsonl"
    words = ("--min", "8", "--max", "8", "--iterations", "2", "--memory", "device")
    done = accord("bench", "allreduce", "-n", "2", *words, "--json", file)
    if "no benchmark program" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text().splitlines()[0])
    assert record["accord"]["commit"] == commit
    assert record["command"].startswith("accord_bench_")
    assert re.search(r"\d+ cores \(.*\)", record["machine"]["name"])
