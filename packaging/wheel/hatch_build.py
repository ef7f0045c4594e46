# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Adds to a wheel what is compiled: `scripts/wheel` builds it, for machines with an older C library too."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Of an installed prefix, by folder of the package.
_CONTENTS = {
    "lib": ("libaccord.so", "libaccord_*.so", "accord_proxy"),
    "bin": ("accord_bench_*",),
    "include/accord": ("*.*",),
    "include/accord/aware": ("*",),
    "share/accord/tables": ("*.json",),
}


class Compiled(BuildHookInterface):  # type: ignore[type-arg]
    """Of the wheel and of the source distribution."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the files are put together; `version` is "editable" for a checkout's environment."""
        if self.target_name == "sdist":
            self._tell_commit(build_data)
        elif version != "editable":
            self._add_compiled(build_data)

    def _tell_commit(self, build_data: dict[str, Any]) -> None:
        """A source distribution has no history to ask."""
        file = Path(self.root, "build", "COMMIT")
        if Path(self.root, ".git").exists():
            command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty"]
            told = subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, check=True
            )
            file.parent.mkdir(exist_ok=True)
            file.write_text(told.stdout)
            build_data["force_include"][str(file)] = "COMMIT"

    def _add_compiled(self, build_data: dict[str, Any]) -> None:
        glibc = self.config["glibc"]
        for words in (["scripts/setup", "wheel"], ["scripts/wheel", glibc]):
            subprocess.run(words, cwd=self.root, check=True)
        prefix = Path(self.root, "build", "wheel", "prefix")
        for folder, names in _CONTENTS.items():
            for file in sorted(file for name in names for file in (prefix / folder).glob(name)):
                # A wheel has no links: libaccord.so is the file that it leads to.
                build_data["force_include"][str(file.resolve())] = f"accord/{folder}/{file.name}"
        build_data["pure_python"] = False
        tag = f"manylinux_{glibc.replace('.', '_')}_{platform.machine()}"
        build_data["tag"] = f"py3-none-{tag}"
