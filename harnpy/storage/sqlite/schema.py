"""The tables of a store, and the file that holds them. Spec: 10 §C6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.errors import SchemaTooNew, StoreUnreachable

if TYPE_CHECKING:
    from sqlite3 import Connection

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
CREATE VIEW current AS
SELECT sid, kind, name, parent, fork_seq, status, agent, created, updated, head,
  CASE WHEN version < 0 THEN version ELSE max(version, ifnull(
    (SELECT max(rid) FROM records WHERE rid BETWEEN sid << {SHIFT} AND ((sid + 1) << {SHIFT}) - 1)
    - (sid << {SHIFT}), 0)) END AS version
FROM streams"""

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


def prepare(connection: Connection, url: str) -> None:
    """Make an empty database a store, and a store of an older version one of ours.

    Raises for one that is something else or newer, which is left as it is.
    """
    if _version(connection, url) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, url)  # another process may have been faster
        if version == 0:
            for statement in _statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        if version < VERSION:
            connection.execute(_CURRENT)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: Connection, url: str) -> int:
    """Return the version of a store, 0 for an empty database."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION:
        if version > VERSION:
            raise SchemaTooNew(url, version, VERSION)
        return int(version)
    if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None:
        raise StoreUnreachable(url, "it is a SQLite database of another program")
    return 0


def _statements() -> list[str]:
    """The statements of `TABLES`; the one of the trigger has a semicolon of its own."""
    statements = TABLES.replace("append-only'); END", "append-only')\0 END").split(";")
    return [statement.replace("\0", ";") for statement in statements if statement.strip()]
