# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Finds out which MPI a program will load: a binary from its libraries, a Python program by asking its
interpreter. Knows nothing of launchers and of Accord's files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from accord.errors import UserError
from accord.mpi import Abi, Vendor, abi_of_library, is_mpi_library
from accord.waiting import waiting

_NAME_IT = "name its MPI with --mpi mpich|openmpi|abi"


@dataclass(frozen=True)
class Linkage:
    """The MPI of one program."""

    abi: Abi
    library: Path
    vendor: Vendor
    how: str  # "linked" or "mpi4py"


class NoMpiError(UserError):
    """The program exists and can run, but no MPI can be seen in it."""


# Run by the program's own interpreter: imports mpi4py without initialising MPI, and lists the libraries
# that this mapped. mpi4py chooses among MPIs at run time, so only loading it gives the answer.
_PROBE = """
import json
try:
    import mpi4py
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    import mpi4py.MPI
    with open("/proc/self/maps") as maps:
        answer = sorted({line.split(None, 5)[5].strip() for line in maps if "/" in line})
except BaseException as error:
    answer = f"{type(error).__name__}: {error}".splitlines()[0]
print("\\n" + json.dumps(answer))
"""
_PYTHON = re.compile(r"(python|pypy)\d*(\.\d+)*t?$")


def resolve_program(name: str) -> Path:
    """The file that running `name` would execute; UserError when there is none."""
    if found := shutil.which(name):
        return Path(found)
    path = Path(name)
    if "/" not in name:
        there = "; it is in this folder, so write ./" + name if path.is_file() else ""
        raise UserError(f"cannot find the program {name} on PATH{there}")
    if not path.exists():
        raise UserError(f"the program {name} does not exist")
    if path.is_dir():
        raise UserError(f"{name} is a folder, not a program")
    hint = f"; run it as `python {name}`" if path.suffix == ".py" else f"; try `chmod +x {name}`"
    raise UserError(f"{name} is not executable{hint}")


def detect(program: list[str]) -> Linkage:
    """The MPI that the command `program` (its first word is the file to run) will load."""
    path = resolve_program(program[0])
    try:
        return _detect_file(path)
    except NoMpiError:
        # numactl ./app, nsys profile python x.py: the MPI program is one of the arguments.
        for position, word in enumerate(program[1:], start=1):
            if (linkage := _detect_argument(word)) is not None:
                return linkage
            if position > 32:
                break
        raise


def _detect_argument(word: str) -> Linkage | None:
    if word.startswith("-") or not (found := shutil.which(word)):
        return None
    try:
        return _detect_file(Path(found))
    except UserError:
        return None


def _detect_file(path: Path) -> Linkage:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if _PYTHON.match(
        path.name
    ):  # the interpreter, or a version manager's script that stands for it
        return _detect_python(path)
    if head.startswith(b"\x7fELF"):
        return _detect_binary(path)
    if head.startswith(b"#!"):
        return _detect_script(path, head)
    raise UserError(f"{path} is neither a binary of this machine nor a script with a #! line")


def _detect_script(path: Path, head: bytes) -> Linkage:
    line = head.split(b"\n", 1)[0][2:].decode(errors="replace")
    words = shlex.split(line)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if words and _PYTHON.match(Path(words[0]).name):
        interpreter = shutil.which(words[0])
        if interpreter is None:
            raise UserError(f"{path} needs {words[0]}, which does not exist")
        return _detect_python(Path(interpreter))
    shell = words[0] if words else "nothing"
    raise NoMpiError(
        f"{path} is a script for {shell}, and which MPI it runs cannot be seen; {_NAME_IT}"
    )


def _libraries(path: Path) -> dict[str, str]:
    """What the loader would load for a binary: file name -> path or "not found"; {} when static."""
    try:
        done = subprocess.run(
            ["ldd", path.absolute()], capture_output=True, text=True, check=False, errors="replace"
        )
    except OSError as error:
        raise NoMpiError(f"cannot run ldd on {path} ({error.strerror}); {_NAME_IT}") from error
    needed: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"\s*(\S+) => (not found|/.*?)(?: \(0x[0-9a-f]+\))?$", line):
            needed[match.group(1)] = match.group(2)
        elif match := re.match(r"\s*(/\S.*?) \(0x[0-9a-f]+\)$", line):
            needed[Path(match.group(1)).name] = match.group(1)
    return needed


def needed_mpi(path: Path) -> tuple[str, Path | None]:
    """File name of the MPI library that a binary is linked to, and the one the loader would take."""
    for name, where in _libraries(path).items():
        if abi_of_library(name) is not None:
            return name, Path(where) if where.startswith("/") else None
    raise NoMpiError(f"{path} is not linked to an MPI library")


def _detect_binary(path: Path) -> Linkage:
    needed = _libraries(path)
    if (linkage := _choose(needed, str(path), "linked")) is not None:
        return linkage
    if not needed:
        raise NoMpiError(
            f"{path} is linked statically, or not for this machine: Accord needs an MPI that is a "
            "shared library"
        )
    raise NoMpiError(
        f"{path} is not linked to an MPI library; if it loads one while it runs, {_NAME_IT}"
    )


def _detect_python(interpreter: Path) -> Linkage:
    # Accord must not be preloaded here: the question is what the program finds by itself.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        with waiting(f"asking {interpreter.name} which MPI its mpi4py loads"):
            done = subprocess.run(
                [interpreter, "-c", _PROBE],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=120,
                env=environment,
                check=False,
            )
        answer = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        raise NoMpiError(
            f"{interpreter} gave no answer when it imported mpi4py; {_NAME_IT}"
        ) from error
    if isinstance(answer, str):
        raise NoMpiError(
            f"{interpreter} cannot import mpi4py ({answer}); install it there, or, if the program "
            f"uses another MPI module, {_NAME_IT}"
        )
    linkage = _choose({Path(entry).name: entry for entry in answer}, str(interpreter), "mpi4py")
    if linkage is None:
        raise NoMpiError(f"mpi4py of {interpreter} loads no known MPI library; {_NAME_IT}")
    return linkage


def _choose(needed: dict[str, str], program: str, how: str) -> Linkage | None:
    """Picks the MPI out of `needed` (file name -> path or "not found"); None when there is none."""
    libraries = {name: where for name, where in needed.items() if is_mpi_library(name)}
    if not libraries:
        return None
    if len(libraries) > 1:
        names = " and ".join(sorted(libraries))
        raise UserError(f"{program} loads {names}: a program can only use one MPI")
    name, where = libraries.popitem()
    abi = abi_of_library(name)
    if abi is None:
        raise UserError(
            f"{program} needs {name}, an MPI whose ABI Accord does not know; it serves libmpi.so.12 "
            "and libmpich.so.12 (MPICH), libmpi.so.40 (Open MPI) and libmpi_abi.so (MPI 5)"
        )
    if not where.startswith("/"):
        raise UserError(
            f"{program} needs {name}, which the loader does not find; add its folder to "
            "LD_LIBRARY_PATH, or install that MPI"
        )
    openmpi = abi is Abi.OPENMPI or any(entry.startswith("libopen-pal.so") for entry in needed)
    return Linkage(abi, Path(where), Vendor.OPENMPI if openmpi else Vendor.MPICH, how)
