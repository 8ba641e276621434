"""Conversations of other tools: what a reader finds in a file, and the sessions made of it. Spec: 10 §C17.

A conversation is a tree of entries, each an event behind another one. Imported again it adds what is new: the
log grows at its end, and its leaf moves to where the tool went back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json

from harnpy.session import events as kinds
from harnpy.session.cuts import Created
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, SESSION_CREATED, Event, EventDraft, Origin, read_stamp
from harnpy.session.prompt import SYSTEM
from harnpy.session.registers import METADATA
from harnpy.session.rewind import LeafMoved
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.admission import Loss, admit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.log import Session
    from harnpy.storage import Store
    from harnpy.world import World

    Json = dict[str, Any]
    #: The number of the event that an entry of that id became; None when it isn't one yet.
    Numbers = Callable[[str], int | None]
    #: A line's number and what is in it.
    Row = tuple[int, Json]

#: What an event's id has behind the entry's when another branch holds the entry, too.
_AGAIN = "~"


class Entry(NamedTuple):
    """An event of a conversation: ``after`` is the id of the entry before it, None at the beginning.

    ``time`` is in microseconds since 1970, 0 when nobody knows. ``data`` is a payload, or a function that
    makes one when it is told the numbers of other entries and the last number before its own.
    """

    id: str
    after: str | None
    time: int
    type: str
    data: Any
    metadata: Json | None = None


class Conversation(NamedTuple):
    """A conversation of another tool. ``id`` is its session's; ``parent`` that of the one it came from.

    ``facts`` are of the session's creation, ``metadata`` and ``system``, its prompt, are the session's.
    ``losses`` say what of the file isn't in it.
    """

    id: str
    entries: Sequence[Entry]
    facts: Json
    metadata: Json
    losses: Sequence[Loss]
    parent: str | None = None
    system: str | None = None
    #: Whether the id is the tool's own: it is the same conversation, whatever became of it.
    is_named: bool = False


def load(conversation: Conversation, store: Store, world: World, id: str | None = None) -> StoredSession:
    """Make a session of a conversation, under ``id`` (None: its own).

    Raises `SessionExists`, and `TransferError` for entries that are no conversation; nothing is stored then.
    """
    name = conversation.id if id is None else id
    above = None if conversation.parent is None else Origin(conversation.parent, world)
    origin = Origin(name, world, above)
    now = round(world.clock.now() * MICROS)
    log = Growth(origin, min((entry.time for entry in conversation.entries if entry.time), default=now))
    log.add(SESSION_CREATED, Created(above, facts=conversation.facts))
    log.begin(conversation)
    log.extend(conversation.entries)
    return admit(log.finished(), origin, store)


def grown(
    conversation: Conversation, store: Store, world: World, id: str | None = None
) -> StoredSession | None:
    """Add to the session of a conversation what it doesn't have yet; return None when it has all of it.

    Raises `SessionConflict` when somebody else writes meanwhile, and `TransferError` for the session of
    another conversation.
    """
    session = StoredSession.load(conversation.id if id is None else id, store, world)
    if session is None:
        return load(conversation, store, world, id)
    log = Growth.of(session)
    if not conversation.is_named and not log.shares(conversation.entries):
        raise TransferError(
            f"the session {session.id} is another conversation: import it with another id (--id), "
            "or with --on-conflict rename"
        )
    log.extend(conversation.entries)
    log.instruct(conversation.system)
    events = log.finished()
    if events:
        session.commit(events)
    return session if events else None


class Growth:
    """A log that is written, or grows: which entries it has, and where its leaf is."""

    def __init__(self, origin: Origin, time: int, notes: frozenset[str] = frozenset()) -> None:
        """``notes`` are types of events that say nothing of the conversation: it goes on behind them."""
        self._origin = origin
        self._notes = notes | {kinds.PROJECTION_SNAPSHOTTED}
        self._time = time
        self._events: list[Event] = []
        self._ids: set[str] = set()
        #: The number of the entry that the event of each number is, or stands behind.
        self._entry = [0]
        #: The entries by what they stand behind and by their ids.
        self._known: dict[tuple[int, str], int] = {}
        #: The system prompts that it has had.
        self._systems: dict[str, int] = {}
        #: The number of the last event up to each that is no note.
        self._told = [0]
        self.leaf = 0
        self.root = 0

    @classmethod
    def of(cls, session: Session, notes: frozenset[str] = frozenset()) -> Growth:
        """Return the log of a session, to be added to."""
        log = cls(session.origin, 0, notes)
        for event in session.events():
            log.note(event)
        return log

    def note(self, event: Event) -> None:
        """Take in an event that the log has."""
        id = event.foreign_id
        self._time = max(self._time, event.time)
        self._grow(event.type, event.body, None if id is None else id.partition(_AGAIN)[0])
        if id is not None:
            self._ids.add(id)

    def shares(self, entries: Sequence[Entry]) -> bool:
        """Return whether entries are a conversation that the log has, as it was once."""
        known = {id for _, id in self._known}
        return not known or any(entry.id in known for entry in entries)

    def instruct(self, system: str | None) -> None:
        """Set the system prompt, if the log never had that one."""
        if system is not None and system not in self._systems:
            version = max(self._systems.values(), default=0) + 1
            self.add(kinds.REGISTER_SET, {"key": SYSTEM, "value": system, "version": version})

    def add(self, type: str, data: Any, time: int = 0, id: str | None = None, metadata: Any = None) -> None:
        """Write an event; ``id`` is that of its entry."""
        name = id
        while name in self._ids:
            name = f"{name}{_AGAIN}"
        draft = EventDraft(type, data, metadata or None, id=name)
        draft.check()
        self._time = max(self._time, time)
        if name is not None:
            self._ids.add(name)
        number = len(self._entry)
        self._events.append(Event.drafted(draft, self._origin, number, self._time / MICROS))
        self._grow(type, data, id)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Write the entries that the log doesn't have."""
        numbers: dict[str, int] = {}
        for entry in entries:
            behind = self.root if entry.after is None else numbers.get(entry.after)
            if behind is None:
                raise TransferError(
                    f"entry {entry.id} stands behind {entry.after}, which isn't there before it"
                )
            known = self._known.get((self._entry[behind], entry.id))
            if known is None:
                if self._told[self.leaf] != self._told[behind]:
                    self.add(kinds.LEAF_MOVED, LeafMoved(behind), entry.time)
                data = entry.data(numbers.get, self.leaf) if callable(entry.data) else entry.data
                self.add(entry.type, data, entry.time, entry.id, entry.metadata)
                known = self.leaf
            numbers[entry.id] = known

    def begin(self, conversation: Conversation) -> None:
        """Write what is told of the conversation as a whole, unless the log has entries."""
        if self._known:
            return
        for key, value in conversation.metadata.items():
            self.add(kinds.REGISTER_SET, {"key": f"{METADATA}{key}", "value": value, "version": 1})
        self.instruct(conversation.system)
        self.root = self.leaf

    def bodies(self) -> list[Any]:
        """Return the data of the events that were written."""
        return [event.body for event in self._events]

    def finished(self) -> list[Event]:
        """Return the events that were written, as those of one append."""
        for left, event in enumerate(reversed(self._events)):
            event.more = left
        return self._events

    def _grow(self, type: str, body: Any, id: str | None) -> None:
        number = len(self._entry)
        if type == kinds.REGISTER_SET and body["key"] == SYSTEM:
            self._systems[str(body["value"])] = body["version"]
        if type == kinds.LEAF_MOVED:
            self.leaf = body.target
            self._entry.append(self._entry[self.leaf])
            self._told.append(self._told[self.leaf])
            return
        behind = self._entry[self.leaf]
        if id is not None:
            if not self._known:
                self.root = self.leaf
            self._known[behind, id] = number
        former, self.leaf = self.leaf, number
        self._entry.append(behind if id is None else number)
        self._told.append(self._told[former] if type in self._notes else number)


