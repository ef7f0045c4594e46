#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The rooms of src/ include only rooms below them, and only the shim includes mpi.h."""

import re
import sys
from pathlib import Path

BELOW = {
    "base": set(),
    "device": {"base"},
    "ccl": {"base"},
    "net": {"base", "device"},
    "node": {"base", "device"},
    "proxy": {"base", "device", "net", "node"},
    "core": {"base", "device", "node"},
    "coll": {"base", "device", "ccl", "net", "node", "core"},
    "p2p": {"base", "device", "net", "node", "proxy", "core"},
    "partitioned": {"base", "device", "node", "core"},
    # preload: shim_abi.h only
    "shim": {"base", "device", "ccl", "net", "node", "proxy", "core", "coll", "p2p", "partitioned", "preload"},
    "preload": {"base", "device"},
}
SHARED_WITH_SHIM = "preload/shim_abi.h"


def faults_of(source: Path, room: str) -> list[str]:
    faults = []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        header = match.group(1)
        where = f"{source}:{number}: {room} includes {header}"
        other = header.split("/")[0]
        if header == "mpi.h" and room != "shim":
            faults.append(where)
        if other in BELOW and other != room and other not in BELOW[room]:
            faults.append(where)
        if room == "shim" and other == "preload" and header != SHARED_WITH_SHIM:
            faults.append(where)
    return faults


def main() -> int:
    top = Path(__file__).resolve().parents[2] / "src"
    sources = [file for pattern in ("*.h", "*.cpp") for file in top.rglob(pattern)]
    faults = [fault for file in sources for fault in faults_of(file, file.relative_to(top).parts[0])]
    print("\n".join(faults) or f"{len(sources)} files, all arrows point down")
    return 1 if faults or len(sources) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
