"""`harnpy runs` and `harnpy replay`: list runs, inspect one, compare two, show how one went.

Spec: 09 §8.1, §8.2.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from harnpy.cli import OK, run_records, tables
from harnpy.cli import run_records as run_lines
from harnpy.cli.command_options import html_option, write_page
from harnpy.cli.console import one_line, say
from harnpy.cli.usage import Group
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record_files import run_directory
from harnpy.workflow.report import html_diff, html_report
from harnpy.world import World

_WIDTHS = {"id": 40, "workflow": 32}


@click.group(
    "runs", cls=Group, no_args_is_help=False, short_help="List, inspect and compare runs of workflows."
)
def command() -> None:
    """List, inspect and compare the records that runs of workflows leave."""


@command.command("list")
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False),
    metavar="D",
    help="Where to look, in place of HARN_RUN_DIR or .harn-runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_runs(directory: str | None, as_json: bool) -> int:
    """List the runs that left a record, the newest first.

    Records are looked for where workflows write them, and in the directories below.
    """
    where = Path(directory or run_directory(World()))
    found = sorted(run_records.summaries(where), key=lambda run: (run.started_at, run.id), reverse=True)
    if as_json:
        say(json.dumps([run.as_dict() for run in found], indent=2, sort_keys=True, ensure_ascii=False))
    elif found:
        tables.show(_table(found), tables.UNBROKEN)
    else:
        say(f"no runs in {where}")
    return OK


@command.command("inspect")
@click.argument("run")
@click.option("--compare", metavar="BASE", help="Show what changed since the run in BASE.")
@html_option
def inspect(run: str, compare: str | None, page: str | None) -> int:
    """Show the run whose record is in the file RUN, or whose id that is."""
    try:
        record = run_records.load(run)
        base = None if compare is None else run_records.load(compare)
    except MisuseError as error:
        return run_records.unreadable(error)
    _say_all(run_lines.inspection_lines(record))
    if base is not None:
        _say_all(run_lines.difference(run_diff(base, record, World())))
    write_page(page, lambda: html_report(record, os.environ))
    return OK


@command.command("diff")
@click.argument("left")
@click.argument("right")
@html_option
def compare(left: str, right: str, page: str | None) -> int:
    """Show what changed from the run in LEFT to the run in RIGHT."""
    try:
        before, after = run_records.load(left), run_records.load(right)
    except MisuseError as error:
        return run_records.unreadable(error)
    found = run_diff(before, after, World())
    sides = (f"{found[f'{side}_run_id']} [{found[f'{side}_status']}]" for side in ("left", "right"))
    say(one_line(" -> ".join(sides)))
    if found["identical"]:
        say("identical")
    elif rows := _changes(before, after, found):
        tables.show(tables.table(("what", "change", "details"), rows), tables.UNBROKEN)
    write_page(page, lambda: html_diff(before, after, found, os.environ))
    return OK


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], found: Dict) -> list[Sequence[Text]]:
    rows: list[Sequence[Text]] = [
        (tables.cell(name), tables.cell(change), tables.cell(detail))
        for name, change, details in run_lines.changes(found)
        for detail in details
    ]
    for name in ("transition", "artifact", "checkpoint"):
        delta = found[f"{name}_count_delta"]
        if delta:
            counts = f"{len(before[f'{name}s'])} -> {len(after[f'{name}s'])}"
            rows.append(
                (
                    tables.cell(f"{name}s"),
                    tables.cell("changed"),
                    tables.cell(counts),
                )
            )
    return rows


def _table(found: Sequence[run_records.Summary]) -> Table:
    columns = ("id", "workflow", "status", "stages", "started (UTC)", "duration", "cost", "path")
    rows = [
        (
            tables.cell(run.id, _WIDTHS["id"]),
            tables.cell(run.workflow, _WIDTHS["workflow"]),
            tables.cell(run.status, style=run_lines.style_of(run.status)),
            tables.cell(str(len(run.stages))),
            tables.cell(run.started),
            tables.cell(_duration(run.duration_ms)),
            tables.cell("-" if run.cost is None else f"${run.cost:.4f}"),
            tables.cell(run.path),
        )
        for run in found
    ]
    return tables.table(columns, rows, ("stages", "duration", "cost"))


def _duration(ms: int | None) -> str:
    if ms is None:
        return "-"
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
    sys.stdout.flush()


@click.command("replay", short_help="Show how a stored run went, stage by stage.")
@click.argument("run")
@html_option
def replay(run: str, page: str | None) -> int:
    """Show how the run in the file RUN, or of that id, went, and whether it passes its own fixture."""
    try:
        record = run_records.load(run)
    except MisuseError as error:
        return run_records.unreadable(error)
    for line in run_lines.replay_lines(record):
        say(line)
    write_page(page, lambda: html_report(record, os.environ))
    return OK
