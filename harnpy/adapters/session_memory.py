"""A session as the memory of another framework: created at its first use, shared with other writers.

What all adapters that keep a framework's messages in a session have in common. Spec: 10 §C20.
"""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.session.errors import SessionConflict, SessionExists
from harnpy.session.prompt import HistoryEntry, entry_of
from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.session.events import Event

    R = TypeVar("R")

#: The store of adapters that aren't given one.
DEFAULT_STORE = "sqlite:.harn/sessions.db"


class SessionMemory:
    """The session ``session_id`` of a store, for calls that are carried out on it as it is then.

    ``store`` is a store's URL, or an open store, which stays the caller's to close. ``created`` says more of
    a session that isn't there yet, as `StoredSession.begin` takes it. Safe to use from many threads, tasks
    and processes.
    """

    def __init__(self, session_id: str, store: Store | str = DEFAULT_STORE, **created: Any) -> None:
        self.session_id = session_id
        self._store = open_store(store) if isinstance(store, str) else store
        self._created = created
        self._session: StoredSession | None = None
        self._lock = Lock()

    async def run(self, call: Callable[[StoredSession], R]) -> R:
        """Do `do` in a thread, for stores block."""
        return await asyncio.to_thread(self.do, call)

    def do(self, call: Callable[[StoredSession], R]) -> R:
        """Return what a call on the session returns. If somebody else wrote meanwhile, it is carried out once
        more, on what is there now. Raises `InvalidSessionId`, and what the call raises."""
        with self._lock:
            if self._session is None:
                self._session = opened(self.session_id, self._store, **self._created)
            while True:
                self._session.refresh()
                if not self._session.version:  # it was deleted
                    self._session = opened(self.session_id, self._store, **self._created)
                try:
                    return call(self._session)
                except SessionConflict:
                    continue


def opened(id: str, store: Store, **created: Any) -> StoredSession:
    """Return the session of that id, which is created if it isn't there. Raises `InvalidSessionId`."""
    world = World()
    while True:
        session = StoredSession.load(id, store, world)
        if session is not None:
            return session
        try:
            return StoredSession.begin(id, store, world, **created)
        except SessionExists:
            continue


def shown(events: Iterable[Event]) -> list[HistoryEntry]:
    """Return messages and context as they are, each by itself: calls without results stay."""
    return [
        entry_of(event) or HistoryEntry(event.body, event.id, event.type, event=event) for event in events
    ]
