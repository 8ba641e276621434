"""`harnpy replay`: how a stored run went, without calling models. Spec: 09 §8.2."""

from __future__ import annotations

import os

import click

from harnpy.cli import OK, run_records
from harnpy.cli.console import say
from harnpy.cli.show import run_lines
from harnpy.cli.show.html_option import html_option, write_page
from harnpy.faults import MisuseError
from harnpy.workflow.report import html_report


@click.command("replay", short_help="Show how a stored run went, stage by stage.")
@click.argument("run")
@html_option
def command(run: str, page: str | None) -> int:
    """Show how the run in the file RUN, or of that id, went, and whether it passes its own fixture."""
    try:
        record = run_records.load(run)
    except MisuseError as error:
        return run_records.unreadable(error)
    for line in run_lines.replay(record):
        say(line)
    write_page(page, lambda: html_report(record, os.environ))
    return OK
