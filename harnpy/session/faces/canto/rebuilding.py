"""Sessions made of a stream of events, and views of them. Spec: 10 §A1.6, §A1.7, §A1.8."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harnpy.session.faces.canto.events import marshal_event_json
from harnpy.session.faces.canto.sessions import Session
from harnpy.session.shown.entries import FILES_LIMIT
from harnpy.session.shown.rebuilder import Rebuilder as HarnRebuilder
from harnpy.session.transfer.replaying import Replayer as HarnReplayer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.session.faces.canto.events import Event
    from harnpy.session.faces.canto.sessions import Reducer
    from harnpy.session.shown.entries import HistoryEntry

    Option = Callable[["Replayer"], None]


class Replayer:
    """Makes sessions of events, with no writes, watchers, observers or checks of messages."""

    def __init__(self, *options: Option) -> None:
        self.reducer: Reducer | None = None
        self._begun: WeakKeyDictionary[Session, HarnReplayer] = WeakKeyDictionary()
        for option in options:
            option(self)

    def new_session(self, session_id: str) -> Session:
        """Return an empty session to `apply` events to."""
        session = Session(session_id)
        if self.reducer is not None:
            session.with_reducer(self.reducer)
        self._begun[session] = HarnReplayer(session_id)
        return session

    def apply(self, session: Session, event: Event) -> None:
        """Add an event to a session of `new_session`. Raises `TransferError` for one of another session."""
        replayer = self._begun[session]
        replayer.apply(json.loads(marshal_event_json(event)))
        session.stand_for(replayer.session)

    def replay(self, session_id: str, events: Iterable[Event]) -> Session:
        """Return the session that these events are of."""
        session = self.new_session(session_id)
        for event in events:
            self.apply(session, event)
        return session


def new_replayer(*options: Option) -> Replayer:
    return Replayer(*options)


def with_replay_reducer(reducer: Reducer) -> Option:
    """Return the option that gives replayed sessions a reducer."""

    def choose(replayer: Replayer) -> None:
        replayer.reducer = reducer

    return choose


class Rebuilder:
    """Shows what a model gets. A working set names ``files_limit`` files of each sort."""

    def __init__(self, files_limit: int = FILES_LIMIT) -> None:
        self.files_limit = files_limit

    def rebuild_entries(self, session: Session) -> list[HistoryEntry]:
        return HarnRebuilder(self.files_limit).entries(session.log)

    def rebuild_messages(self, session: Session) -> list[dict[str, Any]]:
        return HarnRebuilder(self.files_limit).messages(session.log)


def new_rebuilder() -> Rebuilder:
    return Rebuilder()


class ProjectionSnapshotter:
    """Takes checkpoints of what a model gets: after ``max_events`` events, or ``max_age`` seconds.

    A session by itself needs none, and a turn that runs has none: False then.
    """

    def __init__(self, max_events: int = 50, max_age: float | None = None) -> None:
        self.max_events = max_events
        self.max_age = max_age

    def snapshot(self, session: Session) -> bool:
        """Take one. Return whether that was possible."""
        return session.log.snapshot()

    def snapshot_if_needed(self, session: Session) -> bool:
        """Take one if it is due. Return whether one was taken."""
        return session.log.snapshot(if_needed=True, max_events=self.max_events, max_age=self.max_age)


def new_projection_snapshotter() -> ProjectionSnapshotter:
    return ProjectionSnapshotter()
