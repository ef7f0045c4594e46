# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The colours of the report, light and dark, for figures and page alike.

Figures are drawn in the light colours. In the page each of these becomes a variable of its style sheet, so
that the same drawing follows the reader's theme. No two light colours may be equal.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

# Name: (light, dark). Those of paths keep a contrast of 3 to the surface; shapes tell them apart, too.
COLOURS = {
    "surface": ("#ffffff", "#161a21"),
    "ink": ("#1b1f27", "#e8eaee"),
    "muted": ("#5b6472", "#9da7b5"),
    "grid": ("#dfe3e8", "#2e3541"),
    "path-0": ("#c8401c", "#ff8a5c"),
    "path-1": ("#0b66b0", "#58aef5"),
    "path-2": ("#882e8f", "#d58bdd"),
    "path-3": ("#007d5a", "#35c79a"),
    "path-4": ("#9a6700", "#e0b040"),
    "path-5": ("#7a4a2b", "#c99b78"),
    "path-6": ("#007c89", "#4cc9d6"),
    "path-7": ("#c2327a", "#f78fbf"),
    "peer-0": ("#6a7381", "#98a2b1"),
    "peer-1": ("#8a93a0", "#77818f"),
}
# matplotlib's marker, and the same for the page's legend: an SVG path around (14, 6).
MARKERS = {
    "o": "M14 2.4a3.6 3.6 0 1 1 0 7.2a3.6 3.6 0 1 1 0-7.2z",
    "s": "M10.8 2.8h6.4v6.4h-6.4z",
    "D": "M14 1.6l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "^": "M14 1.8l4.2 7.4h-8.4z",
    "v": "M14 10.2l-4.2-7.4h8.4z",
    "P": "M12.6 2h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z",
    "X": "M12 2l2 2l2-2l2 2l-2 2l2 2l-2 2l-2-2l-2 2l-2-2l2-2l-2-2z",
    "p": "M14 1.8l4.2 3l-1.6 4.9h-5.2l-1.6-4.9z",
}
# Of peers, whose markers are hollow: on and off, in widths of the line.
DASHES = ((5, 2), (1.5, 1.5), (7, 2, 1.5, 2), (3, 1.5), (9, 3), (5, 1.5, 1.5, 1.5, 1.5, 1.5))

# The ways that every machine may show keep their colour from one report to the next.
_KNOWN_PATHS = ("inbox", "node-direct", "node", "node-pairs", "staged", "staged-pipelined")

# Slower than the peer, as fast, faster: told apart with any colour vision.
RATIO_STOPS_LIGHT = ("#c2570c", "#f3f1ec", "#1c62b9")
RATIO_STOPS_DARK = ("#e58a3c", "#262c36", "#3f8ae8")
# From here on a cell has its full colour: 4 times as fast, 4 times as slow.
RATIO_LIMIT = 4.0


def path_slots(paths: list[str]) -> dict[str, int]:
    """Which colour and marker each path takes; those with no place of their own share what is left."""
    slots = {path: _KNOWN_PATHS.index(path) for path in paths if path in _KNOWN_PATHS}
    free = [slot for slot in reversed(range(len(MARKERS))) if slot not in slots.values()]
    others = [path for path in paths if path not in slots]
    return slots | dict(zip(others, itertools.cycle(free), strict=False))


@dataclass(frozen=True)
class PeerLook:
    colour: str
    marker: str
    dashes: tuple[float, ...]


def peer_look(position: int) -> PeerLook:
    """Of the peer at this position in its section."""
    marker = list(MARKERS)[position % len(MARKERS)]
    return PeerLook(f"peer-{position % 2}", marker, DASHES[position % len(DASHES)])


def light(name: str) -> str:
    return COLOURS[name][0]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _mixed(start: str, end: str, share: float) -> str:
    pairs = zip(_channels(start), _channels(end), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


def ratio_colour(ratio: float, stops: tuple[str, str, str] = RATIO_STOPS_LIGHT) -> str:
    """Between the stops by the logarithm, so that twice as fast is as far from 1 as twice as slow."""
    position = max(-1.0, min(1.0, math.log(ratio) / math.log(RATIO_LIMIT)))
    return _mixed(stops[1], stops[0] if position < 0 else stops[2], abs(position))


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines define it, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_colour(background: str) -> str:
    """Black or white, whichever reads better."""
    return max(("#000000", "#ffffff"), key=lambda colour: contrast(colour, background))
