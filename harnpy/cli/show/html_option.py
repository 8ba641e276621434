"""`--html FILE`: the output of a command as a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harnpy.cli.console import say
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

#: The option of every command that has such a page.
html_option = click.option(
    "--html", "page", metavar="FILE", help="Also write an HTML page of it, without secrets."
)


def write_page(path: str | None, make: Callable[[], str]) -> None:
    """Write the page to the file, if one is named, as a whole or not at all. Raises OSError."""
    if path is not None:
        World().files.replace_text(path, make())
        say(f"report: {path}")
