# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Who ends a verb by SIGTERM finds nothing of it: no ranks and no temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accord.benchmark import targets
from accord.paths import Home

from conftest import _OPENMPI, PYTHON


def processes_with(mark: str) -> list[int]:
    """Those whose environment holds these words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            held = mark.encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if held:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", ["bench", "doctor", "tune"])
def test_nothing_stays(verb: str, number: signal.Signals, home: Home, tmp_path: Path) -> None:
    if not targets():
        pytest.skip("no MPI on PATH or in .deps")
    words = {"bench": ["allreduce", "--seconds", "60"], "doctor": [], "tune": []}[verb]
    temporary = tmp_path / "t"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", verb, *words],
        env={
            **os.environ,
            **_OPENMPI,
            "PYTHONPATH": str(PYTHON),
            "ACCORD_RUNTIME": "host",
            "TMPDIR": str(temporary),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    mark = f"TMPDIR={temporary}"
    begin_s = time.monotonic()
    # The command, a launcher and two ranks at least.
    while len(processes_with(mark)) < 4:
        assert process.poll() is None and time.monotonic() - begin_s < 60
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    code = process.wait(60)
    assert code == (130 if verb == "tune" else 128 + number)
    begin_s = time.monotonic()
    while left := processes_with(mark):
        assert time.monotonic() - begin_s < 30, left
        time.sleep(0.1)
    assert list(temporary.iterdir()) == []
