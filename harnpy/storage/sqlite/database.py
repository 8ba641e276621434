"""The file of a store: its tables, its connections, and transactions, which appends share.

Appends that are made while a commit is under way wait, and share the next one (*group commit*): with
`synchronous=FULL` a commit costs as much as hundreds of rows. One of them leads: its thread writes them
all, wakes the others, and has the first of those that came meanwhile lead next. It gives the others time
to come back. Spec: 10 §C6.2, §C11.
"""

from __future__ import annotations

import os
import sqlite3
import time
from _thread import LockType
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection
from threading import Condition, Lock, RLock
from time import perf_counter
from typing import TypeVar

from harnpy.storage.errors import (
    CorruptLog,
    NoStore,
    SchemaTooNew,
    StorageError,
    StoreBusy,
    StoreClosed,
    StoreFull,
    StoreUnreachable,
    Unsupported,
)
from harnpy.storage.opening import StoreUrl
from harnpy.world.files import make_directories, make_file
from harnpy.world.threads import OfProcess

# What SQLite's errors mean to callers of a store. Spec: 10 §C6.2, §C11.


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNREACHABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


@contextmanager
def failures(url: StoreUrl) -> Iterator[None]:
    """Raise what SQLite raises as a `StorageError`."""
    try:
        yield
    except FAILURES as error:
        raise translated(error, url) from error


#: What SQLite's module raises. That what a damaged database says of itself is no text, it finds out last.
FAILURES = (sqlite3.Error, UnicodeError)


def translated(error: sqlite3.Error | UnicodeError, url: StoreUrl) -> StorageError:
    """Return the error of the store that ``error`` is."""
    if isinstance(error, UnicodeEncodeError):
        return StorageError(f"{url} keeps Unicode text, and `{error.object!r}` is none")
    if isinstance(error, UnicodeError):
        return CorruptLog(url.target, "the database is damaged: a text in it isn't UTF-8")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreBusy(str(url), url.timeout)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(str(url))
    if code == sqlite3.SQLITE_NOTADB:
        return CorruptLog(url.target, "this is no SQLite database")
    if code == sqlite3.SQLITE_CORRUPT or isinstance(error, sqlite3.IntegrityError):
        return CorruptLog(url.target, f"the database is damaged (SQLite: {error})")
    if code in _UNREACHABLE:
        return StoreUnreachable(str(url), f"it can't be opened or written (SQLite: {error})")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreClosed(str(url))
    return StorageError(f"{url}: SQLite failed: {error}")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether trying again may help."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


# The tables of a store, and the file that holds them. Spec: 10 §C6.2.


#: "HARn", which tells our files from other SQLite databases.
APPLICATION = 0x4841526E
VERSION = 2

#: A record's number in the store is its stream's, shifted, and its own: one b-tree has them all in order.
SHIFT = 34

#: A deleted stream whose records others still share: of no kind, and no append expects this version.
STEM_KIND = ""
STEM_VERSION = -1

#: How long streams are. An append writes nothing but its records, so ``streams.version`` may be behind the
#: last of them; it is 0 for a stream without records alone, and never too high.
_CURRENT = f"""
VIEW current AS
SELECT sid, kind, name, parent, fork_seq, status, agent, created, updated, head,
  CASE WHEN version < 0 THEN version ELSE max(version, ifnull(
    (SELECT max(rid) FROM records WHERE rid BETWEEN sid << {SHIFT} AND ((sid + 1) << {SHIFT}) - 1)
    - (sid << {SHIFT}), 0)) END AS version
FROM streams"""

#: Version 1 had no view, and ``streams.version`` was exact. Who opens such a file has a view of his own, and
#: keeps it exact, so that an older harnpy goes on working.
_EXACT = f"""
CREATE TEMP TRIGGER records_counted AFTER INSERT ON main.records BEGIN
  UPDATE streams SET version = max(version, NEW.rid & {(1 << SHIFT) - 1})
  WHERE sid = NEW.rid >> {SHIFT} AND version >= 0;
END"""