def context(text: str) -> Json:
    """Return the data of what a tool itself told its model."""
    return {"content": text, "kind": "harness", "placement": "history"}


def time_of(number: int, row: Json) -> int:
    """Return the time of a line, in microseconds since 1970. Raises `TransferError`."""
    try:
        return read_stamp(row["timestamp"])
    except (KeyError, ValueError):
        raise TransferError(f"line {number} has no time stamp") from None


class Rows:
    """The objects of JSON lines, each read when it is asked for, and ``notes`` of what couldn't be read.

    A last line that was cut off is left out, as the tool may be at work. ``partial``: so are others that make
    no sense to `each` or its caller, who reports them to `skip`.
    """

    def __init__(self, lines: Sequence[str], partial: bool = False) -> None:
        self._lines = lines
        self._partial = partial
        self.notes: list[str] = []

    def each(self) -> Iterator[Row]:
        """Yield the rows. Raises `TransferError` for a line that is no JSON object."""
        last = len(self._lines)
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                continue
            try:
                row = read_line(line)
            except ValueError:
                if number == last and not line.endswith("\n"):
                    self.notes.append(f"line {number} was cut off")
                    return
                self.skip(f"line {number} isn't JSON")
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                self.skip(f"line {number} is no object")

    def skip(self, reason: str) -> None:
        """Note a line that can't be read. Raises `TransferError` unless a part is enough."""
        if not self._partial:
            raise TransferError(reason)
        self.notes.append(reason)


def read_line(line: str) -> Any:
    """Return the value of a line, half characters that some writers leave included. Raises ValueError."""
    try:
        return from_json(line)
    except DecodeError:
        return json.loads(line)
