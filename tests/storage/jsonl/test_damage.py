"""What a crash, a bad disk or a careless hand leaves in a log. Spec: 10 §C6.1, §C12."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harnpy.storage import HeadQuery, Row
from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl.layout import Medium
from tests.storage.jsonl.conftest import Open
from tests.storage.notes import NOTES, Note, Notes, notes


class Reports(Notes):
    """Notes, and the reports of repairs among them."""

    def _note(self, row: Row) -> Note:
        if row.type == "store_repaired":
            return Note(row.seq, row.data, row.type)
        return super()._note(row)


REPORTS = Reports()


class Careless(Medium):
    """A disk that isn't waited for."""

    def sync(self, file: int) -> None:
        pass


def all_texts(store: object, name: str = "s") -> list[str]:
    return [note.text for note in store.stream("session", name, REPORTS).read()]  # type: ignore[attr-defined]


def write(store: object, *appends: tuple[str, ...]) -> None:
    stream = store.stream("session", "s", NOTES)  # type: ignore[attr-defined]
    for texts in appends:
        stream.append(notes(stream.version + 1, *texts), stream.version)


class TestTornTail:
    def test_a_log_that_was_cut_anywhere_in_its_last_append_is_as_before_it(
        self, directory: Path, open_again: Open
    ) -> None:
        log = directory / "logs" / "s.jsonl"
        write(open_again(), ("a", "b"))
        before = log.read_bytes()
        write(open_again(), ("c", "d", "e"))
        whole = log.read_bytes()
        for size in range(len(before), len(whole)):
            log.write_bytes(whole[:size])
            for kept in (directory / "torn").glob("*"):
                kept.unlink()
            store = open_again(Careless())
            stream = store.stream("session", "s", REPORTS)
            assert all_texts(store) == ["a", "b"], size
            stream.append(notes(3, "new"), 2)
            torn = [kept.read_bytes() for kept in (directory / "torn").glob("*")]
            if size == len(before):
                assert (torn, all_texts(store)) == ([], ["a", "b", "new"])
            else:
                assert torn == [whole[len(before) : size]], size
                assert stream.version == 4
                report = next(stream.read(after=3))
                assert report.type == "store_repaired"
                assert json.loads(report.text)["dropped_bytes"] == size - len(before)
                assert json.loads(report.text)["dropped_events"] in (1, 2, 3)
            assert store.fsck().clean
            store.close()

    def test_a_last_line_whose_middle_was_never_written_is_cut_off(
        self, directory: Path, open_again: Open
    ) -> None:
        log = directory / "logs" / "s.jsonl"
        write(open_again(), ("a",))
        log.write_bytes(log.read_bytes() + b'{"seq":2,"type":"note",' + bytes(512) + b'"crc":"00000000"}\n')
        store = open_again()
        assert all_texts(store) == ["a"]
        write(store, ("b",))
        assert all_texts(store)[:2] == ["a", "b"]

    def test_a_repair_is_reported_by_the_next_append_and_once(
        self, directory: Path, open_again: Open
    ) -> None:
        log = directory / "logs" / "s.jsonl"
        write(open_again(), ("a",))
        log.write_bytes(log.read_bytes() + b'{"seq":2')
        store = open_again()
        assert store.fsck().findings[0].problem == "8 bytes of an append that was never finished"
        assert [finding.repaired for finding in store.fsck(repair=True).findings] == [True]
        assert (store.fsck().findings, all_texts(store)) == ([], ["a"])
        stream = store.stream("session", "s", REPORTS)
        stream.append(notes(2, "b"), 1)
        stream.append(notes(4, "c"), 3)
        assert [note.type for note in stream.read()] == ["note", "note", "store_repaired", "note"]


