"""harnpy's sessions under pydantic-ai: `HarnpyHistory`, `HarnpyConversationStore`. Spec: 10 §C20.

The conversation is a session like any other: `harnpy sessions` lists it, programs fork and compact it, and
what is cleared stays in its log. Extra: ``pydantic-ai``. Messages come out equal to what went in; those that
programs have added come out as `harnpy sessions export --format pydantic-ai` writes them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.adapters.session_memory import DEFAULT_STORE, SessionMemory, shown
from harnpy.session import events as kinds
from harnpy.session.errors import SessionExists
from harnpy.session.events import EventDraft
from harnpy.session.history import ANY
from harnpy.session.log import KIND
from harnpy.session.registers import DELETED, METADATA
from harnpy.session.rewind import LeafMoved
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import originals
from harnpy.session.transfer.listed import with_prompt
from harnpy.session.transfer.pydantic_ai import TOOL, conversation, messages_of
from harnpy.storage import HeadQuery, open_store
from harnpy.version import install_command
from harnpy.world import World

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter
except ImportError as error:
    raise ImportError(
        f"harnpy.adapters.pydantic_ai needs pydantic-ai: {install_command('pydantic-ai')}"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai.messages import ModelMessage

    from harnpy.session.transfer.foreign import Entry
    from harnpy.storage import Store
    from harnpy.storage.contract import Head

    Json = dict[str, Any]


class HarnpyHistory:
    """The message history ``session_id`` of a store.

    ``store`` is a store's URL, e.g. ``sqlite:.harn/sessions.db``, or an open store, which stays the caller's
    to close. Safe to use from many tasks and processes: messages are written at the end, each `add` whole.
    """

    def __init__(self, session_id: str, store: Store | str = DEFAULT_STORE) -> None:
        self.session_id = session_id
        self._memory = SessionMemory(session_id, store)

    async def messages(self) -> list[ModelMessage]:
        """Return the messages of the window, oldest first, for ``message_history=``."""
        found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(
            await self._memory.run(_messages)
        )
        return found

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        """Append messages, all or none: those of ``result.new_messages()``."""
        given: list[Json] = from_json(ModelMessagesTypeAdapter.dump_json([*messages]))
        drafts = originals.drafts(TOOL, given, _entries)
        if drafts:
            await self._memory.run(lambda session: session.append(*drafts, expected_version=ANY))

    async def clear(self) -> None:
        """Empty the window. The log keeps what was."""
        await self._memory.run(lambda session: session.reset())


def _messages(session: StoredSession) -> list[Json]:
    return messages_of(session, shown(session.view.window.visible()), Counter())


def _entries(message: Json) -> Sequence[Entry]:
    made = conversation(to_json([message]).decode())
    # Instructions go along with each request, and pydantic-ai gives them again.
    return [*made.entries] if message.get("instructions") else with_prompt(made)


#: The register with a conversation's record, and of an event's metadata: the entry that begins with it.
RECORD, ENTRY = f"{METADATA}{TOOL}", "entry"
_RECORDS = TypeAdapter(ConversationRecord)
#: The event that every log begins with: behind it is an empty history.
_BEGIN = 1


class _Placed(NamedTuple):
    """An entry of a conversation's log, and its last event."""

    entry: ConversationEntry
    last: int


