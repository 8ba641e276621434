"""The database: its tables, transactions on a pool of connections, and waiting for what others announce.

Spec: 10 §C6.3.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from select import select
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from harnpy.storage.errors import (
    NoStore,
    SchemaTooNew,
    StorageError,
    StoreBusy,
    StoreClosed,
    StoreFull,
    StoreUnreachable,
)
from harnpy.storage.opening import StoreUrl, parse_url, shown
from harnpy.world.threads import OfProcess

# Which servers a URL names, before anybody connects to them. Spec: 04 §21.4.


_PORT = 5432


def servers(url: str) -> list[tuple[str, int]] | None:
    """Return hosts and ports as `libpq` reads the URL; a host that is a path is a socket of this machine.

    None or nothing when it leaves them to the environment or to a file of services, or is no such URL.
    """
    try:
        parsed = parse_url(url)
        known = conninfo_to_dict(f"{parsed.scheme}:{parsed.target}")
        ports = [int(port or _PORT) for port in str(known.get("port") or "").split(",")]
    except (psycopg.Error, StorageError, ValueError):
        return None
    # With both, the addresses are what is connected to, and the names what they are called.
    lists = [str(known[key]).split(",") for key in ("host", "hostaddr") if known.get(key)]
    found: list[tuple[str, int]] = []
    for hosts in lists:
        if not all(hosts) or len(ports) not in (1, len(hosts)):
            return None
        found += zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    return None if "service" in known else found


# Which credentials a server is given, and how. Spec: 10 §C6.3.


#: Instead of those that `libpq` finds by itself: a file that no system has, and no certificate or ticket.
_NO_CREDENTIALS = {"passfile": "/dev/null/none", "sslcert": "/dev/null/none", "gssencmode": "disable"}
_ENCRYPTED = ("require", "verify-ca", "verify-full")


def _safe_passwords(known: Mapping[str, Any], ambient: bool) -> dict[str, str]:
    """Return what keeps a password from going anywhere unhashed without encryption.

    ``known`` is the URL taken apart. It, or with ``ambient`` the environment, may say otherwise.
    """
    usual = {each.keyword.decode(): (each.val or b"").decode() for each in Conninfo.get_defaults()}
    said = {**usual, **known} if ambient else known
    if said.get("require_auth"):
        return {}
    encrypted = said.get("sslmode") in _ENCRYPTED
    if "require_auth" not in usual:  # libpq before 16
        return {} if encrypted or not said.get("password") else {"sslmode": "require"}
    if encrypted:
        return {} if ambient else {"require_auth": "!gss,!sspi"}
    return {"require_auth": f"none,scram-sha-256{',gss,sspi' if ambient else ''}"}


# The tables. Spec: 10 §C6.3.
#
# A stream that was deleted while branches share its records stays as a *stem*: its row has a time in
# ``deleted``, and its name is free. ``texts`` is what searches look through, a cache: `texts.py` fills it.


#: The version of the tables that this harnpy knows.
VERSION = 1

#: The advisory lock under which the tables are created: "Harn".
_LOCK = 0x4841526E

TABLES = """
CREATE SCHEMA IF NOT EXISTS harn;
CREATE TABLE harn.format (version integer NOT NULL);
CREATE TABLE harn.streams (
  sid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, version bigint NOT NULL,
  parent bigint REFERENCES harn.streams(sid) ON DELETE SET NULL, fork_seq bigint NOT NULL DEFAULT 0,
  dropped bigint NOT NULL DEFAULT 0,           -- records up to that number, but for number 1, aren't shown
  status text NOT NULL DEFAULT '', agent text NOT NULL DEFAULT '',
  created timestamptz NOT NULL, updated timestamptz NOT NULL, deleted timestamptz,
  head json NOT NULL DEFAULT '{}') WITH (fillfactor = 80);
CREATE UNIQUE INDEX streams_name ON harn.streams(kind, name) WHERE deleted IS NULL;
CREATE INDEX streams_updated ON harn.streams(kind, updated DESC, name) WHERE deleted IS NULL;
CREATE INDEX streams_parent ON harn.streams(parent) WHERE parent IS NOT NULL;
CREATE TABLE harn.records (
  sid bigint NOT NULL, seq bigint NOT NULL, type text NOT NULL, time timestamptz NOT NULL,
  turn bigint, more integer NOT NULL DEFAULT 0, cost double precision,
  tool_key bytea,                              -- first 16 bytes of SHA-256 of the key
  data json NOT NULL, rest json, PRIMARY KEY (sid, seq)) WITH (toast_tuple_target = 8160);
CREATE INDEX records_tool ON harn.records(tool_key) WHERE tool_key IS NOT NULL;
CREATE TABLE harn.texts (
  sid bigint NOT NULL, seq bigint NOT NULL, folded text NOT NULL, PRIMARY KEY (sid, seq));