class TestCorruptMiddle:
    def test_a_flipped_bit_anywhere_in_a_line_is_found_and_changes_nothing(
        self, directory: Path, open_again: Open
    ) -> None:
        log = directory / "logs" / "s.jsonl"
        store = open_again()
        write(store, ("a",), ("the one that is damaged",), ("c",), ("d",))
        store.stream("session", "other", NOTES).append(notes(1, "fine"), 0)
        store.close()
        whole = log.read_bytes()
        first, second = (len(b"".join(whole.splitlines(keepends=True)[:lines])) for lines in (1, 2))
        for line, start, end in ((1, 0, first), (2, first, second)):
            for position in range(start, end):
                damaged = bytearray(whole)
                damaged[position] ^= 1 << (position % 8)
                log.write_bytes(damaged)
                store = open_again()
                with pytest.raises(CorruptLog) as error:
                    all_texts(store)
                assert (error.value.line, error.value.offset) == (line, start), position
                assert str(log) in str(error.value)
                with pytest.raises(CorruptLog):
                    store.stream("session", "s", NOTES)
                assert log.read_bytes() == damaged
                assert all_texts(store, "other") == ["fine"]
                page = store.heads(HeadQuery())
                assert [head.name for head in page.items] == ["other"]
                assert [name for name, _ in page.errors] == ["s"]
                assert [hit.name for hit in store.search("fine", codec=NOTES)] == ["other"]
                store.close()

    @pytest.mark.parametrize("line", [1, 2, 3, 4])
    def test_a_repair_loses_nothing_that_can_be_read(
        self, directory: Path, open_again: Open, line: int
    ) -> None:
        log = directory / "logs" / "s.jsonl"
        store = open_again()
        write(store, ("a",), ("b", "c"), ("d",), ("e",))
        store.branch(store.stream("session", "s", NOTES), "t", Note(1, "A"), until=4)
        store.close()
        whole = log.read_bytes()
        lines = whole.splitlines(keepends=True)
        lines[line - 1] = lines[line - 1].replace(b'"text"', b'"tixt"')
        log.write_bytes(b"".join(lines))
        store = open_again()
        report = store.fsck()
        assert (report.clean, report.findings[0].name) == (False, "s")
        assert "line " + str(line) in report.findings[0].problem
        assert store.fsck(repair=True).clean
        assert store.fsck().findings == []
        stream = store.stream("session", "s", REPORTS)
        texts = [note.text if note.type == "note" else "?" for note in stream.read()]
        assert texts == ["?" if number == line else text for number, text in enumerate("abcde", 1)]
        assert [kept.read_bytes() for kept in (directory / "torn").glob("*")] == [b"".join(lines)]
        stream.append(notes(6, "f"), 5)
        branch = store.stream("session", "t", REPORTS)
        assert [note.text if note.type == "note" else "?" for note in branch.read()] == ["A", *texts[1:4]]

    def test_a_branch_whose_first_line_is_damaged_still_knows_its_past(
        self, directory: Path, open_again: Open
    ) -> None:
        store = open_again()
        write(store, ("a", "b"))
        branch = store.branch(store.stream("session", "s", NOTES), "t", Note(1, "A"))
        branch.append(notes(3, "c"), 2)
        store.close()
        log = directory / "logs" / "t.jsonl"
        log.write_bytes(log.read_bytes().replace(b'"text":"A"', b'"text":"B"'))
        store = open_again()
        assert store.fsck(repair=True).clean
        assert all_texts(store, "t")[1:] == ["b", "c"]
        assert store.fsck().findings == []

    def test_a_log_of_which_nothing_can_be_read_is_put_aside(self, directory: Path, open_again: Open) -> None:
        store = open_again()
        write(store, ("a",))
        store.close()
        log = directory / "logs" / "s.jsonl"
        log.write_bytes(b"x\ny\n")
        store = open_again()
        assert store.fsck(repair=True).clean
        assert store.heads(HeadQuery()).items == []
        assert [kept.read_bytes() for kept in (directory / "torn").glob("*")] == [b"x\ny\n"]

    def test_a_past_that_is_gone_is_reported(self, directory: Path, open_again: Open) -> None:
        store = open_again()
        write(store, ("a", "b"))
        store.branch(store.stream("session", "s", NOTES), "t", Note(1, "A"))
        (directory / "logs" / "s.jsonl").unlink()
        with pytest.raises(CorruptLog, match="shared with 's' are gone"):
            all_texts(store, "t")
        report = store.fsck(repair=True)
        assert [(finding.name, finding.repaired) for finding in report.findings] == [("t", False)]


class TestCaches:
    def test_a_wrong_cache_is_not_believed(self, directory: Path, open_again: Open) -> None:
        store = open_again()
        write(store, ("a",), ("b",))
        store.close()
        cache = directory / "heads" / "s.json"
        for content in (b"", b"{}", b"[1]", cache.read_bytes()[:-9]):
            cache.write_bytes(content)
            assert all_texts(open_again()) == ["a", "b"]

    def test_a_cache_of_a_former_log_is_not_believed(self, directory: Path, open_again: Open) -> None:
        store = open_again()
        write(store, ("a",), ("b",))
        store.close()
        cache = (directory / "heads" / "s.json").read_bytes()
        store = open_again()
        store.delete("session", "s")
        write(store, ("c",), ("d",), ("e",), ("f",))
        store.close()
        (directory / "heads" / "s.json").write_bytes(cache)
        assert all_texts(open_again()) == ["c", "d", "e", "f"]
