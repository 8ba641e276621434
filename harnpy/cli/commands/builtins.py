"""`harnpy builtins`: the builtin table, for people and for tools. Spec: 09 §4.5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from harnpy.builtins import catalog
from harnpy.cli.help import builtin_help, builtin_page

if TYPE_CHECKING:
    from harnpy.vm.declare.builtin import Declaration


@click.command("builtins", short_help="Show the builtin functions and methods.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list: NAME's, or all functions.")
@click.option("--markdown", is_flag=True, help="Print the page of all builtins, docs/builtins.md.")
def command(name: str | None, as_json: bool, markdown: bool) -> None:
    """List the builtin functions and methods, or explain NAME with the specification's words."""
    try:
        if as_json:
            found = catalog.all_declarations() if name is None else builtin_help.find(name)
            table = [catalog.describe(declaration) for declaration in found]
            click.echo(json.dumps(table, indent=1, ensure_ascii=False))
        elif markdown:
            click.echo(builtin_page.page(), nl=False)
        elif name:
            builtin_help.show(name)
        else:
            click.echo("\n".join(_table([*catalog.all_declarations(), *builtin_help.all_methods()])))
    except LookupError as error:
        raise click.ClickException(str(error)) from None


def _table(declarations: Iterable[Declaration]) -> Iterator[str]:
    """Every signature, by family."""
    ordered = sorted(declarations, key=lambda found: (found.receiver or "", found.family, found.name))
    for family, members in groupby(ordered, key=lambda found: found.family):
        yield f"{family}:"
        yield from (f"  {found.signature_text}" for found in members)
        yield ""
