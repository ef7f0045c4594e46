# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Makes the tables of the documents anew from the records in bench/results.

What stands between `<!-- accord report --markdown ... -->` and `<!-- end -->` is what that command prints,
run at the root of the repository. With --check nothing is written: differences are shown, and the exit
code is 1. Needs the Python packages of the command `accord`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "python"))

from accord.cli import app  # noqa: E402
from accord.errors import UserError  # noqa: E402

_TABLE = re.compile(
    r"(?P<head><!-- accord (?P<words>report --markdown [^\n]*) -->\n)(?P<body>.*?)(?P<end><!-- end -->)",
    re.DOTALL,
)


def documents() -> list[Path]:
    places = ("README.md", "docs/*.md", "bench/results/**/*.md")
    return sorted(file for place in places for file in REPOSITORY.glob(place))


def _made(match: re.Match[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        app(shlex.split(match["words"]), standalone_mode=False)
    return f"{match['head']}{printed.getvalue()}{match['end']}"


def renewed(text: str) -> str:
    """The document with each table as the records have it."""
    return _TABLE.sub(_made, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only show what differs")
    parser.add_argument("files", nargs="*", type=Path, help="by default all that hold tables")
    options = parser.parse_args()
    files = [file.resolve() for file in options.files] or documents()
    os.chdir(REPOSITORY)
    differ = False
    for file in files:
        old = file.read_text(encoding="utf-8")
        try:
            new = renewed(old)
        except UserError as error:
            parser.error(f"{file}: {error}")
        if new == old:
            continue
        differ = True
        if options.check:
            lines = difflib.unified_diff(
                old.splitlines(), new.splitlines(), str(file), "the records", n=0, lineterm=""
            )
            print(*lines, sep="\n")
        else:
            file.write_text(new, encoding="utf-8")
            print(file)
    return int(options.check and differ)


if __name__ == "__main__":
    sys.exit(main())
