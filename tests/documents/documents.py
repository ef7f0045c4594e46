# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The documents taken apart: blocks of code with the marks in front of them, and code within sentences.

A mark is an HTML comment right before a block, which readers do not see: `<!-- needs: gpu -->`.
docs/testing.md lists them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(REPOSITORY / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    REPOSITORY / "tests" / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "examples").glob("*/README.md")),
]

SHELL = ("sh", "console")
RECORD = "record"  # the mark of blocks that were made from a record of bench/results

_MARK = re.compile(r"<!-- (?!end )([a-z]+)(?:: (.*?))? -->\s*")
_MADE, _MADE_END = "<!-- accord report ", "<!-- end -->"


@dataclass(frozen=True)
class Block:
    """A fenced (or indented) block; `mark` is "" without one, and `about` what follows its colon."""

    document: Path
    line: int
    language: str
    text: str
    mark: str = ""
    about: str = ""

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(REPOSITORY)}:{self.line}"

    @cached_property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Of a shell block: each command, and the lines that it is said to print."""
        found: list[tuple[str, list[str]]] = []
        goes_on = False
        for line in self.text.splitlines():
            prompt = self.language == "sh" or line.startswith("$ ")
            if goes_on:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            elif prompt:
                found.append((line.removeprefix("$ "), []))
            elif found:
                found[-1][1].append(line)
            goes_on = (goes_on or prompt) and line.endswith("\\")
        return found


def _tokens(document: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(document.read_text(encoding="utf-8"))


def blocks(document: Path) -> list[Block]:
    """All blocks of a document, in its order."""
    found: list[Block] = []
    before, made = "", False
    for token in _tokens(document):
        if token.type in ("fence", "code_block"):
            mark = _MARK.fullmatch(before)
            named = (mark[1], mark[2] or "") if mark else ("", "")
            where = (document, token.map[0] + 1 if token.map else 0)
            language = token.info.strip()
            found.append(Block(*where, language, token.content, *((RECORD, "") if made else named)))
        before = token.content if token.type == "html_block" else ""
        made = (made or before.startswith(_MADE)) and not before.rstrip().endswith(_MADE_END)
    return found


def inline_code(document: Path) -> list[str]:
    """What stands between backticks in sentences, tables and headings."""
    return [
        child.content
        for token in _tokens(document)
        for child in token.children or ()
        if child.type == "code_inline"
    ]
