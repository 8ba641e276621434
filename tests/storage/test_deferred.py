"""`durability=async`: acknowledged from memory, written in order. Spec: 10 §C6."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from harnpy.storage import StorageError, Stream, open_store
from harnpy.storage.deferred import DeferredStore
from harnpy.storage.errors import AppendLost, StoreFull, VersionConflict
from harnpy.storage.memory import MemoryStore, MemoryStream
from tests.storage.notes import NOTES, notes


class Slow(MemoryStream):
    """A stream whose appends wait for ``gate``, and fail with ``failure``."""

    gate = threading.Event()
    failure: StorageError | None = None

    def append(self, *arguments: Any, **more: Any) -> None:
        assert self.gate.wait(60)
        if self.failure is not None:
            raise self.failure
        super().append(*arguments, **more)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[Slow]:
    monkeypatch.setattr("harnpy.storage.memory.MemoryStream", Slow)
    monkeypatch.setattr(Slow, "gate", threading.Event())
    return Slow


def test_an_append_returns_before_it_is_written_and_reads_see_it(slow: type[Slow]) -> None:
    inner = MemoryStore()
    store = DeferredStore(inner)
    stream = store.stream("session", "s", NOTES)
    stream.append(notes(1, "a"), 0)
    stream.append(notes(2, "b"), 1)
    assert (stream.version, inner.stream("session", "s", NOTES).version) == (2, 0)
    slow.gate.set()
    assert [note.text for note in stream.read()] == ["a", "b"]
    store.close()


def test_an_append_at_another_version_is_refused_at_once(slow: type[Slow]) -> None:
    slow.gate.set()
    stream = DeferredStore(MemoryStore()).stream("session", "s", NOTES)
    stream.append(notes(1, "a"), 0)
    with pytest.raises(VersionConflict, match="expected 0, found 1"):
        stream.append(notes(1, "b"), 0)


def test_two_objects_of_a_stream_count_alike(slow: type[Slow]) -> None:
    store = DeferredStore(MemoryStore())
    one, other = (store.stream("session", "s", NOTES) for _ in range(2))
    one.append(notes(1, "a"), 0)
    slow.gate.set()
    with pytest.raises(VersionConflict, match="expected 0, found 1"):
        other.append(notes(1, "b"), 0)
    other.append(notes(2, "c"), 1)
    assert [note.text for note in one.read()] == ["a", "c"]
    store.close()


def test_threads_that_append_lose_nothing(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/store.db?durability=async")
    shared = store.stream("session", "s", NOTES)

    def write(stream: Stream, name: str) -> None:
        for number in range(25):
            while True:
                version = stream.refresh()
                try:
                    stream.append(notes(version + 1, f"{name}{number}"), version)
                except VersionConflict:
                    continue
                break

    streams = {"a": shared, "b": shared, "c": store.stream("session", "s", NOTES)}
    threads = [threading.Thread(target=write, args=(stream, name)) for name, stream in streams.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [note.text for note in shared.read()]
    assert sorted(texts) == sorted(f"{name}{number}" for name in streams for number in range(25))
    store.close()


def test_after_a_write_that_failed_each_stream_says_so_once_and_goes_on(
    slow: type[Slow], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeferredStore(MemoryStore())
    stream, other, whole = (store.stream("session", name, NOTES) for name in ("s", "t", "u"))
    monkeypatch.setattr(slow, "failure", StoreFull("the disk"))
    stream.append(notes(1, "a"), 0)
    stream.append(notes(2, "b"), 1)
    other.append(notes(1, "a"), 0)
    slow.gate.set()
    with pytest.raises(AppendLost, match="earlier append to memory: was not written: no space") as error:
        store.flush()
    assert isinstance(error.value.__cause__, StoreFull)
    store.flush()
    monkeypatch.setattr(slow, "failure", None)
    for lost, version in ((stream, 2), (other, 1)):
        with pytest.raises(AppendLost, match="was not written"):
            lost.append(notes(version + 1, "c"), version)
        assert (lost.version, list(lost.read())) == (0, [])
        lost.append(notes(1, "again"), 0)
    whole.append(notes(1, "of its own"), 0)
    assert [note.text for each in (stream, other, whole) for note in each.read()] == [
        "again", "again", "of its own",
    ]  # fmt: skip
    store.close()


def test_close_writes_everything(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/s.db"
    store = open_store(f"{url}?durability=async")
    stream = store.stream("session", "s", NOTES)
    for number in range(100):
        stream.append(notes(number + 1, str(number)), number)
    store.close()
    again = open_store(url)
    assert again.stream("session", "s", NOTES).version == 100
    again.close()


def test_a_write_that_failed_is_told_at_the_latest_by_close(
    slow: type[Slow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "failure", StoreFull("the disk"))
    store = DeferredStore(MemoryStore())
    store.stream("session", "s", NOTES).append(notes(1, "a"), 0)
    slow.gate.set()
    with pytest.raises(StorageError, match="was not written: no space"):
        store.close()
    store.close()


def test_a_lease_is_let_go_behind_what_was_appended_under_it(slow: type[Slow]) -> None:
    store = DeferredStore(MemoryStore())
    stream = store.stream("session", "s", NOTES)
    lease = store.lease("session:s")
    stream.append(notes(1, "a"), 0, fence=lease)
    releasing = threading.Thread(target=lease.release)
    releasing.start()
    releasing.join(0.05)
    slow.gate.set()
    releasing.join()
    store.flush()
    assert [note.text for note in stream.read()] == ["a"]
    store.lease("session:s").release()
    store.close()
