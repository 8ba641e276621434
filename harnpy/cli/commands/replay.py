"""`harnpy replay`: a stored run as it went, without calling models. Spec: 09 §8.2."""

from __future__ import annotations

import click

from harnpy.cli import records
from harnpy.cli.console import OK
from harnpy.cli.show import run_report
from harnpy.cli.show.html import html_option, write_page
from harnpy.cli.testing.report import say
from harnpy.faults import MisuseError
from harnpy.workflow.report import html_report


@click.command("replay", short_help="Show how a stored run went, stage by stage.")
@click.argument("run")
@html_option
def command(run: str, page: str | None) -> int:
    """Show how the run in the file RUN, or of that id, went, and whether it passes its own fixture."""
    try:
        record = records.load(run)
    except MisuseError as error:
        return records.unreadable(error)
    for line in run_report.replay(record):
        say(line)
    write_page(page, lambda: html_report(record))
    return OK
