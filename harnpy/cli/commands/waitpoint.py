"""`harnpy waitpoint`: telling programs that what they wait for has happened. Spec: 10 §C18, §C21."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.commands.event_store import store_option, verb
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.show import tables
from harnpy.eventlog.waitpoints import UnknownWaitpoint, Waitpoints
from harnpy.text.json.compact import compact_json
from harnpy.text.json.reader import JsonError, parse_json

if TYPE_CHECKING:
    from harnpy.eventlog.topics import StoreEventLog
    from harnpy.eventlog.waitpoints import Changed, Waitpoint

_WIDTHS = {"id": 48, "value": 48}
_by = click.option("--by", metavar="NAME", help="Who says so.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("waitpoint", short_help="Complete what programs wait for.")
@store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """What programs wait for, and telling them that it has happened.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = store


@command.command("list")
@click.option(
    "--status", type=click.Choice(["open", "completed", "cancelled"]), help="Only those with that status."
)
@_json
@verb
def list_waitpoints(log: StoreEventLog, status: str | None, as_json: bool) -> int:
    """List the waitpoints."""
    found = Waitpoints(log).list(status)
    if as_json:
        say(compact_json([point.to_dict() for point in found]))
    elif found:
        columns = ("waitpoint", "status", "since", "by", "value")
        tables.show(tables.table(columns, [_row(point) for point in found], ()), tables.UNBROKEN)
    else:
        say(f"no {f'{status} ' if status else ''}waitpoints in {log.store.url}")
    return OK


@command.command("complete")
@click.argument("id")
@click.argument(
    "value", required=False, metavar="[JSON]", callback=lambda context, _, text: _value(context, text)
)
@click.option("--create", is_flag=True, help="Complete it even if nobody has created it.")
@_by
@_json
@verb
def complete(log: StoreEventLog, id: str, value: Any, create: bool, by: str | None, as_json: bool) -> int:
    """Complete ID: all who wait for it get the value, null by default."""
    try:
        done = Waitpoints(log).complete(id, value, by=by, create=create)
    except UnknownWaitpoint:
        return _unknown(log, id, "; with --create it is completed all the same")
    return _tell(done, as_json)


@command.command("cancel")
@click.argument("id")
@click.option("--reason", metavar="TEXT", help="Why.")
@_by
@_json
@verb
def cancel(log: StoreEventLog, id: str, reason: str | None, by: str | None, as_json: bool) -> int:
    """Call ID off: it won't happen any more."""
    try:
        off = Waitpoints(log).cancel(id, reason=reason, by=by)
    except UnknownWaitpoint:
        return _unknown(log, id)
    return _tell(off, as_json)


def _tell(done: Changed, as_json: bool) -> int:
    """Print what a waitpoint is now. It is a failure when it was over before."""
    point, changed = done
    if as_json:
        say(compact_json(done.to_dict()))
    elif changed:
        say(one_line(f"{point.status} {point.id}"))
    else:
        complain(
            one_line(f"error: {point.id} was {point.status} before{_by_whom(point)}: nothing has changed")
        )
    return OK if changed else FAILED


def _unknown(log: StoreEventLog, id: str, advice: str = "") -> int:
    complain(one_line(f"error: {log.store.url} has no waitpoint {id}{advice}"))
    return FAILED


def _by_whom(point: Waitpoint) -> str:
    by = point.completed_by or point.cancelled_by
    return f", by {by}" if by else ""


def _row(point: Waitpoint) -> tuple[Any, ...]:
    value = point.reason or "" if point.status != "completed" else compact_json(point.value)
    return (
        tables.cell(point.id, _WIDTHS["id"]),
        tables.cell(point.status),
        tables.cell(point.completed_at or point.cancelled_at or point.created_at or ""),
        tables.cell(point.completed_by or point.cancelled_by or ""),
        tables.cell(value, _WIDTHS["value"]),
    )


def _value(context: click.Context, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return parse_json(text)
    except JsonError:
        message = f"the value {one_line(text)} is no JSON; a text is in quotes: '\"approved\"'"
        raise click.UsageError(message, context) from None
