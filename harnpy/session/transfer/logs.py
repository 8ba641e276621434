"""harnpy's own file of a session: its whole log, an event a line in the shown form. Spec: 10 §C17, §C4.

A line whose event is kept in another form than it is shown has that form under ``stored``; other readers
ignore it. So a log that is read back is the same log: events, ids, views.

Beside a file of another format, which can't hold everything, stands one with the log (`read_beside`).
`Replayer` rebuilds a session from events as they come.
"""

from __future__ import annotations

import posixpath
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.faults import shape_problem
from harnpy.formats.json import refuse_depth
from harnpy.formats.mismatch import unread
from harnpy.session import view
from harnpy.session.codec import decode_event, encode_event
from harnpy.session.cuts import restored_payload
from harnpy.session.errors import SessionError, TransferError
from harnpy.session.events import (
    SESSION_CREATED,
    TURN_STARTED,
    Event,
    Origin,
    TurnRef,
    event_id,
    position,
    read_stamp,
)
from harnpy.session.log import KIND, Session
from harnpy.session.transfer.admission import Loss, admit
from harnpy.session.transfer.canto import NAMING, Foreign, Reader, Unreadable, are_cantos, read_log
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.stored import StoredSession
    from harnpy.storage import Store

    Json = dict[str, Any]
    Reducer = Callable[[Any, Event], Any]


def dump_log(session: Session) -> Iterator[str]:
    """The lines of a session's file, each with its line break."""
    events = session.events()
    view.replay(events)  # cuts are shown with what they leave of the window before
    for event in events:
        shown = encode_event(event)
        stored = event.stored()
        if stored != shown["data"]:
            shown["stored"] = stored
        yield to_json(shown).decode() + "\n"


def load_log(lines: Iterable[str], store: Store, world: World, id: str | None = None) -> StoredSession:
    """Make a session of a file's lines, harnpy's or Canto's, under ``id`` (None: its own).

    Raises `TransferError` for lines that are no session, and `SessionExists`. Nothing is stored then.
    """
    texts = list(lines)
    rows = read_log(texts).rows if are_cantos(texts) else rows_of(texts)
    return load_rows(rows, store, world, id)


def rows_of(lines: Iterable[str]) -> list[Json]:
    """Return the rows of harnpy's own file. Raises `TransferError`."""
    return list(_read(lines))


def load_rows(rows: list[Json], store: Store, world: World, id: str | None) -> StoredSession:
    """Make a session of a log's rows, as `load_log` does. A row's ``turn`` is the number of its turn."""
    if not rows:
        raise TransferError("there is no event in it: this is no session's log")
    former = rows[0]["session_id"]
    name = former if id is None else id
    origin = origin_of(name, rows[0]["data"], world)
    before = None
    events = []
    named: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        if row.get("parent_id") == before:
            row.pop("parent_id", None)
        before = row["id"]
        find_turn(row, number, named)
        events.append(event_of(row, number, origin, former))
    return admit(events, origin, store)


def find_turn(row: Json, number: int, named: dict[str, int]) -> None:
    """Give the row of an event of a turn that its caller named the turn's number. ``named`` are the turns so
    far, by their names."""
    turn = row.get("turn_id")
    if turn is not None and row["type"] == TURN_STARTED:
        named[turn] = number
    elif turn in named:
        row["turn"] = named[turn]


def origin_of(name: str, created: Any, world: World) -> Origin:
    """Return the session that a file is of: of a fork, as one that brings its parent's past along."""
    parent = created.get("parent_session_id") if isinstance(created, dict) else None
    shared = created.get("fork_point_seq") if isinstance(created, dict) else None
    if not isinstance(parent, str) or not isinstance(shared, int):
        return Origin(name, world)
    return Origin(name, world, Origin(parent, world), shared)


