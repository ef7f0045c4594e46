# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What scripts/soak does."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77
FAULTS_A_PASS = 5
CONFORMANCE_S = 300.0  # of a run, unless less time is left
CONFORMANCE_LEAST_S = 20.0
MODEL_S = 900.0
MODEL_COUNT = 150  # programs of each of the two random tests of tests/model/model_threads_test.cpp
SAMPLE_S = 0.5
SAMPLES_LEAST = 20
# From the middle to the last third of a run. Random calls take memory of random sizes, and short runs are not yet over
# with what is kept for reuse.
SHORT_S = 120.0
RSS_GROWTH_MAX = 64 << 20
RSS_GROWTH_MAX_SHORT = 256 << 20
DESCRIPTORS_GROWTH_MAX = 10
DESCRIPTORS_GROWTH_MAX_SHORT = 40
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What is freed goes back to the system at once, so that what a process takes is what it holds.
GIVES_BACK = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "MALLOC_TOP_PAD_": "0",
}
# Ways by their settings, as of tests/conformance.
WAYS = {
    "plain": {},
    "node": {"ACCORD_NODE_BYTES": "1", "ACCORD_REGION_BYTES": "64K"},
    "direct": {"ACCORD_ALGORITHM": "node-direct", "ACCORD_REGION_BYTES": "64K"},
    "inbox": {"ACCORD_INBOX_CALLS": "1", "ACCORD_NODE_BYTES": "0"},
    "messages": {"ACCORD_P2P_BYTES": "1", "ACCORD_OUTBOX_BYTES": "64K"},
    "two_level": {"ACCORD_ALGORITHM": "two-level", "ACCORD_NODE_SPLIT": "1"},
}


@dataclass
class Growth:
    """Of one process."""

    rss: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    @staticmethod
    def of(samples: list[int]) -> tuple[float, float]:
        """The medians of the middle and of the last third: what grows does so in both."""
        third = len(samples) // 3
        return statistics.median(samples[third : 2 * third]), statistics.median(samples[-third:])


