# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Asks libaccord.so about itself.

In a process of its own: the library and the drivers it opens are C++, and a tool that explains what is
broken must survive when they are. `python -m accord.library PATH` is that process; with `explain` behind
the path it answers the questions on stdin, a JSON list.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from accord.errors import UserError


@dataclass(frozen=True)
class Question:
    """A collective that the library shall choose an algorithm for; see accord_explain_json."""

    collective: str
    ranks: int
    size_bytes: int
    info: str | None = None


def read_info(library: Path) -> dict[str, Any]:
    """What the library says of itself. UserError when it cannot be loaded or crashes."""
    answer = _ask(library, [], "", {})
    if not isinstance(answer, dict):
        raise UserError(f"{library} gave settings that are no JSON object")
    return answer


def explain(
    library: Path, questions: list[Question], settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One answer a question, as accord_explain_json gives it with these ACCORD_ settings."""
    text = json.dumps([asdict(question) for question in questions])
    answers = _ask(library, ["explain"], text, settings)
    for answer in answers:
        if "error" in answer:
            raise UserError(str(answer["error"]))
    return list(answers)


def _ask(library: Path, words: list[str], text: str, settings: Mapping[str, str]) -> Any:
    try:
        done = subprocess.run(
            [sys.executable, Path(__file__), library, *words],
            input=text,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{library} does not answer") from error
    if done.returncode < 0:
        raise UserError(
            f"{library} crashed (signal {-done.returncode}) when asked for its settings"
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UserError(f"cannot load {library}: {reason}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise UserError(f"{library} gave settings that are no JSON") from error


def _text_of(call: Callable[[Any, int], int]) -> str:
    """What a function of the library writes into a buffer once it has said how long that is."""
    size_bytes = call(None, 0)
    buffer = ctypes.create_string_buffer(size_bytes)
    call(buffer, size_bytes)
    return buffer.value.decode(errors="replace")


def _function(library: ctypes.CDLL, name: str, arguments: list[Any]) -> Any:
    function = getattr(library, name)
    function.restype = ctypes.c_size_t
    function.argtypes = [*arguments, ctypes.c_char_p, ctypes.c_size_t]
    return function


def _tell(library: ctypes.CDLL) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(_text_of(_function(library, "accord_info_json", [])))
    # A library of before these had names has none to tell.
    if hasattr(library, "accord_algorithms_json"):
        told |= json.loads(_text_of(_function(library, "accord_algorithms_json", [])))
    return told


def _answer(library: ctypes.CDLL, questions: list[dict[str, Any]]) -> list[Any]:
    function = _function(
        library,
        "accord_explain_json",
        [ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p],
    )
    answers = []
    for asked in questions:
        info = asked["info"].encode() if asked["info"] is not None else None
        words = (asked["collective"].encode(), asked["ranks"], asked["size_bytes"], info)
        answers.append(json.loads(_text_of(partial(function, *words))))
    return answers


def _main(path: str, words: list[str]) -> None:
    library = ctypes.CDLL(path)
    answer = _answer(library, json.load(sys.stdin)) if words else _tell(library)
    print(json.dumps(answer))


if __name__ == "__main__":
    try:
        _main(sys.argv[1], sys.argv[2:])
    except ValueError:
        pass  # no JSON: the caller sees that there is none
    except (OSError, AttributeError) as failure:
        sys.exit(str(failure))
