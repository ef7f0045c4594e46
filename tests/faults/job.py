# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""An MPI job to which something is done, in namespaces of its own, so that what it leaves behind shows.

In a PID namespace every process but this one is the job's; /dev/shm and the folder for temporary files are the job's,
too. A socket lives no longer than the processes that hold it, but for its name in a file system, which is a file.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SKIPPED = 77
INSIDE = "FAULTS_INSIDE"
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 256 << 20
PR_SET_CHILD_SUBREAPER = 36
# What a host MPI leaves behind when its job is ended by force, with Accord or without: MPICH's shared memory; folders
# of Open MPI's launcher and its rendezvous files.
OF_HOST_MPI = re.compile(r"mpich_shm_|prte\.|ompi\.|pmix|prterun|dvm\.|sm_segment|vader_segment")
# What is left when the launcher ends may still be on its way out.
PARTING_S = 5.0


class Failure(Exception):
    """What a run has done that it must not."""


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def enter_namespaces() -> None:
    """Becomes the same command where its processes and its /dev/shm are its own."""
    if INSIDE in os.environ:
        options = f"size={MEMORY_BYTES}"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "faults", str(MEMORY)],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            skip(f"no /dev/shm of its own: {done.stderr.strip()}")
        # Who is left behind becomes a child of this process, and is seen.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        return
    for tool in ("unshare", "mount"):
        if shutil.which(tool) is None:
            skip(f"no {tool} on this machine")
    unshare = [
        "unshare",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
        *("--pid", "--fork", "--kill-child", "--mount", "--mount-proc"),
    ]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"namespaces are not permitted: {tried.stderr.strip()}")
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


def content_of(file: Path) -> str:
    try:
        return file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def other_processes() -> Iterator[tuple[int, str]]:
    """Number and command of each that is neither this one nor dead."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        stat = content_of(entry / "stat")
        if not stat or stat.rpartition(")")[2].split()[0] in "ZX":
            continue
        yield int(entry.name), content_of(entry / "cmdline") or stat


def files() -> Iterator[Path]:
    """All that may be left in /dev/shm or the folder for temporary files."""
    for folder in (MEMORY, Path(tempfile.gettempdir())):
        for file in folder.iterdir():
            if not OF_HOST_MPI.match(file.name):
                yield file


def bury() -> None:
    """What is dead of those that were left to this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


class Job:
    """One run of a program under mpiexec. Its ranks write into `folder`."""

    def __init__(self, command: list[str], ranks: int, environment: dict[str, str], limit_s: float):
        self.ranks = ranks
        self.limit_s = limit_s
        self.folder = Path(tempfile.mkdtemp(prefix="job."))
        temporary = self.folder / "tmp"
        temporary.mkdir()
        self.temporary = temporary
        self.output_file = self.folder / "output"
        self.began = time.monotonic()
        with self.output_file.open("wb") as output:
            self.launcher = subprocess.Popen(
                command,
                env={
                    **os.environ,
                    **environment,
                    "FAULTS_FOLDER": str(self.folder),
                    "TMPDIR": str(temporary),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def told(self, rank: int, word: str) -> list[str]:
        """What this rank has told under that word."""
        lines = content_of(self.folder / f"rank.{rank}").splitlines()
        return [line[len(word) + 1 :] for line in lines if line.split(" ", 1)[0] == word]

    def process(self, rank: int) -> int:
        return int(self.told(rank, "pid")[0])

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        while not condition():
            if time.monotonic() - self.began > self.limit_s:
                raise Failure(f"not within {self.limit_s:.0f} s: {what}")
            time.sleep(0.002)

    def wait_or_end(self, word: str) -> bool:
        """Until all ranks have told it, or the job has ended without."""

        def have_told() -> bool:
            return all(self.told(rank, word) for rank in range(self.ranks))

        self.wait_until(word, lambda: have_told() or self.launcher.poll() is not None)
        return have_told()

    def wait_for_all(self, word: str) -> None:
        if not self.wait_or_end(word):
            raise Failure(f"the job has ended before all ranks told {word}")

    def output(self) -> str:
        return content_of(self.output_file)

    def say(self, word: str) -> None:
        (self.folder / word).touch()

    def finish(self) -> int:
        """How the launcher ends, which it does in time."""
        self.wait_until("the end of the job", lambda: self.launcher.poll() is not None)
        return self.launcher.wait()

    def check_nothing_left(self) -> None:
        end = time.monotonic() + PARTING_S
        left: list[str] = ["?"]
        while left and time.monotonic() < end:
            bury()
            left = [f"process {number}: {command}" for number, command in other_processes()]
            left += [f"file {file}" for file in files() if file != self.folder]
            left += [f"file {f}" for f in self.temporary.rglob("*") if self._is_left(f)]
            if left:
                time.sleep(0.01)
        if left:
            raise Failure("left behind: " + "; ".join(left))

    def _is_left(self, file: Path) -> bool:
        of_mpi = [OF_HOST_MPI.match(part) for part in file.relative_to(self.temporary).parts]
        return not any(of_mpi)

    def report(self) -> str:
        """What there is to say about a failure."""
        parts = [f"--- output\n{self.output()[-8000:]}"]
        for rank in range(self.ranks):
            parts.append(f"--- rank {rank}\n{content_of(self.folder / f'rank.{rank}')[-4000:]}")
        for number, command in other_processes():
            where = content_of(Path(f"/proc/{number}/wchan")).strip()
            stat = content_of(Path(f"/proc/{number}/stat")).rpartition(")")[2].split()
            parts.append(f"--- process {number} ({stat[0] if stat else '?'}, {where}): {command}")
        return "\n".join(parts)

    def remove(self) -> None:
        """Whatever is left of it."""
        for number, _ in list(other_processes()):
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.launcher.wait()
        end = time.monotonic() + PARTING_S
        while any(other_processes()) and time.monotonic() < end:
            bury()
            time.sleep(0.01)
        bury()
        for file in [*MEMORY.iterdir(), self.folder]:
            shutil.rmtree(file, ignore_errors=True) if file.is_dir() else file.unlink()
