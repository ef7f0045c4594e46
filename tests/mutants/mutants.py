#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Do the tests see mistakes that nobody chose with them in mind?

    mutants.py sample --seed 1 --count 120 > sample.json
    mutants.py build sample.json TREE
    mutants.py run sample.json TREE --tests REGEX... [--first REGEX] [--only N...] > outcome.json
    mutants.py table sample.json outcome.json

`sample` draws one-line mistakes from the sources of core and node: a condition turned round, a
comparison that is wrong where both sides are equal, one too many or too few, a statement left out.
`build` writes all of them into a copy of the sources, each to be switched on by ACCORD_MUTANT
(mutant.h), and builds the tests once. `run` first runs each test without a mistake. That shows
how long the test takes and which mistakes it reaches. Then `run` looks, for each mistake, for the
first test that reaches it and fails: tests that match --first before all others, shorter tests
before longer ones. A test that ends late has failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("src/core", "src/coll", "src/p2p", "src/partitioned", "src/node")
LATE = 10.0  # times as long as a test takes by itself
LATE_S = 20.0  # at least
SKIPPED = 77

CALL = re.compile(
    r"^(\s+)((?:[\w:]+(?:\.|->))*\w+(?:\.|->)?\w*\(.*\)|[\w.\->\[\]]+ [-+|&]?= [^=].*);$"
)
IF = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.+)(\)(?: \{| [^;{}]+;)?)$")
RETURN = re.compile(r"^(\s+return )([^?\"]* (?:==|!=|<|<=|>|>=|&&|\|\|) [^?\"]*)(;)$")
COMPARISON = re.compile(r"^(.+?) (<=|>=|<|>) (.+)$")
ONE = re.compile(r" ([-+]) 1(?=[^\w.'])")
EQUAL_TOO = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def is_balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0


def mistakes_of(lines: list[str], number: int) -> list[tuple[str, str]]:
    """Kind and new text of the mistakes that a line may have; @: the mistake's own number."""
    line = lines[number]
    before = lines[number - 1].rstrip() if number else ""
    after = lines[number + 1].lstrip() if number + 1 < len(lines) else ""
    found = []
    if (
        "constexpr" in line
        or "static_assert" in line
        or line.lstrip().startswith(("//", "#", "case "))
    ):
        return []
    on = "accord::mutants::is_on(@)"
    for pattern in (IF, RETURN):
        match = pattern.match(line)
        if (
            not match
            or not is_balanced(match[2])
            or ";" in match[2]
            or re.search(r"[^=!<>]=[^=]", match[2])
        ):
            continue
        head, condition, tail = match[1], match[2], match[3]
        found.append(("turned round", f"{head}{on} != static_cast<bool>({condition}){tail}"))
        sides = COMPARISON.match(condition)
        is_one = not any(word in condition for word in ("&&", "||", "?"))
        if sides and is_one and is_balanced(sides[1]):
            left, sign, right = sides.groups()
            found.append(
                (
                    "equal sides",
                    f"{head}({on} ? ({left}) {EQUAL_TOO[sign]} ({right})"
                    f" : ({left}) {sign} ({right})){tail}",
                )
            )
    for match in ONE.finditer(line):
        if '"' not in line and "for (" not in line:
            wrong = "0" if match.start() % 2 else "2"
            text = f" {match[1]} ({on} ? {wrong} : 1)"
            found.append(("by one", line[: match.start()] + text + line[match.end() :]))
    match = CALL.match(line)
    ends = before.endswith((";", "{", "}", ":")) or not before or before.lstrip().startswith("//")
    is_statement = match and not re.match(r"(return|delete|throw|using|typedef)\b", match[2])
    if match and is_statement and ends and not after.startswith("else") and is_balanced(match[2]):
        found.append(("left out", f"{match[1]}if (!{on}) {match[2]};"))
    return found


def expressions_in_use() -> list[str]:
    """What tests/model/mutate.py looks for in the sources, which has to stay there as it is."""
    sys.path.insert(0, str(ROOT / "tests/model"))
    import mutate  # type: ignore[import-not-found]

    texts = [entry[1] for table in mutate.MUTATIONS.values() for entry in table.values()]
    texts += [entry[1] for table in mutate.MARKS.values() for entry in table]
    return [line.strip() for text in texts for line in text.splitlines()]


def candidates() -> list[dict[str, Any]]:
    kept = expressions_in_use()
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.cpp")):
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines):
                if any(text in line for text in kept):
                    continue
                for kind, text in mistakes_of(lines, number):
                    where = {"file": str(path.relative_to(ROOT)), "line": number + 1}
                    found.append({**where, "kind": kind, "was": line, "is": text})
    return found


