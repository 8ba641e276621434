"""The connections of a store: one that writes, and as many that read as threads do so at once.

Every transaction of the writer goes through `Commits`. A database in memory has the writer alone.
Spec: 10 §C6.2.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from harnpy.storage.errors import StoreClosed, StoreUnreachable, Unsupported
from harnpy.storage.sqlite.failures import failures, is_busy
from harnpy.storage.sqlite.schema import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.storage.opening import StoreUrl

MEMORY = ":memory:"
#: The oldest SQLite with STRICT tables.
_OLDEST = (3, 37)
_PAUSE = 0.01
#: How long the log grows before it is copied back. Appends write the same pages again and again: a longer
#: log has fewer of them copied, and makes the appends that wait for the copying rarer.
_LOG_PAGES = 2000
#: Bytes of a page of a new file. Fewer would hold one long reply and waste the rest: a fifth of the file.
_PAGE = 8192


class Connections:
    """Opens the file, creating it and its directory when they don't exist."""

    def __init__(self, url: StoreUrl) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise Unsupported(f"{url} needs SQLite 3.37 or newer, and this is {sqlite3.sqlite_version}")
        if not url.target:
            raise StoreUnreachable(str(url), "a file is missing, as in sqlite:.harn/sessions.db")
        self.url = url
        self.in_memory = url.target == MEMORY
        self.closed = False
        self.lock = RLock()
        self._readers: list[sqlite3.Connection] = []
        if not self.in_memory:
            self._make_directory()
        with failures(url):
            self.writer = self._patiently(self._open_writer)

    @property
    def _level(self) -> str:
        return "NORMAL" if self.url.durability == "relaxed" else "FULL"

    def wait_for_disk(self, *, wait: bool) -> None:
        """Have commits of the writer wait for the disk, as far as the store's durability asks for it."""
        self.writer.execute(f"PRAGMA synchronous = {self._level if wait else 'NORMAL'}")

    def _make_directory(self) -> None:
        try:
            Path(self.url.target).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnreachable(str(self.url), error.strerror or str(error)) from error

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            prepare(connection, str(self.url))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._level}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.url.target, timeout=self.url.timeout, isolation_level=None, check_same_thread=False
        )

    def _patiently(self, attempt: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        """Call ``attempt`` until it isn't refused by a lock that SQLite itself doesn't wait for.

        Changing the journal mode and recovering the log after a crash take such locks.
        """
        gives_up = time.monotonic() + self.url.timeout
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= gives_up:
                    raise
            time.sleep(_PAUSE)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, for nobody else meanwhile."""
        self.check_open()
        with failures(self.url):
            if self.in_memory:
                with self.lock:
                    yield self.writer
                return
            try:
                reader = self._readers.pop()
            except IndexError:
                reader = self._patiently(self._open_reader)
            try:
                yield reader
            finally:
                self._give_back(reader)

    def _open_reader(self) -> sqlite3.Connection:
        reader = self._connect()
        reader.execute("PRAGMA query_only = ON")
        reader.execute("SELECT 1 FROM streams LIMIT 1").fetchone()
        return reader

    def _give_back(self, reader: sqlite3.Connection) -> None:
        self._readers.append(reader)
        if self.closed:
            self._close_readers()

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`."""
        if self.closed:
            raise StoreClosed(str(self.url))

    def close(self) -> None:
        """Close all of them; those that somebody reads with right now, when that ends."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self._close_readers()
                self.writer.close()

    def _close_readers(self) -> None:
        while self._readers:
            self._readers.pop().close()
