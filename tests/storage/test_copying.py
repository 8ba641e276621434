"""Copying from store to store. Spec: 10 §C21."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.storage import Head, Row, StorageError, Store, open_store
from harnpy.storage.copying import Rows, copy_streams
from tests.storage.notes import NOTES, Note, notes

#: Pairs in which each kind of store is an original and a copy.
PAIRS = [("jsonl", "sqlite"), ("sqlite", "postgres"), ("postgres", "jsonl")]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    urls = {"jsonl": f"jsonl:{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/store.db"}
    source, target = (
        request.getfixturevalue("postgres") if kind == "postgres" else urls[kind] for kind in request.param
    )
    return source, target


@pytest.fixture
def source(pair: tuple[str, str]) -> Iterator[Store]:
    with closing(open_store(pair[0])) as store:
        yield store


@pytest.fixture
def target(pair: tuple[str, str]) -> Iterator[Store]:
    with closing(open_store(pair[1])) as store:
        yield store


def written(store: Store, name: str, *texts: str) -> None:
    store.stream("session", name, NOTES).append(notes(1, *texts), 0, head={"status": "active", "agent": name})


def lasting(head: Head | None) -> Head | None:
    """A head without its `updated`, which may be behind."""
    return None if head is None else head._replace(updated=0)


def test_a_copy_has_records_heads_and_branches(source: Store, target: Store) -> None:
    written(source, "z", "a", "b", "c")
    branch = source.branch(
        source.stream("session", "z", NOTES), "y", Note(1, "A"), until=2, head={"agent": "y"}
    )
    branch.append(notes(3, "d"), 2)
    source.branch(branch, "x", Note(1, "X"), until=2)
    report = copy_streams(source, target, "session")
    assert (sorted(report.copied), report.skipped, report.errors) == (["x", "y", "z"], [], [])
    for name in "xyz":
        ours, theirs = (store.stream("session", name, NOTES) for store in (source, target))
        assert list(theirs.read()) == list(ours.read())
        assert lasting(target.head("session", name)) == lasting(source.head("session", name))


def test_made_again_it_goes_on_and_refuses_what_went_another_way(source: Store, target: Store) -> None:
    for name, text in [("s", "a"), ("t", "a")]:
        written(source, name, text)
    copy_streams(source, target, "session")
    target.stream("session", "t", NOTES).append(notes(2, "b"), 1)
    for store in (source, target):
        written(store, "u", "a")
    source.stream("session", "u", NOTES).append(notes(2, "b"), 1)
    written(source, "v", "a", "b")
    written(target, "v", "other")
    report = copy_streams(source, target, "session")
    assert (report.copied, report.skipped) == (["u"], ["s"])
    assert report.errors == [(name, f"Stream already exists: '{name}'") for name in "tv"]
    assert list(target.stream("session", "u", NOTES).read()) == notes(1, "a", "b")


def test_some_alone_and_what_they_descend_from(source: Store, target: Store) -> None:
    written(source, "s", "a", "b")
    written(source, "other", "a")
    source.branch(source.stream("session", "s", NOTES), "t", Note(1, "T"))
    report = copy_streams(source, target, "session", ["t", "none"])
    assert report.copied == ["s", "t"]
    assert report.errors == [("none", f"there is no session 'none' in {source.url}")]


def test_a_branch_of_a_deleted_stream_is_whole(source: Store, target: Store) -> None:
    written(source, "s", "a", "b")
    source.branch(source.stream("session", "s", NOTES), "t", Note(1, "T"))
    source.delete("session", "s")
    copy_streams(source, target, "session")
    assert [note.text for note in target.stream("session", "t", NOTES).read()] == ["T", "b"]


def test_many_records(source: Store, target: Store) -> None:
    written(source, "s", *map(str, range(2500)))
    copy_streams(source, target, "session")
    assert list(target.stream("session", "s", NOTES).read()) == notes(1, *map(str, range(2500)))


def test_forgotten_records_stay_forgotten_and_numbers_are_the_same(source: Store, target: Store) -> None:
    written(source, "s", *map(str, range(1500)))
    stream = source.stream("session", "s", NOTES)
    stream.drop(1200)
    copy_streams(source, target, "session")
    copied = target.stream("session", "s", NOTES)
    assert list(copied.read()) == notes(1201, *map(str, range(1200, 1500)))
    assert lasting(target.head("session", "s")) == lasting(source.head("session", "s"))
    stream.append(notes(1501, "more"), 1500)
    assert copy_streams(source, target, "session").copied == ["s"]
    copied.refresh()
    assert copied.last() == Note(1501, "more")
    assert target.fsck().clean


def test_a_copy_of_forgotten_records_that_was_interrupted_goes_on(source: Store, target: Store) -> None:
    written(source, "s", "a", "b", "c", "d")
    source.stream("session", "s", NOTES).drop(3)
    begun = target.stream("session", "s", Rows())
    begun.append([Row(number, "forgotten", 0, "{}") for number in (1, 2)], 0)
    assert copy_streams(source, target, "session").copied == ["s"]
    assert list(target.stream("session", "s", NOTES).read()) == notes(4, "d")


def test_a_branch_is_whole_where_its_parents_name_is_another_streams(source: Store, target: Store) -> None:
    written(source, "s", "a", "b")
    source.branch(source.stream("session", "s", NOTES), "t", Note(1, "T"))
    written(target, "s", "a", "other")
    report = copy_streams(source, target, "session")
    assert (report.copied, [name for name, _ in report.errors]) == (["t"], ["s"])
    assert [note.text for note in target.stream("session", "t", NOTES).read()] == ["T", "b"]


def test_memory_is_no_end_of_a_copy(source: Store) -> None:
    with pytest.raises(StorageError, match="memory: holds nothing beyond this process"):
        copy_streams(source, open_store("memory:"), "session")
