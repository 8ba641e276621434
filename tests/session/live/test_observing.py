"""Observers: called within the append, in order, for each event once (10 §A1.12, §C10)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from harnpy.session import (
    EventDraft,
    InvalidArgument,
    Session,
    SessionBusy,
    SessionConflict,
    SessionRuntime,
    Txn,
)
from harnpy.session.codec import encode_event
from harnpy.session.errors import ObserverError
from harnpy.session.events import Event
from harnpy.session.history import ANY
from harnpy.session.stored import StoredSession
from harnpy.session.watch import Watch
from harnpy.storage import Store, open_store
from harnpy.world import World


def said(text: str = "x") -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text})


@pytest.fixture(params=["by itself", "memory:", "sqlite::memory:"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if request.param == "by itself":
        yield Session("s")
        return
    with closing(open_store(request.param)) as store:
        yield StoredSession.begin("s", store, World())


class TestObservers:
    def test_they_are_called_in_order_when_the_session_shows_the_event(self, session: Session) -> None:
        seen: list[Any] = []
        session.observe(lambda event: seen.append(("one", event.seq, session.seq, session.length)))
        leave = session.observe(lambda event: seen.append(("two", event.seq)))
        session.append(said(), said())
        assert seen == [("one", 2, 3, 2), ("two", 2), ("one", 3, 3, 2), ("two", 3)]
        leave()
        session.set("memo", 1)
        session.record("note", None)
        assert seen[4:] == [("one", 4, 4, 2), ("one", 5, 5, 2)]

    def test_one_that_fails_fails_the_append_which_is_stored(self, session: Session) -> None:
        told: list[int] = []

        def fail(event: Event) -> None:
            raise ValueError("no disk")

        session.observe(fail)
        session.observe(lambda event: told.append(event.seq))
        watch = session.watch()
        with pytest.raises(
            ObserverError, match="an observer of session 's' failed, events 2-3 is stored: no disk"
        ) as caught:
            session.append(said(), said())
        error = caught.value
        assert [event.seq for event in error.events] == [2, 3] == told
        assert (session.seq, session.length, error.code, type(error.__cause__)) == (
            3,
            2,
            "observer",
            ValueError,
        )
        assert [watch.next(0) is not None for _ in range(3)] == [True, True, False]
        copy = pickle.loads(pickle.dumps(error))
        written = encode_event(error.events[0])
        assert copy.events[0] == {key: written[key] for key in ("id", "seq", "type", "data")}
        assert pickle.loads(pickle.dumps(copy)).events == copy.events
        assert (str(copy), copy.session_id) == (str(error), "s")

    def test_calling_back_is_refused(self, session: Session) -> None:
        calls: list[Callable[[], object]] = [
            lambda: session.append(said()),
            lambda: session.set("memo", 1),
            lambda: session.record("note", None),
            lambda: session.reset(),
        ]
        for call in calls:
            leave = session.observe(lambda event, call=call: call())
            with pytest.raises(ObserverError) as caught:
                session.append(said())
            assert isinstance(caught.value.__cause__, SessionBusy)
            leave()
        assert session.seq == 1 + len(calls)
        leave = session.observe(lambda event: session.messages())  # reading is none
        session.append(said())

    def test_they_hear_what_this_object_appends(self, store: Store) -> None:
        session = StoredSession.begin("s", store, World())
        other = StoredSession.load("s", store, World())
        assert other
        seen: list[int] = []
        session.observe(lambda event: seen.append(event.seq))
        other.append(said())
        with pytest.raises(SessionConflict):
            session.append(said())
        session.append(said(), expected_version=ANY)
        assert seen == [3]

    def test_an_async_function_is_no_observer(self) -> None:
        async def late(event: Event) -> None:
            raise AssertionError(event)

        with pytest.raises(InvalidArgument, match="must be a plain function"):
            Session("s").observe(late)


class TestInARuntime:
    def test_an_action_shows_what_it_saved(self) -> None:
        runtime = SessionRuntime("memory:")
        session, seen = runtime.create(id="s"), []
        session.observe(lambda event: seen.append(event.type))
        watch = session.watch()

        def act(txn: Txn) -> None:
            inner.append(txn.watch())
            txn.append(said())
            assert (seen, watch.next(0)) == ([], None)

        inner: list[Watch] = []
        runtime.execute("s", act)
        assert seen == ["message_added", "action_executed"]
        assert [watch.next(0) is not None for _ in range(3)] == [True, True, False]
        assert [inner[0].next(0) is not None for _ in range(3)] == [True, True, False]
        runtime.close()

    def test_one_that_is_watched_stays(self) -> None:
        with closing(SessionRuntime("memory:")) as runtime:
            watch = runtime.create(id="s").watch()
            assert not runtime.evict("s")
            watch.close()
            assert runtime.evict("s")
