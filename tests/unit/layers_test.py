#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The rooms of src/ include only rooms below them, and only the shim includes mpi.h.

Only a device runtime includes the files of its folder. Within a room no folders include each other in a circle, nor
do headers.
"""

import graphlib
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
    "rma": {"base", "device", "net", "node", "core"},
    # preload: shim_abi.h only
    "shim": {
        "base",
        "device",
        "ccl",
        "net",
        "node",
        "proxy",
        "core",
        "coll",
        "p2p",
        "partitioned",
        "rma",
        "preload",
    },
    "preload": {"base", "device"},
}
SHARED_WITH_SHIM = "preload/shim_abi.h"
# HIP's functions are CUDA's by other names, so its runtime is CUDA's, and so are two of its kernels.
TWINS = {("hip", "cuda")}


def runtimes_of(top: Path) -> set[str]:
    return set(
        re.findall(r"^RUNTIME\((\w+)\)", (top / "device/runtimes.def").read_text(), re.MULTILINE)
    )


def folder_of(path: Path, runtimes: set[str]) -> str | None:
    """The runtime whose folder a file is in."""
    parts = path.parts
    return parts[1] if len(parts) > 2 and parts[0] == "device" and parts[1] in runtimes else None


def faults_of(source: Path, path: Path, runtimes: set[str]) -> list[str]:
    room, folder = path.parts[0], folder_of(path, runtimes)
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
        included = folder_of(Path(header), runtimes)
        if included not in (None, folder) and (folder, included) not in TWINS:
            faults.append(f"{where}, a folder of one runtime")
        if room == "shim" and other == "preload" and header != SHARED_WITH_SHIM:
            faults.append(where)
    return faults


def includes_of(source: Path, top: Path) -> list[Path]:
    """The files of src/ that one includes, relative to it."""
    found = re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(), re.MULTILINE)
    return [Path(header) for header in found if (top / header).exists()]


def circles_of(sources: list[Path], top: Path) -> list[str]:
    """Where folders of one room include each other in a circle, or headers do."""
    folders: dict[str, set[str]] = {}
    headers: dict[str, set[str]] = {}
    for source in sources:
        path = source.relative_to(top)
        for header in includes_of(source, top):
            if header.parts[0] == path.parts[0] and header.parent != path.parent:
                folders.setdefault(str(path.parent), set()).add(str(header.parent))
            if path.suffix == ".h" and header != path:
                headers.setdefault(str(path), set()).add(str(header))
    faults = []
    for graph in (folders, headers):
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            faults.append(f"a circle: {' includes '.join(reversed(error.args[1]))}")
    return faults


def main() -> int:
    top = Path(__file__).resolve().parents[2] / "src"
    runtimes = runtimes_of(top)
    sources = [
        file for pattern in ("*.h", "*.cpp", "*.cu", "*.clcpp") for file in top.rglob(pattern)
    ]
    faults = [
        fault for file in sources for fault in faults_of(file, file.relative_to(top), runtimes)
    ]
    faults += circles_of(sources, top)
    faults += [
        f"device/{name} has no runtime.cpp"
        for name in runtimes
        if not (top / f"device/{name}/runtime.cpp").exists()
    ]
    print("\n".join(faults) or f"{len(sources)} files, all arrows point down")
    return 1 if faults or len(sources) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
