"""`harnpy version`: the banner. Spec: 09 §1.1."""

from __future__ import annotations

import click

from harnpy.version import __version__


@click.command("version", short_help="Show the version, decorated.")
def command() -> None:
    """Show the version, decorated. `harnpy --version` prints it plain."""
    title, motto = f"harn v{__version__}", "the agent harness language"
    width = max(len(title), len(motto)) + 4
    click.echo(f"╭{'─' * width}╮\n│{title:^{width}}│\n│{motto:^{width}}│\n╰{'─' * width}╯")
