"""Stores of every version that there was open, are brought up to date, and say what they said. Spec: 10 §C12.

`fixtures/<when>/` holds stores as a former harnpy wrote them (`write_fixtures.py`): a directory, a file, the
tables of a server, and what was exported from each of them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.session import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.storage.errors import SchemaTooNew
from harnpy.world import World
from tests.guarantees import harm
from tests.guarantees.write_fixtures import exported, fill
from tests.storage.conftest import STORES

FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())
Opened = Callable[..., Store]


#: The stores that a fixture may have, and their schemes.
KINDS = {"store": "jsonl", "store.db": "sqlite", "store-1.db": "sqlite", "tables.json": "postgresql"}
FORMER = [fixture / name for fixture in FIXTURES for name in KINDS if (fixture / name).exists()]


@pytest.fixture
def former_url(former: Path, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a copy of a former store."""
    scheme = KINDS[former.name]
    if scheme == "postgresql":
        server = str(request.getfixturevalue("postgres"))
        fill_tables(server, former)
        return server
    where = tmp_path / former.parent.name
    shutil.copytree(former.parent, where)
    return f"{scheme}:{where / former.name}"


def fill_tables(url: str, tables: Path) -> None:
    """Write the tables of a server as they were."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS harn CASCADE")
        connection.execute(Path(tables.parent, "schema.sql").read_text("utf-8"))
        for table, rows in json.loads(tables.read_text("utf-8")).items():
            for (row,) in rows:
                connection.execute(
                    f"INSERT INTO harn.{table} OVERRIDING SYSTEM VALUE SELECT (%s::harn.{table}).*", [row]
                )


@pytest.mark.parametrize("former", FORMER, ids=[f"{path.parent.name} {path.name}" for path in FORMER])
def test_a_former_store_says_what_it_said(former: Path, former_url: str) -> None:
    then = (former.parent / "exported.jsonl").read_text("utf-8")
    for _ in range(2):
        with closing(open_store(former_url)) as store:
            assert exported(store) == then
            assert store.fsck().clean
    with closing(open_store(former_url)) as store:
        talk = StoredSession.load("talk", store, World())
        assert talk is not None
        event = talk.append(EventDraft("message_added", {"role": "user", "content": "and on"}))[0]
        assert event.seq == talk.seq == talk.info.seq


@pytest.mark.parametrize("url", list(STORES), indirect=True)
def test_the_same_sessions_written_now_say_the_same(store: Store) -> None:
    """So the newest fixture is what this harnpy writes."""
    fill(store)
    assert exported(store) == (FIXTURES[-1] / "exported.jsonl").read_text("utf-8")


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
def test_a_newer_store_is_refused_untouched(opened: Opened, url: str) -> None:
    with closing(opened()) as store:
        fill(store)
    look = harm.make_newer(url)
    before = look()
    with pytest.raises(
        SchemaTooNew, match=r"has format 99, and this harnpy knows formats up to \d: update harnpy"
    ):
        opened()
    assert look() == before
