"""Disks that are full or lose power, and processes that end while they write. Spec: 10 §C6.1, §C12."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from harnpy.storage.errors import StoreFull, StoreUnreachable
from harnpy.storage.jsonl.layout import Medium
from tests.storage.jsonl.conftest import Open
from tests.storage.jsonl.test_damage import REPORTS, all_texts, write
from tests.storage.notes import Note, notes


class Failing(Medium):
    """A disk on which ``room`` bytes fit, in pieces; `fail` says what happens then."""

    def __init__(self, room: int, step: int = 7) -> None:
        self.room = room
        self.step = step

    def write(self, file: int, data: memoryview) -> int:
        if not self.room:
            self.fail()
        count = min(self.step, self.room, len(data))
        self.room -= count
        return super().write(file, data[:count])

    def fail(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Killing(Failing):
    def fail(self) -> None:
        os._exit(9)


class KillingAtSync(Medium):
    def sync_data(self, file: int) -> None:
        os._exit(9)


def in_a_fork(act: object) -> int:
    """Run ``act`` in a process of its own, and return how that ended."""
    child = os.fork()
    if not child:
        try:
            act()  # type: ignore[operator]
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_full_disk_leaves_the_log_as_it_was(directory: Path, open_again: Open) -> None:
    write(open_again(), ("a",))
    log = directory / "logs" / "s.jsonl"
    before = log.read_bytes()
    for room in range(0, 300, 11):
        medium = Failing(10**6)
        store = open_again(medium)
        stream = store.stream("session", "s", REPORTS)
        medium.room = room
        with pytest.raises(StoreFull, match="no space left"):
            stream.append(notes(2, "b" * 100, "c" * 100), 1)
        assert (log.read_bytes(), stream.refresh(), all_texts(store)) == (before, 1, ["a"])
    medium.room = 10**6
    stream.append(notes(2, "b"), 1)
    assert all_texts(store) == ["a", "b"]


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EFBIG])
def test_quotas_and_limits_are_a_full_disk_too(open_again: Open, number: int) -> None:
    class Limited(Failing):
        def fail(self) -> None:
            raise OSError(number, os.strerror(number))

    medium = Limited(10**6)
    store = open_again(medium)
    medium.room = 0
    with pytest.raises(StoreFull):
        write(store, ("a",))


def test_a_file_that_may_not_grow_is_a_full_disk(directory: Path, open_again: Open) -> None:
    store = open_again()
    write(store, ("a",))

    def grow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        try:
            write(store, ("b" * 2000,))
        except StoreFull:
            os._exit(3)

    assert in_a_fork(grow) == 3
    assert all_texts(open_again()) == ["a"]
    write(store, ("b",))
    assert all_texts(store) == ["a", "b"]


def test_another_fault_of_the_disk_is_reported_as_such(open_again: Open) -> None:
    class Broken(Failing):
        def fail(self) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    medium = Broken(10**6)
    store = open_again(medium)
    medium.room = 0
    with pytest.raises(StoreUnreachable, match=r"cannot open .*s\.jsonl: Input/output error"):
        write(store, ("a",))


def test_a_process_that_ends_while_it_writes_leaves_all_or_nothing(directory: Path, open_again: Open) -> None:
    write(open_again(), ("0",))
    expected = ["0"]
    for room in range(0, 400, 23):
        version = len(expected)

        def append(room: int = room, version: int = version) -> None:
            medium = Killing(10**6)
            stream = open_again(medium).stream("session", "s", REPORTS)
            medium.room = room
            stream.append(notes(version + 1, "b" * 60, "c" * 60), version)

        assert in_a_fork(append) in (0, 9)
        texts = all_texts(open_again())
        assert texts in (expected, [*expected, "b" * 60, "c" * 60])
        store = open_again()
        stream = store.stream("session", "s", REPORTS)
        stream.append([Note(stream.version + 1, f"after {room}")], stream.version)
        expected = all_texts(store)
        assert [note.seq for note in stream.read()] == list(range(1, len(expected) + 1))
        assert expected[: len(texts) + 1] == [*texts, f"after {room}"]
        assert store.fsck().clean


def test_a_process_that_ends_before_its_records_are_synced_leaves_all_or_nothing(open_again: Open) -> None:
    write(open_again(), ("a",))

    def append() -> None:
        write(open_again(KillingAtSync(), durability="full"), ("b", "c"))

    assert in_a_fork(append) == 9
    assert all_texts(open_again()) in (["a"], ["a", "b", "c"])


def test_an_append_returns_when_its_records_are_on_the_disk(open_again: Open) -> None:
    calls: list[str] = []

    class Watched(Medium):
        def write(self, file: int, data: memoryview) -> int:
            calls.append("write")
            return super().write(file, data)

        def sync(self, file: int) -> None:
            calls.append("sync")
            super().sync(file)

        def sync_data(self, file: int) -> None:
            calls.append("sync_data")
            super().sync_data(file)

    store = open_again(Watched(), durability="full")
    write(store, ("a",))
    assert calls[-3:] == ["write", "sync_data", "sync"]  # the last one is the directory's
    calls.clear()
    write(store, ("b", "c"))
    assert calls == ["write", "sync_data"]
    store.close()
    store = open_again(Watched(), durability="relaxed")
    calls.clear()
    write(store, ("d",))
    assert calls == ["write"]
