"""What is done to a store from outside, each in its own way: the disk is full, a record can't be read, a
newer harnpy has been at work."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from harnpy.storage import Store
from harnpy.storage.jsonl.layout import Medium
from harnpy.storage.opening import parse_url
from harnpy.storage.sqlite.database import SHIFT


def scheme(store: Store) -> str:
    return store.url.partition(":")[0]


def full(store: Store) -> Any:
    """No room for what ``store`` is to keep, as long as the context lasts."""
    return {"jsonl": _full_directory, "sqlite": _full_file, "postgresql": _full_server}[scheme(store)](store)


@contextmanager
def _full_directory(store: Any) -> Iterator[None]:
    room = 40

    def write(medium: Medium, file: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = min(room, len(data))
        room -= count
        return os.write(file, data[:count])

    with mock.patch.object(Medium, "write", write):
        yield


@contextmanager
def _full_file(store: Any) -> Iterator[None]:
    writer = store._connections.writer
    writer.execute("PRAGMA max_page_count = 1")  # which means: no more than there are
    yield
    writer.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def _full_server(store: Any) -> Iterator[None]:
    def change(*statements: str) -> None:
        store._database.write(lambda connection: [connection.execute(each) for each in statements])

    change(
        "CREATE FUNCTION harn.full() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON harn.records EXECUTE FUNCTION harn.full()",
    )
    yield
    change("DROP TRIGGER full_disk ON harn.records")


def damage(url: str, name: str, seq: int) -> None:
    """Make record ``seq`` of session ``name``, which isn't a fork, one that can't be read."""
    where = parse_url(url).target
    if url.startswith("jsonl:"):
        log = Path(where, "logs", f"{name}.jsonl")
        lines = log.read_bytes().splitlines(keepends=True)
        lines[seq - 1] = lines[seq - 1].replace(b'"content"', b'"contend"')
        log.write_bytes(b"".join(lines))
    elif url.startswith("sqlite:"):
        with closing(sqlite3.connect(where, isolation_level=None)) as db:
            (sid,) = db.execute("SELECT sid FROM streams WHERE name = ?", (name,)).fetchone()
            db.execute("DELETE FROM records WHERE rid = ?", ((sid << SHIFT) + seq,))
    else:
        _on_server(
            url,
            "DELETE FROM harn.records USING harn.streams s WHERE s.sid = records.sid AND s.name = %s"
            " AND seq = %s",
            name,
            seq,
        )


def make_newer(url: str) -> Callable[[], object]:
    """Have a newer harnpy write the store; return what looks at all that is in it."""
    where = parse_url(url).target
    if url.startswith("jsonl:"):
        Path(where, "FORMAT").write_text('{"format":"harn-sessions","version":99}')
        return lambda: {path: path.read_bytes() for path in Path(where).rglob("*") if path.is_file()}
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(where, isolation_level=None)) as db:
            db.execute("PRAGMA user_version = 99")
        return lambda: Path(where).read_bytes()
    _on_server(url, "UPDATE harn.format SET version = 99")
    return lambda: _on_server(
        url, "SELECT f.version, s.name, s.version FROM harn.format f, harn.streams s ORDER BY s.name"
    )


def _on_server(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement, values or None)
        return found.fetchall() if found.description else []