def compiles(mistake: dict[str, Any]) -> bool:
    """Whether the compiler takes its file with it: not each comparison stands where code is."""
    path = ROOT / mistake["file"]
    lines = path.read_text().splitlines()
    lines[mistake["line"] - 1] = mistake["is"].replace("@", "1")
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        libraries = ROOT / ".deps/debian/usr/include"
        command = ["c++", "-std=c++20", "-fsyntax-only", "-w"]
        command += [f"-I{folder}" for folder in (ROOT / "src", ROOT / "include", libraries)]
        command += ["-include", str(ROOT / "tests/mutants/mutant.h"), *fmt_flags(), file.name]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fmt_flags() -> list[str]:
    commands = json.loads((ROOT / "build/compile_commands.json").read_text())
    lines = [entry["command"] for entry in commands]
    words = next(line for line in lines if "accord_core.dir" in line).split()
    wanted = [word for word in words if word.startswith(("-D", "-I"))]
    return wanted + [word for at, word in enumerate(words) if "-isystem" in (word, words[at - 1])]


def sample(arguments: argparse.Namespace) -> None:
    every = candidates()
    random.Random(arguments.seed).shuffle(every)
    lines: set[tuple[object, object]] = set()
    drawn: list[dict[str, Any]] = []
    for mistake in every:
        if len(drawn) == arguments.count:
            break
        where = (mistake["file"], mistake["line"])
        if where in lines or not compiles(mistake):
            continue
        lines.add(where)
        number = len(drawn) + 1
        drawn.append({"number": number, **mistake, "is": mistake["is"].replace("@", str(number))})
    json.dump({"seed": arguments.seed, "of": len(every), "mistakes": drawn}, sys.stdout, indent=1)
    print()


def place_of(mistake: dict[str, Any], lines: list[str]) -> int | None:
    """The index of its line, which other changes may have moved since the sample was drawn; None: it is gone."""
    drawn_at = mistake["line"] - 1
    places = [at for at, line in enumerate(lines) if line == mistake["was"]]
    return min(places, key=lambda at: abs(at - drawn_at), default=None)


def build(arguments: argparse.Namespace) -> None:
    tree = pathlib.Path(arguments.tree).resolve()
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    gone = []
    for mistake in json.loads(pathlib.Path(arguments.sample).read_text())["mistakes"]:
        path = tree / mistake["file"]
        lines = path.read_text().splitlines() if path.is_file() else []
        place = place_of(mistake, lines)
        if place is None:
            gone.append(mistake["number"])
            continue
        lines[place] = mistake["is"]
        path.write_text("\n".join(lines) + "\n")
    if gone:
        print(
            f"in code that has changed since they were drawn, draw others: {gone}", file=sys.stderr
        )
    deps = ROOT / ".deps"
    flags = f"-w -include {tree}/tests/mutants/mutant.h"
    configure = ["cmake", "-S", str(tree), "-B", str(tree / "build"), "-G", "Ninja"]
    configure += [
        f"-DCMAKE_CXX_FLAGS={flags}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DACCORD_SANITIZERS=",
    ]
    configure += ["-DACCORD_BENCH=OFF", "-DACCORD_CUDA_KERNELS=OFF"]
    configure += [f"-DACCORD_{name.upper()}_ROOT={deps / name}" for name in ("mpich", "openmpi")]
    configure += [
        f"-DPython3_EXECUTABLE={deps}/tools/bin/python",
        f"-DCMAKE_PREFIX_PATH={deps}/debian/usr",
    ]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    command = ["cmake", "--build", str(tree / "build"), "--parallel", str(os.cpu_count())]
    subprocess.run(
        [*command, *(["--target", *arguments.targets] if arguments.targets else [])], check=True
    )


class Test(NamedTuple):
    command: list[str]
    environment: dict[str, str]
    where: str
    passing: list[str]  # where there are any, output that matches none fails the test
    failing: list[str]  # output that matches one fails the test
    will_fail: bool


