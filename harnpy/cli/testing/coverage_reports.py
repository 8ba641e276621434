"""The reports of `harnpy test --coverage`: a table, and files where they are asked for. Spec: 09 §3.5."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harnpy.cli.console import say
from harnpy.cli.measure.coverage import FileCoverage, together
from harnpy.cli.measure.coverage_lines import coverage_lines
from harnpy.cli.measure.lcov import lcov
from harnpy.cli.show.tables import show
from harnpy.world import World


def report(measured: Iterable[FileCoverage], lcov_file: Path | None, page: Path | None) -> None:
    """Print the table and write the files. Raises OSError."""
    files = together(measured)
    say()
    if files:
        show(coverage_lines(files))
    else:
        say("coverage: no Harn code below this directory ran")
    if lcov_file is not None:
        _write(lcov_file, lcov(files))
    if page is not None:
        from harnpy.cli.measure.coverage_page import coverage_page

        _write(page / "index.html" if page.is_dir() else page, coverage_page(files))


def _write(path: Path, text: str) -> None:
    World().files.replace_text(str(path), text)
    say(f"report: {path}")
