# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Asks libaccord.so which algorithms it has, and which of them it chooses for a call.

In a process of its own, as accord.library does, which also reads the settings anew:
`python -m accord.algorithms PATH` takes a list of questions as JSON on stdin.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from accord.errors import UserError
from accord.paths import importing_environment


# What tables and settings call messages from one rank to another, of its node and of another one, and
# what the benchmark does.
SEND = "send"
NET_SEND = "net_send"
MESSAGES = (SEND, NET_SEND)
SEND_RANKS = 2
MEASURED_AS = "measured_as"  # a record's operation, where tables have one name for several
NET_PATHS = "net-"  # how what accord_last_path says of a design begins
_LATENCY = "latency"
# What is measured of messages: one at a time, and between nodes windows of many both ways, too, by which
# designs differ otherwise than by latency.
_OPERATIONS = {SEND: (_LATENCY,), NET_SEND: (_LATENCY, "bibandwidth")}


def operations_of(collective: str) -> tuple[str, ...]:
    """What the benchmark calls what it measures for such calls; what counts is their mean."""
    return _OPERATIONS.get(collective, (collective,))


def asked_as(collective: str, algorithm: str) -> str:
    """What a communicator's info, and so the benchmark, calls an algorithm of such calls."""
    return f"{collective}:{algorithm}" if collective in MESSAGES else algorithm


def messages_of(records: Iterable[Any]) -> str:
    """Whether the messages of one run of the benchmark went within a node or between nodes."""
    asked = (str(one.get("algorithm", "")) for one in records if isinstance(one, dict))
    return NET_SEND if any(name.startswith(f"{NET_SEND}:") for name in asked) else SEND


def as_table_names(record: dict[str, Any], messages: str) -> dict[str, Any]:
    """A record of the benchmark in the words of tables; `messages`: as messages_of says of its run."""
    operation = record.get("operation")
    if operation not in _OPERATIONS[messages]:
        return record
    renamed = {**record, "operation": messages, MEASURED_AS: operation}
    if "algorithm" in record:
        renamed["algorithm"] = str(record["algorithm"]).removeprefix(f"{messages}:")
    return renamed


@dataclass(frozen=True)
class Question:
    """A collective, or "send", that the library shall choose an algorithm for; see accord_explain_json."""

    collective: str
    ranks: int
    size_bytes: int
    info: str | None = None


@dataclass(frozen=True)
class Algorithms:
    """What accord_algorithms_json names."""

    collective_paths: dict[str, str]  # by algorithm: what accord_last_path says of such a call
    message_paths: dict[str, str]  # the same of messages within a node
    net_message_paths: dict[str, str]  # and of those between nodes
    collectives: list[str]
    # Of each algorithm of collectives, the first choice first.
    descriptions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """All that a table may have a row for."""
        return [*self.collectives, *MESSAGES]

    @property
    def paths(self) -> dict[str, str]:
        """Of all; what has one name is told as one path."""
        return self.net_message_paths | self.message_paths | self.collective_paths

    def of(self, collective: str) -> dict[str, str]:
        of_messages = {SEND: self.message_paths, NET_SEND: self.net_message_paths}
        return of_messages.get(collective, self.collective_paths)


def read_algorithms(library: Path) -> Algorithms:
    answer = _ask(library, None, {})
    collectives, messages, net_messages = (
        {str(row["name"]): str(row["path"]) for row in answer[kind]}
        for kind in ("algorithms", "message_ways", "net_message_ways")
    )
    names = [str(name) for name in answer["collectives"]]
    return Algorithms(collectives, messages, net_messages, names, answer.get("descriptions", []))


def explain(
    library: Path, questions: list[Question], settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One answer a question, as accord_explain_json gives it with these ACCORD_ settings."""
    answers: list[dict[str, Any]] = _ask(library, [asdict(one) for one in questions], settings)
    for answer in answers:
        if "error" in answer:
            raise UserError(str(answer["error"]))
    return answers


def _ask(library: Path, request: object, settings: Mapping[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, Path(__file__), library],
        input=json.dumps(request),
        env={**importing_environment(), **settings},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise UserError(f"{library} does not say which algorithms it has: {reason}") from error


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


def _answer(library: ctypes.CDLL, questions: list[dict[str, Any]]) -> list[Any]:
    arguments = [ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p]
    function = _function(library, "accord_explain_json", arguments)
    answers = []
    for asked in questions:
        info = asked["info"].encode() if asked["info"] is not None else None
        words = (asked["collective"].encode(), asked["ranks"], asked["size_bytes"], info)
        answers.append(json.loads(_text_of(partial(function, *words))))
    return answers


def _main(path: str) -> None:
    library = ctypes.CDLL(path)
    questions = json.load(sys.stdin)
    if questions is None:
        print(_text_of(_function(library, "accord_algorithms_json", [])))
    else:
        print(json.dumps(_answer(library, questions)))


if __name__ == "__main__":
    try:
        _main(sys.argv[1])
    except (OSError, AttributeError) as failure:
        sys.exit(str(failure))