CREATE TABLE harn.texts_until (sid bigint PRIMARY KEY, seq bigint NOT NULL);
CREATE TABLE harn.leases (
  key text COLLATE "C" PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL,
  expires_at timestamptz NOT NULL);            -- -infinity: it was let go
CREATE TABLE harn.tickets (
  ticket bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL,
  owner text NOT NULL, alive_until timestamptz NOT NULL);
CREATE INDEX tickets_key ON harn.tickets(key, ticket);
INSERT INTO harn.format VALUES (1);
"""

# Asked of the catalog itself: the server may remember for a while that a name led nowhere.
_KNOWN = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'harn' AND tablename = 'format'"

_TRIGRAMS_CAN_BE_HAD = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
_TRIGRAMS = """
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX IF NOT EXISTS texts_folded ON harn.texts USING gin (folded gin_trgm_ops);
"""


def prepare(connection: Connection, url: str) -> None:
    """Create the tables unless they are there. Raises `SchemaTooNew` when a newer harnpy made them."""
    found = _version(connection)
    if found is None:
        with connection.transaction():
            # Stores that are opened at the same time create them once.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            found = _version(connection)
            if found is None:
                connection.execute(TABLES)
                found = VERSION
        _index_trigrams(connection)
    if found > VERSION:
        raise SchemaTooNew(url, found, VERSION)


def version(connection: Connection, url: str) -> int:
    """Return the version of a store.

    Raises `NoStore` for a database without tables, and `SchemaTooNew`.
    """
    found = _version(connection)
    if found is None:
        raise NoStore(url)
    if found > VERSION:
        raise SchemaTooNew(url, found, VERSION)
    return found


def _version(connection: Connection) -> int | None:
    if connection.execute(_KNOWN).fetchone() is None:
        return None
    row = connection.execute("SELECT version FROM harn.format").fetchone()
    return None if row is None else int(row[0])


def _index_trigrams(connection: Connection) -> None:
    """Make searches fast where the server has ``pg_trgm`` and we may use it; they work without."""
    from psycopg.errors import Error

    if connection.execute(_TRIGRAMS_CAN_BE_HAD).fetchone() is None:
        return
    try:
        with connection.transaction():
            connection.execute(_TRIGRAMS)
    except Error:
        return


# Transactions on the server: a pool of connections, what is tried again, and how failures are called.
#
# A transaction that was lost before its ``COMMIT`` was sent is tried once more. When the connection broke
# later, nobody here knows how it ended, and the caller has to look. Spec: 10 §C6.3.


T = TypeVar("T")

#: How many times a connection is asked something before the server keeps its plan.
_OFTEN = 5

#: Connections of one store in one process.
_CONNECTIONS = 10

#: Seconds that a process may stand still in a transaction, at least: then the server takes it back, since its
#: locks keep everybody else from writing.
_STANDS_STILL = 5.0

# A commit that waits does so also where the server's own setting is not to.
_SET = """
SELECT set_config('lock_timeout', %(timeout)s, {local}),
  set_config('idle_in_transaction_session_timeout', %(still)s, {local}), set_config('synchronous_commit',
  CASE WHEN %(waits)s THEN coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')
  ELSE 'off' END, {local})