class HarnpyConversationStore(ConversationStore):
    """pydantic-ai's conversations in a store: a session each, a fork of one a fork.

    ``store`` is a store's URL, or an open store, which stays the caller's to close. A save is one append.
    Deleting a conversation drops its log; forks keep what they share with it. What programs add to a session
    or take out of its window isn't pydantic-ai's: its history is what was saved.
    """

    def __init__(self, store: Store | str = DEFAULT_STORE) -> None:
        self._store = open_store(store) if isinstance(store, str) else store
        #: The session that each entry was last seen in.
        self._homes: dict[str, str] = {}

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return await asyncio.to_thread(self._record, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        def read() -> list[ConversationRecord]:
            found = [record for head in self._heads() if (record := self._record(head.name)) is not None]
            found = [record for record in found if scope is None or record.scope == scope]
            return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

        return await asyncio.to_thread(read)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await asyncio.to_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        def delete() -> None:
            record = self._record(conversation_id)
            if record is None or record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            self._store.delete(KIND, conversation_id)

        await asyncio.to_thread(delete)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return (await asyncio.to_thread(self._entries_with, entry_id))[entry_id].entry

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        found = {} if head_id is None else await asyncio.to_thread(self._entries_with, head_id)
        entries: list[ConversationEntry] = []
        while head_id is not None and (limit is None or len(entries) < limit):
            entries.append(found[head_id].entry)
            head_id = entries[-1].parent_id
        return entries[::-1]

    def _record(self, id: str) -> ConversationRecord | None:
        session = StoredSession.load(id, self._store, World())
        told = None if session is None or session.status == DELETED else session.get(RECORD)
        if session is None or told is None:
            return None
        self._homes.update(dict.fromkeys(_entries_of(session), id))
        record = _RECORDS.validate_python(told)
        if record.conversation_id == id:
            return record
        # A program has forked the session.
        return replace(record, conversation_id=id, forked_from=record.conversation_id)

    def _heads(self) -> Iterator[Head]:
        query: HeadQuery | None = HeadQuery(KIND, agent=TOOL)
        while query is not None:
            page = self._store.heads(query)
            yield from page.items
            query = None if page.next is None else query._replace(after=page.next)

    def _entries_with(self, entry_id: str) -> dict[str, _Placed]:
        """Return the entries of a session that has this one. Raises LookupError when none has."""
        homes = [self._homes[entry_id]] if entry_id in self._homes else []
        for id in [*homes, *(head.name for head in self._heads())]:
            session = StoredSession.load(id, self._store, World())
            found = {} if session is None else _entries_of(session)
            if entry_id in found:
                self._homes.update(dict.fromkeys(found, id))
                return found
        raise LookupError(entry_id)

    def _write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected: str | None
    ) -> None:
        id = record.conversation_id
        parent = new[0].parent_id if new else record.head_id
        is_fork = expected is None and parent is not None
        if expected is not None and self._store.head(KIND, id) is None:
            raise ConversationConflict(id)
        drafts = []
        for entry in new:
            given = from_json(ModelMessagesTypeAdapter.dump_json([entry.message]))
            first, *rest = originals.drafts(TOOL, given, _entries)
            told = {**(first.metadata or {}), ENTRY: {"id": entry.id, "parent_id": entry.parent_id}}
            drafts += [first.copy(metadata=told), *rest]

        if is_fork:
            self._fork(id, str(parent))

        def write(session: StoredSession) -> None:
            told = None if is_fork else session.get(RECORD)
            if told is None and session.agent_facts().get("agent_name") != TOOL:
                raise ConversationConflict(id)  # a session of another kind has the id
            if (None if told is None else told["revision"]) != expected:
                raise ConversationConflict(id)
            known = _entries_of(session)
            if parent is not None and parent not in known:
                raise ConversationConflict(id)
            behind = _BEGIN if parent is None else known[parent].last
            moves = [] if told is None or told["head_id"] == parent else [_move(behind)]
            kept = session.setting(RECORD, _RECORDS.dump_python(record, mode="json"))
            session.append(*moves, *drafts, kept)

        SessionMemory(id, self._store, facts={"agent_name": TOOL}).do(write)

    def _fork(self, id: str, entry_id: str) -> None:
        """Make the session of a conversation that begins with the history of another one."""
        try:
            places = self._entries_with(entry_id)
            source = StoredSession.load(self._homes[entry_id], self._store, World())
            assert source is not None
            source.fork(id, at=places[entry_id].last)
        except (LookupError, SessionExists) as error:
            raise ConversationConflict(id) from error


def _move(behind: int) -> EventDraft:
    return EventDraft(kinds.LEAF_MOVED, LeafMoved(behind))


def _entries_of(session: StoredSession) -> dict[str, _Placed]:
    """Return the entries of all branches."""
    events = session.read(types=frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED}))
    found: dict[str, _Placed] = {}
    for original, group in originals.grouped(TOOL, shown(events)):
        event, last = group[0].event, group[-1].event
        if original is None or event is None or last is None or ENTRY not in event.metadata:
            continue
        [message] = ModelMessagesTypeAdapter.validate_python([original])
        entry = ConversationEntry(**event.metadata[ENTRY], message=message)
        found[entry.id] = _Placed(entry, last.seq)
    return found
