"""What SQLite's errors mean to callers of a store. Spec: 10 §C6.2, §C11."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harnpy.storage.errors import (
    CorruptLog,
    StorageError,
    StoreBusy,
    StoreClosed,
    StoreFull,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.opening import StoreUrl

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNREACHABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


@contextmanager
def failures(url: StoreUrl) -> Iterator[None]:
    """Raise what SQLite raises as a `StorageError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, url) from error
    except UnicodeEncodeError as error:
        raise StorageError(f"{url} keeps Unicode text, and `{error.object!r}` is none") from error


def translated(error: sqlite3.Error, url: StoreUrl) -> StorageError:
    """Return the error of the store that ``error`` is."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreBusy(str(url), url.timeout)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(str(url))
    if code in _CORRUPT or isinstance(error, sqlite3.IntegrityError):
        return CorruptLog(url.target, str(error))
    if code in _UNREACHABLE:
        return StoreUnreachable(str(url), str(error))
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreClosed(str(url))
    return StorageError(f"{url}: {error}")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether trying again may help."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
