"""Conversations of other tools: what a reader finds in a file, and the sessions made of it. Spec: 10 §C17.

A conversation is a tree of entries, each an event behind another one. Imported again it adds what is new: the
log grows at its end, and its leaf moves to where the tool went back.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json

from harnpy.faults import shape_problem
from harnpy.formats.json import refuse_depth
from harnpy.session import events as kinds
from harnpy.session.cuts import Created
from harnpy.session.errors import SessionExists, TransferError
from harnpy.session.events import MICROS, SESSION_CREATED, Event, EventDraft, Origin, read_stamp
from harnpy.session.prompt import SYSTEM
from harnpy.session.registers import METADATA
from harnpy.session.rewind import LeafMoved
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.admission import Loss, admit_appends, as_append, counted
from harnpy.storage.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import BinaryIO

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
#: What is wrong with a value of another shape than is written there.
_SHAPE = (LookupError, TypeError, ValueError, AttributeError)
#: How many events of a long conversation are written at once.
_MOST = 2000


class Entry(NamedTuple):
    """An event of a conversation: ``after`` is the id of the entry before it, None at the beginning.

    ``time`` is in microseconds since 1970, 0 when nobody knows. ``data`` is a payload, or a function that
    makes one when it is told the numbers of other entries and the last number before its own; ``metadata`` of
    a large file is made when it is needed, too.
    """

    id: str
    after: str | None
    time: int
    type: str
    data: Any
    metadata: Json | Callable[[], Json] | None = None

    def told(self) -> Json:
        """Return its metadata."""
        return (self.metadata() if callable(self.metadata) else self.metadata) or {}


class Branch(NamedTuple):
    """What was added to a session here, and which its conversation has left: it ends at event ``seq``."""

    session_id: str
    messages: int
    seq: int

    def __str__(self) -> str:
        return (
            f"{self.session_id}: {counted(self.messages, 'message')} added here "
            f"{'is' if self.messages == 1 else 'are'} now a branch that ends at event {self.seq}: "
            f"`harnpy sessions fork {self.session_id} NEW --at {self.seq}` continues it"
        )


class Conversation(NamedTuple):
    """A conversation of another tool. ``id`` is its session's; ``parent`` that of the one it came from.

    ``facts`` are of the session's creation, ``metadata`` and ``system``, its prompt, are the session's.
    ``losses`` say what of the file isn't in it; what is mended when it is stored is added to them, and to
    ``branches`` what its session goes on without.
    """

    id: str
    entries: Collection[Entry]
    facts: Json
    metadata: Json
    losses: list[Loss]
    parent: str | None = None
    system: str | None = None
    #: Whether the id is the tool's own: it is the same conversation, whatever became of it.
    is_named: bool = False
    branches: list[Branch] | None = None


def load(conversation: Conversation, store: Store, world: World, id: str | None = None) -> str:
    """Make a session of a conversation, under ``id`` (None: its own), and return its id.

    Raises `SessionExists`, and `TransferError` for entries that are no conversation; nothing is stored then.
    """
    name = conversation.id if id is None else id
    above = None if conversation.parent is None else Origin(conversation.parent, world)
    origin = Origin(name, world, above)
    now = round(world.clock.now() * MICROS)
    log = Growth(origin, min((entry.time for entry in conversation.entries if entry.time), default=now))
    log.add(SESSION_CREATED, Created(above, facts=conversation.facts))
    log.begin(conversation)
    made = admit_appends(log.appends(conversation.entries), origin, store)
    _tell(conversation, log)
    return made


def grown(conversation: Conversation, store: Store, world: World, id: str | None = None) -> str | None:
    """Add to the session of a conversation what it doesn't have yet; return its id, None when it has all.

    Raises `SessionConflict` when somebody else writes meanwhile, and `TransferError` for the session of
    another conversation.
    """
    session = StoredSession.load(conversation.id if id is None else id, store, world)
    if session is None:
        return load(conversation, store, world, id)
    log = _same(conversation, session)
    events = [event for part in log.appends(conversation.entries) for event in part]
    log.instruct(conversation.system)
    events += log.append()
    _tell(conversation, log)
    if events:
        session.commit(as_append(events))
        if conversation.branches is not None:
            conversation.branches.extend(Branch(session.id, *left) for left in log.left)
    return session.id if events else None


def check(conversation: Conversation, store: Store, world: World, may_grow: bool) -> None:
    """Raise what an import of it would raise: `TransferError`, or `SessionExists` unless it ``may_grow``."""
    session = StoredSession.load(conversation.id, store, world)
    if session is not None and not may_grow:
        raise SessionExists(session.id, session.version)
    load(conversation._replace(losses=[]), MemoryStore(), world)
    if session is not None:
        _same(conversation, session)


def _same(conversation: Conversation, session: StoredSession) -> Growth:
    """Return the log of a conversation's session, to be added to."""
    log = Growth.of(session)
    if not conversation.is_named and not log.shares(conversation.entries):
        raise TransferError(
            f"the session {session.id} is another conversation: import it with another id (--id), "
            "or with --on-conflict rename"
        )
    return log


