"""Rebuilding a session from a stream of events: nothing is written, watched, observed, resized or checked.

Spec: 10 §A1.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import shape_problem
from harnpy.session.codec import encode_event
from harnpy.session.errors import SessionError, TransferError
from harnpy.session.events import SESSION_CREATED, Event
from harnpy.session.log import KIND, Session
from harnpy.session.transfer.canto import NAMING, Foreign, Reader, Unreadable
from harnpy.session.transfer.logs import event_of, find_turn, origin_of
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Json = dict[str, Any]
    Reducer = Callable[[Any, Event], Any]


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
