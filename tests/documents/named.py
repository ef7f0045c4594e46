# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What documents name must exist: settings, options of the command, files, make targets, tests."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from accord.cli import app
from accord.options import launcher_options, split_command_line, take_options
from accord.paths import find_home

from documents import REPOSITORY
from marks import BUILD

_SETTING = re.compile(r"\bACCORD_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_]*[*…_])")
_SOURCES = "src include python cmake scripts packaging api bench CMakeLists.txt".split()
_ENDINGS = "h c cpp cu cuh def py json jsonl md cmake S yaml".split()
_PATH = re.compile(r"[\w.*{},+-]+(?:/[\w.*{},+-]+)*/?")
# What is the reader's, another project's, or in an installation (tests/install compares those).
_NOT_OURS = {
    *(
        "app.c",
        "app.py",
        "train.py",
        "t.json",
        "net.json",
        "report.json",
        "all.json",
        "mpi.h",
        "mpif.h",
    ),
    *("sums.py", "prefix.*.json", "outcome.json"),
    "packages/accord/package.py",
    "src/rma",  # a room that there is not
}
_PLACEHOLDER = re.compile(r"(?:^|/)(?:[A-Z]{2,}|xyz)(?:\.\w+)?(?:/|$)(?<!README\.md)")
_TEST = re.compile(
    r"(?:unit|model|preload|mpi|conformance|programs|faults|cli|hosts|ccl|documents|fortran)(?:\.[\w*]+)+"
)
_COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
_USAGE_ERROR = typer.BadParameter.__mro__[1]


def _lines(*command: object, cwd: Path = REPOSITORY) -> list[str]:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.splitlines()


@functools.cache
def _settings() -> tuple[frozenset[str], frozenset[str]]:
    """The names that are read, and those that settings had once."""
    told = "\n".join(
        _lines(sys.executable, "-m", "accord", "info", "--json", cwd=REPOSITORY / "python")
    )
    rows: list[dict[str, Any]] = json.loads(told)["settings"]
    old = {name for row in rows for name in row.get("old_names", ())}
    names = {row["name"] for row in rows}
    names |= set(
        _lines("git", "grep", "-hoE", r"\bACCORD_[A-Z0-9_]+", "--", *_SOURCES, ":!bench/results")
    )
    # Tests also set names, which says nothing; what they read is quoted.
    quoted = _lines("git", "grep", "-hoE", r'"ACCORD_[A-Z0-9_]+"', "--", "tests", ":!tests/cli")
    return frozenset(names | {name.strip('"') for name in quoted}), frozenset(old)


def wrong_settings(text: str) -> list[str]:
    """Names `ACCORD_...` that nothing reads."""
    known, old = _settings()
    return [
        f"{name} is {'an old name' if name in old else 'read by nothing'}"
        for name in sorted(set(_SETTING.findall(text)))
        if name in old or name not in known
    ]


@functools.cache
def _tracked() -> tuple[frozenset[str], frozenset[str]]:
    files = _lines("git", "ls-files", "--cached", "--others", "--exclude-standard")
    folders = {str(parent) for file in files for parent in Path(file).parents} - {"."}
    return frozenset([*files, *folders]), frozenset(file.split("/")[0] for file in files)


def _expanded(path: str) -> list[str]:
    """As a shell expands braces."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)]
    fixed = [part if at % 2 else [",".join(part)] for at, part in enumerate(parts)]
    return ["".join(words) for words in itertools.product(*fixed)]


def _exists(path: str) -> bool:
    if path.startswith(("build/bin/", "build/lib/", "build/tests/")):
        return not BUILD.exists() or any(BUILD.glob(path.removeprefix("build/")))
    if path.startswith("build/"):  # made by a run
        return True
    return any(fnmatch.fnmatch(f"/{name}", f"*/{path}") for name in _tracked()[0])


def wrong_path(word: str) -> list[str]:
    """A path of the checkout, from its root or from within a room, to which nothing leads."""
    if word in _NOT_OURS or not _PATH.fullmatch(word) or (word[0] == "." and "/" not in word):
        return []
    first, ending = word.split("/")[0], word.rpartition(".")[2]
    if not (
        ("/" in word and first in {*_tracked()[1], "build"} - {"share"})
        or ("." in word and ending in _ENDINGS)
    ):
        return []
    paths = (path.rstrip("/") for path in _expanded(word) if not _PLACEHOLDER.search(path))
    return [f"no {path}" for path in paths if not _exists(path)]


@functools.cache
def _tests() -> tuple[list[str], list[str]]:
    """The names of ctest in this build, and its labels."""
    if not (BUILD / "CTestTestfile.cmake").exists():
        return [], []
    listed = "\n".join(_lines("ctest", "-N", cwd=BUILD))
    names = re.findall(r"^ *Test +#\d+: (\S+)", listed, re.MULTILINE)
    return names, [line.strip() for line in _lines("ctest", "--print-labels", cwd=BUILD)]


def wrong_test(word: str) -> list[str]:
    """A name of tests, with stars, that ctest does not have."""
    names = _tests()[0]
    if not _TEST.fullmatch(word) or not names or word.rpartition(".")[2] in _ENDINGS:
        return []
    return [] if any(fnmatch.fnmatch(name, f"{word}*") for name in names) else [f"no test {word}"]


def _simple_commands(line: str) -> list[list[str]]:
    """The words of each command of a line, those in `$(...)` among them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();<>|&"):
            found.append([])
        else:
            found[-1].append(word)
    return found


