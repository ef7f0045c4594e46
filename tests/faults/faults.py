#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs an MPI program (rounds.cpp) again and again and does something to it each time.

    faults.py FAULT --flavour mpich --mpiexec MPIEXEC --build BUILD

Each run ends within a stated time. Each rank that lives has right results, or an MPI error that names who is to blame;
where the host MPI ends the job, all of it is gone. No process, no shared memory, no file is left behind. What is random
follows from --seed. Ends with 77, and says why, where the namespaces it needs are not to be had.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from job import MEMORY, Failure, Job, enter_namespaces, other_processes

LIMIT_S = 60.0
# Short ones by inboxes, longer ones through regions, the longest ones straight: all within some rounds.
WAYS = {
    "ACCORD_RUNTIME": "host",
    "ACCORD_INBOX_CALLS": "1",
    "ACCORD_INBOX_BYTES": "2K",
    "ACCORD_NODE_BYTES": "1",
    "ACCORD_DIRECT_BYTES": "256K",
    "ACCORD_P2P_BYTES": "1",
    "ACCORD_YIELD": "on",  # ranks that spin on a busy machine have their peers wait for the processor
}
# Out of reach of MPICH's launcher, which kills the groups of processes that it has started when one has died, whatever
# its option to leave them alone; and with an output that does not end with it.
OUT_OF_REACH = ["sh", "-c", 'exec setsid --wait "$@" >>"$FAULTS_FOLDER/output" 2>&1', "sh"]

# UCX 1.13 ends a process that reads or writes memory of one that is gone at the moment when TCP tells so.
OF_UCX = "Fatal: unexpected error: "


@dataclass
class Run:
    """One run, before and while it goes."""

    options: argparse.Namespace
    chance: random.Random
    ranks: int = 2
    program: str = "rounds"
    launcher: list[str] = field(default_factory=list)  # options of mpiexec
    wrapper: list[str] = field(default_factory=list)  # what each rank is started by
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: dict(WAYS))
    preload: list[str] = field(default_factory=list)
    job: Job | None = None

    @contextlib.contextmanager
    def crowded_processor(self) -> Iterator[None]:
        """All ranks on one, beside a process that never gives it up: who yields waits for milliseconds."""
        processor = str(min(os.sched_getaffinity(0)))
        self.wrapper = [*self.wrapper, "taskset", "-c", processor]
        spinner = subprocess.Popen(
            ["taskset", "-c", processor, sys.executable, "-c", "while True: pass"]
        )
        try:
            yield
        finally:
            spinner.kill()
            spinner.wait()

    def start(self, limit_s: float = LIMIT_S) -> Job:
        build = Path(self.options.build)
        preload = ":".join([*self.preload, str(build / "lib" / "libaccord.so")])
        command = [
            self.options.mpiexec,
            *self.launcher,
            *("-n", str(self.ranks)),
            *self.wrapper,
            *("env", f"LD_PRELOAD={preload}"),
            str(build / "bin" / f"accord_{self.program}_{self.options.flavour}"),
            *self.arguments,
        ]
        self.job = Job(command, self.ranks, self.environment, limit_s)
        return self.job

    # Checks of what the ranks have told.

    def expect(self, good: bool, what: str) -> None:
        if not good:
            raise Failure(what)

    def expect_nothing_wrong(self) -> None:
        for rank in range(self.ranks):
            wrong = self.job.told(rank, "wrong")
            self.expect(not wrong, f"rank {rank} has wrong results: {wrong}")

    def expect_done(self, rank: int) -> None:
        self.expect(bool(self.job.told(rank, "done")), f"rank {rank} has not come to its end")

    def expect_errors(self, rank: int, pattern: str, at_least: int) -> None:
        """Of this rank, all of them of that text."""
        errors = self.job.told(rank, "error")
        self.expect(len(errors) >= at_least, f"rank {rank} has no error")
        for error in errors:
            self.expect(
                re.search(pattern, error) is not None,
                f"rank {rank} has an error without /{pattern}/: {error}",
            )

    def expect_no_errors(self) -> None:
        """All of it right, and each rank at its end."""
        code = self.job.finish()
        for rank in range(self.ranks):
            errors = self.job.told(rank, "error")
            self.expect(not errors, f"rank {rank} has an error: {errors}")
            self.expect_done(rank)
        self.expect(code == 0, f"the launcher ends with {code}")

    def paths(self, rank: int) -> set[str]:
        return set(self.job.told(rank, "path"))

    def expect_paths(self, rank: int, *paths: str) -> None:
        """Or the fault has met something else than what it is meant for."""
        told = self.paths(rank)
        self.expect(set(paths) <= told, f"rank {rank} has gone by {told} only")

    def expect_refused(self) -> None:
        """Something was, unless the share is so small that chance may have spared all calls."""
        told = self.job.folder / "refused"
        self.expect(told.exists(), "nothing was asked for that could be refused")
        refused = sum(int(line.split()[0]) for line in told.read_text().splitlines())
        is_sure = self.environment["FAULTS_REFUSE_PERCENT"] == "100"
        self.expect(refused > 0 or not is_sure, "nothing was refused")

    def refuse(self, what: str) -> None:
        """All that Accord asks for, or a part, or on one rank only."""
        self.preload = [str(Path(self.options.build) / "lib" / "libaccord_faults_refuse.so")]
        self.environment |= {
            "FAULTS_REFUSE": what,
            "FAULTS_REFUSE_PERCENT": str(self.chance.choice([100, 100, 60, 20])),
            "FAULTS_SEED": str(self.chance.randrange(1 << 20)),
        }
        if self.chance.random() < 0.5:
            self.environment["FAULTS_REFUSE_RANK"] = str(self.chance.randrange(self.ranks))


