# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The page of `accord report` in a real browser: on a phone and a desk, light and dark.

The page is shown in a frame of the device's width; a script beside it measures and leaves what it found in
the document, which the browser prints.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import TIMEOUT_S

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE = 390
DESK = 1280

# Of the page in the frame: how wide it is, what sticks out, how tall the letters of the figures are.
_MEASURE = """
  const page = frame.contentDocument, view = frame.contentWindow;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const width = page.documentElement.clientWidth;
  const boxed = node => node.closest(".box");
  const out = [...page.body.querySelectorAll("*")].filter(
      node => !boxed(node) && !node.closest("svg") && node.getBoundingClientRect().right > width + 1);
  const scale = svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const letters = [...page.querySelectorAll(".figures svg text")].map(
      node => parseFloat(view.getComputedStyle(node).fontSize) * scale(node.ownerSVGElement));
  const tables = [...page.querySelectorAll("table")].filter(node => node.getClientRects().length);
  const figure = page.querySelector(".figures svg text");
  document.title = JSON.stringify({
    width: width, page: page.documentElement.scrollWidth, out: out.map(node => node.outerHTML.slice(0, 80)),
    letter: Math.min(...letters), figures: page.querySelectorAll(".figures svg").length,
    maps: tables.filter(node => node.matches(".heat")).length,
    loose: tables.filter(node => boxed(node).getBoundingClientRect().right > width).length,
    scrolling: tables.filter(node => boxed(node).scrollWidth > boxed(node).clientWidth)
        .map(node => node.className),
    paper: view.getComputedStyle(page.body).backgroundColor, ink: view.getComputedStyle(page.body).color,
    drawn: view.getComputedStyle(figure).fill,
  });
"""


def browser() -> str:
    for name in BROWSERS:
        if (path := shutil.which(name)) is not None:
            return path
    pytest.skip(f"none of {', '.join(BROWSERS)} on this machine")


def shown(page: Path, folder: Path, width: int, theme: str) -> dict[str, Any]:
    """What the browser makes of the page at this width, in this theme."""
    frame = (
        f'<iframe id="frame" style="border: 0; width: {width}px; height: 800px; color-scheme: {theme}" '
        f'srcdoc="{html.escape(page.read_text())}"></iframe>'
    )
    around = folder / "around.html"
    around.write_text(
        f'<!DOCTYPE html><html style="color-scheme: {theme}"><title></title>{frame}'
        f"<script>frame.onload = () => {{{_MEASURE}}}</script>"
    )
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    options += ["--virtual-time-budget=5000", "--dump-dom"]
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [browser(), *options, *sandbox, profile, around.as_uri()],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    found = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert found is not None, done.stderr[-2000:]
    measured: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measured


def test_on_a_phone_and_a_desk_light_and_dark(results_page: Path, tmp_path: Path) -> None:
    papers = {}
    for width, theme in ((PHONE, "light"), (PHONE, "dark"), (DESK, "light")):
        seen = shown(results_page, tmp_path, width, theme)
        assert seen["width"] == width
        assert seen["page"] == width and seen["out"] == [], "the page scrolls sideways"
        assert seen["loose"] == 0, "a table leaves its box"
        assert seen["letter"] >= 9.5, "letters too small to read"
        assert seen["figures"] == 42
        assert seen["maps"] == 3, "each map in the one form that suits the width"
        assert "heat" not in seen["scrolling"], "a map is to be seen at one glance"
        assert "numbers" in seen["scrolling"], "wide tables scroll in their box"
        papers[theme] = (seen["paper"], seen["ink"], seen["drawn"])
    assert all(light != dark for light, dark in zip(papers["light"], papers["dark"], strict=True))