def _tell(conversation: Conversation, log: Growth) -> None:
    """Note what of a conversation was mended."""
    loss = Loss(conversation.id, "half characters", f"{counted(log.mended, 'event')}, where they are U+FFFD")
    if log.mended:
        conversation.losses.append(loss)


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
        #: How many messages that no entry is stand before an event on its branch, with it.
        self._own = [0]
        #: How many of them the leaf has left, and the number of the last event of their branch.
        self.left: list[tuple[int, int]] = []
        #: Events with halves of characters that some writers leave.
        self.mended = 0

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

    def shares(self, entries: Iterable[Entry]) -> bool:
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
        self.mended += draft.data is not data or (draft.metadata or None) is not (metadata or None)
        self._time = max(self._time, time)
        if name is not None:
            self._ids.add(name)
        seen = len(self._entry) - 1
        self._events += Event.drafted((draft,), self._origin, seen, self._time / MICROS)
        self._grow(type, data, id)

    def appends(self, entries: Iterable[Entry]) -> Iterator[list[Event]]:
        """Write the entries that the log doesn't have, and yield the events of one append after the other."""
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
                    own = self._own[self.leaf] - self._own[behind]
                    if own > 0:
                        self.left.append((own, self.leaf))
                    self.add(kinds.LEAF_MOVED, LeafMoved(behind), entry.time)
                data, told = _said(entry, numbers.get, self.leaf)
                self.add(entry.type, data, entry.time, entry.id, told)
                known = self.leaf
                if len(self._events) >= _MOST:
                    yield self.append()
            numbers[entry.id] = known
        if self._events:
            yield self.append()

    def begin(self, conversation: Conversation) -> None:
        """Write what is told of the conversation as a whole, unless the log has entries."""
        if self._known:
            return
        for key, value in conversation.metadata.items():
            self.add(kinds.REGISTER_SET, {"key": f"{METADATA}{key}", "value": value, "version": 1})
        self.instruct(conversation.system)
        self.root = self.leaf

    def append(self) -> list[Event]:
        """Return the events that were written since the last append."""
        events, self._events = self._events, []
        return as_append(events)

    def _grow(self, type: str, body: Any, id: str | None) -> None:
        number = len(self._entry)
        if type == kinds.REGISTER_SET and body["key"] == SYSTEM:
            self._systems[str(body["value"])] = body["version"]
        if type == kinds.LEAF_MOVED:
            self.leaf = body.target
            self._entry.append(self._entry[self.leaf])
            self._told.append(self._told[self.leaf])
            self._own.append(self._own[self.leaf])
            return
        behind = self._entry[self.leaf]
        if id is not None:
            if not self._known:
                self.root = self.leaf
            self._known[behind, id] = number
        former, self.leaf = self.leaf, number
        self._entry.append(behind if id is None else number)
        self._told.append(self._told[former] if type in self._notes else number)
        self._own.append(self._own[former] + (id is None and type == kinds.MESSAGE_ADDED))