"""
_SET_SESSION, _SET_TRANSACTION = _SET.format(local="false"), _SET.format(local="true")
#: The same in a statement that is a transaction by itself. Whatever it locks must come ``FROM settings``.
_SETTINGS = f"settings AS MATERIALIZED ({_SET_TRANSACTION})"
#: In its place where the session has them: the planner leaves nothing of it.
_NO_SETTINGS = "settings AS (SELECT 1)"

#: What the server takes back by itself and asks us to try again.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
#: What it has taken back from a process that stood still.
_TAKEN_BACK = errors.IdleInTransactionSessionTimeout
#: A lock that wasn't to be had within the timeout.
_BUSY = (errors.LockNotAvailable, errors.QueryCanceled)
#: The classes of states that say that the connection broke: exceptions of it, interventions of an operator.
_LOST = ("08", "57")


class Database(OfProcess):
    """The server of one store. Every error that leaves it is a `StorageError`. In a process that was forked
    off it has connections of its own.

    ``prepare`` is called with the first connection and the URL, before anything else.
    """

    def __init__(self, url: StoreUrl, prepare: Callable[[Connection, str], object] = prepare) -> None:
        self.url = str(url)
        self.timeout = url.timeout
        self._pooler = url.pooler
        #: How a transaction waits: for locks, and for the disk.
        self.settings = {
            "timeout": f"{max(1, round(url.timeout * 1000))}ms",
            "still": f"{round(max(_STANDS_STILL, url.timeout) * 1000)}ms",
            "waits": url.durability == "full",
        }
        #: What libpq connects with, password and all.
        self.conninfo, self._password = self._parse(url)
        self.closed = False
        logger = logging.getLogger("psycopg.pool")
        if not logger.hasHandlers():
            logger.addHandler(logging.NullHandler())  # what it would print reaches the caller as an error
        try:
            with self.connect() as connection:
                prepare(connection, self.url)
        except _FAILURES as error:
            raise self._translated(error) from error
        #: Those of the processes that this one was forked off from: never closed here, which would tell the
        #: server that the other one has gone.
        self._inherited: list[ConnectionPool] = []
        self._pool: ConnectionPool | None = self._new_pool()
        self._opening = Lock()
        self.bind()

    def forked(self) -> None:
        if self._pool is not None:
            self._inherited.append(self._pool)
        self._pool, self._opening = None, Lock()

    def _new_pool(self) -> ConnectionPool:
        return ConnectionPool(
            self.conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},
            configure=self._configure,
            # None in advance: while that was being made, the first caller would have another one made, and
            # the two would be used in turns, which is slower than one process of the server by itself.
            min_size=0,
            max_size=_CONNECTIONS,
            timeout=max(0.001, self.timeout),
            open=True,
            name="harnpy",
        )

    def connect(self) -> Connection:
        """Return a connection of the caller's own, outside the pool. Raises psycopg's errors."""
        return psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=None)

    def _configure(self, connection: Connection) -> None:
        """Have the server keep our settings, and plans for what is often asked, without a pooler in between.

        A pooler sends a statement to any process, and that isn't the one that it has named as ours.
        """
        pooled = self._pooler
        if pooled is None:
            (answers,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
            pooled = answers != connection.info.backend_pid
        if not pooled:
            connection.execute(_SET_SESSION, self.settings)
            connection.prepare_threshold = _OFTEN

    def settings_of(self, connection: Connection) -> tuple[str, dict[str, Any]]:
        """Return what a statement that is a transaction by itself begins with, and the values for it."""
        return (_NO_SETTINGS, {}) if _has_session(connection) else (_SETTINGS, self.settings)

    def close(self) -> None:
        self.closed = True
        if self._pool is not None:
            self._pool.close()

    def check_open(self) -> None:
        """Raise `StoreClosed` after `close`."""
        if self.closed:
            raise StoreClosed(self.url)

    def read(self, query: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Return what a query finds."""
        return self._twice(lambda connection: connection.execute(query, values).fetchall(), None)

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        pipeline: bool = False,
        waits: bool | None = None,
        made: Callable[[], T | None] | None = None,
    ) -> T:
        """Run ``work`` in a transaction and return what it returns.

        With ``pipeline``, statements whose results nobody fetches wait for no answer. ``waits``
        says whether the commit is on the medium when this returns (None: what the store's URL says).
        ``made`` looks whether a transaction whose end is unknown was made: it returns what that would have
        returned, None when it wasn't.
        """

        def attempt(connection: Connection) -> T:
            sent = False
            try:
                with connection.pipeline() if pipeline else nullcontext(), connection.transaction():
                    if waits is not None or not _has_session(connection):
                        waiting = self.settings if waits is None else {**self.settings, "waits": waits}
                        connection.execute(_SET_TRANSACTION, waiting)
                    result = work(connection)
                    sent = True
            except psycopg.OperationalError as error:
                if sent and _is_lost(error):
                    raise _Unknown from error
                raise
            return result

        return self._twice(attempt, made)

    def state(self, work: Callable[[Connection], T], *, made: Callable[[], T | None]) -> T:
        """Run ``work``, whose first statement is a transaction by itself, with `settings_of` the connection.

        ``made`` as in `write`. The others may only read.
        """

        def attempt(connection: Connection) -> T:
            try:
                return work(connection)
            except psycopg.OperationalError as error:
                if _is_lost(error):
                    raise _Unknown from error
                raise

        return self._twice(attempt, made)

    def _twice(self, attempt: Callable[[Connection], T], made: Callable[[], T | None] | None) -> T:
        try:
            try:
                return self._once(attempt)
            except (_Unknown, psycopg.OperationalError, _TAKEN_BACK) as error:
                is_unsure = isinstance(error, _Unknown)
                if (is_unsure and made is None) or not (is_unsure or _may_try_again(error)):
                    raise
                self._connections().check()  # whatever broke this connection broke the idle ones, too
            result = made() if is_unsure and made is not None else None
            return self._again(attempt, made, is_unsure=is_unsure) if result is None else result
        except _FAILURES as error:
            raise self._translated(error) from (error.__cause__ if isinstance(error, _Unknown) else error)

    def _again(
        self, attempt: Callable[[Connection], T], made: Callable[[], T | None] | None, *, is_unsure: bool
    ) -> T:
        """Try for the second time. The first attempt may have been waiting for its turn when we looked."""
        try:
            return self._once(attempt)
        except (StorageError, _Unknown) as error:
            is_unsure = is_unsure or isinstance(error, _Unknown)
            result = made() if is_unsure and made is not None else None
            if result is None:
                raise
            return result

    def _once(self, attempt: Callable[[Connection], T]) -> T:
        self.check_open()
        connections = self._connections()
        connection = connections.getconn()
        try:
            return attempt(connection)
        finally:
            connections.putconn(connection)

    def _connections(self) -> ConnectionPool:
        if self._pool is None:
            with self._opening:
                self._pool = self._pool or self._new_pool()
        return self._pool

    def _translated(self, error: BaseException) -> StorageError:
        """Return the error of the store that psycopg's ``error`` is."""
        if isinstance(error, PoolTimeout):
            return self._no_connection()
        if isinstance(error, _Unknown):
            return StorageError(
                f"the connection to {self.url} broke during a commit, so nobody knows whether it was made:"
                f" {self._reason(error.__cause__)}; look at what is there before trying again"
            )
        if isinstance(error, errors.DiskFull):
            return StoreFull(self.url)
        if isinstance(error, (*_BUSY, *_AGAIN)):
            return StoreBusy(self.url, self.timeout)
        if self.closed:
            return StoreClosed(self.url)
        if _is_lost(error):
            return StoreUnreachable(self.url, self._reason(error))
        return StorageError(f"{self.url}: {self._reason(error)}")

    def _no_connection(self) -> StorageError:
        """Return why the pool has no connection: the server is gone, or all are in use."""
        try:
            self.connect().close()
        except psycopg.OperationalError as error:
            return StoreUnreachable(self.url, self._reason(error))
        return StoreBusy(self.url, self.timeout)

    def _parse(self, url: StoreUrl) -> tuple[str, str]:
        """Return what to connect with, and the password in it."""
        try:
            known = conninfo_to_dict(f"{url.scheme}:{url.target}")
        except psycopg.Error as error:
            problem = shown(str(error).strip())
            raise StorageError(f"{self.url} is no URL of a PostgreSQL database: {problem}") from None
        if not url.ambient:
            if "service" in known:
                raise StorageError(f"{self.url} stands in a file and names a service: it can't be given one")
            known = {**known, "password": known.get("password") or "", **_NO_CREDENTIALS}
        known.update(_safe_passwords(known, url.ambient))
        known.setdefault("connect_timeout", max(2, round(url.timeout)))
        known.setdefault("fallback_application_name", "harnpy")
        return make_conninfo("", **known), str(known.get("password") or "")

    def _reason(self, error: BaseException | None) -> str:
        """Return the server's words as one sentence, without the password."""
        words = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        if self._password:
            words = words.replace(self._password, "***")
        return shown(words) or type(error).__name__


