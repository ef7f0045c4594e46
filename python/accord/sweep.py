# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Measures points of a grid with the benchmark and keeps what is done in a file. Called by `accord tune`."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord.algorithms import MEASURED_AS, NET_SEND, SEND, as_table_names, asked_as, operations_of
from accord.benchmark import Target, bench_command, environment_for
from accord.ending import ended
from accord.errors import UserError
from accord.paths import Home
from accord.tables import OFF, VARIABLE
from accord.verdict import RULE, Key

# A way that takes so many times as long as the fastest is not measured further: it cannot win.
_GIVE_UP = 4
# The longest that one point may take, set-up of the communicators included.
_STALL_S = 300.0
_POLL_S = 0.1

Record = dict[str, Any]


@dataclass(frozen=True)
class Planned:
    """A point to measure: the rule's algorithm, and these beside it."""

    key: Key
    algorithms: tuple[str, ...]
    across_nodes: bool = False


class OutOfTimeError(Exception):
    """Not all points could be measured in the time there was."""


class State:
    """What has been measured so far, one JSON object a line behind a header; survives an interruption."""

    def __init__(self, path: Path, header: Record, fresh: bool) -> None:
        self.path, self._header = path, header
        self.records: list[Record] = []
        if not fresh and path.exists():
            self._read()
        self._write()

    def _read(self) -> None:
        lines = []
        for line in self.path.read_text().splitlines():
            with suppress(ValueError):  # the last one may be cut off
                lines.append(json.loads(line))
        if not lines or lines[0] != self._header:
            raise UserError(
                f"{self.path} is of another machine or other settings; --fresh begins anew"
            )
        self.records = lines[1:]

    def _write(self) -> None:
        """All of it, in one step: no record that follows is glued to a line that was cut off."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text("".join(json.dumps(line) + "\n" for line in (self._header, *self.records)))
        draft.replace(self.path)

    def end(self, keys: set[Key]) -> None:
        """The tuning of these points is done. Records of other points stay for the one that made them."""
        if {key_of(record) for record in self.records} <= keys:
            self.path.unlink()

    def add(self, records: list[Record]) -> None:
        with self.path.open("a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))
        self.records += records

    def lacks(self, planned: Planned) -> bool:
        key, names = planned.key, {RULE, *planned.algorithms}
        wanted = {
            (name, operation) for name in names for operation in operations_of(key.collective)
        }
        done = {
            (record.get("algorithm"), record.get(MEASURED_AS, key.collective))
            for record in self.records
            if key_of(record) == key
        }
        return not wanted <= done


def key_of(record: Record) -> Key:
    return Key(str(record["operation"]), int(record["ranks"]), int(record["size_bytes"]))


def measure(
    home: Home,
    target: Target,
    planned: list[Planned],
    seconds: float,
    deadline_s: float,
    finished: Callable[[list[Record]], None],
) -> None:
    """Measures points of one number of ranks; `finished` gets the records of each as soon as it is done.

    OutOfTimeError at the deadline, on the clock of time.monotonic.
    """
    ranks = planned[0].key.ranks
    with tempfile.TemporaryDirectory(prefix="accord-tune-") as folder:
        plan, file, log = (Path(folder) / name for name in ("plan", "records", "output"))
        plan.write_text("".join(_line_of(point) for point in planned))
        words = ["--plan", str(plan), "--json", str(file), "--memory", "device"]
        words += ["--seconds", f"{seconds:g}", "--give-up", str(_GIVE_UP), "--progress", "off"]
        # What is measured is the rule and what is beside it, whatever is set for programs.
        environment = environment_for(target, ranks)
        environment |= {VARIABLE: OFF, "ACCORD_ALGORITHM": RULE}
        if planned[0].across_nodes or _messages_of(planned) == NET_SEND:
            environment["ACCORD_NET_DESIGN"] = RULE
        with bench_command(home, target, ranks, words) as command, log.open("w") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            with ended(process):
                wrong = _follow(process, file, planned, deadline_s, finished)
        # 1 is for wrong results, which the records name; but launchers end so, too.
        if process.returncode not in ((0, 1) if wrong else (0,)):
            raise UserError(
                f"the benchmark ended with status {process.returncode}: {_telling_line(log)}; what was "
                "measured is kept, the same command goes on"
            )


def _messages_of(planned: list[Planned]) -> str:
    return NET_SEND if any(point.key.collective == NET_SEND for point in planned) else SEND


def _line_of(point: Planned) -> str:
    collective, size_bytes = point.key.collective, point.key.size_bytes
    names = [asked_as(collective, algorithm) for algorithm in point.algorithms]
    return "".join(
        " ".join([operation, str(size_bytes), *names]) + "\n"
        for operation in operations_of(collective)
    )


def _follow(
    process: subprocess.Popen[bytes],
    file: Path,
    planned: list[Planned],
    deadline_s: float,
    finished: Callable[[list[Record]], None],
) -> bool:
    """Until the process has ended. Whether a record has told of a wrong result."""
    expected = {
        point.key: len(operations_of(point.key.collective)) * (1 + len(point.algorithms))
        for point in planned
    }
    written = _Tail(file, _messages_of(planned))
    together: list[Record] = []
    wrong = False
    last_s = time.monotonic()
    while True:
        running = process.poll() is None
        for record in written.new_records():
            if together and key_of(together[0]) != key_of(record):
                together = []
            together.append(record)
            wrong |= record.get("correct") is False
            if len(together) == expected.get(key_of(record)):
                finished(together)
                together, last_s = [], time.monotonic()
        if not running:
            return wrong
        if time.monotonic() > deadline_s:
            raise OutOfTimeError
        if time.monotonic() - last_s > _STALL_S:
            raise UserError(f"the benchmark has measured nothing for {_STALL_S:.0f} s")
        time.sleep(_POLL_S)


class _Tail:
    """A file that grows by whole lines, now and then caught in the middle of one."""

    def __init__(self, file: Path, messages: str) -> None:
        self._file, self._messages = file, messages
        self._read_bytes = 0

    def new_records(self) -> Iterator[Record]:
        if not self._file.exists():
            return
        with self._file.open("rb") as stream:
            stream.seek(self._read_bytes)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._read_bytes += len(line)
                yield as_table_names(json.loads(line), self._messages)


def _telling_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    lines = [line for line in lines if line.strip(" -=\t") and not line.startswith("#")]
    telling = [line for line in lines if "accord" in line.lower() or "error" in line.lower()]
    return (telling or lines or ["it said nothing"])[0]
