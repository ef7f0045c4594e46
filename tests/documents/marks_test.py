# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What is wrong with a block is seen: in its mark, in what it runs, in what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import shell
from documents import DOCUMENTS, REPOSITORY, Block, blocks, inline_code
from marks import NEEDS, wrong_mark

_DOCUMENT = """
Says `one` and `two`.

```sh
export A=1
echo $A \\
  more
```

<!-- needs: gpu -->
```console
$ nvidia-smi
…
$ true
```

- in a list

  <!-- output -->
  ```text
  1 more
  ```

<!-- accord report --markdown file -->
```
accord bench allreduce
```
<!-- end -->

```
nothing is said of this
```
"""


def _block(language: str, mark: str = "", about: str = "", text: str = "") -> Block:
    return Block(REPOSITORY / "README.md", 1, language, text, mark, about)


def test_document_is_taken_apart(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(_DOCUMENT)
    assert inline_code(file) == ["one", "two"]
    found = blocks(file)
    assert [(one.language, one.mark, one.about) for one in found] == [
        ("sh", "", ""),
        ("console", "needs", "gpu"),
        ("text", "output", ""),
        ("", "record", ""),
        ("", "", ""),
    ]
    assert found[0].commands == [("export A=1", []), ("echo $A \\\n  more", [])]
    assert found[1].commands == [("nvidia-smi", ["…"]), ("true", [])]


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        (_block("sh"), None),
        (_block("sh", "needs", "slurm"), None),
        (_block("sh", "needs", "time"), "known needs are"),
        (_block("sh", "output"), "mark output"),
        (_block(""), "language missing"),
        (_block("pascal"), "language pascal"),
        (_block("text"), "needs a mark"),
        (_block("cpp"), "needs a mark"),
        (_block("cpp", "in", "src/base/log.h"), None),
    ],
)
def test_marks_are_of_a_closed_list(block: Block, wrong: str | None) -> None:
    told = wrong_mark(block)
    assert (told is None) if wrong is None else (told is not None and wrong in told)


def test_every_need_is_of_some_block() -> None:
    used = {block.about for document in DOCUMENTS for block in blocks(document)}
    assert [name for name in NEEDS if name not in used] == []


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    commands = ["echo fine", "cd /nowhere", "echo never"]
    with pytest.raises(AssertionError, match="page: cd /nowhere\nended with 1"):
        shell.run("page", [], commands, tmp_path)


def test_commands_share_a_shell(tmp_path: Path) -> None:
    commands = ["export B=2", "echo $A$B", "echo to stderr >&2"]
    assert shell.run("page", ["export A=1"], commands, tmp_path) == ["", "12\n", "to stderr\n"]


@pytest.mark.parametrize(
    ("stated", "printed", "wrong"),
    [
        ("took 2.5 us at 0x7f00", "took 31.7 us   at 0xab", []),
        ("rank 0 of 2", "rank 0 of 3", ["rank 0 of 2", "not stated: rank 0 of 3"]),
        ("first\n…", "second\nfirst", []),
        ("first", "first\nsecond", ["not stated: second"]),
        ("path … (voted)", "path node (voted)", []),
    ],
)
def test_output_is_compared(stated: str, printed: str, wrong: list[str]) -> None:
    assert shell.differences(stated.splitlines(), printed) == wrong
