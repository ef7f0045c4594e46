# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Sums up a JUnit file of ctest: why tests were skipped, which failed, and the closing line."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def reason(case: ElementTree.Element) -> str:
    """What the test says of it, else its last line: launchers add theirs."""
    lines = (case.findtext("system-out") or "").strip().splitlines()
    said = [line.removeprefix("skipped: ") for line in lines if line.startswith("skipped: ")]
    return (said or lines or ["no reason given"])[-1]


def main() -> int:
    path = Path(sys.argv[1])
    cases = list(ElementTree.parse(path).getroot().iter("testcase")) if path.is_file() else []
    # ctest: "run", "fail", "disabled", and "notrun" for tests that skip or could not start.
    skipped = [case for case in cases if case.find("skipped") is not None]
    missing = [case for case in skipped if "SKIP_RETURN_CODE" not in case.find("skipped").get("message", "")]
    skipped = [case for case in skipped if case not in missing]
    failed = [case for case in cases if case.find("failure") is not None] + missing
    passed = len(cases) - len(failed) - len(skipped)
    for case in skipped:
        print(f"skipped: {case.get('name')}: {reason(case)}")
    for case in failed:
        print(f"FAILED: {case.get('name')}: {reason(case)}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed > 0 and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
