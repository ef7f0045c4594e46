# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What keeps a binary from running elsewhere: newer C libraries, others, a visible C++ runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

# What every machine has that may have a wheel of this kind, and the MPIs, which the user brings.
_C_LIBRARIES = r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libgcc_s)\.so\.\d+"
_OURS = r"libaccord\.so\.\d+"
_MPI = r"libmpi(ch|_abi)?\.so\.\d+"
_NEEDED = re.compile(rf"({_C_LIBRARIES}|{_OURS}|{_MPI})$")

# Names of the C++ library and its language support; the last are those of the unwinder. What it has for our
# own types is nobody else's.
_RUNTIME = re.compile(
    r"_Z(N[VKRO]*S|T[ISV]S|T[ISV]NS|S|nwm|nam|dlPv|daPv)|__cxa_|__gxx_|_Unwind_|unw_"
)

Version = tuple[int, ...]


def version_of(text: str) -> Version:
    """GLIBC_2.28 and 2_28 in numbers."""
    return tuple(map(int, re.findall(r"\d+", text)))


def is_elf(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def problems(file: Path, glibc: Version) -> list[str]:
    """Each in words, for machines with this C library. The unwinder is of the same year, that of GCC 8."""
    limits = {"GLIBC": glibc, "GCC": (8,)}
    with file.open("rb") as opened:
        elf = ELFFile(opened)
        return [*_too_new(elf, limits), *_not_everywhere(elf), *_runtime_shown(elf)]


def _too_new(elf: Any, limits: dict[str, Version]) -> Iterator[str]:
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                for version in versions:
                    family = version.name.split("_")[0]
                    if version.name.startswith("ACCORD_"):
                        continue
                    if family not in limits or version_of(version.name) > limits[family]:
                        yield f"needs {version.name} of {library.name}"


def _not_everywhere(elf: Any) -> Iterator[str]:
    section = elf.get_section_by_name(".dynamic")
    if isinstance(section, DynamicSection):
        for tag in section.iter_tags():
            if tag.entry.d_tag == "DT_NEEDED" and not _NEEDED.match(tag.needed):
                yield f"needs the library {tag.needed}"
            elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                path = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                if path != "$ORIGIN":
                    yield f"looks for libraries in {path}"


def symbols(file: Path) -> set[tuple[str, bool]]:
    """What a binary takes from others and has for them; true: has."""
    with file.open("rb") as opened:
        return set(_symbols(ELFFile(opened)))


def _symbols(elf: Any) -> Iterator[tuple[str, bool]]:
    section = elf.get_section_by_name(".dynsym")
    if isinstance(section, SymbolTableSection):
        for symbol in section.iter_symbols():
            yield symbol.name, symbol.entry.st_shndx != "SHN_UNDEF"


def _runtime_shown(elf: Any) -> Iterator[str]:
    for name, defined in _symbols(elf):
        if defined and _RUNTIME.match(name) and "6accord" not in name:
            yield f"shows {name} to other libraries"
