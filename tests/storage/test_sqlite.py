"""What is SQLite's own: its file, its errors, commits that are shared, the index, repairs. Spec: 10 §C6.2."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.storage import Apart, HeadQuery, Row, open_store
from harnpy.storage.copying import Rows
from harnpy.storage.errors import (
    CorruptLog,
    NoStore,
    SchemaTooNew,
    StorageError,
    StoreBusy,
    StoreFull,
    StoreUnreachable,
    VersionConflict,
)
from harnpy.storage.opening import StoreUrl
from harnpy.storage.sqlite import SqliteStore
from harnpy.storage.sqlite.database import prepare
from tests.storage.notes import NOTES, Note, Notes, Together, notes

#: Bytes of a page, and of what SQLite's log says of one.
PAGE, FRAME_HEADER = 8192, 24


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.db"


@pytest.fixture
def sqlite(file: Path) -> Iterator[SqliteStore]:
    store = open_store(f"sqlite:{file}?durability=relaxed&timeout=0.1")
    assert isinstance(store, SqliteStore)
    yield store
    store.close()


def change(file: Path, *statements: str) -> None:
    """Do to the file what no store does."""
    db = sqlite3.connect(file, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_what_is_erased_is_in_no_page_of_the_files(file: Path, sqlite: SqliteStore) -> None:
    def holding() -> list[str]:
        return sorted(each.name for each in file.parent.iterdir() if b"the heron sleeps" in each.read_bytes())

    # As SQLite is where it isn't built to overwrite what it deletes.
    sqlite._connections.writer.execute("PRAGMA secure_delete = OFF")
    stream = sqlite.stream("session", "a", NOTES)
    for number in range(1, 40):
        stream.append(notes(number, f"the heron sleeps {number}" * 300), number - 1)
    sqlite.stream("session", "b", NOTES).append(notes(1, "x" * 9000), 0)
    sqlite.search("heron", codec=NOTES, raw=True)
    sqlite.delete("session", "a")
    sqlite._connections.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert holding() == ["store.db"]
    sqlite.erase([("session", "a")])
    assert holding() == []
    assert not (file.parent / "store.db-search").exists()
    assert (file.parent / "store.db-wal").stat().st_size == 0
    assert [note.text for note in sqlite.stream("session", "b", NOTES).read()] == ["x" * 9000]


def test_erasing_while_somebody_reads_says_so(file: Path, sqlite: SqliteStore) -> None:
    sqlite.stream("session", "a", NOTES).append(notes(1, "a"), 0)
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM records").fetchall()
        with pytest.raises(StoreBusy):
            sqlite.erase([("session", "a")])
    assert sqlite.head("session", "a") is not None
    assert sqlite.erase([("session", "a")]) is None
    assert sqlite.head("session", "a") is None


def test_a_store_of_a_newer_version_is_refused_and_left_alone(file: Path, sqlite: SqliteStore) -> None:
    sqlite.close()
    change(file, "PRAGMA user_version = 99")
    before = file.read_bytes()
    with pytest.raises(SchemaTooNew, match="has format 99, and this harnpy knows formats up to 2"):
        open_store(f"sqlite:{file}")
    assert file.read_bytes() == before


def test_a_store_of_the_first_version_is_used_as_it_is(file: Path, sqlite: SqliteStore) -> None:
    """Its version stays, and so does what a harnpy of that version relies on: exact lengths."""
    sqlite.stream("session", "s", NOTES).append(notes(1, "a", "b"), 0)
    sqlite.close()
    change(file, "UPDATE streams SET version = 2", "DROP VIEW current", "PRAGMA user_version = 1")
    with closing(open_store(f"sqlite:{file}")) as store:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(3, "c"), 2)
        assert [note.text for note in stream.read()] == ["a", "b", "c"]
        assert store.heads(HeadQuery()).items[0].version == 3
        branch = store.branch(stream, "t", notes(1, "z")[0], until=2)
        branch.append(notes(3, "d", "e"), 2)
        branch.settle()
        stream.drop(2)
        stream.append(notes(4, "f"), 3)
        assert store.fsck().clean
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        lengths = "SELECT name, version FROM streams WHERE version >= 0 ORDER BY name"
        assert db.execute(lengths).fetchall() == [("s", 4), ("t", 4)]


def test_an_append_writes_the_pages_of_its_records_alone(file: Path, sqlite: SqliteStore) -> None:
    """What an append costs is the pages that it writes: one of 8 KiB holds the rows of a short one."""
    stream = sqlite.stream("session", "s", NOTES)
    stream.append(notes(1, "a"), 0)
    log = file.with_name(file.name + "-wal")
    before = log.stat().st_size
    stream.append([Note(2, "b", time=1)], 1)  # within a second: lists still show the time of the first
    assert log.stat().st_size - before == PAGE + FRAME_HEADER


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE mine (x)")
    before = other.read_bytes()
    with pytest.raises(StoreUnreachable, match="database of another program"):
        open_store(f"sqlite:{other}")
    assert other.read_bytes() == before


@pytest.mark.parametrize("moment", range(4))
def test_another_process_may_make_the_store_meanwhile(tmp_path: Path, moment: int) -> None:
    file = tmp_path / "store.db"

    class Overtaken(sqlite3.Connection):
        """Somebody else makes the store before its statement of that number, unless it holds him up."""

        asked = 0

        def execute(self, *statement: Any) -> sqlite3.Cursor:
            if self.asked == moment and not self.in_transaction:
                open_store(f"sqlite:{file}").close()
            self.asked += 1
            return super().execute(*statement)

    with closing(sqlite3.connect(file, isolation_level=None, factory=Overtaken)) as connection:
        prepare(connection, StoreUrl("sqlite", "store.db"))
        assert connection.asked
    open_store(f"sqlite:{file}").close()


def test_a_file_that_is_no_database_is_a_corrupt_log(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database, but long enough to be taken for one\n" * 100)
    with pytest.raises(CorruptLog, match="this is no SQLite database"):
        open_store(f"sqlite:{tmp_path}/x")


def test_what_cannot_be_opened_is_unreachable(tmp_path: Path) -> None:
    for target in (tmp_path, ""):
        with pytest.raises(StoreUnreachable):
            open_store(f"sqlite:{target}")


def test_a_file_that_was_deleted_is_not_made_anew_by_who_reads(file: Path, sqlite: SqliteStore) -> None:
    """A thread that reads while others do opens a connection of its own."""
    sqlite.stream("session", "a", NOTES).append(notes(1, "a"), 0)
    with sqlite._reading():
        file.unlink()
        with pytest.raises(NoStore, match="its file was deleted or replaced while it was open"):
            sqlite.head("session", "a")
        assert not file.exists()
        file.touch()
        with pytest.raises(NoStore):
            sqlite.head("session", "a")
        assert file.stat().st_size == 0


def test_a_store_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store("sqlite:50% #1.db")) as store:
        assert isinstance(store, SqliteStore)
        store.stream("session", "a", NOTES).append(notes(1, "a"), 0)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with store._reading():
            assert store.head("session", "a") is not None
        assert [*Path().iterdir()] == []


def test_a_full_disk_changes_nothing_and_space_helps(sqlite: SqliteStore) -> None:
    stream = sqlite.stream("session", "s", NOTES)
    stream.append(notes(1, "a"), 0)
    limit = sqlite._connections.writer.execute("PRAGMA max_page_count = 1").fetchone()[0]
    with pytest.raises(StoreFull, match="no space left"):
        stream.append(notes(2, "x" * 1_000_000), 1)
    assert [note.text for note in stream.read()] == ["a"]
    sqlite._connections.writer.execute(f"PRAGMA max_page_count = {limit + 10_000}")
    stream.append(notes(2, "b"), 1)
    assert stream.refresh() == 2


def test_a_lock_that_is_kept_too_long_is_a_busy_store(file: Path, sqlite: SqliteStore) -> None:
    stream = sqlite.stream("session", "s", NOTES)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match=r"was locked for 0\.1 s"):
        stream.append(notes(1, "a"), 0)
    other.execute("ROLLBACK")
    other.close()
    stream.append(notes(1, "a"), 0)


def test_appends_made_during_a_commit_share_the_next_one(sqlite: SqliteStore) -> None:
    """The third one is refused, and the fourth spoils the transaction: neither takes another with it."""
    commits = sqlite._commits
    streams = [sqlite.stream("session", str(number), NOTES) for number in range(4)]
    failures: dict[int, StorageError] = {}

    def append(number: int, records: list[Note], expected: int) -> None:
        try:
            streams[number].append(records, expected)
        except StorageError as error:
            failures[number] = error

    works = [(notes(1, "a"), 0), (notes(1, "b"), 0), (notes(1, "c"), 7), ([Note(1, "d"), Note(1, "d")], 0)]
    threads = [threading.Thread(target=append, args=(n, *work)) for n, work in enumerate(works)]
    with commits._connections.lock:  # a commit is under way
        for thread in threads:
            thread.start()
        while len(commits._queue) < len(works):
            pass
    for thread in threads:
        thread.join()
    assert [stream.refresh() for stream in streams] == [1, 1, 0, 0]
    assert {number: type(error) for number, error in failures.items()} == {2: VersionConflict, 3: CorruptLog}


def test_whoever_comes_back_first_waits_for_those_who_shared_the_last_commit(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each group of appends would cost two commits: one of them alone, and one of all the others."""
    commits = sqlite._commits
    streams = [sqlite.stream("session", str(number), NOTES) for number in range(3)]
    commits._size, commits._took = 3, 120.0
    monkeypatch.setattr("harnpy.storage.sqlite.database._PATIENCE", 60.0)
    threads = [threading.Thread(target=stream.append, args=(notes(1, "a"), 0)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (commits.count, [stream.refresh() for stream in streams]) == (1, [1, 1, 1])


def test_it_does_not_wait_for_them_for_ever(sqlite: SqliteStore) -> None:
    commits = sqlite._commits
    commits._size, commits._took = 3, 0.001
    sqlite.stream("session", "s", NOTES).append(notes(1, "a"), 0)
    assert (commits.count, commits._size) == (1, 1)


def test_the_index_may_be_deleted_damaged_or_of_another_store(file: Path, sqlite: SqliteStore) -> None:
    sqlite.stream("session", "s", NOTES).append(notes(1, "needle", "hay"), 0)

    def found(store: SqliteStore) -> list[int]:
        return [hit.seq for hit in store.search("needle", codec=NOTES, raw=True)]

    assert found(sqlite) == [1]
    index = Path(f"{file}-search")
    assert index.exists()
    for damage in (index.unlink, lambda: index.write_text("damaged " * 1000)):
        sqlite.close()
        damage()
        sqlite = open_store(f"sqlite:{file}")  # type: ignore[assignment]
        assert found(sqlite) == [1]
        assert found(sqlite) == [1]
    sqlite.close()
    file.unlink()
    with open(file, "wb"):
        pass
    sqlite = open_store(f"sqlite:{file}")  # type: ignore[assignment]
    sqlite.stream("session", "s", NOTES).append([Note(1, "hay", time=5), Note(2, "needle", time=6)], 0)
    assert found(sqlite) == [2]
    sqlite.close()


def test_a_search_decodes_what_may_hold_its_words_and_needs_no_index(file: Path, sqlite: SqliteStore) -> None:
    """Also the first one: most records are passed over by what SQLite sees in their JSON."""
    stream = sqlite.stream("session", "s", NOTES)
    stream.append(notes(1, *(f"some hay {number}" for number in range(999)), "One Needle, please"), 0)
    stream.append(notes(1001, "hay"), 1000)
    seen: list[int] = []

    class Counting(Separate):
        def texts(self, rows: Sequence[Row]) -> list[str | None]:
            seen.extend(row.seq for row in rows)
            return super().texts(rows)

    for number in range(1002, 1010):
        stream.append(notes(number, f"hay {number}"), number - 1)
    stream.append(
        notes(
            1010,
            "ein n\u00e9edle",
        ),
        1009,
    )
    stream.append(notes(1011, "a needle \u00fc"), 1010)
    assert [hit.seq for hit in sqlite.search('"a needle"', codec=Counting())] == [1011]
    assert seen == [1011]
    seen.clear()
    assert [hit.seq for hit in sqlite.search("needle", codec=Counting(), limit=9)] == [1000, 1011]
    assert sorted({*seen}) == [*range(1, 1001), 1011]  # an append is looked at as a whole
    assert not Path(f"{file}-search").exists()


def test_a_raw_search_is_fts5_s_own_language(sqlite: SqliteStore) -> None:
    sqlite.stream("session", "s", NOTES).append(notes(1, "needle", "haystack"), 0)
    hits = sqlite.search("needle OR haystack", codec=NOTES, raw=True)
    assert [hit.seq for hit in hits] == [1, 2]
    with pytest.raises(StorageError, match="not a search that SQLite understands"):
        sqlite.search('"', codec=NOTES, raw=True)


def test_fsck_finds_and_repairs_what_can_be_repaired(file: Path, sqlite: SqliteStore) -> None:
    for name in "abc":
        sqlite.stream("session", name, NOTES).append(notes(1, "1", "2"), 0)
    change(
        file,
        "UPDATE streams SET version = 9 WHERE name = 'a'",
        "UPDATE streams SET head = '{' WHERE name = 'b'",
        "DELETE FROM streams WHERE name = 'c'",
    )
    listed = sqlite.heads(HeadQuery())
    assert [name for name, _ in listed.errors] == ["b"]
    assert not sqlite.fsck().clean
    assert sqlite.fsck(repair=True).clean
    assert sqlite.fsck().findings == []
    for name in ("a", "b", "recovered-3"):
        assert [note.text for note in sqlite.stream("session", name, NOTES).read()] == ["1", "2"]


def test_a_missing_record_is_reported_and_not_skipped(file: Path, sqlite: SqliteStore) -> None:
    stream = sqlite.stream("session", "s", NOTES)
    stream.append(notes(1, "a", "b", "c"), 0)
    change(file, f"DELETE FROM records WHERE rid = {(1 << 34) + 2}")
    with pytest.raises(CorruptLog, match="records of stream 's' are missing: 2"):
        list(stream.read())
    assert not sqlite.fsck().clean
    assert sqlite.fsck(repair=True).clean
    assert sqlite.fsck().clean
    rows = list(sqlite.stream("session", "s", Rows()).read())
    assert [(row.type, row.more) for row in rows] == [("note", 2), ("store_repaired", 1), ("note", 0)]


class Separate(Apart, Notes):
    """A codec that reads each row by itself."""


@pytest.mark.parametrize("codec", [Separate(), Together()])
def test_what_came_in_large_appends_is_read_once(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch, codec: Notes
) -> None:
    stream = sqlite.stream("session", "s", codec)
    count = 2500
    for first in (1, count + 1):
        stream.append(
            [Note(seq, "x", "odd" if seq % 2 else "even") for seq in range(first, first + count)], first - 1
        )
    read: list[int] = []

    def decode(rows: Sequence[Row]) -> list[Note]:
        read.append(len(rows))
        return Notes().decode(rows)

    monkeypatch.setattr(codec, "decode", decode)
    odd = [note.seq for note in stream.read(types=frozenset({"odd"}))]
    assert odd == [*range(1, 2 * count + 1, 2)]
    backwards = [note.seq for note in stream.read(types=frozenset({"odd"}), reverse=True)]
    assert backwards == odd[::-1]
    # Once for each piece that is fetched: whole appends, or of rows that stand by themselves only those.
    assert len(read) < 30
    assert not isinstance(codec, Apart) or sum(read) == 2 * count
    read.clear()
    assert [note.seq for note in stream.read(1200, 4200)] == [*range(1201, 4201)]
    assert len(read) <= 5
    assert not isinstance(codec, Apart) or sum(read) == 3000


def test_gc_drops_stems_that_nobody_shares_and_streams_marked_as_deleted(sqlite: SqliteStore) -> None:
    source = sqlite.stream("session", "s", NOTES)
    source.append(notes(1, "a", "b"), 0)
    branch = sqlite.branch(source, "t", Note(1, "A"))
    sqlite.stream("session", "d", NOTES).append(notes(1, "a"), 0, head={"status": "deleted"})
    sqlite.delete("session", "s")
    assert sqlite.gc(dry_run=True) == (["d"], 0, [])
    assert sqlite.gc() == (["d"], 0, [])
    branch.settle()
    assert sqlite.gc().stems == 1
    assert [note.text for note in branch.read()] == ["A", "b"]


def test_a_store_in_memory() -> None:
    store = open_store("sqlite::memory:")
    stream = store.stream("session", "s", NOTES)
    stream.append(notes(1, "needle"), 0)
    assert [hit.seq for hit in store.search("needle", codec=NOTES)] == [1]
    assert [note.text for note in stream.read()] == ["needle"]
    store.close()


def test_leases_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/store.db")
    assert isinstance(store, SqliteStore)
    writer = store._connections.writer

    def level() -> int:
        return int(writer.execute("PRAGMA synchronous").fetchone()[0])

    full, levels = level(), []
    writer.set_trace_callback(lambda text: levels.append(text) if text.startswith("PRAGMA") else None)
    with closing(store), store.lease("k") as lease:
        lease.renew()
    assert levels == ["PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL"] * 3
    assert full == 2


def test_nobody_begins_to_read_while_the_process_forks(sqlite: SqliteStore) -> None:
    """A thread inside SQLite at a fork leaves the new process locks that nobody opens."""
    connections, entered = sqlite._connections, threading.Event()

    def read() -> None:
        with connections.reading():
            entered.set()

    with connections.reading():
        pass  # so that there is a reader to be had
    reader = threading.Thread(target=read)
    connections.hold()
    try:
        assert connections.is_still
        reader.start()
        assert not entered.wait(0.05)
    finally:
        connections.let_go()
    reader.join()
    assert entered.is_set()
