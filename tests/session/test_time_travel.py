"""A session opened as it stood at some moment: it reads like one that never went on, and can be forked.

Spec: 10 §C3, §C5.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import EventDraft, EventNotFound, InvalidArgument, SessionReadOnly
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.world import World
from tests.clock import SimulatedClock
from tests.counts import COUNT
from tests.session.rules.test_h_one_step_back import Conversation
from tests.session.test_views_equal import WITHOUT_FORKS, load, views


def said(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text}, **more)


def texts(session: StoredSession) -> list[str]:
    return [message["content"] for message in session.messages()]


def past(session: StoredSession, until: int | str | datetime) -> StoredSession:
    found = StoredSession.load(session.id, session.store, World(), until)
    assert found
    return found


@pytest.fixture
def session(store: Store) -> StoredSession:
    """One message a second: "a" at event 2 … "d" at event 5."""
    session = StoredSession.begin("s", store, World(clock=SimulatedClock(tick=1.0)))
    for text in "abcd":
        session.append(said(text))
    return session


def moment(session: StoredSession, seq: int) -> datetime:
    return datetime.fromtimestamp(session.event(seq).moment, UTC)


class TestUntil:
    def test_a_number_an_id_and_a_moment_name_the_same_past(self, session: StoredSession) -> None:
        then = moment(session, 3)
        for until in (3, session.event(3).id, then, then + timedelta(seconds=0.9)):
            there = past(session, until)
            assert (texts(there), there.seq, there.revision) == (["a", "b"], 3, 3)
            assert [event.id for event in there.events()] == [event.id for event in session.events()[:3]]
        assert texts(past(session, then - timedelta(microseconds=1))) == ["a"]
        assert texts(past(session, then + timedelta(days=1))) == list("abcd")

    def test_what_names_no_event_is_refused(self, session: StoredSession) -> None:
        for until in (0, 6, -1, "nobody", moment(session, 1) - timedelta(seconds=1)):
            with pytest.raises(EventNotFound, match="Event not found in session 's'"):
                past(session, until)
        # An id that names a position but another time: no guessing by its order.
        guess = "00000000" + session.event(3).id[8:]
        with pytest.raises(EventNotFound, match=guess):
            past(session, guess)
        with pytest.raises(InvalidArgument, match="`until` needs an offset: 2026-01-01T00:00:00"):
            past(session, datetime(2026, 1, 1))
        assert StoredSession.load("nobody", session.store, World(), 1) is None

    def test_a_fork_knows_its_parents_past(self, session: StoredSession) -> None:
        fork = session.fork("f", at=4)
        fork.append(said("e"))
        parents = [event.id for event in session.events()]
        assert texts(fork) == ["a", "b", "c", "e"]
        for until in (3, parents[2], fork.events()[2].id, moment(session, 3)):
            assert texts(past(fork, until)) == ["a", "b"]
        assert texts(past(fork, fork.event(5).id)) == ["a", "b", "c", "e"]
        assert past(fork, 4).info.fork_event_id == fork.info.fork_event_id
        with pytest.raises(EventNotFound):
            past(fork, parents[4])  # the parent's own


class TestReadOnly:
    def test_it_cannot_be_changed(self, session: StoredSession) -> None:
        there = past(session, 3)
        problem = "session 's' was opened as it stood at event 3: it can be read and forked, not changed"
        for change in (
            lambda: there.append(said("x")),
            lambda: there.record("custom", {}),
            lambda: there.set("memo", 1),
            lambda: there.set_status("completed"),
            lambda: there.pin(session.event(2).id),
            lambda: there.shrink("trim", there.view.window.trimmed(1)),
        ):
            with pytest.raises(SessionReadOnly, match=problem):
                change()
        assert (texts(there), there.seq) == (["a", "b"], 3)
        assert (texts(load("s", session.store)), session.info.seq) == (list("abcd"), 5)

    def test_it_stays_as_it_was(self, session: StoredSession) -> None:
        there = past(session, 3)
        session.append(said("later"))
        there.refresh()
        assert (texts(there), there.info.seq, len(there.history(include_reset=True))) == (["a", "b"], 3, 2)
        assert there.info.updated_at == session.event(3).timestamp

    def test_it_can_be_forked(self, session: StoredSession) -> None:
        fork = past(session, 3).fork("f")
        fork.append(said("other"))
        assert texts(fork) == texts(load("f", session.store)) == ["a", "b", "other"]
        assert (fork.info.parent_id, fork.info.fork_seq) == ("s", 3)
        assert texts(past(session, 4).fork("g", at=2)) == ["a"]


def test_the_views_are_those_of_that_time(store: Store) -> None:
    numbers = count()

    @settings(max_examples=COUNT.examples(8), deadline=None)
    @given(st.lists(WITHOUT_FORKS, max_size=6))
    def check(steps: list[tuple[Any, ...]]) -> None:
        session = StoredSession.begin(f"s{next(numbers)}", store, World())
        talk = Conversation(session)
        was = [(session.seq, views(session))]
        for verb, *arguments in steps:
            talk.take(verb, *arguments)
            was.append((session.seq, views(session)))
        for seq, shown in was:
            assert views(past(session, seq)) == shown

    check()
