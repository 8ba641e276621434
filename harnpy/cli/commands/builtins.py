"""`harnpy builtins`: the builtin table, for people and for tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from harnpy.builtins import catalog
from harnpy.syntax.spell import nearest
from harnpy.vm.run import methods

if TYPE_CHECKING:
    from harnpy.vm.declare.builtin import Declaration

#: The kinds of values that have methods.
_RECEIVERS = ("string", "list", "dict", "set", "range", "iter", "generator", "stream")


@click.command("builtins", short_help="Show the builtin functions and methods.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list: NAME's, or all functions.")
def command(name: str | None, as_json: bool) -> None:
    """Show the builtin functions and methods, or what is known about NAME."""
    try:
        if as_json:
            found = catalog.all_declarations() if name is None else find(name)
            table = [catalog.describe(declaration) for declaration in found]
            text = json.dumps(table, indent=1, ensure_ascii=False)
        else:
            text = explain(name) if name else "\n".join(_table([*catalog.all_declarations(), *_methods()]))
    except LookupError as error:
        raise click.ClickException(str(error)) from None
    click.echo(text)


def explain(name: str) -> str:
    """Signature and documentation of everything called `name`. Raises LookupError."""
    return "\n\n".join(_entry(declaration) for declaration in find(name))


def find(name: str) -> list[Declaration]:
    """The function called `name` and the methods that share the name. Raises LookupError."""
    function = catalog.find(name)
    found = [function] if function else []
    found += [method for method in _methods() if method.name == name]
    if found:
        return found
    near = nearest(name, [*catalog.names(), *(method.name for method in _methods())], limit=2)
    hint = f" (did you mean `{near}`?)" if near else ""
    raise LookupError(f"no builtin is called `{name}`{hint}")


def _methods() -> Iterator[Declaration]:
    for receiver in _RECEIVERS:
        yield from methods.declared(receiver).values()


def _table(declarations: Iterable[Declaration]) -> Iterator[str]:
    """Every signature, by family."""
    ordered = sorted(declarations, key=lambda found: (found.receiver or "", found.family, found.name))
    for family, members in groupby(ordered, key=lambda found: found.family):
        yield f"{family}:"
        yield from (f"  {found.signature_text}" for found in members)
        yield ""


def _entry(declaration: Declaration) -> str:
    """Signature, family and docstring of one builtin."""
    receiver = f"{declaration.receiver}." if declaration.receiver else ""
    doc: str = catalog.describe(declaration)["doc"]
    body = "\n".join(f"  {line}".rstrip() for line in doc.split("\n"))
    return f"{receiver}{declaration.signature_text}  [{declaration.family}]\n\n{body}"
