# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord report`: from the records in bench/results and from records made here, good and broken."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from accord import report as report_verb
from accord.errors import UserError
from accord.reporting import theme
from accord.reporting.comparison import Verdict, best, comparisons
from accord.reporting.records import read_sections
from accord.sizes import size_text

from conftest import PYTHON, RESULTS, Accord


def record(
    operation: str, size_bytes: int, way: str, median_us: float, **more: Any
) -> dict[str, Any]:
    bandwidth = size_bytes / median_us / 1e3
    return {
        "operation": operation,
        "size_bytes": size_bytes,
        "way": way,
        "ours": way == "accord",
        "median_us": median_us,
        "p5_us": median_us * 0.9,
        "p95_us": median_us * 1.3,
        "bandwidth_gb_s": bandwidth,
        "bus_bandwidth_gb_s": bandwidth,
        "correct": True,
        "ranks": 2,
        "type": "float32",
        "op": "sum",
        "form": "blocking",
        "send_memory": "device",
        "recv_memory": "device",
        "machine": {"host": "node", "cpu": "a processor", "cores": 4, "local_ranks": 2},
        "mpi_library": "MPICH Version:      5.0.2\nMore of it",
        "accord": {"version": "0.1.0", "intercepts": True},
        "date": "2026-01-02T03:04:05Z",
        "command": "accord bench allreduce",
        **more,
    }


def ours(
    size_bytes: int, median_us: float = 10, path: str = "inbox", **more: Any
) -> dict[str, Any]:
    return record("allreduce", size_bytes, "accord", median_us, path=path, **more)


def peer(
    size_bytes: int, ratio: float, way: str = "nccl", error: float | None = 0.01, **more: Any
) -> dict[str, Any]:
    paired = {"value": ratio, "error": error}
    return record("allreduce", size_bytes, way, 10 * ratio, **{"ratio": paired, **more})


