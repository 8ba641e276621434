"""Watches: every event once and in order, or counted as dropped (10 §A1.12, §C10, §C12)."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Event as Flag

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import EventDraft, InvalidArgument, Session
from harnpy.session.codec import encode_event
from harnpy.session.history import ANY
from harnpy.session.stored import StoredSession
from harnpy.session.watch import Watch
from harnpy.storage import Store, open_store
from harnpy.storage.errors import StorageError
from harnpy.world import World
from tests.counts import COUNT

EXAMPLES = COUNT.examples(12)


def said(text: str = "x") -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text})


def load(store: Store, id: str = "s") -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session
    return session


def there(watch: Watch) -> list[int]:
    """The numbers of the events that are there already."""
    return [event.seq for event in iter(lambda: watch.next(0), None)]


@pytest.fixture
def session(store: Store) -> StoredSession:
    return StoredSession.begin("s", store, World())


class TestOnEveryStore:
    def test_what_comes_after_the_call_is_seen_whoever_appends_it(
        self, session: StoredSession, opened: Callable[[], Store]
    ) -> None:
        session.append(said())
        watch, other = session.watch(), load(opened() if session.store.url != "memory:" else session.store)
        assert there(watch) == []
        session.append(said(), said())
        other.refresh()
        other.append(said(), said())
        assert there(watch) == [3, 4, 5, 6]
        assert session.seq == 4  # what the object has seen, it alone decides
        session.append(said(), expected_version=ANY)
        assert there(watch) == [7]
        session.refresh()
        assert (there(watch), watch.dropped) == ([], 0)

    def test_after_replays_and_goes_on(self, session: StoredSession) -> None:
        session.append(*(said(str(n)) for n in range(300)))
        watch = session.watch(after=2, buffer=1)
        session.append(said())
        assert there(watch) == list(range(3, 303))
        session.append(said())
        assert (there(watch), watch.dropped) == ([303], 0)

    def test_events_are_those_that_the_log_has(self, session: StoredSession) -> None:
        watch, replaying = session.watch(), session.watch(after=0)
        session.append(said("a"), said("b"))
        session.trim(1)
        session.set("memo", {"k": 1})
        fork = session.fork("t").watch(after=0)
        logged = [encode_event(event) for event in session.events()]
        assert [encode_event(e) for e in iter(lambda: watch.next(0), None)] == logged[1:]
        assert [encode_event(e) for e in iter(lambda: replaying.next(0), None)] == logged
        own = [encode_event(e) for e in iter(lambda: fork.next(0), None)]
        assert own == [encode_event(event) for event in load(session.store, "t").events()]

    def test_types_are_chosen(self, session: StoredSession) -> None:
        watch = session.watch(types=["register_set"], buffer=1, after=0)
        session.append(*(said() for _ in range(5)))
        session.set("memo", 1)
        assert there(watch) == [7]
        session.append(*(said() for _ in range(5)))
        session.set("memo", 2)
        assert (there(watch), watch.dropped) == ([13], 0)

    def test_a_full_watch_drops_what_comes_and_counts_it(self, session: StoredSession) -> None:
        watch, patient = session.watch(buffer=2), session.watch()
        session.append(*(said() for _ in range(5)))
        assert (there(watch), watch.dropped) == ([2, 3], 3)
        session.append(said())
        assert (there(watch), there(patient)) == ([7], [2, 3, 4, 5, 6, 7])

    def test_a_hundred_watches(self, session: StoredSession) -> None:
        watches = [session.watch(after=0 if n % 2 else None) for n in range(100)]
        session.append(said(), said())
        assert [there(watch) for watch in watches] == [[2, 3], [1, 2, 3]] * 50

    def test_what_was_not_stored_is_not_shown(self, session: StoredSession) -> None:
        watch = session.watch()
        session.store.close()
        with pytest.raises(StorageError):
            session.append(said())
        assert (watch.next(), watch.closed) == (None, True)  # its store is closed

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(data=st.data())
    def test_neither_gap_nor_duplicate(self, data: st.DataObject) -> None:
        """Whatever is appended by this object and by others, read and taken in, in any order."""
        buffer, after = data.draw(st.integers(1, 6)), data.draw(st.none() | st.integers(0, 3))
        with closing(open_store("memory:")) as store:
            session = StoredSession.begin("s", store, World())
            session.append(said(), said())
            other = load(store)
            watch, seen = session.watch(buffer=buffer, after=after), []
            for _ in range(data.draw(st.integers(0, 25))):
                match data.draw(st.sampled_from(["own", "own", "foreign", "refresh", "read", "read"])):
                    case "own":
                        drafts = [said() for _ in range(data.draw(st.integers(1, 4)))]
                        session.append(*drafts, expected_version=ANY)
                    case "foreign":
                        other.append(said(), said(), expected_version=ANY)
                    case "refresh":
                        session.refresh()
                    case "read":
                        seen += [event.seq for event in [watch.next(0)] if event]
            seen += there(watch)
            other.refresh()
            expected = list(range((3 if after is None else after) + 1, other.version + 1))
            assert seen == sorted(set(seen))
            assert set(seen) <= set(expected)
            assert len(seen) + watch.dropped == len(expected)

    def test_two_writers_and_readers_that_come_late(self, session: StoredSession) -> None:
        """Threads, each with an object of its own."""

        def write(n: int) -> None:
            one = load(session.store)
            for _ in range(15):
                one.append(said(), said(), expected_version=ANY)

        def read(after: int) -> list[int]:
            with load(session.store).watch(after=after, buffer=1) as watch:
                return [event.seq for _, event in zip(range(61 - after), watch, strict=False)]

        with ThreadPoolExecutor(5) as pool:
            readers = [pool.submit(read, after) for after in (0, 1, 20)]
            for writer in [pool.submit(write, n) for n in range(2)]:
                writer.result(60)
            assert [reader.result(60) for reader in readers] == [
                list(range(after + 1, 62)) for after in (0, 1, 20)
            ]


class TestASessionByItself:
    def test_it_is_watched_like_any_other(self) -> None:
        session = Session("s")
        watch = session.watch(after=0)
        session.add_history([{"content": "a"}])
        session.set_memo(1)
        assert [event.type for event in iter(lambda: watch.next(0), None)] == [
            "session_created", "message_added", "register_set"
        ]  # fmt: skip

    def test_a_watch_that_is_not_lossy_keeps_the_appender_waiting(self) -> None:
        session = Session("s")
        watch, appended = session.watch(buffer=2, lossy=False), Flag()

        def write() -> None:
            session.append(*(said() for _ in range(5)))
            appended.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            assert watch.next(60) is not None
            assert not appended.is_set()  # two are in the buffer, two more wait
            assert [watch.next(60) is not None for _ in range(4)] == [True] * 4
            writing.result(60)
        assert (watch.next(0), watch.dropped) == (None, 0)

    @pytest.mark.parametrize("end", ["close", "abandon"])
    def test_an_appender_does_not_wait_for_a_watch_that_is_over(self, end: str) -> None:
        session = Session("s")
        watches = [session.watch(buffer=1, lossy=False)]
        blocked = Flag()
        session.observe(lambda event: blocked.set() if event.seq == 3 else None)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(session.append, said(), said(), said())
            assert blocked.wait(60)
            if end == "close":
                watches[0].close()
            watches.clear()
            gc.collect()
            writing.result(60)
        assert session.seq == 4

    def test_waiting_ends_with_an_event_a_timeout_or_the_watch(self) -> None:
        session = Session("s")
        watch = session.watch()
        assert watch.next(0.001) is None
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(watch.next)
            session.append(said())
            event = waiting.result(60)
            assert event
            assert event.seq == 2
            waiting = pool.submit(watch.next)
            watch.close()
            watch.close()
            assert waiting.result(60) is None
        assert (watch.closed, list(watch)) == (True, [])

    def test_what_a_closed_watch_has_taken_in_can_be_read(self) -> None:
        session = Session("s")
        with session.watch() as watch:
            session.append(said())
        session.append(said())
        assert [event.seq for event in watch] == [2]

    def test_has_watchers(self) -> None:
        session = Session("s")
        assert not session.has_watchers
        watch = session.watch()
        assert session.has_watchers
        watch.close()
        assert not session.has_watchers
        watch = session.watch()
        del watch
        gc.collect()
        assert not session.has_watchers
        leave = session.observe(print)
        assert session.has_watchers
        leave()
        leave()
        assert not session.has_watchers

    def test_arguments_are_checked(self) -> None:
        session = Session("s")
        for wrong in (
            {"buffer": 0},
            {"buffer": True},
            {"after": -1},
            {"after": "2"},
            {"types": "message_added"},
        ):
            with pytest.raises(InvalidArgument, match=f"watch: {next(iter(wrong))} must be"):
                session.watch(**wrong)


def test_a_deferred_store_shows_what_is_written(tmp_path: Path) -> None:
    with closing(open_store(f"jsonl:{tmp_path}?durability=async")) as store:
        session = StoredSession.begin("s", store, World())
        watch = session.watch()
        session.append(said(), said())
        assert [event.seq for _, event in zip(range(2), watch, strict=False)] == [2, 3]
        store.flush()


def test_a_session_as_it_stood_has_no_more(store: Store) -> None:
    StoredSession.begin("s", store, World()).append(said(), said())
    past = StoredSession.load("s", store, World(), until=2)
    assert past
    assert there(past.watch(after=0)) == [1, 2]


_WRITER = """
import sys
from harnpy.session import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.history import ANY
from harnpy.storage import open_store
from harnpy.world import World
store = open_store(sys.argv[1])
session = StoredSession.load("s", store, World())
for n in range(40):
    session.append(*[EventDraft("note", n)] * (n % 3 + 1), expected_version=ANY)
store.close()
"""


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_two_processes(tmp_path: Path, kind: str) -> None:
    """One appends, both do; the watch of this one has each event once, in order."""
    url = f"{kind}:{tmp_path / 'store'}?durability=relaxed"
    with closing(open_store(url)) as store:
        session = StoredSession.begin("s", store, World())
        with session.watch(after=0, buffer=1000) as watch:
            writers = [subprocess.Popen([sys.executable, "-c", _WRITER, url]) for _ in range(2)]
            seen: list[int] = []
            for n in count():
                if n % 5 == 0 and n < 50:
                    session.append(said(), expected_version=ANY)
                event = watch.next(0.05)
                seen += [event.seq] if event else []
                if len(seen) == 1 + 2 * 79 + 10:
                    break
                assert event or n < 2000
            assert [writer.wait(60) for writer in writers] == [0, 0]
        assert (seen, watch.dropped) == (list(range(1, len(seen) + 1)), 0)
