"""Transactions on the server: a pool of connections, what is tried again, and how failures are called.

A transaction that was lost before its ``COMMIT`` was sent is tried once more. When the connection broke
later, nobody here knows how it ended, and the caller has to look. Spec: 10 §C6.3.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from harnpy.storage.errors import StorageError, StoreBusy, StoreClosed, StoreFull, StoreUnreachable
from harnpy.storage.opening import shown
from harnpy.storage.postgres import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

    from harnpy.storage.opening import StoreUrl

T = TypeVar("T")

#: Connections of one store in one process.
_CONNECTIONS = 10

# A commit that waits does so also where the server's own setting is not to.
_SET = """
SELECT set_config('lock_timeout', %(timeout)s, true), set_config('synchronous_commit',
  CASE WHEN %(waits)s THEN coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')
  ELSE 'off' END, true)
"""
#: The same in a statement that is a transaction by itself. Whatever it locks must come ``FROM settings``.
SETTINGS = f"settings AS MATERIALIZED ({_SET})"

#: What the server takes back by itself and asks us to try again.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
#: A lock that wasn't to be had within the timeout.
_BUSY = (errors.LockNotAvailable, errors.QueryCanceled)
#: The classes of states that say that the connection broke: exceptions of it, interventions of an operator.
_LOST = ("08", "57")


class Database:
    """The server of one store. Every error that leaves it is a `StorageError`."""

    def __init__(self, url: StoreUrl) -> None:
        self.url = str(url)
        self.timeout = url.timeout
        #: How a transaction waits: for locks, and for the disk.
        self.settings = {
            "timeout": f"{max(1, round(url.timeout * 1000))}ms",
            "waits": url.durability == "full",
        }
        self._conninfo, self._password = self._parse(url)
        self.closed = False
        logger = logging.getLogger("psycopg.pool")
        if not logger.hasHandlers():
            logger.addHandler(logging.NullHandler())  # what it would print reaches the caller as an error
        with self._reported(), self.connect() as connection:
            schema.prepare(connection, self.url)
        self._pool = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},  # poolers know no prepared statements
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=max(0.001, url.timeout),
            open=True,
            name="harnpy",
        )

    def connect(self) -> Connection:
        """Return a connection of the caller's own, outside the pool. Raises psycopg's errors."""
        return psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)

    def close(self) -> None:
        self.closed = True
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
                    waiting = self.settings if waits is None else {**self.settings, "waits": waits}
                    connection.execute(_SET, waiting)
                    result = work(connection)
                    sent = True
            except psycopg.OperationalError as error:
                if sent and _is_lost(error):
                    raise _Unknown from error
                raise
            return result

        return self._twice(attempt, made)

    def state(self, work: Callable[[Connection], T], *, made: Callable[[], T | None]) -> T:
        """Run ``work``, whose first statement is a transaction by itself; what it writes sets `SETTINGS`.

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
        with self._reported():
            try:
                return self._once(attempt)
            except (_Unknown, psycopg.OperationalError) as error:
                is_unsure = isinstance(error, _Unknown)
                if (is_unsure and made is None) or not (is_unsure or _may_try_again(error)):
                    raise
                self._pool.check()  # whatever broke this connection broke the idle ones, too
            result = made() if is_unsure and made is not None else None
            return self._again(attempt, made, is_unsure=is_unsure) if result is None else result

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
        with self._pool.connection() as connection:
            return attempt(connection)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn psycopg's errors into ours."""
        try:
            yield
        except PoolTimeout as error:
            raise self._no_connection() from error
        except _Unknown as unknown:
            raise StorageError(
                f"the connection to {self.url} broke during a commit, so nobody knows whether it was made:"
                f" {self._reason(unknown.__cause__)}; look at what is there before trying again"
            ) from unknown.__cause__
        except errors.DiskFull as error:
            raise StoreFull(self.url) from error
        except (*_BUSY, *_AGAIN) as error:
            raise StoreBusy(self.url, self.timeout) from error
        except (psycopg.Error, UnicodeEncodeError) as error:
            self.check_open()
            if _is_lost(error):
                raise StoreUnreachable(self.url, self._reason(error)) from error
            raise StorageError(f"{self.url}: {self._reason(error)}") from error

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
        known.setdefault("connect_timeout", max(2, round(url.timeout)))
        known.setdefault("fallback_application_name", "harnpy")
        return make_conninfo("", **known), str(known.get("password") or "")

    def _reason(self, error: BaseException | None) -> str:
        """Return the server's words as one sentence, without the password."""
        words = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        if self._password:
            words = words.replace(self._password, "***")
        return shown(words) or type(error).__name__


class _Unknown(Exception):
    """The connection broke after the commit was sent."""


def _may_try_again(error: BaseException) -> bool:
    """Whether the server took a transaction back by itself, or the connection broke before its commit."""
    return isinstance(error, _AGAIN) or _is_lost(error)


def _is_lost(error: BaseException) -> bool:
    """Whether the connection broke, or the server ended it."""
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, (PoolTimeout, *_BUSY)):
        return False
    return error.sqlstate is None or error.sqlstate[:2] in _LOST
