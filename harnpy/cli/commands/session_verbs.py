"""The verbs of `harnpy sessions` about single sessions. Spec: 10 §C21."""

from __future__ import annotations

import os
import re
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from harnpy.agent.loop.step_request import request_of
from harnpy.cli import FAILED, OK
from harnpy.cli.commands.session_store import Context, failing, verb
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.show import session_lines
from harnpy.session.errors import EventNotFound, SessionLeased, SessionNotFound
from harnpy.session.events import Origin
from harnpy.session.kept.codec import SessionCodec, encode_event
from harnpy.session.kept.stored import StoredSession
from harnpy.session.log import KIND
from harnpy.session.trajectory.kept_episodes import KIND as EPISODES
from harnpy.storage import StorageError, open_store
from harnpy.storage.copying import copy_streams
from harnpy.storage.errors import LeaseHeld
from harnpy.storage.opening import parse_url
from harnpy.text.json.compact import compact_json
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.kept.past import Until
    from harnpy.storage import Store
    from harnpy.storage.leases import Lease

#: Seconds after which a session that still isn't free is driven: runtimes keep leases for a moment.
_PATIENCE = 0.5
#: How long one look for news takes at most, in seconds.
_GLANCE = 60.0
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def loaded(store: Store, id: str, until: Until | None = None) -> StoredSession:
    """Return the session, as it stood at ``until``. Raises `SessionNotFound`, `EventNotFound`."""
    session = StoredSession.load(id, store, World(), until)
    if session is None:
        raise SessionNotFound(id)
    return session


@contextmanager
def leased(store: Store, id: str) -> Iterator[Lease]:
    """Keep loops from the session. Raises `SessionLeased` when one drives it."""
    try:
        lease = store.lease(f"{KIND}:{id}", wait=_PATIENCE)
    except LeaseHeld as held:
        raise SessionLeased(f"{held.message}: wait for it, or end it", id) from held
    with lease:
        yield lease


@contextmanager
def idle(store: Store, id: str) -> Iterator[StoredSession]:
    """The session, while no loop drives it. Raises `SessionNotFound`, `SessionLeased`."""
    loaded(store, id)
    with leased(store, id) as lease:
        session = loaded(store, id)
        session.lease = lease
        yield session


