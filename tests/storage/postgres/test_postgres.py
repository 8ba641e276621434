"""What a server adds to what can go wrong. Spec: 10 §C6.3, §C12."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import pytest

from harnpy.storage import Row, Store, open_store
from harnpy.storage.copying import Rows
from harnpy.storage.errors import (
    LeaseHeld,
    SchemaTooNew,
    StorageError,
    StoreBusy,
    StoreFull,
    StoreUnreachable,
    VersionConflict,
)
from harnpy.storage.leases import Machine
from harnpy.storage.opening import parse_url
from harnpy.version import install_command
from tests.storage.notes import NOTES, Note, Notes, notes
from tests.storage.postgres.cutting import TO_CLIENT, TO_SERVER, Cutter, cutter, waiting

Ask = Callable[..., list[tuple[Any, ...]]]

#: The durabilities of stores that write at once.
WAYS = ("relaxed", "full")


@pytest.fixture
def store(postgres: str) -> Iterator[Store]:
    store = open_store(postgres)
    yield store
    store.close()


@pytest.fixture
def ask(postgres: str) -> Iterator[Ask]:
    """Ask the server something, behind the store's back."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:

        def answer(query: str, *values: object) -> list[tuple[Any, ...]]:
            found = connection.execute(query, values or None)
            return found.fetchall() if found.description else []

        yield answer


@pytest.fixture
def cut(postgres: str) -> Iterator[tuple[Store, Cutter]]:
    """A store whose connections can be cut."""
    # The path of a socket is 100 bytes at most: too few for pytest's directories.
    with tempfile.TemporaryDirectory() as short, cutter(postgres, Path(short)) as (url, through):
        store = open_store(url)
        yield store, through
        store.close()


def texts(store: Store, name: str = "s") -> list[str]:
    return [note.text for note in store.stream("session", name, NOTES).read()]


class TestBrokenConnections:
    """Nothing is lost and nothing doubled, whenever the connection breaks."""

    @pytest.mark.parametrize("count", [3, 150])
    @pytest.mark.parametrize(
        ("way", "word"),
        [
            (TO_SERVER, "UPDATE harn.streams"),
            (TO_CLIENT, "INSERT 0 "),
        ],
        ids=["before it is made", "after it was made"],
    )
    def test_an_append_is_made_once(self, cut: tuple[Store, Cutter], count: int, way: str, word: str) -> None:
        store, through = cut
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "first"), 0)
        new = [f"text {number}" for number in range(count)]
        through.cut(way, word)
        stream.append(notes(2, *new), 1, head={"status": "active"})
        assert through.cuts == 1
        assert stream.version == count + 1
        stream.append(notes(count + 2, "last"), count + 1)
        assert texts(store) == ["first", *new, "last"]

    @pytest.mark.parametrize(
        ("way", "word"), [(TO_SERVER, "INSERT INTO harn.streams"), (TO_CLIENT, "INSERT 0 ")]
    )
    def test_a_first_append_and_a_branch_are_made_once(
        self, cut: tuple[Store, Cutter], way: str, word: str
    ) -> None:
        store, through = cut
        stream = store.stream("session", "s", NOTES)
        through.cut(way, word)
        stream.append(notes(1, "first", "a"), 0)
        through.cut(way, "COMMIT")
        branch = store.branch(stream, "t", Note(1, "other"))
        assert through.cuts == 2
        assert (branch.version, texts(store), texts(store, "t")) == (2, ["first", "a"], ["other", "a"])

    def test_an_append_whose_backend_is_ended_while_it_waits_is_made_once(
        self, store: Store, ask: Ask, postgres: str
    ) -> None:
        import psycopg

        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "first"), 0)
        with psycopg.connect(postgres) as holder:
            holder.execute("SELECT 1 FROM harn.streams FOR UPDATE")
            writer = Thread(target=stream.append, args=(notes(2, "second"), 1))
            writer.start()
            blocked = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            waiting(lambda: ask(f"SELECT 1 {blocked}") != [])
            assert ask(f"SELECT pg_terminate_backend(pid) {blocked}") == [(True,)]
            holder.rollback()
        writer.join()
        assert texts(store) == ["first", "second"]

    def test_another_writer_s_record_is_not_taken_for_the_own(
        self, cut: tuple[Store, Cutter], postgres: str
    ) -> None:
        store, through = cut
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "first"), 0)

        class Overtaken(Notes):
            """Somebody else writes between the encoding and the append."""

            def encode(self, records: Any) -> list[Row]:
                other = open_store(postgres)
                other.stream("session", "s", NOTES).append(notes(2, "theirs"), 1)
                other.close()
                return super().encode(records)

        through.cut(TO_SERVER, "UPDATE harn.streams")
        with pytest.raises(VersionConflict, match="expected 1, found 2"):
            store.stream("session", "s", Overtaken()).append(notes(2, "ours"), 1)
        assert through.cuts == 1
        assert texts(store) == ["first", "theirs"]

    def test_reading_goes_on_after_all_connections_were_ended(self, store: Store, ask: Ask) -> None:
        store.stream("session", "s", NOTES).append(notes(1, "first"), 0)
        ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert texts(store) == ["first"]

    def test_whoever_waits_is_told_after_the_listener_s_connection_was_ended(
        self, store: Store, ask: Ask
    ) -> None:
        stream = store.stream("session", "s", NOTES)
        listening = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        found: list[int] = []
        reader = Thread(target=lambda: found.append(store.changes("session", "s", 0, 600)))
        reader.start()
        waiting(lambda: ask(f"SELECT 1 {listening}") != [])
        ask(f"SELECT pg_terminate_backend(pid) {listening}")
        stream.append(notes(1, "a"), 0)
        reader.join()
        assert found == [1]