def _read(lines: Iterable[str]) -> Iterator[Json]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            refuse_depth(line)
            row = from_json(line)
        except ValueError as error:
            why = unread(line, Any) if isinstance(error, DecodeError) else error
            raise TransferError(f"line {number} isn't JSON: {why}") from error
        if not isinstance(row, dict) or not row.keys() >= _NEEDED:
            missing = ", ".join(sorted(_NEEDED - set(row if isinstance(row, dict) else ())))
            raise TransferError(f"line {number} is no event: it has no {missing}")
        yield row


_NEEDED = frozenset({"id", "session_id", "seq", "type", "timestamp", "data"})


def event_of(row: Json, number: int, origin: Origin, former: str) -> Event:
    """Return the event of a row as number ``number`` of the log; ``former`` is its session's id there."""
    if row["seq"] != number or (number == 1 and row["type"] != SESSION_CREATED):
        raise TransferError(
            f"event {number} has seq {row['seq']} and type {row['type']}: a log begins with "
            f"{SESSION_CREATED} and has no gaps"
        )
    owner = origin.writer(number)
    try:
        _forget_origin(row, number, origin)
        event = decode_event(row, owner)
        if position(row["id"], former) == number:
            event.supplement(id=event_id(owner.id, number, event.time))
        turn = row.get("turn", position(row.get("turn_id", ""), former))
        event.body = restored_payload(event.type, row.get("stored", event.body), owner)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise TransferError(f"event {number} can't be read: {shape_problem(error)}") from None
    if turn is not None:
        event.turn = TurnRef(owner, turn)
    return event


def _forget_origin(row: Json, number: int, origin: Origin) -> None:
    """Take out where an event of a fork's shared past comes from, where that can be computed."""
    if origin.parent is None or not 1 < number <= origin.shared:
        return
    parent = origin.parent.id
    computed = {"session_id": parent, "event_id": event_id(parent, number, read_stamp(row["timestamp"]))}
    if row.get("metadata", {}).get("fork_origin") == computed:
        del row["metadata"]["fork_origin"]


# The log beside a file that doesn't hold everything of it.


#: How the file is called: as the other one, and this.
BESIDE = ".harn.json"


def dump_beside(session: Session, format: str, text: str) -> str:
    """Return the file that stands beside the one with that text, which is of that format."""
    events = ",\n".join(line.rstrip("\n") for line in dump_log(session))
    head = f'"format": "{format}", "sha256": "{_digest(text.encode())}"'
    return f'{{{head}, "events": [\n{events}\n]}}\n'


class Beside(NamedTuple):
    """What stands beside a file of that format: the ``lines`` of its log, or the ``loss`` of what isn't of it
    any more."""

    lines: list[str] | None = None
    format: str = ""
    loss: Loss | None = None


def read_beside(path: str, world: World) -> Beside:
    """Return what stands beside a file, or is one that stands beside others. Raises OSError."""
    is_alone = path.endswith(BESIDE)
    kept = path if is_alone else path + BESIDE
    if not world.files.is_file(kept):
        return Beside()
    name = posixpath.basename(path)
    try:
        written = world.files.read_bytes(kept)
        refuse_depth(written)
        found = from_json(written)
        lines = [to_json(event).decode() for event in found["events"]]
        digest, format = found["sha256"], str(found["format"])
    except (LookupError, TypeError, ValueError):
        return Beside(loss=Loss(name, _REST, f"{name}{BESIDE} can't be read, and is left aside"))
    if not is_alone and digest != _digest(world.files.read_bytes(path)):
        return Beside(
            loss=Loss(
                name, _REST, f"{name} has changed since {name}{BESIDE} was written, which is left aside"
            )
        )
    return Beside(lines, format)


_REST = "what the format doesn't hold"


def holds(session: Session, lines: Sequence[str]) -> bool:
    """Return whether a session's log begins with these lines."""
    return [*map(from_json, islice(dump_log(session), len(lines)))] == [*map(from_json, lines)]


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# Rebuilding a session from a stream of events: nothing is written, watched, observed, resized or checked.
# Spec: 10 §A1.6.


