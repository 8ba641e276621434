"""`harnpy tokens`: who may call a service, until when. Spec: 10 §C21, 08 §16."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.commands.event_store import store_option, verb
from harnpy.cli.console import complain, say
from harnpy.eventlog.bearer import BearerSessions, CreateSession, utc_now
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.eventlog.topics import StoreEventLog


@click.group("tokens", short_help="Give out and revoke tokens of a service.")
@store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Who may call a service that stands behind BearerAuth.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = store


@command.command("create")
@click.argument("principal")
@click.option(
    "--days", type=click.FloatRange(0, 36_500, min_open=True), default=30, show_default=True, metavar="N"
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole session as JSON.")
@verb
def create(log: StoreEventLog, principal: str, days: float, as_json: bool) -> int:
    """Begin a session of PRINCIPAL and print its token. It is shown this once and kept nowhere."""
    now = utc_now()
    request = CreateSession(principal, now + timedelta(days=days), created_at=now)
    session = BearerSessions(log).create(request)
    say(compact_json(session.to_dict()) if as_json else str(session.id))
    return OK


@command.command("expire")
@click.argument("token")
@verb
def expire(log: StoreEventLog, token: str) -> int:
    """End the session of TOKEN at once. With - the token is read from stdin, where no one else sees it."""
    if token == "-":
        token = sys.stdin.readline().strip()
    if BearerSessions(log).expire(token):
        say("expired")
        return OK
    complain(f"error: {log.store.url} has no live session with that token")
    return FAILED
