"""`harnpy sessions`: list, show, search, fork, rewind, copy, export and import stored sessions.

Threads of LangGraph are listed, shown, searched and copied with them. Spec: 10 §C17, §C21.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click

from harnpy.adapters import conversations
from harnpy.adapters.conversations import KINDS, SESSION, THREAD, Conversation
from harnpy.adapters.savers import import_threads
from harnpy.agent.loop.transcript_entries import request_of
from harnpy.cli import FAILED, OK, session_views, tables, thread_views
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import complain, counted, has_colour, one_line, say, say_folded
from harnpy.cli.usage import Group
from harnpy.client.types import ShareScope
from harnpy.eventlog.agent_events import topic_of
from harnpy.eventlog.topics import TOPIC, event_log_settings, usual_settings
from harnpy.formats.json import compact_json
from harnpy.project import IN_FILES, ManifestError
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.session.codec import encode_event
from harnpy.session.erasure import erase
from harnpy.session.errors import EventNotFound, SessionError, SessionLeased
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.stores import store_settings
from harnpy.session.trajectory import KIND as EPISODES
from harnpy.session.transfer.admission import Loss
from harnpy.session.transfer.databases import LANGGRAPH
from harnpy.session.transfer.directories import export_dir, import_sessions
from harnpy.session.transfer.formats import (
    AUTO,
    ERROR,
    FORMATS,
    PAGES,
    READ,
    RENAME,
    SKIP,
    UPDATE,
    admitted,
    export,
    lost,
    parsed_one,
)
from harnpy.session.transfer.logs import BESIDE
from harnpy.storage import Head, HeadQuery, StorageError, Store, open_store
from harnpy.storage.contract import all_heads
from harnpy.storage.errors import CorruptLog, LeaseHeld, NoStore
from harnpy.storage.opening import parse_url, shown
from harnpy.storage.upgrading import upgrade_store
from harnpy.world import World
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.past import Until
    from harnpy.session.transfer.directories import ImportReport
    from harnpy.session.transfer.foreign import Branch
    from harnpy.storage.leases import Lease

    Kinds = tuple[str, ...]

# What every verb of `harnpy sessions` needs: the store, and errors in one line. Spec: 10 §C21.


class Context:
    """The options before the verb."""

    def __init__(self, url: str | None, as_json: bool) -> None:
        self.as_json = as_json
        self._url = url

    def store(self) -> Store:
        """Open the store."""
        return open_store(self._url or store_settings(World()).url)


def failing(function: Callable[..., int]) -> Callable[..., int]:
    """Report what goes wrong with a store or a session in one line."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            return function(*arguments, **options)
        except (StorageError, SessionError, ManifestError) as error:
            complain(f"error: {one_line(str(error))}{_advice(error)}")
            return FAILED

    return run


def _advice(error: Exception) -> str:
    """Return advice that isn't in the error."""
    damaged = isinstance(error, CorruptLog) and error.line is not None
    return "; `harnpy sessions fsck --repair` saves what can be read" if damaged else ""


