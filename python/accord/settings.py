# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The settings as `accord info` shows them and as the documents list them, by whom they are for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

Row = dict[str, Any]


class Audience(str, Enum):
    """Whom a setting is for, as the library says (src/base/config.def)."""

    USER = "user"
    THRESHOLD = "threshold"
    EXPERT = "expert"
    TEST = "test"


TITLES = {
    Audience.USER: "For users",
    Audience.THRESHOLD: "Thresholds of the built-in rule",
    Audience.EXPERT: "For experts",
    Audience.TEST: "For tests",
}


class Page(str, Enum):
    """A page of the documents, made by `accord info --settings-markdown`."""

    USERS = "users"
    EXPERTS = "experts"


FILES = {Page.USERS: "settings.md", Page.EXPERTS: "settings-expert.md"}
_AUDIENCES = {
    Page.USERS: (Audience.USER, Audience.THRESHOLD),
    Page.EXPERTS: (Audience.EXPERT, Audience.TEST),
}

_HEADS = {
    Page.USERS: """\
# Settings

Accord reads these environment variables once, when the program starts. Most programs need none of them.
`accord info` shows those that differ from their default, `accord info --all` shows all. Other settings have
a page of their own: [settings-expert.md](settings-expert.md).
""",
    Page.EXPERTS: """\
# Settings for experts

These environment variables bound memory, name libraries and adapters, choose details of messages, or serve
tests. Few people need them. The settings for users stand in [settings.md](settings.md).
""",
}

_SCOPES = """\
Scope `local`: ranks may differ. Scope `equal`: the value must be the same on all ranks; MPI_Init checks it.
"""

_NOTES = {
    Audience.THRESHOLD: """\
These are the built-in rule: the sizes from which, or up to which, a call takes an algorithm
([algorithms.md](algorithms.md)). Do not tune them by hand: measure with `accord tune`. Its table replaces
the rule for the collectives, numbers of ranks and sizes that it has measured ([tuning.md](tuning.md)). Four
of them say how an algorithm works, and hold beside a table, too: `ACCORD_PACKED_PAIR_BYTES`,
`ACCORD_BUNDLED_PAIR_BYTES`, `ACCORD_INBOX_CALLS` and `ACCORD_ENGINE_BYTES`.
""",
}


def audience_of(row: Row) -> Audience:
    """Of a library that does not say it: a user's, which is always shown."""
    try:
        return Audience(row.get("audience", Audience.USER))
    except ValueError:
        return Audience.EXPERT


def is_changed(row: Row) -> bool:
    return bool(row.get("value") != row.get("default"))


def sections_of(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Tables for people, by audience."""
    for audience, title in TITLES.items():
        yield f"Settings: {title[0].lower()}{title[1:]}", _of(rows, audience)


def shown_value(row: Row) -> str:
    value = str(row.get("value", ""))
    return f"{value} (default {row.get('default')})" if is_changed(row) else value


def shown_text(row: Row) -> str:
    """Lines break between the words that a choice allows."""
    return str(row.get("text", "")).replace("|", " | ")


def _of(rows: list[Row], audience: Audience) -> list[Row]:
    return [row for row in rows if audience_of(row) is audience]


def markdown(rows: list[Row], page: Page) -> str:
    """The page of the documents, from what the library says."""
    made = (
        f"Made by `accord info --settings-markdown {page.value}` from `src/base/config.def`; "
        "do not edit.\n"
    )
    parts = [_HEADS[page], made, _SCOPES]
    for audience in _AUDIENCES[page]:
        chosen = _of(rows, audience)
        if chosen:
            note = [_NOTES[audience]] if audience in _NOTES else []
            parts += [f"## {TITLES[audience]}\n", *note, _table(chosen)]
    renamed = [
        f"| `{old}` | `{row['name']}` |\n" for row in rows for old in row.get("old_names", [])
    ]
    if page is Page.USERS and renamed:
        told = "These are still read, with a warning that says the new name.\n"
        parts += ["## Old names\n", told, "| old | new |\n| --- | --- |\n" + "".join(renamed)]
    return "\n".join(parts)


def _table(rows: list[Row]) -> str:
    lines = ["| name | type | default | scope | meaning |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        name, default = f"`{_cell(row, 'name')}`", f"`{_cell(row, 'default')}`"
        meaning = _with_links(_cell(row, "text"))
        lines.append(
            f"| {name} | {_cell(row, 'type')} | {default} | {_cell(row, 'scope')} | {meaning} |"
        )
    return "\n".join(lines) + "\n"


def _cell(row: Row, column: str) -> str:
    return str(row.get(column, "")).replace("|", r"\|")


def _with_links(text: str) -> str:
    """docs/tuning.md becomes a link from beside it."""
    return re.sub(r"\bdocs/(([\w-]+\.md)(#[\w-]+)?)", r"[\2](\1)", text)
