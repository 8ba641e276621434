"""`harnpy waitpoint` and `harnpy tokens`: what people do with an event log.

Spec: 08 §16, 10 §C18, §C21, §C22.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import wraps
from shlex import quote
from typing import Any, get_args

import click

from harnpy.agent.people import APPROVAL, DUAL_CONTROL, ESCALATION, asked_for
from harnpy.cli import FAILED, OK, tables
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.usage import Group
from harnpy.client.types import Scope
from harnpy.eventlog.bearer import BearerSessions, CreateSession, Known, utc_now
from harnpy.eventlog.topics import StoreEventLog, event_log_settings, opened, usual_settings
from harnpy.eventlog.waitpoints import Changed, UnknownWaitpoint, Waitpoint, Waitpoints
from harnpy.faults import Fault, MisuseError
from harnpy.formats.dicts import as_dict
from harnpy.formats.json import JsonError, compact_json, parse_json
from harnpy.project import ManifestError
from harnpy.session.stores import store_settings
from harnpy.storage.opening import is_there
from harnpy.world import World

# What every verb needs that works on an event log: the log, and errors in one line. Spec: 10 §C21, §C22.


store_option = click.option(
    "--store", metavar="URL", help="The store of events, instead of the configured one."
)


def _usual() -> list[str]:
    """Return where the project keeps events."""
    return [(event_log_settings(World()) or usual_settings(World())).url]


def _waited() -> list[str]:
    """Return where programs of the project wait; durable ones do in the store of their runs, unless the
    project says where events are."""
    configured = event_log_settings(World())
    if configured is not None:
        return [configured.url]
    urls = [*_usual(), store_settings(World()).url]
    return [url for url in urls if is_there(url)] or urls[:1]


def on_logs(places: Callable[[], list[str]]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a verb the event logs, that of the context's URL or those at ``places()``; report what fails."""

    def give(function: Callable[..., int]) -> Callable[..., int]:
        @click.pass_obj
        @wraps(function)
        def run(url: str | None, /, **arguments: Any) -> int:
            try:
                with ExitStack() as stack:
                    urls = places() if url is None else [url]
                    logs = [stack.enter_context(closing(StoreEventLog(opened(url)))) for url in urls]
                    return function(logs, **arguments)
            except (Fault, ManifestError) as error:
                complain(f"error: {one_line(error.message)}")
                return FAILED

        return run

    return give


# `harnpy waitpoint`: telling programs that what they wait for has happened. Spec: 10 §C18, §C21.