def _said(entry: Entry, numbers: Numbers, last: int) -> tuple[Any, Json]:
    """Return an entry's data and metadata. Raises `TransferError`."""
    try:
        data = entry.data(numbers, last) if callable(entry.data) else entry.data
        return data, entry.told()
    except TransferError:
        raise
    except _SHAPE as error:
        raise TransferError(f"entry {entry.id} makes no sense: {shape_problem(error)}") from error


def context(text: str) -> Json:
    """Return the data of what a tool itself told its model."""
    return {"content": text, "kind": "harness", "placement": "history"}


def summary(message: Json) -> Json:
    """Return an entry of a compaction: a message that is in it alone. Raises `TransferError` for what is no
    message."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if not isinstance(content, str | list) or not all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks
    ):
        raise TransferError("the summary of a compaction is neither a text nor blocks")
    return {"message": message}


def time_of(number: int, row: Json) -> int:
    """Return the time of a line, in microseconds since 1970. Raises `TransferError`."""
    try:
        return read_stamp(row["timestamp"])
    except (KeyError, ValueError):
        raise TransferError(f"line {number} has no time stamp") from None


#: Bytes of a file's lines that may be in memory at once: most transcripts are shorter.
_KEPT = 32_000_000


class Rows:
    """The objects of JSON lines, each read when it is asked for, and ``notes`` of what couldn't be read.

    ``at`` is where the line of the last one begins, from where it can be read again. A last line that was cut
    off is left out, as the tool may be at work. ``partial``: so are others that make no sense to `each` or to
    its caller, who reports them to `skip`.
    """

    def __init__(self, lines: BinaryIO | str, partial: bool = False) -> None:
        self._lines = BytesIO(lines.encode(errors="surrogatepass")) if isinstance(lines, str) else lines
        self._partial = partial
        self.notes: list[str] = []
        self.at = 0
        self._size = 0
        #: The line that was read again last.
        self._again: tuple[int, Json] = -1, {}
        #: Rows that need not be, and how many bytes of lines there is still room for.
        self._kept: dict[int, Json] = {}
        self._room = _KEPT

    def each(self) -> Iterator[Row]:
        """Yield the rows. Raises `TransferError` for a line that is no JSON object."""
        end = 0
        for number, line in enumerate(self._lines, 1):
            self.at, self._size = end, len(line)
            end += self._size
            if not line.strip():
                continue
            try:
                row = read_line(line)
            except ValueError:
                if not line.endswith(b"\n"):
                    self.notes.append(f"line {number} was cut off")
                    return
                self.skip(f"line {number} isn't JSON")
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                self.skip(f"line {number} is no object")

    def again(self, at: int) -> Json:
        """Return the row of the line that begins there, once all were read. Raises `TransferError`."""
        if self._again[0] != at:
            row = self._kept.pop(at, None)
            self._again = at, self._read_again(at) if row is None else row
        return self._again[1]

    def keep(self, row: Json) -> None:
        """Keep the last row of `each` until `again` returns it, if there is room."""
        self._room -= self._size
        if self._room >= 0:
            self._kept[self.at] = row

    def _read_again(self, at: int) -> Json:
        self._lines.seek(at)
        try:
            row: Json = read_line(self._lines.readline())
        except ValueError:
            raise TransferError("the file has changed while it was read") from None
        return row

    def give(self, take: Callable[[int, Json], object], number: int, row: Json) -> None:
        """Have ``take`` take a row in, or `skip` one that it can't read."""
        try:
            take(number, row)
        except TransferError as error:
            self.skip(str(error))
        except _SHAPE as error:
            self.skip(f"line {number} makes no sense: {shape_problem(error)}")

    def skip(self, reason: str) -> None:
        """Note a line that can't be read. Raises `TransferError` unless a part is enough."""
        if not self._partial:
            raise TransferError(reason)
        self.notes.append(reason)


def read_line(line: str | bytes) -> Any:
    """Return the value of a line, half characters that some writers leave included. Raises ValueError."""
    refuse_depth(line)
    try:
        return from_json(line)
    except DecodeError:
        return json.loads(line)