def killed_rank(run: Run) -> None:
    """At any time, with all kinds of calls: the launcher ends the job."""
    job = run.start()
    job.wait_for_all("warm")
    time.sleep(run.chance.uniform(0, 0.02))
    os.kill(job.process(run.chance.randrange(run.ranks)), signal.SIGKILL)
    run.expect(job.finish() != 0, "the launcher does not say that a rank was killed")


def let_others_be(run: Run) -> int:
    """The launcher shall, where one of three ranks dies. Which one that is to be."""
    run.ranks = 3
    if run.options.flavour == "mpich":
        run.wrapper = OUT_OF_REACH
    else:
        run.launcher = ["--enable-recovery"]
    return run.chance.randrange(run.ranks)


def killed_rank_alone(run: Run) -> None:
    """In collectives from device to device, where the launcher lets the others be: their errors name the rank.

    Not in a round in which ranks vote, by the host MPI: that one would wait for good.
    """
    dead = let_others_be(run)
    last = run.chance.randint(34, 58)
    run.arguments = ["collectives", f"die={dead}:{last}:{run.chance.randrange(3000)}"]
    others = set(range(run.ranks)) - {dead}
    with run.crowded_processor() if run.chance.random() < 0.3 else contextlib.nullcontext():
        job = run.start()
        job.limit_s *= 3  # three ranks and a busy process may share one core
        job.finish()
        job.wait_until(
            "the end of the others", lambda: all(job.told(each, "done") for each in others)
        )
    for rank in others:
        run.expect_errors(rank, rf"the process of rank {dead} is gone", 1)
        run.expect_done(rank)
        run.expect_paths(rank, "inbox", "node", "node-direct")


