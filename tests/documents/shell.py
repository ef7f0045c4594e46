# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs shell blocks as a reader would type them, and compares what they print with what is stated."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from documents import REPOSITORY, blocks
from marks import FILE, NIGHTLY

TIMEOUT_S = 3600 if NIGHTLY in os.environ else 120
# What a reader stands in: the checkout. Links, so that a block writes nothing into it but below build/.
_CHECKOUT = (".deps", "bench", "build", "examples", "include", "python", "scripts", "src", "tests")
MPI = REPOSITORY / ".deps" / "mpich" / "bin"
_PROGRAMS = Path(__file__).with_name("programs")
_STEP = "@@ step"
# `make` finds its own folder by the links; all that it makes lies in the true one.
_PRELUDE = f"set -e -o pipefail\nmake() {{ command make -C '{REPOSITORY}' \"$@\"; }}\n"


def _compile(source: Path, program: Path) -> None:
    lib = REPOSITORY / "build" / "lib"
    command = [MPI / "mpicc", source, "-o", program, f"-I{REPOSITORY / 'include'}", f"-L{lib}"]
    options = ["-laccord", f"-Wl,-rpath,{lib}", "-Wl,--no-as-needed"]
    subprocess.run([*command, *options], check=True, timeout=TIMEOUT_S)


def make_folder(folder: Path, document: Path) -> None:
    """A reader's folder: the checkout, the reader's programs, and the blocks that are files."""
    for name in _CHECKOUT:
        if (REPOSITORY / name).exists():
            (folder / name).symlink_to(REPOSITORY / name)
    shutil.copytree(REPOSITORY / "docs", folder / "docs")
    (folder / "home").mkdir()
    shutil.copy(REPOSITORY / "examples" / "allreduce_device.c", folder / "app.c")
    shutil.copy(_PROGRAMS / "train.py", folder)
    (folder / "job.sh").write_text("./app\n")
    text = document.read_text(encoding="utf-8")
    for source in (folder / "app.c", *_PROGRAMS.glob("*.c")):
        if f"./{source.stem}" in text or source.stem == "app":
            _compile(source, folder / source.stem)
    for block in blocks(document):
        if block.mark == FILE:
            (folder / block.about).write_text(block.text, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """That of a reader who has the commands and an MPI on PATH, and nothing set."""
    ours = ("ACCORD_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    tools = Path(sys.executable).parent
    host = {"ACCORD_RUNTIME": "host"} if shutil.which("nvidia-smi") else {}
    return {
        **kept,
        **host,
        "PATH": f"{MPI}:{tools}:{kept['PATH']}",
        "HOME": str(folder / "home"),
        "PREFIX": str(folder / "home" / "accord"),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "ACCORD_PYTHON": sys.executable,  # for the installed command, whose packages come from PyPI
        "COLUMNS": "200",
        "LC_ALL": "C.UTF-8",
    }


def run(name: str, before: list[str], commands: list[str], folder: Path) -> list[str]:
    """Runs commands line by line in one shell, after `before`; what each has printed, errors among it."""
    script = "\n".join([_PRELUDE, *before, *(f"echo '{_STEP}'\n{command}" for command in commands)])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    printed = [part.removeprefix("\n") for part in done.stdout.split(_STEP)[1:]]
    failed = commands[len(printed) - 1] if printed else "\n".join(before)
    assert done.returncode == 0, f"{name}: {failed}\nended with {done.returncode}:\n{done.stdout}"
    return printed


def _pattern(line: str) -> re.Pattern[str]:
    """A stated line: times, addresses and `…` stand for any."""
    words = re.escape(" ".join(line.split()))
    words = words.replace("…", ".*")
    words = re.sub(r"0x[0-9a-f]+", "0x[0-9a-f]+", words)
    return re.compile(re.sub(r"\d+\\\.\d+", r"[0-9.]+", words))


def differences(stated: list[str], printed: str) -> list[str]:
    """The stated lines that were not printed; a line `…` stands for any number of lines, in any order."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    wanted = [line for line in stated if line.strip() and line.strip() != "…"]
    missing = [line for line in wanted if not any(map(_pattern(line).fullmatch, lines))]
    whole = len(wanted) == len([line for line in stated if line.strip()])
    left = [
        line for line in lines if line and not any(_pattern(one).fullmatch(line) for one in wanted)
    ]
    return missing + ([f"not stated: {line}" for line in left] if whole else [])