class TestErrors:
    """Each is a sentence that says what to do, and never the password."""

    def test_a_server_that_is_not_there(self) -> None:
        with pytest.raises(StoreUnreachable) as error:
            open_store("postgresql://user:hunter2@127.0.0.1:1/db")
        assert str(error.value).startswith("cannot open postgresql://user:")
        assert "@127.0.0.1:1/db: connection" in str(error.value)
        assert "hunter2" not in str(error.value)

    def test_a_server_that_goes_away(self, postgres: str) -> None:
        with tempfile.TemporaryDirectory() as short:
            with cutter(postgres, Path(short)) as (url, _):
                store = open_store(f"{url}&timeout=0.1")
                stream = store.stream("session", "s", NOTES)
            with pytest.raises(StoreUnreachable, match="cannot open postgresql:"):
                stream.refresh()
            store.close()

    @pytest.mark.parametrize("url", ["postgresql://u:hunter2@[h/db", "postgresql://u:hunter2@h/db?x=1"])
    def test_what_is_no_url_of_a_database(self, url: str) -> None:
        with pytest.raises(StorageError) as error:
            open_store(url)
        assert "is no URL of a PostgreSQL database" in str(error.value)
        assert "u:hunter2" not in str(error.value)

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(StorageError, match=re.escape(f"needs psycopg: {install_command('postgres')}")):
            open_store("postgresql://h/db")

    def test_tables_of_a_newer_harnpy_are_refused_untouched(
        self, store: Store, ask: Ask, postgres: str
    ) -> None:
        ask("UPDATE harn.format SET version = 99")
        with pytest.raises(SchemaTooNew, match="has format 99, and this harnpy knows formats up to 1"):
            open_store(postgres)
        assert ask("SELECT version FROM harn.format") == [(99,)]

    def test_a_stream_that_somebody_keeps_locked(self, store: Store, postgres: str) -> None:
        import psycopg

        store.stream("session", "s", NOTES).append(notes(1, "a"), 0)
        hasty = open_store(f"{postgres}&timeout=0.1")
        with psycopg.connect(postgres) as holder:
            holder.execute("SELECT 1 FROM harn.streams FOR UPDATE")
            with pytest.raises(StoreBusy, match=r"was locked for 0\.1 s"):
                hasty.stream("session", "s", NOTES).append(notes(2, "b"), 1)
        hasty.stream("session", "s", NOTES).append(notes(2, "b"), 1)
        hasty.close()
        assert texts(store) == ["a", "b"]

    @pytest.mark.parametrize("count", [1, 150], ids=["inserted", "copied"])
    def test_a_full_disk(self, store: Store, ask: Ask, count: int) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a"), 0)
        ask("""
            CREATE FUNCTION harn.full() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
        """)
        ask("CREATE TRIGGER full_disk BEFORE INSERT ON harn.records EXECUTE FUNCTION harn.full()")
        new = [str(number) for number in range(count)]
        with pytest.raises(StoreFull, match="no space left for postgresql:"):
            stream.append(notes(2, *new), 1)
        assert (stream.version, stream.refresh(), texts(store)) == (1, 1, ["a"])
        ask("DROP TRIGGER full_disk ON harn.records")
        stream.append(notes(2, *new), 1)
        assert texts(store) == ["a", *new]

    def test_names_that_the_server_cannot_keep(self, store: Store) -> None:
        for name in ("a\0b", "\ud800"):
            stream = store.stream("session", name, NOTES)
            with pytest.raises(StorageError):
                stream.last()
            with pytest.raises(StorageError):
                stream.append(notes(1, "a"), 0)