def write(file: Path, *records: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return file


class Page(HTMLParser):
    """The page's tags, in order, and the text of its cells and headings by tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attributes}))
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag in dict.fromkeys(self._open):
            self.texts[tag][-1] += data

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def ratios(self) -> set[tuple[str, str]]:
        """What each cell of the map is about, with what it shows."""
        cells = zip((each for each in self.tags if each[0] == "td"), self.texts["td"], strict=True)
        return {
            (attributes["title"].split(":")[0], text)
            for (_, attributes), text in cells
            if "title" in attributes
        }


def make_page(accord: Accord, folder: Path, *words: object) -> tuple[str, Page]:
    done = accord("report", *words, "-o", folder / "page.html")
    assert done.returncode == 0, done.stderr
    text = (folder / "page.html").read_text()
    return text, Page(text)


@pytest.mark.parametrize("position", range(len(RESULTS)), ids=[file.stem for file in RESULTS])
def test_the_page_shows_every_collective_and_ratio(position: int, results_page: Path) -> None:
    records = [json.loads(line) for line in RESULTS[position].read_text().splitlines()]
    page = Page(results_page.read_text().split("<section ")[position + 1])
    ratios: dict[str, float] = {}
    for each in records:
        if not each["ours"]:
            point = f"{each['operation']} {size_text(each['size_bytes'])}"
            ratios[point] = min(each["ratio"]["value"], ratios.get(point, 1e9))
    assert page.ratios() == {(point, f"{ratio:.2f}") for point, ratio in ratios.items()}
    operations = {each["operation"] for each in records}
    assert operations <= set(page.texts["h3"])
    labels = page.attributes("aria-label")
    for operation in operations:
        drawn = [label for label in labels if label.startswith(f"{operation} on ")]
        assert [label.split(": ")[1].split()[0] for label in drawn] == ["time", "bandwidth"]
    facts = " ".join(page.texts["dd"])
    assert records[0]["machine"]["device"] in facts
    assert " ".join(records[0]["mpi_library"].replace(":", " ").split()) in facts
    assert {each["command"] for each in records} == set(page.texts["pre"])
    commits = {each["accord"].get("commit") or each["accord"]["recorded_in"] for each in records}
    assert all(commit in facts for commit in commits)
    assert {each["path"] for each in records if "path" in each} <= set(page.texts["td"])


def test_the_page_is_complete_in_itself(results_page: Path) -> None:
    text = results_page.read_text()
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    targets = page.attributes("href") + page.attributes("xlink:href")
    targets += [f"#{name}" for name in re.findall(r"url\(#([^)]*)\)", text)]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        attributes for tag, attributes in page.tags if tag == "meta"
    ]
    names = page.attributes("id")
    assert len(names) == len(set(names))
    assert {target[0] for target in targets} == {"#"}
    assert {target[1:] for target in targets} <= set(names)


def test_several_machines_stand_under_titles_of_their_own(results_page: Path) -> None:
    page = Page(results_page.read_text())
    assert page.texts["h2"] == [
        "2 x H200 · 2 ranks · 580.159.04 · 0.1.0, commit 411c4b82d326 · 2xh200-node.jsonl",
        "2 x H200 · 2 ranks · 0.1.0 · 2xh200-staged.jsonl",
        "4 x H200 · 4 ranks",
    ]
    assert set(page.texts["h2"]) <= set(page.texts["a"])


@pytest.mark.usefixtures("libraries")
def test_sections_of_one_file_are_told_apart(accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8), ours(8, form="persistent"))
    _, page = make_page(accord, tmp_path, file)
    assert page.texts["h2"] == ["node · 2 ranks · blocking", "node · 2 ranks · persistent"]


def test_calls_under_other_settings_are_a_section_of_their_own(tmp_path: Path) -> None:
    settings = {"ACCORD_REGION_BYTES": "64K", "ACCORD_NODE_BYTES": "1"}
    records = [ours(8), ours(8, settings={}), ours(8, settings=settings)]
    default, other = read_sections(write(tmp_path / "r.jsonl", *records))
    assert "settings" not in default.facts and default.repeated == 1
    assert other.facts["settings"] == "ACCORD_NODE_BYTES=1 ACCORD_REGION_BYTES=64K"


@pytest.mark.usefixtures("libraries")
def test_without_peers(accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8), ours(64))
    text, page = make_page(accord, tmp_path, file)
    assert "No ratios: no peer was measured" in text
    assert page.ratios() == set()
    done = accord("report", file, "--png", "plots")
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["r-allreduce.png"]
    assert "no peer" in done.stderr


@pytest.mark.usefixtures("libraries")
def test_missing_sizes_and_figures_leave_gaps(accord: Accord, tmp_path: Path) -> None:
    lacking = {"p5_us": None, "p95_us": None, "bus_bandwidth_gb_s": None}
    records = [
        ours(8),
        ours(32, path="node"),
        ours(128, **lacking),
        peer(8, 2.5),
        peer(512, 3.0),
        peer(128, 0.5, way="staged", error=None),
        record("bcast", 32, "accord", 4, path="node"),
        {**ours(8), "way": "nvshmem", "ours": False, "not_available": "no <library>"},
    ]
    text, page = make_page(accord, tmp_path, write(tmp_path / "r.jsonl", *records))
    assert page.ratios() == {("allreduce 8", "2.50"), ("allreduce 128", "0.50")}
    assert "bcast" in page.texts["h3"]
    assert "not measured everywhere: no <library>" in page.texts["dd"]
    assert "<library>" not in text


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    "records",
    [
        [ours(8, correct=False)],
        [peer(8, 2)],
        [ours(8, bus_bandwidth_gb_s=0, p5_us=10, p95_us=10)],
        [ours(1), ours(2), ours(3, 1e9)],
        [{name: ours(8)[name] for name in ("operation", "size_bytes", "way", "ours", "median_us")}],
    ],
    ids="wrong alone one-rank tiny bare".split(),
)
def test_little_to_draw(records: list[dict[str, Any]], accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", *records)
    text, page = make_page(accord, tmp_path, file, "--svg", "all.svg")
    assert page.texts["h3"][0] == "allreduce" and page.ratios() == set()
    assert (tmp_path / "all.svg").exists()
    assert "nan" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL).lower()


@pytest.mark.usefixtures("libraries")
def test_what_records_say_is_shown_as_text(accord: Accord, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    records = [
        ours(8, machine={"host": name}, path=name),
        peer(8, 2, machine={"host": name}, way=name),
    ]
    _, page = make_page(accord, tmp_path, write(tmp_path / "r.jsonl", *records), "--title", name)
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.texts["h1"] == page.texts["title"][:1] == [name]
    assert name in page.texts["td"]


@pytest.mark.usefixtures("libraries")
def test_wrong_results_are_named_and_not_compared(accord: Accord, tmp_path: Path) -> None:
    records = [
        ours(8),
        peer(8, 0.5, correct=False),
        peer(8, 2.0, way="staged"),
        ours(32, correct=False),
        peer(32, 2.0),
    ]
    text, page = make_page(accord, tmp_path, write(tmp_path / "r.jsonl", *records))
    assert page.ratios() == {("allreduce 8", "2.00")}
    assert "accord allreduce 32, nccl allreduce 8" in text
    struck = [attributes for _, attributes in page.tags if "wrong" in attributes.get("class", "")]
    assert len(struck) == 2


@pytest.mark.usefixtures("libraries")
def test_our_line_takes_the_colour_of_the_path(tmp_path: Path) -> None:
    from accord.reporting.figures import panel

    paths = ["inbox", "inbox", "node", "inbox", "new-way"]
    records = [ours(8 << at, 10 + at, path) for at, path in enumerate(paths)]
    records.append(ours(8 << 9, path="node", correct=False))
    (section,) = read_sections(write(tmp_path / "r.jsonl", *records, peer(8, 2)))
    axes = panel(section, section.operations["allreduce"], "time").axes[0]
    nccl, *lines = axes.lines
    slots = theme.path_slots(section.paths)
    stretches = [path for path, _ in itertools.groupby(paths)]
    assert [line.get_color() for line in lines] == [
        theme.light(f"path-{slots[path]}") for path in stretches
    ]
    # Each stretch leads to the first point of the next, and marks only its own points.
    assert [list(line.get_xdata()) for line in lines] == [[8, 16, 32], [32, 64], [64, 128], [128]]
    assert [len(line.get_markevery()) for line in lines] == [2, 1, 1, 1]
    assert nccl.get_color() == theme.light("peer-0")
    band = axes.collections[1].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == pytest.approx((9.0, 12 * 1.3))


@pytest.mark.usefixtures("libraries")
def test_images(accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8), peer(8, 2), ours(64), peer(64, 0.5))
    words = ("report", file, "-o", "new/folder", "--svg", "plots/all.svg", "--png", "plots")
    first, second = accord(*words), (tmp_path / "plots/all.svg").read_text()
    assert first.returncode == 0, first.stderr
    assert first.stdout.split() == [
        "new/folder/report.html",
        "plots/all.svg",
        "plots/r-allreduce.png",
        "plots/r-ratios.png",
    ]
    assert "2 points against the best peer: 1 ahead, 0 level, 1 behind" in first.stderr
    for name in ("allreduce: time", "allreduce: bus bandwidth", "accord: inbox", ">nccl<"):
        assert name in second
    for name in first.stdout.split()[2:]:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    page = (tmp_path / "new/folder/report.html").read_bytes()
    accord(*words)
    assert (tmp_path / "plots/all.svg").read_text() == second, "the same figures, another file"
    assert (tmp_path / "new/folder/report.html").read_bytes() == page


@pytest.mark.usefixtures("libraries")
def test_an_ending_counts_in_either_case(accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8))
    assert accord("report", file, "--svg", "PLOT.SVG", "--png", "PLOT.PNG").returncode == 0
    assert "<svg" in (tmp_path / "PLOT.SVG").read_text()
    assert (tmp_path / "PLOT.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("libraries")
def test_places_that_cannot_be_written_are_explained(accord: Accord, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8))
    other = write(tmp_path / "other.jsonl", ours(8, ranks=4))
    for words, message in (
        (("-o", file / "page"), "cannot make the folder"),
        (("-o", tmp_path, "--png", file), "cannot make the folder"),
        ((other, "--svg", "one.svg"), "one.svg can hold one machine"),
    ):
        done = accord("report", file, *words)
        assert done.returncode == 2
        assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        (ours(8) | {"operation": 3}, "operation is 3 instead of text"),
        (ours(8) | {"size_bytes": "8"}, 'size_bytes is "8" instead of a positive integer'),
        (ours(8) | {"size_bytes": 0}, "size_bytes is 0 instead of a positive integer"),
        (ours(8) | {"ours": 1}, "ours is 1 instead of true or false"),
        (ours(8) | {"median_us": -1}, "median_us is -1 instead of a positive number"),
        (ours(8) | {"median_us": float("nan")}, "median_us is NaN instead of a number"),
        (ours(8) | {"p95_us": "1"}, 'p95_us is "1" instead of a number'),
        (ours(8) | {"machine": "node"}, 'machine is "node" instead of an object'),
        (peer(8, 2) | {"ratio": {"error": 0.1}}, "value is missing instead of a positive number"),
        ({"name": "of another program"}, "operation is missing instead of text"),
    ],
)
def test_malformed_lines_are_named(line: Any, message: str, tmp_path: Path) -> None:
    text = line if isinstance(line, str) else json.dumps(line)
    file = tmp_path / "r.jsonl"
    file.write_text(f"{json.dumps(ours(8))}\n\n{text}\n")
    with pytest.raises(UserError, match=re.escape(f"{file}, line 3: {message}")):
        read_sections(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*: No such file"),
        (b"", "holds no measurements"),
        (b"\xff\xfe", "no UTF-8 text"),
        (json.dumps({**ours(8), "not_available": "no GPU"}).encode(), "holds no measurements"),
    ],
)
def test_files_without_records_are_named(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "r.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_sections(file)


@pytest.mark.usefixtures("libraries")
def test_a_malformed_file_is_told_without_a_trace(accord: Accord, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("{}\n")
    done = accord("report", file)
    assert done.returncode == 2
    assert done.stderr.startswith(f"accord: {file}, line 1: operation is missing")


def test_of_a_point_measured_twice_the_last_counts(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8, 10), ours(8, 5), peer(8, 2))
    (section,) = read_sections(file)
    assert section.operations["allreduce"].ours[8].median_us == 5
    assert section.repeated == 1


def test_ratios_without_pairs_are_taken_within_one_run_only(tmp_path: Path) -> None:
    def unpaired(size_bytes: int, **more: Any) -> dict[str, Any]:
        return record("allreduce", size_bytes, "nccl", 30, **more)

    file = write(tmp_path / "r.jsonl", ours(8), unpaired(8), ours(32), unpaired(32, date="later"))
    (section,) = read_sections(file)
    (only,) = comparisons(section)
    assert (only.size_bytes, only.ratio) == (8, 3.0)


def test_a_ratio_is_of_what_ran_side_by_side(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", ours(8), peer(8, 2), ours(8, 5, date="later"))
    (section,) = read_sections(file)
    assert section.operations["allreduce"].ours[8].median_us == 5
    assert not comparisons(section), "the peer was measured beside other calls of ours"


def test_ways_of_ours_that_were_asked_for_are_no_peers(tmp_path: Path) -> None:
    named = peer(8, 0.5, way="staged", algorithm="staged", path="staged")
    records = [ours(8, algorithm="auto"), named, peer(8, 3, way="staged")]
    (section,) = read_sections(write(tmp_path / "r.jsonl", *records))
    assert section.peers == ["staged (asked for)", "staged"] and not section.repeated
    (only,) = comparisons(section)
    assert (only.peer, only.ratio) == ("staged", 3.0)


@pytest.mark.parametrize(
    ("ratio", "error", "verdict"),
    [
        (1.05, 0.03, Verdict.LEVEL),
        (1.05, 0.02, Verdict.AHEAD),
        (0.95, 0.02, Verdict.BEHIND),
        (0.98, None, Verdict.LEVEL),
        (1.04, None, Verdict.AHEAD),
    ],
)
def test_noise_takes_no_side(
    ratio: float, error: float | None, verdict: Verdict, tmp_path: Path
) -> None:
    (section,) = read_sections(write(tmp_path / "r.jsonl", ours(8), peer(8, ratio, error=error)))
    found = best(section.operations["allreduce"], 8)
    assert found is not None and found.verdict is verdict


def test_colours_can_be_told_apart_and_read() -> None:
    lights = [light for light, _ in theme.COLOURS.values()]
    assert len(lights) == len(set(lights)), "a drawn colour would stand for two variables"
    for at in (0, 1):
        surface = theme.COLOURS["surface"][at]
        for name, pair in theme.COLOURS.items():
            wanted = {"ink": 7, "muted": 4.5, "surface": 0, "grid": 0}.get(name, 3)
            assert theme.contrast(pair[at], surface) >= wanted, name
    for stops in (theme.RATIO_STOPS_LIGHT, theme.RATIO_STOPS_DARK):
        assert theme.ratio_colour(1, stops) == stops[1]
        assert (
            theme.ratio_colour(99, stops) == stops[2]
            and theme.ratio_colour(0.01, stops) == stops[0]
        )
        for step in range(-40, 41):
            colour = theme.ratio_colour(4 ** (step / 40), stops)
            assert theme.contrast(colour, theme.text_colour(colour)) >= 4.5


def test_paths_keep_their_colours() -> None:
    slots = theme.path_slots(["x", "node", "inbox", "y"])
    assert (slots["inbox"], slots["node"]) == (0, 2)
    assert len(set(slots.values())) == 4


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report_verb, "_NEEDED", {"no_such_module": "matplotlib"})
    with pytest.raises(UserError, match="pip install matplotlib"):
        report_verb.report([write(tmp_path / "r.jsonl", ours(8))])


def test_other_verbs_need_no_plotting_library() -> None:
    program = (
        "import sys, accord.cli\n"
        "sys.exit(bool({'matplotlib', 'jinja2', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(PYTHON)}, check=True, timeout=60
    )