def tests_of(tree: pathlib.Path, patterns: list[str]) -> dict[str, Test]:
    command = ["ctest", "--test-dir", str(tree / "build"), "--show-only=json-v1"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["tests"]
    tests: dict[str, Test] = {}
    for test in listed:
        if not any(re.search(pattern, test["name"]) for pattern in patterns):
            continue
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        if "command" not in test or not pathlib.Path(test["command"][0]).exists():
            continue
        extra = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        where = properties.get("WORKING_DIRECTORY", str(tree / "build"))
        tests[test["name"]] = Test(
            test["command"],
            extra,
            where,
            properties.get("PASS_REGULAR_EXPRESSION", []),
            properties.get("FAIL_REGULAR_EXPRESSION", []),
            properties.get("WILL_FAIL", False),
        )
    return tests


def fails(test: Test, limit_s: float, **variables: str) -> bool:
    environment = {**os.environ, "GTEST_FAIL_FAST": "1", **test.environment, **variables}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        subprocess.Popen(
            test.command,
            cwd=test.where,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return True
        if code == SKIPPED:
            return False
        output.seek(0)
        text = output.read()
        if any(re.search(expression, text) for expression in test.failing):
            return True
        if test.passing:
            return not any(re.search(expression, text) for expression in test.passing)
        return (code == 0) == test.will_fail


def survey(name: str, test: Test) -> tuple[float, set[int]]:
    """How long a test takes without a mistake, and which it reaches; none if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        failed = fails(test, 900, ACCORD_MUTANT="0", ACCORD_MUTANTS_REACHED=folder)
        took = time.monotonic() - begun
        reached = {
            int(word)
            for file in pathlib.Path(folder).iterdir()
            for word in file.read_text().split()
        }
    if failed:
        print(f"{name} fails without a mistake: it is left out", file=sys.stderr, flush=True)
        return took, set()
    return took, reached


class Hunt(NamedTuple):
    tests: dict[str, Test]
    seen: dict[str, tuple[float, set[int]]]
    first: str
    budget_s: float

    def outcome(self, number: int) -> dict[str, Any]:
        by = sorted((took, name) for name, (took, some) in self.seen.items() if number in some)
        first = [one for one in by if re.search(self.first, one[1])]
        tried = 0
        for tests in (first, [one for one in by if one not in first]):
            end = time.monotonic() + self.budget_s
            for took, name in tests:
                if time.monotonic() > end:
                    break
                tried += 1
                if fails(self.tests[name], max(LATE_S, LATE * took), ACCORD_MUTANT=str(number)):
                    return {"killed_by": name, "reached_by": len(by), "tried": tried}
        return {"killed_by": None, "reached_by": len(by), "tried": tried}


def run(arguments: argparse.Namespace) -> None:
    tree = pathlib.Path(arguments.tree).resolve()
    mistakes = json.loads(pathlib.Path(arguments.sample).read_text())["mistakes"]
    numbers = [mistake["number"] for mistake in mistakes]
    if arguments.only:
        numbers = [number for number in numbers if number in arguments.only]
    tests = tests_of(tree, arguments.tests)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as workers:
        seen = dict(zip(tests, workers.map(survey, tests.keys(), tests.values()), strict=True))
        hunt = Hunt(tests, seen, arguments.first, arguments.budget)
        outcomes = {}
        begun = {workers.submit(hunt.outcome, number): number for number in numbers}
        for done in concurrent.futures.as_completed(begun):
            number, outcome = begun[done], done.result()
            outcomes[number] = outcome
            killer = outcome["killed_by"] or "survives"
            many = f"{outcome['tried']} of {outcome['reached_by']}"
            print(f"{number}: {killer} ({many} tests)", file=sys.stderr, flush=True)
    json.dump({str(number): outcomes[number] for number in sorted(outcomes)}, sys.stdout, indent=1)
    print()


def table(arguments: argparse.Namespace) -> None:
    mistakes = json.loads(pathlib.Path(arguments.sample).read_text())["mistakes"]
    outcomes = json.loads(pathlib.Path(arguments.outcome).read_text())
    print("| | where | mistake | found by |")
    print("| --- | --- | --- | --- |")
    for mistake in mistakes:
        outcome = outcomes.get(str(mistake["number"]))
        if outcome is None:
            continue
        by = outcome["killed_by"] or (
            "**nothing**" if outcome["reached_by"] else "**nothing**: not reached"
        )
        where = f"{mistake['file'].removeprefix('src/')}:{mistake['line']}"
        was = mistake["was"].strip().replace("|", "\\|")
        print(f"| {mistake['number']} | {where} | {mistake['kind']}: `{was}` | {by} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("sample")
    verb.add_argument("--seed", type=int, default=1)
    verb.add_argument("--count", type=int, default=120)
    verb.set_defaults(run=sample)
    verb = verbs.add_parser("build")
    verb.add_argument("sample")
    verb.add_argument("tree")
    verb.add_argument("targets", nargs="*")
    verb.set_defaults(run=build)
    verb = verbs.add_parser("run")
    verb.add_argument("sample")
    verb.add_argument("tree")
    verb.add_argument("--tests", nargs="+", default=["^model[.]", "^unit[.]"])
    verb.add_argument("--only", nargs="+", type=int, default=[])
    verb.add_argument("--first", default="^$", help="tests to try before all others")
    verb.add_argument("--jobs", type=int, default=1, help="tests that run side by side")
    verb.add_argument(
        "--budget",
        type=float,
        default=3600,
        help="seconds for each mistake, and again for tests that are not first",
    )
    verb.set_defaults(run=run)
    verb = verbs.add_parser("table")
    verb.add_argument("sample")
    verb.add_argument("outcome")
    verb.set_defaults(run=table)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
