"""The rows of 10 §C12's table that sessions promise whatever keeps them, as one class on every store.

The others: acknowledged appends and many writers, `tests/storage/test_processes.py`; leases and the rest of
a store's contract, `test_stores.py` there; power loss, `test_power_loss.py`; migration, `test_migration.py`;
what is a directory's own (an append cut at each byte, a bit flipped in each byte), `tests/storage/jsonl`.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, EventRejected, Session
from harnpy.session.codec import SessionCodec, encode_event
from harnpy.session.events import Origin, event_id
from harnpy.session.stored import StoredSession
from harnpy.storage import HeadQuery, StorageError, Store, open_store
from harnpy.storage.errors import CorruptLog, StoreFull
from harnpy.world import World
from tests.counts import COUNT
from tests.guarantees import harm
from tests.session import test_entries as windows
from tests.session.test_json_check import BAD
from tests.storage.conftest import STORES
from tests.worlds import world_with

Opened = Callable[..., Store]

#: For rows about what outlives a process, or has a disk.
KEPT = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


def said(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text}, **more)


def begun(id: str, store: Store, *texts: str) -> StoredSession:
    session = StoredSession.begin(id, store, World())
    for text in texts:
        session.append(said(text))
    return session


def loaded(id: str, store: Store, world: World | None = None) -> StoredSession:
    session = StoredSession.load(id, store, world or World())
    assert session
    return session


def texts(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def shown(session: Session) -> list[dict[str, Any]]:
    return [encode_event(event) for event in session.events()]


class Clock:
    """Tells the times that it is given, and the last one for ever."""

    def __init__(self, times: Iterator[float]) -> None:
        self._times = times
        self._last = 0.0

    def __call__(self) -> float:
        self._last = next(self._times, self._last)
        return self._last


#: What is done to a log: what, and how many events it makes.
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["append", "turn", "inside", "end", "reload", "other"]), st.integers(1, 3)),
    max_size=12,
)


class TestOnEveryStore:
    def test_positions_ids_and_times(self, store: Store) -> None:
        """Ids rise with `seq`, equal their formula and stay, times never go back, and the number of saves is
        the same by the log and by the list."""
        numbers = count()

        @settings(max_examples=COUNT.examples(15), deadline=None)
        @given(OPERATIONS, st.lists(st.floats(0, 4e9), min_size=1, max_size=30))
        def check(operations: list[tuple[str, int]], clock: list[float]) -> None:
            id = f"s{next(numbers)}"
            world = world_with(now=Clock(iter(clock)))
            session = StoredSession.begin(id, store, world)
            for operation in operations:
                session = operate(session, world, *operation)
            again = loaded(id, store, world)
            events = session.events()
            assert [event.seq for event in events] == list(range(1, session.seq + 1))
            times = [event.time for event in events]
            assert times == sorted(times)
            ids = [event.id for event in events]
            assert ids == [event_id(id, event.seq, event.time) for event in events] == sorted(ids)
            assert shown(again) == shown(session)
            assert session.revision == again.revision == session.info.revision == again.info.revision

        check()

    def test_what_isn_t_json_is_rejected_with_its_pointer(self, store: Store) -> None:
        numbers = count()

        @settings(max_examples=COUNT.examples(12), deadline=None)
        @given(
            st.sampled_from(BAD),
            st.lists(st.integers(0, 3) | st.text(max_size=3), max_size=30),
            st.integers(0, 2),
            st.booleans(),
        )
        def check(bad: tuple[Any, str], path: list[int | str], before: int, in_metadata: bool) -> None:
            value, what = bad
            for step in reversed(path):
                value = [*range(step), value] if isinstance(step, int) else {"b": [], step: value}
            pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
            part = (
                EventDraft("custom", {}, metadata={"m": value})
                if in_metadata
                else EventDraft("custom", value)
            )
            session = begun(f"s{next(numbers)}", store, "there")
            good = [said(str(number)) for number in range(3)]
            with pytest.raises(EventRejected) as caught:
                session.append(*good[:before], part, *good[before:])
            pointer = f"/m{pointer}" if in_metadata else pointer
            assert (caught.value.what, caught.value.pointer) == (what, pointer)
            for each in (session, loaded(session.id, store)):
                assert (each.version, texts(each)) == (2, ["there"])

        check()

    def test_too_deep_and_round_in_circles_are_rejected(self, store: Store) -> None:
        session = begun("s", store)
        deep: list[Any] = []
        for _ in range(512):
            deep = [deep]
        circle: dict[str, Any] = {}
        circle["x"] = [circle]
        for value, what in ((deep, "nesting deeper than 512"), (circle, "a cycle"), ({"x": math.nan}, "NaN")):
            with pytest.raises(EventRejected, match=what):
                session.append(said("a"), EventDraft("custom", value))
        assert loaded("s", store).version == 1

    def test_a_failed_append_is_seen_by_nobody(self, store: Store) -> None:
        """Persist first: not by memory, views, lists or whoever listens; and the session goes on."""
        session = begun("s", store, "a")
        observed: list[Event] = []
        session.observe(observed.append)
        before = (session.version, session.view.transcript("s"), session.moment, session.info)
        for number in range(1, 4):
            failing = Failing(session.stream, number)
            session.stream = failing
            for n in range(1, number):
                session.append(said(f"{number}.{n}"))
                before = (session.version, session.view.transcript("s"), session.moment, session.info)
            with pytest.raises(StorageError, match="the disk is gone"):
                session.append(said("lost"), said("too"))
            assert before == (session.version, session.view.transcript("s"), session.moment, session.info)
            session.stream = failing.stream
            session.refresh()
            assert shown(loaded("s", store)) == shown(session)
        session.append(said("on"))
        assert texts(loaded("s", store)) == texts(session) == ["a", "2.1", "3.1", "3.2", "on"]
        assert [event.body["content"] for event in observed] == ["2.1", "3.1", "3.2", "on"]

    def test_the_window_is_always_valid_for_a_provider(self, store: Store) -> None:
        numbers = count()

        @settings(max_examples=COUNT.examples(12), deadline=None)
        @given(st.lists(windows.STEPS, max_size=12))
        def check(steps: list[tuple[str, str, int]]) -> None:
            session = begun(f"s{next(numbers)}", store)
            for number, step in enumerate(steps):
                windows.play(session, number, *step)
            messages = session.window()
            windows.check_valid(messages)
            prefix = [entry.is_prefix for entry in session.entries()]
            assert prefix == sorted(prefix, reverse=True)
            assert loaded(session.id, store).window() == messages

        check()

    def test_ids_are_names_of_sessions_and_of_nothing_else(self, store: Store) -> None:
        ids = [
            "../x",
            "con",
            "nul.txt",
            "ä" * 200,
            "A",
            "a",
            ".",
            "..",
            "a/b",
            "%41",
            "'; DROP TABLE records",
        ]
        for number, id in enumerate(ids):
            begun(id, store, str(number)).fork(f"{id[:190]} fork")
        for number, id in enumerate(ids):
            assert texts(loaded(id, store)) == texts(loaded(f"{id[:190]} fork", store)) == [str(number)]
        listed = [head.name for head in store.heads(HeadQuery(order="id")).items]
        assert listed == sorted([*ids, *(f"{id[:190]} fork" for id in ids)])
        for id in ids:
            assert store.delete("session", id)
        assert len(store.heads(HeadQuery()).items) == len(ids)

    def test_searches_take_their_terms_as_they_are(self, store: Store) -> None:
        session = begun("s", store, 'it\'s 100% "sure"', "a_b", "axb \\ back", "; DROP TABLE records; --")
        codec = SessionCodec(Origin("s", World()))

        def found(query: str) -> list[int]:
            return [hit.seq for hit in store.search(query, codec=codec)]

        assert found("it's") == found("100%") == found("0% it's") == [2]
        assert (found("%"), found("_"), found("a_b"), found("\\")) == ([2], [3], [3], [4])
        assert found("; DROP TABLE records; --") == [5]
        assert found("' OR 1=1") == found('" OR') == found("NEAR(a b)") == found("*") == []
        assert texts(loaded("s", store)) == texts(session)

    def test_a_long_text_is_found_in_each_event_that_has_it(self, store: Store) -> None:
        """An append has it once, and its later events refer to the first."""
        text = "The quick brown fox jumps over the lazy dog. " * 2
        session = begun("s", store)
        session.write(*[said(text)] * 3)
        session.fork("t", at=3)

        def found(**how: Any) -> list[tuple[str, int]]:
            hits = store.search('"LAZY dog"', codec=SessionCodec(session.origin), **how)
            return [(hit.name, hit.seq) for hit in hits]

        assert found() == [("s", 2), ("s", 3), ("s", 4)]
        assert found(name="t") == [("s", 2), ("s", 3)]

    def test_many_sessions_are_listed_page_by_page(self, store: Store) -> None:
        many = COUNT.guarantee_entries
        world = World()
        for number in range(many):
            StoredSession.begin(f"s{number:05}", store, world)
        names, after = [], None
        while True:
            page = store.heads(HeadQuery(order="id", limit=77, after=after))
            names += [head.name for head in page.items]
            after = page.next
            if after is None:
                break
        assert names == [f"s{number:05}" for number in range(many)]

    def test_a_large_message_comes_back_whole(self, store: Store) -> None:
        size = COUNT.guarantee_size
        text = "ä\0 \U0001f600 " * (size // 10)
        begun("s", store, "before", text, "after")
        assert texts(loaded("s", store)) == ["before", text, "after"]


class Failing:
    """A stream whose ``number``-th append fails."""

    def __init__(self, stream: Any, number: int) -> None:
        self.stream = stream
        self._left = number

    def append(self, *arguments: Any, **more: Any) -> None:
        self._left -= 1
        if not self._left:
            raise StorageError("the disk is gone")
        self.stream.append(*arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def operate(session: StoredSession, world: World, what: str, number: int) -> StoredSession:
    """Do something to a session; return the object to go on with."""
    open_turns = list(session.view.open_turns)
    turn = session.event(open_turns[-1]) if open_turns else None
    if what == "append":
        session.append(*(said(str(n)) for n in range(number)))
    elif what == "turn" and not open_turns:
        session.append(EventDraft("turn_started", {"agent_id": "a"}))
    elif what == "inside" and turn is not None:
        session.append(*(said(str(n), turn=turn) for n in range(number)))
    elif what == "end" and turn is not None:
        session.append(
            EventDraft("turn_completed", {"agent_id": "a", "turn_stop_reason": "completed"}, turn=turn)
        )
    elif what == "reload":
        return loaded(session.id, session.store, world)
    elif what == "other":
        loaded(session.id, session.store, world).append(said("theirs"))
        session.refresh()
    return session


@KEPT
class TestOnEveryMedium:
    def test_a_full_disk_changes_nothing_and_space_helps(self, store: Store) -> None:
        session = begun("s", store, "a", "b")
        before = shown(session)
        with harm.full(store):
            for _ in range(2):
                with pytest.raises(StoreFull, match=r"no space left for .*: free some and try again"):
                    session.append(said("x" * 1_000_000), said("y"))
            assert (session.seq, texts(session), texts(loaded("s", store))) == (3, ["a", "b"], ["a", "b"])
        assert shown(loaded("s", store)) == before
        session.append(said("c"))
        assert texts(loaded("s", store)) == texts(session) == ["a", "b", "c"]
        assert store.fsck().clean

    def test_what_can_t_be_read_is_said_and_harms_no_other(self, opened: Opened, url: str) -> None:
        store = opened()
        begun("s", store, "a", "the one that is damaged", "c")
        begun("other", store, "fine")
        store.close()
        harm.damage(url, "s", 3)
        store = opened()
        with pytest.raises(CorruptLog) as caught:
            loaded("s", store)
        assert "3" in str(caught.value)
        assert texts(loaded("other", store)) == ["fine"]
        page = store.heads(HeadQuery())
        assert sorted([head.name for head in page.items] + [name for name, _ in page.errors]) == [
            "other",
            "s",
        ]
        assert [hit.name for hit in store.search("fine", codec=SessionCodec(Origin("", World())))] == [
            "other"
        ]
        report = store.fsck()
        assert not report.clean
        assert {finding.name for finding in report.findings} == {"s"}
        store.fsck(repair=True)
        assert texts(loaded("other", store)) == ["fine"]
        if url.startswith("jsonl:"):
            assert texts(loaded("s", store)) == ["a", "c"]


PASSWORDS = (
    "postgresql://ann:hunter2@127.0.0.1:1/db",
    "postgresql://ann:hunter2@127.0.0.1:1/db?sslmode=disable",
    "postgresql://127.0.0.1:1/db?user=ann&password=hunter2",
)


@pytest.mark.parametrize("url", PASSWORDS)
def test_no_password_is_in_a_message_a_repr_or_a_pickle(url: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_store(url)
    error = caught.value
    whole = [
        str(error),
        repr(error),
        pickle.dumps(error).decode("latin-1"),
        json.dumps(vars(error), default=str),
    ]
    assert "hunter2" not in " ".join(whole)