#: Ids are shown whole: people paste them.
_WIDTHS = {"for": 60, "value": 48}
#: How many waitpoints an error names that an id could stand for.
_MOST_NAMED = 3
#: Requests to people that are approved or denied.
_DECIDED = (APPROVAL, DUAL_CONTROL, ESCALATION)
_by = click.option("--by", metavar="NAME", help="The name to record.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("waitpoint", cls=Group, short_help="Complete waitpoints, which programs wait for.")
@store_option
@trust_option
@click.pass_context
def waitpoint(context: click.Context, store: str | None) -> None:
    """List the waitpoints of programs, and complete them.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = store


@waitpoint.command("list")
@click.option(
    "--status", type=click.Choice(["open", "completed", "cancelled"]), help="Only those with that status."
)
@_json
@on_logs(_waited)
def list_waitpoints(logs: list[StoreEventLog], status: str | None, as_json: bool) -> int:
    """List the waitpoints."""
    found = [point for log in logs for point in Waitpoints(log).list(status)]
    if as_json:
        say(compact_json([point.to_dict() for point in found]))
    elif found:
        columns = ("waitpoint", "for", "status", "since", "by", "value")
        tables.show(tables.table(columns, [_row(point) for point in found], ()), tables.UNBROKEN)
    else:
        say(f"no {f'{status} ' if status else ''}waitpoints in {_urls(logs)}")
    return OK


@waitpoint.command("complete")
@click.argument("id")
@click.argument(
    "value", required=False, metavar="[JSON]", callback=lambda context, _, text: _value(context, text)
)
@click.option("--create", is_flag=True, help="Complete it even if nobody has created it.")
@_by
@_json
@on_logs(_waited)
def complete(
    logs: list[StoreEventLog], id: str, value: Any, create: bool, by: str | None, as_json: bool
) -> int:
    """Complete ID: everybody who waits for it receives the value, null by default.

    The beginning of an id is enough where only one waitpoint begins so.
    """
    points, id = _named(logs, id, is_whole=create)
    try:
        done = points.complete(id, value, by=by, create=create)
    except UnknownWaitpoint:
        return _unknown(logs, id, "; with --create it is completed all the same")
    return _tell(done, as_json)


@waitpoint.command("approve")
@click.argument("id")
@_by
@_json
@on_logs(_waited)
def approve(logs: list[StoreEventLog], id: str, by: str | None, as_json: bool) -> int:
    """Approve the request ID, under your name or that of --by."""
    return _decide(logs, id, by, as_json, approved=True)


@waitpoint.command("deny")
@click.argument("id")
@click.option("--reason", metavar="TEXT", help="Why, for the model or program that asks.")
@_by
@_json
@on_logs(_waited)
def deny(logs: list[StoreEventLog], id: str, reason: str | None, by: str | None, as_json: bool) -> int:
    """Deny the request ID, under your name or that of --by."""
    return _decide(logs, id, by, as_json, approved=False, **({} if reason is None else {"reason": reason}))


def _decide(logs: list[StoreEventLog], id: str, by: str | None, as_json: bool, **decision: Any) -> int:
    """Complete the waitpoint of a request to people with a decision. Spec: 10 §C19.1."""
    from harnpy.cli.terminal_person import reviewer_of

    points, id = _named(logs, id)
    point = points.get(id)
    if point is None:
        return _unknown(logs, id)
    asked = as_dict(point.metadata)
    kind, payload = asked.get("kind"), as_dict(asked.get("request"))
    if kind not in _DECIDED:
        advice = f"`harnpy waitpoint complete {quote(id)} JSON` gives it a value"
        complain(one_line(f"error: {id} is no request for an approval: {advice}"))
        return FAILED
    name = by or reviewer_of(World())
    allowed = payload.get("reviewers") or payload.get("approvers")
    if allowed and name not in allowed:
        complain(
            one_line(f"error: only {', '.join(map(str, allowed))} may decide: --by NAME says who you are")
        )
        return FAILED
    if kind == ESCALATION:
        decision["accepted"] = decision.pop("approved")
    return _tell(points.complete(id, {**decision, "reviewer": name}, by=name), as_json)


@waitpoint.command("cancel")
@click.argument("id")
@click.option("--reason", metavar="TEXT", help="Why.")
@_by
@_json
@on_logs(_waited)
def cancel(logs: list[StoreEventLog], id: str, reason: str | None, by: str | None, as_json: bool) -> int:
    """Cancel ID."""
    points, id = _named(logs, id)
    try:
        off = points.cancel(id, reason=reason, by=by)
    except UnknownWaitpoint:
        return _unknown(logs, id)
    return _tell(off, as_json)


def _named(logs: list[StoreEventLog], id: str, is_whole: bool = False) -> tuple[Waitpoints, str]:
    """Return the waitpoints that have the one of that id, and the id; the first ones if none has.

    The beginning of an id will do unless it ``is_whole``: of the only one that is open, or that there is.
    Raises `MisuseError` where several begin so.
    """
    all = [Waitpoints(log) for log in logs]
    for points in all:
        if points.get(id) is not None:
            return points, id
    start = id.removesuffix("…")
    if is_whole or not start.strip():
        return all[0], id
    begun = [(points, each) for points in all for each in points.list() if each.id.startswith(start)]
    opened = [each for each in begun if each[1].status == "open"]
    found = [(points, each.id) for points, each in (opened if len(opened) == 1 else begun)]
    if len(found) > 1:
        names = ", ".join(name for _, name in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise MisuseError(f"several waitpoints begin with {start}: {names}{more}")
    return found[0] if found else (all[0], id)


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


def _unknown(logs: list[StoreEventLog], id: str, advice: str = "") -> int:
    complain(one_line(f"error: {_urls(logs)} has no waitpoint {id}{advice}"))
    return FAILED


def _urls(logs: list[StoreEventLog]) -> str:
    return ", ".join(log.store.url for log in logs)


def _by_whom(point: Waitpoint) -> str:
    by = point.completed_by or point.cancelled_by
    return f", by {by}" if by else ""


def _row(point: Waitpoint) -> tuple[Any, ...]:
    value = point.reason or "" if point.status != "completed" else compact_json(point.value)
    return (
        tables.cell(point.id),
        tables.cell(asked_for(as_dict(point.metadata)), _WIDTHS["for"]),
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


# `harnpy tokens`: who may call a service, until when. Spec: 10 §C21, 08 §16.


@click.group("tokens", cls=Group, short_help="Issue and revoke a service's tokens.")
@store_option
@trust_option
@click.pass_context
def tokens(context: click.Context, store: str | None) -> None:
    """Manage access to `harnpy serve`, or to a service of your own behind BearerAuth.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = store


@tokens.command("create")
@click.argument("principal")
@click.option(
    "--days", type=click.FloatRange(0, 36_500, min_open=True), default=30, show_default=True, metavar="N"
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(Scope)),
    multiple=True,
    metavar="SCOPE",
    help="What the token may do at `harnpy serve` (default write): "
    f"{', '.join(get_args(Scope))}; may be repeated.",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(1),
    metavar="N",
    help="How many requests it may send to `harnpy serve` in a minute.",
)
@click.option(
    "--cost-per-day",
    type=click.FloatRange(0),
    metavar="USD",
    help="The cost of PRINCIPAL's sessions per day beyond which `harnpy serve` refuses prompts.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole session as JSON.")
