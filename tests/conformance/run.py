#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs accord_conformance over a matrix of MPIs, numbers of ranks and settings, and sums up.

Exit code 0: every run ended, no case failed and there were as many as asked for. `--self-check` instead
breaks one byte on purpose (or hangs, or crashes) and fails unless the harness notices.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# More ranks than cores only with Open MPI, which yields: MPICH spins.
MATRIX = {
    "openmpi": [(1, 1.0), (2, 2.0), (3, 2.0), (4, 2.0), (5, 1.0), (8, 0.6)],
    "mpich": [(1, 1.0), (2, 3.0)],
    "abi": [(1, 0.5), (2, 1.5)],
    "debian-openmpi": [(2, 0.4), (4, 0.4)],
    "debian-mpich": [(2, 0.4)],
}
CHUNKS = {"ACCORD_PIPELINE_BYTES": "4K", "ACCORD_CHUNK_BYTES": "1K"}
SETTINGS = [
    ("default", 1.0, {}),
    ("chunks", 1.0, CHUNKS),
    ("thread_on", 0.5, {"ACCORD_PROGRESS_THREAD": "on"}),
    ("thread_off_chunks", 0.5, {"ACCORD_PROGRESS_THREAD": "off", **CHUNKS}),
]
# Lets both Open MPI generations run as root, with more ranks than cores; the other MPIs ignore it.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_osc": "^ucx",
}
SUMMARY = re.compile(r"^conformance: (\d+) passed, (\d+) failed, (\d+) skipped(?: \((.*)\))?;", re.M)


@dataclasses.dataclass
class Job:
    """One launch of the program: `cases` cases on `ranks` ranks."""

    flavour: str
    ranks: int
    setting: str
    environment: dict
    cases: int
    seed: int

    def name(self) -> str:
        return f"{self.flavour} x {self.ranks} {self.setting}"


@dataclasses.dataclass
class Result:
    """What a launch said; `passed` is None where it never came to its summary."""

    code: int
    output: str
    passed: int | None = None
    failed: int = 0
    skipped: int = 0


def mpiexec(flavour: str, options: argparse.Namespace) -> str | None:
    """Path of the launcher of this MPI, or None where it is not installed."""
    if flavour in ("mpich", "abi"):
        path = options.mpich_root / "bin" / "mpiexec"
        return str(path) if path.exists() else None
    if flavour == "openmpi":
        path = options.openmpi_root / "bin" / "mpiexec"
        return str(path) if path.exists() else None
    return shutil.which("mpiexec." + flavour.removeprefix("debian-"))


def program(flavour: str, options: argparse.Namespace) -> pathlib.Path:
    return options.build / "bin" / f"accord_conformance_{flavour}"


def available(options: argparse.Namespace) -> list[str]:
    wanted = options.mpi.split(",") if options.mpi else list(MATRIX)
    unknown = [flavour for flavour in wanted if flavour not in MATRIX]
    if unknown:
        sys.exit(f"no MPI '{unknown[0]}'; there are {', '.join(MATRIX)}")
    found = [f for f in wanted if mpiexec(f, options) and program(f, options).exists()]
    for flavour in sorted(set(wanted) - set(found)):
        print(f"skipped {flavour}: not installed or not built", flush=True)
    return found


