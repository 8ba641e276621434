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
from harnpy.session.kept.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.storage.errors import SchemaTooNew
from harnpy.world import World
from tests.guarantees import harm
from tests.guarantees.write_fixtures import exported, fill
from tests.storage.conftest import STORES

FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())
Opened = Callable[..., Store]


#: Where a store of each kind lies in a fixture.
KINDS = {"jsonl": "jsonl:{}/store", "sqlite": "sqlite:{}/store.db", "sqlite 1": "sqlite:{}/store-1.db"}


@pytest.fixture(params=[*KINDS, "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], str]:
    """Put the store of a fixture where it can be opened; return its URL."""

    def put(fixture: Path) -> str:
        if request.param == "postgres":
            url = str(request.getfixturevalue("postgres"))
            fill_tables(url, fixture / "tables.json")
            return url
        where = tmp_path / fixture.name
        shutil.copytree(fixture, where)
        return KINDS[request.param].format(where)

    return put


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


@pytest.mark.parametrize("fixture", FIXTURES, ids=[fixture.name for fixture in FIXTURES])
def test_a_former_store_says_what_it_said(fixture: Path, place: Callable[[Path], str]) -> None:
    url = place(fixture)
    then = (fixture / "exported.jsonl").read_text("utf-8")
    for _ in range(2):
        with closing(open_store(url)) as store:
            assert exported(store) == then
            assert store.fsck().clean
    with closing(open_store(url)) as store:
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