@click.command("show")
@click.argument("id")
@click.option("--events", "what", flag_value="events", help="Show the events of the log.")
@click.option("--history", "what", flag_value="history", help="Show all messages, trimmed ones too.")
@click.option("--at", metavar="SEQ|EVENT|TIME", help="Show it as it was then.")
@click.option("--step", type=click.IntRange(1), metavar="N", help="Show what the model was asked at step N.")
@click.option("--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@verb
def show(
    store: Store, as_json: bool, id: str, what: str | None, at: str | None, step: int | None, follow: bool
) -> int:
    """Show what a model would see of a session: its window."""
    if step is not None and (what is not None or follow):
        raise click.UsageError("--step shows one request: leave out --events, --history and --follow")
    session = loaded(store, id, None if at is None else _until(at))
    if step is not None:
        request = request_of(session, step)
        say(compact_json(request) if as_json else session_lines.request(request))
    elif what == "events":
        _say_events(session.events(), as_json)
    elif what == "history":
        _say_messages(session.history(), as_json)
    else:
        _say_messages(session.messages(), as_json)
    if follow and at is None:
        _follow(store, session, as_json, events=what == "events")
    return OK


def _until(at: str) -> Until:
    """The number of an event, its id, or a moment in UTC."""
    if at.isdecimal():
        return int(at)
    if not _DATE.match(at):
        return at
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise click.BadParameter(f"'{at}' is no time: write 2026-01-31 or 2026-01-31T09:15:02Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _follow(store: Store, session: StoredSession, as_json: bool, events: bool) -> None:
    while True:
        seen = session.seq
        if store.changes(KIND, session.id, seen, _GLANCE) <= seen:
            continue
        session.refresh()
        news = session.events(after=seen)
        if events:
            _say_events(news, as_json)
        else:
            _say_messages([event.data for event in news if event.type == "message_added"], as_json)


def _say_events(events: Iterable[Event], as_json: bool) -> None:
    for event in events:
        say(compact_json(encode_event(event)) if as_json else session_lines.event(event))


def _say_messages(messages: Iterable[dict[str, Any]], as_json: bool) -> None:
    for message in messages:
        say(compact_json(message) if as_json else session_lines.message(message))


@click.command("search")
@click.argument("query")
@click.argument("id", required=False)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@verb
def search(store: Store, as_json: bool, query: str, id: str | None, limit: int) -> int:
    """Find what was said: every word of QUERY, "quoted phrases" as they stand, in ID or anywhere."""
    if id is not None and store.head(KIND, id) is None:
        raise SessionNotFound(id)
    found = store.search(query, codec=SessionCodec(Origin(id or "", World())), name=id, limit=limit)
    for hit in found:
        if as_json:
            say(compact_json({"session_id": hit.name, "seq": hit.seq, "type": hit.type, "text": hit.text}))
        else:
            say(f"{one_line(hit.name)}:{hit.seq}  {session_lines.excerpt(hit.text, query)}")
    return OK


@click.command("fork")
@click.argument("id")
@click.argument("new", required=False)
@click.option("--at", type=click.IntRange(1), metavar="SEQ", help="With the events up to that one.")
@verb
def fork(store: Store, as_json: bool, id: str, new: str | None, at: int | None) -> int:
    """Make a session NEW with ID's past. It costs the same at any length."""
    session = loaded(store, id)
    if at is not None and at > session.seq:
        raise EventNotFound(str(at), id)
    child = session.fork(new or World().ids.new(), at=at)
    say(compact_json(child.info._asdict()) if as_json else one_line(child.id))
    return OK


@click.command("rewind")
@click.argument("id")
@click.argument("turns", type=click.IntRange(1), default=1, metavar="[N]")
@verb
def rewind(store: Store, as_json: bool, id: str, turns: int) -> int:
    """Take back the last N turns, 1 unless said. What was said in them is shown."""
    with idle(store, id) as session:
        _say_messages(session.rewind(turns), as_json)
    return OK


@click.command("redo")
@click.argument("id")
@verb
def redo(store: Store, as_json: bool, id: str) -> int:
    """Bring back what the last rewind took, unless something was said since."""
    with idle(store, id) as session:
        _say_messages(session.redo(), as_json)
    return OK


@click.command("delete")
@click.argument("id")
@click.option("--hard", is_flag=True, help="Now and for good; without it, `gc` does that.")
@verb
def delete(store: Store, as_json: bool, id: str, hard: bool) -> int:
    """Delete a session. Forks keep what they share with it."""
    if store.head(KIND, id) is None:
        raise SessionNotFound(id)
    if hard:
        with leased(store, id):
            store.delete(KIND, id)
            store.delete(EPISODES, id)
    else:
        with idle(store, id) as session:
            session.set_status("deleted")
    say(compact_json({"deleted": id}) if as_json else one_line(f"deleted {id}"))
    return OK


@click.command("copy")
@click.argument("source", metavar="FROM_URL")
@click.argument("target", metavar="TO_URL")
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.pass_obj
@failing
def copy(context: Context, source: str, target: str, ids: tuple[str, ...]) -> int:
    """Copy sessions to another store, ids and events as they are. Made again, it goes on where it ended."""
    url = parse_url(source)
    if url.scheme in ("sqlite", "jsonl") and not os.path.exists(url.target):
        raise StorageError(f"there is no store at {source}")
    with closing(open_store(source)) as ours, closing(open_store(target)) as theirs:
        report = copy_streams(ours, theirs, KIND, ids or None)
        remembered = [id for id in (*report.copied, *report.skipped) if ours.head(EPISODES, id) is not None]
        report.errors.extend(copy_streams(ours, theirs, EPISODES, remembered).errors)
    if context.as_json:
        say(compact_json({**report._asdict(), "errors": [list(error) for error in report.errors]}))
    else:
        copied = session_lines.counted(len(report.copied), "session")
        say(f"{copied} copied, {len(report.skipped)} there already")
    for name, reason in report.errors:
        complain(one_line(f"error: {name}: {reason}"))
    return FAILED if report.errors else OK


VERBS = (show, search, fork, rewind, redo, delete, copy)
