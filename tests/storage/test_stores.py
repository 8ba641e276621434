"""What every store promises, as one class that runs on each of them. Spec: 10 §C6, §C12."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from threading import Event

import pytest

from harnpy.storage import HeadQuery, Row, Store
from harnpy.storage.copying import Rows
from harnpy.storage.errors import (
    LeaseHeld,
    LeaseLost,
    StorageError,
    StoreClosed,
    StreamExists,
    VersionConflict,
)
from harnpy.storage.searching import holds, terms
from tests.counts import COUNT
from tests.storage.conftest import Uptime
from tests.storage.notes import CODED, NOTES, TOGETHER, Note, Notes, notes

Opened = Callable[..., Store]


def texts(stream: object, **how: object) -> list[str]:
    return [note.text for note in stream.read(**how)]  # type: ignore[attr-defined]


class TestStores:
    """The contract."""

    # Streams.

    def test_a_stream_that_nobody_wrote_is_empty_and_has_version_0(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        assert (stream.version, texts(stream), stream.last()) == (0, [], None)
        assert store.head("session", "s") is None
        assert store.heads(HeadQuery()).items == []

    def test_records_are_read_in_the_order_of_their_appends(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a", "b"), 0)
        stream.append(notes(3, "c"), 2)
        assert texts(stream) == ["a", "b", "c"]
        assert texts(stream, after=1) == ["b", "c"]
        assert texts(stream, after=1, until=2) == ["b"]
        assert texts(stream, reverse=True) == ["c", "b", "a"]
        assert texts(stream, reverse=True, limit=2) == ["c", "b"]
        assert texts(stream, limit=0) == []
        assert texts(stream, until=0) == []
        assert stream.last() == Note(3, "c")

    def test_few_records_of_many_are_read_alone(self, store: Store) -> None:
        read: list[int] = []

        class Counted(Notes):
            def decode(self, rows: Sequence[Row]) -> list[Note]:
                read.append(len(rows))
                return super().decode(rows)

        stream = store.stream("session", "s", Counted())
        for first in (1, 1201):
            stream.append(notes(first, *map(str, range(first, first + 1200))), first - 1)
        stream.append(notes(2401, "last"), 2400)
        stream.append(notes(2402, "very last"), 2401)
        read.clear()
        assert stream.last() == Note(2402, "very last")
        assert texts(stream, reverse=True, limit=2) == ["very last", "last"]
        assert sum(read) <= 4

    def test_records_of_some_types_alone(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append([Note(1, "a", "x"), Note(2, "b", "y"), Note(3, "c", "x")], 0)
        assert texts(stream, types=frozenset({"x"})) == ["a", "c"]
        assert texts(stream, types=frozenset({"x"}), reverse=True, limit=1) == ["c"]
        assert texts(stream, types=frozenset()) == []

    def test_a_stream_opened_later_has_all_of_them(self, opened: Opened) -> None:
        store = opened()
        store.stream("session", "s", NOTES).append(notes(1, "a", "b"), 0)
        again = store.stream("session", "s", NOTES)
        assert (again.version, texts(again)) == (2, ["a", "b"])

    def test_an_append_at_another_version_changes_nothing(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a"), 0)
        with pytest.raises(VersionConflict, match=r"Version conflict in stream 's': expected 0, found 1"):
            stream.append(notes(1, "b"), 0)
        with pytest.raises(VersionConflict, match="expected 2, found 1"):
            stream.append(notes(3, "b"), 2)
        assert texts(stream) == ["a"]

    def test_two_objects_of_one_stream_see_each_other_when_they_look(self, store: Store) -> None:
        one, other = (store.stream("session", "s", NOTES) for _ in range(2))
        one.append(notes(1, "a"), 0)
        assert other.refresh() == 1
        other.append(notes(2, "b"), 1)
        assert (one.refresh(), texts(one)) == (2, ["a", "b"])

    def test_names_are_any_text_and_kinds_are_apart(self, store: Store) -> None:
        names = [
            "../x",
            "con",
            "ä" * 200,
            "A",
            "a",
            "a b",
            "a/b",
            ".",
            "%41",
            "x" * 200,
            "'; --",
            "_%",
            "\u00e9",
            "e\u0301",
        ]
        for number, name in enumerate(names):
            store.stream("session", name, NOTES).append(notes(1, str(number)), 0)
        store.stream("topic", "A", NOTES).append(notes(1, "topic"), 0)
        for number, name in enumerate(names):
            assert texts(store.stream("session", name, NOTES)) == [str(number)]
        found = store.heads(HeadQuery(order="id", limit=50)).items
        assert [head.name for head in found] == sorted(names)
        assert [head.name for head in store.heads(HeadQuery("topic")).items] == ["A"]

    def test_texts_come_back_as_they_were(self, store: Store) -> None:
        odd = ["", " ", "\n\r\t\0\x7f", "ünïcödé 🎉", '"\\', "{}", "x" * 100_000]
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, *odd), 0)
        assert texts(store.stream("session", "s", NOTES)) == odd

    @pytest.mark.parametrize("together", [True, False])
    def test_times_come_back_as_they_were(self, store: Store, together: bool) -> None:
        """Also those that a float has no microseconds of: year 1 and year 9999."""
        times = [-62_135_596_799_999_999, -1, 0, 1_767_225_600_123_457, 253_402_300_799_999_999]
        rows = [Row(number, "note", time, "{}") for number, time in enumerate(times, 1)]
        stream = store.stream("k", "s", Rows())
        if together:
            stream.append([row._replace(more=len(rows) - row.seq) for row in rows], 0)
        else:
            for row in rows:
                stream.append([row], row.seq - 1)
        assert [row.time for row in stream.read()] == times
        head = store.head("k", "s")
        assert head is not None
        assert head.created == times[0]

    def test_what_is_read_may_be_changed_without_harm(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a"), 0)
        list(stream.read()).append(Note(2, "b"))
        assert texts(stream) == ["a"]

    def test_a_record_is_found_by_its_key_and_by_its_foreign_id(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append([Note(1, "a", key="k"), Note(2, "b", key="k"), Note(3, "c", id="foreign")], 0)
        found = stream.find_key("k")
        assert found is not None
        assert found.text == "b"
        assert stream.find_key("other") is None
        assert (stream.find_id("foreign"), stream.find_id("other")) == (3, None)

    # Heads.

    def test_the_head_changes_with_the_records(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a"), 0, head={"status": "active", "agent": "x", "more": [1]})
        head = store.head("session", "s")
        assert head is not None
        assert (head.kind, head.name, head.version, head.parent, head.fork_seq) == (
            "session",
            "s",
            1,
            None,
            0,
        )
        assert dict(head.data) == {"status": "active", "agent": "x", "more": [1]}
        assert head.created == 1_000_000
        with pytest.raises(VersionConflict):
            stream.append(notes(1, "b"), 0, head={"status": "failed"})
        stream.append([], 1, head={"status": "completed"})
        head = store.head("session", "s")
        assert head is not None
        assert (head.version, dict(head.data)) == (1, {"status": "completed"})

    def test_lists_are_filtered_ordered_and_paged(self, store: Store) -> None:
        for number, name in enumerate(["b", "a", "d", "c"], 1):
            status = "deleted" if name == "d" else "active"
            agent = "x" if name in "ab" else "y"
            stream = store.stream("session", name, NOTES)
            stream.append([Note(1, "", time=number)], 0, head={"status": status, "agent": agent})

        def names(**how: object) -> list[str]:
            return [head.name for head in store.heads(HeadQuery(**how)).items]  # type: ignore[arg-type]

        assert names() == ["c", "d", "a", "b"]
        assert names(order="created") == ["c", "d", "a", "b"]
        assert names(order="id") == ["a", "b", "c", "d"]
        assert names(without=frozenset({"deleted"})) == ["c", "a", "b"]
        assert names(statuses=frozenset({"deleted"})) == ["d"]
        assert names(agent="x", order="id") == ["a", "b"]
        assert names(parent="a") == []
        for name, metadata in (
            ("e", {"principal": "ann"}),
            ("f", {"principal": "bob", "x": "\0"}),
            ("g", ["x"]),
        ):
            head = {"status": "active", "metadata": metadata}
            store.stream("owned", name, NOTES).append([Note(1, "")], 0, head=head)
        for name, shares in (("p", {"with": {"ann": ["read"]}}), ("q", None)):
            head = {"status": "active", "metadata": {"principal": "bob", "serve.shares": shares}}
            store.stream("shared", name, NOTES).append([Note(1, "")], 0, head=head)
        # Whoever it is shared with: that is for whoever asks to judge.
        assert names(kind="shared", principal="ann", order="id") == ["p"]
        assert names(kind="shared", principal="bob", order="id") == ["p", "q"]
        assert names(kind="owned", principal="ann", order="id") in (["e", "g"], ["e", "f", "g"])
        assert names(kind="owned", principal="eve", order="id", limit=9)[-1] == "g"
        assert "e" not in names(kind="owned", principal="eve")
        for order in ("updated", "created", "id"):
            whole, after = [], None
            while True:
                page = store.heads(HeadQuery(order=order, limit=3, after=after))
                whole += [head.name for head in page.items]
                after = page.next
                if after is None:
                    break
            assert whole == names(order=order)
        with pytest.raises(StorageError, match="order is updated, created or id, not `size`"):
            store.heads(HeadQuery(order="size"))

    # Branches.

    def test_a_branch_has_its_own_first_record_and_goes_its_own_way(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append(notes(1, "first", "a"), 0)
        branch = store.branch(source, "t", Note(1, "other first"), head={"status": "active"})
        source.append(notes(3, "b"), 2)
        branch.append(notes(3, "c"), 2)
        assert texts(source) == ["first", "a", "b"]
        assert texts(branch) == ["other first", "a", "c"]
        assert texts(branch, after=1) == ["a", "c"]
        assert texts(branch, reverse=True) == ["c", "a", "other first"]
        assert texts(store.stream("session", "t", NOTES)) == ["other first", "a", "c"]
        head = store.head("session", "t")
        assert head is not None
        assert (head.parent, head.fork_seq, head.version) == ("s", 2, 3)
        assert [one.name for one in store.heads(HeadQuery(parent="s")).items] == ["t"]

    def test_a_branch_at_an_earlier_record(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append(notes(1, "a", "b", "c", "d"), 0)
        branch = store.branch(source, "t", Note(1, "A"), until=2)
        assert (branch.version, texts(branch), branch.last()) == (2, ["A", "b"], Note(2, "b"))
        only = store.branch(source, "u", Note(1, "U"), until=1)
        assert (only.version, texts(only), only.last()) == (1, ["U"], Note(1, "U"))

    def test_a_branch_never_overwrites_a_stream(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append(notes(1, "a"), 0)
        with pytest.raises(StreamExists, match="Stream already exists: 's'"):
            store.branch(source, "s", Note(1, "b"))

    def test_branches_of_branches_read_right_a_thousand_deep(self, store: Store) -> None:
        stream = store.stream("session", "0", NOTES)
        stream.append(notes(1, "0", "step 0"), 0)
        for depth in range(1, 1000):
            stream = store.branch(stream, str(depth), Note(1, str(depth)))
            stream.append(notes(depth + 2, f"step {depth}"), depth + 1)
        assert texts(stream) == ["999", *(f"step {depth}" for depth in range(1000))]
        assert texts(store.stream("session", "999", NOTES), after=500, until=501) == ["step 499"]

    def test_deleting_a_stream_leaves_its_branches_alone(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append(notes(1, "first", "a", "b"), 0)
        branch = store.branch(source, "t", Note(1, "other"), until=2)
        assert store.delete("session", "s")
        assert not store.delete("session", "s")
        assert store.head("session", "s") is None
        assert texts(store.stream("session", "s", NOTES)) == []
        assert texts(branch) == ["other", "a"]
        store.stream("session", "s", NOTES).append(notes(1, "new"), 0)
        assert texts(store.stream("session", "t", NOTES)) == ["other", "a"]
        branch.settle()
        store.gc()
        assert texts(store.stream("session", "t", NOTES)) == ["other", "a"]
        assert texts(store.stream("session", "s", NOTES)) == ["new"]

    # Dropping.

    def test_streams_are_counted_by_kind(self, store: Store) -> None:
        assert store.kinds() == {}
        for kind, name in (("session", "a"), ("session", "b"), ("topic", "a"), ("odd kind", "a")):
            store.stream(kind, name, NOTES).append(notes(1, "x"), 0)
        store.branch(store.stream("topic", "a", NOTES), "b", Note(1, "B"))
        store.stream("run", "never written", NOTES)
        assert store.kinds() == {"session": 2, "topic": 2, "odd kind": 1}
        store.delete("topic", "a")
        store.delete("odd kind", "a")
        assert store.kinds() == {"session": 2, "topic": 1}

    def test_texts_that_the_rows_do_not_show_are_found(self, store: Store) -> None:
        store.stream("hidden", "a", CODED).append(notes(1, "Hello World", "x"), 0)
        hits = store.search("world hello", "hidden", codec=CODED)
        assert [(hit.name, hit.seq, hit.text) for hit in hits] == [("a", 1, "Hello World")]

    def test_an_append_of_any_length_is_read_as_it_was_written(self, store: Store) -> None:
        stream = store.stream("session", "s", Rows())
        lease = store.lease("k", "me")
        written: list[Row] = []
        for count in (1, 2, 0, 3, 4, 5, 6):
            rows = [
                Row(
                    len(written) + 1 + number,
                    "note",
                    1_764_547_199_999_999 + number,
                    f'{{"n": "{number}"}}',
                    count - number - 1,
                    None if number % 2 else 1,
                    None if number % 2 else 0.1 + number,
                    rest='{"k":1}' if number % 2 else None,
                )
                for number in range(count)
            ]
            stream.append(rows, len(written), head={"status": str(count)}, fence=lease)
            written += rows
        assert list(store.stream("session", "s", Rows()).read()) == written
        head = store.head("session", "s")
        assert head is not None
        assert (head.version, head.created, head.data) == (21, written[0].time, {"status": "6"})

    def test_dropped_records_are_gone_and_numbers_go_on(self, store: Store) -> None:
        stream = store.stream("topic", "t", NOTES)
        stream.append(notes(1, "a", "b", "c"), 0)
        assert (stream.drop(2), stream.drop(2)) == (2, 0)
        assert (stream.version, texts(stream), texts(stream, after=1)) == (3, ["c"], ["c"])
        stream.append(notes(4, "d"), 3)
        assert texts(store.stream("topic", "t", NOTES)) == ["c", "d"]
        assert (stream.drop(99), texts(stream), stream.version) == (2, [], 4)

    def test_dropping_leaves_the_branches_whole(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a", "b", "c"), 0)
        stream.append(notes(4, "d"), 3)
        branch = store.branch(stream, "t", Note(1, "A"), until=3)
        assert stream.drop(3) == 3
        assert (texts(stream), texts(branch)) == (["d"], ["A", "b", "c"])
        assert branch.drop(2) == 2
        branch.append(notes(4, "e"), 3)
        assert (texts(branch), texts(store.stream("session", "t", NOTES))) == (["c", "e"], ["c", "e"])

    # Appends stay together.

    def test_records_are_decoded_together_with_the_append_that_they_are_of(self, store: Store) -> None:
        stream = store.stream("session", "s", TOGETHER)
        stream.append(notes(1, "a", "b", "c"), 0)
        stream.append([Note(4, "d", "x"), Note(5, "e"), Note(6, "f", "x")], 3)
        branch = store.branch(stream, "t", Note(1, "A"), until=5)
        for each, whole in ((stream, list("abcdef")), (branch, list("Abcde"))):
            for after in range(len(whole)):
                assert texts(each, after=after) == whole[after:]
                assert texts(each, after=after, limit=1) == whole[after : after + 1]
                assert texts(each, until=after) == whole[:after]
                assert texts(each, until=after, reverse=True) == whole[:after][::-1]
        assert texts(stream, types=frozenset({"x"})) == ["d", "f"]
        assert texts(stream, types=frozenset({"x"}), reverse=True, limit=1) == ["f"]
        last = stream.last()
        assert last is not None
        assert last.text == "f"
        assert [hit.seq for hit in store.search("e", codec=TOGETHER)] == [5]

    def test_what_is_found_may_be_in_the_shared_past(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append([Note(1, "a"), Note(2, "b", key="k", id="x"), Note(3, "c", key="l", id="y")], 0)
        branch = store.branch(source, "t", Note(1, "A"), until=2)
        found = branch.find_key("k")
        assert found is not None
        assert (found.seq, found.text, found.id) == (2, "b", "x")
        assert (branch.find_key("l"), branch.find_id("x"), branch.find_id("y")) == (None, 2, None)

    def test_reading_goes_on_to_where_the_stream_ended_when_it_began(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, *(str(number) for number in range(1000))), 0)
        reading = stream.read()
        assert next(reading).text == "0"
        stream.append(notes(1001, "later"), 1000)
        assert [note.text for note in reading] == [str(number) for number in range(1, 1000)]

    @pytest.mark.parametrize("size", [COUNT.large_record])
    def test_a_large_record(self, store: Store, size: int) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a", "ä" * size, "b"), 0)
        last = store.stream("session", "s", NOTES).last()
        assert last == Note(3, "b")
        assert [len(text) for text in texts(stream)] == [1, size, 1]

    # Collecting.

    def test_a_stream_whose_status_is_deleted_is_dropped_by_a_collection(self, store: Store) -> None:
        old = store.stream("session", "old", NOTES)
        old.append(notes(1, "first", "a"), 0, head={"status": "deleted"})
        new = store.stream("topic", "new", NOTES)
        new.append([Note(1, "b", time=4_000_000_000)], 0, head={"status": "deleted"})
        store.stream("session", "kept", NOTES).append(notes(1, "c"), 0, head={"status": "active"})
        branch = store.branch(old, "branch", Note(1, "B"))
        assert store.gc(older_than=60, dry_run=True).streams == ["old"]
        assert texts(store.stream("session", "old", NOTES)) == ["first", "a"]
        assert store.gc(older_than=60).streams == ["old"]
        assert store.head("session", "old") is None
        assert store.head("topic", "new") is not None
        assert store.head("session", "kept") is not None
        assert texts(branch) == ["B", "a"]
        assert store.gc(older_than=60).streams == []

    def test_erased_streams_are_gone_with_what_nobody_shares(self, store: Store) -> None:
        old = store.stream("session", "old", NOTES)
        old.append(notes(1, "first", "a", "b"), 0)
        branch = store.branch(old, "branch", Note(1, "B"), until=2)
        store.branch(branch, "twig", Note(1, "T"))
        store.stream("topic", "old", NOTES).append(notes(1, "kept"), 0, head={"status": "deleted"})
        store.erase([("session", "old"), ("session", "nobody")])
        assert store.head("session", "old") is None
        assert texts(store.stream("session", "branch", NOTES)) == ["B", "a"]
        store.erase([("session", "branch"), ("session", "twig")])
        assert store.kinds() == {"topic": 1}
        assert store.gc(older_than=0, dry_run=True).stems == 0
        assert store.fsck().clean
        store.stream("session", "old", NOTES).append(notes(1, "new"), 0)
        assert [hit.text for hit in store.search("new", codec=NOTES)] == ["new"]

    def test_what_no_branch_reads_any_more_is_collected(self, store: Store) -> None:
        stream = store.stream("session", "0", NOTES)
        stream.append(notes(1, "first", "a"), 0)
        for name in ("1", "2", "3"):
            stream = store.branch(stream, name, Note(1, name))
        for name in ("0", "1", "2"):
            store.delete("session", name)
        store.gc()
        assert texts(stream) == ["3", "a"]
        stream.settle()
        store.gc()
        assert texts(stream) == ["3", "a"]
        store.delete("session", "3")
        store.gc()
        assert store.gc() == ([], 0, [])
        assert store.fsck() == (0, 0, [])

    # Search.

    def test_a_search_finds_texts_that_hold_every_term(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append([*notes(1, "The deploy failed", "why did it fail?", "Grüße, ÄRGER 50% a_b"),
                       Note(4, "deploy", type="hidden")], 0)  # fmt: skip
        store.stream("session", "r", NOTES).append(notes(1, "deploy again"), 0)

        def found(query: str, **how: object) -> list[tuple[str, int]]:
            return [(hit.name, hit.seq) for hit in store.search(query, codec=NOTES, **how)]  # type: ignore[arg-type]

        assert found("deploy") == [("r", 1), ("s", 1)]
        assert found("DEPLOY fail") == [("s", 1)]
        assert found('"did it"') == [("s", 2)]
        assert found('"it did"') == []
        assert found("grüsse") in ([], [("s", 3)])
        assert found("ärger") == [("s", 3)]
        assert found("0%") == [("s", 3)]
        assert found("a_b") == [("s", 3)]
        assert found("axb") == []
        assert found("d") == [("r", 1), ("s", 1), ("s", 2)]
        assert found("deploy", name="s") == [("s", 1)]
        assert found("deploy", names=frozenset({"s", "t"}), limit=1) == [("s", 1)]
        assert found("deploy", names=frozenset()) == []
        assert found("deploy", types=frozenset({"other"})) == []
        assert found("deploy", limit=1) == [("r", 1)]
        assert found("'; DROP TABLE records; --") == []
        with pytest.raises(StorageError, match="at least one word"):
            found(' "" ')
        stream.append(notes(5, "deploy once more"), 4)
        assert found("deploy") == [("r", 1), ("s", 1), ("s", 5)]

    def test_letters_of_all_kinds_are_found_in_any_case(self, store: Store) -> None:
        texts = [
            "Straße und STRASSE", "300 \N{KELVIN SIGN}elvin", "\N{LATIN SMALL LIGATURE FI}ne", "Привет, МИР",
            "\N{LATIN SMALL LETTER LONG S}un", "北京 欢迎 你", "İstanbul",
            "one\ntwo\tthree \x1b[0m four", 'C:\\users "me"',
            "50% off_by_one", "\N{PILE OF POO}",
        ]  # fmt: skip
        store.stream("session", "s", NOTES).append(notes(1, *texts), 0)
        queries = [
            "strasse", "STRASSE und", "kelvin", "fine", "FIN", "привет мир", '"привет, мир"', "sun", "欢迎",
            "北京 你", "istanbul", "stanbul", "two", "twothree", '"four"', "users", "off_by", "off by",
            "0% off", "\N{PILE OF POO}", "users me", "\\users", '"300 kelvin"', "e", "ß", "i̇",
        ]  # fmt: skip
        for query in queries:
            expected = [number for number, text in enumerate(texts, 1) if holds(text, terms(query))]
            assert [hit.seq for hit in store.search(query, codec=NOTES)] == expected, query

    def test_letters_written_as_numbers_are_found(self, store: Store) -> None:
        """JSON may write any letter so."""

        class Numbered(Notes):
            def encode(self, records: Sequence[Note]) -> list[Row]:
                return [
                    row._replace(data=row.data.replace("n", "\\u006e")) for row in super().encode(records)
                ]

        store.stream("session", "s", Numbered()).append(notes(1, "a needle"), 0)
        assert [hit.seq for hit in store.search("needle", codec=NOTES)] == [1]

    def test_a_shared_record_is_one_hit_of_the_stream_that_wrote_it(self, store: Store) -> None:
        source = store.stream("session", "s", NOTES)
        source.append(notes(1, "x", "needle", "after needle"), 0)
        branch = store.branch(source, "t", Note(1, "y"), until=2)
        branch.append(notes(3, "another needle"), 2)
        found = [(hit.name, hit.seq) for hit in store.search("needle", codec=NOTES)]
        assert found == [("s", 2), ("s", 3), ("t", 3)]
        found = [(hit.name, hit.seq) for hit in store.search("needle", codec=NOTES, name="t")]
        assert found == [("s", 2), ("t", 3)]
        store.branch(branch, "u", Note(1, "z"), until=2)
        found = [(hit.name, hit.seq) for hit in store.search("needle", codec=NOTES, name="u")]
        assert found == [("s", 2)]

    # Leases.

    def test_a_lease_is_one_holder_s_until_it_is_let_go(self, store: Store) -> None:
        lease = store.lease("k", "a:1")
        with pytest.raises(LeaseHeld, match="k is held by a:1 until "):
            store.lease("k", "b:2")
        other = store.lease("other", "b:2")
        lease.release()
        lease.release()
        again = store.lease("k", "b:2")
        assert again.token > lease.token
        with pytest.raises(LeaseLost, match="lease on k was lost to b:2"):
            lease.renew()
        lease.release()
        again.renew()
        other.release()

    def test_a_lease_expires_unless_it_is_renewed(self, opened: Opened, uptime: Uptime) -> None:
        store = opened(uptime)
        lease = store.lease("k", "a", ttl=3000)
        uptime.passes(2000)
        lease.renew()
        uptime.passes(2900)
        with pytest.raises(LeaseHeld):
            store.lease("k", "b")
        assert store.holder("k") == "a"
        uptime.passes(100)
        assert store.holder("k") is None
        assert store.lease("k", "b").token > lease.token

    def test_a_lease_of_a_process_that_is_gone_is_free_at_once(self, store: Store) -> None:
        from harnpy.storage.leases import Machine

        host, boot, pid, start = Machine().owner().split(":")
        assert store.holder("k") is None
        store.lease("k", f"{host}:{boot}:{pid}:{int(start) + 1}")
        assert store.holder("k") is None
        store.lease("k", f"{host}:another-boot:{pid}:{start}")
        mine = store.lease("k")
        assert mine.owner == Machine().owner()
        assert store.holder("k") == mine.owner
        with pytest.raises(LeaseHeld):
            store.lease("k", "elsewhere:x:1:1")

    def test_an_append_under_a_lost_lease_is_refused(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        lease = store.lease("session:s", "a")
        stream.append(notes(1, "a"), 0, fence=lease)
        lease.release()
        with pytest.raises(LeaseLost, match="it was let go"):
            stream.append(notes(2, "b"), 1, fence=lease)
        newer = store.lease("session:s", "b")
        with pytest.raises(LeaseLost, match="lost to b"):
            stream.append(notes(2, "b"), 1, fence=lease)
        stream.append(notes(2, "c"), 1, fence=newer)
        assert texts(stream) == ["a", "c"]

    def test_a_holder_sees_that_somebody_waits(self, store: Store) -> None:
        lease = store.lease("k")
        assert not lease.is_wanted()
        waits = Event()
        other = threading.Thread(target=lambda: store.lease("k", wait=60, check=waits.set).release())
        other.start()
        assert waits.wait(60)
        assert lease.is_wanted()
        lease.release()
        other.join()
        assert not lease.is_wanted()

    def test_who_is_called_off_waits_no_longer(self, store: Store) -> None:
        class CalledOff(Exception):
            pass

        def check() -> None:
            raise CalledOff

        lease = store.lease("k")
        with pytest.raises(CalledOff):
            store.lease("k", "b", wait=60, check=check)
        assert not lease.is_wanted()
        lease.release()
        assert store.lease("k", "c").owner == "c"

    def test_those_who_wait_for_a_lease_get_it_in_turn(self, store: Store) -> None:
        first = store.lease("k", "0")
        got: list[str] = []

        def wait_for(name: str) -> None:
            with store.lease("k", name, wait=60):
                got.append(name)

        threads = [threading.Thread(target=wait_for, args=(str(number),)) for number in (1, 2, 3)]
        for thread in threads:
            thread.start()
        first.release()
        for thread in threads:
            thread.join()
        assert sorted(got) == ["1", "2", "3"]

    # Many writers.

    def test_threads_that_append_lose_nothing(self, opened: Opened) -> None:
        store = opened()

        def write(name: str) -> None:
            stream = store.stream("session", "s", NOTES)
            for number in range(50):
                while True:
                    version = stream.refresh()
                    try:
                        stream.append([Note(version + 1, f"{name}{number}")], version)
                    except VersionConflict:
                        continue
                    break

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        records = list(store.stream("session", "s", NOTES).read())
        assert [note.seq for note in records] == list(range(1, 201))
        for name in "abcd":
            assert [n.text for n in records if n.text[0] == name] == [f"{name}{n}" for n in range(50)]

    # Changes.

    def test_changes_are_waited_for(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        assert store.changes("session", "s", 0, 0) == 0
        thread = threading.Thread(target=lambda: stream.append(notes(1, "a"), 0))
        thread.start()
        assert store.changes("session", "s", 0, 60) == 1
        thread.join()
        assert store.changes("session", "s", 0, 60) == 1

    def test_the_versions_of_many_streams_are_one_look(self, store: Store) -> None:
        for number, name in enumerate(("a", "b's", "ü")):
            stream = store.stream("session", name, NOTES)
            stream.append(notes(1, *["x"] * (number + 1)), 0)
        store.branch(store.stream("session", "ü", NOTES), "fork", Note(1, "A"))
        store.stream("other", "c", NOTES).append(notes(1, "x"), 0)
        store.delete("session", "a")
        found = store.versions("session", ["a", "b's", "ü", "fork", "c", "none"])
        assert found == {"b's": 2, "ü": 3, "fork": 3}
        assert store.versions("session", []) == {}
        assert store.news("session", {"fork": 2}, 60) == {"fork": 3}
        assert store.news("session", {"fork": 3}, 0) == {"fork": 3}
        stream = store.stream("session", "ü", NOTES)
        stream.refresh()
        for seq in range(4, 12, 2):
            stream.append(notes(seq, "known"), seq - 1)  # what is announced of it may come late
            thread = threading.Thread(target=lambda seq=seq: stream.append(notes(seq + 1, "new"), seq))
            thread.start()
            assert store.news("session", {"b's": 2, "ü": seq}, 60) == {"b's": 2, "ü": seq + 1}
            thread.join()

    # Ends.

    def test_a_sound_store_has_no_findings(self, store: Store) -> None:
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a", "b"), 0)
        store.branch(stream, "t", Note(1, "A"))
        report = store.fsck()
        assert (report.streams, report.findings, report.clean) == (2, [], True)

    def test_a_closed_store_refuses_everything(self, opened: Opened) -> None:
        store = opened()
        stream = store.stream("session", "s", NOTES)
        stream.append(notes(1, "a"), 0)
        store.close()
        store.close()
        for call in (
            lambda: store.stream("session", "s", NOTES).refresh(),
            lambda: stream.append(notes(2, "b"), 1),
            lambda: store.heads(HeadQuery()),
            lambda: store.lease("k"),
            lambda: store.fsck(),
        ):
            with pytest.raises(StoreClosed, match="is closed"):
                call()