@dataclass
class Soak:
    options: argparse.Namespace
    seeds: Iterator[int]
    end: float
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)  # of a job, as ctest has it
    faults: int = 0
    runs: int = 0
    cases: int = 0
    programs: int = 0
    rss_growth: float = 0
    descriptors_growth: float = 0
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def left_s(self) -> float:
        return self.end - time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def fail(self, text: str) -> None:
        self.failures.append(text)
        self.say(f"FAILED: {text}")

    def tests(self, *options: str) -> list[dict]:
        shown = subprocess.run(
            [
                "ctest",
                "--test-dir",
                self.options.build,
                "--show-only=json-v1",
                *options,
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(shown.stdout)["tests"]

    def pass_of_faults(self, number: int, seed: int) -> None:
        """All faults, some times each; a rank is stopped for a minute in the first pass of a long run."""
        is_long = self.options.hours >= 1 and number == 0
        for test in self.tests("-L", "^faults$"):
            if self.left_s() <= 0:
                return
            log = self.folder / f"{test['name']}.{number}.log"
            times = FAULTS_A_PASS
            given = environment_of(test) | {
                "FAULTS_TIMES": str(times),
                "FAULTS_SEED": str(seed),
                "FAULTS_STOP_S": "60" if is_long else "2",
            }
            with log.open("w") as stream:
                done = subprocess.run(
                    test["command"],
                    env={**os.environ, **given},
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                )
            if done.returncode == SKIPPED:
                continue
            with self.lock:
                self.faults += times
            if done.returncode != 0:
                self.fail(f"{test['name']}, seed {seed}: {log}")

    def conformance(self, flavour: str, way: str, seed: int) -> None:
        seconds = min(CONFORMANCE_S, max(CONFORMANCE_LEAST_S, self.left_s() / 4))
        program = Path(self.options.build) / "bin" / f"accord_conformance_{flavour}"
        mpiexec = Path(self.options.deps) / flavour / "bin" / "mpiexec"
        if not program.exists() or not mpiexec.exists():
            return
        library = Path(self.options.build) / "lib" / "libaccord.so"
        command = [
            str(mpiexec),
            "-n",
            "2",
            "env",
            f"LD_PRELOAD={library}",
            str(program),
        ]
        command += [
            "--seed",
            str(seed),
            "--seconds",
            f"{seconds:.0f}",
            "--count",
            "1000000000",
        ]
        log = self.folder / f"conformance.{flavour}.{way}.{seed}.log"
        settings = {"ACCORD_RUNTIME": "host", "ACCORD_YIELD": "on", **GIVES_BACK, **WAYS[way]}
        with log.open("w") as stream:
            job = subprocess.Popen(
                [*command, "--case-timeout", "120"],
                env={**os.environ, **self.environment, **settings},
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            grown = watch(job, program.name, time.monotonic() + 2 * seconds + 180)
        what = f"conformance {flavour} {way}, seed {seed}"
        if job.returncode != 0:
            self.fail(f"{what}: ended with {job.returncode}: {log}")
        passed = re.search(r"^conformance: (\d+) passed", log.read_text(errors="replace"), re.MULTILINE)
        with self.lock:
            self.runs += 1
            self.cases += int(passed[1]) if passed else 0
            self.judge(what, grown, seconds < SHORT_S)

    def judge(self, what: str, grown: dict[int, Growth], is_short: bool) -> None:
        rss_growth_max = RSS_GROWTH_MAX_SHORT if is_short else RSS_GROWTH_MAX
        descriptors_growth_max = (
            DESCRIPTORS_GROWTH_MAX_SHORT if is_short else DESCRIPTORS_GROWTH_MAX
        )
        shown = []
        for process, growth in grown.items():
            if len(growth.rss) < SAMPLES_LEAST:
                continue
            rss = Growth.of(growth.rss)
            descriptors = Growth.of(growth.descriptors)
            shown.append(
                f"{rss[0] / 2**20:.0f} to {rss[1] / 2**20:.0f} MiB, "
                f"{descriptors[0]:.0f} to {descriptors[1]:.0f} descriptors"
            )
            self.rss_growth = max(self.rss_growth, rss[1] - rss[0])
            self.descriptors_growth = max(self.descriptors_growth, descriptors[1] - descriptors[0])
            if rss[1] - rss[0] > rss_growth_max:
                self.fail(f"{what}: process {process} grows: {shown[-1]}")
            if descriptors[1] - descriptors[0] > descriptors_growth_max:
                self.fail(f"{what}: process {process} keeps descriptors: {shown[-1]}")
        if not shown:
            self.fail(f"{what}: nobody was there to be watched")
        self.say(f"{what}: {'; '.join(shown)}")

    def model(self, sanitizer: str, seed: int) -> None:
        """Random programs under a sanitizer."""
        program = Path(self.options.build) / "bin" / f"model_{sanitizer}_test"
        if not program.exists() or self.left_s() < 60:
            return
        log = self.folder / f"model.{sanitizer}.{seed}.log"
        settings = {
            "ACCORD_MODEL_THREADS_COUNT": str(MODEL_COUNT),
            "ACCORD_MODEL_SEED": str(seed * MODEL_COUNT),
        }
        with log.open("w") as stream:
            try:
                code = subprocess.run(
                    [str(program), "--gtest_filter=ModelThreads.*"],
                    env={**os.environ, **settings},
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    timeout=MODEL_S,
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
        with self.lock:
            self.programs += 2 * MODEL_COUNT
        if code != 0:
            self.fail(f"the model under the {sanitizer} build, seed {seed}: {log}")

    def tasks(self) -> Iterator[Callable[[], None]]:
        """What there is to run, without an end."""
        passes = -(-self.options.faults // FAULTS_A_PASS)
        ways = itertools.cycle(itertools.product(WAYS, ("mpich", "openmpi")))
        for number in itertools.count():
            if number < passes:
                yield lambda number=number: self.pass_of_faults(number, next(self.seeds))
            for way, flavour in itertools.islice(ways, 4):
                yield lambda way=way, flavour=flavour: self.conformance(
                    flavour, way, next(self.seeds)
                )
            for sanitizer in ("tsan", "asan"):
                yield lambda sanitizer=sanitizer: self.model(sanitizer, next(self.seeds))

    def run(self) -> None:
        """All tasks, as many at once as asked for, until the time is over."""
        tasks = self.tasks()

        def work() -> None:
            while self.left_s() > 0:
                with self.lock:
                    task = next(tasks)
                task()

        workers = [threading.Thread(target=work) for _ in range(self.options.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def outcome(self) -> dict[str, object]:
        """What a record of the soak holds."""
        return {
            "hours": round(self.options.hours - self.left_s() / 3600, 2),
            "jobs": self.options.jobs,
            "seed": self.options.seed,
            "faults": self.faults,
            "conformance_cases": self.cases,
            "sanitized_programs": self.programs,
            "rss_growth_mib": round(self.rss_growth / 2**20, 1),
            "descriptors_growth": round(self.descriptors_growth),
            "failures": self.failures,
        }

    def summary(self) -> str:
        hours = (self.options.hours * 3600 - self.left_s()) / 3600
        return (
            f"soak: {hours:.2f} h, seed {self.options.seed}: {self.faults} faults; {self.runs} runs of conformance, "
            f"{self.cases} cases; {self.programs} programs of the model under sanitizers; at most {self.rss_growth / 2**20:.1f} MiB and "
            f"{self.descriptors_growth:.0f} descriptors more; {len(self.failures)} failures"
        )


def environment_of(test: dict) -> dict[str, str]:
    properties = {each["name"]: each["value"] for each in test["properties"]}
    return dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))


def processes(session: int, name: str) -> Iterator[int]:
    """Those of that program whose launcher leads this session, or whose forebear does: ranks may have their own."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        process = int(entry.name)
        parents[process] = int(rest.split()[1])
        if command.partition("(")[2] == name[:15]:
            named.append(process)
    for process in named:
        above = process
        while above in parents and above != session:
            above = parents[above]
        if above == session:
            yield process


def watch(job: subprocess.Popen, name: str, end: float) -> dict[int, Growth]:
    """What its ranks take, from time to time, until it ends; it is ended after that time."""
    grown: dict[int, Growth] = {}
    while job.poll() is None:
        if time.monotonic() > end:
            os.killpg(job.pid, signal.SIGKILL)
            break
        for process in processes(job.pid, name):
            try:
                rss = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES
                descriptors = len(os.listdir(f"/proc/{process}/fd"))
            except (OSError, IndexError):
                continue
            growth = grown.setdefault(process, Growth())
            growth.rss.append(rss)
            growth.descriptors.append(descriptors)
        time.sleep(SAMPLE_S)
    job.wait()
    return grown


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description="Runs what needs hours to fail."
    )
    parser.add_argument("hours", type=float)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--deps", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--faults", type=int, default=100, help="how many of each")
    parser.add_argument("--jobs", type=int, default=1, help="jobs of two ranks side by side")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    folder = Path(options.build) / "soak"
    folder.mkdir(exist_ok=True)
    end = time.monotonic() + options.hours * 3600
    soak = Soak(options, itertools.count(options.seed), end, folder)
    for test in soak.tests("-L", "^faults$"):
        soak.environment = environment_of(test)
    soak.run()
    (folder / "outcome.json").write_text(json.dumps(soak.outcome(), indent=1) + "\n")
    print(soak.summary())
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