class TestStatements:
    """What is asked often is planned once, where the server's process is the connection's own."""

    @staticmethod
    def prepared(store: Any) -> int:
        for number in range(30):  # by any of its connections
            store.stream("session", "s", NOTES).append(notes(number + 1, "a"), number)
        count: list[tuple[int]] = store._database.read("SELECT count(*) FROM pg_prepared_statements")
        return count[0][0]

    def test_they_are_prepared(self, store: Store) -> None:
        assert self.prepared(store) > 0

    def test_not_behind_a_pooler(self, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from psycopg import ConnectionInfo

        monkeypatch.setattr(ConnectionInfo, "backend_pid", 1)  # the pooler's own number
        store = open_store(postgres)
        assert self.prepared(store) == 0
        assert texts(store) == ["a"] * 30
        store.close()

    def test_whoever_knows_says_whether_there_is_a_pooler(
        self, postgres: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(open_store(f"{postgres}&pooler=1")) as store:
            assert self.prepared(store) == 0
            store.delete("session", "s")
        from psycopg import ConnectionInfo

        monkeypatch.setattr(ConnectionInfo, "backend_pid", 1)
        with closing(open_store(f"{postgres}&pooler=0")) as store:
            assert self.prepared(store) > 0

    @pytest.mark.parametrize("pooler", [0, 1])
    def test_an_append_has_the_settings_of_its_store(self, postgres: str, ask: Ask, pooler: int) -> None:
        """Also where no connection can keep them, and no other transaction of a pooled one has them then."""
        open_store(postgres).close()
        ask("CREATE TABLE harn.seen (waits text, locks text)")
        ask("""
            CREATE FUNCTION harn.look() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO harn.seen VALUES (
              current_setting('synchronous_commit'), current_setting('lock_timeout')); RETURN new; END $$;
        """)
        ask("CREATE TRIGGER look BEFORE INSERT ON harn.records FOR EACH ROW EXECUTE FUNCTION harn.look()")
        stores = [open_store(f"{postgres}&pooler={pooler}&timeout=3&durability={way}") for way in WAYS]
        for number, store in enumerate(stores):
            store.stream("session", str(number), NOTES).append(notes(1, "a"), 0)
            store.stream("session", str(number), NOTES).append(notes(2, "b"), 1)
        assert ask("SELECT * FROM harn.seen") == [("off", "3s")] * 2 + [("on", "3s")] * 2
        pooled: Any = stores[0]
        assert pooled._database.read("SHOW lock_timeout") == [("0" if pooler else "3s",)]
        for store in stores:
            store.close()

    def test_one_thread_uses_one_connection(self, postgres: str) -> None:
        opened: Any = open_store(postgres)
        with closing(opened) as store:
            for number in range(4):
                store.stream("session", "s", NOTES).append(notes(number + 1, "a"), number)
            pids = {store._database.read("SELECT pg_backend_pid()")[0] for _ in range(4)}
            assert len(pids) == 1

    def test_who_reads_first_appends_behind_what_he_read(self, store: Store) -> None:
        store.stream("session", "s", NOTES).append(notes(1, "a", "b"), 0)
        stream = store.stream("session", "s", NOTES)
        assert [note.text for note in stream.read()] == ["a", "b"]
        store.stream("session", "s", NOTES).append(notes(3, "c"), 2)
        assert stream.version == 2
        with pytest.raises(VersionConflict):
            stream.append(notes(3, "d"), stream.version)


class TestStandingStill:
    """A process that is stopped in the middle of a transaction keeps nobody from writing."""

    def test_the_server_takes_it_back_and_it_is_made_again(self, store: Any, ask: Ask) -> None:
        store.stream("session", "s", NOTES).append(notes(1, "a"), 0)
        database = store._database
        database.settings["still"] = "100ms"
        tried: list[int] = []

        def work(connection: Any) -> str:
            connection.execute("UPDATE harn.streams SET version = version")
            tried.append(connection.info.backend_pid)
            if len(tried) == 1:
                while ask(f"SELECT 1 FROM pg_stat_activity WHERE pid = {tried[0]}"):
                    time.sleep(0.02)
            connection.execute("SELECT 1")
            return "done"

        assert database.write(work) == "done"
        assert len(set(tried)) == 2


class TestUpkeep:
    """What lies on the server in the end."""

    def test_a_stem_goes_with_the_last_that_shares_it(self, store: Store, ask: Ask) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "first", "a", "b", "needle"), 0)
        store.branch(stream, "t", Note(1, "T"), until=3)
        store.branch(store.stream("session", "t", NOTES), "u", Note(1, "U"), until=2)
        store.search("needle", codec=NOTES)
        store.delete("session", "s")
        store.delete("session", "t")
        # Number 1 is nobody's, but the append that it begins can't be read without it.
        assert ask("SELECT seq FROM harn.records ORDER BY sid, seq") == [(1,), (2,), (3,), (1,)]
        assert (store.gc().stems, texts(store, "u")) == (0, ["U", "a"])
        store.delete("session", "u")
        assert store.gc(dry_run=True).stems == 2
        assert store.gc(older_than=3600).stems == 0
        assert store.gc().stems == 2
        assert store.fsck().clean
        for table in ("streams", "records", "texts", "texts_until"):
            assert ask(f"SELECT count(*) FROM harn.{table}") == [(0,)]

    def test_a_settled_branch_needs_no_stem(self, store: Store, ask: Ask) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "first", "a", "b", "c"), 0)
        branch = store.branch(stream, "t", Note(1, "T"), until=3)
        branch.append(notes(4, "d"), 3)
        store.search("a", codec=NOTES)
        store.delete("session", "s")
        branch.settle()
        assert store.gc().stems == 1
        assert texts(store, "t") == ["T", "a", "b", "d"]
        assert [hit.seq for hit in store.search("a", codec=NOTES)] == [2]
        assert ask("SELECT count(*) FROM harn.streams") == [(1,)]
        # The append that the branch cuts ends where the branch begins.
        assert ask("SELECT seq, more FROM harn.records ORDER BY seq") == [(1, 0), (2, 1), (3, 0), (4, 0)]

    def test_what_is_dropped_stays_for_the_branches(self, store: Store, ask: Ask) -> None:
        stream = store.stream("topic", "s", NOTES)
        stream.append(notes(1, "a", "b", "c"), 0)
        store.branch(stream, "t", Note(1, "A"), until=2)
        assert stream.drop(3) == 3
        assert [note.text for note in store.stream("topic", "t", NOTES).read()] == ["A", "b"]
        assert list(stream.read()) == []
        store.delete("topic", "t")
        store.gc()
        assert ask("SELECT count(*) FROM harn.records") == [(0,)]
        assert (stream.refresh(), store.fsck().findings) == (3, [])

    def test_missing_records_are_found(self, store: Store, ask: Ask) -> None:
        for name in ("middle", "end", "sound"):
            store.stream("session", name, NOTES).append(notes(1, "a", "b", "c"), 0)
        ask("""DELETE FROM harn.records USING harn.streams s WHERE s.sid = records.sid
            AND (s.name, seq) IN (('middle', 2), ('end', 3))""")
        problems = [(found.name, found.problem, found.repaired) for found in store.fsck().findings]
        assert problems == [
            ("end", "1 of its 3 records are missing", False),
            ("middle", "1 of its 3 records are missing", False),
        ]
        report = store.fsck(repair=True)
        assert [(found.name, found.repaired) for found in report.findings] == [
            ("end", True),
            ("middle", True),
        ]
        assert store.fsck().clean
        rows = store.stream("session", "middle", Rows()).read()
        assert [(row.type, row.more) for row in rows] == [("note", 2), ("store_repaired", 1), ("note", 0)]
        assert texts(store, "end") == ["a", "b"]
        store.stream("session", "end", NOTES).append(notes(3, "d"), 2)
        assert texts(store, "end") == ["a", "b", "d"]