def replay(
    events: Iterable[Event | Json], reducer: Reducer | None = None, *, session_id: str = ""
) -> Session:
    """Return the session that these events are of, in memory.

    They are a session's, or dicts in the shown form (10 §C4), Canto's too. ``reducer`` makes its
    `Session.state`. Raises `TransferError` for an event of another session than ``session_id`` (the first
    one's), and for what is no event.
    """
    replayer = Replayer(session_id, reducer)
    for event in events:
        replayer.apply(event)
    return replayer.session


class Replayer:
    """Rebuilds one session, event by event. Without any event it is an empty one, by itself."""

    def __init__(self, session_id: str = "", reducer: Reducer | None = None) -> None:
        self._id = session_id
        self._reducer = reducer
        self._session: Session | None = None
        self._reader: Reader | None = None
        self._foreign = Foreign()
        self._count = 0
        self._turns: dict[str, int] = {}
        self._append: list[Event] = []

    def apply(self, event: Event | Json) -> None:
        """Take the next event. Raises `TransferError`."""
        number = self._count + 1
        try:
            self._take(event)
        except SessionError:
            raise
        except (Unreadable, ValueError, TypeError, LookupError, AttributeError) as error:
            raise TransferError(f"replay: event {number} can't be read: {shape_problem(error)}") from error

    def _take(self, event: Event | Json) -> None:
        row = _shown(event) if isinstance(event, Event) else event
        named = row.get("session_id")
        self._id = self._id or str(named or "")
        if named != self._id:
            raise TransferError(f'replay: session id mismatch: session="{self._id}" event="{named}"')
        if not self._count and row.get("type") != SESSION_CREATED:
            self._reader = Reader(self._id, {}, [row])
            self._add(self._reader.rows[0])
        if self._reader is None:
            self._add(self._named(row))
            return
        known = len(self._reader.rows)
        self._reader.take(row if isinstance(event, dict) else encode_event(event))
        for new in self._reader.rows[known:]:
            self._add(new)

    @property
    def session(self) -> Session:
        """The session as far as it is known."""
        self._take_in()
        return self._session or Session(self._id or None)

    @property
    def state(self) -> Any:
        """Return the reducer's state after the events so far."""
        return self.session.state

    def _add(self, row: Json) -> None:
        if self._session is None:
            self._session = self._begun(row)
        if self._append and not self._append[-1].more:
            self._take_in()
        self._count += 1
        row = dict(row)
        find_turn(row, self._count, self._turns)
        self._append.append(event_of(row, self._count, self._session.origin, self._id))

    def _named(self, row: Json) -> Json:
        """Return a row that says which events it refers to by their numbers."""
        number = self._count + 1
        if "stored" not in row and row["type"] in NAMING:
            row = {**row, **self._foreign.read(row, number)}
        self._foreign.note(row["id"], number, row)
        return row

    def _take_in(self) -> None:
        """Let the session have what came since its last append."""
        session, events, self._append = self._session, self._append, []
        if session is not None and events:
            session.stream.append(events, session.version)
            session.version, session.moment = session.stream.version, events[-1].moment
            session.view.extend(events)

    def _begun(self, row: Json) -> Session:
        origin = origin_of(self._id, row.get("data"), World())
        session = Session.__new__(Session)._attach(origin, MemoryStore().stream(KIND, self._id))
        session.saves = None
        if origin.parent is not None:
            origin.parent.find = origin.find
        if self._reducer is not None:
            session.attach_reducer(self._reducer)
        return session


def _shown(event: Event) -> Json:
    """Return an event as a row of its log, which is what the store keeps of it."""
    stored = event.stored()
    row: Json = {
        "id": event.id,
        "session_id": event.session_id,
        "seq": event.seq,
        "type": event.type,
        "timestamp": event.timestamp,
        "data": stored,
        "stored": stored,
        "metadata": event.metadata,
        "cost": event.cost,
        "more": event.more,
    }
    turn = event.turn
    if turn is not None and turn.seq:
        row["turn"] = turn.seq
    elif turn is not None:
        row["turn_id"] = turn.id
    if event.foreign_parent is not None:
        row["parent_id"] = event.foreign_parent
    return row
