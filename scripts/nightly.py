# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""One line of tests/nightly.jsonl, from what its tests, scripts/fuzz and scripts/soak leave in the build."""

import datetime
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any


def commit() -> str:
    """The commit that ran; changes that are not committed show."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def machine() -> str:
    """Cores and processor, in words."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{os.cpu_count()} cores, {models[0] if models else 'processor not named'}"


def outcome(file: Path) -> dict[str, Any] | str:
    """What a script left; a sentence where it left nothing."""
    return json.loads(file.read_text()) if file.exists() else "did not run"


def of_pytest(file: Path) -> dict[str, Any] | str:
    """How many tests ran, and which failed."""
    if not file.exists():
        return "did not run"
    cases = list(ET.parse(file).iter("testcase"))
    failed = [
        one for one in cases if one.find("failure") is not None or one.find("error") is not None
    ]
    skipped = sum(one.find("skipped") is not None for one in cases)
    return {"tests": len(cases) - skipped, "failures": [one.get("name") for one in failed]}


def main() -> None:
    """Prints the line."""
    build = Path(sys.argv[1])
    record = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        "documents": of_pytest(build / "documents.xml"),
        "third_party": of_pytest(build / "third-party.xml"),
        "fuzz": outcome(build / "fuzz/outcome.json"),
        "soak": outcome(build / "soak/outcome.json"),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
