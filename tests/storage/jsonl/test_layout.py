"""What a store looks like on disk, and what it refuses to touch. Spec: 10 §C4, §C6.1, §C12 (Security)."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest

from harnpy.storage import StorageError, open_store
from harnpy.storage.errors import CorruptLog, SchemaTooNew, StoreBusy
from harnpy.storage.jsonl.layout import file_name, locked, name_of
from tests.storage.jsonl.conftest import Open
from tests.storage.jsonl.test_damage import all_texts, write
from tests.storage.notes import NOTES, Note, notes


def test_a_log_is_lines_of_json_with_checksums(directory: Path, open_again: Open) -> None:
    store = open_again()
    store.stream("session", "a b", NOTES).append([Note(1, "ä\n", key="k"), Note(2, "b", id="x")], 0)
    lines = (directory / "logs" / "a%20b.jsonl").read_bytes().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert list(first) == ["seq", "type", "timestamp", "data", "more", "key", "log", "crc"]
    assert (first["timestamp"], first["data"]) == ("1970-01-01T00:00:01.000000Z", {"text": "ä\n"})
    assert first["log"]["name"] == "a b"
    assert {key: second[key] for key in ("seq", "id")} == {"seq": 2, "id": "x"}
    assert "ä".encode() in lines[0]
    for line in lines:
        text, crc = line[:-18] + b"}", json.loads(line)["crc"]
        assert crc == f"{zlib.crc32(text):08x}"


def test_a_head_is_written_when_it_changes_and_only_what_did(directory: Path, open_again: Open) -> None:
    store = open_again()
    stream = store.stream("session", "s", NOTES)
    stream.append(notes(1, "a"), 0, head={"status": "active", "n": 1})
    stream.append(notes(2, "b"), 1, head={"status": "active", "n": 1})
    stream.append(notes(3, "c"), 2, head={"status": "active", "n": True})
    stream.append([], 3, head={"n": True})
    stream.append([], 3, head={"n": True})
    lines = [json.loads(line) for line in (directory / "logs" / "s.jsonl").read_text().splitlines()]
    told = [line.get("log") for line in lines]
    assert told[1:] == [None, {"set": {"n": True}}, {"head": {"n": True}}]
    (directory / "heads").joinpath("s.json").unlink(missing_ok=True)
    head = open_again().head("session", "s")
    assert head is not None
    assert (dict(head.data), head.version) == ({"n": True}, 3)


def test_lines_of_other_systems_need_no_checksum_and_no_number(directory: Path, open_again: Open) -> None:
    open_again()
    (directory / "logs").mkdir()
    log = directory / "logs" / "s.jsonl"
    log.write_text(
        '{"id":"01J","session_id":"s","type":"note","timestamp":"2026-01-05T10:30:00+01:00","data":{"text":"a"}}\n'
        "\n"
        '{"id":"01K", "type": "note", "timestamp":"2026-01-05T09:30:00.5Z", "data": {"text":"b"}}\n'
    )
    store = open_again()
    assert all_texts(store) == ["a", "b"]
    write(store, ("c",))
    store = open_again()
    assert all_texts(store) == ["a", "b", "c"]
    assert store.stream("session", "s", NOTES).find_id("01K") == 2
    head = store.head("session", "s")
    assert head is not None
    assert head.created == 1767605400000000


def test_a_newer_store_is_refused_untouched(directory: Path, open_again: Open) -> None:
    write(open_again(), ("a",))
    (directory / "FORMAT").write_text('{"format":"harn-sessions","version":2}')
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with pytest.raises(SchemaTooNew, match="has format 2, and this harnpy knows formats up to 1"):
        open_again()
    assert before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_line_of_a_newer_version_is_refused(directory: Path, open_again: Open) -> None:
    write(open_again(), ("a",))
    with (directory / "logs" / "s.jsonl").open("a") as log:
        log.write('{"v":2,"type":"note","timestamp":"2026-01-05T09:30:00Z","data":{"text":"b"}}\n')
    with pytest.raises(SchemaTooNew, match=r"s\.jsonl has format 2"):
        open_again().stream("session", "s", NOTES)


@pytest.mark.parametrize("content", ["", "[]", '{"format":"other"}'])
def test_a_directory_of_something_else_is_refused(directory: Path, open_again: Open, content: str) -> None:
    directory.mkdir()
    (directory / "FORMAT").write_text(content)
    with pytest.raises(StorageError, match="is not a store"):
        open_again()
    with pytest.raises(StorageError, match="needs a directory"):
        open_store("jsonl:")


@pytest.mark.parametrize("folded", [False, True])
def test_names_become_files_that_never_collide_or_lead_elsewhere(folded: bool) -> None:
    names = [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "con",
        "A",
        "a",
        "%41",
        "~",
        "ä" * 200,
        "ä" * 201,
        "x" * 180,
        "x" * 181,
    ]
    files = [file_name(name, folded=folded) for name in names]
    assert len({file.lower() if folded else file for file in files}) == len(names)
    for name, file in zip(names, files, strict=True):
        assert name_of(file) == (None if "~" in file else name)
        assert file.strip(".")
        assert not set(file) & set("/\\:\0")
        assert len(file) <= 180
    assert [name_of(file) for file in ("%zz", "A b", "%61", "%FF")] == [None] * 4


def test_links_in_a_store_are_not_followed(directory: Path, tmp_path: Path, open_again: Open) -> None:
    write(open_again(), ("a",))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("untouched\n")
    (directory / "logs" / "t.jsonl").symlink_to(outside / "secret")
    (directory / "logs" / "topic").symlink_to(outside)
    (directory / "logs" / "u.lock").symlink_to(outside / "made")
    store = open_again()
    for kind, name in (("session", "t"), ("topic", "x"), ("session", "u")):
        with pytest.raises(StorageError):
            store.stream(kind, name, NOTES).append(notes(1, "b"), 0)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "untouched\n"


def test_a_log_that_somebody_keeps_locked_is_busy(directory: Path) -> None:
    store = open_store(f"jsonl:{directory}?durability=relaxed&timeout=0.01")
    write(store, ("a",))
    with (
        locked(store.directory.logs.log("session", "s").folder, "s", 0),  # type: ignore[attr-defined]
        pytest.raises(StoreBusy, match=r"was locked for 0\.01 s by another process"),
    ):
        write(store, ("b",))
    write(store, ("b",))
    assert all_texts(store) == ["a", "b"]
    store.close()


def test_no_file_stays_open_between_calls(directory: Path, open_again: Open) -> None:
    store = open_again()
    for number in range(20):
        store.stream("session", str(number), NOTES).append(notes(1, "a"), 0)
    opened = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
    assert not [path for path in opened if path.startswith(str(directory)) and os.path.isfile(path)]


def test_a_lease_file_that_a_power_cut_emptied_holds_nothing(directory: Path, open_again: Open) -> None:
    store = open_again()
    token = store.lease("k", "a").token
    file = directory / "leases" / "k.json"
    for left in (b"", bytes(file.stat().st_size)):
        file.write_bytes(left)
        lease = store.lease("k", "b")
        assert lease.token > token
        token = lease.token


def test_a_lease_file_is_written_over_whatever_its_length(directory: Path, open_again: Open) -> None:
    store = open_again()
    store.lease("k", "a" * 200).release()
    store.lease("k", "b" * 5000).release()
    store.lease("k", "c").release()
    first = (directory / "leases" / "k.json").read_text().splitlines()[0]
    assert json.loads(first)["held"][0] == "c"


def test_a_lease_that_can_t_be_read_is_reported(directory: Path, open_again: Open) -> None:
    store = open_again()
    store.lease("k", "a").release()
    (directory / "leases" / "k.json").write_text("{")
    with pytest.raises(CorruptLog, match=r"k\.json"):
        store.lease("k", "a")


def test_a_branch_of_a_stream_that_was_dropped_from_has_what_is_left(open_again: Open) -> None:
    store = open_again()
    write(store, ("a", "b", "c"), ("d",))
    stream = store.stream("session", "s", NOTES)
    stream.drop(2)
    branch = store.branch(stream, "t", Note(1, "A"))
    assert (branch.version, all_texts(store, "t")) == (4, ["A", "c", "d"])
    stream.drop(4)
    assert (stream.version, all_texts(store), all_texts(store, "t")) == (4, [], ["A", "c", "d"])