@functools.cache
def _bench_options() -> frozenset[str]:
    programs = sorted(find_home().bin.glob("accord_bench_*"))
    return frozenset(re.findall(r"--[\w-]+", "\n".join(_lines(programs[0], "--help"))))


def _app_options() -> frozenset[str]:
    """What applications take, and what `accord bench --app` takes for all of them."""
    sources = [REPOSITORY / "python" / "accord" / "bench_app.py"]
    for name in ("options.cpp", "main.cpp"):
        sources += (REPOSITORY / "examples").glob(f"*/{name}")
    text = "".join(source.read_text() for source in sources)
    return frozenset(re.findall(r'"(--[a-z]+)"', text))


def _wrong_accord(words: list[str]) -> list[str]:
    """What is wrong with the words behind `accord`; a command may be cut short."""
    if not words or words[0].startswith("-") or not re.match(r"[a-z]", words[0]):
        return []
    verb, rest = words[0], words[1:]
    if verb not in _COMMANDS:
        return [f"no accord {verb}"]
    command = _COMMANDS[verb]
    try:
        context = command.make_context(verb, list(rest))
    except _USAGE_ERROR as error:
        return [] if type(error).__name__ == "MissingParameter" else [f"accord {verb}: {error}"]
    given: list[str] = []
    if verb == "run":
        segments = split_command_line(rest, command.own_options(context))[1]
        given = [word.split("=")[0] for part in segments for word in part.options]
        given = [word for word in given if word.startswith("-") and word not in launcher_options()]
    elif verb == "bench":
        passed = take_options(rest, command.own_options(context))[1]
        given = [word.split("=")[0] for word in passed if word.startswith("--")]
        known = _app_options() if context.params["app"] else _bench_options()
        given = [word for word in given if word not in known]
    return [f"accord {verb}: no option {word}" for word in given]


def _wrong_make(words: list[str]) -> list[str]:
    phony = re.search(r"^\.PHONY: (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    targets = phony[1].split() if phony else []
    asked = [word for word in words if re.fullmatch(r"[a-z]+", word)]
    return [f"no make {word}" for word in asked if word not in targets]


def _wrong_script(script: str, words: list[str]) -> list[str]:
    """Long options that a script of the checkout does not have."""
    file = REPOSITORY / script
    if not file.is_file() or file.suffix not in ("", ".py"):
        return []
    # What it hands its words to, or has of its neighbours.
    files = [file, *file.parent.glob("*.py")]
    text = "".join(file.read_text(errors="replace") for file in files)
    options = (word.split("=")[0] for word in words if word.startswith("--"))
    return [f"{script}: no option {word}" for word in options if word not in text]


def _wrong_test_options(words: list[str]) -> list[str]:
    names, labels = _tests()
    wrong = []
    for option, value in itertools.pairwise(words):
        if option == "-L" and labels and value not in labels:
            wrong.append(f"no label {value}")
        if option == "-R" and names and not any(re.search(value, name) for name in names):
            wrong.append(f"no test {value}")
    return wrong


def wrong_words(line: str) -> list[str]:
    """What a line of shell names and does not exist."""
    wrong = wrong_settings(line)
    for words in _simple_commands(line):
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if "accord" in words:
            wrong += _wrong_accord(words[words.index("accord") + 1 :])
        if words[:1] == ["make"]:
            wrong += _wrong_make(words[1:])
        if words and words[0] in ("scripts/test", "ctest"):
            wrong += _wrong_test_options(words)
        for at, word in enumerate(words):
            wrong += wrong_path(word)
            if word.startswith(("scripts/", "tests/")):
                wrong += _wrong_script(word, words[at + 1 :])
    return wrong
