# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Checks of accelerators: hardware, driver, and whether Accord sees them."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accord.checks.finding import Finding, State
from accord.info import device_rows


# What to do about a device that does not answer, by runtime.
_MEND = {
    "cuda": "see what nvidia-smi says of it; hide it with CUDA_VISIBLE_DEVICES",
    "hip": "install AMD's HIP runtime (libamdhip64, of ROCm 5.2 or later), be in the group that owns "
    "/dev/kfd and /dev/dri/renderD*; see HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES",
    "synapse": "install Intel's Gaudi software (libSynapse.so, where the dynamic linker finds it); a "
    "Gaudi serves one process at a time: see hl-smi",
    "level_zero": "install libze1 and Intel's driver (libze-intel-gpu1, or intel-level-zero-gpu), "
    "be in the group that owns /dev/dri/renderD*; see ZE_AFFINITY_MASK",
}


def nvidia_gpu_count() -> int:
    """NVIDIA GPUs whose device files this machine (or container) has."""
    return sum(1 for node in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", node.name))


def accelerators(told: dict[str, Any]) -> list[str]:
    """One name for each device of a vendor's runtime that Accord sees."""
    rows = [row for row in device_rows(told) if row["runtime"] != "host" and "error" not in row]
    return [f"{row.get('name')} ({row['runtime']})" for row in rows]


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def check_devices(told: dict[str, Any]) -> Iterator[Finding]:
    yield _check_presence(told)
    for runtime in told.get("runtimes") or []:
        if isinstance(runtime, dict) and runtime.get("problem"):
            yield Finding(
                State.SLOW,
                f"devices are left out: {runtime['problem']}",
                _MEND.get(str(runtime.get("name")), ""),
            )
    for row in device_rows(told):
        if "error" in row:
            yield Finding(
                State.BROKEN,
                f"device {row['device']} of {row['runtime']} does not answer: {row['error']}",
                _MEND.get(str(row["runtime"]), ""),
            )
    yield from _check_links(told)
    yield from _check_mps(told)


def _check_mps(told: dict[str, Any]) -> Iterator[Finding]:
    served = {row["mps"] for row in device_rows(told) if row.get("mps") is not None}
    if served == {True}:
        yield Finding(State.OK, "NVIDIA's MPS serves: ranks that share a GPU run side by side")
    elif served:
        yield Finding(State.OK, "no MPS of NVIDIA serves: ranks that share a GPU take turns on it")


def _check_links(told: dict[str, Any]) -> Iterator[Finding]:
    links = [row for row in told.get("links") or [] if isinstance(row, dict)]
    apart = [
        f"{row.get('from')}-{row.get('to')}"
        for row in links
        if row.get("from") != row.get("to") and row.get("peer_access") is False
    ]
    if apart:
        yield Finding(
            State.SLOW,
            f"no peer access between devices {', '.join(apart)}: their data goes through the host",
            "see nvidia-smi topo -m; a virtual machine or ACS in the PCIe switches may forbid it",
        )
    elif links:
        yield Finding(State.OK, "all accelerators reach each other's memory")


def _check_presence(told: dict[str, Any]) -> Finding:
    gpus = nvidia_gpu_count()
    if seen := accelerators(told):
        names = [f"{number} x {name}" for name, number in Counter(seen).items()]
        return Finding(State.OK, f"accelerators: {', '.join(names)}")
    if gpus == 0:
        return Finding(State.OK, "no accelerator here: the embedded host runtime stands in for one")
    if not _loads("libcuda.so.1"):
        return Finding(
            State.BROKEN,
            f"{gpus} NVIDIA GPUs, but the driver's libcuda.so.1 does not load",
            "install the driver's user libraries; a container needs --gpus all",
        )
    return Finding(
        State.BROKEN,
        f"{gpus} NVIDIA GPUs and a driver, but Accord sees none of them",
        "build Accord where nvcc is found; unset ACCORD_RUNTIME and CUDA_VISIBLE_DEVICES",
    )
