# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Starts two ranks with each MPI found: device memory through Accord, timed beside the host MPI alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord.benchmark import Target, bench_command, core_count, environment_for, targets
from accord.checks.finding import Finding, State
from accord.errors import UserError
from accord.launch import root_hint
from accord.mpi import Vendor
from accord.paths import Home

RANKS = 2
_TIMEOUT_S = 90
# So long doctor goes on to the next MPI: on a machine where each takes minutes, nobody waits for all of them.
_BEGIN_WITHIN_S = 120
_OPERATIONS = ["allreduce", "latency"]
_SIZES = {"8 B": 8, "1 MiB": 1 << 20}
_OPTIONS = [
    "--min",
    "8",
    "--max",
    "1M",
    "--factor",
    str(1 << 17),
    "--seconds",
    "0.1",
    "--warmup",
    "5",
]
_OUTPUT_MAX = 8000  # characters
_OF_A_JOB = re.compile(
    r"(SLURM|SRUN|PBS|PALS|FLUX|LSB|SGE|COBALT|PMI|PMI2|PMIX|HYDI|OMPI_COMM_WORLD|OMPI_UNIVERSE)_"
    r"|(PE_HOSTFILE|MPI_LOCALRANKID|MPI_LOCALNRANKS)$"
)
# A host message may cost so much more under Accord than without; beyond, something is wrong.
_OVERHEAD_MAX = 1.5
_OVERHEAD_MAX_US = 2.0
# An 8-byte call of two ranks of one node takes a few us, unless they wait for a core.
_SMALL_CALL_MAX_US = 100.0


@dataclass(frozen=True)
class Outcome:
    """One run of the benchmark: its records, or why there are none."""

    records: list[dict[str, Any]]
    problem: str = ""
    # The problem is, for all one can tell, that other programs took the cores.
    too_busy: bool = False
    output: str = ""  # of a run that failed, its end

    def median_us(self, operation: str, size_bytes: int, peer: str | None = None) -> float | None:
        """Time of the program's own call, or of the named peer measured with it."""
        for row in self.records:
            wanted = row.get("ours") if peer is None else row.get("way") == peer
            if (row.get("operation"), row.get("size_bytes")) == (operation, size_bytes) and wanted:
                return float(row["median_us"]) if "median_us" in row else None
        return None

    def accord_at_work(self) -> bool:
        return all((row.get("accord") or {}).get("intercepts") is True for row in self.records)


def check_ranks(home: Home, progress: Callable[[str], None]) -> Iterator[Finding]:
    begin_s = time.monotonic()
    for target in targets():
        if not home.shim(target.abi).is_file():
            continue  # said by the check of the shims
        if (hint := root_hint(target.launcher, [], os.environ)) is not None:
            yield Finding(State.BROKEN, f"{target.title}: cannot start ranks", hint)
        elif not home.bench(target.abi).is_file():
            yield Finding(
                State.BROKEN,
                f"{target.title}: not measured, {home.bench(target.abi)} does not exist",
                "build Accord's benchmark (ACCORD_BENCH=ON)",
            )
        elif time.monotonic() - begin_s > _BEGIN_WITHIN_S:
            text = f"{target.title}: not measured, the MPIs before it took too long"
            yield Finding(State.SLOW, text, "run doctor when the machine is idle")
        else:
            progress(f"{RANKS} ranks of {target.title}")
            yield from _check_target(home, target)


def _check_target(home: Home, target: Target) -> Iterator[Finding]:
    device = _run(home, target, ["--memory", "device"])
    host = device if device.problem else _run(home, target, ["--memory", "host", "--peer", "mpi"])
    if device.too_busy or host.too_busy:
        text = f"{target.title}: {host.problem}, on a machine that is busy with other programs"
        yield Finding(State.SLOW, text, "run doctor when the machine is idle")
        return
    if device.problem:
        yield Finding(
            State.BROKEN,
            f"{target.title}: device memory: {device.problem}",
            "see the whole output of `accord bench allreduce latency --memory device --mpi "
            f"{target.abi.value} --mpiexec {target.launcher.path}`, with ACCORD_LOG=debug",
            device.output,
        )
        return
    if host.problem:
        text = f"{target.title}: host memory: {host.problem}"
        yield Finding(State.BROKEN, text, output=host.output)
        return
    if not device.accord_at_work():
        yield Finding(
            State.BROKEN,
            f"{target.title}: the ranks ran, but their MPI calls did not go through Accord",
            "see what ACCORD_LOG=debug says in `accord bench allreduce`; unset ACCORD_ENABLE",
        )
        return
    yield Finding(State.OK, f"{target.title}: {RANKS} ranks, device memory, results verified")
    for operation in _OPERATIONS:
        yield _compare(target, operation, device, host)