def killed_rank_in_epoch(run: Run) -> None:
    """Of one-sided calls: before the fence or MPI_Win_complete, with a lock, in an update. Errors name the rank."""
    run.program = "window_rounds"
    dead = let_others_be(run)
    epoch = run.chance.choice(["fence", "pscw", "lock", "update"])
    is_managed = epoch != "lock" and run.chance.random() < 0.3
    death = f"die={dead}:{run.chance.randint(1, 20)}:{run.chance.randrange(20000)}"
    run.arguments = [epoch, death, *(["managed"] if is_managed else [])]
    others = set(range(run.ranks)) - {dead}
    job = run.start()
    job.wait_until("the end of the others", lambda: all(job.told(each, "done") for each in others))
    job.say("end")
    job.finish()
    for rank in others:
        run.expect_errors(rank, rf"the process of rank {dead}\b", 1)
        if rank != 0 or epoch in ("fence", "pscw"):  # else it has to do with itself
            run.expect_paths(rank, "window-messages" if is_managed else "window-direct")


def killed_proxy(run: Run) -> None:
    """While messages go through it: an error of both ends that names its node, or none where it was not needed."""
    design = run.chance.choice(["passive", "active1", "active2"])
    run.arguments = ["messages"]
    run.environment |= {
        "ACCORD_NODE_SPLIT": "1",
        "ACCORD_NET_DESIGN": design,
        "ACCORD_NET_BYTES": "1",
        "ACCORD_UCX_TLS": "tcp",
        "ACCORD_PROXY_CHUNK_BYTES": "16K",
    }
    job = run.start()
    job.wait_for_all("warm")
    ranks = range(run.ranks)  # which go another way until their proxy is there
    job.wait_until(design, lambda: all(f"net-{design}" in run.paths(rank) for rank in ranks))
    time.sleep(run.chance.uniform(0, 0.02))
    proxies = [number for number, command in other_processes() if "accord_proxy" in command]
    run.expect(bool(proxies), "there is no proxy")
    os.kill(run.chance.choice(proxies), signal.SIGKILL)
    time.sleep(0.05)
    job.say("end")
    if job.finish() != 0 and OF_UCX in job.output():
        return
    for rank in range(run.ranks):
        run.expect_errors(rank, r"the proxy of node|has given up|connection|gone", 0)
        run.expect_done(rank)


def stopped_rank(run: Run) -> None:
    """For seconds, in a minute of CI's nightly form: its peers wait, and all is right."""
    job = run.start(LIMIT_S + run.options.stop_s)
    job.wait_for_all("warm")
    time.sleep(run.chance.uniform(0, 0.02))
    rank = run.chance.randrange(run.ranks)
    os.kill(job.process(rank), signal.SIGSTOP)
    time.sleep(run.options.stop_s)
    os.kill(job.process(rank), signal.SIGCONT)
    time.sleep(0.02)
    job.say("end")
    run.expect_no_errors()


def end_when_warm(run: Run, job: Job) -> None:
    job.wait_for_all("warm")
    job.say("end")
    run.expect_no_errors()


def refused_ipc(run: Run) -> None:
    """Descriptors do not come through, or there is no socket for them: what needs them goes another way."""
    run.refuse(run.chance.choice(["send", "socket"]))
    end_when_warm(run, run.start())
    run.expect_refused()


def no_device_memory(run: Run) -> None:
    """The device has room for the program's own buffers alone: what needs more goes another way."""
    run.refuse("memory")
    end_when_warm(run, run.start())
    run.expect_refused()


def failing_plugin(run: Run) -> None:
    """A collective library that cannot be had costs nothing; one that fails is an error that names it."""
    library = Path(run.options.build) / "tests" / "ccl" / "libfake_nccl.so"
    run.arguments = ["collectives"]
    run.environment |= {"ACCORD_ALGORITHM": "nccl", "FAKE_NCCL_PATIENCE_MS": "3000"}
    kind = run.chance.choice(["lacks", "is_none", "begins_not", "fails", "fails"])
    if kind == "lacks":
        library = Path(run.options.build) / "lib" / "libaccord_faults_refuse.so"
    if kind == "is_none":
        library = Path(__file__)
    if kind == "begins_not":
        run.environment["FAKE_NCCL_FAIL_INIT"] = str(run.chance.randrange(run.ranks))
    if kind == "fails":
        what = run.chance.choice(["CALL", "MESSAGE"])
        run.environment[f"FAKE_NCCL_FAIL_{what}"] = str(run.chance.randint(1, 50))
        if run.chance.random() < 0.5:
            run.environment["FAKE_NCCL_FAIL_RANK"] = str(run.chance.randrange(run.ranks))
        if run.chance.random() < 0.5:
            run.environment["FAKE_NCCL_FAIL_LATE"] = "1"
    run.environment["ACCORD_CCL_LIBRARIES"] = f"nccl:{library}"
    job = run.start()
    if kind != "fails":
        end_when_warm(run, job)
        return
    job.wait_for_all("warm")
    job.say("end")
    job.finish()
    for rank in range(run.ranks):
        run.expect_errors(rank, r"nccl", 1)
        run.expect_done(rank)
        run.expect_paths(rank, "nccl")


