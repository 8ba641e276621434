"""The conversations of a store, whoever keeps them there: sessions, and threads of LangGraph.

To list, find, search and copy them together. A name is a session's id, else a thread's; ``thread:ID`` is the
thread where a session has that id, too. LangGraph needn't be installed. Spec: 10 §C20, §C21.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.adapters.threads import KIND as CHECKPOINTS
from harnpy.adapters.threads import ThreadCodec, ThreadHistory, ThreadRecord
from harnpy.eventlog.topics import TOPIC
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.session.codec import SessionCodec
from harnpy.session.errors import SessionError, SessionNotFound
from harnpy.session.events import Origin
from harnpy.session.log import KIND as SESSIONS
from harnpy.session.trajectory import KIND as EPISODES
from harnpy.storage import Head, HeadQuery, Hit, StorageError, Store
from harnpy.storage.contract import mark, page
from harnpy.storage.copying import copy_streams, refuse_memory
from harnpy.storage.searching import holds, terms
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.session.past import Until

SESSION, THREAD = "session", "thread"
KINDS = (SESSION, THREAD)
#: What a store calls their streams.
_STREAMS = {SESSION: SESSIONS, THREAD: CHECKPOINTS}
_CALLED = {stream: kind for kind, stream in _STREAMS.items()}
_PREFIX = f"{THREAD}:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ThreadNotFound(SessionError):
    """No thread has that id."""

    code = "not_found"

    def __init__(self, id: str) -> None:
        super().__init__(f"Thread not found: '{id}'", id)
        self.id = id


class Conversation(NamedTuple):
    """A session or a thread of a store. As text, it is a name that finds it."""

    kind: str
    id: str

    def __str__(self) -> str:
        return self.id if self.kind == SESSION else f"{self.kind}:{self.id}"


def find(store: Store, name: str, kinds: Sequence[str] = KINDS) -> Conversation:
    """Return the conversation of that name and of one of these kinds.

    Raises `SessionNotFound`, `ThreadNotFound`.
    """
    if SESSION in kinds and store.head(SESSIONS, name) is not None:
        return Conversation(SESSION, name)
    id = name.removeprefix(_PREFIX)
    for thread in dict.fromkeys((id, name)) if THREAD in kinds else ():
        if store.head(CHECKPOINTS, thread) is not None:
            return Conversation(THREAD, thread)
    raise ThreadNotFound(id) if SESSION not in kinds or id != name else SessionNotFound(name)


# Lists.


class Listed(NamedTuple):
    """A part of a list. ``errors`` says which can't be shown, and why."""

    items: list[Head]
    next: str | None
    errors: list[tuple[Conversation, str]]


def kind_of(head: Head) -> str:
    """Return the kind of a head: a session's or a thread's."""
    return _CALLED[head.kind]


def heads(store: Store, query: HeadQuery, kinds: Sequence[str] = KINDS) -> Listed:
    """Return the page of these kinds that ``query`` asks for, whatever its own. Reads no conversation."""
    pages = {kind: store.heads(query._replace(kind=_STREAMS[kind])) for kind in kinds}
    errors = [(Conversation(kind, id), why) for kind in kinds for id, why in pages[kind].errors]
    merged = page([head for found in pages.values() for head in found.items], query)
    items = merged.items
    goes_on = items and (merged.next is not None or any(found.next is not None for found in pages.values()))
    return Listed(items, mark(items[-1], query) if goes_on else None, errors)


# Threads.


def thread_stream(store: Store, id: str) -> Any:
    """Return the stream of a thread."""
    return store.stream(CHECKPOINTS, id, ThreadCodec())


def thread_history(store: Store, id: str, until: Until | None = None) -> ThreadHistory:
    """Return a thread's checkpoints, as it was at a record's number or a time."""
    return ThreadHistory(_records(store, id, until))


def _records(store: Store, id: str, until: Until | None) -> Iterator[ThreadRecord]:
    end = until if isinstance(until, int) else None
    latest = (until - _EPOCH) // timedelta(microseconds=1) if isinstance(until, datetime) else None
    for record in thread_stream(store, id).read(until=end):
        if latest is None or record.time <= latest:  # tasks write at once: times needn't rise
            yield record


# Searches.


class Found(NamedTuple):
    """A record that a search has found, the first that holds the words."""

    conversation: Conversation
    seq: int
    type: str
    text: str


