"""`harnpy sessions`: the conversations that are kept in a store. Spec: 10 §C21."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.commands.session_store import Context, verb
from harnpy.cli.commands.session_transfer import TRANSFERS
from harnpy.cli.commands.session_verbs import VERBS
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.show import session_tables, tables
from harnpy.cli.show.session_lines import counted
from harnpy.session.errors import SessionNotFound
from harnpy.storage import HeadQuery
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.storage import Head, Store

_AGE = re.compile(r"(\d+)([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DELETED = frozenset({"deleted"})


@click.group("sessions", short_help="List, show and manage kept sessions.", no_args_is_help=False)
@click.option("--store", metavar="URL", help="In place of HARN_SESSION_STORE and harn.toml.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, store: str | None, as_json: bool) -> None:
    """The conversations that are kept in a store.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = Context(store, as_json)


@command.command("list")
@click.option("--status", metavar="S", help="Only sessions with that status.")
@click.option("--agent", metavar="A", help="Only that agent's.")
@click.option("--deleted", is_flag=True, help="Deleted ones, too.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@verb
def list_sessions(
    store: Store, as_json: bool, status: str | None, agent: str | None, deleted: bool, limit: int
) -> int:
    """List the sessions, those that were written last first."""
    page = store.heads(
        HeadQuery(
            statuses=frozenset({status}) if status else None,
            without=frozenset() if deleted or status else _DELETED,
            agent=agent,
            limit=limit,
        )
    )
    if as_json:
        errors = [{"id": name, "error": reason} for name, reason in page.errors]
        items = [session_tables.as_dict(head) for head in page.items]
        say(compact_json({"items": items, "next": page.next, "errors": errors}))
    elif page.items:
        tables.show(session_tables.heads(page.items), tables.UNBROKEN)
    elif not page.errors:
        say(f"no sessions in {store.url}")
    for name, reason in page.errors:
        complain(one_line(f"warning: {name}: {reason}"))
    return OK


@command.command("tree")
@click.argument("id", required=False)
@verb
def tree(store: Store, as_json: bool, id: str | None) -> int:
    """Show which session was forked from which, or what was forked from ID."""
    found = _all(store)
    if id is not None and all(head.name != id for head in found):
        raise SessionNotFound(id)
    if as_json:
        say(compact_json([session_tables.as_dict(head) for head in found]))
        return OK
    for view in session_tables.tree(found, id):
        tables.show(view, tables.UNBROKEN)
    return OK


@command.command("gc")
@click.option("--older-than", metavar="AGE", callback=lambda _, __, text: _seconds(text), help="E.g. 30d.")
@click.option("--dry-run", is_flag=True, help="Say what would be dropped.")
@verb
def gc(store: Store, as_json: bool, older_than: float | None, dry_run: bool) -> int:
    """Drop deleted sessions, what only they kept, and other leftovers, for good."""
    report = store.gc(older_than=older_than, dry_run=dry_run)
    if as_json:
        say(compact_json(report._asdict()))
        return OK
    said = "would drop" if dry_run else "dropped"
    for name in report.streams:
        say(one_line(f"{said} session {name}"))
    for name in report.leftovers:
        say(one_line(f"{said} {name}"))
    counts = ((len(report.streams), "session"), (report.stems, "stem"), (len(report.leftovers), "leftover"))
    say(f"{said} {', '.join(counted(number, noun) for number, noun in counts)}")
    return OK


@command.command("fsck")
@click.option("--repair", is_flag=True, help="Repair what can be repaired; nothing readable is lost.")
@verb
def fsck(store: Store, as_json: bool, repair: bool) -> int:
    """Check every session. The exit status is 1 when something is wrong and wasn't repaired."""
    report = store.fsck(repair=repair)
    if as_json:
        findings = [finding._asdict() for finding in report.findings]
        say(compact_json({"streams": report.streams, "records": report.records, "findings": findings}))
    else:
        for finding in report.findings:
            place = store.url if finding.name is None else f"{finding.kind} {finding.name}"
            say(one_line(f"{place}: {finding.problem}{' (repaired)' if finding.repaired else ''}"))
        wrong = sum(not finding.repaired for finding in report.findings)
        counts = ((report.streams, "stream"), (report.records, "record"), (wrong, "problem"))
        say(", ".join(counted(number, noun) for number, noun in counts))
    return OK if report.clean else FAILED


def _all(store: Store) -> list[Head]:
    """The heads of all sessions that aren't deleted, in the order in which they were made."""
    found: list[Head] = []
    query = HeadQuery(without=_DELETED, order="created")
    while True:
        page = store.heads(query)
        found += page.items
        if page.next is None:
            return found[::-1]
        query = query._replace(after=page.next)


def _seconds(text: str | None) -> float | None:
    """An age such as ``30d`` in seconds."""
    if text is None:
        return None
    found = _AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"'{text}' is no age: write 90s, 30m, 12h, 30d or 8w")
    return float(found[1]) * _SECONDS[found[2]]


for _verb in (*VERBS, *TRANSFERS):
    command.add_command(_verb)