def verb(function: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the open store, and whether to print JSON."""

    @click.pass_obj
    @failing
    @wraps(function)
    def run(context: Context, /, **arguments: Any) -> int:
        with closing(context.store()) as store:
            return function(store, context.as_json, **arguments)

    return run


# The verbs of `harnpy sessions` about single sessions. Spec: 10 §C21.


#: Seconds after which a session that still isn't free is driven: runtimes keep leases for a moment.
_PATIENCE = 0.5
#: How long one look for news takes at most, in seconds.
_GLANCE = 60.0
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
#: What to do with a thread instead, by the verb that is for sessions.
_FOR_THREADS = {
    "fork": "HarnpySaver.copy_thread copies it",
    "rewind": "LangGraph goes on from any checkpoint of it",
    "share": "`harnpy serve` serves no threads",
    "redo": "LangGraph goes on from any checkpoint of it",
    "delete": "HarnpySaver.delete_thread deletes it",
    "export": "`harnpy sessions copy` takes it to another store",
    "tree": "`harnpy sessions show` shows it",
}

kind_option = click.option(
    "--kind",
    type=click.Choice((*KINDS, "all")),
    default="all",
    show_default=True,
    callback=lambda _, __, kind: KINDS if kind == "all" else (kind,),
    help="Sessions, or LangGraph threads.",
)


def loaded(store: Store, id: str, until: Until | None = None) -> StoredSession:
    """Return the session, as it stood at ``until``. Raises `SessionNotFound`, `EventNotFound`."""
    session = StoredSession.load(id, store, World(), until)
    if session is None:
        raise missing(store, id)
    return session


def missing(store: Store, id: str) -> SessionError:
    """Return the error of a verb that found no session of that id."""
    try:
        conversations.find(store, id)
    except SessionError as error:
        return error
    verb = str(click.get_current_context().info_name)
    return SessionError(
        f"'{id}' is a thread of LangGraph, and `{verb}` is for sessions: {_FOR_THREADS[verb]}", id
    )


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
@click.option("--history", "what", flag_value="history", help="Show all messages, including trimmed ones.")
@click.option("--at", metavar="SEQ|EVENT|TIME", help="Show it as it was at that point.")
@click.option("--step", type=click.IntRange(1), metavar="N", help="Show what the model was asked at step N.")
@click.option("--follow", is_flag=True, help="Continue with new events until interrupted.")
@verb
def show(
    store: Store, as_json: bool, id: str, what: str | None, at: str | None, step: int | None, follow: bool
) -> int:
    """Show what a model would see of a session: its window.

    For a LangGraph thread, show the state at its last checkpoint; --history shows all checkpoints, and --at
    may name one. If a session has the same id, thread:ID is the thread.
    """
    if step is not None and (what is not None or follow):
        raise click.UsageError("--step shows one request: leave out --events, --history and --follow")
    until = None if at is None else _until(at)
    found = conversations.find(store, id)
    if found.kind == THREAD:
        if step is not None:
            raise SessionError(f"'{id}' is a thread of LangGraph, which keeps no requests to models", id)
        thread_views.show_thread(store, as_json, found.id, what, until, follow=follow and at is None)
        return OK
    session = loaded(store, id, until)
    if step is not None:
        request = request_of(session, step)
        say(compact_json(request) if as_json else session_views.request_lines(request))
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
        say(compact_json(encode_event(event)) if as_json else session_views.event_line(event))


def _say_messages(messages: Iterable[dict[str, Any]], as_json: bool) -> None:
    for message in messages:
        say(compact_json(message) if as_json else session_views.message_lines(message))


@click.command("search")
@click.argument("query")
@click.argument("id", required=False)
@kind_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@verb
def search(store: Store, as_json: bool, query: str, id: str | None, kind: Kinds, limit: int) -> int:
    """Find text: every word of QUERY, or exact "quoted phrases", in ID or anywhere."""
    among = None if id is None else conversations.find(store, id, kind)
    for hit in conversations.search(store, query, among, kind, limit):
        where = hit.conversation
        if as_json:
            named = {"session_id" if where.kind != THREAD else "thread_id": where.id}
            said = {"kind": where.kind, **named, "seq": hit.seq, "type": hit.type, "text": hit.text}
            say(compact_json(said))
        else:
            say_folded(f"{one_line(str(where))}:{hit.seq}  {session_views.excerpt(hit.text, query)}")
    return OK


@click.command("fork")
@click.argument("id")
@click.argument("new", required=False)
@click.option("--at", type=click.IntRange(1), metavar="SEQ", help="With the events up to this one.")
@verb
def fork(store: Store, as_json: bool, id: str, new: str | None, at: int | None) -> int:
    """Create a session NEW with ID's past, at the same cost for any length."""
    session = loaded(store, id)
    if at is not None and at > session.seq:
        raise EventNotFound(str(at), id)
    child = session.fork(new or World().ids.new(), at=at)
    say(compact_json(child.info._asdict()) if as_json else one_line(child.id))
    return OK


@click.command("share")
@click.argument("id")
@click.argument("principal", required=False)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(get_args(ShareScope)),
    multiple=True,
    help="What for (default read); may be repeated.",
)
@click.option("--remove", is_flag=True, help="Take the share back.")
@verb
def share(
    store: Store, as_json: bool, id: str, principal: str | None, scopes: tuple[str, ...], remove: bool
) -> int:
    """Share a session at `harnpy serve` with PRINCIPAL; without one, show who it is shared with."""
    from harnpy.serve import sharing
    from harnpy.serve.refusals import Refused
    from harnpy.session.runtime import SessionRuntime

    if remove and (scopes or principal is None):
        raise click.UsageError("--remove takes a PRINCIPAL, and no --scope")
    shared = sharing.belongs(store, loaded(store, id).info)
    if principal is not None:
        with closing(SessionRuntime(store)) as runtime:
            try:
                shared = sharing.share(runtime, id, principal, () if remove else scopes or ("read",))
            except Refused as refusal:
                complain(f"error: {one_line(str(refusal))}")
                return FAILED
    found = sharing.shown_shares(shared.shares)
    if as_json:
        say(compact_json({"session": id, "owner": shared.owner, "shares": found}))
    elif found:
        rows = [(tables.cell(who, 48), tables.cell(", ".join(given))) for who, given in found.items()]
        tables.show(tables.table(("principal", "scopes"), rows), tables.UNBROKEN)
    else:
        say(one_line(f"session '{id}' is shared with nobody"))
    return OK


