#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs an MPI program (rounds.cpp) again and again and does something to it each time.

    faults.py FAULT --flavour mpich --mpiexec MPIEXEC --build BUILD --times 5

Each run ends within a stated time. Each rank that lives has right results, or an MPI error that names who is to blame;
where the host MPI ends the job, all of it is gone. No process, no shared memory, no file is left behind. What is random
follows from --seed. Ends with 77, and says why, where the namespaces it needs are not to be had.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from job import Failure, Job, enter_namespaces

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


@dataclass
class Run:
    """One run, before and while it goes."""

    options: argparse.Namespace
    chance: random.Random
    ranks: int = 2
    launcher: list[str] = field(default_factory=list)  # options of mpiexec
    wrapper: list[str] = field(default_factory=list)  # what each rank is started by
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: dict(WAYS))
    preload: list[str] = field(default_factory=list)
    job: Job | None = None

    def start(self, limit_s: float = LIMIT_S) -> Job:
        build = Path(self.options.build)
        preload = ":".join([*self.preload, str(build / "lib" / "libaccord.so")])
        command = [
            self.options.mpiexec,
            *self.launcher,
            *("-n", str(self.ranks)),
            *self.wrapper,
            *("env", f"LD_PRELOAD={preload}"),
            str(build / "bin" / f"accord_rounds_{self.options.flavour}"),
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

    def expect_paths(self, rank: int, *paths: str) -> None:
        """Or the fault has met something else than what it is meant for."""
        told = " ".join(self.job.told(rank, "paths")).split()
        self.expect(set(paths) <= set(told), f"rank {rank} has gone by {told} only")


def killed_rank(run: Run) -> None:
    """At any time, with all kinds of calls: the launcher ends the job."""
    job = run.start()
    job.wait_for_all("warm")
    time.sleep(run.chance.uniform(0, 0.02))
    os.kill(job.process(run.chance.randrange(run.ranks)), signal.SIGKILL)
    run.expect(job.finish() != 0, "the launcher does not say that a rank was killed")


def killed_rank_alone(run: Run) -> None:
    """In collectives from device to device, where the launcher lets the others be: their errors name the rank.

    Not in a round in which ranks vote, by the host MPI: that one would wait for good.
    """
    run.ranks = 3
    dead = run.chance.randrange(run.ranks)
    if run.options.flavour == "mpich":
        run.wrapper = OUT_OF_REACH
    else:
        run.launcher = ["--enable-recovery"]
    last = run.chance.randint(66, 120)
    run.arguments = ["collectives", f"die={dead}:{last}:{run.chance.randrange(3000)}"]
    job = run.start()
    job.finish()
    others = set(range(run.ranks)) - {dead}
    job.wait_until("the end of the others", lambda: all(job.told(each, "done") for each in others))
    for rank in others:
        run.expect_errors(rank, rf"the process of rank {dead} is gone", 1)
        run.expect_done(rank)
        run.expect_paths(rank, "inbox", "node", "node-direct")


FAULTS: dict[str, Callable[[Run], None]] = {
    each.__name__: each for each in (killed_rank, killed_rank_alone)
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--flavour", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
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
        sys.exit(
            f"{report}\n{options.fault}, run {number} (--seed {options.seed}): {failure}"
        )
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