TABLES = """
CREATE TABLE streams (
  sid INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 0,
  parent INTEGER REFERENCES streams(sid), fork_seq INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '',
  created INTEGER NOT NULL, updated INTEGER NOT NULL,
  head TEXT NOT NULL DEFAULT '{}',
  UNIQUE (kind, name)) STRICT;
CREATE INDEX streams_updated ON streams(kind, updated DESC, sid);
CREATE INDEX streams_parent ON streams(parent, created, sid) WHERE parent IS NOT NULL;
CREATE TABLE records (
  rid INTEGER PRIMARY KEY, type TEXT NOT NULL, time INTEGER NOT NULL,
  turn INTEGER, more INTEGER NOT NULL DEFAULT 0, cost REAL, tool_key BLOB,
  data TEXT NOT NULL, rest TEXT) STRICT;
CREATE INDEX records_tool ON records(tool_key) WHERE tool_key IS NOT NULL;
CREATE TRIGGER records_frozen BEFORE UPDATE ON records
  BEGIN SELECT RAISE(ABORT, 'records are append-only'); END;
CREATE TABLE leases (
  key TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, boot TEXT NOT NULL,
  expires_at REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE tickets (
  ticket INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, owner TEXT NOT NULL,
  alive_until REAL NOT NULL) STRICT;
CREATE INDEX tickets_key ON tickets(key, ticket);
"""


_WHAT_IT_IS = """
SELECT EXISTS (SELECT 1 FROM sqlite_schema), application_id, user_version
FROM pragma_application_id, pragma_user_version
"""


def prepare(connection: Connection, url: StoreUrl) -> None:
    """Make an empty database a store, and have the connection know what an older version lacks.

    The file's version stays as it is: `upgrade` raises it. Raises for a file that is something else or newer,
    which is left alone.
    """
    version = _version(connection, url)
    if version == 0:
        with _alone(connection):
            version = _version(connection, url)  # another process may have been faster
            if version == 0:
                for statement in _statements():
                    connection.execute(statement)
                connection.execute(f"CREATE {_CURRENT}")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                version = VERSION
    if version < VERSION:
        connection.execute(f"CREATE TEMP {_CURRENT}")
        connection.execute(_EXACT)


