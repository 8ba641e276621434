"""A store's version is raised by whoever asks for it, and by nothing else. Spec: 10 §C6."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.session import SessionRuntime
from harnpy.storage import Store, open_store
from harnpy.storage.errors import NoStore, SchemaTooNew, StorageError, StoreUnreachable, Unsupported
from harnpy.storage.upgrading import upgrade_store
from tests.guarantees import harm
from tests.storage.conftest import STORES

Opened = Callable[..., Store]

ON_A_MEDIUM = [name for name in STORES if name != "memory"]
FORMER = Path(__file__).parents[1] / "guarantees" / "fixtures" / "2026-11" / "store-1.db"


@pytest.fixture
def former(tmp_path: Path) -> str:
    """A store in a file of the first version, with sessions in it."""
    shutil.copy(FORMER, tmp_path / "former.db")
    return f"sqlite:{tmp_path}/former.db"


def place(url: str) -> Path:
    return Path(url.partition(":")[2].partition("?")[0])


def version_of(url: str) -> int:
    with closing(sqlite3.connect(place(url))) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def logs(url: str) -> dict[str, str]:
    with SessionRuntime(url) as runtime:
        return {info.id: runtime.export(info.id) for info in runtime.list().items}


def test_a_version_is_raised_once(former: str) -> None:
    before = logs(former)
    assert upgrade_store(former, dry_run=True)[1:] == (1, 2)
    assert version_of(former) == 1
    assert upgrade_store(former) == (former, 1, 2)
    assert version_of(former) == 2
    assert upgrade_store(former) == (former, 2, 2)
    assert logs(former) == before


def test_opening_and_writing_raises_nothing(former: str) -> None:
    with SessionRuntime(former) as runtime:
        for info in runtime.list().items:
            runtime.open(info.id).append_user("and on")
    assert version_of(former) == 1


def test_who_has_a_store_open_goes_on_while_it_is_upgraded(former: str) -> None:
    with SessionRuntime(former) as runtime:
        first = runtime.list().items[0].id
        runtime.open(first).append_user("before")
        upgrade_store(former)
        runtime.open(first).append_user("after")
    with SessionRuntime(former) as runtime:
        assert [message["content"] for message in runtime.open(first).messages()[-2:]] == ["before", "after"]
        assert runtime.store.fsck().clean


@pytest.mark.parametrize("url", ON_A_MEDIUM, indirect=True)
def test_a_new_store_has_the_newest_version(opened: Opened, url: str) -> None:
    opened().close()
    _, found, newest = upgrade_store(url)
    assert found == newest


@pytest.mark.parametrize("url", ON_A_MEDIUM, indirect=True)
def test_a_store_of_a_newer_harnpy_is_refused_untouched(opened: Opened, url: str) -> None:
    opened().close()
    look = harm.make_newer(url)
    before = look()
    with pytest.raises(SchemaTooNew, match=r"has format 99, .*: update harnpy"):
        upgrade_store(url)
    assert look() == before


def test_what_is_no_store_is_not_made_one(tmp_path: Path) -> None:
    for scheme in ("sqlite", "jsonl"):
        with pytest.raises(NoStore, match=f"there is no store at {scheme}:"):
            upgrade_store(f"{scheme}:{tmp_path}/none")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    for url in (f"sqlite:{tmp_path}/empty", f"jsonl:{tmp_path}/directory"):
        with pytest.raises(NoStore):
            upgrade_store(url)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "empty"]
    assert list((tmp_path / "directory").iterdir()) == []
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreUnreachable, match="another program"):
        upgrade_store(f"sqlite:{tmp_path}/other.db")


def test_a_database_without_tables_is_not_given_any(bare_postgres: str) -> None:
    import psycopg

    with pytest.raises(NoStore):
        upgrade_store(bare_postgres)
    with psycopg.connect(bare_postgres) as connection:
        assert connection.execute("SELECT to_regnamespace('harn')").fetchone() == (None,)


def test_a_store_that_nobody_keeps_has_no_version() -> None:
    with pytest.raises(Unsupported, match="memory: has no version"):
        upgrade_store("memory:")
    with pytest.raises(StorageError, match="no store is called"):
        upgrade_store("nowhere:x")


# What a later harnpy may add without raising the version: this one, the older, goes on working.

_ADDED = """
ALTER TABLE {schema}streams ADD COLUMN colour text NOT NULL DEFAULT 'blue';
ALTER TABLE {schema}records ADD COLUMN weight integer;
ALTER TABLE {schema}leases ADD COLUMN colour text;
CREATE INDEX {index} ON {schema}records(weight);
CREATE TABLE {schema}news (id integer PRIMARY KEY, text text);
"""


def add_to_jsonl(url: str) -> None:
    directory = place(url)
    format = json.loads((directory / "FORMAT").read_text("utf-8"))
    (directory / "FORMAT").write_text(json.dumps({**format, "colour": "blue"}), "utf-8")
    (directory / "news").mkdir()
    (directory / "news" / "1.json").write_text("{}", "utf-8")
    for cache in (directory / "heads").glob("*.json"):
        cache.write_text(json.dumps({**json.loads(cache.read_text("utf-8")), "colour": "blue"}), "utf-8")


def add_to_sqlite(url: str) -> None:
    with closing(sqlite3.connect(place(url))) as db:
        db.executescript(_ADDED.format(schema="", index="records_weight"))


def add_to_postgres(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ADDED.format(schema="harn.", index="records_weight"))  # type: ignore[arg-type]


ADD = {"jsonl": add_to_jsonl, "sqlite": add_to_sqlite, "postgresql": add_to_postgres}


@pytest.fixture
def added(url: str) -> str:
    """A store to which a later harnpy has added something while this one had it open."""
    with SessionRuntime(url) as runtime:
        runtime.create("clerk", id="talk", seed={"content": "one"})
    with SessionRuntime(url) as runtime:
        session = runtime.get("talk")
        ADD[url.partition(":")[0]](url)
        session.append_user("still open")
    return url


@pytest.mark.parametrize("url", ON_A_MEDIUM, indirect=True)
def test_an_older_harnpy_goes_on_after_additions(added: str) -> None:
    with SessionRuntime(added) as runtime:
        session = runtime.get("talk")
        runtime.execute("talk", lambda live: live.set("metadata.n", 1))
        assert runtime.send("talk", "Hello?", agent=lambda messages: "Yes.").text == "Yes."
        session.fork("fork").append_user("another road")
        assert [hit.name for hit in runtime.search("another road")] == ["fork"]
        runtime.delete("talk", hard=True)
    with closing(open_store(added)) as store:
        assert store.fsck().clean
    with SessionRuntime(added) as runtime:
        assert runtime.get("fork").messages()[-1]["content"] == "another road"
        _, found, newest = upgrade_store(added)
        assert found == newest
