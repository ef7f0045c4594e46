# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Every block of the documents runs, or says in a mark why it does not. docs/testing.md lists the marks.

The blocks of a document build upon each other: `-k guide` runs those of docs/guide.md.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import shell
from conftest import Folder
from documents import DOCUMENTS, RECORD, REPOSITORY, SHELL, Block, blocks, inline_code
from marks import FILE, FRAME, IN_FILE, NEEDS, OUTPUT, wrong_mark
from named import wrong_words

_BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
_FRAMES = Path(__file__).with_name("frames")
_PLACE = "BLOCK"
_SELF = "make test"  # would run this very test


def _ids(block: Block) -> str:
    return block.name


@pytest.mark.parametrize("block", _BLOCKS, ids=_ids)
def test_block_is_marked(block: Block) -> None:
    assert wrong_mark(block) is None
    same = [one for one in _BLOCKS if one.document == block.document]
    at = same.index(block)
    if block.mark == OUTPUT:
        assert at > 0 and same[at - 1].language in SHELL, "no command in front of this output"
    if block.mark == FILE and block.language != "json":
        assert any(block.about in one.text for one in same[at + 1 :]), f"nothing uses {block.about}"


_SHELL = [block for block in _BLOCKS if block.language in SHELL]


@pytest.mark.parametrize("block", _SHELL, ids=_ids)
def test_commands_exist(block: Block, checkout: None) -> None:
    """Whether they are run or not."""
    if block.mark == RECORD:
        pytest.skip("the commands of a record, as they were")
    script = "\n".join(command for command, _ in block.commands)
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    wrong = [one for command, _ in block.commands for one in wrong_words(command)]
    assert wrong == []


def _output_behind(block: Block) -> Block | None:
    """The block of text that states what this one prints."""
    following = _BLOCKS[_BLOCKS.index(block) + 1 :][:1]
    same = [one for one in following if one.document == block.document and one.mark == OUTPUT]
    return same[0] if same else None


def _exports(block: Block) -> list[str]:
    """What earlier blocks of the document have set, where the reader has been through them."""
    earlier = [one for one in _SHELL if one.document == block.document and one.line < block.line]
    through = [one for one in earlier if one.about in ("", "minutes", "installed")]
    commands = (command for one in through for command, _ in one.commands)
    return [command for command in commands if command.startswith("export ")]


def _install(request: pytest.FixtureRequest, folder: Path) -> None:
    prefix = folder / "home" / "accord"
    if not (prefix / "bin" / "accord").exists():
        made = request.getfixturevalue("installed")
        shutil.copytree(made, prefix, symlinks=True, dirs_exist_ok=True)


@pytest.mark.parametrize("block", _SHELL, ids=_ids)
def test_commands_run(block: Block, folder_of: Folder, request: pytest.FixtureRequest) -> None:
    """And print what the document states."""
    if block.mark == RECORD:
        pytest.skip("a record of another machine")
    if block.mark and not NEEDS[block.about].is_here():
        pytest.skip(f"needs {block.about}: {NEEDS[block.about].text}")
    folder = folder_of(block.document)
    if block.about == "installed":
        _install(request, folder)
    commands = [one for one in block.commands if not one[0].startswith(_SELF)]
    printed = shell.run(block.name, _exports(block), [command for command, _ in commands], folder)
    stated = [lines for _, lines in commands]
    if text := _output_behind(block):
        stated, printed = [text.text.splitlines()], ["".join(printed)]
    pairs = zip(stated, printed, strict=True)
    wrong = [one for lines, got in pairs if lines for one in shell.differences(lines, got)]
    assert wrong == [], "\n".join(printed)


# Commands within sentences that lack nothing, over few ranks.
_COMPLETE = re.compile(
    r"(?:LD_PRELOAD=\$\(accord preload\) )?(?:mpiexec|accord (?:run|explain)) "
    r"(?!.*(?: -x |nsys|…)).*-n [1-4]\b.*"
)
_SENTENCES = [
    (document, code)
    for document in DOCUMENTS
    for code in dict.fromkeys(inline_code(document))
    if _COMPLETE.fullmatch(code)
]


@pytest.mark.parametrize(("document", "command"), _SENTENCES)
def test_commands_of_sentences_run(document: Path, command: str, folder_of: Folder) -> None:
    shell.run(document.name, [], [command], folder_of(document))


def _collapsed(text: str) -> str:
    """Code without its comments and line breaks."""
    lines = (re.sub(r"(//|# ).*", "", line) for line in text.splitlines())
    return "".join("".join(lines).split())


_IN_FILES = [block for block in _BLOCKS if block.mark == IN_FILE]


@pytest.mark.parametrize("block", _IN_FILES, ids=_ids)
def test_quotation_stands_in_its_file(block: Block) -> None:
    """Part by part: an empty line, or a comment that begins with `…`, stands for what is left out."""
    file = _collapsed((REPOSITORY / block.about).read_text(encoding="utf-8"))
    parts = re.split(r"\n *(?:// ….*)?\n", block.text)
    assert [part for part in parts if _collapsed(part) not in file] == []


_FRAMED = [block for block in _BLOCKS if block.mark == FRAME]


@pytest.mark.parametrize("block", _FRAMED, ids=_ids)
def test_framed_code_compiles(
    block: Block, folder_of: Folder, request: pytest.FixtureRequest
) -> None:
    """A frame's first line has the command, in which FILE is the block in its frame."""
    if block.language == "fortran" and shutil.which("mpif90") is None:
        pytest.skip("no mpif90")
    frame = (_FRAMES / f"{block.about}.in").read_text(encoding="utf-8")
    head, _, text = frame.partition("\n")
    before, found, after = text.partition(f"{_PLACE}\n")
    assert found, f"no line {_PLACE} in {block.about}"
    folder = folder_of(block.document)
    if "$HOME/accord" in head:
        _install(request, folder)
    file = folder / "framed" / block.about
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{before}{block.text}{after}", encoding="utf-8")
    command = head.partition(": ")[2].replace("FILE", str(file.relative_to(folder)))
    shell.run(block.name, [], [command], folder)


_JSON = [block for block in _BLOCKS if block.language == "json"]


@pytest.mark.parametrize("block", _JSON, ids=_ids)
def test_tables_are_read(block: Block, folder_of: Folder) -> None:
    """A table that a page shows is one of the library's."""
    table = json.loads(block.text)
    assert table["format"] == "accord-table"
    call = f"{table['choices'][0]['collective']} -n {table['choices'][0]['ranks']}"
    chosen = table["choices"][0]["ranges"][1]
    size = chosen["first_bytes"]
    command = f"ACCORD_TABLE=$PWD/{block.about} accord explain {call} --bytes {size}"
    (printed,) = shell.run(block.name, [], [command], folder_of(block.document))
    assert f": {chosen['algorithm']}, because the table says so" in printed
