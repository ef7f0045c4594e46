#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Writes the list of exported functions that src/preload/trampolines.S includes.

Reads the names that `generate.py names` prints, one a line, from standard input.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

NAME = re.compile(r"MPIX?_[A-Za-z0-9_]+")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    names = [line.strip() for line in sys.stdin if line.strip()]
    wrong = [name for name in names if not NAME.fullmatch(name)]
    if wrong or not names or len(set(names)) != len(names):
        print(f"trampolines.py: empty, repeated or malformed names: {wrong[:5]}", file=sys.stderr)
        return 1
    arguments.output.write_text("".join(f"        trampoline_pair {name}\n" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