@click.command("rewind")
@click.argument("id")
@click.argument("turns", type=click.IntRange(1), default=1, metavar="[N]")
@verb
def rewind(store: Store, as_json: bool, id: str, turns: int) -> int:
    """Take back the last N turns (default 1) and show what was said in them."""
    with idle(store, id) as session:
        _say_messages(session.rewind(turns), as_json)
    return OK


@click.command("redo")
@click.argument("id")
@verb
def redo(store: Store, as_json: bool, id: str) -> int:
    """Restore what the last rewind took back, unless something was said since."""
    with idle(store, id) as session:
        _say_messages(session.redo(), as_json)
    return OK


@click.command("delete")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--hard", is_flag=True, help="Erase at once; otherwise `gc` does it later.")
@click.option("--everywhere", is_flag=True, help="With --hard: leave none of the text in any file.")
@verb
def delete(store: Store, as_json: bool, ids: tuple[str, ...], hard: bool, everywhere: bool) -> int:
    """Delete sessions. Forks keep the part that they share.

    --everywhere also cleans the store's free space, index and logs, durable runs, artifacts, records of
    runs and workers, checkpoints and logs of the project. It refuses if forks that aren't named, or
    unfinished runs, contain the text.
    """
    if everywhere and not hard:
        raise click.UsageError("--everywhere is for good: add --hard")
    for id in ids:
        if store.head(KIND, id) is None:
            raise missing(store, id)
    if everywhere:
        return _erase(store, as_json, ids)
    for id in ids:
        if hard:
            with leased(store, id):
                store.delete(KIND, id)
                store.delete(EPISODES, id)
                store.delete(CHUNKS, id)
        else:
            with idle(store, id) as session:
                session.set_status("deleted")
        say(compact_json({"deleted": id}) if as_json else one_line(f"deleted {id}"))
    return OK


def _erase(store: Store, as_json: bool, ids: tuple[str, ...]) -> int:
    world = World()
    erased = erase(store, ids, world, lambda id: leased(store, id))
    events = parse_url((event_log_settings(world) or usual_settings(world)).url)
    if events.scheme not in IN_FILES or os.path.exists(events.target):
        with closing(open_store(f"{events.scheme}:{events.target}")) as log:
            log.erase([(TOPIC, topic_of(id)) for id in ids])
    if as_json:
        say(compact_json(erased._asdict()))
        return OK
    kinds = {
        "session": erased.sessions,
        "run": erased.runs,
        "artifact": erased.artifacts,
        "file": erased.files,
    }
    for what, names in kinds.items():
        for name in names:
            say(one_line(f"erased {what} {name}"))
    for note in erased.notes:
        complain(one_line(f"note: {note}"))
    return OK


