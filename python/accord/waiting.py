# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Tells whoever sits at a terminal that the command is at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A spinner on stderr beside `text` while what is inside goes on; nothing where that is no terminal.

    What is inside must not print: it would come out on stderr.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
