# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""How the command and the jobs that it starts end when they are told to: nothing stays behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_END_S = 10.0
_KINDS = (signal.SIGTERM, signal.SIGHUP)


def unwind_when_told_to_end() -> None:
    """SIGTERM and a lost terminal become a SystemExit, so that temporary files and jobs are cleared away.

    A program that this process executes gets the signals as they were before.
    """
    for kind in _KINDS:
        if signal.getsignal(kind) is signal.SIG_DFL:  # under nohup it is not
            signal.signal(kind, _unwind)


def _unwind(number: int, frame: FrameType | None) -> None:
    for kind in _KINDS:
        signal.signal(kind, signal.SIG_IGN)  # a second one must not cut the clearing short
    sys.exit(128 + number)


@contextmanager
def ended(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> Iterator[None]:
    """If what is done inside fails, the launcher is ended, too, and gets the time to end its ranks."""
    try:
        yield
    except BaseException:
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            process.send_signal(kind)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
                break
        raise
