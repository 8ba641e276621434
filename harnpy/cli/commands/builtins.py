"""`harnpy builtins`: the builtin table for people and tools, and the page docs/builtins.md. Spec: 09 §4.5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import click

from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, without_citation
from harnpy.cli import builtin_help
from harnpy.cli.builtin_help import all_methods
from harnpy.cli.console import say_folded
from harnpy.vm.declare import Declaration
from harnpy.vm.run import methods

# docs/builtins.md: every builtin by family, what it does, and an example. Spec: 09 §4.5.


_HEAD = """\
# Builtins

Every function and method that a program can use without an import, by family. `harnpy builtins NAME`
shows an entry of this page together with the text of the [specification](spec/README.md), which has all
details and errors.

The comment after an example is its value, or what it prints. The tests run all examples;
`harnpy builtins --markdown` writes this page from the declarations of the builtins.
"""

#: The families in the order of the page; one that isn't mentioned here comes last.
_PARTS = {
    "The language": (
        "types", "strings", "string methods", "collections", "list methods", "dict methods", "set methods",
        "range methods", "iter methods", "generator methods", "math", "testing",
    ),
    "Data": ("json_schema", "json_csv", "web", "bytes", "crypto", "compression", "time"),
    "Input, output and files": ("io", "files", "paths", "process", "host", "store", "metadata", "memory"),
    "Tasks": ("concurrency", "streams", "stream methods"),
    "Models and agents": (
        "llm", "llm_config", "tools", "agents", "agent_sessions", "transcripts", "skills", "hitl",
        "policy", "mcp",
    ),
    "Workflows": ("workflows", "records", "checkpoints"),
    "More": (),
}  # fmt: skip
_TITLES = {
    "json_schema": "JSON and schemas", "json_csv": "CSV", "web": "URLs", "io": "Input and output",
    "process": "Processes",
    "host": "The host", "store": "The store", "concurrency": "Tasks and what they share",
    "llm": "Models", "llm_config": "Configuring models", "agent_sessions": "Sessions",
    "hitl": "People in the loop", "mcp": "MCP servers", "policy": "Policies",
    "records": "Records and artifacts",
}  # fmt: skip
_NOTES = {"range methods": "A range also has all the [methods of iterators](#iter-methods)."}


class Entry(NamedTuple):
    """A function and the builtins that it is declared as, of one family."""

    family: str
    declarations: Sequence[Declaration]
    prose: str
    example: str


def entries() -> list[Entry]:
    """Return all that programs are meant to call: no builtins that only `std` modules call.

    The methods that a range shares with iterators are entries of those.
    """
    public = [*filter(_is_public, catalog.all_declarations()), *filter(_is_own, all_methods())]
    same: dict[tuple[str, object], list[Declaration]] = {}
    for declaration in public:
        same.setdefault((declaration.family, declaration.function), []).append(declaration)
    return [Entry(family, found, *documentation(found[0])) for (family, _), found in same.items()]


def page() -> str:
    """Return the page as Markdown."""
    families: dict[str, list[Entry]] = {}
    for entry in entries():
        families.setdefault(entry.family, []).append(entry)
    known = {family for members in _PARTS.values() for family in members}
    others = tuple(sorted(family for family in families if family not in known))
    parts = {
        title: [family for family in (members or others) if family in families]
        for title, members in _PARTS.items()
    }
    index = [f"- {title}: {', '.join(map(_link, members))}" for title, members in parts.items() if members]
    sections = ["\n".join(_section(families[family])) for members in parts.values() for family in members]
    return "\n".join([_HEAD, *index, "", *sections])


def _is_public(declaration: Declaration) -> bool:
    return not declaration.name.startswith("__")


def _is_own(method: Declaration) -> bool:
    return method.function.__module__ != methods.__name__


def _title(family: str) -> str:
    title = _TITLES.get(family) or family.replace("_", " ")
    return title[0].upper() + title[1:]


def _link(family: str) -> str:
    title = _title(family)
    return f"[{title}](#{title.lower().replace(' ', '-')})"


def _section(members: Sequence[Entry]) -> Iterator[str]:
    family = members[0].family
    yield f"## {_title(family)}\n"
    if family in _NOTES:
        yield f"{_NOTES[family]}\n"
    for entry in members:
        signatures = ", ".join(f"`{_signature(declaration)}`" for declaration in entry.declarations)
        text = without_citation(entry.prose).replace("\n\n", " ").replace("\n", " ")
        yield f"- **{signatures}**: {text}\n"
        if entry.example:
            yield from ("  ```harn", *(f"  {line}".rstrip() for line in entry.example.split("\n")), "  ```\n")


def _signature(declaration: Declaration) -> str:
    receiver = f"{declaration.receiver}." if declaration.receiver else ""
    return receiver + declaration.signature_text


@click.command("builtins", short_help="Show the builtin functions and methods.")
@click.argument("words", nargs=-1, metavar="[NAME | WORD...]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of NAME, or of all functions.")
@click.option("--markdown", is_flag=True, help="Print the page of all builtins, docs/builtins.md.")
def command(words: tuple[str, ...], as_json: bool, markdown: bool) -> None:
    """List the builtin functions and methods, or explain NAME, with the specification's text.

    NAME may also be a function of the library, such as `session_send` of std/session. Other WORDs are
    searched for in all names and documentation.
    """
    name = " ".join(words) or None
    try:
        if as_json:
            every = map(catalog.describe, catalog.all_declarations())
            table = builtin_help.described(name) if name else list(every)
            click.echo(json.dumps(table, indent=1, ensure_ascii=False))
        elif markdown:
            click.echo(page(), nl=False)
        elif name:
            builtin_help.print_help(name)
        else:
            say_folded("\n".join(_table([*catalog.all_declarations(), *builtin_help.all_methods()])))
    except LookupError as error:
        raise click.ClickException(str(error)) from None


def _table(declarations: Iterable[Declaration]) -> Iterator[str]:
    """Every signature, by family."""
    ordered = sorted(declarations, key=lambda found: (found.receiver or "", found.family, found.name))
    for family, members in groupby(ordered, key=lambda found: found.family):
        yield f"{family}:"
        yield from (f"  {found.signature_text}" for found in members)
        yield ""
