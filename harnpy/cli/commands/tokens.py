"""`harnpy tokens`: who may call a service, until when. Spec: 10 §C21, 08 §16."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, one_line, say
from harnpy.eventlog.bearer import BearerSessions, CreateSession, DurableSessionError, utc_now
from harnpy.eventlog.errors import LogError
from harnpy.eventlog.opening import opened
from harnpy.eventlog.settings import event_log_settings, usual_settings
from harnpy.eventlog.topics import StoreEventLog
from harnpy.project import ManifestError
from harnpy.text.json.compact import compact_json
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable


@click.group("tokens", short_help="Give out and revoke tokens of a service.")
@click.option("--store", metavar="URL", help="Where events are kept, in place of the configured one.")
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Who may call a service that stands behind BearerAuth.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = store


def _verb(function: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the sessions, and report what goes wrong in one line."""

    @click.pass_obj
    @wraps(function)
    def run(url: str | None, /, **arguments: Any) -> int:
        try:
            if url is None:
                url = (event_log_settings(World()) or usual_settings(World())).url
            with closing(StoreEventLog(opened(url))) as log:
                return function(log, **arguments)
        except (LogError, DurableSessionError, ManifestError) as error:
            complain(f"error: {one_line(error.message)}")
            return FAILED

    return run


@command.command("create")
@click.argument("principal")
@click.option(
    "--days", type=click.FloatRange(0, 36_500, min_open=True), default=30, show_default=True, metavar="N"
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole session as JSON.")
@_verb
def create(log: StoreEventLog, principal: str, days: float, as_json: bool) -> int:
    """Begin a session of PRINCIPAL and print its token. It is shown this once and kept nowhere."""
    now = utc_now()
    request = CreateSession(principal, now + timedelta(days=days), created_at=now)
    session = BearerSessions(log).create(request)
    say(compact_json(session.to_dict()) if as_json else str(session.id))
    return OK


@command.command("expire")
@click.argument("token")
@_verb
def expire(log: StoreEventLog, token: str) -> int:
    """End the session of TOKEN at once. With - the token is read from stdin, where no one else sees it."""
    if token == "-":
        token = sys.stdin.readline().strip()
    if BearerSessions(log).expire(token):
        say("expired")
        return OK
    complain(f"error: {log.store.url} has no live session with that token")
    return FAILED
