# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Makes a figure of matplotlib part of a page: scaled by it, in its colours, named for screen readers."""

from __future__ import annotations

import html
import re

from accord.reporting.theme import COLOURS

_VARIABLES = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
# The style sheet is for any element: in a page it would reach beyond the figure.
_NOT_FOR_PAGES = re.compile(r"<metadata>.*?</metadata>|<style .*?</style>", re.DOTALL)
_BETWEEN_TAGS = re.compile(r">\s+<")
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_VIEW_BOX = re.compile(r'viewBox="[^"]*"')


def inline_svg(text: str, label: str) -> str:
    """Of `text`, a file, what an HTML page may hold."""
    start = text.index("<svg")
    root_end = text.index(">", start)
    view_box = _VIEW_BOX.search(text, start, root_end)
    if view_box is None:
        raise ValueError("a figure without a viewBox")
    body = _NOT_FOR_PAGES.sub("", text[root_end + 1 :])
    # Groups are numbered anew in each figure and would collide in a page; nothing refers to them.
    body = _GROUP_ID.sub("<g", body)
    body = _COLOUR.sub(_themed, body)
    body = _BETWEEN_TAGS.sub("><", body)
    return f'<svg {view_box[0]} role="img" aria-label="{html.escape(label)}">{body.strip()}'


def _themed(match: re.Match[str]) -> str:
    return f"{match[1]}: {_VARIABLES.get(match[2], match[2])}"
