"""`harnpy explain`: what the code of a diagnostic means. Spec: 09 §4.4."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from harnpy.check.explanations.page import page
from harnpy.check.explanations.reading import Explanation, explanations, families
from harnpy.cli.commands.unbuilt import unbuilt_options
from harnpy.text.spell import nearest_at_run_time


@click.command("explain", short_help="Explain the code of a diagnostic, or list all codes.")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list: CODE's explanation, or all.")
@click.option("--markdown", is_flag=True, help="Print the page of all codes, docs/diagnostics.md.")
@unbuilt_options("--invariant", takes_value=True)
def command(code: str | None, as_json: bool, markdown: bool) -> None:
    """Explain CODE, the word beside the carets of a diagnostic, by a wrong and a right program.

    Without CODE: all codes by family.
    """
    found = None if code is None else _find(code)
    if as_json:
        shown = explanations().values() if found is None else [found]
        click.echo(json.dumps([_as_dict(each) for each in shown], indent=1, ensure_ascii=False))
    elif markdown:
        click.echo(page(), nl=False)
    else:
        click.echo("\n".join(_list() if found is None else _text(found)))


def _find(code: str) -> Explanation:
    """The explanation of ``code``, which may be written as in a label: ``lint[CODE]``."""
    name = code.removeprefix("lint[").removesuffix("]")
    found = explanations().get(name)
    if found is None:
        near = nearest_at_run_time(name, explanations())
        hint = f" (did you mean `{near}`?)" if near else "; `harnpy explain` lists all"
        raise click.ClickException(f"no diagnostic has the code `{name}`{hint}")
    return found


def _as_dict(found: Explanation) -> dict[str, str]:
    return {name: getattr(found, name) for name in ("code", "family", "what", "why", "wrong", "right")}


def _text(found: Explanation) -> Iterator[str]:
    yield f"{found.code}  [{found.family}]"
    yield from ("", found.what, "", found.why)
    for title, program in ("Wrong:", found.wrong), ("Right:", found.right):
        yield from ("", title, "")
        yield from (f"  {line}".rstrip() for line in program.splitlines())


def _list() -> Iterator[str]:
    for family in families():
        width = max((len(each.code) for each in family.explanations), default=0)
        yield f"{family.name}:"
        yield from (f"  {each.code:{width}}  {each.summary}" for each in family.explanations)
        yield ""
