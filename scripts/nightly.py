# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""One line of tests/nightly.jsonl, from what the parts of scripts/nightly leave in the build folder."""

import datetime
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

DID_NOT_RUN = "did not run"


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
    return json.loads(file.read_text()) if file.exists() else DID_NOT_RUN


def of_junit(file: Path) -> dict[str, Any] | str:
    """How many tests ran, and which failed."""
    if not file.exists():
        return DID_NOT_RUN
    cases = list(ElementTree.parse(file).iter("testcase"))
    failed = [
        case.get("name")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"tests": len(cases) - skipped, "failures": failed}


def wheel(folder: Path) -> dict[str, Any] | str:
    """The same of the tests of the wheel, and how long it is."""
    tests = of_junit(folder / "results.xml")
    files = list((folder / "dist").glob("*.whl"))
    if isinstance(tests, str) or len(files) != 1:
        return tests
    return {"file": files[0].name, "bytes": files[0].stat().st_size, **tests}


def main() -> None:
    """Prints the line."""
    build = Path(sys.argv[1])
    record = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        "tests": of_junit(build / "tests.xml"),
        "documents": of_junit(build / "documents.xml"),
        "third_party": of_junit(build / "third_party.xml"),
        "fuzz": outcome(build / "fuzz/outcome.json"),
        "soak": outcome(build / "soak/outcome.json"),
        "wheel": wheel(build / "wheel-tests"),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