def upgrade(connection: Connection, url: StoreUrl, *, dry_run: bool) -> int:
    """Make a store one of the newest version, and return which one it was.

    Raises `NoStore` for an empty database, and what `prepare` does.
    """
    found = _version(connection, url)
    if found == 0:
        raise NoStore(str(url))
    if found < VERSION and not dry_run:
        with _alone(connection):
            if _version(connection, url) < VERSION:
                connection.execute(f"CREATE {_CURRENT}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    return found


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """A transaction that no other process writes beside."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: Connection, url: StoreUrl) -> int:
    """Return the version of a store, 0 for an empty database."""
    # Asked at once: between two questions another process may make the database a store.
    has_tables, application, version = connection.execute(_WHAT_IT_IS).fetchone()
    if application == APPLICATION:
        if version > VERSION:
            raise SchemaTooNew(str(url), version, VERSION)
        return int(version)
    if has_tables:
        raise StoreUnreachable(str(url), "it is a SQLite database of another program")
    return 0


def _statements() -> list[str]:
    """The statements of `TABLES`; the one of the trigger has a semicolon of its own."""
    statements = TABLES.replace("append-only'); END", "append-only')\0 END").split(";")
    return [statement.replace("\0", ";") for statement in statements if statement.strip()]


# The connections of a store: one that writes, and as many that read as threads do so at once.
#
# Every transaction of the writer goes through `Commits`. A database in memory has the writer alone.
#
# A fork copies what SQLite knows of a file's locks, but not the locks: what is written through a connection
# that is opened beside the copies is lost when the other process closes the file. So no thread is inside
# SQLite while the process forks, and the new one closes its copies at once, while the other's locks keep that
# from touching the file. Spec: 10 §C6.2.


MEMORY = ":memory:"
#: The oldest SQLite with STRICT tables.
_OLDEST = (3, 37)
_PAUSE = 0.01
#: How long the log grows before it is copied back. Appends write the same pages again and again: a longer
#: log has fewer of them copied, and makes the appends that wait for the copying rarer.
LOG_PAGES = 2000
#: Bytes of a page of a new file. Fewer would hold one long reply and waste the rest: a fifth of the file.
_PAGE = 8192


#: Seconds that a fork waits for other threads to leave SQLite.
_MOST_STILL = 1.0


class Connections(OfProcess):
    """Opens the file, creating it and its directory when they don't exist; in a forked process anew."""

    def __init__(self, url: StoreUrl) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise Unsupported(f"{url} needs SQLite 3.37 or newer, and this is {sqlite3.sqlite_version}")
        if not url.target:
            raise StoreUnreachable(str(url), "a file is missing, as in sqlite:.harn/sessions.db")
        self.url = url
        self.in_memory = url.target == MEMORY
        self.closed = False
        self.lock = RLock()
        #: Those that nobody reads with, and all.
        self._readers: list[sqlite3.Connection] = []
        self._all_readers: list[sqlite3.Connection] = []
        #: Who begins to read comes through it; one item for each that is in there.
        self._gate = Lock()
        self._inside: list[None] = []
        self._holds = self._is_lost = self._is_shut = False
        #: Whether nobody was inside SQLite at the last fork.
        self.is_still = False
        #: Wherever the process goes meanwhile.
        self._place = MEMORY if self.in_memory else os.path.abspath(url.target)
        if not self.in_memory:
            self._make_file()
        self._open()
        self.bind()

    def _open(self) -> None:
        with failures(self.url):
            self.writer = self._patiently(self._open_writer)
        self.cursor = self.writer.cursor()
        self._file = self._identity()

    def _identity(self) -> tuple[int, int] | None:
        """Return which file is at the path now, None for none."""
        try:
            found = os.stat(self._place)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def check_there(self) -> None:
        """Raise `NoStore` when the file was deleted, or another one put in its place: what is written then
        reaches nobody."""
        if not self.in_memory and self._identity() != self._file:
            raise NoStore(str(self.url), "its file was deleted or replaced while it was open")

    def hold(self) -> None:
        gives_up = time.monotonic() + _MOST_STILL
        self._holds = self.lock.acquire(timeout=_MOST_STILL)
        self._gate.acquire()
        while self._inside and time.monotonic() < gives_up:
            time.sleep(_PAUSE / 10)
        self.is_still = self._holds and not self._inside

    def let_go(self) -> None:
        self._gate.release()
        if self._holds:
            self.lock.release()

    def forked(self) -> None:
        self.lock, self._gate, self._inside = RLock(), Lock(), []
        self._is_lost = self._is_lost or not self.is_still
        if self.is_still and not self.in_memory and not self.closed:
            self._close_all()
            self._is_shut = True  # until `check_open`

    @property
    def _level(self) -> str:
        return "NORMAL" if self.url.durability == "relaxed" else "FULL"

    def wait_for_disk(self, *, wait: bool) -> None:
        """Have commits of the writer wait for the disk, as far as the store's durability asks for it."""
        self.writer.execute(f"PRAGMA synchronous = {self._level if wait else 'NORMAL'}")

    def _make_file(self) -> None:
        """Create the file and its directory; SQLite gives the rights of the file to those beside it."""
        file, directory = self.url.modes
        try:
            make_directories(os.path.dirname(self.url.target) or ".", directory)
            make_file(self.url.target, file)
        except OSError as error:
            raise StoreUnreachable(str(self.url), error.strerror or str(error)) from error

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._connect(self._place)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            prepare(connection, self.url)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {self._level}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, place: str, *, uri: bool = False) -> sqlite3.Connection:
        return sqlite3.connect(
            place,
            timeout=self.url.timeout,
            isolation_level=None,
            check_same_thread=False,
            uri=uri,
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
        try:  # not with `failures`: this is asked for at each request of a server
            if self.in_memory:
                with self.lock:
                    yield self.writer
                return
            with self._gate:
                self._inside.append(None)
                reader = self._readers.pop() if self._readers else None
            try:
                if reader is None:
                    reader = self._patiently(self._open_reader)
                yield reader
            finally:
                if reader is not None:
                    self._give_back(reader)
                self._inside.pop()
        except FAILURES as error:
            raise translated(error, self.url) from error

    def _open_reader(self) -> sqlite3.Connection:
        """Open one more. Raises `NoStore`: where the file was deleted, SQLite would make another one."""
        self.check_there()
        from pathlib import Path

        reader = self._connect(f"{Path(self._place).as_uri()}?mode=rw", uri=True)
        try:
            prepare(reader, self.url)
            reader.execute("PRAGMA query_only = ON")
            reader.execute("SELECT 1 FROM streams LIMIT 1").fetchone()
            self.check_there()
        except BaseException:
            reader.close()
            raise
        self._all_readers.append(reader)
        return reader

    def _give_back(self, reader: sqlite3.Connection) -> None:
        self._readers.append(reader)
        if self.closed:
            self._close_readers()

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`. In a process that was forked off, open the file anew."""
        if self.closed:
            raise StoreClosed(str(self.url))
        if self._is_lost:
            reason = "another thread was using it when this process was forked: open it anew"
            raise StoreUnreachable(str(self.url), reason)
        if self._is_shut:
            with self.lock:
                if self._is_shut:
                    self._open()
                    self._is_shut = False

    def close(self) -> None:
        """Close all of them; those that somebody reads with right now, when that ends."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self._close_all()

    def _close_all(self) -> None:
        self._close_readers()
        self.writer.close()

    def _close_readers(self) -> None:
        while self._readers:
            reader = self._readers.pop()
            self._all_readers.remove(reader)
            reader.close()


T = TypeVar("T")

#: From how many seconds on a commit waits for the disk, and is worth being waited for; and how long at most.
_DEAR, _PATIENCE = 0.0002, 0.005


class Job:
    """A part of a transaction that others may share. ``error`` is why it wasn't done."""

    __slots__ = ("done", "error", "leads", "wake")

    def __init__(self) -> None:
        self.done = False
        self.error: StorageError | None = None
        #: Held until the job is done, or is to lead; None for one that needn't wait.
        self.wake: LockType | None = None
        self.leads = False

    def write(self, cursor: sqlite3.Cursor) -> None:
        """Write. Raises a `StorageError` before anything is written, or whatever SQLite raises."""
        raise NotImplementedError

    def committed(self) -> None:
        """Called right after the commit, in the order of the writes."""


class Commits(OfProcess):
    """The transactions of one store in this process, one after the other."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._url = connections.url
        self.count = 0
        self.forked()
        self.bind()

    def forked(self) -> None:
        self._queue: deque[Job] = deque()
        #: Guards the queue, and whether somebody leads.
        self._entry = Lock()
        self._led = False
        self._begun = False
        #: How many jobs the last transaction had, and how many seconds its commit took.
        self._size = 0
        self._took = 0.0
        #: How many jobs the leader waits for, 0 when it doesn't, and what it waits at.
        self._wanted = 0
        self._bell = Lock()
        #: Announces commits of this process, which ``count`` counts, to those who wait for some.
        self._changed = Condition()
        self._waiting = 0

    def run(self, job: Job) -> None:
        """Write ``job``, together with all others that wait. Returns after its commit."""
        with self._entry:
            self._queue.append(job)
            if self._led:
                job.wake = Lock()
                job.wake.acquire()
                if self._wanted and len(self._queue) >= self._wanted:
                    self._wanted = 0
                    self._bell.release()
            self._led = True
        try:
            if job.wake is not None:
                job.wake.acquire()
            if not job.done:
                self._lead()
        except BaseException:
            self._leave(job)
            raise
        if job.error is not None:
            raise job.error

    def _lead(self) -> None:
        if self._size > 1 and self._took > _DEAR:
            self._gather()
        with self._connections.lock:
            self._write_all()
        self._hand_on()

    def _gather(self) -> None:
        """Wait for as many as shared the last commit, but for no longer than half of what that took.

        The first of them that came back would have a commit by itself, and all others would wait for it.
        """
        with self._entry:
            if len(self._queue) >= self._size:
                return
            self._wanted, self._bell = self._size, Lock()
            self._bell.acquire()
        try:
            self._bell.acquire(timeout=min(self._took / 2, _PATIENCE))
        finally:
            self._wanted = 0

    def _leave(self, job: Job) -> None:
        """Take a job out whose thread was interrupted; if it led, somebody else must."""
        with self._entry:
            if job in self._queue:
                self._queue.remove(job)
        if job.leads or job.wake is None:
            self._hand_on()

    def _hand_on(self) -> None:
        """Have the first one that waits lead."""
        with self._entry:
            self._led = bool(self._queue)
            if self._led:
                heir = self._queue[0]
                heir.leads = True
                if heir.wake is not None:
                    heir.wake.release()

    def transact(self, work: Callable[[sqlite3.Cursor], T], *, lasting: bool = True) -> T:
        """Return what ``work`` does in a transaction of its own; nothing of it stays when it raises.

        Unless it is ``lasting``, a power cut may take it: nobody waits for the disk.
        """
        with self._connections.lock:
            self._connections.check_open()
            cursor = self._connections.cursor
            if not lasting:
                self._connections.wait_for_disk(wait=False)
            try:
                cursor.execute("BEGIN IMMEDIATE")
                result = work(cursor)
                self.commit()
            except FAILURES as error:
                self._roll_back()
                raise translated(error, self._url) from error
            except BaseException:
                self._roll_back()
                raise
            finally:
                if not lasting:
                    self._connections.wait_for_disk(wait=True)
            self._announce()
        return result

    def empty_log(self, *, rewrite: bool = False) -> bool:
        """Copy the log back and empty it. Return False while somebody reads.

        ``rewrite``: first write the file anew, without what was deleted.
        """
        with self._connections.lock, failures(self._url):
            self._connections.check_open()
            cursor = self._connections.cursor
            if rewrite:
                cursor.execute("VACUUM")
            return not cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def commit(self) -> None:
        """End the transaction."""
        begin = perf_counter()
        self._connections.cursor.execute("COMMIT")
        self._took = perf_counter() - begin

    def _write_all(self) -> None:
        """Write the jobs that wait, in one transaction, or one by one when one of them spoils it."""
        jobs = self._waiting_jobs()
        try:
            self._connections.check_open()
            self._write(jobs)
        except StorageError as error:
            self._fail(jobs, error)
        except FAILURES as error:
            self._roll_back()
            if len(jobs) == 1:
                self._fail(jobs, translated(error, self._url))
            else:
                self._write_apart(jobs)
        except BaseException:
            self._give_up(jobs)
            raise
        else:
            self._finish(jobs)

    def _waiting_jobs(self) -> list[Job]:
        with self._entry:
            jobs = [*self._queue]
            self._queue.clear()
        return jobs

    def _write(self, jobs: Sequence[Job]) -> None:
        cursor = self._connections.cursor
        self._begun = False
        cursor.execute("BEGIN IMMEDIATE")
        self._begun = True
        for job in jobs:
            try:
                job.write(cursor)
            except StorageError as error:
                job.error = error
        self.commit()
        self._size = len(jobs)

    def _write_apart(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.error = None
            try:
                self._write((job,))
            except FAILURES as error:
                self._roll_back()
                job.error = translated(error, self._url)
            except BaseException:
                self._give_up([job for job in jobs if not job.done])
                raise
            self._finish((job,))

    def _finish(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if job.error is None:
                job.committed()
            _end(job)
        self._announce()

    def _fail(self, jobs: Sequence[Job], error: StorageError) -> None:
        for job in jobs:
            job.error = error
            _end(job)

    def _give_up(self, jobs: Sequence[Job]) -> None:
        """Leave the jobs of others to the next one who gets the lock: this thread was interrupted."""
        if self._begun and not self._connections.writer.in_transaction:
            self._finish(jobs)  # the interruption came right behind the commit
            return
        self._roll_back()
        with self._entry:
            self._queue.extendleft(reversed(jobs))

    def _roll_back(self) -> None:
        if not self._connections.closed and self._connections.writer.in_transaction:
            self._connections.cursor.execute("ROLLBACK")

    def wait(self, seen: int, timeout: float) -> None:
        """Wait for a commit of this process, unless there were some since ``seen`` of them."""
        with self._changed:
            self._waiting += 1
            try:
                if self.count == seen:
                    self._changed.wait(timeout)
            finally:
                self._waiting -= 1

    def _announce(self) -> None:
        self.count += 1
        if self._waiting:
            with self._changed:
                self._changed.notify_all()


def _end(job: Job) -> None:
    job.done = True
    if job.wake is not None and not job.leads:
        job.wake.release()
