"""Stores of logs, with the ancestry of sessions. Spec: 10 §A1.10, §A1.11, §B2."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionExists, SessionNotFound
from harnpy.session.faces.canto.events import Event
from harnpy.session.faces.canto.sessions import FIRST, ForkOptions, Session
from harnpy.session.runtime.runtime import SessionRuntime

if TYPE_CHECKING:
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.log import Session as HarnSession
    from harnpy.storage.contract import Store as HarnStore


@dataclass(frozen=True)
class SessionAncestry:
    """Where a session stands in the tree of its store. ``depth`` of a root is 0."""

    session_id: str
    parent_session_id: str = ""
    fork_point_event_id: str = ""
    branch_label: str = ""
    fork_reason: str = ""
    depth: int = 0
    created_at: str = ""


class Store:
    """Sessions on a store of harnpy's, or on the one that a URL names. ``options`` are those of
    `harnpy.session.SessionRuntime`."""

    def __init__(self, store: HarnStore | str, **options: Any) -> None:
        self.runtime = SessionRuntime(store, **options)

    # Sessions.

    def save(self, event: Event) -> None:
        """Append an event to the session that it names, which it creates if there is none."""
        self.load(event.session_id).append(event)

    def load(self, session_id: str) -> Session:
        """Return a session; an empty one, which its first append creates, where there is none."""
        try:
            return Session(session_id, log=self.runtime.get(session_id), writer=self)
        except SessionNotFound:
            return Session(session_id, writer=self)

    def load_until(self, session_id: str, event_id: str) -> Session:
        """Return a session as it stood right behind that event. It can be read and forked.

        Raises `SessionNotFound`, `EventNotFound`.
        """
        return Session(session_id, log=self.runtime.open(session_id, until=event_id), writer=self)

    def attach(self, log: HarnSession) -> HarnSession:
        """Return the stored session of that log's id, made of the log if there is none.

        Raises `SessionExists` where the store has one and the log has events of its own.
        """
        try:
            return self.runtime.create(log)
        except SessionExists:
            if log.version > FIRST:
                raise
            return self.runtime.get(log.id)

    def events_after(self, session_id: str, seq: int) -> list[Event]:
        """Return the events behind number ``seq``."""
        found = self.runtime.get(session_id).events(after=max(seq, FIRST))
        return list(map(Event.of, found))

    def search(self, session_id: str, query: str) -> list[Event]:
        """Return the events whose text holds every term of ``query``, oldest first."""
        hits = self.runtime.search(query, session_id)
        log = self.runtime.get(session_id)
        return [Event.of(log.event(seq)) for seq in sorted({hit.seq for hit in hits}) if seq > FIRST]

    def close(self) -> None:
        """Close the store, if its URL was given."""
        self.runtime.close()

    # The tree.

    def fork(self, original_id: str, new_id: str) -> Session:
        return self.fork_with_options(original_id, new_id, ForkOptions())

    def fork_with_options(self, original_id: str, new_id: str, options: ForkOptions) -> Session:
        """Return a stored fork. Raises `SessionNotFound`, `SessionExists`."""
        log = self.runtime.get(original_id).fork(
            new_id, label=options.branch_label, reason=options.fork_reason
        )
        return Session(new_id, log=log, writer=self)

    def branch_session(self, parent: Session, new_id: str, options: ForkOptions | None = None) -> Session:
        """Return a stored fork of a session that may not be stored yet."""
        return parent.with_writer(self).branch(new_id, options)

    def parent(self, session_id: str) -> SessionAncestry | None:
        """Return where a session's parent stands; None for a root. Raises `SessionNotFound`."""
        found = self.runtime.parent(session_id)
        return None if found is None else _ancestry(found)

    def children(self, session_id: str) -> list[SessionAncestry]:
        """Return where its direct forks stand, oldest first."""
        return list(map(_ancestry, self.runtime.children(session_id)))

    def lineage(self, session_id: str) -> list[SessionAncestry]:
        """Return where the sessions stand that it descends from, the root first, and itself."""
        return list(map(_ancestry, self.runtime.lineage(session_id)))

    def save_ancestry(self, record: SessionAncestry) -> None:
        """Note where a session stands whose log is elsewhere, unless there is one of that id.

        Raises `InvalidArgument` for a record without an id or a time.
        """
        known = {key: value for key, value in asdict(record).items() if value}
        self.runtime.save_ancestry(known)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class JSONLStore(Store):
    """A directory of logs, which processes may share."""

    def __init__(self, directory: str, **options: Any) -> None:
        super().__init__(f"jsonl:{directory}", **options)


class SQLiteStore(Store):
    """A database in one file."""

    def __init__(self, dsn: str, **options: Any) -> None:
        super().__init__("memory:" if dsn == ":memory:" else f"sqlite:{dsn}", **options)


def new_jsonl_store(directory: str, **options: Any) -> JSONLStore:
    return JSONLStore(directory, **options)


def new_sqlite_store(dsn: str, **options: Any) -> SQLiteStore:
    return SQLiteStore(dsn, **options)


def _ancestry(info: SessionInfo) -> SessionAncestry:
    return SessionAncestry(
        session_id=info.id,
        parent_session_id=info.parent_id or "",
        fork_point_event_id=info.fork_event_id or "",
        branch_label=info.branch_label,
        fork_reason=info.fork_reason,
        depth=info.depth,
        created_at=info.created_at,
    )