def _has_session(connection: Connection) -> bool:
    """Return whether one process of the server answers all statements of the connection."""
    return connection.prepare_threshold is not None


class _Unknown(Exception):
    """The connection broke after the commit was sent."""


#: What is raised below, all that leaves as a `StorageError`.
_FAILURES = (_Unknown, psycopg.Error, UnicodeEncodeError)


def _may_try_again(error: BaseException) -> bool:
    """Return whether the server took a transaction back, or the connection broke before its commit."""
    return isinstance(error, _AGAIN) or _is_lost(error)


def _is_lost(error: BaseException) -> bool:
    """Return whether the connection broke, or the server ended it."""
    if isinstance(error, _TAKEN_BACK):
        return True
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, (PoolTimeout, *_BUSY)):
        return False
    return error.sqlstate is None or error.sqlstate[:2] in _LOST


# Waiting for what others announce: one connection and one thread a store, from the first wait on.
#
# Announcements (``NOTIFY``) only say where to look. A server behind a transaction pooler delivers none, so
# whoever waits also looks by itself now and then. Spec: 10 §C6.3.


#: Seconds until a listener that lost its connection tries to get another one.
_PAUSE = 1.0


class Listener(OfProcess):
    """Tells those who watch a subject, a kind and a name, of each announcement about it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._closed = False
        self.forked()
        self.bind()

    def forked(self) -> None:
        self._lock = Lock()
        self._watches: dict[str, list[Event]] = {}
        self._thread: Thread | None = None
        #: Ends the thread's wait; made with the thread.
        self._bell: socket.socket | None = None

    @contextmanager
    def watching(self, kind: str, *names: str) -> Iterator[Event]:
        """An event that is set by announcements about any of them, and when the store is closed."""
        event, subjects = Event(), [f"{kind} {name}" for name in names]
        with self._lock:
            for subject in subjects:
                self._watches.setdefault(subject, []).append(event)
            self._start()
        try:
            yield event
        finally:
            with self._lock:
                for subject in subjects:
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