@click.command("copy")
@click.argument("source", metavar="FROM_URL")
@click.argument("target", metavar="TO_URL")
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.pass_obj
@failing
def copy(context: Context, source: str, target: str, ids: tuple[str, ...]) -> int:
    """Copy sessions and threads to another store, with their ids and events.

    Without IDs, copy everything in the store, including runs, topics and waitpoints: a backup, even while
    others write. Run it again to continue where it stopped.
    """
    url = parse_url(source)
    if url.scheme in IN_FILES and not os.path.exists(url.target):
        raise NoStore(source)
    with closing(open_store(source)) as ours, closing(open_store(target)) as theirs:
        report = conversations.copy(ours, theirs, ids)
    if context.as_json:
        done = {"copied": [*map(str, report.copied)], "skipped": [*map(str, report.skipped)]}
        errors = [[str(one), reason] for one, reason in report.errors]
        say(compact_json({**done, "errors": errors}))
    else:
        say(f"{_counted_kinds(report.copied)} copied, {len(report.skipped)} there already")
    for one, reason in report.errors:
        complain(one_line(f"error: {one}: {reason}"))
    return FAILED if report.errors else OK


@click.command("upgrade")
@click.argument("url", metavar="URL")
@click.option("--dry-run", is_flag=True, help="Report the store's version, and change nothing.")
@click.pass_obj
@failing
def upgrade(context: Context, url: str, dry_run: bool) -> int:
    """Raise a store's version to the newest one. Older versions of harnpy can't use it from then on.

    Nothing else raises it: a store keeps the version it was created with.
    """
    report = upgrade_store(url, dry_run=dry_run)
    if context.as_json:
        say(compact_json(report._asdict()))
    elif report.found == report.newest:
        say(f"{report.url} has format {report.found}, the newest one")
    else:
        would = "would raise" if dry_run else "raised"
        say(f"{would} {report.url} from format {report.found} to {report.newest}")
    return OK


def _counted_kinds(found: list[Conversation]) -> str:
    """Return how many of each kind there are; only sessions are mentioned where there are none."""
    numbers = Counter(one.kind for one in found)
    kinds = [SESSION, *sorted(numbers.keys() - {SESSION}, key=lambda kind: (kind != THREAD, kind))]
    *most, last = [counted(numbers[kind], kind) for kind in kinds]
    return f"{', '.join(most)} and {last}" if most else last


VERBS = (show, search, fork, share, rewind, redo, delete, copy, upgrade)


# `harnpy sessions export` and `import`: files of harnpy and of other systems. Spec: 10 §C17, §C21.


_NAMES = tuple(format.name for format in FORMATS)


@click.command("export")
@click.argument("id", required=False)
@click.option("--all", "everything", is_flag=True, help="Export all sessions, one file each.")
@click.option(
    "--format",
    type=click.Choice(_NAMES),
    metavar="F",
    default="jsonl",
    show_default=True,
    help=f"The file's format: {', '.join(_NAMES)}.",
)
@click.option("-o", "--out", metavar="PATH", help="A file, or a directory with --all; by default stdout.")
@click.option("--strict", is_flag=True, help="Write nothing if the format can't hold everything.")
@verb
def export_(
    store: Store, as_json: bool, id: str | None, everything: bool, format: str, out: str | None, strict: bool
) -> int:
    """Write a session to a file that `import` can read back.

    jsonl contains the whole log, one event per line. What another format can't represent is listed on
    stderr and written beside the file, to FILE.harn.json, so that `import FILE` restores the whole session.
    markdown and html are for people and can't be imported.
    """
    if everything == (id is not None):
        raise click.UsageError("name a session, or pass --all")
    if id is None:
        if out is None:
            raise click.UsageError("--all needs -o DIRECTORY")
        report = export_dir(store, out, format, strict=strict)
        for path in report.exported:
            say(f"session: {path}")
        _say_lost(report.losses)
        if report.losses and format not in PAGES:
            complain(f"kept: what a FILE doesn't hold is in FILE{BESIDE}, and is imported with it")
        return _say_errors(report.errors)
    _refuse_record(id)
    session = loaded(store, id)
    text = export(session, format, out, strict=strict)
    if out is None:
        click.echo(text, nl=False)
    else:
        say(f"session: {out}")
    losses = lost(session, format)
    _say_lost(losses)
    if losses and out is not None and format not in PAGES:
        complain(one_line(f"kept: {out}{BESIDE} holds the rest, and is imported with {out}"))
    return OK


