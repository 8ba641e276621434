"""Options that several commands share: `--html FILE`, `--trust`, and those that are not built yet."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from harnpy.cli.console import not_yet, say
from harnpy.formats.manifest import VARIABLE
from harnpy.world import World

# `--html FILE`: the output of a command as a page for people.


#: The option of every command that has such a page.
html_option = click.option(
    "--html", "page", metavar="FILE", help="Also write an HTML page of it, without secrets."
)


def write_page(path: str | None, make: Callable[[], str]) -> None:
    """Write the page to the file, if one is named, as a whole or not at all. Raises OSError."""
    if path is not None:
        World().files.replace_text(path, make())
        say(f"report: {path}")


# `--trust`: the project is trusted, for this one command. Spec: 09 §12.1.


def _trust(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        os.environ[VARIABLE] = "1"


#: The option of every command that refuses to work where nobody trusts the project.
trust_option = click.option(
    "--trust",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_trust,
    help="Trust the project this once, as HARN_TRUST=1 does.",
)


# Options that are specified but not built yet: accepted only to be refused by name.


Command = Callable[..., Any]


def unbuilt_options(
    *names: str, takes_value: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command refuse the options `names`; with `takes_value` each takes a value."""

    def decorate(command: Command) -> Command:
        for name in names:
            option = click.option(
                name, is_flag=not takes_value, hidden=True, expose_value=False, callback=_refuse
            )
            command = option(command)
        return command

    return decorate


def _refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        raise click.UsageError(not_yet(parameter.opts[0]), context)