def search(
    store: Store,
    query: str,
    among: Conversation | None = None,
    kinds: Sequence[str] = KINDS,
    limit: int = 50,
) -> list[Found]:
    """Return where all the words and ``"phrases"`` of ``query`` were said, sessions first."""
    kinds = kinds if among is None else (among.kind,)
    id = None if among is None else among.id
    found: list[Found] = []
    if SESSION in kinds:
        codec = SessionCodec(Origin(id or "", World()))
        hits = store.search(query, SESSIONS, codec=codec, name=id, limit=limit)
        found += [Found(Conversation(SESSION, hit.name), hit.seq, hit.type, hit.text) for hit in hits]
    if THREAD in kinds and len(found) < limit:
        found += _in_threads(store, query, id, limit - len(found))
    return found


def _in_threads(store: Store, query: str, id: str | None, limit: int) -> list[Found]:
    """Search threads. Each checkpoint repeats its past, so there are more hits than what was said."""
    asked = limit * 4
    while True:
        hits = store.search(query, CHECKPOINTS, codec=ThreadCodec(), name=id, limit=asked)
        found = _first_said(hits, terms(query))
        if len(found) >= limit or len(hits) < asked:
            return found[:limit]
        asked *= 4


def _first_said(hits: Sequence[Hit], wanted: list[str]) -> list[Found]:
    """Return the hits with what they say that none before them said in the same thread."""
    said: set[tuple[str, str]] = set()
    found = []
    for hit in hits:
        lines = hit.text.split("\n")
        # A text alone, else all those that together have what is looked for.
        saying = [line for line in lines if holds(line, wanted)] or [
            line for line in lines if any(holds(line, [term]) for term in wanted)
        ]
        new = [line for line in dict.fromkeys(saying) if (hit.name, line) not in said]
        said.update((hit.name, line) for line in new)
        if new:
            found.append(Found(Conversation(THREAD, hit.name), hit.seq, hit.type, "\n".join(new)))
    return found


# Copies.


class Copied(NamedTuple):
    """The outcome of a copy. What is neither session nor thread has the kind of its stream."""

    copied: list[Conversation]
    skipped: list[Conversation]
    errors: list[tuple[Conversation, str]]


def copy(source: Store, target: Store, names: Sequence[str] = ()) -> Copied:
    """Copy the conversations of these names, and what they descend from; without names, all that there is.

    What a session's episodes are goes along. What goes wrong with one stream doesn't keep the others back.
    Others may write meanwhile: whatever a copied record points to is in the copy, too.
    """
    refuse_memory(source, target)
    report = Copied([], [], [])
    wanted = _wanted(source, names, report) if names else dict.fromkeys(_in_order(source))
    for stream, ids in wanted.items():
        done = copy_streams(source, target, stream, ids)
        kind = _CALLED.get(stream, stream)
        if kind != EPISODES:  # they are their session's
            report.copied.extend(Conversation(kind, id) for id in done.copied)
            report.skipped.extend(Conversation(kind, id) for id in done.skipped)
        report.errors.extend((Conversation(kind, id), why) for id, why in done.errors)
    return report


def _in_order(source: Store) -> list[str]:
    """Return the kinds of streams that a store has, each before those that its records point to."""
    last = [EPISODES, CHECKPOINTS, TOPIC, SESSIONS]
    kinds = source.kinds()
    kinds.pop(CHUNKS, None)  # what is being said goes along once it is said
    return sorted(kinds.keys() - last) + [kind for kind in last if kind in kinds]


def _wanted(source: Store, names: Sequence[str], report: Copied) -> dict[str, list[str] | None]:
    """Return the ids of the named conversations by the kind of stream; what isn't there is an error."""
    wanted: dict[str, list[str]] = {EPISODES: [], SESSIONS: [], CHECKPOINTS: []}
    for name in names:
        try:
            found = find(source, name)
        except (SessionError, StorageError) as error:
            kind = THREAD if isinstance(error, ThreadNotFound) else SESSION
            one = Conversation(kind, error.id if isinstance(error, ThreadNotFound) else name)
            there_is_none = f"there is no {kind} '{one.id}' in {source.url}"
            report.errors.append((one, str(error) if isinstance(error, StorageError) else there_is_none))
        else:
            wanted[_STREAMS[found.kind]].append(found.id)
            if found.kind == SESSION and source.head(EPISODES, found.id) is not None:
                wanted[EPISODES].append(found.id)
    return dict(wanted)
