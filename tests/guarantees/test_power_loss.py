"""With `durability=full` an append is on the medium when it returns. Spec: 10 §C12, "Power loss"."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.storage import open_store
from tests.guarantees.power import APPENDS
from tests.storage.notes import NOTES
from tests.support import ROOT

KINDS = {"jsonl": "store", "sqlite": "store/s.db"}


def after_each_append(kind: str, durability: str, directory: Path) -> dict[int, int]:
    """The version that a store has after a power cut right behind each append, by the one acknowledged."""
    (directory / "store").mkdir()
    url = f"{kind}:{directory}/{KINDS[kind]}?durability={durability}"
    command = [sys.executable, "-m", "tests.guarantees.power", url, str(directory / "cuts")]
    subprocess.run(command, cwd=ROOT, check=True)
    found = {}
    for acknowledged in range(2, 2 * APPENDS + 1, 2):
        left = directory / "cuts" / str(acknowledged)
        left.mkdir(exist_ok=True, parents=True)
        with closing(open_store(f"{kind}:{left / 's.db' if kind == 'sqlite' else left}")) as store:
            stream = store.stream("session", "s", NOTES)
            assert [note.seq for note in stream.read()] == list(range(1, stream.version + 1))
            found[acknowledged] = stream.version
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_outlives_a_power_cut(kind: str, tmp_path: Path) -> None:
    found = after_each_append(kind, "full", tmp_path)
    assert found == {acknowledged: acknowledged for acknowledged in found}


@pytest.mark.parametrize("kind", KINDS)
def test_when_relaxed_a_power_cut_may_take_the_last_appends_and_nothing_else(
    kind: str, tmp_path: Path
) -> None:
    """What is left is whole. That something is missing shows that a cut is one."""
    found = after_each_append(kind, "relaxed", tmp_path)
    assert all(version <= acknowledged and version % 2 == 0 for acknowledged, version in found.items())
    assert found[2 * APPENDS] < 2 * APPENDS


def test_a_commit_on_a_server_returns_when_its_log_is_flushed(postgres: str) -> None:
    """The server's own word for it: how far its log is flushed. Its disk isn't ours to cut."""
    import psycopg

    from tests.storage.notes import notes

    with closing(open_store(f"{postgres}&durability=full")) as store:
        stream = store.stream("session", "s", NOTES)
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("CREATE TABLE harn.written (place pg_lsn)")
            connection.execute(
                "CREATE FUNCTION harn.note() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN INSERT INTO harn.written VALUES (pg_current_wal_insert_lsn()); RETURN NULL; END $$"
            )
            connection.execute(
                "CREATE TRIGGER note AFTER INSERT ON harn.records EXECUTE FUNCTION harn.note()"
            )
            for number in range(1, 6):
                stream.append(notes(number, "a"), number - 1)
                flushed = connection.execute(
                    "SELECT count(*), bool_and(place <= pg_current_wal_flush_lsn()) FROM harn.written"
                ).fetchone()
                assert flushed == (number, True)