def test_tables_are_created_once_by_stores_that_are_opened_at_once(bare_postgres: str, ask: Ask) -> None:
    stores: list[Store] = []
    threads = [Thread(target=lambda: stores.append(open_store(bare_postgres))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 4
    for store in stores:
        store.close()
    assert ask("SELECT count(*) FROM harn.format") == [(1,)]


def test_an_announcement_wakes_whoever_waits_in_another_store(
    store: Store, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnpy.storage.postgres.store._POLL", 600.0)
    reading = open_store(postgres)
    found: list[int] = []
    reader = Thread(target=lambda: found.append(reading.changes("session", "s", 0, 600)))
    reader.start()
    store.stream("session", "s", NOTES).append(notes(1, "a"), 0)
    reader.join()
    reading.close()
    assert found == [1]


def test_texts_with_nul_are_found(store: Store) -> None:
    store.stream("session", "s", NOTES).append(notes(1, "be\0fore", "after"), 0)
    assert [(hit.seq, hit.text) for hit in store.search("before", codec=NOTES)] == [(1, "be\0fore")]


@pytest.mark.parametrize("durability", ["relaxed", "async"])
def test_a_store_that_does_not_wait_for_the_disk_can_be_flushed(postgres: str, durability: str) -> None:
    store = open_store(f"{postgres}&durability={durability}")
    store.stream("session", "s", NOTES).append(notes(1, "a"), 0)
    store.flush()
    assert texts(store) == ["a"]
    store.close()


@pytest.mark.parametrize(("durability", "waits"), [("full", "on"), ("relaxed", "off")])
def test_whether_commits_wait_is_the_store_s_choice_not_the_server_s(
    postgres: str, durability: str, waits: str
) -> None:
    from harnpy.storage.postgres.store import PostgresStore

    store = PostgresStore(
        parse_url(f"{postgres}&options=-csynchronous_commit%3Doff&durability={durability}"), Machine()
    )
    chosen = store._database.write(lambda c: c.execute("SHOW synchronous_commit").fetchone())
    store.close()
    assert chosen == (waits,)


def test_a_ticket_of_a_dead_process_holds_nobody_up(store: Store, ask: Ask) -> None:
    host, boot, pid, start = Machine().owner().split(":")
    dead = f"{host}:{boot}:{pid}:{int(start) + 1}"
    lease = store.lease("k", "a")
    ask(
        "INSERT INTO harn.tickets (key, owner, alive_until) VALUES ('k', %s, now() + interval '1 hour')", dead
    )
    lease.release()
    store.lease("k", "b").release()
    ask("INSERT INTO harn.tickets (key, owner, alive_until) VALUES ('k', 'x', now() + interval '1 hour')")
    with pytest.raises(LeaseHeld, match="held by somebody who waits for it, too,"):
        store.lease("k", "c")


def test_a_thread_of_the_store_can_close_it(store: Store) -> None:
    """The garbage collector may find it there."""
    closed: list[str] = []

    class Closing:
        def run(self) -> None:
            store.close()
            closed.append(current_thread().name)

    pool: Any = store._database._pool  # type: ignore[attr-defined]
    workers = tuple(pool._workers)
    pool.run_task(Closing())
    for worker in workers:
        worker.join()
    assert [name[:7] for name in closed] == ["harnpy-"]
