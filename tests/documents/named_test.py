# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Settings, options, files, targets and tests that sentences of the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents import DOCUMENTS, REPOSITORY, inline_code
from named import wrong_path, wrong_settings, wrong_test, wrong_words

_NO_COMMANDS = {"accord by nccl"}  # a column of a table
# Pages of settings are made by the command, and have old names, too (tests/cli/settings_test.py).
_WRITTEN = [file for file in DOCUMENTS if not file.name.startswith("settings")]
_COMMAND = re.compile(r"(make |scripts/|ctest |ACCORD_\w+=)|(.*\W)?accord [a-z]")


@pytest.mark.parametrize("document", _WRITTEN, ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_what_is_named_exists(document: Path, checkout: None) -> None:
    wrong = wrong_settings(document.read_text(encoding="utf-8"))
    for code in inline_code(document):
        if code in _NO_COMMANDS:
            continue
        wrong += (
            wrong_words(code) if _COMMAND.match(code) else [*wrong_path(code), *wrong_test(code)]
        )
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("accord explain allreduce --bytes 64K -n 2", []),
        ("accord explain allreduce --byte-count 64K", ["accord explain: No such option"]),
        ("accord tell", ["no accord tell"]),
        ("srun $(accord preloaded) ./app", ["no accord preloaded"]),
        ("accord run --gpu-per-rank 2 -n 4 ./app", ["accord run: no option --gpu-per-rank"]),
        ("accord bench allreduce --peers nccl", ["accord bench: no option --peers"]),
        ("ACCORD_QUICK_COPY_BYTES=1K ./app", ["ACCORD_QUICK_COPY_BYTES is an old name"]),
        ("ACCORD_TRACES=1 ./app", ["ACCORD_TRACES is read by nothing"]),
        ("make instal", ["no make instal"]),
        ("cc examples/ccl_plugins.c", ["no examples/ccl_plugins.c"]),
        ("scripts/soak 1 --jobs 2", []),
        ("scripts/soak 1 --workers 2", ["scripts/soak: no option --workers"]),
    ],
)
def test_what_does_not_exist_is_seen(line: str, wrong: list[str], checkout: None) -> None:
    found = wrong_words(line)
    assert len(found) == len(wrong), found
    assert all(one in told for one, told in zip(wrong, found, strict=True)), found


def test_options_of_applications_are_known() -> None:
    assert wrong_words("accord bench --app fft3d -n 2 --size 8x8x8 --peer host") == []
    assert wrong_words("accord bench --app fft3d --max 8") == ["accord bench: no option --max"]
    assert wrong_words("accord bench allreduce --size 8") == ["accord bench: no option --size"]
