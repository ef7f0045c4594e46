# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Asks libaccord.so about itself.

In a process of its own: the library and the drivers it opens are C++, and a tool that explains what is
broken must survive when they are. `python -m accord.library PATH` is that process.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from accord.errors import UserError


def read_info(library: Path) -> dict[str, Any]:
    """What accord_info_json of this library says. UserError when it cannot be loaded or crashes."""
    try:
        done = subprocess.run(
            [sys.executable, Path(__file__), library],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{library} does not answer") from error
    if done.returncode < 0:
        raise UserError(
            f"{library} crashed (signal {-done.returncode}) when asked for its settings"
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"cannot load {library}: {reason}")
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise UserError(f"{library} gave settings that are no JSON") from error
    if not isinstance(answer, dict):
        raise UserError(f"{library} gave settings that are no JSON object")
    return answer


def _call_info(path: str) -> bytes:
    library = ctypes.CDLL(path)
    function = library.accord_info_json
    function.restype = ctypes.c_size_t
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    size_bytes = function(None, 0)
    buffer = ctypes.create_string_buffer(size_bytes)
    function(buffer, size_bytes)
    return buffer.value


if __name__ == "__main__":
    try:
        sys.stdout.buffer.write(_call_info(sys.argv[1]))
    except (OSError, AttributeError) as failure:
        sys.exit(str(failure))