def full_shared_memory(run: Run) -> None:
    """From the end of MPI_Init on, or from the start, when the host MPI may say that it cannot begin."""
    from_start = run.chance.random() < 0.4
    run.arguments = ["wait"]
    filler = MEMORY / "filler"
    if not from_start:
        # Open MPI's own is allocated as it is used, and its ranks would end with SIGBUS.
        run.environment["OMPI_MCA_btl_sm_backing_directory"] = tempfile.gettempdir()
    if from_start:
        fill(filler, run.chance.choice([0, 64 << 10, 4 << 20, 40 << 20]))
    job = run.start()
    if not from_start:
        job.wait_for_all("pid")
        fill(filler, 0)
    job.say("go")
    try:
        if from_start and not job.wait_or_end("warm"):
            run.expect(job.finish() != 0, "a job that has not begun ends well")
            return
        end_when_warm(run, job)
    finally:
        filler.unlink()


def fill(file: Path, left_bytes: int) -> None:
    """All of /dev/shm but so much."""
    free = os.statvfs(MEMORY)
    with file.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, max(1, free.f_bavail * free.f_bsize - left_bytes))


def few_descriptors(run: Run) -> None:
    """A process may have 64 open, and has communicators that would take more."""
    run.wrapper = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]
    run.arguments = ["communicators=12"]
    end_when_warm(run, run.start())


FAULTS: dict[str, Callable[[Run], None]] = {
    each.__name__: each
    for each in (
        killed_rank,
        killed_rank_alone,
        killed_rank_in_epoch,
        killed_proxy,
        stopped_rank,
        refused_ipc,
        no_device_memory,
        failing_plugin,
        full_shared_memory,
        few_descriptors,
    )
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--flavour", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--build", required=True)

    def number(name: str, kind: type, value: float, text: str) -> None:
        """Also from the environment, for those that ctest runs."""
        variable = "FAULTS_" + name.upper()
        value = os.environ.get(variable, value)
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=kind, default=value, help=f"{text} ({variable})")

    number("times", int, 3, "how many runs")
    number("seed", int, 1, "what is random follows from it")
    number("stop_s", float, 1.5, "how long a rank is stopped")
    return parser.parse_args()


def run_once(options: argparse.Namespace, number: int) -> float:
    """How many seconds it took."""
    run = Run(options, random.Random(f"{options.fault} {options.seed} {number}"))
    try:
        FAULTS[options.fault](run)
        seconds = time.monotonic() - run.job.began
        run.expect_nothing_wrong()
        run.job.check_nothing_left()
        return seconds
    except Failure as failure:
        report = run.job.report() if run.job is not None else ""
        sys.exit(f"{report}\n{options.fault}, run {number} (--seed {options.seed}): {failure}")
    finally:
        if run.job is not None:
            run.job.remove()


def main() -> int:
    options = arguments()
    enter_namespaces()
    with tempfile.TemporaryDirectory(prefix="accord-faults.") as folder:
        tempfile.tempdir = folder
        seconds = [run_once(options, number) for number in range(options.times)]
    longest = f", the longest in {max(seconds):.1f} s" if seconds else ""
    print(f"{options.fault}: {len(seconds)} runs as they must be{longest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
