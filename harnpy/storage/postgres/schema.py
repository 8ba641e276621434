"""The tables. Spec: 10 §C6.3.

A stream that was deleted while branches share its records stays as a *stem*: its row has a time in
``deleted``, and its name is free. ``texts`` is what searches look through, a cache: `texts.py` fills it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.errors import SchemaTooNew

if TYPE_CHECKING:
    from psycopg import Connection

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