def make_jobs(options: argparse.Namespace, flavours: list[str]) -> list[Job]:
    """Spreads the cases over the matrix by its weights, at least 50 a launch."""
    rows = []
    for flavour in flavours:
        for ranks, weight in MATRIX[flavour]:
            if ranks > options.ranks_max:
                continue
            for setting, share, environment in SETTINGS:
                rows.append((flavour, ranks, setting, environment, weight * share))
    total = sum(row[4] for row in rows)
    jobs = []
    for number, (flavour, ranks, setting, environment, weight) in enumerate(rows):
        cases = max(50, -(-int(options.cases * weight) // max(1, int(total))))
        jobs.append(Job(flavour, ranks, setting, environment, cases, options.seed + number))
    return jobs


def command(job: Job, options: argparse.Namespace, preload: bool, extra: list[str]) -> list[str]:
    words = [mpiexec(job.flavour, options), "-n", str(job.ranks)]
    if preload:
        settings = {**job.environment, "LD_PRELOAD": str(options.build / "lib" / "libaccord.so")}
        if options.runtime != "auto":
            settings["ACCORD_RUNTIME"] = options.runtime
        words += ["env"] + [f"{name}={value}" for name, value in settings.items()]
    words += [str(program(job.flavour, options)), "--seed", str(job.seed), "--count", str(job.cases)]
    words += ["--max-bytes", options.max_bytes, "--case-timeout", str(options.case_timeout)]
    return words + (["--require-device"] if preload else ["--memory", "host"]) + extra


def launch(words: list[str], timeout_s: float, environment: dict) -> Result:
    """Runs one command; on a time-out its whole process group ends."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True,
                               env={**os.environ, **ENVIRONMENT, **environment})
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Result(124, output + f"\ntimed out after {timeout_s:.0f} s")
    result = Result(process.returncode, output)
    if match := SUMMARY.search(output):
        result.passed, result.failed, result.skipped = (int(match.group(i)) for i in (1, 2, 3))
    return result


def report_failure(result: Result, words: list[str]) -> None:
    print("  " + " ".join(words))
    lines = [line for line in result.output.splitlines() if line.strip()]
    interesting = [i for i, line in enumerate(lines) if line.startswith(("FAILED", "CASE"))]
    chosen = [line for i in interesting[:5] for line in lines[i:i + 4]] or lines[-15:]
    for line in chosen:
        print("    " + line[:600])
    sys.stdout.flush()


def run_matrix(options: argparse.Namespace) -> int:
    jobs = make_jobs(options, available(options))
    passed = failed = skipped = broken = 0
    started = time.monotonic()
    for job in jobs:
        words = command(job, options, preload=not options.plain, extra=options.extra)
        begun = time.monotonic()
        result = launch(words, options.timeout, {})
        good = result.code == 0 and result.passed is not None and result.failed == 0
        passed += result.passed or 0
        failed += result.failed
        skipped += result.skipped
        broken += 0 if good or result.failed else 1
        verdict = "ok" if good else "FAILED"
        print(f"{job.name():40} {verdict:6} {result.passed} passed, {result.failed} failed, "
              f"{result.skipped} skipped in {time.monotonic() - begun:.1f} s", flush=True)
        if not good:
            report_failure(result, words)
    print(f"conformance: {passed} passed, {failed} failed, {skipped} skipped in {len(jobs)} runs, {broken} of "
          f"them broken off; {time.monotonic() - started:.0f} s")
    if not jobs:
        print("conformance: there was nothing to run")
        return 1
    if passed + failed + skipped < options.cases:
        print(f"conformance: fewer cases than the {options.cases} asked for")
        return 1
    return 0 if failed == 0 and broken == 0 else 1


# What each deliberate defect must make the program say, and its exit code.
SELF_CHECKS = {
    "data": "FAILED rerun:",
    "gap": "FAILED rerun:",
    "guard": "FAILED rerun:",
    "input": "FAILED rerun:",
    "hang": "CASE HANGS",
    "crash": "CASE CRASHED",
}


def self_check(options: argparse.Namespace) -> int:
    """Every kind of deliberate defect is noticed, and without one nothing is."""
    missed = 0
    for flavour in available(options):
        for kind in ["none", *SELF_CHECKS]:
            job = Job(flavour, 2, kind, {}, 120, options.seed)
            preload = not options.plain
            if kind == "crash" and not preload:
                continue  # plain host memory does not fault
            extra = ["--case-timeout", "5"] if kind == "hang" else []
            environment = {} if kind == "none" else {"ACCORD_TEST_CONFORMANCE_CORRUPT": kind}
            result = launch(command(job, options, preload, extra), 120, environment)
            if kind == "none":
                noticed = result.code == 0 and result.failed == 0
            else:
                noticed = result.code != 0 and SELF_CHECKS[kind] in result.output
                broken = re.findall(r"rerun:.* --case (\d+)", result.output)
                # Every tenth case is broken, and no other may be blamed; but when one rank hangs, others may
                # already wait for it in the next case.
                blamed = any if kind == "hang" else all
                noticed = noticed and bool(broken) and blamed(int(case) % 10 == 0 for case in broken)
            missed += 0 if noticed else 1
            print(f"self-check {flavour} {kind}: {'ok' if noticed else 'NOT NOTICED'}", flush=True)
            if not noticed:
                print(result.output[-1500:])
    return 0 if missed == 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build directory")
    parser.add_argument("--mpich-root", type=pathlib.Path, default=ROOT / ".deps" / "mpich")
    parser.add_argument("--openmpi-root", type=pathlib.Path, default=ROOT / ".deps" / "openmpi")
    parser.add_argument("--mpi", default="", help="comma-separated: " + ", ".join(MATRIX))
    parser.add_argument("--cases", type=int, default=20000, help="cases in all runs together (20000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks-max", type=int, default=8)
    parser.add_argument("--runtime", default="host", help="ACCORD_RUNTIME: host, cuda or auto (host)")
    parser.add_argument("--max-bytes", default="256K", help="largest message (256K)")
    parser.add_argument("--case-timeout", type=float, default=60)
    parser.add_argument("--timeout", type=float, default=300, help="seconds a launch may take (300)")
    parser.add_argument("--plain", action="store_true", help="without Accord: checks the harness itself")
    parser.add_argument("--self-check", action="store_true", help="show that the harness notices defects")
    parser.add_argument("extra", nargs="*", help="arguments for the program, after --")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return self_check(options) if options.self_check else run_matrix(options)


if __name__ == "__main__":
    sys.exit(main())
