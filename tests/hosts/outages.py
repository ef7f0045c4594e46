#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Two hosts (hosts.py), and something that happens to the second one while their ranks work.

    outages.py OUTAGE --flavour openmpi --mpiexec MPIEXEC --build BUILD --design direct

- link_down: its link is down for --seconds, in the middle of collectives and messages. All is right then.
- stopped: its rank stands still for --seconds. All is right then.
- silent: its rank stands still for good, in the middle of a message, or of a put or get with its window: an
  error that names it, in time.
- gone: its link goes down and its rank is killed, so that nothing is heard of it again: the same.

Ends with 77, and says why, where the namespaces it needs are not to be had.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import sys
import time
from pathlib import Path

import hosts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
from job import Failure, Job

SECOND = 1
LIMIT_S = 150.0
# What is lost a connection sends again with growing pauses, up to twice as long as the outage.
SETTLE_S = 25.0
TIMEOUT_S = 5
SLACK_S = 10.0  # of a machine with other work
MOVING_S = 1.5
MIB_UNDER_WAY = 8  # each is given another second


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outage", choices=["link_down", "stopped", "silent", "gone"])
    parser.add_argument("--flavour", choices=["mpich", "openmpi"], required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--design", default="direct")
    parser.add_argument("--way", choices=["send", "receive", "put", "get"], default="receive")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--nightly", action="store_true", help="only with ACCORD_TEST_NIGHTLY=1")
    return parser.parse_args()


class Outage:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.is_for_good = options.outage in ("silent", "gone")
        build = options.build.absolute()
        program = "parting" if self.is_for_good else "rounds"
        words = [options.way] if self.is_for_good else []
        rate = "16mbit" if self.is_for_good else "1gbit"
        self.setting = hosts.arguments(
            [
                *("--ranks", "1,1", "--flavour", options.flavour),
                *("--mpiexec", options.mpiexec, "--out", rate, "--in", rate),
                *("--preload", str(build / "lib" / "libaccord.so"), "--"),
                *(str(build / "bin" / f"accord_{program}_{options.flavour}"), *words),
            ]
        )
        self.hosts: list[hosts.Host] = []
        self.job: Job | None = None

    def settings(self) -> dict[str, str]:
        # A message that was kept would leave its sender nothing to wait for.
        timeout = {"ACCORD_PEER_TIMEOUT_S": str(TIMEOUT_S), "ACCORD_NET_PATIENCE_MS": "20000"}
        return {
            **hosts.settings(self.hosts, self.setting),
            "ACCORD_RUNTIME": "host",
            "ACCORD_NET_DESIGN": self.options.design,
            "ACCORD_NET_BYTES": "4096",
            **(timeout if self.is_for_good else {}),
        }

    def start(self) -> None:
        self.hosts = hosts.make(self.setting)
        environment = self.settings()
        command = hosts.command(self.hosts, self.setting, environment)
        # It takes along what it is told to.
        if self.options.flavour == "openmpi":
            command[command.index("-n") : command.index("-n")] = ["-x", "FAULTS_FOLDER"]
        self.job = Job(command, 2, environment, LIMIT_S)

    def set_link(self, state: str) -> None:
        from pyroute2 import IPRoute

        with IPRoute() as network:
            name = f"{self.hosts[SECOND].name}-eth0"
            network.link("set", index=network.link_lookup(ifname=name)[0], state=state)

    def signal_second(self, number: signal.Signals) -> None:
        os.kill(self.job.process(SECOND), number)

    def for_a_while(self) -> None:
        job = self.job
        job.wait_for_all("warm")
        time.sleep(0.2)
        begin, end = {
            "link_down": (lambda: self.set_link("down"), lambda: self.set_link("up")),
            "stopped": (
                lambda: self.signal_second(signal.SIGSTOP),
                lambda: self.signal_second(signal.SIGCONT),
            ),
        }[self.options.outage]
        begin()
        time.sleep(self.options.seconds)
        end()
        job.say("end")
        code = job.finish()
        for rank in range(2):
            for word in ("error", "wrong"):
                if job.told(rank, word):
                    raise Failure(f"rank {rank}: {word}: {job.told(rank, word)}")
            if not job.told(rank, "done"):
                raise Failure(f"rank {rank} has not come to its end")
            print(f"rank {rank}: {job.told(rank, 'done')[0]}; by {sorted(job.told(rank, 'path'))}")
        if code != 0:
            raise Failure(f"the launcher ends with {code}")
        ways = [path for path in job.told(0, "path") if path == f"net-{self.options.design}"]
        if self.options.design != "host" and not ways:
            raise Failure(f"no message has gone by {self.options.design}")

    def for_good(self) -> None:
        job = self.job
        job.wait_for_all("moving")
        time.sleep(MOVING_S)
        if self.options.outage == "gone":
            self.set_link("down")
            self.signal_second(signal.SIGKILL)
        else:
            self.signal_second(signal.SIGSTOP)
        began = time.monotonic()
        most_s = TIMEOUT_S + MIB_UNDER_WAY + SLACK_S
        while not job.told(0, "took"):
            if time.monotonic() - began > most_s:
                raise Failure(f"rank 0 has neither an error nor a result after {most_s:.0f} s")
            time.sleep(0.05)
        errors = job.told(0, "error")
        if not errors:
            raise Failure("rank 0 has no error")
        way, design = job.told(0, "path")[0], self.options.design
        if self.options.way in ("put", "get") and (way == "window-network") != (design != "host"):
            raise Failure(f"it went by {way}")
        # A proxy by its node: it may be found first.
        if re.search(r"rank 1\b|node host1\b", errors[0]) is None:
            raise Failure(f"the error names neither rank 1 nor its node: {errors[0]}")
        print(f"after {time.monotonic() - began:.1f} s, by {job.told(0, 'path')}: {errors[0]}")

    def run(self) -> None:
        try:
            self.start()
            self.for_good() if self.is_for_good else self.for_a_while()
        except Failure as failure:
            report = self.job.report() if self.job else ""
            sys.exit(f"{report}\n{self.options.outage} by {self.options.design}: {failure}")


def main() -> int:
    options = arguments()
    if options.nightly and os.environ.get("ACCORD_TEST_NIGHTLY") != "1":
        print("skipped: make nightly runs this")
        return 77
    if hosts.INSIDE not in os.environ:
        hosts.enter_namespaces()
    ctypes.CDLL(None).prctl(hosts.PR_SET_PDEATHSIG, signal.SIGKILL)
    Outage(options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
