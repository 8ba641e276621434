"""Stores of sessions as values, and the repository over one. Spec: 10 §A3.2, §A3.7."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from harnpy.session.errors import SessionExists, SessionNotFound
from harnpy.session.faces.cognesy.changes import write_changes
from harnpy.session.faces.cognesy.errors import InvalidSessionFileException, not_new
from harnpy.session.faces.cognesy.files import CognesyFiles
from harnpy.session.faces.cognesy.saving import saved_by, show_saved
from harnpy.session.faces.cognesy.sessions import value_of
from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionId, SessionInfoList, SessionStatus
from harnpy.session.runtime.queries import SessionQuery
from harnpy.session.runtime.runtime import SessionRuntime
from harnpy.session.runtime.unsaved import unsaved_fork, unsaved_session
from harnpy.storage.errors import StorageError
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.contracts import CanStoreSessions
    from harnpy.session.faces.cognesy.sessions import AgentSession
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.log import Session
    from harnpy.session.runtime.txn import Txn
    from harnpy.storage.contract import Store


class HarnSessionStore:
    """Sessions on a store of harnpy's, or on the one that a URL names, as values."""

    #: How headers are listed; see `SessionQuery`.
    order = "id"

    def __init__(self, store: Store | str) -> None:
        self.runtime = SessionRuntime(store, hooks=show_saved, strict_ids=True)

    def create(self, session: AgentSession) -> AgentSession:
        """Store a new session as version 1. Raises `SessionExists`, `SessionConflict`."""
        return saved_by(lambda: self.runtime.create(self.unsaved(session)))

    def unsaved(self, session: AgentSession) -> Session:
        """Return a session of harnpy's that is this value and that no store has; that of a fork has its
        parent's log. Raises as `create` does."""
        id, parent = str(session.session_id), session.info.parent_id
        if self.exists(id):
            raise SessionExists(id, self.runtime.info(id).seq)
        if session.version:
            raise not_new(id, session.version)
        if session.seq and parent is not None and self.exists(parent):
            begin = unsaved_fork(self.runtime.open(parent, until=session.seq), id)
        else:
            begin = unsaved_session(id, World(), session.definition.facts(), parent)
        write_changes(begin, value_of(begin), session)
        return begin

    def save(self, session: AgentSession) -> AgentSession:
        """Store what the session differs in, if the store has the version that it was made of.

        Raises `SessionNotFound`, `SessionConflict`.
        """

        def save(txn: Txn) -> None:
            write_changes(txn, value_of(txn), session)

        id = str(session.session_id)
        self.admit(id)
        return saved_by(lambda: self.runtime.execute(id, save, expected_revision=session.version))

    def load(self, session_id: str) -> AgentSession | None:
        """Return a session, None if there is none of that id."""
        self.admit(session_id)
        try:
            return value_of(self.runtime.get(str(session_id)))
        except SessionNotFound:
            return None

    def exists(self, session_id: str) -> bool:
        self.admit(session_id)
        return self.runtime.exists(str(session_id))

    def delete(self, session_id: str) -> None:
        """Drop a session, if there is one."""
        with suppress(SessionNotFound):
            self.runtime.delete(str(session_id), hard=True)

    def list_headers(self) -> SessionInfoList:
        """Return the headers of all sessions. Raises `InvalidSessionFileException` if one can't be read."""
        query = SessionQuery(order=self.order, deleted=True)
        found: list[SessionInfo] = []
        while True:
            page = self.runtime.list(query)
            if page.errors:
                raise InvalidSessionFileException(*page.errors[0])
            found += page.items
            if page.next is None:
                return SessionInfoList(map(_header, found if self.order == "id" else reversed(found)))
            query = query._replace(after=page.next)

    def admit(self, session_id: str) -> None:
        """Take in a session of that id which lies beside the store, if there may be some."""

    def close(self) -> None:
        self.runtime.close()

    def __enter__(self) -> HarnSessionStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InMemorySessionStore(HarnSessionStore):
    """Sessions that end with the process, listed in the order in which they were created."""

    order = "created"

    def __init__(self) -> None:
        super().__init__("memory:")


class FileSessionStore(HarnSessionStore):
    """A directory of logs, made if it isn't there, that processes may share.

    Cognesy's own files in it are taken in when they are asked for, and stay as they are.
    """

    def __init__(self, directory: str) -> None:
        try:
            super().__init__(f"jsonl:{directory}")
        except OSError as error:
            raise StorageError(f"Failed to create session store directory: {directory}") from error
        self._files = CognesyFiles(str(directory))

    def admit(self, session_id: str) -> None:
        if not self.runtime.exists(str(session_id)):
            self._files.admit(str(session_id), self.runtime.store)

    def delete(self, session_id: str) -> None:
        self._files.remove(str(session_id))
        super().delete(session_id)

    def list_headers(self) -> SessionInfoList:
        for id in self._files.ids():
            self.admit(id)
        return super().list_headers()


class SessionRepository:
    """The sessions of a store: one of harnpy's, or any other that keeps the rules of versions."""

    def __init__(self, store: CanStoreSessions) -> None:
        missing = [name for name in _METHODS if not callable(getattr(store, name, None))]
        if missing:
            raise TypeError(
                f"a store of sessions needs a method `{missing[0]}`, {type(store).__name__} has none"
            )
        self.store = store

    def create(self, session: AgentSession) -> AgentSession:
        return self.store.create(session)

    def save(self, session: AgentSession) -> AgentSession:
        return self.store.save(session)

    def load(self, session_id: str) -> AgentSession:
        """Return a session. Raises `SessionNotFound`."""
        found = self.store.load(session_id)
        if found is None:
            raise SessionNotFound(str(session_id))
        return found

    def exists(self, session_id: str) -> bool:
        return self.store.exists(session_id)

    def delete(self, session_id: str) -> None:
        self.store.delete(session_id)

    def list_headers(self) -> SessionInfoList:
        return self.store.list_headers()


_METHODS = ("create", "save", "load", "exists", "delete", "list_headers")


def _header(info: SessionInfo) -> AgentSessionInfo:
    return AgentSessionInfo(
        session_id=SessionId(info.id),
        agent_name=info.agent_name,
        agent_label=info.agent_label,
        created_at=datetime.fromisoformat(info.created_at),
        updated_at=datetime.fromisoformat(info.updated_at),
        parent_id=info.parent_id,
        status=SessionStatus(info.status),
        version=info.revision,
    )
