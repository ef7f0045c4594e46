#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Writes the manual page of the command `accord` and what shells load to complete it:  manual.py FOLDER

From what `accord --help` has, so neither is ever behind it: man/accord.1, completion/{bash,zsh,fish}.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import typer
import typer.main
from typer.completion import get_completion_script

from accord import __version__
from accord.cli import COMPLETION_VARIABLE, app

_SEE = (
    "All settings of the library are variables of the environment; accord info lists them. The documents lie "
    "in share/doc/accord."
)


def roff(text: str) -> str:
    """Prose of the help: paragraphs, with [bold]words[/bold]."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"\[/?bold\]", lambda mark: "\\fR" if "/" in mark[0] else "\\fB", text)
    lines = [line.strip() for line in text.splitlines()]
    # A dot or an apostrophe that begins a line would be a command.
    return "\n".join(("\\&" + line if line[:1] in (".", "'") else line) for line in lines)


def paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield ".PP\n" + roff(paragraph)


def verb(name: str, command: Any) -> Iterator[str]:
    yield f".SS accord {roff(name)}"
    yield from paragraphs(command.help or "")
    context = typer.Context(command, info_name=f"accord {name}")
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if (
            record is not None
            and parameter.param_type_name == "option"
            and parameter.name != "help"
        ):
            yield f".TP\n\\fB{roff(record[0])}\\fR\n{roff(record[1])}"


def page() -> str:
    command: Any = typer.main.get_command(app)
    lines = [
        f'.TH ACCORD 1 "" "Accord {__version__}" "Accord"',
        ".SH NAME",
        "accord \\- " + roff(command.help[0].lower() + command.help[1:].rstrip(".")),
        ".SH SYNOPSIS",
        "\\fBaccord\\fR \\fIverb\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]",
        ".SH VERBS",
    ]
    for name, sub in command.commands.items():
        lines += verb(name, sub)
    return "\n".join([*lines, ".SH SEE ALSO", roff(_SEE), ""])


def main(folder: Path) -> None:
    for place in ("man", "completion"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / "man" / "accord.1").write_text(page())
    for shell in ("bash", "zsh", "fish"):
        script = get_completion_script(
            prog_name="accord", complete_var=COMPLETION_VARIABLE, shell=shell
        )
        (folder / "completion" / shell).write_text(script + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
