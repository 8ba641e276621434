"""Coverage for the terminal: for each file how much ran, and what did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from harnpy.cli.measure.coverage import FileCoverage
from harnpy.cli.show.tables import cell, table


def coverage_lines(files: Sequence[FileCoverage]) -> RenderableType:
    """Show a row for each file, and one for all of them."""
    rows = [_row(file.path, [file], missing(file)) for file in files]
    if len(files) > 1:
        rows.append(_row("total", files, ""))
    columns = ["lines", "", "branches", " ", "file", "missing"]
    return table(columns, rows, numbers=columns[:4])


def _row(name: str, files: Sequence[FileCoverage], missing: str) -> list[Text]:
    return [*_share(*lines_of(files)), *_share(*branches_of(files)), cell(name), cell(missing, style="dim")]


def _share(ran: int, all: int) -> list[Text]:
    if not all:
        return [Text("–", "dim"), Text()]
    style = "green" if ran == all else "yellow" if ran else "red"
    return [Text(percent(ran, all), style), Text(f"{ran}/{all}", "dim")]


def lines_of(files: Iterable[FileCoverage]) -> tuple[int, int]:
    """How many lines ran, of how many."""
    counts = [count for file in files for count in file.lines().values()]
    return sum(map(bool, counts)), len(counts)


def branches_of(files: Iterable[FileCoverage]) -> tuple[int, int]:
    counts = [count for file in files for _, count in file.branches()]
    return sum(map(bool, counts)), len(counts)


def percent(ran: int, all: int) -> str:
    """The share in whole percents; 100% only if all of it ran, 0% only if nothing did."""
    if ran in (0, all):
        return "0%" if ran < all else "100%"
    return f"{min(max(round(100 * ran / all), 1), 99)}%"


def missing(file: FileCoverage) -> str:
    """What didn't run: ``12, 20-22; 14: no else``."""
    lines = list(file.lines())
    gaps = [line for line in lines if line in set(file.missing())]
    # A run of missing lines may skip lines on which no statement begins.
    runs = groupby(gaps, key=lambda line: lines.index(line) - gaps.index(line))
    texts = [_range(list(run)) for _, run in runs]
    branches = [f"{branch.line}: {branch.outcome}" for branch in file.missing_branches()]
    return "; ".join(filter(None, [", ".join(texts), ", ".join(branches)]))


def _range(lines: Sequence[int]) -> str:
    return str(lines[0]) if len(lines) == 1 else f"{lines[0]}-{lines[-1]}"
