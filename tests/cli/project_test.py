# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The papers of the project: they name what there is, and the version."""

from __future__ import annotations

import re

import accord

from conftest import REPOSITORY


def test_readme_and_map_are_short() -> None:
    for name, words_max in (("README.md", 900), ("ARCHITECTURE.md", 2000)):
        text = (REPOSITORY / name).read_text()
        assert len(text.split()) <= words_max, name


def test_the_citation_is_of_this_version() -> None:
    told = (REPOSITORY / "CITATION.cff").read_text()
    assert re.search(r"^version: (\S+)$", told, re.MULTILINE)[1] == accord.__version__  # type: ignore[index]
    assert re.search(r"^license: (\S+)$", told, re.MULTILINE)[1] == "Apache-2.0"  # type: ignore[index]


def test_the_notices_name_all_that_is_used() -> None:
    """What the setup gets, what the command depends on, and the libraries that are loaded."""
    notices = (REPOSITORY / "THIRD_PARTY.md").read_text()
    setup = (REPOSITORY / "scripts" / "setup").read_text()
    packages = " ".join(re.findall(r"_packages=\(([^)]*)\)", setup))
    used = {re.split("[=<>]", word.strip("'"))[0] for word in packages.split()}
    for words in re.findall(r"^make_environment \w+ (.*) ?", setup, re.MULTILINE):
        used |= set(re.findall(r"(?<![\w$(/.-])[a-z]\w+(?=[ '>])", words))
    project = (REPOSITORY / "pyproject.toml").read_text()
    for words in re.findall(r"^(?:requires|dependencies|\w+) = \[(.*)\]$", project, re.MULTILINE):
        used |= set(re.findall(r'"([a-z]\w+)(?=[">=])', words)) - {
            "accord",
            "binaries",
            "conftest",
            "version",
        }
    plugins = (REPOSITORY / "src" / "ccl" / "plugins.def").read_text()
    used |= set(re.findall(r"^PLUGIN\((\w+)", plugins, re.MULTILINE))
    missing = [name for name in sorted(used) if not re.search(rf"\b{name}\b", notices)]
    assert len(used) > 25 and missing == []


def test_issue_templates_lead_to_the_report() -> None:
    folder = REPOSITORY / ".github" / "ISSUE_TEMPLATE"
    for name in ("wrong", "slow", "wish"):
        text = (folder / f"{name}.md").read_text()
        assert re.match(r"---\nname: .+\nabout: .+\nlabels: \w+\n---\n", text)
        assert "accord doctor --report" in text or name == "wish"
