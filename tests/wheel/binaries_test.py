# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""That what tests wheels sees what is wrong with a binary, on files of which it is known."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from binaries import is_elf, problems, version_of

# Made by this machine's compiler, so with this machine's C library.
_LIBRARY = Path(os.environ["ACCORD_TEST_BUILD"]) / "lib" / "libaccord.so"
_ANY = (99,)


def _compiler_file(name: str) -> Path:
    told = subprocess.run(
        ["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    return Path(told.stdout.strip()).resolve()


@pytest.mark.parametrize("text", ["GLIBC_2.28", "2.28", "2_28"])
def test_versions_are_numbers(text: str) -> None:
    assert version_of(text) == (2, 28)
    assert version_of(text) > version_of("2.4")


def test_a_newer_c_library_is_seen() -> None:
    found = [words for words in problems(_LIBRARY, version_of("2.2.4")) if "GLIBC_2." in words]
    assert any(words.endswith(" of libc.so.6") for words in found)
    assert not [words for words in problems(_LIBRARY, _ANY) if "GLIBC_2." in words]


def test_a_c_plus_plus_runtime_that_the_machine_must_have_is_seen() -> None:
    found = problems(_LIBRARY, _ANY)
    assert "needs the library libstdc++.so.6" in found
    assert [words for words in found if words.startswith("needs GLIBCXX_3.4")]


def test_a_c_plus_plus_runtime_that_others_see_is_seen() -> None:
    library = _compiler_file("libstdc++.so.6")
    assert is_elf(library)
    found = {words.split()[1] for words in problems(library, _ANY) if words.startswith("shows ")}
    assert {"__cxa_throw", "_ZTISt9exception", "_ZNSt13runtime_errorD1Ev", "_Znwm"} <= found


def test_the_library_shows_none_of_it() -> None:
    shims = [_LIBRARY.with_name(f"libaccord_{abi}.so") for abi in ("mpich", "openmpi", "abi")]
    for file in filter(Path.is_file, (_LIBRARY, *shims)):
        assert not [words for words in problems(file, _ANY) if words.startswith("shows ")], file


def test_text_is_no_binary() -> None:
    assert not is_elf(Path(__file__))
