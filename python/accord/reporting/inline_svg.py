# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Makes a figure of matplotlib part of a page: scaled by it, in its colours, named for screen readers."""

from __future__ import annotations

import html
import re

from accord.reporting.theme import COLOURS

_VARIABLES = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_VIEW_BOX = re.compile(r'viewBox="[^"]*"')


def inline_svg(text: str, label: str) -> str:
    """Of `text`, a file, what an HTML page may hold."""
    start = text.index("<svg")
    root_end = text.index(">", start)
    view_box = _VIEW_BOX.search(text, start, root_end)
    if view_box is None:
        raise ValueError("a figure without a viewBox")
    body = _METADATA.sub("", text[root_end + 1 :])
    # Groups are numbered anew in each figure and would collide in a page; nothing refers to them.
    body = _GROUP_ID.sub("<g", body)
    body = _COLOUR.sub(_themed, body)
    return f'<svg {view_box[0]} role="img" aria-label="{html.escape(label)}">{body.strip()}'


def _themed(match: re.Match[str]) -> str:
    return f"{match[1]}: {_VARIABLES.get(match[2], match[2])}"
