# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord report`: a page, plots or a table from what `accord bench --json` has written."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accord.errors import UserError
from accord.reporting.comparison import comparisons, summarise
from accord.reporting.markdown import ALL, BEST, OURS, Unit, Wanted, table
from accord.reporting.records import Section, read_sections
from accord.sizes import parse_size
from accord.waiting import waiting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGE_NAME = "report.html"
# The extra accord[report]; everything else of Accord works without them.
_NEEDED = {"matplotlib": "matplotlib", "jinja2": "jinja2"}


def _check_libraries() -> None:
    missing = [package for module, package in _NEEDED.items() if not _is_there(module)]
    if missing:
        raise UserError(
            f"a report needs {' and '.join(missing)}: pip install {' '.join(missing)} "
            "(or accord with the extra `report`)"
        )


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _page_file(output: Path) -> Path:
    """`output` itself where it is named as a page, else the page in that folder."""
    return output if output.suffix.lower() in (".html", ".htm") else output / _PAGE_NAME


def _write_page(sections: list[Section], title: str, file: Path) -> None:
    _make_folder(file.parent)
    with waiting("drawing the page"):  # matplotlib takes seconds
        from accord.reporting.page import render

        page = render(sections, title)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error
    print(file)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}") from error


def _save(figure: Figure, file: Path) -> None:
    from accord.reporting.figures import save

    try:
        save(figure, file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error
    print(file)


def _write_plots(sections: list[Section], place: Path, ending: str) -> None:
    """A file that holds all panels where `place` is named as one, else a folder with a file a figure."""
    from accord.reporting.figures import panels, ratio_map
    from accord.reporting.page import quantities, slug

    if place.suffix.lower() == ending:
        if len(sections) > 1:
            raise UserError(
                f"{place} can hold one machine, and the records are of {len(sections)} runs that do not "
                "compare; name a folder"
            )
        _make_folder(place.parent)
        operations = list(sections[0].operations.values())
        _save(panels(sections[0], operations, quantities(operations)), place)
        return
    _make_folder(place)
    for section, stem in zip(sections, _stems(sections), strict=True):
        for operation in section.operations.values():
            name = f"{stem}-{slug(operation.name)}{ending}"
            _save(panels(section, [operation], quantities([operation])), place / name)
        if comparisons(section):
            _save(ratio_map(section), place / f"{stem}-ratios{ending}")


def _stems(sections: list[Section]) -> list[str]:
    """How a section's files begin: as its records' file, numbered where that has several sections."""
    sources = [Path(section.source).stem for section in sections]
    return [
        source if sources.count(source) == 1 else f"{source}-{sources[:position].count(source) + 1}"
        for position, source in enumerate(sources)
    ]


def _tell(section: Section) -> str:
    summary = summarise(comparisons(section))
    operations = f"{section.source}: {len(section.operations)} operations"
    if summary is None:
        return f"{operations}, no peer"
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in summary.counts.items())
    return f"{operations}, {summary.points} points against the best peer: {counts}"


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _fact(text: str) -> tuple[str, str]:
    name, equals, told = text.partition("=")
    if not equals:
        raise UserError(f'"{text}" is no FACT=TEXT, such as ranks=4')
    return name, told


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="JSON lines of accord bench --json.")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PATH", help="The page, or a folder for it."),
    ] = Path(_PAGE_NAME),
    title: Annotated[str, typer.Option(help="The page's title.")] = "Accord benchmark report",
    svg: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Write the plots, too: into this folder, or all in one .svg file."
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The same as PNG images.")
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print a table in Markdown instead of making a page."),
    ] = False,
    operations: Annotated[
        str, typer.Option(metavar="NAME,...", help="Of the table: only these operations.")
    ] = "",
    sizes: Annotated[
        str, typer.Option(metavar="SIZE,...", help="Of the table: only these sizes.")
    ] = "",
    ways: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help=f"Of the table: rows for `{OURS}`, `{BEST}`, `{ALL}` or a peer.",
        ),
    ] = OURS,
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Of the table: whose time by ours stands in brackets: `{BEST}`, a peer, or nothing.",
        ),
    ] = BEST,
    unit: Annotated[
        Unit, typer.Option(help="Of the table: by default time to 32K and bandwidth from 64K on.")
    ] = Unit.AUTO,
    brief: Annotated[
        bool, typer.Option("--brief", help="Of the table: without the commands below it.")
    ] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="FACT=TEXT", help="Of the table: only records of, say, ranks=4."),
    ] = None,
) -> None:
    """Make a page and plots, or a table, from the records of `accord bench --json`.

    The page holds everything itself: it needs no network and no script, and fits a phone. Files of several
    machines stand one below the other.

    [bold]accord bench all -n 4 --memory device --peer nccl --json results.jsonl[/bold]

    [bold]accord report results.jsonl -o results.html --png plots[/bold]

    [bold]accord report --markdown results.jsonl --sizes 8,64K,1M[/bold]
    """
    if not markdown:
        _check_libraries()
    sections = [section for file in files for section in read_sections(file)]
    if markdown:
        wanted = Wanted(
            operations=_words(operations),
            sizes=[parse_size(word) for word in _words(sizes)],
            ways=_words(ways),
            against=against,
            unit=unit,
            brief=brief,
            where=[_fact(text) for text in where or []],
        )
        print(table(sections, wanted))
        return
    _write_page(sections, title, _page_file(output))
    for place, ending in ((svg, ".svg"), (png, ".png")):
        if place is not None:
            _write_plots(sections, place, ending)
    for section in sections:
        typer.echo(_tell(section), err=True)
