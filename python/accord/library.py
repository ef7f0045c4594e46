# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Asks libaccord.so about itself.

In a process of its own: the library and the drivers it opens are C++, and a tool that explains what is
broken must survive when they are. `python -m accord.library PATH FUNCTION` is that process.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from accord.errors import UserError
from accord.paths import importing_environment


def _ask(library: Path, function: str, about: str) -> Any:
    """The JSON that a function of this library gives. UserError when it cannot be called or crashes."""
    from accord.waiting import waiting  # late: the process that is asked does without

    try:
        with waiting(f"asking {library.name} for {about}"):  # drivers of many devices take seconds
            done = subprocess.run(
                [sys.executable, Path(__file__), library, function],
                env=importing_environment(),
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
        raise UserError(f"{library} crashed (signal {-done.returncode}) when asked for {about}")
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"cannot load {library}: {reason}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise UserError(f"{library} gave {about} that are no JSON") from error


def read_info(library: Path) -> dict[str, Any]:
    """What accord_info_json of this library says. UserError when it cannot be loaded or crashes."""
    answer = _ask(library, "accord_info_json", "settings")
    if not isinstance(answer, dict):
        raise UserError(f"{library} gave settings that are no JSON object")
    return answer


def read_collective_libraries(library: Path) -> list[dict[str, Any]]:
    """What accord_ccl_json says: a row for each collective library (NCCL and its like).

    They are loaded for it, and may be anything: where that goes wrong, the one row says so.
    """
    try:
        answer = _ask(library, "accord_ccl_json", "collective libraries")
    except UserError as error:
        return [{"usable": False, "why": str(error)}]
    return [row for row in answer if isinstance(row, dict)] if isinstance(answer, list) else []


def _call(path: str, name: str) -> bytes:
    function = getattr(ctypes.CDLL(path), name)
    function.restype = ctypes.c_size_t
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    size_bytes = function(None, 0)
    buffer = ctypes.create_string_buffer(size_bytes)
    function(buffer, size_bytes)
    return buffer.value


if __name__ == "__main__":
    try:
        sys.stdout.buffer.write(_call(sys.argv[1], sys.argv[2]))
    except (OSError, AttributeError) as failure:
        sys.exit(str(failure))
