# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The documents: tables are what the records say, and links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY

_TABLES = REPOSITORY / "scripts" / "tables.py"
_PERFORMANCE = REPOSITORY / "docs" / "performance.md"
_PERFORMANCE_WORDS_MAX = 4000
_MADE = re.compile(r"<!-- accord report --markdown .*?<!-- end -->", re.DOTALL)
_DOCUMENTS = sorted(
    file
    for place in ("*.md", "docs/*.md", "bench/**/*.md", "share/**/*.md", "tests/*.md")
    for file in REPOSITORY.glob(place)
)


def _check(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_TABLES), "--check", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_tables_are_what_the_records_say() -> None:
    done = _check()
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nmake tables makes them anew"


@pytest.mark.parametrize("document", ["README.md", "docs/performance.md"])
def test_a_digit_that_no_record_has_is_seen(document: str, tmp_path: Path) -> None:
    """In the first cell of a table and in the last line of its caption."""
    text = (REPOSITORY / document).read_text()
    table = _MADE.search(text)
    assert table is not None
    copied = tmp_path / "copied.md"
    for digit in (re.search(r"\d\.\d(\d)", table[0]), re.search(r"ahead at (\d)", table[0])):
        assert digit is not None
        at = table.start() + digit.start(1)
        copied.write_text(f"{text[:at]}{(int(digit[1]) + 1) % 10}{text[at + 1 :]}")
        done = _check(copied)
        assert done.returncode == 1 and "+++ the records" in done.stdout, done.stderr
    shutil.copy(REPOSITORY / document, copied)
    assert _check(copied).returncode == 0


def test_all_tables_of_performance_are_made_from_records() -> None:
    text = _PERFORMANCE.read_text()
    typed = [line for line in _MADE.sub("", text).splitlines() if line.startswith("|")]
    assert _MADE.search(text) and typed == []
    assert len(text.split()) <= _PERFORMANCE_WORDS_MAX


def _anchors(file: Path) -> set[str]:
    """What GitHub calls the headings of a document."""
    heads = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        file = (document.parent / place).resolve() if place else document
        assert file.exists(), f"{document.name} links to {target}"
        assert not anchor or anchor in _anchors(file), f"{document.name}: no heading {target}"
