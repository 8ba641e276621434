"""Waiting for what others announce: one connection and one thread a store, from the first wait on.

Announcements (``NOTIFY``) only say where to look. A server behind a transaction pooler delivers none, so
whoever waits also looks by itself now and then. Spec: 10 §C6.3.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress
from select import select
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from harnpy.storage.postgres.database import Database

#: Seconds until a listener that lost its connection tries to get another one.
_PAUSE = 1.0


class Listener:
    """Tells those who watch a subject, a kind and a name, of each announcement about it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._watches: dict[str, list[Event]] = {}
        self._thread: Thread | None = None
        self._closed = False
        #: Ends the thread's wait; made with the thread.
        self._bell: socket.socket | None = None

    @contextmanager
    def watching(self, kind: str, name: str) -> Iterator[Event]:
        """An event that is set by announcements, and when the store is closed."""
        event, subject = Event(), f"{kind} {name}"
        with self._lock:
            self._watches.setdefault(subject, []).append(event)
            self._start()
        try:
            yield event
        finally:
            with self._lock:
                events = self._watches[subject]
                events.remove(event)
                if not events:
                    del self._watches[subject]

    def close(self) -> None:
        """End the thread, and every wait."""
        with self._lock:
            self._closed = True
            thread, bell = self._thread, self._bell
        self._wake_all()
        if thread is not None and bell is not None:
            bell.close()
            thread.join()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._bell, ended = socket.socketpair()
            self._thread = Thread(target=self._run, args=(ended,), name="harnpy-listener", daemon=True)
            self._thread.start()

    def _run(self, ended: socket.socket) -> None:
        with ended:
            while not self._closed:
                with suppress(psycopg.Error), self._database.connect() as connection:
                    connection.execute("LISTEN harn")
                    self._wake_all()  # what was announced before isn't delivered
                    self._listen(connection, ended)
                select([ended.fileno()], [], [], _PAUSE)

    def _listen(self, connection: Connection, ended: socket.socket) -> None:
        while not self._closed:
            for announced in connection.notifies(timeout=0):
                self._wake(announced.payload.rpartition(" ")[0])
            select([connection.fileno(), ended.fileno()], [], [])

    def _wake(self, subject: str) -> None:
        with self._lock:
            for event in self._watches.get(subject, ()):
                event.set()

    def _wake_all(self) -> None:
        with self._lock:
            for events in self._watches.values():
                for event in events:
                    event.set()
