# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs a launcher as a child, for the verbs that have work left when the job is done."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from typing import IO

from accord.ending import ended

INTERRUPTED = 130
_END_S = 10.0
_ERASE_LINE = b"\r\x1b[K"


def run_job(command: list[str], environment: dict[str, str], tidy: bool) -> int:
    """Exit status of the job. `tidy`: rows and progress come to one terminal and must not mix."""
    pipe = subprocess.PIPE if tidy else None
    process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe)
    try:
        code = _follow(process)
    except KeyboardInterrupt:
        # The launcher was interrupted, too; killing it at once would leave its ranks behind.
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
        return INTERRUPTED
    except SystemExit:  # only this process was told to end
        with ended(process):
            raise
    return code if code >= 0 else 128 - code


def _follow(process: subprocess.Popen[bytes]) -> int:
    if process.stdout is not None and process.stderr is not None:
        _copy_tidily(process.stdout, process.stderr)
    return process.wait()


def _copy_tidily(output: IO[bytes], progress: IO[bytes]) -> None:
    """Copies both to the terminal: whole lines of `output`, each on a line that holds no progress.

    A launcher forwards the two in no order, so a row may arrive while the last progress still stands.
    """
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        selector.register(progress, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is progress:
                    _write(data)
                else:
                    lines, newline, pending = (pending + data).rpartition(b"\n")
                    if newline:
                        _write(_ERASE_LINE + lines + newline)
    if pending:
        _write(_ERASE_LINE + pending)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
