"""harnpy's stores as the Claude Agent SDK's `SessionStore`: `HarnpySessionStore`. Spec: 10 §C20.

Each transcript, an agent's as well, is a session: its lines are kept as they are, and the messages among them
are those that `harnpy sessions import` makes of such a transcript. Extra: ``claude-agent-sdk``.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from harnpy.adapters.session_memory import DEFAULT_STORE, SessionMemory
from harnpy.formats.dicts import detached
from harnpy.session.codec import SessionCodec
from harnpy.session.errors import TransferError
from harnpy.session.events import Origin, micros
from harnpy.session.log import KIND
from harnpy.session.transfer import claude_code, originals
from harnpy.session.transfer.admission import as_append
from harnpy.session.transfer.foreign import Growth, Rows
from harnpy.session.transfer.listed import understood
from harnpy.storage import HeadQuery, open_store
from harnpy.version import install_command
from harnpy.world import World

try:
    from claude_agent_sdk import fold_session_summary
except ImportError as error:
    raise ImportError(
        f"harnpy.adapters.claude_agent_sdk needs the Claude Agent SDK: {install_command('claude-agent-sdk')}"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

    from harnpy.session.events import Event
    from harnpy.session.stored import StoredSession
    from harnpy.session.transfer.foreign import Conversation, Row
    from harnpy.storage import Head, Store

    Json = dict[str, Any]

#: Lines of a transcript: {lines, events, summary}; long texts stand in the ``events`` before it, which are of
#: the same append, and the summary is what the SDK makes of all lines up to there.
LINES = "transcript_lines"
#: How many characters a session's id may have, and how many transcripts are held in memory.
_LONGEST, _HELD = 200, 16


class HarnpySessionStore:
    """Transcripts in a store.

    ``store`` is a store's URL, e.g. ``sqlite:.harn/sessions.db``, or an open store, which stays the caller's
    to close. Safe to use from many tasks and processes: an `append` is written whole or not at all, and lines
    whose ``uuid`` is there already are left out.
    """

    def __init__(self, store: Store | str = DEFAULT_STORE) -> None:
        self._store = open_store(store) if isinstance(store, str) else store
        self._held: dict[str, _Transcript] = {}
        self._lock = Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add lines to a transcript. Raises `InvalidSessionId`, and `EventRejected` for what isn't JSON."""
        if entries:
            await asyncio.to_thread(self._transcript(key).append, cast("list[Json]", entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all lines of a transcript; None when there are none."""
        return cast("list[SessionStoreEntry] | None", await asyncio.to_thread(self._load, key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the transcripts of a project, without those of agents."""
        found = await asyncio.to_thread(self._list, project_key)
        return [{"session_id": id, "mtime": head.updated // 1000} for id, head in found]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return what the SDK shows of the transcripts of a project, without those of agents."""
        return await asyncio.to_thread(self._summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript for good; that of a session with those of its agents."""
        await asyncio.to_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of the transcripts that belong to a session."""
        return await asyncio.to_thread(self._subpaths, session_id(key))

    def _transcript(self, key: SessionKey) -> _Transcript:
        id = session_id(key)
        with self._lock:
            found = self._held.pop(id, None) or _Transcript(key, self._store)
            self._held[id] = found
            while len(self._held) > _HELD:
                del self._held[next(iter(self._held))]
        return found

    def _load(self, key: SessionKey) -> list[Json] | None:
        if self._store.head(KIND, session_id(key)) is None:
            return None
        return detached(self._transcript(key).lines()) or None

    def _list(self, project: str) -> list[tuple[str, Head]]:
        """Return the ids and heads of a project's transcripts."""
        before = session_id({"project_key": project, "session_id": ""})
        found = self._heads(HeadQuery(KIND, agent=_agent(project)))
        named = [(head.name.removeprefix(before), head) for head in found if head.name.startswith(before)]
        return [(_unescaped(name), head) for name, head in named if "/" not in name]

    def _summaries(self, project: str) -> list[SessionSummaryEntry]:
        summaries: list[SessionSummaryEntry] = []
        for id, head in self._list(project):
            stream = self._store.stream(KIND, head.name, SessionCodec(Origin(head.name, World())))
            for event in stream.read(types=frozenset({LINES}), reverse=True, limit=1):
                data = event.body.get("summary") or {}
                summaries.append({"session_id": id, "mtime": head.updated // 1000, "data": data})
        return summaries

    def _subpaths(self, id: str) -> list[str]:
        names = [head.name for head in self._heads(HeadQuery(KIND, agent=_agent(id), order="created"))]
        return [name.removeprefix(f"{id}/") for name in names if name.startswith(f"{id}/")]

    def _delete(self, key: SessionKey) -> None:
        id = session_id(key)
        for name in [*(f"{id}/{path}" for path in self._subpaths(id)), id]:
            with self._lock:
                self._held.pop(name, None)
            self._store.delete(KIND, name)

    def _heads(self, query: HeadQuery) -> Iterator[Head]:
        while True:
            page = self._store.heads(query)
            yield from page.items
            if page.next is None:
                return
            query = query._replace(after=page.next)


def session_id(key: SessionKey | SessionListSubkeysKey) -> str:
    """Return the id of a transcript's session: ``claude-code/project/session``, for an agent's ``/subpath``
    behind it.

    A project's key that is too long is its digest.
    """
    project = _escaped(key["project_key"])
    rest, subpath = _escaped(key["session_id"]), cast("str | None", key.get("subpath"))
    if len(project) > _LONGEST // 2:
        project = f"~{sha256(project.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    id = f"{claude_code.TOOL}/{project}/{rest}"  # a project's key begins with a dash, as options do
    return f"{id}/{subpath}" if subpath else id


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _unescaped(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


def _agent(owner: str) -> str:
    """Return what the transcripts of a project, or of a session's agents, have as their agent's name: lists
    filter by it."""
    return f"{claude_code.TOOL}:{owner}"


class _Transcript:
    """A transcript, and what was read of it."""

    def __init__(self, key: SessionKey, store: Store) -> None:
        main = session_id({"project_key": key["project_key"], "session_id": key["session_id"]})
        self._is_agents = bool(key.get("subpath"))
        owner, parent = (main, main) if self._is_agents else (key["project_key"], None)
        self._memory = SessionMemory(
            session_id(key), store, facts={"agent_name": _agent(owner)}, parent=parent
        )
        self._key = key
        self._lines: list[Json] = []
        self._summary: SessionSummaryEntry | None = None
        self._upto = 0

    def lines(self) -> list[Json]:
        """Return the lines. They are the transcript's own."""
        return self._memory.do(self._read)

    def append(self, lines: Sequence[Json]) -> None:
        """Add those of the lines that aren't there."""
        self._memory.do(lambda session: self._append(session, lines))

    def _read(self, session: StoredSession) -> list[Json]:
        if session.version < self._upto:
            self._lines, self._summary, self._upto = [], None, 0  # it was deleted, and begun anew
        bodies: list[Any] = []
        for event in session.read(self._upto, session.version):  # others may write on
            if event.type == LINES:
                count = event.body["events"]
                self._lines += originals.unpack(event.body["lines"], bodies[len(bodies) - count :])
                data = event.body.get("summary") or {}
                self._summary = {"session_id": self._key["session_id"], "mtime": 0, "data": data}
            bodies.append(event.body)
        self._upto = session.version
        return self._lines

    def _append(self, session: StoredSession, lines: Sequence[Json]) -> None:
        there = self._read(session)
        known = {line["uuid"] for line in there if isinstance(line.get("uuid"), str)}
        new: list[Json] = []
        for line in lines:
            uuid = line.get("uuid")
            if not isinstance(uuid, str) or uuid not in known:
                new.append(line)
                known.add(uuid or "")
        if not new:
            return
        log = Growth.of(session, frozenset({LINES}))
        conversation = self._conversation([*there, *new])
        written: list[Event] = []
        if conversation is not None:
            log.begin(conversation)
            written = [event for part in log.appends(conversation.entries) for event in part]
        bodies = [event.body for event in written]
        data: Json = {"lines": originals.pack(new, bodies), "events": len(bodies)}
        if not self._is_agents:
            entries = cast("list[SessionStoreEntry]", new)
            data["summary"] = fold_session_summary(self._summary, self._key, entries)["data"]
        log.add(LINES, data, micros(session.clock.now()))  # lists tell when it was written
        session.commit(as_append([*written, *log.append()]))

    def _conversation(self, lines: list[Json]) -> Conversation | None:
        """Return the conversation of the lines; None of lines that are none that harnpy understands."""
        try:
            found = understood(claude_code.conversations, _Rows(lines))
        except TransferError:
            return None
        own = [each for each in found if self._is_agents or each.parent is None]
        return next(iter(own or found), None)


class _Rows(Rows):
    """Lines as `claude_code` reads them: what makes no sense there is no message."""

    def __init__(self, lines: list[Json]) -> None:
        super().__init__("", partial=True)
        self._given = lines

    def each(self) -> Iterator[Row]:
        for at, line in enumerate(self._given):
            self.at = at
            yield at + 1, line

    def again(self, at: int) -> Json:
        return self._given[at]
