# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The page: what the template shows, in its order. Imported only where jinja2 and matplotlib are."""

from __future__ import annotations

import re
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from accord.reporting import figures, theme
from accord.reporting.comparison import Comparison, Summary, best, comparisons, ratio_of, summarise
from accord.reporting.inline_svg import inline_svg
from accord.reporting.numbers import number_text, ratio_text
from accord.reporting.records import Operation, Sample, Section
from accord.sizes import size_text


@dataclass(frozen=True)
class Cell:
    """A ratio in the map, with its colours in both themes."""

    text: str
    hint: str
    style: str


@dataclass(frozen=True)
class HeatMap:
    operations: list[str]
    sizes: list[str]
    cells: dict[tuple[str, str], Cell]


@dataclass(frozen=True)
class Row:
    """One size in an operation's table; of each way its sample, of each peer the ratio, too."""

    size: str
    ours: Sample | None
    peers: list[tuple[Sample | None, str]]


@dataclass(frozen=True)
class Swatch:
    """An entry of the legend: a path of ours, or a peer, which is dashed and has a hollow marker."""

    name: str
    colour: str
    marker: str
    dashes: str = ""


@dataclass(frozen=True)
class OperationView:
    anchor: str
    name: str
    ours_name: str
    peers: list[str]
    paths_legend: list[Swatch]
    peers_legend: list[Swatch]
    figures: list[Markup]
    rows: list[Row]


@dataclass(frozen=True)
class SectionView:
    anchor: str
    title: str
    section: Section
    summary: Summary | None
    heat_map: HeatMap | None
    operations: list[OperationView]


def _figure(section: Section, operation: Operation, quantity: str, anchor: str) -> Markup:
    label = f"{operation.name} on {section.facts.get('machine', section.source)}: {quantity} against size"
    text = figures.svg(figures.panel(section, operation, quantity), f"{anchor}-{quantity}")
    return Markup(inline_svg(text, label))


def _has_bandwidth(operation: Operation) -> bool:
    ways = (operation.ours, *operation.peers.values())
    return any(sample.bandwidth_gb_s for samples in ways for sample in samples.values())


def quantities(operations: list[Operation]) -> list[str]:
    """What can be drawn: a single rank moves nothing over the bus."""
    wanted = any(_has_bandwidth(operation) for operation in operations)
    return ["time", "bandwidth"] if wanted else ["time"]


def _ratio(ours: Sample | None, peer: Sample | None) -> str:
    ratio = ratio_of(ours, peer) if peer is not None else None
    if ratio is None or peer is None:
        return ""
    error = "" if peer.ratio_error is None else f" ± {peer.ratio_error:.3f}"
    return f"{ratio:.3f}{error}"


def _row(operation: Operation, size_bytes: int) -> Row:
    ours = operation.ours.get(size_bytes)
    samples = [peer.get(size_bytes) for peer in operation.peers.values()]
    peers = [(sample, _ratio(ours, sample)) for sample in samples]
    return Row(size_text(size_bytes), ours, peers)


def _paths_legend(section: Section, operation: Operation) -> list[Swatch]:
    slots = theme.path_slots(section.paths)
    markers = list(theme.MARKERS.values())
    return [Swatch(path, f"path-{slots[path]}", markers[slots[path]]) for path in operation.paths]


def _peer_swatch(section: Section, way: str) -> Swatch:
    look = theme.peer_look(section.peers.index(way))
    dashes = " ".join(f"{1.4 * length:g}" for length in look.dashes)
    return Swatch(way, look.colour, theme.MARKERS[look.marker], dashes)


def _operation(section: Section, operation: Operation, section_anchor: str) -> OperationView:
    anchor = f"{section_anchor}-{slug(operation.name)}"
    return OperationView(
        anchor=anchor,
        name=operation.name,
        ours_name=operation.ours_name,
        peers=list(operation.peers),
        paths_legend=_paths_legend(section, operation),
        peers_legend=[_peer_swatch(section, way) for way in operation.peers],
        figures=[
            _figure(section, operation, quantity, anchor) for quantity in quantities([operation])
        ],
        rows=[_row(operation, size_bytes) for size_bytes in operation.sizes],
    )


def _cell(found: Comparison, path: str) -> Cell:
    light = theme.ratio_colour(found.ratio)
    dark = theme.ratio_colour(found.ratio, theme.RATIO_STOPS_DARK)
    colours = {
        "light": light,
        "light-ink": theme.text_colour(light),
        "dark": dark,
        "dark-ink": theme.text_colour(dark),
    }
    error = "" if found.error is None else f" ± {found.error:.3f}"
    where = f"{found.operation} {size_text(found.size_bytes)}"
    return Cell(
        text=ratio_text(found.ratio),
        hint=f"{where}: {found.ratio:.3f}{error} against {found.peer}, by {path}",
        style=";".join(f"--{name}:{colour}" for name, colour in colours.items()),
    )


def _heat_map(section: Section) -> HeatMap | None:
    operations = section.operations.values()
    sizes = sorted({size_bytes for each in operations for size_bytes in each.sizes})
    cells = {
        (operation.name, size_text(size_bytes)): _cell(found, operation.ours[size_bytes].path)
        for operation in operations
        for size_bytes in sizes
        if (found := best(operation, size_bytes)) is not None
    }
    names = [each.name for each in operations if each.peers]
    return HeatMap(names, [size_text(each) for each in sizes], cells) if cells else None


_MACHINE = ("machine", "ranks")


def titles(sections: list[Section]) -> list[str]:
    """Machine and ranks, and of sections that share these what else tells them apart."""
    return [
        _title(section, [each for each in sections if _same_machine(each, section)])
        for section in sections
    ]


def _same_machine(one: Section, other: Section) -> bool:
    return all(one.facts.get(name) == other.facts.get(name) for name in _MACHINE)


def _title(section: Section, alike: list[Section]) -> str:
    facts = section.facts
    telling = [name for name in facts if len({each.facts.get(name) for each in alike}) > 1]
    parts = [facts.get("machine", ""), f"{facts['ranks']} ranks" if "ranks" in facts else ""]
    parts += [facts[name] for name in telling]
    if len({each.source for each in alike}) > 1 or not any(parts):
        parts.append(section.source)
    return " · ".join(part for part in parts if part)


def slug(text: str) -> str:
    """For file names and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _view(section: Section, title: str, anchor: str) -> SectionView:
    return SectionView(
        anchor=anchor,
        title=title,
        section=section,
        summary=summarise(comparisons(section)),
        heat_map=_heat_map(section),
        operations=[
            _operation(section, operation, anchor) for operation in section.operations.values()
        ],
    )


def render(sections: list[Section], title: str) -> str:
    """The page's HTML, complete in itself: it loads nothing."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("accord", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number_text, size=size_text)
    views = [
        _view(section, name, f"s{position}")
        for position, (section, name) in enumerate(zip(sections, titles(sections), strict=True))
    ]
    template = environment.get_template("report.html.j2")
    legend = [(0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4")]
    scale = [(text, theme.ratio_colour(ratio), _dark(ratio)) for ratio, text in legend]
    return template.render(title=title, views=views, colours=theme.COLOURS, scale=scale)


def _dark(ratio: float) -> str:
    return theme.ratio_colour(ratio, theme.RATIO_STOPS_DARK)