@on_logs(_usual)
def create(
    logs: list[StoreEventLog],
    principal: str,
    days: float,
    scopes: Sequence[str],
    requests_per_minute: int | None,
    cost_per_day: float | None,
    as_json: bool,
) -> int:
    """Start a session for PRINCIPAL and print its token, which is shown only once and not stored."""
    now = utc_now()
    given = {
        "scopes": list(dict.fromkeys(scopes)),
        "requests_per_minute": requests_per_minute,
        "cost_per_day": cost_per_day,
    }
    attributes = {name: value for name, value in given.items() if value not in (None, [])}
    request = CreateSession(principal, now + timedelta(days=days), created_at=now, attributes=attributes)
    session = BearerSessions(logs[0]).create(request)
    say(compact_json(session.to_dict()) if as_json else str(session.id))
    return OK


@tokens.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@on_logs(_usual)
def list_tokens(logs: list[StoreEventLog], as_json: bool) -> int:
    """List the live sessions: their owners, expiry and scopes. Tokens aren't stored."""
    found = BearerSessions(logs[0]).live()
    if as_json:
        say(compact_json([known.payload() for known in found]))
    elif found:
        columns = ("principal", "scopes", "requests/min", "cost/day", "created", "last seen", "expires")
        rows = [_session_row(known) for known in found]
        tables.show(tables.table(columns, rows, columns[2:4]), tables.UNBROKEN)
    else:
        say(f"no live sessions in {_urls(logs)}")
    return OK


def _session_row(known: Known) -> tuple[Any, ...]:
    def attribute(name: str, shown: str = "{}") -> str:
        value = known.attributes.get(name)
        return "" if value is None else shown.format(value)

    scopes = known.attributes.get("scopes")
    times = (known.created_at, known.last_seen_at, known.expires_at)
    return (
        tables.cell(known.principal, 48),
        tables.cell(", ".join(map(str, scopes)) if isinstance(scopes, list) else attribute("scopes")),
        tables.cell(attribute("requests_per_minute")),
        tables.cell(attribute("cost_per_day", "${}")),
        *(tables.cell(moment.strftime("%Y-%m-%d %H:%M:%S")) for moment in times),
    )


@tokens.command("expire")
@click.argument("token")
@on_logs(_usual)
def expire(logs: list[StoreEventLog], token: str) -> int:
    """End the session of TOKEN at once. With - the token is read from stdin, where no one else sees it."""
    if token == "-":
        token = sys.stdin.readline().strip()
    if BearerSessions(logs[0]).expire(token):
        say("expired")
        return OK
    complain(f"error: {_urls(logs)} has no live session with that token")
    return FAILED