def _compare(target: Target, operation: str, device: Outcome, host: Outcome) -> Finding:
    parts = []
    mend = ""
    for name, size_bytes in _SIZES.items():
        on_device = device.median_us(operation, size_bytes)
        on_host = host.median_us(operation, size_bytes)
        alone = host.median_us(operation, size_bytes, "mpi")
        if on_device is None or on_host is None or alone is None:
            return Finding(State.BROKEN, f"{target.title}: {operation} of {name} was not measured")
        parts.append(
            f"{name} {on_device:.1f} us (host memory {on_host:.1f}, without Accord {alone:.1f})"
        )
        if size_bytes == 8 and alone > _SMALL_CALL_MAX_US:
            mend = _crowded_mend(target)
        elif size_bytes == 8 and on_device > _SMALL_CALL_MAX_US:
            mend = (
                "run doctor on an idle machine; ACCORD_TRACE=1 tells how each call is carried out"
            )
        elif on_host > max(alone * _OVERHEAD_MAX, alone + _OVERHEAD_MAX_US) and not mend:
            mend = "host memory should cost the same with Accord: run doctor on an idle machine"
    text = f"{target.title}: {operation}: device memory {'; '.join(parts)}"
    return Finding(State.SLOW if mend else State.OK, text, mend)


def _crowded_mend(target: Target) -> str:
    advice = "measure with Open MPI, which can give its core away"
    if target.launcher.vendor is Vendor.OPENMPI:
        advice = "set OMPI_MCA_mpi_yield_when_idle=1"
    reason = "this MPI by itself is that slow here: its ranks wait for a core"
    return f"{reason}; stop other programs, or {advice}"


def _run(home: Home, target: Target, words: list[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        file = Path(folder) / "records.json"
        options = [*_OPERATIONS, *_OPTIONS, *words, "--progress", "off", "--json", str(file)]
        try:
            with bench_command(home, target, RANKS, options) as command:
                code, output = _run_bounded(command, _of_this_machine(target))
        except UserError as error:
            return Outcome([], str(error))
        if code is None:
            problem = f"the ranks had no result after {_TIMEOUT_S} s"
            return Outcome([], problem, _is_busy(), output[-_OUTPUT_MAX:])
        if code != 0:
            problem = f"exit status {code}: {_last_line(output)}"
            return Outcome([], problem, output=output[-_OUTPUT_MAX:])
        lines = file.read_text().splitlines() if file.exists() else []
    records = [json.loads(line) for line in lines if line.strip()]
    wrong = [f"{row['operation']}: {row['fault']}" for row in records if "fault" in row]
    return Outcome(records, f"wrong result of {wrong[0]}" if wrong else "")


def _of_this_machine(target: Target) -> dict[str, str]:
    """The environment without a job manager's words, by which a launcher would start the ranks elsewhere."""
    environment = environment_for(target, RANKS)
    return {name: value for name, value in environment.items() if not _OF_A_JOB.match(name)}


def _is_busy() -> bool:
    """Whether programs other than our ranks kept at least half of the cores at work."""
    return os.getloadavg()[0] - RANKS > core_count() / 2


def _run_bounded(command: list[str], environment: dict[str, str]) -> tuple[int | None, str]:
    """Exit status (None: timed out, and the whole job was ended) and output."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, _end(process)
    except BaseException:
        _end(process)
        raise
    return process.returncode, output


def _end(process: subprocess.Popen[str]) -> str:
    """The launcher ends its ranks when it is told to; what does not listen is killed. What they said."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=5)[0]
    return ""


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip(" -=\t")]
    telling = [line for line in lines if "accord" in line.lower() or "error" in line.lower()]
    return (telling or lines or ["no output"])[0]