def _refuse_record(id: str) -> None:
    """Say what to do with a run record, which is no session."""
    if id.endswith(".json") and os.path.exists(id):
        raise click.ClickException(f"this is a run record: `harnpy bundle export {id}`")


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    type=click.Choice((AUTO, *_NAMES, *READ)),
    metavar="F",
    default=AUTO,
    show_default=True,
    help=f"The files' format: {', '.join((AUTO, *_NAMES, *READ))}.",
)
@click.option("--id", metavar="ID", help="The session's id, instead of its own; for a file with one.")
@click.option(
    "--prefix",
    metavar="TEXT",
    help="What the ids of other tools' sessions begin with, instead of the tool's name: '' keeps their own.",
)
@click.option(
    "--on-conflict",
    type=click.Choice((UPDATE, ERROR, SKIP, RENAME)),
    help="What to do if the session's id exists. By default `update` for other tools' files, which adds new "
    "events, and `error` for the rest.",
)
@click.option("--partial", is_flag=True, help="Leave out lines that can't be read, and list them.")
@click.option(
    "--strict",
    is_flag=True,
    expose_value=False,
    help="Without effect: a file is imported completely or not at all, and losses are listed.",
)
@click.option(
    "--checkpoints", is_flag=True, help="Copy LangGraph's threads unchanged, for use with HarnpySaver."
)
@verb
def import_(
    store: Store,
    as_json: bool,
    paths: tuple[str, ...],
    format: str,
    id: str | None,
    prefix: str | None,
    on_conflict: str | None,
    partial: bool,
    checkpoints: bool,
) -> int:
    """Create sessions from files of `export`, other tools and frameworks; docs/import.md lists them.

    Message files of OpenAI, Anthropic, Gemini, Ollama and ShareGPT can be imported, too.

    A directory is searched: `harnpy sessions import ~/.claude/projects ~/.codex/sessions`. A bad file
    doesn't affect the others.
    """
    if id is not None and (len(paths) > 1 or os.path.isdir(paths[0])):
        raise click.UsageError("--id is for one file")
    if id is not None and prefix is not None:
        raise click.UsageError("--id is the whole id: leave out --prefix")
    if checkpoints:
        if id or prefix is not None or on_conflict or partial or format not in (AUTO, LANGGRAPH):
            raise click.UsageError("--checkpoints goes with none of the other options")
        return _import_threads(store, as_json, paths)
    status = OK
    for path in paths:
        try:
            if id is None:
                with _progress() as progress:
                    report = import_sessions(
                        [path],
                        store,
                        format,
                        on_conflict=on_conflict,
                        partial=partial,
                        prefix=prefix,
                        progress=progress,
                    )
                status |= _say_report(as_json, shown(path), report, on_conflict)
            else:
                _import_one(store, as_json, path, format, id, on_conflict)
        except (SessionError, StorageError, OSError, UnicodeDecodeError) as error:
            complain(one_line(f"error: {path}: {plain_reason(error)}"))
            status = FAILED
    return status


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows a bar on a terminal's stderr, of the bytes that are done."""
    if not has_colour(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


def _say_report(as_json: bool, path: str, report: ImportReport, on_conflict: str | None) -> int:
    for id in report.imported:
        _say_imported(as_json, path, id)
    for skipped in report.skipped:
        _say_imported(as_json, skipped, None, on_conflict)
    _say_lost(report.losses)
    _say_branches(report.branches)
    return _say_errors(report.errors)


def _import_threads(store: Store, as_json: bool, paths: tuple[str, ...]) -> int:
    status = OK
    for path in paths:
        report = import_threads([path], store)
        for id in report.imported:
            _say_imported(as_json, shown(path), str(Conversation(THREAD, id)))
        for id in report.skipped:
            _say_imported(as_json, f"{shown(path)}: {Conversation(THREAD, id)}", None)
        status |= _say_errors(report.errors)
    return status


def _import_one(
    store: Store,
    as_json: bool,
    path: str,
    format: str,
    id: str | None,
    on_conflict: str | None,
) -> None:
    parsed = parsed_one(path, World(), format)
    _say_imported(as_json, path, admitted(parsed, store, World(), id, on_conflict), on_conflict)
    _say_lost(parsed.losses)
    _say_branches(parsed.branches)


def _say_imported(as_json: bool, path: str, id: str | None, on_conflict: str | None = None) -> None:
    reason = "there is one already" if on_conflict == SKIP else "nothing new"
    if as_json:
        say(compact_json({"path": path, "session_id": id}))
    else:
        say(one_line(id or f"{path}: skipped ({reason})"))


def _say_branches(branches: Iterable[Branch]) -> None:
    for branch in branches:
        complain(one_line(f"branch: {branch}"))


def _say_lost(losses: Iterable[Loss]) -> None:
    for loss in losses:
        complain(one_line(f"lost: {loss}"))


def _say_errors(errors: Iterable[tuple[str, str]]) -> int:
    status = OK
    for name, reason in errors:
        complain(one_line(f"error: {name}: {reason}"))
        status = FAILED
    return status


TRANSFERS = (export_, import_)


# `harnpy sessions`: the conversations that are kept in a store. Spec: 10 §C21.


_AGE = re.compile(r"(\d+)([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DELETED = frozenset({"deleted"})


@click.group(
    "sessions", cls=Group, short_help="List, show and manage stored sessions.", no_args_is_help=False
)
@click.option("--store", metavar="URL", help="Instead of HARN_SESSION_STORE and harn.toml.")
@trust_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, store: str | None, as_json: bool) -> None:
    """List, show, search, copy and delete the conversations in a store.

    A store's URL is sqlite:FILE, jsonl:DIRECTORY or postgresql://…
    """
    context.obj = Context(store, as_json)


@command.command("list")
@kind_option
@click.option("--status", metavar="S", help="Only sessions with this status.")
@click.option("--agent", metavar="A", help="Only this agent's.")
@click.option("--deleted", is_flag=True, help="Include deleted ones.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@verb
def list_sessions(
    store: Store,
    as_json: bool,
    kind: Kinds,
    status: str | None,
    agent: str | None,
    deleted: bool,
    limit: int,
) -> int:
    """List the sessions and LangGraph threads, most recently written first.

    A thread has no status and no agent.
    """
    query = HeadQuery(
        statuses=frozenset({status}) if status else None,
        without=frozenset() if deleted or status else _DELETED,
        agent=agent,
        limit=limit,
    )
    page = conversations.heads(store, query, kind)
    if as_json:
        errors = [{**one._asdict(), "error": reason} for one, reason in page.errors]
        items = [session_views.head_as_dict(head) for head in page.items]
        say(compact_json({"items": items, "next": page.next, "errors": errors}))
    elif page.items:
        tables.show(session_views.heads(page.items), tables.UNBROKEN)
    elif not page.errors:
        say(f"no {' or '.join(f'{one}s' for one in kind)} in {store.url}")
    for one, reason in page.errors:
        complain(one_line(f"warning: {one}: {reason}"))
    return OK


@command.command("tree")
@click.argument("id", required=False)
@verb
def tree(store: Store, as_json: bool, id: str | None) -> int:
    """Show which session was forked from which, or what was forked from ID."""
    found = _all(store)
    if id is not None and all(head.name != id for head in found):
        raise missing(store, id)
    if as_json:
        say(compact_json([session_views.head_as_dict(head) for head in found]))
        return OK
    for view in session_views.stored_tree(found, id):
        tables.show(view, tables.UNBROKEN)
    return OK


@command.command("gc")
@click.option("--older-than", metavar="AGE", callback=lambda _, __, text: _seconds(text), help="E.g. 30d.")
@click.option("--dry-run", is_flag=True, help="Only report what would be erased.")
@verb
def gc(store: Store, as_json: bool, older_than: float | None, dry_run: bool) -> int:
    """Erase deleted sessions, what only they refer to, and other leftovers."""
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
    """Return the heads of all sessions that aren't deleted, in the order in which they were made."""
    return [*all_heads(store, HeadQuery(without=_DELETED, order="created"))][::-1]


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
